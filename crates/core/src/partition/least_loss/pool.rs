//! Starting over with the rows that cost most: they are taken out of all classes and cut anew, together.
//!
//! Cuts from the top part rows that are alike but rare: those outside the usual values of one column stay on one side
//! of the first cut and never meet those on the other. Taken out of their classes, they meet.

use super::runs::{Runs, Slab, slabs};
use super::split;
use crate::partition::Task;
use crate::partition::outline::Outline;
use crate::requirement::Tally;

/// The classes after their expensive rows were cut anew: rows whose absence saves more than `dear` times the mean loss
/// per row.
pub(super) fn recut(task: &Task<'_>, classes: &[Vec<u32>], dear: f64, foresight: u64) -> Vec<Vec<u32>> {
    let price = dear * task.loss(classes) / task.rows.n_members() as f64;
    let mut pool = Pool { task, price, rows: Vec::new(), runs: Runs::default(), tally: Tally::new(task.rules) };
    let mut kept: Vec<Vec<u32>> = classes.iter().map(|rows| pool.take_from(rows.clone())).collect();
    kept.retain(|rows| !rows.is_empty());
    let Pool { mut rows, mut tally, .. } = pool;
    if rows.is_empty() || !task.stands(&mut tally, rows.iter().copied()) {
        return classes.to_vec();
    }
    rows.sort_unstable();
    kept.extend(split::split(task, vec![rows], foresight));
    kept
}

/// The rows taken out so far.
struct Pool<'t> {
    task: &'t Task<'t>,
    /// Rows are taken out if their absence saves at least this much per row.
    price: f64,
    rows: Vec<u32>,
    runs: Runs,
    tally: Tally<'t>,
}

impl Pool<'_> {
    /// Takes slabs out of a class, those that save most per row first, as long as the rest satisfies the rules. Then
    /// takes out the whole rest, if its rows are still expensive. Returns the rows that stay.
    fn take_from(&mut self, mut class: Vec<u32>) -> Vec<u32> {
        let task = self.task;
        let mut outline = Outline::of(task, &class);
        while let Some((column, slab)) = self.most_expensive(&class, &outline) {
            self.runs.find(task, &class, column, outline.bounds[column]);
            let is_out = |row: &u32| slab.holds(self.runs.position(task.rows.cells(*row)[column]));
            let (out, stay): (Vec<u32>, Vec<u32>) = class.iter().partition(|row| is_out(row));
            if !task.stands(&mut self.tally, stay.iter().copied()) {
                break;
            }
            self.rows.extend(out);
            outline = Outline::of(task, &stay);
            class = stay;
        }
        if outline.perimeter > self.price {
            self.rows.append(&mut class);
        }
        class
    }

    /// The slab without which a class loses most per row that leaves, if more than the price.
    fn most_expensive(&mut self, class: &[u32], outline: &Outline) -> Option<(usize, Slab)> {
        let task = self.task;
        let spare = outline.weight.saturating_sub(u64::from(task.rules.k()));
        let mut best = None;
        let mut most = self.price;
        for (column, &bounds) in outline.bounds.iter().enumerate() {
            if bounds.0 == bounds.1 || spare == 0 {
                continue;
            }
            self.runs.find(task, class, column, bounds);
            for slab in slabs(task, &self.runs, column) {
                let weight = slab.weight(&self.runs);
                if weight <= spare {
                    let left = slab.perimeter_left(task, &self.runs) * (outline.weight - weight) as f64;
                    let saved = (outline.loss() - left) / weight as f64;
                    if saved > most {
                        most = saved;
                        best = Some((column, slab));
                    }
                }
            }
        }
        best
    }
}
