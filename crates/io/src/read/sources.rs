//! [`Sources`]: the files that a spec names, in a folder or in memory.
//!
//! A program that has its tables in memory names them in a spec like files, and hands in an [`InMemory`] with a table for
//! each of these names. The code behind this module treats both in the same way.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::{Field, SchemaRef};
use kohort_model::spec::CsvSpec;
use kohort_model::{NULL, Progress, Silent};
use sha2::{Digest, Sha256};

use super::OpenTable;
use super::arrow::ArrowFile;
use super::error::ReadError;
use super::lazy::LazyColumns;
use super::{Keep, Kept, RawColumn};
use crate::digest::{hexadecimal, sha256_of_file};
use crate::{Compression, Format, InputFormat};

/// The rows of a table in memory.
#[derive(Clone, Debug)]
pub struct Batches {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Batches {
    /// Rows of these columns.
    ///
    /// # Errors
    /// The position of the first batch that has other columns.
    pub fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Result<Self, usize> {
        match batches.iter().position(|batch| batch.schema_ref().fields() != schema.fields()) {
            Some(other) => Err(other),
            None => Ok(Batches { schema, batches }),
        }
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The rows.
    pub fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    pub(crate) fn open<'a>(&self, progress: &'a dyn Progress) -> OpenTable<'a> {
        OpenTable::Arrow(ArrowFile::in_memory(self.schema.clone(), self.batches.clone(), progress))
    }

    /// A digest of names, types and cells. It does not depend on how rows are divided into batches.
    fn sha256(&self) -> Result<String, ReadError> {
        let every: Vec<usize> = (0..self.schema.fields().len()).collect();
        let columns = match self.open(&Silent).read(&every) {
            Ok(columns) => columns,
            Err(problems) if matches!(problems.as_slice(), [ReadError::NoRows]) => Vec::new(),
            Err(mut problems) => return Err(problems.swap_remove(0)),
        };
        Ok(digest(self.schema.fields().iter().map(AsRef::as_ref), &columns))
    }
}

fn digest<'f>(fields: impl Iterator<Item = &'f Field>, columns: &[RawColumn]) -> String {
    let mut hasher = Sha256::new();
    let mut text = String::new();
    for field in fields {
        text.clear();
        writeln!(text, "{:?} {}", field.name(), field.data_type()).expect("writing to a string can't fail");
        hasher.update(&text);
    }
    for column in columns {
        for &id in &column.ids {
            let cell = if id == NULL { None } else { Some(column.texts.get(id)) };
            // The lengths keep neighbouring cells apart, and a null has a length that no text has.
            hasher.update(cell.map_or(u64::MAX, |cell| cell.len() as u64).to_le_bytes());
            hasher.update(cell.unwrap_or_default());
        }
    }
    hexadecimal(&hasher.finalize())
}

/// A table in memory that replaces a file.
#[derive(Clone, Debug)]
enum TableInMemory {
    Batches(Batches),
    Lazy(LazyColumns),
}

impl TableInMemory {
    fn open<'a>(&self, progress: &'a dyn Progress) -> OpenTable<'a> {
        match self {
            TableInMemory::Batches(batches) => batches.open(progress),
            TableInMemory::Lazy(columns) => OpenTable::Lazy(columns.open(progress)),
        }
    }

    /// A digest of names, types and cells, the same for both kinds.
    fn sha256(&self) -> Result<String, ReadError> {
        let columns = match self {
            TableInMemory::Batches(batches) => return batches.sha256(),
            TableInMemory::Lazy(columns) => columns.open(&Silent),
        };
        let every: Vec<(usize, Keep<'_>)> = (0..columns.names().len()).map(|place| (place, Keep::Texts)).collect();
        let kept = columns.read_any(&every).map_err(|mut problems| problems.swap_remove(0))?;
        let texts = |kept| match kept {
            Kept::Texts(column) => Some(column),
            Kept::Persons(_) => None,
        };
        let columns: Vec<RawColumn> = kept.into_iter().filter_map(texts).collect();
        Ok(digest(columns.iter().filter_map(|column| column.field.as_ref()), &columns))
    }
}

/// Tables and hierarchies in memory that replace files of a spec, by the names that the spec gives to the files.
#[derive(Clone, Debug, Default)]
pub struct InMemory {
    tables: BTreeMap<PathBuf, TableInMemory>,
    texts: BTreeMap<PathBuf, String>,
}

impl InMemory {
    /// Replaces a file by a table. An earlier table of that name is dropped.
    pub fn add_table(&mut self, file: impl Into<PathBuf>, batches: Batches) {
        self.tables.insert(file.into(), TableInMemory::Batches(batches));
    }

    /// Replaces a file by columns that are handed over one at a time. An earlier table of that name is dropped.
    pub fn add_columns(&mut self, file: impl Into<PathBuf>, columns: LazyColumns) {
        self.tables.insert(file.into(), TableInMemory::Lazy(columns));
    }

    /// Replaces the file of a hierarchy by a text.
    pub fn add_text(&mut self, file: impl Into<PathBuf>, text: String) {
        self.texts.insert(file.into(), text);
    }
}

/// The files that a spec names.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    folder: &'a Path,
    in_memory: Option<&'a InMemory>,
}

impl<'a> Sources<'a> {
    /// Files below a folder, except those that something in memory replaces.
    pub fn new(folder: &'a Path, in_memory: &'a InMemory) -> Self {
        Sources { folder, in_memory: Some(in_memory) }
    }

    /// The path of a file, as messages name it.
    pub(crate) fn place(&self, file: &Path) -> PathBuf {
        let is_elsewhere = file == Path::new("-") || self.table(file).is_some() || self.in_memory_text(file).is_some();
        if is_elsewhere { file.to_owned() } else { self.folder.join(file) }
    }

    fn table(&self, file: &Path) -> Option<&'a TableInMemory> {
        self.in_memory?.tables.get(file)
    }

    fn in_memory_text(&self, file: &Path) -> Option<&'a String> {
        self.in_memory?.texts.get(file)
    }

    /// Opens a table, and tells in which format its release is written unless the caller asks for another.
    pub(crate) fn open<'p>(
        &self,
        file: &Path,
        csv: &CsvSpec,
        progress: &'p dyn Progress,
    ) -> Result<(OpenTable<'p>, Format), ReadError> {
        if let Some(table) = self.table(file) {
            return Ok((table.open(progress), Format::Parquet));
        }
        let path = self.place(file);
        let open = OpenTable::open(&path, None, csv, progress)?;
        let format = InputFormat::of_path(&path).map(InputFormat::release_format);
        Ok((open, format.unwrap_or(Format::Csv(Compression::None))))
    }

    /// The digest of a file, or of the table in memory that replaces it.
    pub(crate) fn sha256(&self, file: &Path) -> Result<String, ReadError> {
        match self.table(file) {
            Some(table) => table.sha256(),
            None => sha256_of_file(&self.place(file)).map_err(|source| ReadError::Io { source }),
        }
    }

    /// The text of a hierarchy's file.
    pub(crate) fn text(&self, file: &Path) -> io::Result<String> {
        match self.in_memory_text(file) {
            Some(text) => Ok(text.clone()),
            None => std::fs::read_to_string(self.place(file)),
        }
    }
}

impl<'a> From<&'a Path> for Sources<'a> {
    fn from(folder: &'a Path) -> Self {
        Sources { folder, in_memory: None }
    }
}

impl<'a> From<&'a PathBuf> for Sources<'a> {
    fn from(folder: &'a PathBuf) -> Self {
        Sources::from(folder.as_path())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    fn batch(numbers: &[Option<i64>], words: &[&str]) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from(numbers.to_vec()));
        let words: ArrayRef = Arc::new(StringArray::from(words.to_vec()));
        RecordBatch::try_from_iter_with_nullable([("n", numbers, true), ("w", words, true)]).unwrap()
    }

    fn digest_of(batches: Vec<RecordBatch>) -> String {
        Batches::new(batches[0].schema(), batches).unwrap().sha256().unwrap()
    }

    #[test]
    fn a_digest_depends_on_cells_and_not_on_batches() {
        let whole = digest_of(vec![batch(&[Some(1), None, Some(2)], &["ab", "c", ""])]);
        let parts = digest_of(vec![batch(&[Some(1)], &["ab"]), batch(&[None, Some(2)], &["c", ""])]);
        assert_eq!(whole, parts);
        for other in [
            batch(&[Some(1), None, Some(2)], &["a", "bc", ""]),
            batch(&[Some(1), Some(2), None], &["ab", "c", ""]),
            batch(&[Some(1), None], &["ab", "c"]),
        ] {
            assert_ne!(digest_of(vec![other]), whole);
        }
    }

    #[test]
    fn columns_that_are_handed_over_one_at_a_time_have_the_digest_of_their_table() {
        let whole = batch(&[Some(1), None, Some(2)], &["ab", "c", ""]);
        for rows in [whole.clone(), whole.slice(0, 0)] {
            let expected = digest_of(vec![rows.clone()]);
            let columns = LazyColumns::new(["n".to_owned(), "w".to_owned()], move |position| {
                let column = rows.project(&[position]).unwrap();
                Ok(Batches::new(column.schema(), vec![column]).unwrap())
            });
            assert_eq!(TableInMemory::Lazy(columns).sha256().unwrap(), expected);
        }
    }

    #[test]
    fn batches_of_other_columns_are_refused() {
        let one = batch(&[Some(1)], &["a"]);
        let other = one.project(&[0]).unwrap();
        assert_eq!(Batches::new(one.schema(), vec![one, other]).unwrap_err(), 1);
    }
}
