//! [`Mondrian`]: multidimensional partitioning by median cuts.
//!
//! # Guarantee
//! every class satisfies the rules, or `Unreachable`
//! # Paper
//! `[LDR06]`; in `[SMP10]` section 2.2
//! # Deviations
//! ties between equally wide columns: the first wins, so output is deterministic; categories are cut along their
//! hierarchy (see `cut`); relaxed cuts deal whole folded rows, so equal rows stay together
//! # Cost
//! O(n log n) time, packed rows split in place; nodes are tasks on the heap, so depth costs no stack

use std::sync::Mutex;

use kohort_model::spec::{Choose, Cuts, MondrianSpec};
use rayon::Scope;

use super::cut::{Cut, candidates, count_runs};
use super::{Classes, CutNode, CutTree, Partitioner, Task, Unreachable};
use crate::encode::{Domain, Layout, Packed};
use crate::lists::Lists;
use crate::requirement::Tally;

/// Nodes with more rows than this are shared between threads.
const SHARED_NODE: usize = 1 << 14;

/// Nodes with at most this many rows compute the bounds of every column again. Larger nodes do so only when they have
/// shrunk to an eighth since the last time. In between, columns that were not cut keep the bounds of the larger node:
/// in a node of thousands of rows these are seldom wrong, and finding them costs a pass over memory.
const FRESH_BOUNDS: usize = 1 << 9;

/// The number of words in a row that is not packed. Its codes are looked up by the row's number.
const LOOKED_UP: usize = 0;

/// Multidimensional partitioning by median cuts.
#[derive(Clone, Copy, Debug)]
pub struct Mondrian {
    /// How it cuts.
    pub spec: MondrianSpec,
    /// Whether the tree of cuts is handed out with the classes.
    pub keep_tree: KeepTree,
}

/// Whether the tree of cuts is handed out with the classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepTree {
    /// The tree is kept.
    Yes,
    /// The tree is not kept.
    No,
}

impl Partitioner for Mondrian {
    fn name(&self) -> &'static str {
        "mondrian"
    }

    fn partition(&self, task: &Task<'_>) -> Result<Classes, Unreachable> {
        task.check()?;
        let layout = Layout::new(&n_codes(task));
        Ok(match layout.words() {
            0..=1 => self.run::<1>(task, &layout),
            2 => self.run::<2>(task, &layout),
            3..=4 => self.run::<4>(task, &layout),
            5..=16 => self.run::<16>(task, &layout),
            17..=64 => self.run::<64>(task, &layout),
            // Rows of more than 4,096 bits cost more to move than to look up.
            _ => self.run::<LOOKED_UP>(task, &layout),
        })
    }
}

impl Mondrian {
    fn run<const W: usize>(&self, task: &Task<'_>, layout: &Layout) -> Classes {
        let n_rows = task.rows.len();
        let mut packed: Vec<Packed<W>> = {
            use rayon::prelude::*;
            (0..n_rows as u32)
                .into_par_iter()
                .map(|row| {
                    let cells = task.rows.cells(row);
                    let words = if W == LOOKED_UP { [0; W] } else { layout.pack(|column| cells[column]) };
                    Packed { words, row, weight: task.rows.weight(row) }
                })
                .collect()
        };
        task.progress.begin("partition", n_rows as u64);
        let found = Mutex::new(Found::default());
        let search = Cutting { mondrian: self, task, layout, found: &found };
        let bounds = Bounds {
            of_columns: n_codes(task).iter().map(|&n| (0, n.saturating_sub(1))).collect(),
            n_rows: usize::MAX,
        };
        let weight = task.rows.n_members() as u64;
        rayon::scope(|scope| search.work(scope, Node { first: 0, depth: 0, weight, bounds, rows: &mut packed }));
        let found = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        found.into_classes(&packed, self.keep_tree)
    }
}

fn n_codes(task: &Task<'_>) -> Vec<u32> {
    task.domains.iter().map(Domain::n_codes).collect()
}

/// Rows of the whole from `first` on, not yet cut.
struct Node<'p, const W: usize> {
    first: u32,
    depth: usize,
    weight: u64,
    bounds: Bounds,
    rows: &'p mut [Packed<W>],
}

/// The first and last code of each column, exact when the node had `n_rows` rows.
#[derive(Clone)]
struct Bounds {
    of_columns: Vec<(u32, u32)>,
    n_rows: usize,
}

/// A cut that was made: the column, and rows and weight of the first side, which holds the codes `lo..=hi`.
struct Made {
    column: usize,
    lo: u32,
    hi: u32,
    n_first: usize,
    weight: u64,
}

impl Bounds {
    /// The bounds of the first side.
    fn within(mut self, made: &Made) -> Bounds {
        let (lo, hi) = self.of_columns[made.column];
        self.of_columns[made.column] = (lo.max(made.lo), hi.min(made.hi));
        self
    }

    /// The bounds of the second side. They are narrower only if the first side was at an end of the column.
    fn without(&self, made: &Made) -> Bounds {
        let mut bounds = self.clone();
        let (lo, hi) = bounds.of_columns[made.column];
        // A relaxed cut leaves its last value on both sides, so the bound includes that value.
        bounds.of_columns[made.column] = match (made.lo <= lo, made.hi >= hi) {
            (true, false) => (made.hi.max(lo), hi),
            (false, true) => (lo, made.lo),
            _ => (lo, hi),
        };
        bounds
    }
}

/// The results of all threads: where classes start, and cuts by their first, middle and last row.
#[derive(Default)]
struct Found {
    starts: Vec<u32>,
    cuts: Vec<CutNode>,
}

impl Found {
    /// Threads report in any order; positions in the row sequence put everything back into one.
    fn into_classes<const W: usize>(mut self, packed: &[Packed<W>], keep_tree: KeepTree) -> Classes {
        use rayon::prelude::*;
        self.starts.par_sort_unstable();
        self.starts.push(packed.len() as u32);
        let tree = (keep_tree == KeepTree::Yes).then(|| {
            let class_at = |row: u32| self.starts.partition_point(|&start| start < row) as u32;
            let mut nodes: Vec<CutNode> = self.cuts.par_iter().map(|cut| cut.moved(class_at)).collect();
            nodes.par_sort_unstable_by_key(|node| (node.first, std::cmp::Reverse(node.end)));
            CutTree { nodes }
        });
        let rows = packed.par_iter().map(|row| row.row).collect();
        Classes { tree, ..Classes::new(Lists::new(rows, self.starts)) }
    }
}

#[derive(Clone, Copy)]
struct Cutting<'a, const W: usize> {
    mondrian: &'a Mondrian,
    task: &'a Task<'a>,
    layout: &'a Layout,
    found: &'a Mutex<Found>,
}

/// Memory that one thread reuses from node to node.
struct Scratch<'r> {
    tried: Vec<bool>,
    runs: Vec<(u32, u64)>,
    histogram: Vec<u64>,
    cuts: Vec<Cut>,
    sides: Option<(Tally<'r>, Tally<'r>)>,
}

impl<'a, const W: usize> Cutting<'a, W> {
    #[inline]
    fn code(&self, row: &Packed<W>, column: usize) -> u32 {
        if W == LOOKED_UP { self.task.rows.cells(row.row)[column] } else { self.layout.code(&row.words, column) }
    }

    /// Cuts a node until nothing of it can be cut, handing large parts to other threads.
    fn work<'s>(self, scope: &Scope<'s>, node: Node<'s, W>)
    where
        'a: 's,
    {
        let rules = self.task.rules;
        let n_columns = self.layout.n_columns();
        let mut scratch = Scratch {
            tried: vec![false; n_columns],
            runs: Vec::new(),
            histogram: Vec::new(),
            cuts: Vec::new(),
            sides: (!rules.weight_suffices()).then(|| (Tally::new(rules), Tally::new(rules))),
        };
        let mut found = Found::default();
        let mut n_placed = 0;
        let mut open = vec![node];
        while let Some(mut node) = open.pop() {
            // The classes of cancelled work are thrown away, so it does not matter that they stay large.
            let is_cancelled = self.task.progress.is_cancelled();
            let Some(made) = (!is_cancelled).then(|| self.cut(&mut scratch, &mut node)).flatten() else {
                found.starts.push(node.first);
                n_placed += node.rows.len() as u64;
                continue;
            };
            let middle = node.first + made.n_first as u32;
            if self.mondrian.keep_tree == KeepTree::Yes {
                let end = node.first + node.rows.len() as u32;
                found.cuts.push(CutNode { first: node.first, middle, end, column: made.column as u32 });
            }
            let (depth, weight, rest) = (node.depth + 1, node.weight - made.weight, node.bounds.without(&made));
            let inside = node.bounds.within(&made);
            let (first_rows, second_rows) = node.rows.split_at_mut(made.n_first);
            for side in [
                Node { first: node.first, depth, weight: made.weight, bounds: inside, rows: first_rows },
                Node { first: middle, depth, weight, bounds: rest, rows: second_rows },
            ] {
                if side.rows.len() > SHARED_NODE {
                    scope.spawn(move |scope| self.work(scope, side));
                } else {
                    open.push(side);
                }
            }
        }
        self.task.progress.advance(n_placed);
        let mut all = self.found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        all.starts.append(&mut found.starts);
        all.cuts.append(&mut found.cuts);
    }

    /// Cuts a node in two if it can be, and moves the first side's rows to the front.
    fn cut(&self, scratch: &mut Scratch<'_>, node: &mut Node<'_, W>) -> Option<Made> {
        // Two sides of k persons need at least 2k rows.
        if node.weight < 2 * u64::from(self.task.rules.k()) {
            return None;
        }
        if node.rows.len() <= FRESH_BOUNDS.max(node.bounds.n_rows / 8) {
            self.find_bounds(&mut node.bounds, node.rows);
        }
        for (tried, (lo, hi)) in scratch.tried.iter_mut().zip(&node.bounds.of_columns) {
            *tried = lo == hi;
        }
        while let Some(column) = self.next_column(scratch, node) {
            scratch.tried[column] = true;
            let cells = node.rows.iter().map(|row| (self.code(row, column), row.weight));
            count_runs(cells, node.bounds.of_columns[column], &mut scratch.histogram, &mut scratch.runs);
            if scratch.runs.len() < 2 {
                continue;
            }
            candidates(&self.task.domains[column], &scratch.runs, node.weight, &mut scratch.cuts);
            for position in 0..scratch.cuts.len() {
                let cut = scratch.cuts[position];
                if self.mondrian.spec.cuts == Cuts::Relaxed && self.task.domains[column].tree().is_none() {
                    if let Some(made) = self.deal(scratch, node, column, cut) {
                        return Some(made);
                    }
                    continue;
                }
                let inside = |_, row: &Packed<W>| (cut.lo..=cut.hi).contains(&self.code(row, column));
                if self.both_stand(scratch, node.rows, (cut.weight, node.weight - cut.weight), inside) {
                    let n_first = self.split(node.rows, column, cut);
                    return Some(Made { column, lo: cut.lo, hi: cut.hi, n_first, weight: cut.weight });
                }
            }
        }
        None
    }

    fn find_bounds(&self, bounds: &mut Bounds, rows: &[Packed<W>]) {
        bounds.n_rows = rows.len();
        bounds.of_columns.fill((u32::MAX, 0));
        // Block by block, so that every column finds the rows in the cache; two chains at a time, so that neither
        // waits for the other.
        for block in rows.chunks(256) {
            for (column, bounds) in bounds.of_columns.iter_mut().enumerate() {
                let ((mut lo, mut hi), (mut other_lo, mut other_hi)) = (*bounds, *bounds);
                let mut pairs = block.chunks_exact(2);
                for pair in &mut pairs {
                    let code = self.code(&pair[0], column);
                    let other = self.code(&pair[1], column);
                    (lo, hi) = (lo.min(code), hi.max(code));
                    (other_lo, other_hi) = (other_lo.min(other), other_hi.max(other));
                }
                for row in pairs.remainder() {
                    let code = self.code(row, column);
                    (lo, hi) = (lo.min(code), hi.max(code));
                }
                *bounds = (lo.min(other_lo), hi.max(other_hi));
            }
        }
    }

    /// The next column to try: the widest, or the one whose turn it is.
    fn next_column(&self, scratch: &Scratch<'_>, node: &Node<'_, W>) -> Option<usize> {
        let n_columns = scratch.tried.len();
        match self.mondrian.spec.choose {
            Choose::RoundRobin => {
                (0..n_columns).map(|turn| (node.depth + turn) % n_columns).find(|&c| !scratch.tried[c])
            }
            Choose::Widest => {
                let untried = (0..n_columns).rev().filter(|&column| !scratch.tried[column]);
                let widths = untried.map(|column| {
                    let (lo, hi) = node.bounds.of_columns[column];
                    (self.task.domains[column].width(lo, hi), column)
                });
                // The last of equals, which is the first column.
                widths.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, column)| column)
            }
        }
    }

    /// Whether two sides of these weights may be classes: the rows for which `is_first` holds, by position, and the others.
    fn both_stand(
        &self,
        scratch: &mut Scratch<'_>,
        rows: &[Packed<W>],
        weights: (u64, u64),
        is_first: impl Fn(usize, &Packed<W>) -> bool,
    ) -> bool {
        if weights.0.min(weights.1) < u64::from(self.task.rules.k()) {
            return false;
        }
        let Some((first, second)) = &mut scratch.sides else { return true };
        first.clear();
        second.clear();
        for (position, row) in rows.iter().enumerate() {
            let side = if is_first(position, row) { &mut *first } else { &mut *second };
            self.task.rows.members(row.row).iter().for_each(|&member| side.add(member));
        }
        first.stands() && second.stands()
    }

    /// Moves the rows of the first side to the front; their number is returned.
    fn split(&self, rows: &mut [Packed<W>], column: usize, cut: Cut) -> usize {
        let mut n_first = 0;
        for position in 0..rows.len() {
            // No branch on the data: the swap happens either way, and only the count depends on it.
            let code = self.code(&rows[position], column);
            rows.swap(position, n_first);
            n_first += usize::from(code.wrapping_sub(cut.lo) <= cut.hi - cut.lo);
        }
        n_first
    }

    /// A relaxed cut: rows with the boundary value go to the side that has fewer so far. `None` if a side does not
    /// satisfy the rules.
    fn deal(&self, scratch: &mut Scratch<'_>, node: &mut Node<'_, W>, column: usize, cut: Cut) -> Option<Made> {
        let (rows, total) = (&mut *node.rows, node.weight);
        // The median is the last value of the first side, or the next value if the first side has less than half.
        let median = if cut.weight * 2 >= total {
            cut.hi
        } else {
            scratch.runs.iter().map(|run| run.0).find(|&code| code > cut.hi).unwrap_or(cut.hi)
        };
        rows.sort_unstable_by_key(|row| (self.code(row, column), row.row));
        let mut weight = 0;
        let mut n_first = 0;
        for row in rows.iter() {
            let code = self.code(row, column);
            if code > median || (code == median && weight * 2 >= total) {
                break;
            }
            weight += u64::from(row.weight);
            n_first += 1;
        }
        let stand = self.both_stand(scratch, rows, (weight, total - weight), |position, _| position < n_first);
        let made = Made { column, lo: self.code(&rows[0], column), hi: median, n_first, weight };
        (n_first < rows.len() && stand).then_some(made)
    }
}

#[cfg(test)]
mod tests;
