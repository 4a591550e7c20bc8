//! One released table to a file of any format, and back for verification.

use std::io::{BufWriter, Write};
use std::path::Path;

use kohort_model::spec::CsvSpec;
use kohort_model::{Cells, ReleasedTable, Silent, Table};

use super::arrow::{ArrowTable, write_ipc_file, write_ipc_stream, write_parquet};
use super::csv::write_csv;
use super::problem::WriteProblem;
use crate::arrow_text::TextForm;
use crate::{CheckOptions, Compression, Format, LoadedTable, ReadProblems, read_for_check};

/// Whatever takes the bytes of a file.
pub(super) type Target = Box<dyn Write + Send>;

/// Writes a released table. `path` is named in errors only.
pub(super) fn write_table(
    released: &ReleasedTable,
    original: &LoadedTable,
    format: Format,
    target: Target,
    path: &Path,
) -> Result<(), WriteProblem> {
    let mut target = BufWriter::with_capacity(1 << 18, target);
    match format {
        Format::Csv(compression) => {
            check_text_forms(released, original)?;
            let separator = separator_of(original);
            let written = match compression {
                Compression::None => write_csv(released, original, separator, &mut target),
                Compression::Gzip => {
                    let mut encoder = flate2::write::GzEncoder::new(&mut target, flate2::Compression::default());
                    write_csv(released, original, separator, &mut encoder).and_then(|()| encoder.finish().map(drop))
                }
                Compression::Zstd => zstd::stream::write::Encoder::new(&mut target, 0).and_then(|mut encoder| {
                    write_csv(released, original, separator, &mut encoder)?;
                    encoder.finish().map(drop)
                }),
            };
            written.map_err(WriteProblem::io(path))?;
        }
        Format::Parquet | Format::ArrowFile | Format::ArrowStream => {
            let table = ArrowTable::new(released, original)?;
            let written = match format {
                Format::Parquet => write_parquet(&table, &mut target),
                Format::ArrowStream => write_ipc_stream(&table, &mut target),
                Format::ArrowFile | Format::Csv(_) => write_ipc_file(&table, &mut target),
            };
            written.map_err(|error| WriteProblem::Encode { path: path.to_owned(), message: error.to_string() })?;
        }
    }
    target.flush().map_err(WriteProblem::io(path))
}

/// Reads what [`write_table`] wrote.
pub(super) fn read_back(path: &Path, format: Format, original: &LoadedTable) -> Result<Table, ReadProblems> {
    let separator = Some(char::from(separator_of(original)));
    let csv = CsvSpec { separator, ..CsvSpec::default() };
    read_for_check(path, &CheckOptions { format: Some(format), csv }, &Silent)
}

fn separator_of(original: &LoadedTable) -> u8 {
    original.origin.separator
}

/// Refuses columns whose cells would be digits without meaning.
fn check_text_forms(released: &ReleasedTable, original: &LoadedTable) -> Result<(), WriteProblem> {
    for column in &released.columns {
        if let (Cells::Copied, Some(field)) = (&column.cells, &original.origin.fields[column.source])
            && !TextForm::of(field.data_type()).is_readable()
        {
            let data_type = field.data_type().to_string();
            return Err(WriteProblem::NoTextForm { column: column.name.clone(), data_type });
        }
    }
    Ok(())
}
