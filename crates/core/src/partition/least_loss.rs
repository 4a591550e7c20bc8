//! [`LeastLoss`]: what a user gets who names no partitioner.
//!
//! Two ideas take turns. From the top, every node is cut where most loss is gained for what the cut uses up, over all
//! columns and all boundaries, not where a column is widest. From the bottom, single rows move to the class in which
//! they cost less, and classes whose rows are all better off elsewhere dissolve; what has grown to two is cut again.
//! Mondrian runs too, and where it loses less the moves start from its classes.
//!
//! # Guarantee
//! every class satisfies the rules, or `Unreachable`
//! # Paper
//! the top-down half is `[LDR06]` with another choice of cuts; the bottom-up half is ours
//! # Deviations
//! where persons have several rows nothing moves: a person in two classes counts in both, and moving a row can break
//! either in ways that only counting both anew would show; above 300,000 distinct rows less is tried, above a million
//! nothing but the cuts themselves
//! # Cost
//! O(d² n log n) for the cuts, times the log of what a node can be cut into where nodes look ahead; each round of moves asks an
//! index over boxes once per row at the edge of its class

mod index;
mod moves;
mod split;

use kohort_model::spec::MondrianSpec;
use rayon::prelude::*;

use super::{Classes, KeepTree, Mondrian, Partitioner, Task, Unreachable};

/// What a table is worth: the larger, the less there is to gain per row and the longer everybody waits.
#[derive(Clone, Copy, Debug)]
struct Effort {
    /// Nodes of at most so many times k look ahead before they are cut.
    foresight: u64,
    /// Rounds of moving and cutting: the first gains most by far.
    rounds: usize,
}

impl Effort {
    fn for_rows(n_rows: usize) -> Effort {
        match n_rows {
            0..=300_000 => Effort { foresight: 256, rounds: 2 },
            300_001..=1_000_000 => Effort { foresight: 16, rounds: 1 },
            _ => Effort { foresight: 0, rounds: 0 },
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
        let mondrian = Mondrian { spec: MondrianSpec::default(), keep_tree: KeepTree::No }.partition(task)?;
        let mondrian: Vec<Vec<u32>> = (0..mondrian.len()).map(|class| mondrian.rows(class).to_vec()).collect();
        let effort = Effort::for_rows(task.rows.len());
        task.progress.begin("cut", task.rows.len() as u64);
        let mut classes = split::split(task, vec![(0..task.rows.len() as u32).collect()], effort.foresight);
        if loss(task, &mondrian) < loss(task, &classes) {
            classes = mondrian;
        }
        if task.rules.person_of_row().is_none() {
            for round in 1..=effort.rounds {
                task.progress.begin(&format!("improve {round}/{}", effort.rounds), 0);
                let moved = moves::improve(task, &mut classes);
                classes = split::split(task, classes, effort.foresight);
                if !moved {
                    break;
                }
            }
        }
        Ok(Classes::from_lists(classes))
    }
}

/// What classes lose in all.
fn loss(task: &Task<'_>, classes: &[Vec<u32>]) -> f64 {
    let of_classes: Vec<f64> = classes.par_iter().map(|rows| index::Outline::of(task, rows).loss()).collect();
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
