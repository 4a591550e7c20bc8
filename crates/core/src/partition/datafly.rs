//! [`Datafly`]: generalizes one column by one level at a time; a class closes as soon as it satisfies the rules.
//!
//! At first every row is shown as it is. Rows with equal cells are a candidate, and a candidate that satisfies the rules
//! closes: it is a class and takes no part in later steps. Otherwise the column with most distinct values among the
//! remaining rows goes up by one level ([`Levels`]), until nothing remains or everything remaining is one candidate.
//! If rows come in blocks, each block takes its own steps and keeps its own leftovers.
//!
//! # Guarantee
//! every class satisfies the rules, or `Unreachable`; every row is in a class, except leftovers within the allowance
//! # Paper
//! `[EPS+12]` section 5.1, step 3; after `[Swe97]`
//! # Deviations
//! Candidates are also checked before the first step, so persons who are alike from the start are shown as they are. A k of
//! 0 or 1 is a small k: the person closes at once if nobody with the same cells asks for more. Among columns with equally
//! many values the first goes up. At the last level everything is one cell. Rows that remain join the class whose loss
//! grows least (more classes if one is not enough), or are left out if the task allows that and no requirement
//! compares classes with the whole release; the paper always hides them. t-closeness is measured against the whole table,
//! not the block. A class shows the smallest cells that hold it, never more than its levels do.
//! # Cost
//! a step sorts the candidates that remain; there are as many steps as all columns have levels

mod candidates;
mod leftover;
mod own_k;

use std::ops::Range;

pub use own_k::OwnK;
use rayon::prelude::*;

use super::{Classes, Levels, Partitioner, Task, Unreachable};
use crate::lists::Lists;
use candidates::Candidates;

/// Generalizes one column by one level at a time.
#[derive(Clone, Debug, Default)]
pub struct Datafly {
    /// Where each block of folded rows ends; empty if all rows are one block. The rows of each block are ascending, and
    /// satisfy the rules together.
    pub block_ends: Vec<u32>,
}

impl Partitioner for Datafly {
    fn name(&self) -> &'static str {
        "datafly"
    }

    fn partition(&self, task: &Task<'_>) -> Result<Classes, Unreachable> {
        task.check()?;
        task.progress.begin("partition", task.rows.len() as u64);
        let levels = levels(task);
        let blocks = self.blocks(task.rows.len() as u32).into_par_iter();
        let closed: Vec<(Lists, Vec<u32>)> =
            blocks.map(|block| close(task, &levels, &block.collect::<Vec<u32>>())).collect();
        let mut allowance = task.allowance;
        let mut classes = Lists::default();
        for (closed, remaining) in closed {
            let n_rows = closed.items().len() + remaining.len();
            let placed = leftover::place(&Task { allowance, ..*task }, closed, &remaining)?;
            if placed.items().len() < n_rows {
                allowance -= task.rows.weight_of(&remaining);
            }
            classes.append(&placed);
        }
        Ok(Classes::new(classes))
    }
}

impl Datafly {
    fn blocks(&self, n_rows: u32) -> Vec<Range<u32>> {
        let ends = if self.block_ends.is_empty() { &[n_rows] } else { self.block_ends.as_slice() };
        let starts = std::iter::once(0).chain(ends.iter().copied());
        starts.zip(ends).map(|(start, &end)| start..end).collect()
    }
}

/// Takes all steps on some folded rows, ascending. Returns the classes that closed, and the rows of the candidate that
/// does not satisfy the rules even with everything generalized.
fn close(task: &Task<'_>, levels: &[Levels], rows: &[u32]) -> (Lists, Vec<u32>) {
    let mut candidates = Candidates::new(task, levels, rows);
    task.progress.advance(candidates.n_closed_rows() as u64);
    // Two candidates differ in some column, so that column has a level left at which they become one.
    while candidates.len() > 1 {
        let n_rows = candidates.n_closed_rows();
        candidates.generalize(candidates.most_distinct());
        task.progress.advance((candidates.n_closed_rows() - n_rows) as u64);
    }
    candidates.finish()
}

fn levels(task: &Task<'_>) -> Vec<Levels> {
    task.domains.iter().map(Levels::of).collect()
}

#[cfg(test)]
mod tests;
