//! [`Rows`]: an open scan.
//!
//! Each batch is a query of its own, which starts after the last row of the previous batch. So a scan does not occupy
//! its connection between batches: many scans of one transaction can run side by side on any threads. Rows always come
//! in the order of their numbers.
//!
//! # Cost
//!
//! One pass over the table, unless an index begins with a column of a condition. Then the scan first lists the numbers
//! of the rows that satisfy the conditions, and looks up each run of consecutive numbers. If these are more than an
//! eighth of the table and more than 65,536, the scan makes a pass over the table instead, because that is cheaper.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use rusqlite::types::Value as Stored;
use rusqlite::{Connection, Row, Statement};

use super::{FIRST_VALUE, Filter, ScanRequest};
use crate::encoding::{ColumnBuilder, StoredType};
use crate::session::{Held, Session};
use crate::{ROW_NUMBER, StoreError};

/// A batch ends early when its texts and blobs have this many bytes, because Arrow's offsets have 32 bits.
const MOST_BYTES: usize = 1 << 28;

/// Lists of up to this many numbers are used for a table of any size.
const SHORT_LIST: usize = 65_536;

/// The rows of a scan, in batches. A scan keeps its snapshot open. A scan of a change ends with the change.
pub struct Rows {
    session: Arc<Session>,
    table: String,
    table_id: i64,
    /// How often the transaction had written to the table when the scan began.
    n_writes: u64,
    schema: SchemaRef,
    types: Vec<StoredType>,
    with_rowid: bool,
    batch_size: usize,
    /// How many more rows are wanted.
    left: u64,
    source: Source,
}

/// Where the next rows come from.
enum Source {
    /// A pass over the table, which continues after this number.
    After { sql: String, values: Vec<Stored>, number: i64 },
    /// A list of row numbers.
    Listed { sql: String, numbers: std::vec::IntoIter<i64>, missing: Missing },
    /// Nothing more: the scan is done or has failed.
    Done,
}

/// What a number without a row means.
enum Missing {
    /// The number came from an index, so the index is damaged.
    Corrupt,
    /// The number came from the caller, so it is skipped.
    Skipped,
}

impl Missing {
    /// Skips this many numbers, which have no rows.
    fn skip(&self, numbers: &mut std::vec::IntoIter<i64>, n_numbers: usize) -> Result<(), StoreError> {
        if n_numbers > 0 && matches!(self, Missing::Corrupt) {
            return Err(StoreError::corrupt("an index names a row that is not in its table"));
        }
        numbers.take(n_numbers).for_each(drop);
        Ok(())
    }
}

impl Rows {
    /// Opens a scan.
    pub(crate) fn open(session: &Arc<Session>, table: &str, request: &ScanRequest) -> Result<Self, StoreError> {
        session.with(|held| {
            let found = held.catalog.table(table)?;
            let positions = match &request.columns {
                Some(columns) => found.description.positions(columns)?,
                None => (0..found.description.columns.len()).collect(),
            };
            let rowid = request.with_rowid.then(|| Field::new(ROW_NUMBER, DataType::Int64, false));
            let fields = positions.iter().map(|position| found.description.columns[*position].field());
            let schema = Schema::new(rowid.into_iter().chain(fields).collect::<Vec<_>>());
            Ok(Self {
                session: session.clone(),
                table: table.to_owned(),
                table_id: found.id,
                n_writes: n_writes(held, found.id),
                schema: Arc::new(schema),
                types: positions.iter().map(|position| found.types[*position].clone()).collect(),
                with_rowid: request.with_rowid,
                batch_size: request.batch_size.max(1),
                left: request.limit.unwrap_or(u64::MAX),
                source: Source::find(held, table, &positions, request)?,
            })
        })
    }

    /// The columns of the batches.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, StoreError> {
        if matches!(self.source, Source::Done) || self.left == 0 {
            return Ok(None);
        }
        let session = self.session.clone();
        session.with(|held| {
            if n_writes(held, self.table_id) != self.n_writes {
                return Err(StoreError::ChangedUnderScan { table: self.table.clone() });
            }
            let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(self.batch_size).min(self.source.most());
            if wanted == 0 {
                self.source = Source::Done;
                return Ok(None);
            }
            let mut batch = Batch::new(&self.types, self.with_rowid, wanted);
            let is_done = self.source.fill(&held.sql, &mut batch).map_err(|error| self.named(error))?;
            if is_done {
                self.source = Source::Done;
            }
            self.left -= batch.n_rows as u64;
            if batch.n_rows == 0 {
                return Ok(None);
            }
            batch.finish(&self.schema).map(Some).map_err(|error| self.named(error))
        })
    }

    fn named(&self, failure: Failure) -> StoreError {
        match failure {
            Failure::Store(error) => error,
            Failure::Malformed(column) => {
                let name = self.schema.field(column + usize::from(self.with_rowid)).name();
                let what = format!("column '{name}' of table '{}' contains a value of a wrong type", self.table);
                StoreError::corrupt(what)
            }
        }
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = self.next_batch();
        if found.is_err() {
            self.source = Source::Done;
        }
        found.transpose()
    }
}

fn n_writes(held: &Held, table_id: i64) -> u64 {
    held.writes.get(&table_id).copied().unwrap_or(0)
}

impl Source {
    fn find(held: &Held, table: &str, positions: &[usize], request: &ScanRequest) -> Result<Self, StoreError> {
        let table = held.catalog.table(table)?;
        let id = table.id;
        let columns: String = positions.iter().map(|position| format!(", c{position}")).collect();
        if let Some(numbers) = &request.numbers {
            let mut numbers = numbers.clone();
            numbers.sort_unstable();
            numbers.dedup();
            let sql = format!("SELECT row{columns} FROM t{id} WHERE row BETWEEN ? AND ? ORDER BY row");
            return Ok(Self::Listed { sql, numbers: numbers.into_iter(), missing: Missing::Skipped });
        }
        let filter = Filter::new(table, &request.conditions)?;
        if filter.by_index
            && let Some(mut numbers) = list(&held.sql, id, &filter)?
        {
            numbers.sort_unstable();
            let sql = format!("SELECT row{columns} FROM t{id} WHERE row BETWEEN ? AND ? ORDER BY row");
            return Ok(Self::Listed { sql, numbers: numbers.into_iter(), missing: Missing::Corrupt });
        }
        let sql =
            format!("SELECT row{columns} FROM t{id} NOT INDEXED WHERE row > ?1{} ORDER BY row LIMIT ?2", filter.sql);
        Ok(Self::After { sql, values: filter.values, number: i64::MIN })
    }

    /// The largest number of rows still to come, so that a lookup of one row does not allocate a whole batch.
    fn most(&self) -> usize {
        match self {
            Self::After { .. } => usize::MAX,
            Self::Listed { numbers, .. } => numbers.len(),
            Self::Done => 0,
        }
    }

    /// Fills a batch with the next rows, and returns whether they were the last ones.
    fn fill(&mut self, connection: &Connection, batch: &mut Batch) -> Result<bool, Failure> {
        match self {
            Self::Done => Ok(true),
            Self::After { sql, values, number } => {
                let mut statement = connection.prepare_cached(sql)?;
                statement.raw_bind_parameter(1, *number)?;
                statement.raw_bind_parameter(2, i64::try_from(batch.wanted).unwrap_or(i64::MAX))?;
                bind(&mut statement, values)?;
                let mut rows = statement.raw_query();
                while let Some(row) = rows.next()? {
                    batch.push(row)?;
                    if batch.is_full() {
                        *number = row.get(0)?;
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Listed { sql, numbers, missing } => {
                let mut statement = connection.prepare_cached(sql)?;
                while !batch.is_full() {
                    let Some((last, n_numbers)) = run(numbers.as_slice()) else {
                        return Ok(true);
                    };
                    let (first, mut n_done) = (numbers.as_slice()[0], 0);
                    let mut rows = statement.query([first, last])?;
                    while let Some(row) = rows.next()? {
                        let place = row.get::<_, i64>(0)?.abs_diff(first) as usize;
                        missing.skip(numbers, place - n_done)?;
                        numbers.next();
                        n_done = place + 1;
                        batch.push(row)?;
                        if batch.is_full() {
                            return Ok(numbers.as_slice().is_empty());
                        }
                    }
                    missing.skip(numbers, n_numbers - n_done)?;
                }
                Ok(numbers.as_slice().is_empty())
            }
        }
    }
}

/// The first run of consecutive numbers in a list: its last number and its length. The rows of a run are read together.
fn run(numbers: &[i64]) -> Option<(i64, usize)> {
    let n_followers = numbers.windows(2).take_while(|pair| pair[0] + 1 == pair[1]).count();
    Some((*numbers.get(n_followers)?, n_followers + 1))
}

/// The numbers of the rows that satisfy the conditions; `None` if a pass over the table is cheaper.
fn list(connection: &Connection, table_id: i64, filter: &Filter) -> Result<Option<Vec<i64>>, StoreError> {
    let mut statement = connection.prepare_cached(&format!("SELECT row FROM t{table_id} WHERE TRUE{}", filter.sql))?;
    bind(&mut statement, &filter.values)?;
    let mut rows = statement.raw_query();
    let mut most = SHORT_LIST;
    let mut numbers = Vec::new();
    while let Some(row) = rows.next()? {
        if numbers.len() == SHORT_LIST {
            let highest: i64 =
                connection.query_row(&format!("SELECT max(row) FROM t{table_id}"), [], |row| row.get(0))?;
            most = most.max(usize::try_from(highest / 8).unwrap_or(0));
        }
        if numbers.len() == most {
            return Ok(None);
        }
        numbers.push(row.get(0)?);
    }
    Ok(Some(numbers))
}

/// Binds the values of conditions, starting with parameter [`FIRST_VALUE`].
pub(crate) fn bind(statement: &mut Statement<'_>, values: &[Stored]) -> Result<(), rusqlite::Error> {
    for (number, value) in (FIRST_VALUE..).zip(values) {
        statement.raw_bind_parameter(number, value)?;
    }
    Ok(())
}

/// Why a batch can't be filled.
enum Failure {
    Store(StoreError),
    /// The column at this position has a value of a wrong type.
    Malformed(usize),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

/// A batch that is being filled.
struct Batch {
    numbers: Option<ColumnBuilder>,
    columns: Vec<ColumnBuilder>,
    wanted: usize,
    n_rows: usize,
    /// The bytes of texts and blobs in all columns.
    n_bytes: usize,
}

impl Batch {
    fn new(types: &[StoredType], with_rowid: bool, wanted: usize) -> Self {
        let room = wanted.min(8_192);
        Self {
            numbers: with_rowid.then(|| ColumnBuilder::new(StoredType::Int64, room)),
            columns: types.iter().map(|stored| ColumnBuilder::new(stored.clone(), room)).collect(),
            wanted,
            n_rows: 0,
            n_bytes: 0,
        }
    }

    /// Appends a row whose first column is its number.
    #[inline]
    fn push(&mut self, row: &Row<'_>) -> Result<(), Failure> {
        for (position, column) in self.columns.iter_mut().enumerate() {
            self.n_bytes += column.push(row.get_ref(position + 1)?).map_err(|_| Failure::Malformed(position))?;
        }
        if let Some(numbers) = &mut self.numbers {
            numbers.push(row.get_ref(0)?).map_err(|_| Failure::Malformed(0))?;
        }
        self.n_rows += 1;
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.n_rows == self.wanted || self.n_bytes >= MOST_BYTES
    }

    fn finish(self, schema: &SchemaRef) -> Result<RecordBatch, Failure> {
        let mut arrays = Vec::with_capacity(self.columns.len() + 1);
        if let Some(numbers) = self.numbers {
            arrays.push(numbers.finish().map_err(|_| Failure::Malformed(0))?);
        }
        for (position, column) in self.columns.into_iter().enumerate() {
            arrays.push(column.finish().map_err(|_| Failure::Malformed(position))?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.n_rows));
        // This fails only if a value is missing in a column that must have one.
        RecordBatch::try_new_with_options(schema.clone(), arrays, &options).map_err(|_| Failure::Malformed(0))
    }
}
