//! [`ArrowFile`]: reads Parquet, Arrow IPC and batches in memory into dictionaries.
//!
//! Values of fixed width are numbered by their bits, and only the distinct ones become texts. Each column of a batch is a
//! task of its own. The libraries that decode these formats panic on some damaged files; such a panic is caught and reported
//! like any other damage.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::{ArrowNativeType, ScalarBuffer};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_row::{RowConverter, SortField};
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use kohort_model::{NULL, Progress, Texts};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;
use rayon::prelude::*;

use super::dictionary::{TextDictionary, ValueDictionary};
use super::error::ReadError;
use super::persons::{KnownPersons, NOBODY, NamedPerson};
use super::{Batches as InMemory, Keep, Kept, RawColumn};
use crate::arrow_text::{Fixed, TextForm};

const ROWS_PER_BATCH: usize = 1 << 15;

/// A Parquet or Arrow file whose schema was read.
pub(crate) struct ArrowFile<'a> {
    batches: Batches<'a>,
    schema: SchemaRef,
    names: Vec<String>,
    progress: Option<&'a dyn Progress>,
}

enum Batches<'a> {
    Parquet(ParquetRecordBatchReaderBuilder<File>),
    IpcFile(FileReader<BufReader<File>>),
    IpcStream(StreamReader<BufReader<Box<dyn Read + 'a>>>),
    InMemory(Vec<RecordBatch>),
}

impl<'a> ArrowFile<'a> {
    pub(crate) fn open_parquet(file: File, progress: &'a dyn Progress) -> Result<Self, ReadError> {
        let opened = guarded("Parquet", || {
            ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| damaged_parquet(&error))
        });
        let builder = opened?.with_batch_size(ROWS_PER_BATCH);
        progress.begin("reading", u64::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(0));
        let schema = builder.schema().clone();
        Ok(Self::new(Batches::Parquet(builder), schema, Some(progress)))
    }

    /// Opens either of the two IPC formats, which the first bytes tell apart.
    pub(crate) fn open_ipc(mut file: File, progress: &'a dyn Progress) -> Result<Self, ReadError> {
        let mut magic = Vec::new();
        let peeked = file.by_ref().take(6).read_to_end(&mut magic).and_then(|_| file.rewind());
        peeked.map_err(|source| ReadError::Io { source })?;
        progress.begin("reading", 0);
        if magic != b"ARROW1" {
            let mut opened = Self::open_stream(Box::new(file))?;
            opened.progress = Some(progress);
            return Ok(opened);
        }
        let reader = guarded("Arrow", || {
            FileReader::try_new(BufReader::new(file), None).map_err(|error| damaged("Arrow", &error))
        })?;
        let schema = reader.schema();
        Ok(Self::new(Batches::IpcFile(reader), schema, Some(progress)))
    }

    /// Opens an IPC stream. Its bytes are counted for the progress bar when they are read.
    pub(crate) fn open_stream(bytes: Box<dyn Read + 'a>) -> Result<Self, ReadError> {
        let reader = guarded("Arrow", || {
            StreamReader::try_new(BufReader::new(bytes), None).map_err(|error| damaged("Arrow", &error))
        })?;
        let schema = reader.schema();
        Ok(Self::new(Batches::IpcStream(reader), schema, None))
    }

    /// Rows that a program has in memory.
    pub(crate) fn in_memory(schema: SchemaRef, batches: Vec<RecordBatch>, progress: &'a dyn Progress) -> Self {
        progress.begin("reading", batches.iter().map(|batch| batch.num_rows() as u64).sum());
        Self::new(Batches::InMemory(batches), schema, Some(progress))
    }

    fn new(batches: Batches<'a>, schema: SchemaRef, progress: Option<&'a dyn Progress>) -> Self {
        let names = schema.fields().iter().map(|field| field.name().clone()).collect();
        ArrowFile { batches, schema, names, progress }
    }

    /// The names of the columns.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The rows with the columns at these positions, which must be in ascending order. Progress is reported.
    pub(crate) fn into_batches_of(self, wanted: &[usize]) -> Result<ArrowBatches<'a>, ReadError> {
        let progress = self.progress;
        let mut batches = match self.batches {
            Batches::Parquet(builder) => {
                let mask = ProjectionMask::roots(builder.parquet_schema(), wanted.iter().copied());
                let builder = builder.with_projection(mask);
                ArrowFile { batches: Batches::Parquet(builder), ..self }.into_batches()?
            }
            _ => {
                let positions = wanted.to_vec();
                let mut all = self.into_batches()?;
                let reader = std::mem::replace(&mut all.reader, Box::new(std::iter::empty()));
                all.reader = Box::new(reader.map(move |batch| batch?.project(&positions)));
                all
            }
        };
        let projected = batches.schema.project(wanted);
        batches.schema = Arc::new(projected.map_err(|error| damaged(batches.format, &error))?);
        batches.progress = progress;
        Ok(batches)
    }

    /// The rows as they are.
    pub(crate) fn into_batches(self) -> Result<ArrowBatches<'a>, ReadError> {
        let (format, reader): (_, Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + 'a>) = match self.batches {
            Batches::Parquet(builder) => {
                let build = || builder.build().map_err(|error| damaged_parquet(&error));
                ("Parquet", Box::new(guarded("Parquet", build)?))
            }
            Batches::IpcFile(reader) => ("Arrow", Box::new(reader)),
            Batches::IpcStream(reader) => ("Arrow", Box::new(reader)),
            Batches::InMemory(batches) => ("Arrow", Box::new(batches.into_iter().map(Ok))),
        };
        Ok(ArrowBatches { reader, format, schema: self.schema, progress: None, is_done: false })
    }

    /// Reads the columns at these positions, which must be in ascending order.
    pub(crate) fn read(self, wanted: &[(usize, Keep<'_>)]) -> Result<Vec<Kept>, ReadError> {
        let mut columns = Vec::with_capacity(wanted.len());
        for &(position, keep) in wanted {
            columns.push(ColumnBuilder::new(self.schema.field(position), keep)?);
        }
        let wanted: Vec<usize> = wanted.iter().map(|&(position, _)| position).collect();
        let rows = RowSink { columns: &mut columns, n_rows: 0, progress: self.progress };
        match self.batches {
            Batches::Parquet(builder) => guarded("Parquet", || {
                let mask = ProjectionMask::roots(builder.parquet_schema(), wanted.iter().copied());
                let reader = builder.with_projection(mask).build().map_err(|error| damaged_parquet(&error))?;
                let every: Vec<usize> = (0..wanted.len()).collect();
                rows.take_all(reader, &every, "Parquet")
            })?,
            Batches::IpcFile(reader) => guarded("Arrow", || rows.take_all(reader, &wanted, "Arrow"))?,
            Batches::IpcStream(reader) => guarded("Arrow", || rows.take_all(reader, &wanted, "Arrow"))?,
            Batches::InMemory(batches) => {
                let n_rows = batches.iter().map(RecordBatch::num_rows).sum();
                rows.columns.iter_mut().for_each(|column| column.reserve(n_rows));
                guarded("Arrow", || rows.take_all(batches.into_iter().map(Ok), &wanted, "Arrow"))?;
            }
        }
        Ok(columns.into_iter().map(ColumnBuilder::finish).collect())
    }
}

/// The rows of a Parquet or Arrow file. Ends with the first problem.
pub(crate) struct ArrowBatches<'a> {
    reader: Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + 'a>,
    format: &'static str,
    schema: SchemaRef,
    progress: Option<&'a dyn Progress>,
    is_done: bool,
}

impl ArrowBatches<'_> {
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

impl Iterator for ArrowBatches<'_> {
    type Item = Result<RecordBatch, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let format = self.format;
        let next = || self.reader.next().transpose().map_err(|error| damaged(format, &error));
        let batch = guarded(format, next);
        if let (Some(progress), Ok(Some(batch))) = (self.progress, &batch) {
            progress.advance(batch.num_rows() as u64);
        }
        self.is_done = !matches!(batch, Ok(Some(_)));
        batch.transpose()
    }
}

/// Runs code that may panic on a damaged file. After a panic everything it worked on is dropped.
fn guarded<T>(format: &'static str, read: impl FnOnce() -> Result<T, ReadError>) -> Result<T, ReadError> {
    let contradicts = || ReadError::Damaged { format, fault: "its parts contradict each other" };
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(contradicts()))
}

/// The kind of the damage. The message of the library is not passed on, because it may quote bytes of the file.
fn damaged(format: &'static str, error: &ArrowError) -> ReadError {
    let fault = match error {
        ArrowError::NotYetImplemented(_) => "it uses a feature that is not supported",
        ArrowError::IoError(..) => "it ends too early, or could not be read to its end",
        ArrowError::SchemaError(_) => "its columns are not described as they should be",
        ArrowError::MemoryError(_) | ArrowError::OffsetOverflowError(_) => "parts of it are impossibly large",
        _ => "it does not begin, end or continue as it should",
    };
    ReadError::Damaged { format, fault }
}

/// The kind of the damage of a Parquet file.
fn damaged_parquet(error: &ParquetError) -> ReadError {
    let fault = match error {
        ParquetError::NYI(_) => "it uses a feature that is not supported",
        ParquetError::EOF(_) | ParquetError::NeedMoreData(_) => "it ends too early",
        ParquetError::IndexOutOfBound(..) => "its parts contradict each other",
        _ => "it does not begin, end or continue as it should",
    };
    ReadError::Damaged { format: "Parquet", fault }
}

/// Reads batches of one column.
pub(super) fn read_column(rows: &InMemory, keep: Keep<'_>) -> Result<Kept, ReadError> {
    let n_rows = rows.batches().iter().map(RecordBatch::num_rows).sum();
    let mut column = ColumnBuilder::new(rows.schema().field(0), keep)?;
    column.reserve(n_rows);
    let sink = RowSink { columns: std::slice::from_mut(&mut column), n_rows: 0, progress: None };
    let batches = rows.batches().iter().cloned().map(Ok);
    match guarded("Arrow", || sink.take_all(batches, &[0], "Arrow")) {
        // Whether the table has rows is judged when all its columns are there.
        Ok(()) | Err(ReadError::NoRows) => Ok(column.finish()),
        Err(problem) => Err(problem),
    }
}

struct RowSink<'a, 'p> {
    columns: &'a mut [ColumnBuilder<'p>],
    n_rows: u64,
    progress: Option<&'a dyn Progress>,
}

impl RowSink<'_, '_> {
    /// Adds the columns at these positions of every batch.
    fn take_all(
        mut self,
        batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
        positions: &[usize],
        format: &'static str,
    ) -> Result<(), ReadError> {
        for batch in batches {
            let batch = batch.map_err(|error| damaged(format, &error))?;
            if self.progress.is_some_and(Progress::is_cancelled) {
                return Err(ReadError::Io { source: std::io::Error::other("the work was cancelled") });
            }
            self.n_rows += batch.num_rows() as u64;
            if self.n_rows > u64::from(u32::MAX) - 1 {
                return Err(ReadError::TooManyRows);
            }
            self.columns
                .par_iter_mut()
                .zip(positions)
                .try_for_each(|(column, &position)| column.add(batch.column(position)))
                .map_err(|error| damaged(format, &error))?;
            if let Some(progress) = self.progress {
                progress.advance(batch.num_rows() as u64);
            }
        }
        if self.n_rows == 0 { Err(ReadError::NoRows) } else { Ok(()) }
    }
}

/// A column under construction.
struct ColumnBuilder<'p> {
    field: Field,
    cells: Cells<'p>,
}

/// What is kept of the cells so far.
enum Cells<'p> {
    Texts { values: Values, ids: Vec<u32> },
    Persons { known: &'p KnownPersons<'p>, named: Vec<NamedPerson> },
}

impl<'p> ColumnBuilder<'p> {
    fn new(field: &Field, keep: Keep<'p>) -> Result<Self, ReadError> {
        let values = Values::of(field.data_type()).ok_or_else(|| ReadError::UnreadableType {
            column: field.name().clone(),
            data_type: field.data_type().to_string(),
        })?;
        let cells = match keep {
            Keep::Texts => Cells::Texts { values, ids: Vec::new() },
            Keep::Persons(known) => Cells::Persons { known, named: Vec::new() },
        };
        Ok(ColumnBuilder { field: field.clone(), cells })
    }

    /// Makes room for all rows at once, because vectors that grow need twice the memory for a while.
    fn reserve(&mut self, n_rows: usize) {
        match &mut self.cells {
            Cells::Texts { ids, .. } => ids.reserve_exact(n_rows),
            Cells::Persons { named, .. } => named.reserve_exact(n_rows),
        }
    }

    fn add(&mut self, array: &ArrayRef) -> Result<(), ArrowError> {
        match &mut self.cells {
            Cells::Texts { values, ids } => values.add(array, ids),
            Cells::Persons { known, named } => {
                // The dictionary is for this batch alone, because there are too many keys to keep them.
                let Some(mut values) = Values::of(self.field.data_type()) else { return Ok(()) };
                let mut ids = Vec::with_capacity(array.len());
                values.add(array, &mut ids)?;
                let persons: Vec<NamedPerson> = values.into_texts().iter().map(|key| known.named(key)).collect();
                named.extend(ids.iter().map(|&id| if id == NULL { NOBODY } else { persons[id as usize] }));
                Ok(())
            }
        }
    }

    fn finish(self) -> Kept {
        match self.cells {
            Cells::Texts { values, mut ids } => {
                ids.shrink_to_fit();
                Kept::Texts(RawColumn { texts: values.into_texts(), ids, field: Some(self.field) })
            }
            Cells::Persons { named, .. } => Kept::Persons(named),
        }
    }
}

/// The distinct values of a column under construction.
pub(super) enum Values {
    Null,
    Text(TextDictionary),
    Boolean(ValueDictionary<bool>),
    /// Values of up to 64 bits.
    Narrow(Fixed, ValueDictionary<u64>),
    /// Values of 128 bits.
    Wide(Fixed, ValueDictionary<i128>),
    Dictionary(Box<Values>),
    Rows(Box<RowConverter>, TextDictionary),
}

impl Values {
    /// `None` for a type whose values can't be restored from their texts.
    pub(super) fn of(data_type: &DataType) -> Option<Self> {
        Some(match TextForm::of(data_type) {
            TextForm::Null => Values::Null,
            TextForm::Text => Values::Text(TextDictionary::default()),
            TextForm::Boolean => Values::Boolean(ValueDictionary::default()),
            TextForm::Fixed(fixed) if fixed.width() > 8 => Values::Wide(fixed, ValueDictionary::default()),
            TextForm::Fixed(fixed) => Values::Narrow(fixed, ValueDictionary::default()),
            TextForm::Dictionary(_) => {
                let DataType::Dictionary(_, values) = data_type else { return None };
                Values::Dictionary(Box::new(Values::of(values)?))
            }
            TextForm::RowEncoding => {
                let converter = RowConverter::new(vec![SortField::new(data_type.clone())]).ok()?;
                // Some types, such as dictionaries within lists, are restored as another type.
                let back = converter.convert_rows(&converter.empty_rows(0, 0)).ok()?;
                if back.first()?.data_type() != data_type {
                    return None;
                }
                Values::Rows(Box::new(converter), TextDictionary::default())
            }
        })
    }

    pub(super) fn add(&mut self, array: &ArrayRef, ids: &mut Vec<u32>) -> Result<(), ArrowError> {
        match self {
            Values::Null => ids.extend(std::iter::repeat_n(NULL, array.len())),
            Values::Text(dictionary) => {
                let mut add = |cell: Option<&str>| ids.push(cell.map_or(NULL, |text| dictionary.id(text)));
                match array.data_type() {
                    DataType::LargeUtf8 => array.as_string::<i64>().iter().for_each(&mut add),
                    DataType::Utf8View => array.as_string_view().iter().for_each(&mut add),
                    _ => array.as_string::<i32>().iter().for_each(&mut add),
                }
            }
            Values::Boolean(dictionary) => {
                ids.extend(array.as_boolean().iter().map(|cell| cell.map_or(NULL, |value| dictionary.id(value))));
            }
            Values::Narrow(fixed, dictionary) => match fixed.width() {
                1 => add_raw::<u8, u64>(array, dictionary, ids),
                2 => add_raw::<u16, u64>(array, dictionary, ids),
                4 => add_raw::<u32, u64>(array, dictionary, ids),
                _ => add_raw::<u64, u64>(array, dictionary, ids),
            },
            Values::Wide(_, dictionary) => add_raw::<i128, i128>(array, dictionary, ids),
            Values::Dictionary(values) => add_numbered(array, values, ids)?,
            Values::Rows(converter, dictionary) => {
                let rows = converter.convert_columns(std::slice::from_ref(array))?;
                let nulls = array.logical_nulls();
                let mut digits = String::new();
                for (i, row) in rows.iter().enumerate() {
                    if nulls.as_ref().is_some_and(|nulls| nulls.is_null(i)) {
                        ids.push(NULL);
                        continue;
                    }
                    digits.clear();
                    push_hex(row.as_ref(), &mut digits);
                    ids.push(dictionary.id(&digits));
                }
            }
        }
        Ok(())
    }

    /// How many distinct values there are.
    pub(super) fn len(&self) -> usize {
        match self {
            Values::Null => 0,
            Values::Text(dictionary) | Values::Rows(_, dictionary) => dictionary.texts().len(),
            Values::Boolean(dictionary) => dictionary.values().len(),
            Values::Narrow(_, dictionary) => dictionary.values().len(),
            Values::Wide(_, dictionary) => dictionary.values().len(),
            Values::Dictionary(values) => values.len(),
        }
    }

    /// The texts of the values from this id on.
    pub(super) fn texts_from(&self, first: usize) -> Texts {
        match self {
            Values::Null => Texts::new(),
            Values::Text(dictionary) | Values::Rows(_, dictionary) => {
                (first as u32..dictionary.texts().len() as u32).map(|id| dictionary.get(id)).collect()
            }
            Values::Boolean(dictionary) => dictionary.values()[first..].iter().map(bool::to_string).collect(),
            Values::Narrow(fixed, dictionary) => {
                dictionary.values()[first..].iter().map(|&bits| fixed.text(i128::from(bits))).collect()
            }
            Values::Wide(fixed, dictionary) => {
                dictionary.values()[first..].iter().map(|&bits| fixed.text(bits)).collect()
            }
            Values::Dictionary(values) => values.texts_from(first),
        }
    }

    fn into_texts(self) -> Texts {
        match self {
            Values::Null => Texts::new(),
            Values::Text(dictionary) | Values::Rows(_, dictionary) => dictionary.into_texts(),
            Values::Boolean(dictionary) => dictionary.into_values().iter().map(bool::to_string).collect(),
            Values::Narrow(fixed, dictionary) => {
                dictionary.into_values().iter().map(|&bits| fixed.text(i128::from(bits))).collect()
            }
            Values::Wide(fixed, dictionary) => dictionary.into_values().iter().map(|&bits| fixed.text(bits)).collect(),
            Values::Dictionary(values) => values.into_texts(),
        }
    }
}

/// The distinct values of an array as texts, and for each cell the id of its text or [`NULL`]; `None` for a type whose
/// values can't be restored from their texts.
pub(super) fn distinct_texts(array: &ArrayRef) -> Option<(Texts, Vec<u32>)> {
    let mut values = Values::of(array.data_type())?;
    let mut ids = Vec::with_capacity(array.len());
    values.add(array, &mut ids).ok()?;
    Some((values.into_texts(), ids))
}

/// Numbers the values of an array of fixed width by their bits.
fn add_raw<T: ArrowNativeType, U: From<T> + Copy + Eq + std::hash::Hash>(
    array: &ArrayRef,
    dictionary: &mut ValueDictionary<U>,
    ids: &mut Vec<u32>,
) {
    let data = array.to_data();
    let bits = ScalarBuffer::<T>::new(data.buffers()[0].clone(), data.offset(), data.len());
    match data.nulls() {
        None => ids.extend(bits.iter().map(|&bits| dictionary.id(bits.into()))),
        Some(nulls) => ids.extend(
            bits.iter().zip(nulls).map(|(&bits, is_valid)| if is_valid { dictionary.id(bits.into()) } else { NULL }),
        ),
    }
}

/// Numbers the values that occur in a dictionary array, in the order in which they occur.
fn add_numbered(array: &ArrayRef, values: &mut Values, ids: &mut Vec<u32>) -> Result<(), ArrowError> {
    const UNKNOWN: u64 = u64::MAX;
    let dictionary = array.as_any_dictionary();
    let nulls = dictionary.keys().logical_nulls();
    if dictionary.values().is_empty() {
        ids.extend(std::iter::repeat_n(NULL, array.len()));
        return Ok(());
    }
    let mut known = vec![UNKNOWN; dictionary.values().len()];
    let mut one = Vec::with_capacity(1);
    for (i, key) in dictionary.normalized_keys().into_iter().enumerate() {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(i)) {
            ids.push(NULL);
            continue;
        }
        if known[key] == UNKNOWN {
            one.clear();
            values.add(&dictionary.values().slice(key, 1), &mut one)?;
            known[key] = u64::from(one[0]);
        }
        ids.push(known[key] as u32);
    }
    Ok(())
}

/// Appends bytes as hexadecimal digits.
pub(crate) fn push_hex(bytes: &[u8], digits: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        digits.push(DIGITS[usize::from(byte >> 4)] as char);
        digits.push(DIGITS[usize::from(byte & 15)] as char);
    }
}
