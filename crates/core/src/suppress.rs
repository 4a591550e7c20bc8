//! Who is left out of a release: those who can be in no class, and, where the spec says so, those whom it pays to
//! leave out.

mod trim;
mod unplaceable;

pub(crate) use trim::trim;
pub(crate) use unplaceable::{rows_that_can_stand, rows_that_can_stand_without};

use crate::requirement::Rules;

/// How many persons may be left out of `n_persons`. 0.1 of 30 must allow 3, whatever its binary fraction.
pub(crate) fn allowance(max_suppressed: f64, n_persons: u64) -> u64 {
    (max_suppressed * n_persons as f64 + 1e-9).floor() as u64
}

/// How many persons the rows belong to.
pub(crate) fn n_persons(rules: &Rules, rows: &[u32]) -> u64 {
    match rules.person_of_row() {
        None => rows.len() as u64,
        Some(person_of_row) => {
            let mut persons: Vec<u32> = rows.iter().map(|&row| person_of_row[row as usize]).collect();
            persons.sort_unstable();
            persons.dedup();
            persons.len() as u64
        }
    }
}
