//! [`TopDown`]: groups are split around their two rows that are farthest apart, and groups that are then too small join
//! their neighbours.
//!
//! # Guarantee
//! every row is in a class and every class satisfies the rules, or `Unreachable`
//! # Paper
//! `[XWP+06]`; in `[SMP10]` section 2.2
//! # Deviations
//! Nothing is left to chance: the search for the seeds starts at the first row, and rows choose between the seeds in
//! the order of how sure they are, the undecided last. A row goes where the loss of all rows of the group grows least,
//! not that of the row alone, which also keeps the sides in balance. Groups are split while two classes of k could come
//! of it. All requirements count, not only k: a split whose sides do not satisfy them gives way to others (see
//! `split`). Small groups look for neighbours among all groups, the small ones included, through an index (see
//! `join`).
//! # Cost
//! O(n log n) for a group, and splits that peel off little can't follow each other for long: after [`PATIENCE`] splits
//! a group that has not halved is cut near the middle, at most three times until it has. So the depth is O(log n), the
//! whole O(n log² n). Groups are tasks on the heap, so depth costs no stack

mod group;
mod join;
mod nearest;
mod split;

use std::sync::Mutex;

use rayon::Scope;

use super::{Classes, Partitioner, Task, Unreachable};
use group::Group;
use split::{Balance, Splitter};

/// Groups with more rows than this are shared between threads.
const SHARED_NODE: usize = 1 << 12;

/// A group that has not halved after this many splits is cut near the middle.
const PATIENCE: u32 = 8;

/// Splits around the two rows that are farthest apart.
#[derive(Clone, Copy, Debug)]
pub struct TopDown;

impl Partitioner for TopDown {
    fn name(&self) -> &'static str {
        "top-down"
    }

    fn partition(&self, task: &Task<'_>) -> Result<Classes, Unreachable> {
        task.check()?;
        if task.rows.is_empty() {
            return Ok(Classes::default());
        }
        task.progress.begin("partition", task.rows.len() as u64);
        let mut rows: Vec<u32> = (0..task.rows.len() as u32).collect();
        let parts = Mutex::new(Vec::new());
        let search = Splitting { task, parts: &parts };
        let whole = Node {
            first: 0,
            weight: task.rows.n_members() as u64,
            n_splits: 0,
            halve_at: rows.len() / 2,
            rows: &mut rows,
        };
        rayon::scope(|scope| search.work(scope, whole));
        let mut parts = parts.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        // Threads report in any order; positions in the row sequence put everything back into one.
        parts.sort_unstable_by_key(|part| part.first);
        let ends = parts.iter().skip(1).map(|part| part.first as usize).chain([rows.len()]);
        let groups = parts
            .iter()
            .zip(ends)
            .map(|(part, end)| Group::new(task, rows[part.first as usize..end].to_vec(), part.stands));
        Ok(Classes::from_lists(join::join_small(task, groups.collect())))
    }
}

/// Rows `first..` of the whole, which satisfy the rules and may be split.
struct Node<'p> {
    first: u32,
    weight: u64,
    /// Splits since it last halved, and the number of rows at which it has halved again.
    n_splits: u32,
    halve_at: usize,
    rows: &'p mut [u32],
}

/// Rows from `first` to the next part's, not split any more.
struct Part {
    first: u32,
    stands: bool,
}

#[derive(Clone, Copy)]
struct Splitting<'a> {
    task: &'a Task<'a>,
    parts: &'a Mutex<Vec<Part>>,
}

impl<'a> Splitting<'a> {
    /// Splits a node until nothing of it can be split, handing large parts to other threads.
    fn work<'s>(self, scope: &Scope<'s>, node: Node<'s>)
    where
        'a: 's,
    {
        let mut splitter = Splitter::new(self.task);
        let mut parts = Vec::new();
        let mut n_placed = 0;
        let mut open = vec![node];
        while let Some(mut node) = open.pop() {
            let balance = if node.n_splits >= PATIENCE { Balance::Forced } else { Balance::Free };
            let is_cancelled = self.task.progress.is_cancelled();
            let split = || splitter.split(node.rows, node.weight, balance);
            let Some(sides) = (!is_cancelled).then(split).flatten() else {
                n_placed += node.rows.len() as u64;
                parts.push(Part { first: node.first, stands: true });
                continue;
            };
            let mut first = node.first;
            for side in sides {
                let (rows, rest) = node.rows.split_at_mut(side.n_rows);
                node.rows = rest;
                if !side.stands {
                    n_placed += rows.len() as u64;
                    parts.push(Part { first, stands: false });
                    first += rows.len() as u32;
                    continue;
                }
                let halved = rows.len() <= node.halve_at;
                let next = Node {
                    first,
                    weight: side.weight,
                    n_splits: if halved { 0 } else { node.n_splits + 1 },
                    halve_at: if halved { rows.len() / 2 } else { node.halve_at },
                    rows,
                };
                first += next.rows.len() as u32;
                if next.rows.len() > SHARED_NODE {
                    scope.spawn(move |scope| self.work(scope, next));
                } else {
                    open.push(next);
                }
            }
        }
        self.task.progress.advance(n_placed);
        self.parts.lock().unwrap_or_else(std::sync::PoisonError::into_inner).append(&mut parts);
    }
}

#[cfg(test)]
mod tests;
