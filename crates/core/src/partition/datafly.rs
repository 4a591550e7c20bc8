//! [`Datafly`]: generalizes one column by one level at a time; a class leaves as soon as it can stand.
//!
//! Every row starts as it is. Rows with equal cells are a candidate, and a candidate that satisfies the rules closes:
//! it is a class and takes no part in what follows. Otherwise the column with most distinct values among the remaining
//! rows goes up by one level ([`Levels`]), until nothing remains or everything remaining is one candidate.
//!
//! The order of these steps can be computed first and handed in. Then the class of one row follows from the rows below
//! its cell alone, see [`Lookup`], and rows are taken block by block where not all shall be seen at once, see
//! [`Block`]: each block takes its own steps and keeps its own leftovers.
//!
//! # Guarantee
//! every class satisfies the rules, or `Unreachable`; every row is in a class, but for leftovers within the allowance
//! # Paper
//! `[EPS+12]` section 5.1, step 3, and section 5.2; after `[Swe97]`
//! # Deviations
//! Candidates are asked before the first step too, so that persons who are alike from the start are shown as they are.
//! A k of 0 or 1 is a small k: the person closes at once where nobody with the same cells asks for more. Ties between
//! columns: the first wins. Levels end with everything as one cell. What remains is joined to the class whose loss
//! grows least (more classes where one is not enough), or left out where the task allows that and no requirement
//! compares classes with the whole release; the paper hides it always. t-closeness is measured against the whole
//! table, not the block. A class shows the smallest cells that hold it, never more than its levels do.
//! # Cost
//! a step sorts the candidates that remain; there are as many steps as columns have levels together

mod block;
mod candidates;
mod leftover;
mod own_k;

use std::ops::Range;

pub use block::Block;
pub use own_k::OwnK;
use rayon::prelude::*;

use super::{Classes, Levels, Partitioner, Task, Unreachable, all_stand_together};
use candidates::{Candidates, Closed};

/// Generalizes one column by one level at a time.
#[derive(Clone, Debug, Default)]
pub struct Datafly {
    /// The steps to take; `None` finds them on the way. Steps that do not raise a column are passed over, and where
    /// they end below the top they are continued as by [`Datafly::steps`].
    pub steps: Option<Vec<Step>>,
    /// Where each block of folded rows ends; empty where all are one. The rows of each are ascending, and can stand
    /// together.
    pub block_ends: Vec<u32>,
}

/// One step of generalization: from here on the column is shown at this level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The column's position among the quasi columns.
    pub column: usize,
    /// Its new level.
    pub level: usize,
}

impl Partitioner for Datafly {
    fn name(&self) -> &'static str {
        "datafly"
    }

    fn partition(&self, task: &Task<'_>) -> Result<Classes, Unreachable> {
        if !all_stand_together(task) {
            return Err(Unreachable);
        }
        task.progress.begin("partition", task.rows.len() as u64);
        let levels = levels(task);
        let blocks = self.blocks(task.rows.len() as u32).into_par_iter();
        let runs: Vec<Run> = blocks.map(|block| self.run(task, &levels, &block.collect::<Vec<u32>>())).collect();
        let mut allowance = task.allowance;
        let (mut rows, mut starts) = (Vec::with_capacity(task.rows.len()), vec![0]);
        for run in runs {
            let remaining = task.rows.weight_of(&run.remaining);
            let n_rows = run.closed.n_rows() + run.remaining.len();
            let placed = leftover::place(&Task { allowance, ..*task }, run.closed, &run.remaining)?;
            if placed.rows.len() < n_rows {
                allowance -= remaining;
            }
            starts.extend(placed.starts[1..].iter().map(|start| start + rows.len() as u32));
            rows.extend(placed.rows);
        }
        Ok(Classes::new(rows, starts))
    }
}

impl Datafly {
    /// The steps that [`Partitioner::partition`] takes on this task, continued until every column is at its top, so
    /// that they serve other rows of the same domains too. Handing them in changes nothing about the classes. All rows
    /// are one block here.
    pub fn steps(&self, task: &Task<'_>) -> Vec<Step> {
        self.run(task, &levels(task), &(0..task.rows.len() as u32).collect::<Vec<u32>>()).steps
    }

    fn blocks(&self, n_rows: u32) -> Vec<Range<u32>> {
        let ends = if self.block_ends.is_empty() { &[n_rows] } else { self.block_ends.as_slice() };
        let starts = std::iter::once(0).chain(ends.iter().copied());
        starts.zip(ends).map(|(start, &end)| start..end).collect()
    }

    /// All steps on some folded rows, ascending.
    fn run(&self, task: &Task<'_>, levels: &[Levels], rows: &[u32]) -> Run {
        let mut closed = Closed::default();
        let mut candidates = Candidates::new(task, levels, rows, &mut closed);
        task.progress.advance(closed.n_rows() as u64);
        let mut take = |candidates: &mut Candidates<'_>, step: Step| {
            let n_rows = closed.n_rows();
            candidates.generalize(step, &mut closed);
            task.progress.advance((closed.n_rows() - n_rows) as u64);
        };
        let steps = match &self.steps {
            Some(steps) => {
                let steps = continued(levels, steps);
                steps.iter().for_each(|&step| take(&mut candidates, step));
                steps
            }
            None => {
                let mut steps = Vec::new();
                // Two candidates differ in some column, so that one of its levels is left to merge them.
                while candidates.len() > 1 {
                    let step = candidates.most_distinct();
                    take(&mut candidates, step);
                    steps.push(step);
                }
                continued(levels, &steps)
            }
        };
        Run { steps, closed, remaining: candidates.into_rows() }
    }
}

/// What came of all steps on one block.
struct Run {
    steps: Vec<Step>,
    closed: Closed,
    /// The one candidate that can't stand with everything generalized.
    remaining: Vec<u32>,
}

fn levels(task: &Task<'_>) -> Vec<Levels> {
    task.domains.iter().map(Levels::of).collect()
}

/// The steps that raise a column, then further ones, always the column with most cells, until all are at the top.
fn continued(levels: &[Levels], steps: &[Step]) -> Vec<Step> {
    let mut reached = vec![0; levels.len()];
    let mut taken = Vec::new();
    for &Step { column, level } in steps.iter().filter(|step| step.column < levels.len()) {
        let level = level.min(levels[column].top());
        if level > reached[column] {
            reached[column] = level;
            taken.push(Step { column, level });
        }
    }
    let below_top = |reached: &[usize]| {
        let columns = (0..levels.len()).filter(|&column| reached[column] < levels[column].top());
        columns.max_by_key(|&column| (levels[column].n_cells(reached[column]), std::cmp::Reverse(column)))
    };
    while let Some(column) = below_top(&reached) {
        reached[column] += 1;
        taken.push(Step { column, level: reached[column] });
    }
    taken
}

#[cfg(test)]
mod tests;
