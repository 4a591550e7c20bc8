//! Columns named on the command line, found in a table.

use std::path::Path;

use kohort_io::{FileColumns, ReadProblem, ReadProblems};
use kohort_model::Table;

use crate::failure::Failure;

/// Positions of the columns with these names, or all that are not there.
pub(crate) fn positions(file: &Path, table: &Table, names: &[String]) -> Result<Vec<usize>, Failure> {
    let columns: Vec<String> = names.iter().filter(|name| table.position(name).is_none()).cloned().collect();
    if !columns.is_empty() {
        let of_file: Vec<String> = table.columns.iter().map(|column| column.name.clone()).collect();
        let known = FileColumns::of_file(&of_file, names.iter().map(String::as_str));
        let problems = vec![ReadProblem::UnknownColumn { columns, known }];
        return Err(ReadProblems { file: file.to_owned(), problems }.into());
    }
    Ok(names.iter().filter_map(|name| table.position(name)).collect())
}
