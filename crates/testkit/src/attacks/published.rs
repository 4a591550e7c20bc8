//! [`Published`]: a release as its readers have it, and [`Seen`]: the release to a reader who knows some columns.

use std::collections::{BTreeMap, BTreeSet};

use kohort_model::{Column, Release, Role, Table};

use crate::oracle::{covers, released_cells};
use crate::scenario::Scenario;

/// Released rows as texts.
pub(super) struct Published<'a> {
    /// The private table. Attackers use the meaning of its columns, and the cells that they know from a list of their
    /// own.
    table: &'a Table,
    columns: Vec<String>,
    rows: Vec<Vec<Option<String>>>,
    /// The private row from which each row comes. It serves to count what an attacker got, never to attack.
    pub(super) sources: Vec<u32>,
}

/// Rows that look the same to somebody.
pub(super) struct Look {
    cells: Vec<Option<String>>,
    /// Positions in the release, ascending.
    pub(super) rows: Vec<usize>,
}

/// A release as seen by somebody who knows some columns about everybody.
pub(super) struct Seen<'a> {
    known: Vec<&'a Column>,
    pub(super) looks: Vec<Look>,
}

impl<'a> Published<'a> {
    /// The verified release of a job.
    pub(super) fn of(scenario: &'a Scenario) -> Published<'a> {
        Published::released(&scenario.loaded.table, scenario.verified().get())
    }

    /// The first table of a release.
    pub(super) fn released(table: &'a Table, release: &Release) -> Published<'a> {
        let released = &release.tables[0];
        Published {
            table,
            columns: released.columns.iter().map(|column| column.name.clone()).collect(),
            rows: released_cells(table, release),
            sources: released.rows.clone(),
        }
    }

    /// The table as it is, without the columns that name people.
    pub(super) fn without_names(table: &'a Table) -> Published<'a> {
        let shown = |column: &&Column| matches!(column.role, Role::Quasi | Role::Sensitive | Role::Plain);
        let columns: Vec<&Column> = table.columns.iter().filter(shown).collect();
        let cells = |row: usize| columns.iter().map(|column| column.cell(row).map(str::to_owned)).collect();
        Published {
            table,
            columns: columns.iter().map(|column| column.name.clone()).collect(),
            rows: (0..table.n_rows).map(cells).collect(),
            sources: (0..table.n_rows as u32).collect(),
        }
    }

    /// Deletes rows from the finished release.
    pub(super) fn delete(&mut self, goes: impl Fn(usize, &Published<'_>) -> bool) {
        let stays: Vec<bool> = (0..self.rows.len()).map(|row| !goes(row, self)).collect();
        let mut stay = stays.iter();
        self.rows.retain(|_| *stay.next().expect("there is one per row"));
        let mut stay = stays.iter();
        self.sources.retain(|_| *stay.next().expect("there is one per row"));
    }

    /// How many rows there are.
    pub(super) fn n_rows(&self) -> usize {
        self.rows.len()
    }

    /// The cell of a row, null as an empty text.
    pub(super) fn cell(&self, row: usize, column: &str) -> &str {
        let position = self.columns.iter().position(|name| name == column).expect("the column is released");
        self.rows[row][position].as_deref().unwrap_or_default()
    }

    /// The different cells of some rows.
    pub(super) fn values(&self, rows: &[usize], column: &str) -> BTreeSet<&str> {
        rows.iter().map(|&row| self.cell(row, column)).collect()
    }

    /// The release as seen by somebody who knows these columns about everybody.
    pub(super) fn seen_with(&self, known: &[&str]) -> Seen<'a> {
        let mut by_cells: BTreeMap<Vec<Option<String>>, Vec<usize>> = BTreeMap::new();
        let position = |name: &&str| self.columns.iter().position(|column| column == name);
        let positions: Vec<usize> =
            known.iter().map(|name| position(name).expect("known columns are released")).collect();
        for (row, cells) in self.rows.iter().enumerate() {
            let look = positions.iter().map(|&position| cells[position].clone()).collect();
            by_cells.entry(look).or_default().push(row);
        }
        let column = |name: &&str| self.table.column(name).expect("what is released was private");
        Seen {
            known: known.iter().map(column).collect(),
            looks: by_cells.into_iter().map(|(cells, rows)| Look { cells, rows }).collect(),
        }
    }
}

impl Seen<'_> {
    /// Whether the rows of a look could belong to the person with the values of this private row.
    pub(super) fn fits(&self, look: &Look, person: usize) -> bool {
        let cells = self.known.iter().zip(&look.cells);
        cells.into_iter().all(|(column, cell)| covers(column, cell.as_deref(), column.cell(person)))
    }

    /// The released rows that could belong to a person, ascending.
    pub(super) fn rows_of(&self, person: usize) -> Vec<usize> {
        let looks = self.looks.iter().filter(|look| self.fits(look, person));
        let mut rows: Vec<usize> = looks.flat_map(|look| look.rows.iter().copied()).collect();
        rows.sort_unstable();
        rows
    }
}
