//! [`Group`]: rows with their box, and [`Space`]: what boxes lose.

use crate::encode::{Domain, Rows};

/// The rows and what intervals of their columns lose.
#[derive(Clone, Copy)]
pub(super) struct Space<'a> {
    pub(super) rows: &'a Rows,
    pub(super) domains: &'a [Domain],
}

impl Space<'_> {
    /// What a row loses in the smallest box that holds both rows, given by their cells.
    pub(super) fn distance(self, a: &[u32], b: &[u32]) -> f64 {
        let cells = a.iter().zip(b);
        self.domains.iter().zip(cells).map(|(domain, (&a, &b))| domain.width(a.min(b), a.max(b))).sum()
    }

    /// What a row loses in a box.
    pub(super) fn width(self, bounds: &[(u32, u32)]) -> f64 {
        self.domains.iter().zip(bounds).map(|(domain, &(lo, hi))| domain.width(lo, hi)).sum()
    }

    /// What a row loses in the smallest box that holds both boxes.
    pub(super) fn joint_width(self, a: &[(u32, u32)], b: &[(u32, u32)]) -> f64 {
        let intervals = a.iter().zip(b).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1)));
        self.domains.iter().zip(intervals).map(|(domain, (lo, hi))| domain.width(lo, hi)).sum()
    }
}

/// A box that grows with the rows put into it. Its intervals are those that cells would show, so that a row inside
/// costs comparisons only.
pub(super) struct Growing {
    bounds: Vec<(u32, u32)>,
    width: f64,
    pub(super) weight: u64,
}

impl Growing {
    /// The box of the given bounds, whose rows weigh so much.
    pub(super) fn new(space: Space<'_>, bounds: impl Iterator<Item = (u32, u32)>, weight: u64) -> Growing {
        let bounds: Vec<_> = space.domains.iter().zip(bounds).map(|(domain, (lo, hi))| domain.hull(lo, hi)).collect();
        Growing { width: space.width(&bounds), bounds, weight }
    }

    /// What a row would lose here if one with these cells came in.
    pub(super) fn width_with(&self, space: Space<'_>, cells: &[u32]) -> f64 {
        let mut width = self.width;
        for ((&(lo, hi), &code), domain) in self.bounds.iter().zip(cells).zip(space.domains) {
            if code < lo || code > hi {
                width += domain.width(lo.min(code), hi.max(code)) - domain.width(lo, hi);
            }
        }
        width
    }

    /// How much the loss of all rows here grows if one with these cells and this weight comes in.
    pub(super) fn cost(&self, space: Space<'_>, cells: &[u32], weight: u32) -> f64 {
        let width = self.width_with(space, cells);
        (width - self.width) * self.weight as f64 + width * f64::from(weight)
    }

    /// Puts a row in.
    pub(super) fn add(&mut self, space: Space<'_>, cells: &[u32], weight: u32) {
        self.weight += u64::from(weight);
        let mut grew = false;
        for ((bound, &code), domain) in self.bounds.iter_mut().zip(cells).zip(space.domains) {
            if code < bound.0 || code > bound.1 {
                *bound = domain.hull(bound.0.min(code), bound.1.max(code));
                grew = true;
            }
        }
        if grew {
            self.width = space.width(&self.bounds);
        }
    }
}

/// Rows that look the same; without rows where it has joined another.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) rows: Vec<u32>,
    pub(super) bounds: Vec<(u32, u32)>,
    pub(super) weight: u64,
    /// What each of its rows loses.
    pub(super) width: f64,
    /// Whether it satisfies the rules.
    pub(super) stands: bool,
}

impl Group {
    pub(super) fn new(space: Space<'_>, rows: Vec<u32>, stands: bool) -> Group {
        let bounds = space.rows.bounds(&rows);
        let weight = rows.iter().map(|&row| u64::from(space.rows.weight(row))).sum();
        Group { width: space.width(&bounds), rows, bounds, weight, stands }
    }

    /// Takes in another group's rows, which is then without. Whether it stands is not asked.
    pub(super) fn absorb(&mut self, space: Space<'_>, other: &mut Group) {
        let mut rows = std::mem::take(&mut other.rows);
        if rows.len() > self.rows.len() {
            std::mem::swap(&mut rows, &mut self.rows);
        }
        self.rows.append(&mut rows);
        for (bound, other) in self.bounds.iter_mut().zip(&other.bounds) {
            *bound = (bound.0.min(other.0), bound.1.max(other.1));
        }
        self.weight += other.weight;
        self.width = space.width(&self.bounds);
    }

    /// What its rows lose together.
    pub(super) fn loss(&self) -> f64 {
        self.width * self.weight as f64
    }
}
