//! One released table to a file of any format, and back for verification.

use std::collections::HashMap;
use std::io::{BufWriter, Write};
use std::path::Path;

use arrow_schema::DataType;
use kohort_model::spec::CsvSpec;
use kohort_model::{Cells, ReleasedTable, Silent, Table};
use kohort_verify::Violation;

use super::arrow::{ArrowTable, write_ipc_file, write_ipc_stream, write_parquet};
use super::cells::{FileColumn, Kind, file_columns};
use super::csv::write_csv;
use super::error::WriteError;
use crate::arrow_text::TextForm;
use crate::bounds::{bound_names, bound_type, compose, label, split};
use crate::read::{Original, read_released};
use crate::{CheckOptions, Compression, Format};

/// Whatever takes the bytes of a file.
pub(super) type Target = Box<dyn Write + Send>;

/// Writes a released table. `path` is named in errors only.
pub(super) fn write_table(
    released: &ReleasedTable,
    original: Original<'_>,
    format: Format,
    target: Target,
    path: &Path,
) -> Result<(), WriteError> {
    let columns = file_columns(released, original)?;
    let n_rows = released.rows.len();
    let mut target = BufWriter::with_capacity(1 << 18, target);
    match format {
        Format::Csv(compression) => {
            check_text_forms(&columns, original)?;
            let write = |target: &mut dyn Write| {
                write_csv(&columns, n_rows, separator_of(original), &original.origin.null_words, target)
            };
            let written = match compression {
                Compression::None => write(&mut target),
                Compression::Gzip => {
                    let mut encoder = flate2::write::GzEncoder::new(&mut target, flate2::Compression::default());
                    write(&mut encoder).and_then(|()| encoder.finish().map(drop))
                }
                Compression::Zstd => zstd::stream::write::Encoder::new(&mut target, 0).and_then(|mut encoder| {
                    write(&mut encoder)?;
                    encoder.finish().map(drop)
                }),
            };
            written.map_err(WriteError::io(path))?;
        }
        Format::Parquet | Format::ArrowFile | Format::ArrowStream => {
            let table = ArrowTable::new(&columns, n_rows, original)?;
            let written = match format {
                Format::Parquet => write_parquet(&table, &mut target),
                Format::ArrowStream => write_ipc_stream(&table, &mut target),
                Format::ArrowFile | Format::Csv(_) => write_ipc_file(&table, &mut target),
            };
            written.map_err(|error| WriteError::Encode { path: path.to_owned(), message: error.to_string() })?;
        }
    }
    target.flush().map_err(WriteError::io(path))
}

/// Reads what [`write_table`] wrote, bounds composed to labels again.
pub(super) fn read_back(
    path: &Path,
    format: Format,
    released: &ReleasedTable,
    original: Original<'_>,
) -> Result<Table, WriteError> {
    let separator = Some(char::from(separator_of(original)));
    let csv = CsvSpec { separator, ..CsvSpec::default() };
    let mut written = read_released(path, &CheckOptions { format: Some(format.into()), csv }, &Silent)
        .map_err(WriteError::ReadBack)?;
    written.name.clone_from(&released.name);
    let form = match format {
        Format::Csv(_) => Form::Texts,
        Format::Parquet | Format::ArrowFile | Format::ArrowStream => Form::Arrow,
    };
    labels_again(&mut written, form, released, original)?;
    Ok(written)
}

/// Whether cells have types of their own.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// They are texts.
    Texts,
    /// They have Arrow's types.
    Arrow,
}

/// Composes bounds that were read back to the labels of the release.
pub(super) fn labels_again(
    written: &mut Table,
    form: Form,
    released: &ReleasedTable,
    original: Original<'_>,
) -> Result<(), WriteError> {
    for (position, column) in released.columns.iter().enumerate() {
        let source = &original.table.columns[column.source];
        let Cells::Recoded { labels, .. } = &column.cells else { continue };
        let names = written.columns.iter().skip(position).take(2).map(|column| &column.name);
        // Other columns are left as they are, for the verifier to find.
        if !original.shows_bounds(column) || !names.eq(&bound_names(&column.name)) {
            continue;
        }
        let data_type = match form {
            Form::Texts => DataType::Utf8,
            Form::Arrow => bound_type(source, original.origin.fields[column.source].as_ref()),
        };
        // The file's type may have a spelling of its own for a bound of the release: `1e-5` for `1e-05`.
        let spelled: HashMap<(String, String), &str> = labels
            .iter()
            .filter_map(|label| {
                let (low, high) = split(label, source)??;
                Some(((spelling(low, &data_type), spelling(high, &data_type)), label))
            })
            .collect();
        let separator = source.notation.range_separator(source.value_type);
        let label_of = |low: &str, high: &str| match spelled.get(&(low.to_owned(), high.to_owned())) {
            Some(&label) => label.to_owned(),
            None => label(low, high, separator),
        };
        compose(written, position, &column.name, label_of).map_err(|first_row| {
            WriteError::Changed(Violation::WrittenCells { column: column.name.clone(), n: 1, first_row }.into())
        })?;
    }
    Ok(())
}

/// How a type spells the value of a text.
fn spelling(text: &str, data_type: &DataType) -> String {
    match TextForm::of(data_type) {
        TextForm::Fixed(fixed) => fixed.bits(text).map(|bits| fixed.text(bits)),
        _ => None,
    }
    .unwrap_or_else(|| text.to_owned())
}

fn separator_of(original: Original<'_>) -> u8 {
    original.origin.separator
}

/// Refuses columns whose cells would be digits without meaning.
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
