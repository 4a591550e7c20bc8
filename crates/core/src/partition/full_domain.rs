//! [`FullDomain`]: one level of generalization per column for the whole table, the vector of levels that loses least.
//!
//! # Guarantee
//! every cell of a column is at one level of its [`Levels`]; every class satisfies the rules; persons in classes that
//! do not are left out, no more than the task allows, whatever it says about leftovers; no other vector of levels loses
//! less, unless the search was cut short; or `Unreachable`
//! # Paper
//! `[Sam01]`, `[LDR05]`: the lattice of level vectors, and that a vector which leaves too many out on some columns does
//! so with any further column
//! # Deviations
//! The search goes column by column, the best guess first, and drops vectors that can't beat the best one found so far,
//! see `bound`. If leaving somebody out changes what others are measured against, nobody is left out. A person with
//! several rows leaves with all of them, as do the persons of a class that no longer satisfies the rules without them;
//! persons leave in this way only if no folded row holds rows of two persons. DM counts the persons of the task,
//! without those who were left out before. A search that would look at more than `MOST_VISITS` cells ends with the best
//! vector found until then.
//! # Cost
//! exponential in the number of columns at worst; each vector, or part of one, that is not dropped is grouped in time
//! linear in folded rows, on all threads

mod bound;
mod lattice;

use kohort_model::Note;
pub use kohort_model::spec::Objective;
use rayon::prelude::*;

use super::{Classes, Partitioner, Task, Unreachable};
use bound::{Evaluator, Partial};
use lattice::Lattice;

/// The search ends with the best vector so far after it has looked at this many cells. Each partial vector that is
/// extended counts the cells of all folded rows.
const MOST_VISITS: u64 = 1 << 33;

/// One level of generalization per column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullDomain {
    /// The measure to minimize; [`crate::loss`] defines both.
    pub objective: Objective,
}

/// A vector of levels, one per column, and what it loses.
#[derive(Clone, Debug, PartialEq)]
struct LevelVector {
    loss: f64,
    n_left_out: u64,
    levels: Vec<usize>,
}

impl LevelVector {
    /// Compares the loss, then how many are left out, then how fine the first columns are.
    fn beats(&self, other: &LevelVector) -> bool {
        let ties = || (self.n_left_out, &self.levels).cmp(&(other.n_left_out, &other.levels));
        self.loss.total_cmp(&other.loss).then_with(ties).is_lt()
    }
}

impl Partitioner for FullDomain {
    fn name(&self) -> &'static str {
        "full-domain"
    }

    fn partition(&self, task: &Task<'_>) -> Result<Classes, Unreachable> {
        task.check()?;
        task.progress.begin("partition", 0);
        let lattice = Lattice::new(task);
        let search = Evaluator::new(task, &lattice, self.objective);
        // All rows in one class satisfy the rules, so the top of the lattice is a candidate.
        let top = search.evaluate(&lattice.top()).ok_or(Unreachable)?;
        let (best, note) = best_below(&search, &lattice, descend(&search, top));
        let mut classes = search.classes(&best.levels);
        classes.notes.extend(note);
        Ok(classes)
    }
}

/// Lowers one level at a time, the one that gains most, while that helps: a good vector to measure others against.
fn descend(search: &Evaluator<'_>, mut best: LevelVector) -> LevelVector {
    loop {
        let below: Vec<Vec<usize>> = (0..best.levels.len())
            .filter(|&column| best.levels[column] > 0)
            .map(|column| {
                let mut levels = best.levels.clone();
                levels[column] -= 1;
                levels
            })
            .collect();
        let found: Vec<LevelVector> = below.par_iter().filter_map(|levels| search.evaluate(levels)).collect();
        match found.into_iter().reduce(|best, other| if other.beats(&best) { other } else { best }) {
            Some(lower) if lower.beats(&best) => best = lower,
            _ => return best,
        }
    }
}

/// The best of all vectors, and a note if the search did not look at everything that could be better. `best` is a vector
/// to start from.
fn best_below(search: &Evaluator<'_>, lattice: &Lattice, mut best: LevelVector) -> (LevelVector, Option<Note>) {
    let (mut n_visits, mut note) = (0, None);
    let mut open: Vec<Partial> = search.root(best.loss).into_iter().collect();
    while let Some(partial) = open.pop() {
        if partial.bound > best.loss || search.task.progress.is_cancelled() {
            continue;
        }
        if n_visits > MOST_VISITS {
            note = Some(Note::SearchEnded);
            continue;
        }
        if partial.is_whole() {
            if let Some(candidate) = search.evaluate(&partial.levels).filter(|candidate| candidate.beats(&best)) {
                best = candidate;
            }
            continue;
        }
        let mut further = search.extend(&partial, best.loss);
        n_visits += (search.task.rows.len() * lattice.columns.len()) as u64;
        // The vector with the smallest bound is last, so it is popped first.
        further.sort_by(|a, b| b.bound.total_cmp(&a.bound));
        open.append(&mut further);
    }
    (best, note)
}

#[cfg(test)]
mod tests;
