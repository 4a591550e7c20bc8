//! The order of released rows.
//!
//! Rows stand by their released cells, so that their order tells nothing more: first by class, in the order of its
//! intervals, then by the copied cells, in the order of their texts. Rows that still tie are equal.

use kohort_model::{NULL, Role, Table};
use rayon::prelude::*;

use super::Shown;
use crate::encode::Rows;
use crate::partition::Classes;

/// Source row and shown class of each released row, by released cells.
pub(super) fn by_class(table: &Table, rows: &Rows, classes: &Classes, shown: &Shown) -> Vec<(u32, u32)> {
    let ranks: Vec<Ranks<'_>> = table
        .columns
        .par_iter()
        .filter(|column| matches!(column.role, Role::Sensitive | Role::Plain))
        .map(|column| {
            let mut by_text: Vec<u32> = (0..column.texts.len() as u32).collect();
            by_text.par_sort_unstable_by_key(|&id| column.texts.get(id));
            let mut of_id = vec![0; by_text.len()];
            for (rank, &id) in by_text.iter().enumerate() {
                of_id[id as usize] = rank as u32;
            }
            Ranks { ids: &column.ids, of_id }
        })
        .collect();
    let sorted: Vec<Vec<(u32, u32)>> = (0..shown.len())
        .into_par_iter()
        .map(|class| {
            let mut members: Vec<(u32, u32)> =
                shown.members(class, classes, rows).map(|row| (row, class as u32)).collect();
            members.sort_unstable_by(|&(a, _), &(b, _)| {
                let differing = ranks.iter().map(|ranks| ranks.of_row(a).cmp(&ranks.of_row(b)));
                differing.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then).then(a.cmp(&b))
            });
            members
        })
        .collect();
    sorted.concat()
}

/// Back to the order of the input.
pub(super) fn as_in_the_input(sequence: &mut [(u32, u32)]) {
    sequence.par_sort_unstable();
}

/// A copied column's texts by rank; null comes first.
struct Ranks<'t> {
    ids: &'t [u32],
    of_id: Vec<u32>,
}

impl Ranks<'_> {
    fn of_row(&self, row: u32) -> u32 {
        match self.ids[row as usize] {
            NULL => 0,
            id => self.of_id[id as usize] + 1,
        }
    }
}
