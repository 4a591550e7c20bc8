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
//! The search goes column by column, the best guess first, and drops what can't beat the best vector found so far, see
//! `bound`. Where leaving somebody out changes what others are measured against, nobody is left out. A person with several
//! rows leaves with all of them, and whom that leaves in a class that no longer satisfies the rules leaves too; such
//! persons leave only where no folded row holds rows of two persons. DM counts the persons of the task: those who were left out before are not in it. A search
//! that would look at more than `MOST_VISITS` cells ends with the best vector found until then.
//! # Cost
//! exponential in the number of columns at worst; each vector, or part of one, that is not dropped is grouped in time
//! linear in folded rows, on all threads

mod bound;
mod grouping;
mod lattice;

use kohort_model::Note;
pub use kohort_model::spec::Objective;

use super::{Classes, Partitioner, Task, Unreachable, all_stand_together};
use bound::{Partial, Search};
use lattice::Lattice;

/// How many cells the search looks at before it ends with what it has: the cells of all folded rows for each part of a
/// vector that is extended.
const MOST_VISITS: u64 = 1 << 33;

/// One level of generalization per column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullDomain {
    /// What is to be least; [`crate::loss`] defines both.
    pub objective: Objective,
}

/// A vector of levels, one per column, and what it loses.
#[derive(Clone, Debug, PartialEq)]
struct Candidate {
    loss: f64,
    n_left_out: u64,
    levels: Vec<usize>,
}

impl Candidate {
    /// Less loss; then fewer left out; then the finer first columns.
    fn beats(&self, other: &Candidate) -> bool {
        let ties = || (self.n_left_out, &self.levels).cmp(&(other.n_left_out, &other.levels));
        self.loss.total_cmp(&other.loss).then_with(ties).is_lt()
    }
}

impl Partitioner for FullDomain {
    fn name(&self) -> &'static str {
        "full-domain"
    }

    fn partition(&self, task: &Task<'_>) -> Result<Classes, Unreachable> {
        if !all_stand_together(task) {
            return Err(Unreachable);
        }
        task.progress.begin("partition", 0);
        let lattice = Lattice::new(task);
        let search = Search::new(task, &lattice, self.objective);
        // All rows in one class stand, so the top of the lattice is a candidate.
        let top = search.evaluate(&lattice.top()).ok_or(Unreachable)?;
        let (best, end) = best_below(&search, &lattice, descend(&search, top));
        let mut classes = search.classes(&best.levels);
        if end == SearchEnd::Early {
            classes.notes.push(Note::SearchEnded);
        }
        Ok(classes)
    }
}

/// Lowers one level at a time, the one that gains most, while that helps: a good vector to measure others against.
fn descend(search: &Search<'_>, mut best: Candidate) -> Candidate {
    loop {
        let below: Vec<Vec<usize>> = (0..best.levels.len())
            .filter(|&column| best.levels[column] > 0)
            .map(|column| {
                let mut levels = best.levels.clone();
                levels[column] -= 1;
                levels
            })
            .collect();
        let found = search.evaluate_all(&below);
        match found.into_iter().reduce(|best, other| if other.beats(&best) { other } else { best }) {
            Some(lower) if lower.beats(&best) => best = lower,
            _ => return best,
        }
    }
}

/// Whether a search looked at everything that could be better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SearchEnd {
    Through,
    Early,
}

/// The best vector of all, where `best` is one of them.
fn best_below(search: &Search<'_>, lattice: &Lattice, mut best: Candidate) -> (Candidate, SearchEnd) {
    let (mut n_visits, mut end) = (0, SearchEnd::Through);
    let mut open: Vec<Partial> = search.root(best.loss).into_iter().collect();
    while let Some(partial) = open.pop() {
        if partial.bound > best.loss || search.is_cancelled() {
            continue;
        }
        if n_visits > MOST_VISITS {
            end = SearchEnd::Early;
            continue;
        }
        if partial.is_whole() {
            if let Some(candidate) = search.evaluate(&partial.levels).filter(|candidate| candidate.beats(&best)) {
                best = candidate;
            }
            continue;
        }
        let mut further = search.extend(&partial, best.loss);
        n_visits += (lattice.n_rows() * lattice.columns.len()) as u64;
        // The last is taken up first.
        further.sort_by(|a, b| b.bound.total_cmp(&a.bound));
        open.append(&mut further);
    }
    (best, end)
}

#[cfg(test)]
mod tests;
