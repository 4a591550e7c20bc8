//! [`Outline`]: a class as seen from outside.

use super::{include, perimeter};
use crate::partition::Task;

/// The smallest box around a class, what it weighs, and what each of its rows loses.
#[derive(Clone, Debug)]
pub(super) struct Outline {
    pub(super) bounds: Vec<(u32, u32)>,
    pub(super) weight: u64,
    pub(super) perimeter: f64,
}

impl Outline {
    pub(super) fn of(task: &Task<'_>, rows: &[u32]) -> Outline {
        let bounds = task.rows.bounds(rows);
        let perimeter = if rows.is_empty() { 0.0 } else { perimeter(task, &bounds) };
        Outline { perimeter, bounds, weight: task.rows.weight_of(rows) }
    }

    pub(super) fn loss(&self) -> f64 {
        self.perimeter * self.weight as f64
    }

    /// By how much the class's loss grows when a row joins it.
    pub(super) fn growth(&self, task: &Task<'_>, row: u32) -> f64 {
        let cells = task.rows.cells(row);
        let mut perimeter = 0.0;
        for ((&(lo, hi), &code), domain) in self.bounds.iter().zip(cells).zip(task.domains) {
            perimeter += domain.width(lo.min(code), hi.max(code));
        }
        perimeter * (self.weight + u64::from(task.rows.weight(row))) as f64 - self.loss()
    }

    pub(super) fn include(&mut self, task: &Task<'_>, row: u32) {
        include(&mut self.bounds, task.rows.cells(row));
        self.weight += u64::from(task.rows.weight(row));
        self.perimeter = perimeter(task, &self.bounds);
    }
}
