//! [`TotalChange`]: by how much rows that are left out change the total and the mean of a sensitive number.
//!
//! Only the publisher is told. Readers can add up what is released, so from the change they could compute the sum of all
//! values that are left out, and that is one person's value if a single row is.

use kohort_io::Private;
use kohort_model::{Column, NULL, ReleasedTable, Role};

/// A column of sensitive numbers in a child table that leaves out rows.
#[derive(Clone, Debug, PartialEq)]
pub struct TotalChange {
    /// The table.
    pub table: String,
    /// The column.
    pub column: String,
    /// The released total over the private one, less 1: -0.04 if the release lacks 4 % of it.
    pub total: f64,
    /// The same for means.
    pub mean: f64,
}

/// The changes in all child tables that leave out rows. A column in which a value is no number is not listed, nor is one
/// whose private total or mean is 0, because nothing can be compared with it.
pub(crate) fn changes(private: &Private, released: &[ReleasedTable]) -> Vec<TotalChange> {
    let mut changes = Vec::new();
    let of_spec = private.spec.tables.iter().zip(private.tables()).zip(released);
    for ((table, original), released) in of_spec {
        if table.parent.is_none() || original.n_rows == released.rows.len() {
            continue;
        }
        let shown = |source: usize| released.columns.iter().any(|column| column.source == source);
        let sensitive = original.with_role(Role::Sensitive).into_iter().filter(|&source| shown(source));
        changes.extend(sensitive.filter_map(|source| {
            let column = &original.columns[source];
            let numbers = numbers(column)?;
            let (before, n_before) = sum(&numbers, column, 0..original.n_rows as u32);
            let (after, n_after) = sum(&numbers, column, released.rows.iter().copied());
            let change = |before: f64, after: f64| Some(after / before - 1.0).filter(|change| change.is_finite());
            Some(TotalChange {
                table: table.name.clone(),
                column: column.name.clone(),
                total: change(before, after)?,
                mean: change(before / n_before, after / n_after)?,
            })
        }));
    }
    changes
}

/// The number that each text of a column stands for; `None` if one of them stands for none.
fn numbers(column: &Column) -> Option<Vec<f64>> {
    let number = |text: &str| text.trim().parse().ok().filter(|number: &f64| number.is_finite());
    column.texts.iter().map(number).collect()
}

/// The sum of a column's cells in some rows, and how many have a value.
fn sum(numbers: &[f64], column: &Column, rows: impl Iterator<Item = u32>) -> (f64, f64) {
    let ids = rows.map(|row| column.ids[row as usize]).filter(|&id| id != NULL);
    ids.fold((0.0, 0.0), |(sum, n), id| (sum + numbers[id as usize], n + 1.0))
}
