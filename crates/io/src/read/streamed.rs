//! [`StreamedTable`]: a private table that is read piece by piece, as often as needed, and is never in memory as a whole.
//!
//! The first reading collects the distinct texts of each column and counts them. A later reading gives rows as ids of these
//! texts.
//!
//! # Guarantee
//! The file is checked like one that [`super::load`] reads. The sample depends on the rows of the file, but not on their order.
//! A file that changes between two readings is refused.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Field, Schema};
use kohort_model::spec::TableSpec;
use kohort_model::{NULL, Progress, Spec};
use rayon::prelude::*;

use super::arrow::Values;
use super::error::{MissingValue, ReadError, ReadErrors};
use super::load::{Described, LoadedTable};
use super::open::OpenTable;
use super::{RawColumn, Sources};

/// A sample has at most this many different rows.
const SAMPLE: usize = 1 << 16;

/// Rows as ids of texts, column by column. Null is [`NULL`].
pub type NumberedRows = [Vec<u32>];

/// A private table that is read piece by piece.
pub struct StreamedTable {
    /// The columns of the table, with rows in which each distinct text of the file occurs, and a null where the file has one.
    pub loaded: LoadedTable,
    /// For each column the number of rows that hold each text, by its id, and at the end the number of nulls.
    pub counts: Vec<Vec<u64>>,
    /// The number of rows.
    pub n_rows: u64,
    /// Some rows, each with the number of rows of the file that are equal to it.
    pub sample: Vec<(Vec<u32>, u64)>,
    columns: NumberedColumns,
    kept: Vec<usize>,
}

impl StreamedTable {
    /// Reads a table of a spec for the first time. Distinct texts may take up to `most_bytes` of memory.
    ///
    /// # Errors
    /// Every problem that can be found in the columns and their hierarchies, or the first one of the file.
    pub fn count<'s>(
        sources: impl Into<Sources<'s>>,
        spec: &Spec,
        table_spec: &TableSpec,
        most_bytes: u64,
        progress: &dyn Progress,
    ) -> Result<StreamedTable, ReadErrors> {
        let sources = sources.into();
        let fail = |problems| ReadErrors { file: sources.place(&table_spec.file), problems };
        if table_spec.file.as_os_str() == "-" {
            return Err(fail(vec![ReadError::ReadOnce]));
        }
        let (open, described) = Described::open(sources, spec, table_spec, progress)?;
        let kept = described.kept.clone();
        let mut pieces = Pieces::of(open, &kept).map_err(|problem| fail(vec![problem]))?;
        let mut counter = Counter::new(&pieces.schema()).map_err(|problem| fail(vec![problem]))?;
        let counted = pieces.try_for_each(|batch| counter.add(&batch?, most_bytes, progress));
        counted.map_err(|problem| fail(vec![problem]))?;
        if counter.n_rows == 0 {
            return Err(fail(vec![ReadError::NoRows]));
        }
        let Counter { columns, counts, first_rows, sample, n_rows, .. } = counter;
        let position = |name: &str| kept.iter().position(|&position| described.names[position] == name);
        let places: BTreeMap<String, usize> =
            described.names.iter().filter_map(|name| Some((name.clone(), position(name)?))).collect();
        let raw = columns.each_once(counts.iter().map(|counts| counts[0] > 0));
        let loaded = described.assemble(sources, spec, table_spec, raw).map_err(|problems| {
            let place = |column: &str, row: u64| {
                let (column, id) = (places[column], row as usize - 1);
                MissingValue { first_row: first_rows[column][id] + 1, n_rows: counts[column][id + 1] }
            };
            fail(problems.into_iter().map(|problem| problem.of_values(place)).collect())
        })?;
        let nulls_last = |mut counts: Vec<u64>| {
            counts.rotate_left(1);
            counts
        };
        let counts = counts.into_iter().map(nulls_last).collect();
        let sample = sample.into_values().map(|(ids, n)| (ids.into_vec(), n)).collect();
        Ok(StreamedTable { loaded, counts, n_rows, sample, columns, kept })
    }

    /// Reads the table once more, and hands its rows to `take`, piece by piece in their order.
    ///
    /// # Errors
    /// If the file can't be read or has changed, and the errors of `take`.
    pub fn for_each_piece<E: From<ReadErrors>>(
        &mut self,
        sources: Sources<'_>,
        table_spec: &TableSpec,
        progress: &dyn Progress,
        mut take: impl FnMut(&NumberedRows) -> Result<(), E>,
    ) -> Result<(), E> {
        let fail = |problem| E::from(ReadErrors { file: sources.place(&table_spec.file), problems: vec![problem] });
        let (open, _) = sources.open(&table_spec.file, &table_spec.csv, progress).map_err(fail)?;
        let mut n_rows = 0;
        for batch in Pieces::of(open, &self.kept).map_err(fail)? {
            let batch = batch.map_err(fail)?;
            n_rows += batch.num_rows() as u64;
            let rows = self.columns.number(&batch, progress).map_err(fail)?;
            if self.columns.lengths().zip(&self.counts).any(|(n_texts, counts)| n_texts >= counts.len()) {
                return Err(fail(ReadError::FileChanged));
            }
            take(&rows)?;
        }
        if n_rows == self.n_rows { Ok(()) } else { Err(fail(ReadError::FileChanged)) }
    }
}

/// The batches of a file of any format.
pub(crate) enum Pieces<'a> {
    Csv { batches: Box<super::CsvBatches<'a>>, wanted: Vec<usize> },
    Arrow(super::arrow::ArrowBatches<'a>),
}

impl<'a> Pieces<'a> {
    /// The rows of a file, with the columns at these positions, which must be in ascending order.
    pub(crate) fn of(open: OpenTable<'a>, wanted: &[usize]) -> Result<Pieces<'a>, ReadError> {
        Ok(match open {
            OpenTable::Csv(file) => {
                Pieces::Csv { batches: Box::new(super::CsvBatches::new(file)), wanted: wanted.to_vec() }
            }
            OpenTable::Arrow(file) => Pieces::Arrow(file.into_batches_of(wanted)?),
            // Such columns are in memory anyway.
            OpenTable::Lazy(_) => return Err(ReadError::ReadOnce),
        })
    }

    /// The columns: their Arrow fields, or `None` if the file has texts only.
    pub(crate) fn schema(&self) -> Vec<(Field, Option<Field>)> {
        let fields = |schema: &Schema| schema.fields().iter().map(|field| field.as_ref().clone()).collect::<Vec<_>>();
        match self {
            Pieces::Csv { batches, wanted } => {
                let all = fields(batches.schema());
                wanted.iter().map(|&position| (all[position].clone(), None)).collect()
            }
            Pieces::Arrow(batches) => {
                fields(batches.schema()).into_iter().map(|field| (field.clone(), Some(field))).collect()
            }
        }
    }
}

impl Iterator for Pieces<'_> {
    type Item = Result<RecordBatch, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Pieces::Csv { batches, wanted } => {
                let project = |batch: RecordBatch| batch.project(wanted).map_err(|error| unreadable(&error));
                batches.next().map(|batch| batch.and_then(project))
            }
            Pieces::Arrow(batches) => batches.next(),
        }
    }
}

fn unreadable(_: &ArrowError) -> ReadError {
    ReadError::Damaged { format: "Arrow", fault: "its parts contradict each other" }
}

/// The distinct values of some columns, numbered in the order in which they are met.
pub(crate) struct NumberedColumns {
    values: Vec<Values>,
    fields: Vec<Option<Field>>,
}

impl NumberedColumns {
    pub(crate) fn new(schema: &[(Field, Option<Field>)]) -> Result<Self, ReadError> {
        let values = |(field, _): &(Field, Option<Field>)| {
            Values::of(field.data_type()).ok_or_else(|| ReadError::UnreadableType {
                column: field.name().clone(),
                data_type: field.data_type().to_string(),
            })
        };
        let values = schema.iter().map(values).collect::<Result<_, _>>()?;
        Ok(NumberedColumns { values, fields: schema.iter().map(|(_, field)| field.clone()).collect() })
    }

    /// The cells of a batch as numbers.
    pub(crate) fn number(&mut self, batch: &RecordBatch, progress: &dyn Progress) -> Result<Vec<Vec<u32>>, ReadError> {
        if progress.is_cancelled() {
            return Err(ReadError::Io { source: std::io::Error::other("the work was cancelled") });
        }
        let columns = self.values.par_iter_mut().zip(batch.columns()).map(|(values, array)| {
            let mut ids = Vec::with_capacity(array.len());
            values.add(array, &mut ids).map(|()| ids)
        });
        columns.collect::<Result<_, _>>().map_err(|error| unreadable(&error))
    }

    /// The number of distinct texts of each column.
    pub(crate) fn lengths(&self) -> impl Iterator<Item = usize> + '_ {
        self.values.iter().map(Values::len)
    }

    /// The texts of each column, by number.
    pub(crate) fn texts(&self) -> Vec<kohort_model::Texts> {
        self.values.par_iter().map(|values| values.texts_from(0)).collect()
    }

    /// Columns of one length in which every text occurs, and a null where there is one.
    fn each_once(&self, with_null: impl Iterator<Item = bool>) -> Vec<RawColumn> {
        let with_null: Vec<bool> = with_null.collect();
        let n_rows = self.lengths().zip(&with_null).map(|(n_texts, &null)| n_texts + usize::from(null)).max();
        let texts = self.texts().into_iter().zip(&with_null).zip(&self.fields);
        let column = |((texts, &with_null), field): ((kohort_model::Texts, &bool), &Option<Field>)| {
            let n_texts = texts.len() as u32;
            let rest = if with_null { NULL } else { n_texts.saturating_sub(1) };
            let ids = (0..n_rows.unwrap_or(0) as u32).map(|row| if row < n_texts { row } else { rest }).collect();
            RawColumn { texts, ids, field: field.clone() }
        };
        texts.map(column).collect()
    }
}

/// The state of the first reading.
struct Counter {
    columns: NumberedColumns,
    names: Vec<String>,
    n_rows: u64,
    /// For each column the number of nulls, then of rows that hold each text.
    counts: Vec<Vec<u64>>,
    /// For each column and text its first row.
    first_rows: Vec<Vec<u64>>,
    /// For each column the hash of each text.
    hashes: Vec<Vec<u64>>,
    /// The rows with the smallest hashes.
    sample: BTreeMap<u64, (Box<[u32]>, u64)>,
}

impl Counter {
    fn new(schema: &[(Field, Option<Field>)]) -> Result<Self, ReadError> {
        let n_columns = schema.len();
        Ok(Counter {
            columns: NumberedColumns::new(schema)?,
            names: schema.iter().map(|(field, _)| field.name().clone()).collect(),
            n_rows: 0,
            counts: vec![vec![0]; n_columns],
            first_rows: vec![Vec::new(); n_columns],
            hashes: vec![Vec::new(); n_columns],
            sample: BTreeMap::new(),
        })
    }

    fn add(&mut self, batch: &RecordBatch, most_bytes: u64, progress: &dyn Progress) -> Result<(), ReadError> {
        let rows = self.columns.number(batch, progress)?;
        let Counter { columns, counts, first_rows, hashes, n_rows, .. } = self;
        let of_columns = rows.par_iter().zip(counts.par_iter_mut()).zip(first_rows.par_iter_mut());
        let values = columns.values.par_iter().zip(hashes.par_iter_mut());
        of_columns.zip(values).for_each(|(((ids, counts), first_rows), (values, hashes))| {
            hashes.extend(values.texts_from(hashes.len()).iter().map(stable_hash));
            counts.resize(hashes.len() + 1, 0);
            for (row, &id) in ids.iter().enumerate() {
                if id == NULL {
                    counts[0] += 1;
                    continue;
                }
                counts[id as usize + 1] += 1;
                if id as usize == first_rows.len() {
                    first_rows.push(*n_rows + row as u64);
                }
            }
        });
        self.take_samples(&rows, batch.num_rows());
        self.n_rows += batch.num_rows() as u64;
        // Each text is held once by its dictionary and once more when the columns are assembled, with counts and hashes.
        let bytes = |values: &Values| values.len() as u64 * 80;
        let total: u64 = self.columns.values.iter().map(bytes).sum();
        if total > most_bytes {
            let largest = (0..self.names.len()).max_by_key(|&column| self.columns.values[column].len()).unwrap_or(0);
            let column = self.names.get(largest).cloned().unwrap_or_default();
            return Err(ReadError::TooManyValues { column, n_values: self.columns.values[largest].len() });
        }
        Ok(())
    }

    fn take_samples(&mut self, rows: &NumberedRows, n_rows: usize) {
        let hashes = &self.hashes;
        let hash_of = |row: usize| {
            let columns = rows.iter().zip(hashes);
            let mixed = columns.fold(0, |hash, (ids, hashes)| {
                mix(hash ^ hashes.get(ids[row] as usize).copied().unwrap_or(u64::from(NULL)))
            });
            mix(mixed)
        };
        let all: Vec<u64> = (0..n_rows).into_par_iter().with_min_len(1 << 12).map(hash_of).collect();
        for (row, &hash) in all.iter().enumerate() {
            if self.sample.len() >= SAMPLE && self.sample.last_key_value().is_some_and(|(&largest, _)| hash > largest) {
                continue;
            }
            let ids = || rows.iter().map(|ids| ids[row]).collect();
            self.sample.entry(hash).or_insert_with(|| (ids(), 0)).1 += 1;
            if self.sample.len() > SAMPLE {
                self.sample.pop_last();
            }
        }
    }
}

/// A hash that is the same in every process and on every machine, because the sample decides where a table is cut.
fn stable_hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn mix(hash: u64) -> u64 {
    let hash = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ hash >> 29
}
