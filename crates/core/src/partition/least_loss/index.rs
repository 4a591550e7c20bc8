//! [`Index`]: finds the class in which a row costs least, without looking at them all.
//!
//! Classes come in the order of the cuts that made them, so neighbours in the sequence are neighbours in space. A
//! binary tree over the sequence holds the bounds of everything below; a branch is left alone where even a class at
//! the edge of its bounds would cost more than the best found.

use super::{EMPTY, include, perimeter, unite};
use crate::partition::Task;

/// How many nodes a search looks at. Where space has many columns and little shape no bound prunes, and what is found
/// late is seldom better: the search goes to the nearest first.
const MOST_VISITED: usize = 400;

/// A class as seen from outside.
#[derive(Clone, Debug)]
pub(super) struct Outline {
    pub(super) bounds: Vec<(u32, u32)>,
    pub(super) weight: u64,
    pub(super) perimeter: f64,
}

impl Outline {
    pub(super) fn of(task: &Task<'_>, rows: &[u32]) -> Outline {
        let bounds = task.rows.bounds(rows);
        let weight = rows.iter().map(|&row| u64::from(task.rows.weight(row))).sum();
        Outline { perimeter: if rows.is_empty() { 0.0 } else { perimeter(task, &bounds) }, bounds, weight }
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

/// A binary tree of bounds over a sequence of classes.
pub(super) struct Index {
    n_columns: usize,
    /// Leaves are `n_leaves..2 * n_leaves`, the root is 1, children of `i` are `2 i` and `2 i + 1`.
    n_leaves: usize,
    bounds: Vec<(u32, u32)>,
}

impl Index {
    pub(super) fn new(n_columns: usize, outlines: &[Outline]) -> Index {
        let n_leaves = outlines.len().next_power_of_two();
        let mut bounds = vec![EMPTY; 2 * n_leaves * n_columns];
        for (class, outline) in outlines.iter().enumerate() {
            if outline.weight > 0 {
                bounds[(n_leaves + class) * n_columns..][..n_columns].copy_from_slice(&outline.bounds);
            }
        }
        let mut index = Index { n_columns, n_leaves, bounds };
        for node in (1..n_leaves).rev() {
            for child in [2 * node, 2 * node + 1] {
                index.unite_into(node, child);
            }
        }
        index
    }

    fn unite_into(&mut self, node: usize, child: usize) {
        let (above, below) = self.bounds.split_at_mut(child * self.n_columns);
        unite(&mut above[node * self.n_columns..][..self.n_columns], &below[..self.n_columns]);
    }

    /// Widens the bounds above a class that has grown. Bounds above a class that has shrunk stay as they are: too
    /// wide, never too narrow.
    pub(super) fn grown(&mut self, class: usize, outline: &Outline) {
        let mut node = self.n_leaves + class;
        while node >= 1 {
            unite(&mut self.bounds[node * self.n_columns..][..self.n_columns], &outline.bounds);
            node /= 2;
        }
    }

    /// The class other than `own` whose loss grows least when the row joins it, by less than `limit`; the first of
    /// equals.
    pub(super) fn cheapest(
        &self,
        task: &Task<'_>,
        outlines: &[Outline],
        row: u32,
        own: usize,
        limit: f64,
    ) -> Option<(f64, usize)> {
        let cells = task.rows.cells(row);
        // At least k rows of the class grow by what the row is outside of it, and the row itself loses as much.
        let rows_paying = (u64::from(task.rules.k()) + u64::from(task.rows.weight(row))) as f64;
        let mut best: Option<(f64, usize)> = None;
        let mut limit = limit;
        let mut open = vec![(1usize, 0.0f64)];
        let mut n_visited = 0;
        while let Some((node, least)) = open.pop() {
            if least >= limit {
                continue;
            }
            n_visited += 1;
            if n_visited > MOST_VISITED {
                break;
            }
            if node >= self.n_leaves {
                let class = node - self.n_leaves;
                if class != own && class < outlines.len() && outlines[class].weight > 0 {
                    let growth = outlines[class].growth(task, row);
                    // Classes are met out of order, and ties must not depend on it.
                    if growth < limit || best.is_some_and(|(least, first)| growth == least && class < first) {
                        best = Some((growth, class));
                        limit = growth;
                    }
                }
                continue;
            }
            let sides = [2 * node, 2 * node + 1].map(|child| (child, self.outside(task, child, cells) * rows_paying));
            // The nearer side is opened first, so that it is pushed last.
            let (near, far) = if sides[1].1 < sides[0].1 { (sides[1], sides[0]) } else { (sides[0], sides[1]) };
            open.extend([far, near].into_iter().filter(|side| side.1 < limit));
        }
        best
    }

    /// By how much any class below a node must grow to hold the cells.
    fn outside(&self, task: &Task<'_>, node: usize, cells: &[u32]) -> f64 {
        let bounds = &self.bounds[node * self.n_columns..][..self.n_columns];
        if bounds[0] == EMPTY {
            return f64::INFINITY;
        }
        let mut growth = 0.0;
        for ((&(lo, hi), &code), domain) in bounds.iter().zip(cells).zip(task.domains) {
            if code < lo || code > hi {
                growth += domain.width(lo.min(code), hi.max(code)) - domain.width(lo, hi);
            }
        }
        growth
    }
}
