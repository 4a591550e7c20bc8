//! The order of released rows.
//!
//! Rows stand by their released cells, so that their order tells nothing more: first by class, in the order of its
//! intervals, then by the copied cells, in the order of their texts. Keys that are renumbered take their numbers from
//! this order, so where rows tie and a key occurs in several rows, the key's other rows decide: keys are ranked by the
//! places of all their rows, and tied rows stand by the ranks of their keys. Rows that still tie can be swapped
//! without a trace.
//!
//! # Deviations
//! with several such key columns a tie that only two of them together could break falls to the order of the input

use std::cmp::Ordering;

use kohort_model::spec::Keys;
use kohort_model::{Column, NULL, Role, Table};
use rayon::prelude::*;

use super::Shown;
use crate::encode::Rows;
use crate::partition::Classes;

/// So many classes are given to a thread together: some releases have nearly as many as rows.
const CLASSES_AT_ONCE: usize = 64;

/// Source row and shown class of each released row, by released cells.
pub(super) fn by_class(table: &Table, rows: &Rows, classes: &Classes, shown: &Shown, keys: Keys) -> Vec<(u32, u32)> {
    let is_key = |position: usize| table.columns[position].role == Role::Key && table.person != Some(position);
    let is_copied = |position: usize| match table.columns[position].role {
        Role::Sensitive | Role::Plain => true,
        Role::Key => keys == Keys::Keep && is_key(position),
        Role::Identifier | Role::Quasi | Role::PersonK | Role::Drop => false,
    };
    let positions = 0..table.columns.len();
    let copied: Vec<Ranks<'_>> = positions
        .clone()
        .into_par_iter()
        .filter(|&position| is_copied(position))
        .map(|position| Ranks::by_text(&table.columns[position]))
        .collect();
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
    let mut sequence = sorted.concat();
    drop(sorted);

    let renumbered = positions.filter(|&position| keys == Keys::Surrogate && is_key(position));
    let repeated: Vec<&Column> = renumbered
        .map(|position| &table.columns[position])
        .filter(|column| column.texts.len() < column.ids.len())
        .collect();
    if !repeated.is_empty() {
        by_places_of_keys(&mut sequence, &copied, &repeated);
    }
    sequence
}

/// Back to the order of the input.
pub(super) fn as_in_the_input(sequence: &mut [(u32, u32)]) {
    sequence.par_sort_unstable();
}

/// Puts rows that tie into the order of their keys' places.
fn by_places_of_keys(sequence: &mut [(u32, u32)], copied: &[Ranks<'_>], keys: &[&Column]) {
    let ties = |a: &(u32, u32), b: &(u32, u32)| a.1 == b.1 && compare(copied, a.0, b.0) == Ordering::Equal;
    let mut places = Vec::with_capacity(sequence.len());
    for (place, tied) in sequence.chunk_by(ties).enumerate() {
        places.extend(std::iter::repeat_n(place as u32, tied.len()));
    }
    let ranks: Vec<Ranks<'_>> = keys
        .iter()
        .map(|column| {
            let mut of_key: Vec<(Vec<u32>, u32)> = (0..column.texts.len() as u32).map(|id| (Vec::new(), id)).collect();
            for (&(row, _), &place) in sequence.iter().zip(&places) {
                if let Some((places, _)) = of_key.get_mut(column.ids[row as usize] as usize) {
                    places.push(place);
                }
            }
            of_key.par_sort_unstable();
            // Keys with the same places can be swapped; that they keep one order everywhere is all that matters.
            let mut of_id = vec![0; of_key.len()];
            for (rank, (_, id)) in of_key.into_iter().enumerate() {
                of_id[id as usize] = rank as u32;
            }
            Ranks { ids: &column.ids, of_id }
        })
        .collect();
    let mut start = 0;
    for tied in places.chunk_by(|a, b| a == b) {
        let rows = &mut sequence[start..start + tied.len()];
        rows.sort_unstable_by(|&(a, _), &(b, _)| compare(&ranks, a, b).then(a.cmp(&b)));
        start += tied.len();
    }
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
