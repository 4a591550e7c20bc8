//! Writes one released table to a file of any format, and reads it back for the verifier.

use std::collections::HashMap;
use std::path::Path;

use arrow_schema::{DataType, Field};
use kohort_model::spec::CsvSpec;
use kohort_model::{Cells, Column, ReleasedTable, Silent, Table, Texts};
use kohort_verify::Violation;

use super::cells::file_columns;
use super::error::WriteError;
use super::stream::{RowWriter, Target};
use crate::arrow_text::TextForm;
use crate::bounds::{bound_names, bound_type, compose, label, split};
use crate::read::{Original, read_released};
use crate::{CheckOptions, Format};

/// Writes a released table. `path` is only named in errors.
pub(super) fn write_table(
    released: &ReleasedTable,
    original: Original<'_>,
    format: Format,
    target: Target,
    path: &Path,
) -> Result<(), WriteError> {
    let mut writer = RowWriter::new(format, target, path);
    writer.write(&file_columns(released, original)?, released.rows.len(), original)?;
    writer.finish()
}

/// Reads a file that [`write_table`] wrote. Bounds become labels again.
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
pub(crate) enum Form {
    /// Cells are texts.
    Texts,
    /// Cells have Arrow's types.
    Arrow,
}

/// Turns bounds that were read back into the labels of the release.
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
        // Columns with other names are left as they are, so that the verifier finds the difference.
        if !original.shows_bounds(column) || !names.eq(&bound_names(&column.name)) {
            continue;
        }
        let spelled = SpelledLabels::new(labels, source, form, original.origin.fields[column.source].as_ref());
        compose(written, position, &column.name, |low, high| spelled.label(low, high)).map_err(|first_row| {
            WriteError::Changed(Violation::WrittenCells { column: column.name.clone(), n: 1, first_row }.into())
        })?;
    }
    Ok(())
}

/// The labels of a column of bounds, by the bounds as a file spells them. Its type may spell a bound in another way than the
/// release does: `1e-5` for `1e-05`.
pub(crate) struct SpelledLabels<'a> {
    by_bounds: HashMap<(String, String), &'a str>,
    separator: char,
}

impl<'a> SpelledLabels<'a> {
    /// `source` is the private column, and `field` what it was read from.
    pub(crate) fn new(labels: &'a Texts, source: &Column, form: Form, field: Option<&Field>) -> Self {
        let data_type = match form {
            Form::Texts => DataType::Utf8,
            Form::Arrow => bound_type(source, field),
        };
        let spelled = |label: &'a str| {
            let (low, high) = split(label, source)??;
            Some(((spelling(low, &data_type), spelling(high, &data_type)), label))
        };
        let separator = source.notation.range_separator(source.value_type);
        SpelledLabels { by_bounds: labels.iter().filter_map(spelled).collect(), separator }
    }

    /// The label of two bounds.
    pub(crate) fn label(&self, low: &str, high: &str) -> String {
        match self.by_bounds.get(&(low.to_owned(), high.to_owned())) {
            Some(&label) => label.to_owned(),
            None => label(low, high, self.separator),
        }
    }
}

/// The spelling that a type has for the value of a text.
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
