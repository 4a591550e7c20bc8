//! [`Outline`]: some rows as seen from outside.

use super::Task;
use crate::encode::bounds::{self, Bounds};

/// The smallest box around some rows, what they weigh, and what each of them loses.
#[derive(Clone, Debug)]
pub(super) struct Outline {
    pub(super) bounds: Bounds,
    pub(super) weight: u64,
    pub(super) perimeter: f64,
}

impl Outline {
    pub(super) fn of(task: &Task<'_>, rows: &[u32]) -> Outline {
        let bounds = task.rows.bounds(rows);
        let perimeter = if rows.is_empty() { 0.0 } else { bounds::width(task.domains, &bounds) };
        Outline { perimeter, bounds, weight: task.rows.weight_of(rows) }
    }

    pub(super) fn loss(&self) -> f64 {
        self.perimeter * self.weight as f64
    }

    /// By how much the rows' loss grows when another row joins them.
    #[inline]
    pub(super) fn growth(&self, task: &Task<'_>, row: u32) -> f64 {
        let perimeter = bounds::width_with(task.domains, &self.bounds, task.rows.cells(row).iter().copied());
        perimeter * (self.weight + u64::from(task.rows.weight(row))) as f64 - self.loss()
    }

    pub(super) fn include(&mut self, task: &Task<'_>, row: u32) {
        bounds::include(&mut self.bounds, task.rows.cells(row));
        self.weight += u64::from(task.rows.weight(row));
        self.perimeter = bounds::width(task.domains, &self.bounds);
    }

    pub(super) fn unite(&mut self, task: &Task<'_>, other: &Outline) {
        bounds::unite(&mut self.bounds, &other.bounds);
        self.weight += other.weight;
        self.perimeter = bounds::width(task.domains, &self.bounds);
    }
}
