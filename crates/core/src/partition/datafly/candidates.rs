//! [`Candidates`]: the rows that are still open, grouped by their cells at the current levels.
//!
//! Levels nest, so a step only ever merges candidates; one that was not merged was refused before and is not asked
//! again.
//!
//! # Cost
//! Candidates are kept in the order of their cells, and a level keeps the order of codes. So a step leaves those that
//! agree up to its column side by side, and only they are sorted, by the columns after it.

use rayon::prelude::*;

use super::super::{Levels, Task};
use super::Step;
use crate::requirement::Tally;

/// From so many candidates on, work is shared between threads: for fewer, waking them takes longer.
const SHARED_CANDIDATES: usize = 1 << 12;

/// Open rows, grouped by their cells.
pub(super) struct Candidates<'a> {
    task: &'a Task<'a>,
    levels: &'a [Levels],
    reached: Vec<usize>,
    /// Candidate by candidate, the first code of its cell in each column; ascending.
    cells: Vec<u32>,
    /// The folded rows of each candidate.
    groups: Groups,
}

/// Lists of folded rows, one after the other.
#[derive(Default)]
struct Groups {
    rows: Vec<u32>,
    ends: Vec<u32>,
}

/// The classes that could stand, in the order they closed.
#[derive(Default)]
pub(super) struct Closed(Groups);

impl<'a> Candidates<'a> {
    /// The given folded rows as they are, ascending; those that can stand close at once.
    pub(super) fn new(task: &'a Task<'a>, levels: &'a [Levels], rows: &[u32], closed: &mut Closed) -> Self {
        let groups = Groups { rows: rows.to_vec(), ends: (1..=rows.len() as u32).collect() };
        let cells = rows.iter().flat_map(|&row| task.rows.cells(row)).copied().collect();
        let mut candidates = Candidates { task, levels, reached: vec![0; levels.len()], cells, groups };
        candidates.close(&vec![true; rows.len()], closed);
        candidates
    }

    /// How many candidates are open.
    pub(super) fn len(&self) -> usize {
        self.groups.len()
    }

    /// The open rows.
    pub(super) fn into_rows(self) -> Vec<u32> {
        self.groups.rows
    }

    /// Raises a column; candidates that are alike now become one, and close if they can stand.
    pub(super) fn generalize(&mut self, step: Step, closed: &mut Closed) {
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
        let (mut groups, mut cells_of_groups, mut merged) = (Groups::default(), Vec::new(), Vec::new());
        for alike in order.chunk_by(|&a, &b| cells(a) == cells(b)) {
            groups.push(alike.iter().flat_map(|&part| self.groups.get(part as usize)).copied());
            cells_of_groups.extend_from_slice(cells(alike[0]));
            merged.push(alike.len() > 1);
        }
        self.groups = groups;
        self.cells = cells_of_groups;
        self.close(&merged, closed);
    }

    /// The step that raises the column with most distinct cells by one level; the first of equals. A column at its
    /// top has one cell, so while there are two candidates it is another.
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

    /// Moves the candidates that can stand to the closed classes; only new ones are asked.
    fn close(&mut self, new: &[bool], closed: &mut Closed) {
        let (task, groups) = (self.task, &self.groups);
        let may_close = |tally: &mut Tally<'_>, candidate: usize| {
            new[candidate] && task.stands(tally, groups.get(candidate).iter().copied())
        };
        let may_close: Vec<bool> = if new.len() < SHARED_CANDIDATES {
            let mut tally = Tally::new(task.rules);
            (0..new.len()).map(|candidate| may_close(&mut tally, candidate)).collect()
        } else {
            (0..new.len()).into_par_iter().map_init(|| Tally::new(task.rules), may_close).collect()
        };
        let n_columns = self.levels.len();
        let (mut open, mut cells) = (Groups::default(), Vec::new());
        for (candidate, closes) in may_close.into_iter().enumerate() {
            let rows = groups.get(candidate).iter().copied();
            if closes {
                closed.0.push(rows);
            } else {
                open.push(rows);
                cells.extend_from_slice(&self.cells[candidate * n_columns..][..n_columns]);
            }
        }
        self.groups = open;
        self.cells = cells;
    }
}

impl Closed {
    /// How many folded rows are in a class.
    pub(super) fn n_rows(&self) -> usize {
        self.0.rows.len()
    }

    /// How many classes there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The folded rows of a class.
    pub(super) fn get(&self, class: usize) -> &[u32] {
        self.0.get(class)
    }

    /// The rows, class after class, and where each class ends.
    pub(super) fn into_parts(self) -> (Vec<u32>, Vec<u32>) {
        (self.0.rows, self.0.ends)
    }
}

impl Groups {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn get(&self, group: usize) -> &[u32] {
        let start = if group == 0 { 0 } else { self.ends[group - 1] };
        &self.rows[start as usize..self.ends[group] as usize]
    }

    /// Appends a group, its rows in ascending order.
    fn push(&mut self, rows: impl IntoIterator<Item = u32>) {
        let start = self.rows.len();
        self.rows.extend(rows);
        self.rows[start..].sort_unstable();
        self.ends.push(self.rows.len() as u32);
    }
}
