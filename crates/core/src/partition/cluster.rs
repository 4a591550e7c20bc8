//! [`Cluster`]: single-pass clustering.
//!
//! # Guarantee
//! every class satisfies the rules, or `Unreachable`; nobody is left out unless the task allows it and joining a class
//! would lose more
//! # Paper
//! CDGH as in `[NCN08]`, algorithm 2, for one table
//! # Deviations
//! The paper leaves the order of persons open. Rows come sorted by their cells, the column with fewest values first: a
//! change there widens a box most, so it should happen least often. On Adult at k = 5 that nearly halves the loss of
//! sorting by the columns as they come. The nearest cluster is the one where the loss of all its rows together grows
//! least. The paper takes the one with the least loss per row afterwards, which on Adult loses 1 to 3 % more at k = 5
//! and 10, and at k = 100 up to 2 % more or less, depending on the threshold. The threshold bounds the loss per row, as
//! in the paper. A cluster leaves as soon as it satisfies the rules, not only with more than k persons, and a row that
//! satisfies them by itself is a class of its own. For clusters that are not full at the end see `place`.
//! # Cost
//! a row is compared with at most `cluster_limit` boxes, by one thread; then see `place`

mod group;
mod place;

use std::ops::RangeInclusive;

use rayon::prelude::*;

use super::{Classes, Partitioner, Task, Unreachable};
use crate::ranks::places;
use group::{Group, Judge};
use place::place;

/// The threshold if the spec gives none. On Adult, a census and a survey, thresholds from 0.05 to 0.3 differ in loss by
/// less than 15 %. On people who are nearly unique, 0.15 of seven columns is more than a whole column, and loses four
/// times as much at k = 2.
const DEFAULT_THRESHOLD: f64 = 0.1;

/// If the spec gives no threshold, a row joins a cluster only if it loses less than this share of one column by that, however
/// many columns there are.
const LESS_THAN_A_COLUMN: f64 = 0.9;

/// The limit if the spec gives none: at least the paper's, and more if there are few rows, because every further open
/// cluster lowers the loss but is compared with every row.
const DEFAULT_LIMITS: RangeInclusive<usize> = 150..=1000;

/// How many comparisons of a row with a cluster a pass may take under the default limit.
const COMPARISONS: usize = 1 << 25;

/// Progress is reported after this many rows.
const TOLD_EVERY: usize = 1 << 12;

/// Single-pass clustering.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cluster {
    /// The largest loss, as the mean over its columns, at which a row joins a cluster rather than open another.
    pub threshold: Option<f64>,
    /// The largest number of open clusters. When it is reached, a row joins the nearest cluster at any loss.
    pub cluster_limit: Option<u32>,
}

impl Partitioner for Cluster {
    fn name(&self) -> &'static str {
        "cluster"
    }

    fn partition(&self, task: &Task<'_>) -> Result<Classes, Unreachable> {
        task.check()?;
        task.progress.begin("partition", task.rows.len() as u64);
        let judge = Judge::new(task);
        let order = order(task);
        let groups = self.pass(task, &order, &judge);
        Ok(place(task, judge, &places(&order), groups))
    }
}

impl Cluster {
    /// The full clusters, in the order in which they became full, and the clusters that did not.
    fn pass<'a>(&self, task: &'a Task<'a>, order: &[u32], judge: &Judge<'a>) -> (Vec<Group<'a>>, Vec<Group<'a>>) {
        let affordable = (COMPARISONS / order.len().max(1)).clamp(*DEFAULT_LIMITS.start(), *DEFAULT_LIMITS.end());
        let limit = self.cluster_limit.map_or(affordable, |limit| limit.max(1) as usize);
        let n_columns = task.domains.len() as f64;
        let default = || (DEFAULT_THRESHOLD * n_columns).min(LESS_THAN_A_COLUMN);
        let most = self.threshold.map_or_else(default, |threshold| threshold * n_columns);
        let (mut full, mut open): (Vec<Group<'a>>, Vec<Group<'a>>) = (Vec::new(), Vec::new());
        for (position, &row) in order.iter().enumerate() {
            if position % TOLD_EVERY == TOLD_EVERY - 1 {
                task.progress.advance(TOLD_EVERY as u64);
            }
            if task.progress.is_cancelled() {
                break;
            }
            let mut alone = Group::of_row(task, row, position as u32);
            if judge.stands(&mut alone) {
                full.push(alone.closed());
                continue;
            }
            match judge.nearest(&open, &alone) {
                Some(nearest) if nearest.width <= most || open.len() >= limit => {
                    let joined = &mut open[nearest.position];
                    joined.absorb(task, alone, nearest.width);
                    joined.met = position as u32;
                    if judge.stands(joined) {
                        full.push(open.swap_remove(nearest.position).closed());
                    }
                }
                _ => open.push(alone),
            }
        }
        task.progress.advance((task.rows.len() % TOLD_EVERY) as u64);
        (full, open)
    }
}

/// All rows, sorted by their cells, the column with fewest values first.
fn order(task: &Task<'_>) -> Vec<u32> {
    let mut columns: Vec<usize> = (0..task.domains.len()).collect();
    columns.sort_by_key(|&column| task.domains[column].n_codes());
    let mut order: Vec<u32> = (0..task.rows.len() as u32).collect();
    order.par_sort_unstable_by(|&a, &b| {
        let (a, b) = (task.rows.cells(a), task.rows.cells(b));
        columns.iter().map(|&column| a[column]).cmp(columns.iter().map(|&column| b[column]))
    });
    order
}

#[cfg(test)]
mod tests;
