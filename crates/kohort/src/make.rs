//! [`make_hierarchy`]: a hierarchy by rule from the values of a column.

use std::path::PathBuf;

use kohort_io::{CheckOptions, infer_type, read_for_check};
use kohort_model::hierarchy::Rule;
use kohort_model::spec::CsvSpec;
use kohort_model::{Column, Hierarchy, Notation, Progress, ValueType};

use crate::check::positions;
use crate::error::Error;

/// A column of a file, and how the file is read if it is CSV.
#[derive(Clone, Debug, Default)]
pub struct ColumnOfFile {
    /// CSV (also `.gz`, `.zst`), Parquet or Arrow; `-` is standard input.
    pub file: PathBuf,
    /// The name of the column.
    pub column: String,
    /// Encoding, separator, words for null, decimal sign, and format of dates.
    pub csv: CsvSpec,
}

impl ColumnOfFile {
    pub(crate) fn read(&self, progress: &dyn Progress) -> Result<Column, Error> {
        let options = CheckOptions { csv: self.csv.clone(), ..CheckOptions::default() };
        let mut table = read_for_check(&self.file, &options, progress)?;
        let position = positions(&self.file, &table, std::slice::from_ref(&self.column))?[0];
        Ok(table.columns.swap_remove(position))
    }
}

/// How a CSV file spells numbers and dates.
pub(crate) fn notation_of(csv: &CsvSpec) -> Notation {
    Notation { decimal_comma: csv.decimal == Some(','), date_format: csv.date_format.clone(), ..Notation::default() }
}

/// Makes a hierarchy by rule from the values of a column of a file. Without `value_type` the type is inferred from the
/// values.
///
/// # Errors
/// [`Error::Input`] if the file can't be read, has no such column, or its values don't fit the rule.
pub fn make_hierarchy(
    of: &ColumnOfFile,
    rule: &Rule,
    value_type: Option<ValueType>,
    progress: &dyn Progress,
) -> Result<Hierarchy, Error> {
    let values = of.read(progress)?.texts;
    let notation = notation_of(&of.csv);
    let value_type = value_type.unwrap_or_else(|| infer_type(&values, &notation));
    rule.make(&values, value_type, &notation).map_err(|problem| {
        let (file, column) = (of.file.display(), &of.column);
        Error::input(format!("{file}: column '{column}': {problem}"), problem.hint())
    })
}
