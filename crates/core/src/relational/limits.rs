//! [`Limits`]: which share of each child table's rows may be left out.
//!
//! A row that finds no partner loses its cells and nothing more. If persons have many cells and few of them have rows in a
//! child table, classes that lose least can leave out most of that table. If the spec limits that, rows of a table that
//! leaves out too many are made worth more than their cells, step by step. The more such a row is worth, the nearer to each other are persons who
//! have equally many of them, and the fewer are left out.
//!
//! # Guarantee
//! worths only decide who forms a class; the loss that is reported never counts them
//! # Paper
//! not in `[NCN08]`, where a suppressed row costs its cells
//! # Cost
//! one more search for classes per step, at most [`STEPS`] of them

use kohort_model::{Schema, Table};

use super::forest::{Forest, Grove, Kind};
use super::representative::Representative;
use crate::AnonymizeError;

/// A row of a table that leaves out too many becomes worth this many times as much in each step.
const STEP: f64 = 2.0;

/// The number of steps after which rows are worth no more.
const STEPS: usize = 12;

/// Without this tolerance, rounding would refuse the 29th of 100 rows under a limit of 0.29.
const TOLERANCE: f64 = 1e-9;

/// Limits, and the number of rows that they refer to.
#[derive(Debug)]
pub(super) struct Limits {
    /// By kind.
    tables: Vec<Limit>,
}

#[derive(Debug)]
struct Limit {
    /// The position of the table in the schema.
    table: usize,
    /// The largest share of all rows of the table that may be left out, if the spec limits it.
    share: Option<f64>,
    /// All rows of the table.
    n_rows: u64,
    /// The rows that belong to persons who can be in a class.
    n_inside: u64,
    n_quasi: usize,
}

/// A table of which more rows must be left out than the spec allows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Exceeded {
    pub(super) table: usize,
    pub(super) n_left_out: u64,
    pub(super) n_rows: u64,
    pub(super) limit: f64,
}

impl Exceeded {
    pub(super) fn error(self, tables: &[Table]) -> AnonymizeError {
        let Exceeded { table, n_left_out, n_rows, limit } = self;
        AnonymizeError::RowsLeftOut { table: tables[table].name.clone(), n_left_out, n_rows, limit }
    }
}

impl Limits {
    /// The limits of the spec.
    pub(super) fn new(tables: &[Table], schema: &Schema, grove: &Grove<'_>, forest: &Forest) -> Limits {
        let limit = |(kind, of_kind): (usize, &Kind)| Limit {
            table: of_kind.table,
            share: of_kind.parent.and(schema.tables[of_kind.table].max_rows_left_out),
            n_rows: tables[of_kind.table].n_rows as u64,
            n_inside: forest.n_rows_of_all(kind),
            n_quasi: of_kind.n_quasi,
        };
        Limits { tables: grove.kinds.iter().enumerate().map(limit).collect() }
    }

    /// What rows are worth at first: their cells.
    pub(super) fn cells(&self) -> Vec<f64> {
        self.tables.iter().map(|limit| limit.n_quasi as f64).collect()
    }

    /// By how much the share of rows that some persons' classes leave out exceeds the limit, by kind. Limits are lowered by
    /// a share of themselves, the `room`.
    pub(super) fn excess(&self, forest: &Forest, persons: &[u32], classes: &[Representative], room: f64) -> Vec<f64> {
        let of_kind = |(kind, limit): (usize, &Limit)| {
            let Some(share) = limit.share_inside() else { return 0.0 };
            let n_rows = |&folded: &u32| u64::from(forest.n_rows(folded, kind)) * u64::from(forest.weight(folded));
            let n_in: u64 = persons.iter().map(n_rows).sum();
            let n_left_out = n_in - n_released(classes, kind);
            (n_left_out as f64 / n_in.max(1) as f64 - share * (1.0 - room)).max(0.0)
        };
        self.tables.iter().enumerate().map(of_kind).collect()
    }

    /// The first table that leaves out more rows than the spec allows, whatever the classes.
    pub(super) fn out_of_reach(&self) -> Option<Exceeded> {
        self.tables.iter().find_map(|limit| limit.exceeded(limit.n_inside))
    }

    /// The first table that leaves out more rows than the spec allows.
    pub(super) fn exceeded(&self, classes: &[Representative]) -> Option<Exceeded> {
        self.tables.iter().enumerate().find_map(|(kind, limit)| limit.exceeded(n_released(classes, kind)))
    }

    /// What rows are worth in the next step, given by how much limits are exceeded; `None` after the last step.
    pub(super) fn raised(&self, worths: &[f64], excess: &[f64]) -> Option<Vec<f64>> {
        let raise = |((&worth, &excess), limit): ((&f64, &f64), &Limit)| {
            let most = STEP.powi(STEPS as i32) * limit.n_quasi.max(1) as f64;
            if excess > 0.0 { (worth.max(1.0) * STEP).min(most) } else { worth }
        };
        let raised: Vec<f64> = worths.iter().zip(excess).zip(&self.tables).map(raise).collect();
        (raised != worths).then_some(raised)
    }
}

impl Limit {
    /// The largest share of the rows that classes may leave out, if there is a limit. Rows that belong to nobody, or to a
    /// person who is left out before classes are formed, count as well.
    fn share_inside(&self) -> Option<f64> {
        let n_outside = (self.n_rows - self.n_inside) as f64;
        Some((self.share? * self.n_rows as f64 - n_outside).max(0.0) / self.n_inside.max(1) as f64)
    }

    /// The limit and the number of rows left out, if these are more than the spec allows.
    fn exceeded(&self, n_released: u64) -> Option<Exceeded> {
        let limit = self.share?;
        let n_left_out = self.n_rows - n_released;
        let is_within = n_left_out as f64 <= limit * self.n_rows as f64 + TOLERANCE;
        (!is_within).then_some(Exceeded { table: self.table, n_left_out, n_rows: self.n_rows, limit })
    }
}

fn n_released(classes: &[Representative], kind: usize) -> u64 {
    classes.iter().map(|class| class.weight * class.layers[kind].len() as u64).sum()
}
