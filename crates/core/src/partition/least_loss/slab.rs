//! [`Slab`]: rows at the edge of a box, without which it is narrower.

use std::ops::Range;

use super::runs::Runs;
use crate::partition::Task;

/// So many values from either end of a column are slabs.
const MOST_VALUES: usize = 5;

/// Some runs of a column, or all but those.
#[derive(Clone)]
pub(super) enum Slab {
    These(Range<usize>),
    AllBut(Range<usize>),
}

/// The slabs of a column: what lies at one end of it, or below one child of the smallest node, or outside of it.
pub(super) fn slabs(task: &Task<'_>, runs: &Runs, column: usize) -> Vec<Slab> {
    let n_runs = runs.as_slice().len();
    let mut slabs = Vec::new();
    for n_values in 1..n_runs.min(MOST_VALUES + 1) {
        slabs.extend([Slab::These(0..n_values), Slab::These(n_runs - n_values..n_runs)]);
    }
    for child in runs.children(task, column) {
        slabs.extend([Slab::These(child.clone()), Slab::AllBut(child)]);
    }
    slabs
}

impl Slab {
    pub(super) fn weight(&self, runs: &Runs) -> u64 {
        match self {
            Slab::These(side) => runs.weight_of(side),
            Slab::AllBut(side) => runs.weight_of(&(0..side.start)) + runs.weight_of(&(side.end..runs.as_slice().len())),
        }
    }

    /// The perimeter of everything else.
    pub(super) fn perimeter_left(&self, task: &Task<'_>, runs: &Runs) -> f64 {
        match self {
            Slab::These(side) => runs.perimeter_without(task, side),
            Slab::AllBut(side) => runs.perimeter_of(task, side),
        }
    }

    pub(super) fn holds(&self, run: usize) -> bool {
        match self {
            Slab::These(side) => side.contains(&run),
            Slab::AllBut(side) => !side.contains(&run),
        }
    }
}
