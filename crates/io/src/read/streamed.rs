//! [`StreamedTable`]: a private table that is read piece by piece, as often as needed, and is never in memory as a whole.
//!
//! The first reading collects the distinct texts of each column and counts them. A later reading gives rows as ids of these
//! texts.
//!
//! # Guarantee
//! The file is checked like one that [`super::load`] reads. The sample depends on the rows of the file, but not on their order.
//! A file whose rows are others when it is read again is refused.

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

/// What a distinct text takes beside its bytes: in the dictionary, in the columns of the table and of a cell, in domains, and for
/// its count, its first row, its hashes and its rank.
const BYTES_PER_TEXT: u64 = 120;
/// How often the bytes of a text are in memory.
const COPIES_OF_TEXTS: u64 = 5;

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
    /// Reads the rows again.
    pub rows: RowsAgain,
}

/// Reads the rows of a table as often as needed, once its texts are known.
pub struct RowsAgain {
    columns: NumberedColumns,
    kept: Vec<usize>,
    /// For each column the number of texts.
    n_texts: Vec<usize>,
    hashes: RowHashes,
    /// For each column what its cells became before classes are made, if they were changed. Empty if none was.
    changes: Vec<Option<ChangedTexts>>,
    n_rows: u64,
    /// The sum of the hashes of all rows.
    sum: u64,
}

/// Rows of a private table, by the ids of its texts.
#[derive(Clone, Copy)]
pub struct Piece<'a> {
    /// The rows as they are anonymized.
    pub rows: &'a NumberedRows,
    /// The same rows before cells were changed. An id is that of a text of the file, which stands in the row of the same number in
    /// [`StreamedTable::loaded`].
    pub as_read: &'a NumberedRows,
    /// A hash of each row, which is the same on every machine and depends on the row alone.
    pub hashes: &'a [u64],
}

/// What became of the texts of a column.
struct ChangedTexts {
    /// For each text of the file the id of the changed text.
    ids: Vec<u32>,
    /// The hash of each changed text.
    hashes: Vec<u64>,
}

impl ChangedTexts {
    fn id(changed: Option<&ChangedTexts>, id: u32) -> u32 {
        match changed {
            Some(changed) if id != NULL => changed.ids[id as usize],
            _ => id,
        }
    }
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
        let (open, mut described) = Described::open(sources, spec, table_spec, progress)?;
        let kept = described.kept.clone();
        let counter =
            Counter::of(open, &kept, (SAMPLE, most_bytes), progress).map_err(|problem| fail(vec![problem]))?;
        let Counter { columns, counts, first_rows, n_rows, .. } = &counter;
        let n_rows = *n_rows;
        let position = |name: &str| kept.iter().position(|&position| described.names[position] == name);
        let places: BTreeMap<String, usize> =
            described.names.iter().filter_map(|name| Some((name.clone(), position(name)?))).collect();
        // Nulls come first. They are no values, so no bound is looked for among them.
        described.counts = Some(counts.iter().map(|counts| counts[1..].to_vec()).collect());
        let raw = columns.each_once(counts.iter().map(|counts| counts[0] > 0));
        let loaded = described.assemble(sources, spec, table_spec, raw).map_err(|problems| {
            let place = |column: &str, row: u64| {
                let (column, id) = (places[column], row as usize - 1);
                MissingValue { first_row: first_rows[column][id] + 1, n_rows: counts[column][id + 1] }
            };
            fail(problems.into_iter().map(|problem| problem.of_values(place)).collect())
        })?;
        let mut counter = counter;
        let read: Vec<Vec<u64>> = std::mem::take(&mut counter.counts);
        let n_texts: Vec<usize> = counter.columns.lengths().collect();
        let changes: Vec<Option<ChangedTexts>> = loaded
            .table
            .columns
            .iter()
            .zip(n_texts)
            .zip(&loaded.origin.readings)
            .map(|((column, n_texts), reading)| {
                (!reading.transform.is_nothing()).then(|| ChangedTexts {
                    ids: column.ids[..n_texts].to_vec(),
                    hashes: column.texts.iter().map(stable_hash).collect(),
                })
            })
            .collect();
        let counts = read.iter().zip(&changes).zip(&loaded.table.columns);
        let counts = counts.map(|((counts, changed), column)| {
            let (nulls, of_texts) = counts.split_at(1);
            let mut counts = vec![0; column.texts.len()];
            match changed {
                None => counts.copy_from_slice(of_texts),
                Some(changed) => {
                    of_texts.iter().zip(&changed.ids).for_each(|(count, &id)| counts[id as usize] += count);
                }
            }
            counts.extend(nulls);
            counts
        });
        let counts = counts.collect();
        let sample = std::mem::take(&mut counter.sample).into_values().map(|(ids, n)| {
            let ids = ids.into_iter().zip(&changes).map(|(id, changed)| ChangedTexts::id(changed.as_ref(), id));
            (ids.collect(), n)
        });
        let sample = sample.collect();
        let rows = RowsAgain { changes, ..counter.rows_again(kept) };
        Ok(StreamedTable { loaded, counts, n_rows, sample, rows })
    }
}

impl RowsAgain {
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
        self.for_each_piece_as_read(sources, table_spec, progress, |piece| take(piece.rows))
    }

    /// Does the same, and hands over the rows as they were read, too.
    ///
    /// # Errors
    /// As [`RowsAgain::for_each_piece`].
    pub fn for_each_piece_as_read<E: From<ReadErrors>>(
        &mut self,
        sources: Sources<'_>,
        table_spec: &TableSpec,
        progress: &dyn Progress,
        take: impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let fail = |problem| E::from(ReadErrors { file: sources.place(&table_spec.file), problems: vec![problem] });
        let (open, _) = sources.open(&table_spec.file, &table_spec.csv, progress).map_err(fail)?;
        self.for_each_piece_of(open, progress, fail, take)
    }

    /// Does the same as [`RowsAgain::for_each_piece`] for a file that is open already. `fail` turns a problem of the file
    /// into an error of the caller.
    pub(super) fn for_each_piece_of<E>(
        &mut self,
        open: OpenTable<'_>,
        progress: &dyn Progress,
        fail: impl Fn(ReadError) -> E,
        mut take: impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut n_rows, mut sum) = (0, 0u64);
        for batch in Pieces::of(open, &self.kept).map_err(&fail)? {
            let batch = batch.map_err(&fail)?;
            let rows = self.columns.number(&batch, progress).map_err(&fail)?;
            if self.columns.lengths().zip(&self.n_texts).any(|(n_now, &n_texts)| n_now > n_texts) {
                return Err(fail(ReadError::FileChanged));
            }
            n_rows += batch.num_rows() as u64;
            let hashes = self.hashes.of_rows(&rows, batch.num_rows());
            sum = hashes.iter().copied().fold(sum, u64::wrapping_add);
            take(Piece { rows: self.changed(&rows).as_deref().unwrap_or(&rows), as_read: &rows, hashes: &hashes })?;
        }
        if (n_rows, sum) == (self.n_rows, self.sum) { Ok(()) } else { Err(fail(ReadError::FileChanged)) }
    }

    /// The hash of each text of a column, by its id. It is the same in every process and on every machine.
    pub fn hashes_of(&self, column: usize) -> &[u64] {
        let changed = self.changes.get(column).and_then(Option::as_ref);
        changed.map_or(&self.hashes.of_texts[column], |changed| &changed.hashes)
    }

    /// Rows with changed cells; `None` if no column is changed.
    fn changed(&self, rows: &NumberedRows) -> Option<Vec<Vec<u32>>> {
        if self.changes.iter().all(Option::is_none) {
            return None;
        }
        let column = |(ids, changed): (&Vec<u32>, &Option<ChangedTexts>)| match changed {
            None => ids.clone(),
            Some(_) => ids.iter().map(|&id| ChangedTexts::id(changed.as_ref(), id)).collect(),
        };
        Some(rows.par_iter().zip(&self.changes).map(column).collect())
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

    /// The texts of a column from this number on.
    pub(crate) fn texts_from(&self, column: usize, first: usize) -> kohort_model::Texts {
        self.values[column].texts_from(first)
    }

    /// Columns of one length in which every text occurs, and a null where there is one.
    pub(super) fn each_once(&self, with_null: impl Iterator<Item = bool>) -> Vec<RawColumn> {
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
pub(super) struct Counter {
    pub(super) columns: NumberedColumns,
    names: Vec<String>,
    pub(super) n_rows: u64,
    /// For each column the number of nulls, then of rows that hold each text.
    pub(super) counts: Vec<Vec<u64>>,
    /// For each column and text its first row.
    pub(super) first_rows: Vec<Vec<u64>>,
    hashes: RowHashes,
    most_samples: usize,
    /// The bytes of all texts.
    n_bytes: u64,
    /// The sum of the hashes of all rows.
    sum: u64,
    /// The rows with the smallest hashes.
    sample: BTreeMap<u64, (Box<[u32]>, u64)>,
}

/// Hashes of rows that are the same in every process and on every machine, because the sample decides where a table is cut.
struct RowHashes {
    /// For each column the hash of each text.
    of_texts: Vec<Vec<u64>>,
}

impl RowHashes {
    fn of_rows(&self, rows: &NumberedRows, n_rows: usize) -> Vec<u64> {
        let hash_of = |row: usize| {
            let columns = rows.iter().zip(&self.of_texts);
            let mixed = columns.fold(0, |hash, (ids, hashes)| {
                mix(hash ^ hashes.get(ids[row] as usize).copied().unwrap_or(u64::from(NULL)))
            });
            mix(mixed)
        };
        (0..n_rows).into_par_iter().with_min_len(1 << 12).map(hash_of).collect()
    }
}

impl Counter {
    /// Reads some columns of a file. `limits` are the number of different rows in the sample, and the bytes that distinct texts
    /// may take.
    pub(super) fn of(
        open: OpenTable<'_>,
        kept: &[usize],
        (most_samples, most_bytes): (usize, u64),
        progress: &dyn Progress,
    ) -> Result<Counter, ReadError> {
        let mut pieces = Pieces::of(open, kept)?;
        let mut counter = Counter { most_samples, ..Counter::new(&pieces.schema())? };
        pieces.try_for_each(|batch| counter.add(&batch?, most_bytes, progress))?;
        if counter.n_rows == 0 { Err(ReadError::NoRows) } else { Ok(counter) }
    }

    /// What is needed to read the same columns again.
    pub(super) fn rows_again(self, kept: Vec<usize>) -> RowsAgain {
        let n_texts = self.columns.lengths().collect();
        let Counter { columns, hashes, n_rows, sum, .. } = self;
        RowsAgain { columns, kept, n_texts, hashes, changes: Vec::new(), n_rows, sum }
    }

    fn new(schema: &[(Field, Option<Field>)]) -> Result<Self, ReadError> {
        let n_columns = schema.len();
        Ok(Counter {
            columns: NumberedColumns::new(schema)?,
            names: schema.iter().map(|(field, _)| field.name().clone()).collect(),
            n_rows: 0,
            counts: vec![vec![0]; n_columns],
            first_rows: vec![Vec::new(); n_columns],
            hashes: RowHashes { of_texts: vec![Vec::new(); n_columns] },
            most_samples: SAMPLE,
            n_bytes: 0,
            sum: 0,
            sample: BTreeMap::new(),
        })
    }

    fn add(&mut self, batch: &RecordBatch, most_bytes: u64, progress: &dyn Progress) -> Result<(), ReadError> {
        let rows = self.columns.number(batch, progress)?;
        let Counter { columns, counts, first_rows, hashes, n_rows, .. } = self;
        let of_columns = rows.par_iter().zip(counts.par_iter_mut()).zip(first_rows.par_iter_mut());
        let values = columns.values.par_iter().zip(hashes.of_texts.par_iter_mut());
        let n_bytes = of_columns.zip(values).map(|(((ids, counts), first_rows), (values, hashes))| {
            let texts = values.texts_from(hashes.len());
            hashes.extend(texts.iter().map(stable_hash));
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
            texts.iter().map(|text| text.len() as u64).sum::<u64>()
        });
        self.n_bytes += n_bytes.sum::<u64>();
        self.take_samples(&rows, batch.num_rows());
        self.n_rows += batch.num_rows() as u64;
        let n_texts: usize = self.columns.lengths().sum();
        if n_texts as u64 * BYTES_PER_TEXT + self.n_bytes * COPIES_OF_TEXTS > most_bytes {
            let largest = (0..self.names.len()).max_by_key(|&column| self.columns.values[column].len()).unwrap_or(0);
            let column = self.names.get(largest).cloned().unwrap_or_default();
            return Err(ReadError::TooManyValues { column, n_values: self.columns.values[largest].len() });
        }
        Ok(())
    }

    fn take_samples(&mut self, rows: &NumberedRows, n_rows: usize) {
        for (row, hash) in self.hashes.of_rows(rows, n_rows).into_iter().enumerate() {
            self.sum = self.sum.wrapping_add(hash);
            let is_full = self.sample.len() >= self.most_samples;
            if is_full && self.sample.last_key_value().is_none_or(|(&largest, _)| hash > largest) {
                continue;
            }
            let ids = || rows.iter().map(|ids| ids[row]).collect();
            self.sample.entry(hash).or_insert_with(|| (ids(), 0)).1 += 1;
            if self.sample.len() > self.most_samples {
                self.sample.pop_last();
            }
        }
    }
}

fn stable_hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn mix(hash: u64) -> u64 {
    let hash = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ hash >> 29
}
