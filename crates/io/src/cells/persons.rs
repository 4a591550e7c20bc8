//! [`PersonsOfRows`]: the numbers of the persons of all rows of a file, in the order of the file, which does not name persons.

use super::spill::{Spill, SpillFile, SpillReader};
use crate::WriteError;

/// The persons of the rows of a file, on the disk.
#[derive(Debug)]
pub(super) struct PersonsOfRows<'s> {
    spill: &'s Spill,
    file: SpillFile,
}

impl<'s> PersonsOfRows<'s> {
    pub(super) fn new(spill: &'s Spill) -> Self {
        PersonsOfRows { spill, file: spill.file() }
    }

    /// Adds the persons of the next rows.
    pub(super) fn append(&mut self, persons: Vec<u32>) -> Result<(), WriteError> {
        self.spill.append(&mut self.file, vec![persons])
    }

    /// All persons from the first row on.
    pub(super) fn read(&self) -> PersonsReader<'_> {
        PersonsReader { reader: self.spill.read(&self.file), waiting: Vec::new() }
    }
}

/// Reads persons in the order of the rows.
pub(super) struct PersonsReader<'s> {
    reader: SpillReader<'s>,
    waiting: Vec<u32>,
}

impl PersonsReader<'_> {
    /// The persons of the next rows; of fewer if there are no more.
    pub(super) fn next(&mut self, n_rows: usize) -> Result<Vec<u32>, WriteError> {
        while self.waiting.len() < n_rows {
            let Some(frame) = self.reader.next_frame()? else { break };
            self.waiting.extend(frame.into_iter().flatten());
        }
        let rest = self.waiting.split_off(n_rows.min(self.waiting.len()));
        Ok(std::mem::replace(&mut self.waiting, rest))
    }
}
