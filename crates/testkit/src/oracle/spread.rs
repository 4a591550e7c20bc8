//! Rank and entropy of a release or of a partition, by counting the rows that each label covers.

use kohort_model::{Column, Release, Role, Table};

use super::{cell_loss, classes, covers};

/// Rank and non-uniform entropy, each the mean over quasi columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NaiveSpread {
    /// The mean share of rows that cells cover; a value loses nothing, a suppressed cell everything.
    pub rank: f64,
    /// The sum over rows of the logarithm of the rows that the cell covers over those with the same value, divided by the most
    /// that this sum can be.
    pub entropy: f64,
}

/// What a release loses.
pub fn naive_spread(table: &Table, release: &Release) -> NaiveSpread {
    let classes = classes(table, release);
    let shown = |position: usize| {
        let shown = classes.iter().map(|class| (class.rows.clone(), class.cells[position].clone()));
        shown.collect::<Vec<_>>()
    };
    spread(table, shown)
}

/// What quasi columns lose, given the rows and the label of each class in each of them; rows in no class are left out.
pub(super) fn spread(table: &Table, shown: impl Fn(usize) -> Vec<(Vec<u32>, Option<String>)>) -> NaiveSpread {
    let quasi: Vec<&Column> = table.columns.iter().filter(|column| column.role == Role::Quasi).collect();
    let mut sum = NaiveSpread { rank: 0.0, entropy: 0.0 };
    for (position, column) in quasi.iter().enumerate() {
        let n_rows = table.n_rows as f64;
        let n_covered = |label: Option<&str>| {
            (0..table.n_rows).filter(|&row| covers(column, label, column.cell(row))).count() as f64
        };
        let most_of = |row: u32| (n_rows / n_covered(column.cell(row as usize))).ln();
        let most: f64 = (0..table.n_rows as u32).map(most_of).sum();
        let (mut rank, mut entropy) = (n_rows, most);
        for (rows, label) in shown(position) {
            let (label, n_of_class) = (label.as_deref(), rows.len() as f64);
            let covered = n_covered(label);
            let share = if cell_loss(column, label).0 == 0.0 { 0.0 } else { covered / n_rows };
            // A row that is shown no longer loses everything.
            rank -= n_of_class * (1.0 - share);
            entropy -= n_of_class * (n_rows / covered).ln();
        }
        sum.rank += rank / n_rows / quasi.len() as f64;
        sum.entropy += if most > 0.0 { entropy / most / quasi.len() as f64 } else { 0.0 };
    }
    sum
}
