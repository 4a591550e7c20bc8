//! The order of released rows.
//!
//! Rows stand by their released cells, so that their order tells nothing more: first by class, in the order of its
//! intervals, then by the copied cells, in the order of their texts. Rows that tie are equal in all that is released,
//! so swapping them leaves no trace.

use std::cmp::Ordering;

use kohort_model::{Column, NULL, Role, Table};
use rayon::prelude::*;

use super::Shown;
use crate::encode::Rows;
use crate::partition::Classes;

/// So many classes are given to a thread together: some releases have nearly as many as rows.
const CLASSES_AT_ONCE: usize = 64;

/// Source row and shown class of each released row, by released cells.
pub(super) fn by_class(table: &Table, rows: &Rows, classes: &Classes, shown: &Shown) -> Vec<(u32, u32)> {
    let is_copied = |column: &&Column| match column.role {
        Role::Sensitive | Role::Plain => true,
        Role::Identifier | Role::Quasi | Role::Key | Role::PersonK | Role::Drop => false,
    };
    let copied: Vec<Ranks<'_>> = table.columns.par_iter().filter(is_copied).map(Ranks::by_text).collect();
    let all: Vec<u32> = (0..shown.len() as u32).collect();
    let sorted: Vec<Vec<(u32, u32)>> = all
        .par_chunks(CLASSES_AT_ONCE)
        .map(|some| {
            let mut sequence = Vec::new();
            for &class in some {
                let first = sequence.len();
                sequence.extend(shown.members(class as usize, classes, rows).map(|row| (row, class)));
                sequence[first..].sort_unstable_by(|&(a, _), &(b, _)| compare(&copied, a, b).then(a.cmp(&b)));
            }
            sequence
        })
        .collect();
    sorted.concat()
}

/// Back to the order of the input.
pub(super) fn as_in_the_input(sequence: &mut [(u32, u32)]) {
    sequence.par_sort_unstable();
}

fn compare(columns: &[Ranks<'_>], a: u32, b: u32) -> Ordering {
    columns.iter().map(|ranks| ranks.of_row(a).cmp(&ranks.of_row(b))).fold(Ordering::Equal, Ordering::then)
}

/// Ranks of a column's texts; null comes first.
struct Ranks<'t> {
    ids: &'t [u32],
    of_id: Vec<u32>,
}

impl<'t> Ranks<'t> {
    fn by_text(column: &'t Column) -> Self {
        let mut by_text: Vec<u32> = (0..column.texts.len() as u32).collect();
        by_text.par_sort_unstable_by_key(|&id| column.texts.get(id));
        let mut of_id = vec![0; by_text.len()];
        for (rank, &id) in by_text.iter().enumerate() {
            of_id[id as usize] = rank as u32;
        }
        Ranks { ids: &column.ids, of_id }
    }

    fn of_row(&self, row: u32) -> u32 {
        match self.ids[row as usize] {
            NULL => 0,
            id => self.of_id[id as usize] + 1,
        }
    }
}
