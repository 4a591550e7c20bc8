//! [`RowWriter`]: a table file of any format that takes rows piece by piece.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::ArrowError;
use flate2::write::GzEncoder;
use parquet::arrow::ArrowWriter;

use super::arrow::{ArrowTable, parquet_properties};
use super::cells::{FileColumn, Kind};
use super::csv::{write_header, write_records};
use super::error::WriteError;
use crate::arrow_text::TextForm;
use crate::read::Original;
use crate::{Compression, Format};

/// A place that takes the bytes of a file.
pub(crate) type Target = Box<dyn Write + Send>;

type Buffered = BufWriter<Target>;

/// A table file that is being written.
pub(crate) struct RowWriter {
    state: State,
    format: Format,
    /// Named in errors.
    path: PathBuf,
}

/// A file of which nothing is written yet, or the writer of its format.
enum State {
    New(Buffered),
    Csv(CsvTarget),
    Parquet(Box<ArrowWriter<Buffered>>),
    IpcFile(FileWriter<Buffered>),
    IpcStream(StreamWriter<Buffered>),
    /// A piece could not be written.
    Failed,
}

enum CsvTarget {
    Plain(Buffered),
    Gzip(GzEncoder<Buffered>),
    Zstd(zstd::stream::write::Encoder<'static, Buffered>),
}

impl RowWriter {
    /// A file of which nothing is written yet.
    pub(crate) fn new(format: Format, target: Target, path: &Path) -> Self {
        RowWriter { state: State::New(BufWriter::with_capacity(1 << 18, target)), format, path: path.to_owned() }
    }

    /// Appends rows. All pieces must have the same columns.
    pub(crate) fn write(
        &mut self,
        columns: &[FileColumn<'_>],
        n_rows: usize,
        original: Original<'_>,
    ) -> Result<(), WriteError> {
        let path = self.path.clone();
        let fail_io = |error: io::Error| WriteError::Io { path: path.clone(), source: error };
        let fail = |error: ArrowError| WriteError::Encode { path: path.clone(), message: error.to_string() };
        let (separator, null_words) = (original.origin.separator, &original.origin.null_words);
        if let Format::Csv(compression) = self.format {
            let mut target = match std::mem::replace(&mut self.state, State::Failed) {
                State::New(target) => {
                    check_text_forms(columns, original)?;
                    let mut target = CsvTarget::new(target, compression).map_err(fail_io)?;
                    write_header(columns, separator, null_words, &mut target).map_err(fail_io)?;
                    target
                }
                State::Csv(target) => target,
                _ => unreachable!("a file of one format has one writer"),
            };
            write_records(columns, n_rows, separator, null_words, &mut target).map_err(fail_io)?;
            self.state = State::Csv(target);
            return Ok(());
        }
        let table = ArrowTable::new(columns, n_rows, original)?;
        if let State::New(_) = self.state {
            let State::New(target) = std::mem::replace(&mut self.state, State::Failed) else { unreachable!() };
            let schema = table.schema();
            self.state = match self.format {
                Format::Parquet => {
                    let writer = ArrowWriter::try_new(target, Arc::clone(schema), Some(parquet_properties()));
                    State::Parquet(Box::new(writer.map_err(|error| fail(error.into()))?))
                }
                Format::ArrowStream => State::IpcStream(StreamWriter::try_new(target, schema).map_err(fail)?),
                Format::ArrowFile | Format::Csv(_) => {
                    State::IpcFile(FileWriter::try_new(target, schema).map_err(fail)?)
                }
            };
        }
        for batch in table.batches() {
            let batch = batch.map_err(fail)?;
            let written = match &mut self.state {
                State::Parquet(writer) => writer.write(&batch).map_err(ArrowError::from),
                State::IpcFile(writer) => writer.write(&batch),
                State::IpcStream(writer) => writer.write(&batch),
                State::New(_) | State::Csv(_) | State::Failed => unreachable!("the writer was made above"),
            };
            written.map_err(fail)?;
        }
        Ok(())
    }

    /// Writes the end of the file.
    pub(crate) fn finish(self) -> Result<(), WriteError> {
        let RowWriter { state, path, .. } = self;
        let done = match state {
            State::Csv(CsvTarget::Plain(mut target)) => target.flush(),
            State::Csv(CsvTarget::Gzip(encoder)) => encoder.finish().and_then(|mut target| target.flush()),
            State::Csv(CsvTarget::Zstd(encoder)) => encoder.finish().and_then(|mut target| target.flush()),
            State::Parquet(mut writer) => {
                writer.finish().map_err(io::Error::other).and_then(|_| writer.inner_mut().flush())
            }
            State::IpcFile(mut writer) => {
                writer.finish().and_then(|()| Ok(writer.get_mut().flush()?)).map_err(io::Error::other)
            }
            State::IpcStream(mut writer) => {
                writer.finish().and_then(|()| Ok(writer.get_mut().flush()?)).map_err(io::Error::other)
            }
            State::New(_) | State::Failed => Err(io::Error::other("no rows were written")),
        };
        done.map_err(WriteError::io(&path))
    }
}

impl CsvTarget {
    fn new(target: Buffered, compression: Compression) -> io::Result<Self> {
        Ok(match compression {
            Compression::None => CsvTarget::Plain(target),
            Compression::Gzip => CsvTarget::Gzip(GzEncoder::new(target, flate2::Compression::default())),
            Compression::Zstd => CsvTarget::Zstd(zstd::stream::write::Encoder::new(target, 0)?),
        })
    }

    fn inner(&mut self) -> &mut dyn Write {
        match self {
            CsvTarget::Plain(target) => target,
            CsvTarget::Gzip(target) => target,
            CsvTarget::Zstd(target) => target,
        }
    }
}

impl Write for CsvTarget {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner().flush()
    }
}

/// Refuses columns whose cells would be hexadecimal digits without meaning to a reader.
fn check_text_forms(columns: &[FileColumn<'_>], original: Original<'_>) -> Result<(), WriteError> {
    for column in columns.iter().filter(|column| column.kind == Kind::Copied) {
        if let Some(field) = &original.origin.fields[column.source]
            && !TextForm::of(field.data_type()).is_readable()
        {
            let data_type = field.data_type().to_string();
            return Err(WriteError::NoTextForm { column: column.name.to_string(), data_type });
        }
    }
    Ok(())
}
