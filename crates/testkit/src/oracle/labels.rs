//! What the cells of a generalized column tell somebody who does not know the column, by brute force: a label is the
//! set of values that it covers.

use std::collections::{BTreeMap, BTreeSet};

use kohort_model::{Column, Release, Requirement, Table};

use super::{covers, person, released_cells};

/// A released cell.
type Cell = Option<String>;

/// The cells of one quasi column of a release.
pub struct Labels<'t> {
    column: &'t Column,
    /// The cell and the person of each released row.
    cells: Vec<(Cell, String)>,
    /// All values that a cell could stand for.
    values: BTreeSet<Cell>,
}

impl<'t> Labels<'t> {
    /// The cells of a column of the private table.
    ///
    /// # Panics
    /// If the release does not have the column.
    pub fn new(table: &'t Table, release: &Release, name: &str) -> Self {
        let column = table.column(name).expect("the table has the column");
        let released = &release.tables[0];
        let place = released.columns.iter().position(|column| column.name == name).expect("it is released");
        let rows = released_cells(table, release).into_iter().zip(&released.rows);
        let cells = rows.map(|(mut cells, &row)| (cells.swap_remove(place), person(table, row))).collect();
        let mut values: BTreeSet<Cell> = (0..table.n_rows).map(|row| column.cell(row).map(str::to_owned)).collect();
        if let Some(hierarchy) = &column.hierarchy {
            let leaves = (0..hierarchy.n_nodes() as u32).filter(|&node| hierarchy.is_leaf(node));
            values.extend(leaves.map(|leaf| Some(hierarchy.label(leaf).to_owned())));
        }
        Labels { column, cells, values }
    }

    /// The values that a label covers.
    fn covered(&self, label: &Cell) -> BTreeSet<&Cell> {
        let is_covered = |value: &&Cell| covers(self.column, label.as_deref(), value.as_deref());
        self.values.iter().filter(is_covered).collect()
    }

    /// Whether a label tells anything.
    fn tells(&self, label: &Cell) -> bool {
        let Some(text) = label else { return true };
        let shows_null = self.cells.iter().any(|(cell, _)| cell.is_none());
        let covered = self.covered(label);
        let holds = |value: &Cell| covered.contains(value);
        match &self.column.hierarchy {
            Some(hierarchy) => {
                let is_leaf = hierarchy.leaf(text).is_some();
                let all = self.values.iter().all(|value| value.is_none() && !shows_null || holds(value));
                is_leaf || !all
            }
            None if text == "*" => false,
            None => {
                let is_value = self.values.contains(label);
                let others = self.cells.iter().filter(|(cell, _)| cell.as_deref() != Some("*"));
                let all = others.map(|(cell, _)| self.covered(cell)).all(|other| other.is_subset(&covered));
                is_value || !all
            }
        }
    }

    /// How many persons show each label that tells something, and how many show any label.
    fn counts(&self, rows: &[usize]) -> (BTreeMap<&Cell, usize>, usize) {
        let pairs: BTreeSet<&(Cell, String)> = rows.iter().map(|&row| &self.cells[row]).collect();
        let mut counts = BTreeMap::new();
        for (cell, _) in pairs.iter().filter(|(cell, _)| self.tells(cell)) {
            *counts.entry(cell).or_default() += 1;
        }
        (counts, pairs.len())
    }

    /// The largest number of labels of which no two share a value; `None` if no cell of these rows tells anything.
    pub fn disjoint(&self, rows: &[usize]) -> Option<usize> {
        let labels: Vec<BTreeSet<&Cell>> = self.counts(rows).0.into_keys().map(|label| self.covered(label)).collect();
        (!labels.is_empty()).then(|| most_disjoint(&labels, &BTreeSet::new()))
    }

    /// The distance of the labels of these released rows to all of them.
    pub fn distance(&self, rows: &[usize]) -> f64 {
        let all: Vec<usize> = (0..self.cells.len()).collect();
        let ((of_release, _), (here, n_here)) = (self.counts(&all), self.counts(rows));
        let (told, told_here) = (of_release.values().sum::<usize>() as f64, here.values().sum::<usize>() as f64);
        let share = |label: &Cell| of_release.get(label).map_or(0.0, |&count| count as f64 / told);
        let too_much = |(label, &count): (&&Cell, &usize)| {
            (count as f64 / n_here as f64 - told_here / n_here as f64 * share(label)).max(0.0)
        };
        here.iter().map(too_much).sum()
    }

    /// The persons of these released rows if all their cells show one label that tells something.
    pub fn certain(&self, rows: &[usize]) -> BTreeSet<&str> {
        let labels: BTreeSet<&Cell> = rows.iter().map(|&row| &self.cells[row].0).collect();
        let is_certain = labels.len() == 1 && labels.iter().all(|label| self.tells(label));
        rows.iter().filter(|_| is_certain).map(|&row| self.cells[row].1.as_str()).collect()
    }

    /// Whether the class of these released rows satisfies a requirement on the column.
    ///
    /// # Panics
    /// If the requirement is not defined for generalized cells.
    pub fn satisfies(&self, requirement: &Requirement, rows: &[usize]) -> bool {
        match requirement {
            Requirement::DistinctL { l, .. } => self.disjoint(rows).is_none_or(|n| n >= *l as usize),
            Requirement::TCloseness { t, .. } => self.distance(rows) <= t + 1e-9,
            Requirement::K(_)
            | Requirement::PersonK { .. }
            | Requirement::EntropyL { .. }
            | Requirement::RecursiveCL { .. }
            | Requirement::Alpha { .. }
            | Requirement::Beta { .. }
            | Requirement::EnhancedBeta { .. } => panic!("{requirement:?} is not defined for generalized cells"),
        }
    }
}

/// Tries every choice.
fn most_disjoint(labels: &[BTreeSet<&Cell>], taken: &BTreeSet<&Cell>) -> usize {
    let Some((first, rest)) = labels.split_first() else { return 0 };
    let without = most_disjoint(rest, taken);
    if !first.is_disjoint(taken) {
        return without;
    }
    let both: BTreeSet<&Cell> = first.union(taken).copied().collect();
    without.max(1 + most_disjoint(rest, &both))
}
