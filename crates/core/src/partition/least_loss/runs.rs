//! [`Runs`]: the rows of a set by their code in one column, and [`Slab`]: some of them, without which the box of the set is
//! narrower.

use std::ops::Range;

use crate::encode::bounds::{EMPTY, include, unite, width, width_of_both};
use crate::partition::Task;

/// Rows that share a code.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) code: u32,
    pub(super) weight: u64,
}

/// Runs of equal codes in ascending order, with their bounds in every column. Reused from set to set.
#[derive(Default)]
pub(super) struct Runs {
    n_columns: usize,
    keys: Vec<u64>,
    runs: Vec<Run>,
    /// Bounds of each run, of all runs before it, and of all runs from it on; a stride of `n_columns` each.
    of_run: Vec<(u32, u32)>,
    before: Vec<(u32, u32)>,
    from: Vec<(u32, u32)>,
}

impl Runs {
    /// Finds the runs of rows whose codes in a column are `lo` to `hi`: by counting where codes are dense, by sorting
    /// where they are sparse.
    pub(super) fn find(&mut self, task: &Task<'_>, rows: &[u32], column: usize, (lo, hi): (u32, u32)) {
        self.n_columns = task.rows.n_columns();
        self.runs.clear();
        self.of_run.clear();
        if (hi - lo) as usize <= rows.len() + 16 {
            self.count(task, rows, column, lo..hi + 1);
        } else {
            self.sort(task, rows, column);
        }
        self.unite_both_ways();
    }

    fn count(&mut self, task: &Task<'_>, rows: &[u32], column: usize, codes: Range<u32>) {
        let n_columns = self.n_columns;
        self.of_run.resize(codes.len() * n_columns, EMPTY);
        let lo = codes.start;
        self.runs.extend(codes.map(|code| Run { code, weight: 0 }));
        for &row in rows {
            let cells = task.rows.cells(row);
            let run = (cells[column] - lo) as usize;
            self.runs[run].weight += u64::from(task.rows.weight(row));
            include(&mut self.of_run[run * n_columns..], cells);
        }
        let mut n_kept = 0;
        for run in 0..self.runs.len() {
            if self.runs[run].weight > 0 {
                self.runs[n_kept] = self.runs[run];
                self.of_run.copy_within(run * n_columns..(run + 1) * n_columns, n_kept * n_columns);
                n_kept += 1;
            }
        }
        self.runs.truncate(n_kept);
    }

    fn sort(&mut self, task: &Task<'_>, rows: &[u32], column: usize) {
        self.keys.clear();
        self.keys.extend(rows.iter().map(|&row| u64::from(task.rows.cells(row)[column]) << 32 | u64::from(row)));
        self.keys.sort_unstable();
        for &key in &self.keys {
            let (code, row) = ((key >> 32) as u32, key as u32);
            if self.runs.last().is_none_or(|run| run.code != code) {
                self.runs.push(Run { code, weight: 0 });
                self.of_run.resize(self.runs.len() * self.n_columns, EMPTY);
            }
            let last = self.runs.len() - 1;
            self.runs[last].weight += u64::from(task.rows.weight(row));
            include(&mut self.of_run[last * self.n_columns..], task.rows.cells(row));
        }
    }

    fn unite_both_ways(&mut self) {
        let Self { n_columns, runs, of_run, before, from, .. } = self;
        let (n_columns, n_runs) = (*n_columns, runs.len());
        before.clear();
        before.resize((n_runs + 1) * n_columns, EMPTY);
        from.clear();
        from.resize((n_runs + 1) * n_columns, EMPTY);
        for run in 0..n_runs {
            let (done, next) = before.split_at_mut((run + 1) * n_columns);
            next[..n_columns].copy_from_slice(&done[run * n_columns..]);
            unite(&mut next[..n_columns], &of_run[run * n_columns..]);
        }
        for run in (0..n_runs).rev() {
            let (next, done) = from.split_at_mut((run + 1) * n_columns);
            let here = &mut next[run * n_columns..];
            here.copy_from_slice(&done[..n_columns]);
            unite(here, &of_run[run * n_columns..]);
        }
    }

    /// The runs in ascending order of their codes.
    pub(super) fn as_slice(&self) -> &[Run] {
        &self.runs
    }

    /// The run of a code that has one.
    pub(super) fn position(&self, code: u32) -> usize {
        self.runs.partition_point(|run| run.code < code)
    }

    fn stride<'a>(&self, bounds: &'a [(u32, u32)], run: usize) -> &'a [(u32, u32)] {
        &bounds[run * self.n_columns..][..self.n_columns]
    }

    pub(super) fn perimeter_before(&self, task: &Task<'_>, run: usize) -> f64 {
        width(task.domains, self.stride(&self.before, run))
    }

    /// The perimeter of all rows from a run on.
    pub(super) fn perimeter_from(&self, task: &Task<'_>, run: usize) -> f64 {
        width(task.domains, self.stride(&self.from, run))
    }

    pub(super) fn perimeter_without(&self, task: &Task<'_>, side: &Range<usize>) -> f64 {
        let (before, from) = (self.stride(&self.before, side.start), self.stride(&self.from, side.end));
        width_of_both(task.domains, before, from)
    }

    /// Grows bounds to hold some runs.
    pub(super) fn unite_into(&self, bounds: &mut [(u32, u32)], side: &Range<usize>) {
        side.clone().for_each(|run| unite(bounds, self.stride(&self.of_run, run)));
    }

    pub(super) fn perimeter_of(&self, task: &Task<'_>, side: &Range<usize>) -> f64 {
        let mut bounds = vec![EMPTY; self.n_columns];
        self.unite_into(&mut bounds, side);
        width(task.domains, &bounds)
    }

    pub(super) fn weight_of(&self, side: &Range<usize>) -> u64 {
        self.runs[side.clone()].iter().map(|run| run.weight).sum()
    }

    /// The codes of some runs, first and last.
    pub(super) fn interval(&self, side: &Range<usize>) -> (u32, u32) {
        (self.runs[side.start].code, self.runs[side.end - 1].code)
    }

    /// The runs below each child of the smallest node that contains them all; empty if the column has no tree.
    pub(super) fn children(&self, task: &Task<'_>, column: usize) -> Vec<Range<usize>> {
        let Some(tree) = task.domains[column].tree() else { return Vec::new() };
        let n_runs = self.runs.len();
        let firsts = tree.child_firsts(tree.common_ancestor(self.runs[0].code, self.runs[n_runs - 1].code));
        let mut children = Vec::new();
        let mut start = 0;
        while start < n_runs {
            let next = firsts.partition_point(|&first| first <= self.runs[start].code);
            let next_first = firsts.get(next).copied().unwrap_or(u32::MAX);
            let end = start + self.runs[start..].partition_point(|run| run.code < next_first);
            children.push(start..end);
            start = end;
        }
        children
    }
}

/// A slab at the end of an ordered column has at most this many values.
const MOST_VALUES: usize = 5;

/// Some runs of a column, or all but those.
#[derive(Clone)]
pub(super) enum Slab {
    These(Range<usize>),
    AllBut(Range<usize>),
}

/// The slabs of a column: what lies at one end of it, or below one child of the smallest node, or outside of it.
pub(super) fn slabs(task: &Task<'_>, runs: &Runs, column: usize) -> Vec<Slab> {
    let n_runs = runs.as_slice().len();
    let mut slabs = Vec::new();
    for n_values in 1..n_runs.min(MOST_VALUES + 1) {
        slabs.extend([Slab::These(0..n_values), Slab::These(n_runs - n_values..n_runs)]);
    }
    for child in runs.children(task, column) {
        slabs.extend([Slab::These(child.clone()), Slab::AllBut(child)]);
    }
    slabs
}

impl Slab {
    pub(super) fn weight(&self, runs: &Runs) -> u64 {
        match self {
            Slab::These(side) => runs.weight_of(side),
            Slab::AllBut(side) => runs.weight_of(&(0..side.start)) + runs.weight_of(&(side.end..runs.as_slice().len())),
        }
    }

    pub(super) fn perimeter_left(&self, task: &Task<'_>, runs: &Runs) -> f64 {
        match self {
            Slab::These(side) => runs.perimeter_without(task, side),
            Slab::AllBut(side) => runs.perimeter_of(task, side),
        }
    }

    pub(super) fn holds(&self, run: usize) -> bool {
        match self {
            Slab::These(side) => side.contains(&run),
            Slab::AllBut(side) => !side.contains(&run),
        }
    }
}
