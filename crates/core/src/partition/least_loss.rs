//! [`LeastLoss`]: what a user gets who names no partitioner.
//!
//! From the top, every node is cut where most loss is gained for what the cut uses up, over all columns and all
//! boundaries, not where a column is widest. Rows that stay expensive are then taken out of all classes and cut anew,
//! together. From the bottom, classes send rows away that cost less elsewhere: one, a slab at the edge of their box,
//! or all; what has grown to two is cut again. Other partitioners run too, and where one of them loses less than the
//! cuts, the rest starts from its classes.
//!
//! # Guarantee
//! every class satisfies the rules, or `Unreachable`; no more loss than Mondrian, and on small tables than top-down,
//! clustering and Datafly
//! # Paper
//! the top-down half is `[LDR06]` with another choice of cuts; the rest is ours
//! # Deviations
//! where persons have several rows nothing moves: a person in two classes counts in both, and moving a row can break
//! either in ways that only counting both anew would show; the more distinct rows there are, the less is tried
//! # Cost
//! O(d² n log n) for the cuts, times the log of what a node can be cut into where nodes look ahead; each round of moves asks an
//! index over boxes once per row of the classes that have changed

mod edges;
mod index;
mod moves;
mod offers;
mod outline;
mod plan;
mod pool;
mod runs;
mod slab;
mod split;

use kohort_model::Note;
use kohort_model::spec::MondrianSpec;
use rayon::prelude::*;

use super::{Classes, Cluster, Datafly, KeepTree, Mondrian, Partitioner, Task, TopDown, Unreachable};

/// What a table is worth: the larger, the less there is to gain per row and the longer everybody waits.
#[derive(Clone, Copy, Debug)]
struct Effort {
    /// Nodes of at most so many times k look ahead before they are cut.
    foresight: u64,
    /// How often expensive rows are taken out and cut anew.
    attempts: usize,
    /// Rounds of moves: the first gains most by far.
    rounds: usize,
    /// Nodes of the index that a search looks at.
    visits: usize,
}

/// Tables of at most so many distinct rows are worth everything.
const ALL_TRIED: usize = 300_000;

/// Larger ones are worth less, and beyond this little.
const MUCH_TRIED: usize = 1_000_000;

/// Tables of at most so many distinct rows are also given to partitioners whose time grows faster than theirs.
const SMALL: usize = 2_000;

/// What a row must save by its absence to be cut anew, in mean losses per row: many rows first, then fewer and fewer,
/// so that the last attempts mend what the first have spoiled.
const DEAR: [f64; 5] = [1.5, 1.2, 2.0, 3.0, 4.0];

/// Moves that gain a smaller share of the loss than this are not worth another round.
const WORTH_A_ROUND: f64 = 0.001;

/// When moves no longer help, what has grown to two is cut, and moves begin again; the second time they end.
const CUTS: usize = 2;

impl Effort {
    fn of(task: &Task<'_>) -> Effort {
        // The more rows a class holds, the more its cuts leave to mend.
        let attempts = (task.rules.k() as usize / 10).clamp(1, DEAR.len());
        let n_rows = task.rows.len();
        if n_rows <= ALL_TRIED {
            Effort { foresight: 256, attempts, rounds: 8, visits: 400 }
        } else if n_rows <= MUCH_TRIED {
            Effort { foresight: 16, attempts: 1, rounds: 2, visits: 200 }
        } else {
            Effort { foresight: 0, attempts: 1, rounds: 1, visits: 200 }
        }
    }
}

/// Least loss: cuts from the top, moves from the bottom.
#[derive(Clone, Copy, Debug)]
pub struct LeastLoss;

impl Partitioner for LeastLoss {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn partition(&self, task: &Task<'_>) -> Result<Classes, Unreachable> {
        let effort = Effort::of(task);
        let mut notes = Vec::new();
        if task.rows.len() > ALL_TRIED {
            notes.push(Note::LessTried { n_distinct: task.rows.len() as u64, limit: ALL_TRIED as u64 });
        }
        let mut classes = first_classes(task, effort)?;
        if task.rules.person_of_row().is_some() {
            notes.push(Note::OnlyCut);
            return Ok(Classes { notes, ..Classes::from_lists(classes) });
        }
        let mut least = loss(task, &classes);
        for (attempt, dear) in DEAR.into_iter().take(effort.attempts).enumerate() {
            if task.progress.is_cancelled() {
                break;
            }
            task.progress.begin(&format!("improve {}/{}", attempt + 1, effort.attempts), 0);
            let tried = mend(task, pool::recut(task, &classes, dear, effort.foresight), effort);
            let loses = loss(task, &tried);
            if loses < least {
                (classes, least) = (tried, loses);
            }
        }
        Ok(Classes { notes, ..Classes::from_lists(classes) })
    }
}

/// The classes to start from: those of the partitioner that loses least.
fn first_classes(task: &Task<'_>, effort: Effort) -> Result<Vec<Vec<u32>>, Unreachable> {
    let mut others: Vec<Box<dyn Partitioner>> =
        vec![Box::new(Mondrian { spec: MondrianSpec::default(), keep_tree: KeepTree::No })];
    if task.rows.len() <= SMALL {
        others.push(Box::new(TopDown));
        others.push(Box::new(Cluster::default()));
        others.push(Box::new(Datafly::default()));
    }
    // They may leave somebody out where the task allows it; here everybody stays.
    let everybody = Task { allowance: 0, ..*task };
    let mut starts = Vec::new();
    for other in others {
        starts.push(other.partition(&everybody)?.to_lists());
    }
    task.progress.begin("cut", task.rows.len() as u64);
    starts.push(split::split(task, vec![(0..task.rows.len() as u32).collect()], effort.foresight));
    let losses: Vec<f64> = starts.iter().map(|classes| loss(task, classes)).collect();
    // Of equals the last, our own.
    let least = (0..starts.len()).rev().min_by(|&a, &b| losses[a].total_cmp(&losses[b])).unwrap_or(0);
    Ok(starts.swap_remove(least))
}

/// Moves rows while that helps, and cuts what has grown to two.
fn mend(task: &Task<'_>, classes: Vec<Vec<u32>>, effort: Effort) -> Vec<Vec<u32>> {
    let worth = WORTH_A_ROUND * loss(task, &classes);
    let mut state = moves::State::new(task, classes, effort.visits);
    let mut n_cuts = 0;
    for round in 1..=effort.rounds {
        if task.progress.is_cancelled() {
            break;
        }
        if state.improve() <= worth || round == effort.rounds {
            state.cut(effort.foresight);
            n_cuts += 1;
            if n_cuts == CUTS {
                break;
            }
        }
    }
    state.into_classes()
}

/// What classes lose in all.
fn loss(task: &Task<'_>, classes: &[Vec<u32>]) -> f64 {
    let of_classes: Vec<f64> = classes.par_iter().map(|rows| outline::Outline::of(task, rows).loss()).collect();
    of_classes.iter().sum()
}

/// What a class with these bounds loses per row.
fn perimeter(task: &Task<'_>, bounds: &[(u32, u32)]) -> f64 {
    bounds.iter().zip(task.domains).map(|(&(lo, hi), domain)| domain.width(lo, hi)).sum()
}

/// Grows bounds to hold a row's cells.
fn include(bounds: &mut [(u32, u32)], cells: &[u32]) {
    for (bound, &code) in bounds.iter_mut().zip(cells) {
        *bound = (bound.0.min(code), bound.1.max(code));
    }
}

/// Grows bounds to hold others.
fn unite(bounds: &mut [(u32, u32)], others: &[(u32, u32)]) {
    for (bound, other) in bounds.iter_mut().zip(others) {
        *bound = (bound.0.min(other.0), bound.1.max(other.1));
    }
}

/// Bounds of nothing.
const EMPTY: (u32, u32) = (u32::MAX, 0);

#[cfg(test)]
mod tests;
