//! Columns named on the command line, found in a table.

use std::path::Path;

use kohort_model::Table;

use crate::failure::Failure;

/// Positions of the columns with these names, or all that are not there.
pub(crate) fn positions(file: &Path, table: &Table, names: &[String]) -> Result<Vec<usize>, Failure> {
    let missing: Vec<String> =
        names.iter().filter(|name| table.position(name).is_none()).map(|name| format!("'{name}'")).collect();
    if !missing.is_empty() {
        let known: Vec<String> = table.columns.iter().map(|column| format!("'{}'", column.name)).collect();
        let message = format!("{}: no such column: {}", file.display(), missing.join(", "));
        return Err(Failure::input(message, format!("the file has {}", known.join(", "))));
    }
    Ok(names.iter().filter_map(|name| table.position(name)).collect())
}
