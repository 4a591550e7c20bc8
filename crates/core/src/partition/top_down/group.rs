//! [`Group`]: rows with their box, and [`Growing`]: a box that rows are put into one by one.

use crate::encode::bounds::{self, Bounds};
use crate::partition::Task;
use crate::partition::outline::Outline;

/// A box that grows with the rows put into it. Its intervals are those that cells would show, so that a row inside
/// costs comparisons only.
pub(super) struct Growing {
    bounds: Bounds,
    width: f64,
    pub(super) weight: u64,
}

impl Growing {
    /// A box with these bounds and this weight.
    pub(super) fn new(task: &Task<'_>, bounds: impl Iterator<Item = (u32, u32)>, weight: u64) -> Growing {
        let bounds: Vec<_> = task.domains.iter().zip(bounds).map(|(domain, (lo, hi))| domain.hull(lo, hi)).collect();
        Growing { width: bounds::width(task.domains, &bounds), bounds, weight }
    }

    /// The loss of each row after a row with these cells is added.
    pub(super) fn width_with(&self, task: &Task<'_>, cells: &[u32]) -> f64 {
        let mut width = self.width;
        for ((&(lo, hi), &code), domain) in self.bounds.iter().zip(cells).zip(task.domains) {
            if code < lo || code > hi {
                width += domain.width(lo.min(code), hi.max(code)) - domain.width(lo, hi);
            }
        }
        width
    }

    /// How much the loss of all rows here grows if one with these cells and this weight comes in.
    pub(super) fn cost(&self, task: &Task<'_>, cells: &[u32], weight: u32) -> f64 {
        let width = self.width_with(task, cells);
        (width - self.width) * self.weight as f64 + width * f64::from(weight)
    }

    pub(super) fn add(&mut self, task: &Task<'_>, cells: &[u32], weight: u32) {
        self.weight += u64::from(weight);
        let mut grew = false;
        for ((bound, &code), domain) in self.bounds.iter_mut().zip(cells).zip(task.domains) {
            if code < bound.0 || code > bound.1 {
                *bound = domain.hull(bound.0.min(code), bound.1.max(code));
                grew = true;
            }
        }
        if grew {
            self.width = bounds::width(task.domains, &self.bounds);
        }
    }
}

/// Rows that look the same. A group that has joined another has none.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) rows: Vec<u32>,
    pub(super) outline: Outline,
    /// Whether it satisfies the rules.
    pub(super) stands: bool,
}

impl Group {
    pub(super) fn new(task: &Task<'_>, rows: Vec<u32>, stands: bool) -> Group {
        Group { outline: Outline::of(task, &rows), rows, stands }
    }

    /// Takes in another group's rows. Does not check whether the group still satisfies the rules.
    pub(super) fn absorb(&mut self, task: &Task<'_>, other: &mut Group) {
        let mut rows = std::mem::take(&mut other.rows);
        if rows.len() > self.rows.len() {
            std::mem::swap(&mut rows, &mut self.rows);
        }
        self.rows.append(&mut rows);
        self.outline.unite(task, &other.outline);
    }
}
