//! [`Merge`]: sorted rows of numbers from many files as one sorted sequence.
//!
//! # Cost
//! one comparison per row with the smallest row of all other files; a look at the heap only where another file goes on

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::spill::{Spill, SpillFile, SpillReader};
use crate::WriteError;

/// The sorted rows of many files.
pub(super) struct Merge<'s> {
    runs: Vec<Run<'s>>,
    /// The next row of each run that has one.
    next: BinaryHeap<Reverse<(Vec<u32>, usize)>>,
}

/// Rows of one file, of which those before `at` were taken.
struct Run<'s> {
    reader: SpillReader<'s>,
    rows: Vec<Vec<u32>>,
    at: usize,
}

impl<'s> Merge<'s> {
    pub(super) fn new(spill: &'s Spill, files: &'s [SpillFile]) -> Result<Merge<'s>, WriteError> {
        let mut merge = Merge { runs: Vec::with_capacity(files.len()), next: BinaryHeap::new() };
        for (number, file) in files.iter().enumerate() {
            let mut run = Run { reader: spill.read(file), rows: Vec::new(), at: 0 };
            if run.fill()? {
                merge.next.push(Reverse((run.row(), number)));
            }
            merge.runs.push(run);
        }
        Ok(merge)
    }

    /// Appends the next rows to `columns`, until these have `most` rows or there is no row left.
    pub(super) fn take(&mut self, columns: &mut [Vec<u32>], most: usize) -> Result<(), WriteError> {
        while columns[0].len() < most {
            let Some(Reverse((_, number))) = self.next.pop() else { return Ok(()) };
            let other = self.next.peek().map(|Reverse((row, _))| row.as_slice());
            let run = &mut self.runs[number];
            loop {
                let first = run.at;
                let n_left = most - columns[0].len();
                while run.at < run.len() && run.at - first < n_left && other.is_none_or(|other| run.is_up_to(other)) {
                    run.at += 1;
                }
                for (column, rows) in columns.iter_mut().zip(&run.rows) {
                    column.extend_from_slice(&rows[first..run.at]);
                }
                if run.at < run.len() {
                    self.next.push(Reverse((run.row(), number)));
                    break;
                }
                if !run.fill()? {
                    break;
                }
            }
        }
        Ok(())
    }
}

impl Run<'_> {
    fn len(&self) -> usize {
        self.rows.first().map_or(0, Vec::len)
    }

    fn row(&self) -> Vec<u32> {
        self.rows.iter().map(|column| column[self.at]).collect()
    }

    /// Whether the next row is not after another.
    fn is_up_to(&self, other: &[u32]) -> bool {
        self.rows.iter().map(|column| &column[self.at]).le(other)
    }

    /// Reads the next rows of the file. False if there are none.
    fn fill(&mut self) -> Result<bool, WriteError> {
        while let Some(rows) = self.reader.next_frame()? {
            (self.rows, self.at) = (rows, 0);
            if self.len() > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn merged_rows_are_all_rows_in_order(
            runs in prop::collection::vec(prop::collection::vec((0u32..4, 0u32..4), 0..30), 0..6),
            most in 1usize..9,
            at_once in 1usize..7,
        ) {
            let parent = tempfile::tempdir().unwrap();
            let spill = Spill::below(parent.path(), 0).unwrap();
            let mut all: Vec<(u32, u32)> = runs.concat();
            all.sort_unstable();
            let files: Vec<SpillFile> = runs.into_iter().map(|mut rows| {
                rows.sort_unstable();
                let mut file = spill.file();
                for rows in rows.chunks(at_once) {
                    let columns = vec![rows.iter().map(|row| row.0).collect(), rows.iter().map(|row| row.1).collect()];
                    spill.append(&mut file, columns).unwrap();
                }
                file
            }).collect();
            let mut merge = Merge::new(&spill, &files).unwrap();
            let mut found = Vec::new();
            loop {
                let mut columns = vec![Vec::new(), Vec::new()];
                merge.take(&mut columns, most).unwrap();
                if columns[0].is_empty() {
                    break;
                }
                prop_assert!(columns[0].len() <= most);
                found.extend(columns[0].iter().copied().zip(columns[1].iter().copied()));
            }
            prop_assert_eq!(found, all);
        }
    }
}
