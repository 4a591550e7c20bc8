//! [`make_hierarchy`]: a hierarchy by rule from the values of a column.

use std::path::Path;

use kohort_io::{CheckOptions, infer_type, read_for_check};
use kohort_model::hierarchy::Rule;
use kohort_model::{Hierarchy, Notation, Progress, ValueType};

use crate::check::positions;
use crate::error::Error;

/// Makes a hierarchy by rule from the values of a column of a file. Without `value_type` the type is inferred from the
/// values.
///
/// # Errors
/// [`Error::Input`] if the file can't be read, has no such column, or its values don't fit the rule.
pub fn make_hierarchy(
    file: impl AsRef<Path>,
    column: &str,
    rule: &Rule,
    value_type: Option<ValueType>,
    progress: &dyn Progress,
) -> Result<Hierarchy, Error> {
    let file = file.as_ref();
    let table = read_for_check(file, &CheckOptions::default(), progress)?;
    let position = positions(file, &table, &[column.to_owned()])?[0];
    let values = &table.columns[position].texts;
    let notation = Notation::default();
    let value_type = value_type.unwrap_or_else(|| infer_type(values, &notation));
    rule.make(values, value_type, &notation)
        .map_err(|problem| Error::input(format!("{}: column '{column}': {problem}", file.display()), problem.hint()))
}
