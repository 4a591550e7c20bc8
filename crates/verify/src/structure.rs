//! Whether a table is well-formed: all columns have the same length, and every cell has a text.

use kohort_model::{NULL, Table};
use rayon::prelude::*;

use crate::Violation;

/// The number of rows that are wrong, and the first of them, numbered from 1. `None` if no row is wrong.
pub(crate) fn place(n_rows: usize, is_wrong: impl Fn(usize) -> bool + Sync) -> Option<(u64, u64)> {
    let never = (0, u64::MAX);
    let found = (0..n_rows)
        .into_par_iter()
        .with_min_len(1 << 14)
        .filter(|&row| is_wrong(row))
        .fold(|| never, |(n, first), row| (n + 1, first.min(row as u64 + 1)))
        .reduce(|| never, |a, b| (a.0 + b.0, a.1.min(b.1)));
    (found.0 > 0).then_some(found)
}

/// Wrong rows, counted one after another in ascending order.
#[derive(Default)]
pub(crate) struct Places {
    n: u64,
    first_row: u64,
}

impl Places {
    /// Adds a row, numbered from 1.
    pub(crate) fn add(&mut self, row: usize) {
        self.first_row = if self.n == 0 { row as u64 } else { self.first_row };
        self.n += 1;
    }

    /// The number of wrong rows, and the first of them. `None` if no row is wrong.
    pub(crate) fn found(self) -> Option<(u64, u64)> {
        (self.n > 0).then_some((self.n, self.first_row))
    }
}

/// The violation of a table that must have rows and has none.
pub(crate) fn no_rows(table: &Table) -> Option<Violation> {
    (table.n_rows == 0).then(|| Violation::NoRows { table: table.name.clone() })
}

/// The violation if a released table has another name than expected.
pub(crate) fn other_name(released: &str, expected: &str) -> Option<Violation> {
    let violation = || Violation::TableName { table: expected.to_owned(), released: released.to_owned() };
    (released != expected).then(violation)
}

/// Ids that point beyond a dictionary of `n_texts`.
pub(crate) fn cells_without_text(column: &str, ids: &[u32], n_texts: usize) -> Option<Violation> {
    let (n, first_row) = place(ids.len(), |row| ids[row] != NULL && ids[row] as usize >= n_texts)?;
    Some(Violation::CellWithoutText { column: column.to_owned(), n, first_row })
}

/// A column that has more or fewer cells than its table has rows.
pub(crate) fn column_length(column: &str, n_cells: usize, n_rows: usize) -> Option<Violation> {
    let violation =
        || Violation::ColumnLength { column: column.to_owned(), n_cells: n_cells as u64, n_rows: n_rows as u64 };
    (n_cells != n_rows).then(violation)
}

/// The faults that make it impossible to count a table.
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
