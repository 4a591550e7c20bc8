//! Whether a table is one: columns of equal length, cells that have a text.

use kohort_model::{NULL, Table};
use rayon::prelude::*;

use crate::Violation;

/// How often something is so, and the first row, numbered from 1, in which it is. `None` where it is never so.
pub(crate) fn place(n_rows: usize, is_so: impl Fn(usize) -> bool + Sync) -> Option<(u64, u64)> {
    let never = (0, u64::MAX);
    let found = (0..n_rows)
        .into_par_iter()
        .with_min_len(1 << 14)
        .filter(|&row| is_so(row))
        .fold(|| never, |(n, first), row| (n + 1, first.min(row as u64 + 1)))
        .reduce(|| never, |a, b| (a.0 + b.0, a.1.min(b.1)));
    (found.0 > 0).then_some(found)
}

/// Ids that point behind a dictionary of `n_texts`.
pub(crate) fn cells_without_text(column: &str, ids: &[u32], n_texts: usize) -> Option<Violation> {
    let (n, first_row) = place(ids.len(), |row| ids[row] != NULL && ids[row] as usize >= n_texts)?;
    Some(Violation::CellWithoutText { column: column.to_owned(), n, first_row })
}

/// A column of another length than its table.
pub(crate) fn column_length(column: &str, n_cells: usize, n_rows: usize) -> Option<Violation> {
    let violation =
        || Violation::ColumnLength { column: column.to_owned(), n_cells: n_cells as u64, n_rows: n_rows as u64 };
    (n_cells != n_rows).then(violation)
}

/// What keeps a table from being counted at all.
pub(crate) fn check_table(table: &Table) -> Vec<Violation> {
    if table.n_rows >= u32::MAX as usize {
        return vec![Violation::TooManyRows { table: table.name.clone(), n_rows: table.n_rows as u64 }];
    }
    let mut violations = Vec::new();
    for column in &table.columns {
        violations.extend(column_length(&column.name, column.ids.len(), table.n_rows));
        violations.extend(cells_without_text(&column.name, &column.ids, column.texts.len()));
    }
    violations
}
