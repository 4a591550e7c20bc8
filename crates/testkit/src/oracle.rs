//! What a release satisfies and loses, by definition and by brute force.
//!
//! # Independence
//! Nothing here uses `kohort-verify`, and nothing uses `kohort-core` except its results. Everything is computed from
//! texts, plainly and slowly: cells are strings, classes are maps of strings, distances follow their definition.

mod coverage;
mod labels;
mod loss;
mod optimum;
pub mod orbits;
mod requirement;
mod spread;
pub mod swaps;
pub mod views;

use std::collections::{BTreeMap, BTreeSet};

use kohort_model::{Cells, Release, Role, Table};

pub use coverage::covers;
pub use labels::Labels;
pub use loss::{NaiveLoss, cell_loss, naive_loss};
pub use optimum::{can_be_one_class, can_be_released, least_lm, least_spread};
pub use requirement::{Verdict, judge, stands};
pub(crate) use requirement::{distance_of, holders_of};
pub use spread::{NaiveSpread, naive_spread};

/// Rows of the private table that look the same in a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// The cells that all of them show, one per quasi column, `None` for null.
    pub cells: Vec<Option<String>>,
    /// Their numbers in the private table, ascending.
    pub rows: Vec<u32>,
}

/// A release as its file shows it: rows of cells, `None` for null.
pub fn released_cells(table: &Table, release: &Release) -> Vec<Vec<Option<String>>> {
    let released = &release.tables[0];
    (0..released.rows.len())
        .map(|row| {
            let cell = |column: &kohort_model::ReleasedColumn| match &column.cells {
                Cells::Recoded { labels, ids } => {
                    (ids[row] != kohort_model::NULL).then(|| labels.get(ids[row]).to_owned())
                }
                Cells::Copied => table.columns[column.source].cell(released.rows[row] as usize).map(str::to_owned),
                Cells::Surrogate { ids } => (ids[row] != kohort_model::NULL).then(|| ids[row].to_string()),
            };
            released.columns.iter().map(cell).collect()
        })
        .collect()
}

/// The classes of a release, by their cells.
pub fn classes(table: &Table, release: &Release) -> Vec<Class> {
    let released = &release.tables[0];
    let quasi: Vec<usize> = (0..released.columns.len())
        .filter(|&position| table.columns[released.columns[position].source].role == Role::Quasi)
        .collect();
    let mut by_cells: BTreeMap<Vec<Option<String>>, Vec<u32>> = BTreeMap::new();
    for (cells, &source) in released_cells(table, release).iter().zip(&released.rows) {
        let own = quasi.iter().map(|&position| cells[position].clone()).collect();
        by_cells.entry(own).or_default().push(source);
    }
    by_cells
        .into_iter()
        .map(|(cells, mut rows)| {
            rows.sort_unstable();
            Class { cells, rows }
        })
        .collect()
}

/// The persons to whom rows belong, by name, or by row number where each row is one person.
pub fn persons(table: &Table, rows: &[u32]) -> BTreeSet<String> {
    rows.iter().map(|&row| person(table, row)).collect()
}

/// The person to whom a row belongs.
pub fn person(table: &Table, row: u32) -> String {
    match table.person_column() {
        Some(column) => column.cell(row as usize).expect("every row has a person").to_owned(),
        None => row.to_string(),
    }
}
