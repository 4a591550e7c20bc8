//! [`ClassTree`]: finds the class in which a row costs least, without looking at them all.
//!
//! Classes come in the order of the cuts that made them, so neighbours in the sequence are neighbours in space. Every
//! node of a binary tree over the sequence holds the bounds of everything below and the least perimeter of a class
//! there. A branch is skipped where even a class at the edge of its bounds with that perimeter would cost more than the
//! best found.

use crate::encode::bounds::{EMPTY, unite};
use crate::partition::Task;
use crate::partition::outline::Outline;

/// A binary tree of bounds over classes.
pub(super) struct ClassTree<'t> {
    task: &'t Task<'t>,
    n_columns: usize,
    /// Leaves are `n_leaves..2 * n_leaves`, the root is 1, children of `i` are `2 i` and `2 i + 1`.
    n_leaves: usize,
    bounds: Vec<(u32, u32)>,
    /// The width of each of the bounds.
    widths: Vec<f64>,
    least_perimeter: Vec<f64>,
    /// How many nodes a search looks at. In many columns bounds prune little, and classes found late are seldom better,
    /// because the search goes to the nearest first.
    visits: usize,
}

impl<'t> ClassTree<'t> {
    pub(super) fn new(task: &'t Task<'t>, outlines: &[Outline], visits: usize) -> ClassTree<'t> {
        let n_columns = task.rows.n_columns();
        let n_leaves = outlines.len().next_power_of_two();
        let mut bounds = vec![EMPTY; 2 * n_leaves * n_columns];
        let mut least_perimeter = vec![f64::INFINITY; 2 * n_leaves];
        for (class, outline) in outlines.iter().enumerate().filter(|(_, outline)| outline.weight > 0) {
            bounds[(n_leaves + class) * n_columns..][..n_columns].copy_from_slice(&outline.bounds);
            least_perimeter[n_leaves + class] = outline.perimeter;
        }
        let widths = vec![0.0; bounds.len()];
        let mut index = ClassTree { task, n_columns, n_leaves, bounds, widths, least_perimeter, visits };
        for node in (1..n_leaves).rev() {
            for child in [2 * node, 2 * node + 1] {
                let (above, below) = index.bounds.split_at_mut(child * n_columns);
                unite(&mut above[node * n_columns..][..n_columns], &below[..n_columns]);
                index.least_perimeter[node] = index.least_perimeter[node].min(index.least_perimeter[child]);
            }
        }
        (1..2 * n_leaves).for_each(|node| index.measure(node));
        index
    }

    /// Finds the widths of a node that is not empty.
    fn measure(&mut self, node: usize) {
        let stride = node * self.n_columns..(node + 1) * self.n_columns;
        for ((width, domain), &(lo, hi)) in
            self.widths[stride.clone()].iter_mut().zip(self.task.domains).zip(&self.bounds[stride])
        {
            if lo <= hi {
                *width = domain.width(lo, hi);
            }
        }
    }

    /// Notes that a class has changed. Bounds above a class that has shrunk stay as they are: too wide, never too
    /// narrow; perimeters above one that has grown are too small, never too large.
    pub(super) fn changed(&mut self, class: usize, outline: &Outline) {
        // A class without rows is skipped, and the bounds above it need not become narrower.
        let mut node = if outline.weight > 0 { self.n_leaves + class } else { 0 };
        while node >= 1 {
            let bounds = &mut self.bounds[node * self.n_columns..][..self.n_columns];
            let is_held = bounds.iter().zip(&outline.bounds).all(|(&(lo, hi), of)| lo <= of.0 && of.1 <= hi);
            if is_held && self.least_perimeter[node] <= outline.perimeter {
                // Everything above holds it, too.
                break;
            }
            unite(bounds, &outline.bounds);
            self.measure(node);
            self.least_perimeter[node] = self.least_perimeter[node].min(outline.perimeter);
            node /= 2;
        }
    }

    /// The class other than `own` whose loss grows least when the row joins it, by less than `limit`; the first of
    /// equals. A good `guess` saves most of the search.
    pub(super) fn cheapest(
        &self,
        outlines: &[Outline],
        row: u32,
        own: usize,
        guess: usize,
        mut limit: f64,
    ) -> Option<(f64, usize)> {
        let task = self.task;
        let cells = task.rows.cells(row);
        let weight = f64::from(task.rows.weight(row));
        // Where the row lies outside of a class, the box of the class grows by that. At least k rows of the class and the row
        // itself then lose as much.
        let rows_paying = f64::from(task.rules.k()) + weight;
        let mut best: Option<(f64, usize)> = None;
        if guess != own && outlines.get(guess).is_some_and(|outline| outline.weight > 0) {
            let growth = outlines[guess].growth(task, row);
            if growth < limit {
                best = Some((growth, guess));
                limit = growth;
            }
        }
        // One sibling waits per level, and a tree over u32 classes has no more levels than this.
        let mut open = [(0usize, 0.0f64); 33];
        open[0].0 = 1;
        let mut n_open = 1;
        let mut n_visited = 0;
        while n_open > 0 {
            n_open -= 1;
            let (node, least) = open[n_open];
            if least >= limit {
                continue;
            }
            n_visited += 1;
            if n_visited > self.visits {
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
            let first = (2 * node, self.least_cost(2 * node, cells, weight, rows_paying, limit));
            let second = (2 * node + 1, self.least_cost(2 * node + 1, cells, weight, rows_paying, limit));
            // The nearer side is opened first, so that it is pushed last.
            let (near, far) = if second.1 < first.1 { (second, first) } else { (first, second) };
            for side in [far, near] {
                if side.1 < limit {
                    open[n_open] = side;
                    n_open += 1;
                }
            }
        }
        best
    }

    /// What joining any class below a node costs at least; infinite if that is `limit` or more.
    #[inline]
    fn least_cost(&self, node: usize, cells: &[u32], weight: f64, rows_paying: f64, limit: f64) -> f64 {
        let mut cost = self.least_perimeter[node] * weight;
        if cost >= limit {
            return f64::INFINITY;
        }
        let stride = node * self.n_columns..(node + 1) * self.n_columns;
        let (bounds, widths) = (&self.bounds[stride.clone()], &self.widths[stride]);
        for (((&(lo, hi), &width), &code), domain) in bounds.iter().zip(widths).zip(cells).zip(self.task.domains) {
            if code < lo || code > hi {
                cost += (domain.width(lo.min(code), hi.max(code)) - width) * rows_paying;
                if cost >= limit {
                    return f64::INFINITY;
                }
            }
        }
        cost
    }
}
