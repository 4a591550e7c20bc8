//! [`Candidates`]: the rows that are still open, grouped by their cells at the current levels.
//!
//! Levels nest, so a step only ever merges candidates. A candidate that was not merged was refused before, so it is not
//! checked again.
//!
//! # Cost
//! Candidates are kept in the order of their cells, and a level keeps the order of codes. So a step leaves those that
//! agree up to its column side by side, and only they are sorted, by the columns after it.

use rayon::prelude::*;

use super::super::{Levels, Task};
use crate::lists::Lists;
use crate::requirement::Tally;

/// With at least this many candidates, work is shared between threads. With fewer, waking the threads takes longer than
/// the work.
const SHARED_CANDIDATES: usize = 1 << 12;

/// Open rows, grouped by their cells, and the classes that closed.
pub(super) struct Candidates<'a> {
    task: &'a Task<'a>,
    levels: &'a [Levels],
    reached: Vec<usize>,
    /// Candidate by candidate, the first code of its cell in each column; ascending.
    cells: Vec<u32>,
    /// The folded rows of each candidate, ascending.
    open: Lists,
    /// The classes that satisfy the rules, in the order in which they closed.
    closed: Lists,
}

/// One step of generalization: from here on the column is shown at this level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) column: usize,
    pub(super) level: usize,
}

impl<'a> Candidates<'a> {
    /// The given folded rows as they are, ascending. Candidates that satisfy the rules close at once.
    pub(super) fn new(task: &'a Task<'a>, levels: &'a [Levels], rows: &[u32]) -> Self {
        let cells = rows.iter().flat_map(|&row| task.rows.cells(row)).copied().collect();
        let (open, closed) = (rows.iter().map(|&row| [row]).collect(), Lists::default());
        let mut candidates = Candidates { task, levels, reached: vec![0; levels.len()], cells, open, closed };
        candidates.close(&vec![true; rows.len()]);
        candidates
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn n_closed_rows(&self) -> usize {
        self.closed.items().len()
    }

    /// The classes that closed, and the rows that are still open.
    pub(super) fn finish(self) -> (Lists, Vec<u32>) {
        (self.closed, self.open.items().to_vec())
    }

    /// Raises a column. Candidates that now look alike become one, and close if they satisfy the rules.
    pub(super) fn generalize(&mut self, step: Step) {
        let Step { column, level } = step;
        self.reached[column] = level;
        let n_columns = self.levels.len();
        for first in self.cells.iter_mut().skip(column).step_by(n_columns) {
            *first = self.levels[column].cell(level, *first).0;
        }
        let cells = |candidate: u32| &self.cells[candidate as usize * n_columns..][..n_columns];
        let agree = |a: &u32, b: &u32| cells(*a)[..=column] == cells(*b)[..=column];
        let sort = |side_by_side: &mut [u32]| {
            side_by_side.sort_unstable_by(|&a, &b| cells(a)[column + 1..].cmp(&cells(b)[column + 1..]));
        };
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        if order.len() < SHARED_CANDIDATES {
            order.chunk_by_mut(agree).for_each(sort);
        } else {
            order.par_chunk_by_mut(agree).for_each(sort);
        }
        let (mut open, mut cells_of_open, mut merged) = (Lists::default(), Vec::new(), Vec::new());
        for alike in order.chunk_by(|&a, &b| cells(a) == cells(b)) {
            let mut rows: Vec<u32> = alike.iter().flat_map(|&part| self.open.get(part as usize)).copied().collect();
            rows.sort_unstable();
            open.push(rows);
            cells_of_open.extend_from_slice(cells(alike[0]));
            merged.push(alike.len() > 1);
        }
        (self.open, self.cells) = (open, cells_of_open);
        self.close(&merged);
    }

    /// The step that raises the column with most distinct cells by one level; the first of equals. A column at its top
    /// has only one cell, so as long as there are two candidates, such a column is never chosen.
    pub(super) fn most_distinct(&self) -> Step {
        let n_columns = self.levels.len();
        let distinct: Vec<usize> = (0..n_columns)
            .into_par_iter()
            .map(|column| {
                let firsts = self.cells.iter().skip(column).step_by(n_columns);
                let mut seen = vec![false; self.task.domains[column].n_codes() as usize];
                firsts.filter(|&&first| !std::mem::replace(&mut seen[first as usize], true)).count()
            })
            .collect();
        let column = (0..n_columns).max_by_key(|&column| (distinct[column], std::cmp::Reverse(column))).unwrap_or(0);
        Step { column, level: self.reached[column] + 1 }
    }

    /// Closes the candidates that satisfy the rules. Only new candidates are checked.
    fn close(&mut self, new: &[bool]) {
        let task = self.task;
        let may_close = |tally: &mut Tally<'_>, candidate: usize| {
            new[candidate] && task.stands(tally, self.open.get(candidate).iter().copied())
        };
        let may_close: Vec<bool> = if new.len() < SHARED_CANDIDATES {
            let mut tally = Tally::new(task.rules);
            (0..new.len()).map(|candidate| may_close(&mut tally, candidate)).collect()
        } else {
            (0..new.len()).into_par_iter().map_init(|| Tally::new(task.rules), may_close).collect()
        };
        let n_columns = self.levels.len();
        let (mut open, mut cells) = (Lists::default(), Vec::new());
        for (candidate, closes) in may_close.into_iter().enumerate() {
            let rows = self.open.get(candidate).iter().copied();
            if closes {
                self.closed.push(rows);
            } else {
                open.push(rows);
                cells.extend_from_slice(&self.cells[candidate * n_columns..][..n_columns]);
            }
        }
        (self.open, self.cells) = (open, cells);
    }
}
