//! [`Lookup`]: the class of one row, built from the rows below its cell.
//!
//! Levels nest, so every row that ever shares a candidate with this one lies below its cell, and so does everything
//! that decides whether such a row closed earlier. The cell is followed up through the steps; where it widens, the rows
//! it gains go through the earlier steps by themselves, and those that did not close join the candidate.
//!
//! # Guarantee
//! in a task of one block, exactly the class that the whole run with the same steps closes, or `None` for a leftover: which class takes those
//! in depends on all others, so whoever needs it keeps it from the whole run
//! # Paper
//! `[EPS+12]` section 5.2
//! # Deviations
//! the paper adds every row below the cell, those in classes of their own too, so that its groups overlap and one
//! answer taken from another singles people out; here closed rows are not added
//! # Cost
//! the rows below the class's cell, times the steps until it closes; rows are found by leaps over their sorted order

use super::super::{Levels, Task};
use super::candidates::{Candidates, Closed};
use super::{Step, continued, levels};
use crate::encode::Rows;
use crate::requirement::Tally;

/// Finds classes one by one, under fixed steps.
pub struct Lookup<'a> {
    task: &'a Task<'a>,
    levels: Vec<Levels>,
    steps: Vec<Step>,
}

impl<'a> Lookup<'a> {
    /// Under the steps that the whole run was given, or found.
    pub fn new(task: &'a Task<'a>, steps: &[Step]) -> Lookup<'a> {
        let levels = levels(task);
        let steps = continued(&levels, steps);
        Lookup { task, levels, steps }
    }

    /// The folded rows of the class that a folded row is in, ascending; `None` for a leftover.
    pub fn class_of(&self, row: u32) -> Option<Vec<u32>> {
        let mut tally = Tally::new(self.task.rules);
        let mut class = vec![row];
        if self.task.stands(&mut tally, class.iter().copied()) {
            return Some(class);
        }
        let mut cell: Vec<(u32, u32)> = self.task.rows.cells(row).iter().map(|&code| (code, code)).collect();
        for (position, step) in self.steps.iter().enumerate() {
            let (lo, hi) = cell[step.column];
            let wider = self.levels[step.column].cell(step.level, lo);
            let mut gained = Vec::new();
            let before = (wider.0 < lo).then(|| (wider.0, lo - 1));
            let after = (hi < wider.1).then(|| (hi + 1, wider.1));
            for beside in before.into_iter().chain(after) {
                cell[step.column] = beside;
                gained.extend(rows_in(self.task.rows, &cell));
            }
            cell[step.column] = wider;
            gained.sort_unstable();
            let open = self.open_after(&self.steps[..position], &gained);
            if !open.is_empty() {
                class.extend(open);
                if self.task.stands(&mut tally, class.iter().copied()) {
                    class.sort_unstable();
                    return Some(class);
                }
            }
        }
        None
    }

    /// The given rows without those that close among themselves during the given steps.
    fn open_after(&self, steps: &[Step], rows: &[u32]) -> Vec<u32> {
        let mut closed = Closed::default();
        let mut candidates = Candidates::new(self.task, &self.levels, rows, &mut closed);
        for &step in steps {
            if candidates.len() < 2 {
                break;
            }
            candidates.generalize(step, &mut closed);
        }
        candidates.into_rows()
    }
}

/// The folded rows whose codes lie in these intervals. Folded rows are sorted by their codes, so where one lies outside
/// the next that could lie inside is known and found by binary search.
fn rows_in(rows: &Rows, intervals: &[(u32, u32)]) -> Vec<u32> {
    let mut found = Vec::new();
    let mut row = 0;
    while row < rows.len() as u32 {
        let cells = rows.cells(row);
        let inside = |column: usize| (intervals[column].0..=intervals[column].1).contains(&cells[column]);
        let Some(outside) = (0..cells.len()).find(|&column| !inside(column)) else {
            found.push(row);
            row += 1;
            continue;
        };
        let mut next: Vec<u32> = intervals.iter().map(|interval| interval.0).collect();
        if cells[outside] < intervals[outside].0 {
            next[..outside].copy_from_slice(&cells[..outside]);
        } else {
            // Past the end in this column: the last column before it that has a next code moves on.
            let Some(moving) = (0..outside).rev().find(|&column| cells[column] < intervals[column].1) else { break };
            next[..=moving].copy_from_slice(&cells[..=moving]);
            next[moving] += 1;
        }
        row = first_from(rows, row, &next);
    }
    found
}

/// The first folded row after `row` whose codes are not before these.
fn first_from(rows: &Rows, row: u32, codes: &[u32]) -> u32 {
    let (mut before, mut end) = (row, rows.len() as u32);
    while end - before > 1 {
        let middle = before + (end - before) / 2;
        if rows.cells(middle) < codes { before = middle } else { end = middle }
    }
    end
}
