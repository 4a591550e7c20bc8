//! [`ShownRows`]: released rows in classes, and the groups of private rows that may be behind them.

use std::collections::BTreeMap;

use kohort_core::register::estimate::{Estimator, ShownCell, ShownClass, ShownGroup};
use kohort_model::register::SENSITIVE_GROUP;
use kohort_model::{Column, Manifest, NULL, Table};

use super::scale::Scale;

/// The classes of a release, each with the position of its group.
pub(super) struct ShownRows<'a> {
    pub(super) classes: Vec<ClassOfRows>,
    pub(super) groups: Vec<Group>,
    /// The table that holds sensitive values.
    pub(super) values: &'a Table,
    pub(super) n_private: f64,
}

/// Rows that are equal in their quasi columns and group.
pub(super) struct ClassOfRows {
    pub(super) cells: Vec<ShownCell>,
    /// For each cell, whether its label stands for everything.
    pub(super) is_everything: Vec<bool>,
    pub(super) n_rows: u64,
    pub(super) group: usize,
}

/// Private rows that are spread over the released rows of some classes.
#[derive(Default)]
pub(super) struct Group {
    /// The number of private rows.
    pub(super) n_rows: u64,
    /// Rows of the table of values; empty if nothing tells which values the group has.
    pub(super) rows: Vec<u32>,
}

impl<'a> ShownRows<'a> {
    /// The rows of `table`, the table of persons of a release. In a class without a register, released rows are private rows.
    /// With a register, the rows of sensitive values for each group tell how many private rows it has. If the register's
    /// release has no sensitive values, nothing tells how many private rows a class has, so all classes are one group.
    pub(super) fn new(
        manifest: &Manifest,
        tables: &'a [Table],
        table: &'a Table,
        quasi: &[&Column],
        scales: &[Scale],
    ) -> ShownRows<'a> {
        let named = table.column(SENSITIVE_GROUP);
        let mut by_cells: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
        for row in 0..table.n_rows {
            let cells = quasi.iter().copied().chain(named).map(|column| column.ids[row]).collect();
            by_cells.entry(cells).or_default().push(row as u32);
        }
        let values =
            named.and_then(|_| tables.get(1)).and_then(|values| Some((values, values.column(SENSITIVE_GROUP)?)));
        let mut groups: Vec<Group> = Vec::new();
        let mut position_of: BTreeMap<&str, usize> = BTreeMap::new();
        if let Some((values, names)) = values {
            for row in 0..values.n_rows {
                let position = *position_of.entry(names.cell(row).unwrap_or_default()).or_insert(groups.len());
                if position == groups.len() {
                    groups.push(Group::default());
                }
                groups[position].n_rows += 1;
                groups[position].rows.push(row as u32);
            }
        } else if manifest.register.is_some() {
            groups.push(Group { n_rows: manifest.persons.n_out, rows: Vec::new() });
        }
        let mut classes = Vec::with_capacity(by_cells.len());
        for (cells, rows) in by_cells {
            let group = match (values, manifest.register.is_some()) {
                (Some(_), _) => {
                    named.and_then(|names| names.cell(rows[0] as usize)).and_then(|name| position_of.get(name))
                }
                (None, true) => Some(&0),
                (None, false) => Some(&groups.len()),
            };
            let Some(&group) = group else { continue };
            let cells = scales.iter().zip(&cells);
            let shown = cells.map(|(scale, &id)| match id {
                NULL => (ShownCell::Null, false),
                id => (scale.cells[id as usize], scale.is_everything[id as usize]),
            });
            let (cells, is_everything) = shown.unzip();
            classes.push(ClassOfRows { cells, is_everything, n_rows: rows.len() as u64, group });
            if group == groups.len() {
                groups.push(Group { n_rows: rows.len() as u64, rows });
            }
        }
        let n_private = groups.iter().map(|group| group.n_rows).sum::<u64>() as f64;
        ShownRows { classes, groups, values: values.map_or(table, |(values, _)| values), n_private }
    }

    /// What a reader expects of the rows, and of the values of a column if one is given.
    pub(super) fn estimator(&self, column: Option<&Column>) -> Estimator {
        let of_class =
            |class: &ClassOfRows| ShownClass { cells: class.cells.clone(), n_rows: class.n_rows, group: class.group };
        let of_group = |group: &Group| ShownGroup {
            n_rows: group.n_rows,
            values: column.map_or_else(Vec::new, |column| group.counts(column)),
        };
        Estimator::new(self.classes.iter().map(of_class).collect(), self.groups.iter().map(of_group).collect())
    }
}

impl Group {
    /// How many rows have each text of a column; those without a value come last.
    pub(super) fn counts(&self, column: &Column) -> Vec<u64> {
        let mut counts = vec![0; column.texts.len() + 1];
        self.rows.iter().for_each(|&row| counts[(column.ids[row as usize] as usize).min(column.texts.len())] += 1);
        counts
    }
}
