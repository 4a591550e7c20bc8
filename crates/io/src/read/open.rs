//! [`OpenTable`]: a table file of any format whose columns are known and whose rows are not read yet.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use kohort_model::spec::CsvSpec;
use kohort_model::{Column, Notation, Progress, Role, Table, Texts, ValueType};

use super::arrow::ArrowFile;
use super::error::{ReadError, ReadErrors};
use super::lazy::OpenColumns;
use super::roles::check_names;
use super::{Batches, CsvFile, Keep, Kept, RawColumn};
use crate::{Compression, InputFormat};

/// How a file that has no spec is read.
#[derive(Clone, Debug, Default)]
pub struct CheckOptions {
    /// The format of the file; without it, the name of the file tells.
    pub format: Option<InputFormat>,
    /// How CSV is read.
    pub csv: CsvSpec,
}

/// Reads any table. All columns are plain text. `-` is standard input.
///
/// # Errors
/// Every problem that can be found.
pub fn read_for_check(path: &Path, options: &CheckOptions, progress: &dyn Progress) -> Result<Table, ReadErrors> {
    let fail = |problems| ReadErrors { file: path.to_owned(), problems };
    let open = OpenTable::open(path, options.format, &options.csv, progress).map_err(|problem| fail(vec![problem]))?;
    read_all(&table_name(path), open).map_err(fail)
}

/// Reads a table in memory. All columns are plain text.
///
/// # Errors
/// Every problem that can be found.
pub fn read_batches_for_check(name: &str, batches: &Batches, progress: &dyn Progress) -> Result<Table, ReadErrors> {
    read_all(name, batches.open(progress)).map_err(|problems| ReadErrors { file: name.into(), problems })
}

/// Reads a released table. It may have no rows, because all rows of a child table may be left out.
pub(crate) fn read_released(path: &Path, options: &CheckOptions, progress: &dyn Progress) -> Result<Table, ReadErrors> {
    let fail = |problems| ReadErrors { file: path.to_owned(), problems };
    let open = OpenTable::open(path, options.format, &options.csv, progress).map_err(|problem| fail(vec![problem]))?;
    released_in(&table_name(path), open).map_err(fail)
}

/// Reads a released table that is open already.
pub(crate) fn released_in(name: &str, open: OpenTable<'_>) -> Result<Table, Vec<ReadError>> {
    let names = open.names().to_vec();
    match read_all(name, open) {
        Err(problems) if matches!(problems.as_slice(), [ReadError::NoRows]) => {
            let nothing = |_: &String| RawColumn { texts: Texts::new(), ids: Vec::new(), field: None };
            let columns = names.iter().map(nothing).collect();
            Ok(plain_table(name.to_owned(), names, columns))
        }
        read => read,
    }
}

/// All columns of an open table, as they are.
fn read_all(name: &str, open: OpenTable<'_>) -> Result<Table, Vec<ReadError>> {
    let names = open.names().to_vec();
    let bad_names = check_names(&names);
    if !bad_names.is_empty() {
        return Err(bad_names);
    }
    let wanted: Vec<usize> = (0..names.len()).collect();
    Ok(plain_table(name.to_owned(), names, open.read(&wanted)?))
}

/// A table of plain text columns.
pub(crate) fn plain_table(name: String, names: Vec<String>, columns: Vec<RawColumn>) -> Table {
    let n_rows = columns.first().map_or(0, |column| column.ids.len());
    let columns = names.into_iter().zip(columns).map(|(name, raw)| Column {
        name,
        role: Role::Plain,
        value_type: ValueType::Text,
        notation: Notation::default(),
        hierarchy: None,
        texts: raw.texts,
        ids: raw.ids,
    });
    Table { name, columns: columns.collect(), n_rows, person: None }
}

pub(super) fn table_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').find(|part| !part.is_empty()).unwrap_or("table").to_owned()
}

/// A table file whose columns are known.
pub(crate) enum OpenTable<'a> {
    Csv(CsvFile<'a>),
    Arrow(ArrowFile<'a>),
    Lazy(OpenColumns<'a>),
}

impl<'a> OpenTable<'a> {
    /// Opens a file, `-` being standard input.
    pub(crate) fn open(
        path: &Path,
        format: Option<InputFormat>,
        csv: &CsvSpec,
        progress: &'a dyn Progress,
    ) -> Result<Self, ReadError> {
        let is_stdin = path == Path::new("-");
        let default = is_stdin.then_some(InputFormat::Csv(Compression::None));
        let format = format.or(default).or_else(|| InputFormat::of_path(path)).ok_or(ReadError::UnknownFormat)?;
        match format {
            InputFormat::Csv(compression) => {
                let bytes = counted_bytes(path, progress)?;
                Ok(OpenTable::Csv(CsvFile::open(decompressed(bytes, compression)?, csv)?))
            }
            InputFormat::ArrowStream if is_stdin => {
                Ok(OpenTable::Arrow(ArrowFile::open_stream(counted_bytes(path, progress)?)?))
            }
            InputFormat::Parquet | InputFormat::ArrowFile | InputFormat::ArrowStream if is_stdin => {
                Err(ReadError::NotFromStdin)
            }
            InputFormat::Parquet => Ok(OpenTable::Arrow(ArrowFile::open_parquet(open_file(path)?, progress)?)),
            InputFormat::ArrowFile | InputFormat::ArrowStream => {
                Ok(OpenTable::Arrow(ArrowFile::open_ipc(open_file(path)?, progress)?))
            }
        }
    }

    /// The names of the table's columns.
    pub(crate) fn names(&self) -> &[String] {
        match self {
            OpenTable::Csv(file) => file.names(),
            OpenTable::Arrow(file) => file.names(),
            OpenTable::Lazy(columns) => columns.names(),
        }
    }

    /// Reads the columns at these positions, which must be in ascending order.
    pub(crate) fn read(self, wanted: &[usize]) -> Result<Vec<RawColumn>, Vec<ReadError>> {
        let wanted: Vec<(usize, Keep<'_>)> = wanted.iter().map(|&position| (position, Keep::Texts)).collect();
        let texts = |kept| match kept {
            Kept::Texts(column) => Some(column),
            Kept::Persons(_) => None,
        };
        Ok(self.read_kept(&wanted)?.into_iter().filter_map(texts).collect())
    }

    /// Reads the columns at these positions, which must be in ascending order, and keeps of each what is asked for.
    pub(crate) fn read_kept(self, wanted: &[(usize, Keep<'_>)]) -> Result<Vec<Kept>, Vec<ReadError>> {
        match self {
            OpenTable::Csv(file) => file.read(wanted),
            OpenTable::Arrow(file) => file.read(wanted).map_err(|problem| vec![problem]),
            OpenTable::Lazy(columns) => columns.read(wanted),
        }
    }
}

fn open_file(path: &Path) -> Result<File, ReadError> {
    let file = File::open(path).map_err(|source| ReadError::Io { source })?;
    let metadata = file.metadata().map_err(|source| ReadError::Io { source })?;
    if metadata.is_dir() {
        return Err(ReadError::Io { source: io::Error::from(io::ErrorKind::IsADirectory) });
    }
    Ok(file)
}

/// The bytes of a file. They are counted for the progress bar when they are read.
fn counted_bytes<'a>(path: &Path, progress: &'a dyn Progress) -> Result<Box<dyn Read + 'a>, ReadError> {
    if path == Path::new("-") {
        progress.begin("reading", 0);
        return Ok(Box::new(Counted { reader: io::stdin().lock(), progress }));
    }
    let file = open_file(path)?;
    progress.begin("reading", file.metadata().map_or(0, |metadata| metadata.len()));
    Ok(Box::new(Counted { reader: file, progress }))
}

fn decompressed<'a>(bytes: Box<dyn Read + 'a>, compression: Compression) -> Result<Box<dyn Read + 'a>, ReadError> {
    Ok(match compression {
        Compression::None => bytes,
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(io::BufReader::new(bytes))),
        Compression::Zstd => {
            Box::new(zstd::stream::read::Decoder::new(bytes).map_err(|source| ReadError::Io { source })?)
        }
    })
}

struct Counted<'a, R> {
    reader: R,
    progress: &'a dyn Progress,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if self.progress.is_cancelled() {
            return Err(io::Error::other("the work was cancelled"));
        }
        let n_read = self.reader.read(target)?;
        self.progress.advance(n_read as u64);
        Ok(n_read)
    }
}
