//! Which persons are left out of a release: those who can be in no class, and, if the spec says so, those whose
//! absence gains more than it loses.

mod trim;
mod unplaceable;

pub(crate) use trim::trim;
pub(crate) use unplaceable::rows_that_can_stand;

use crate::requirement::Rules;

/// How many of `n_persons` persons may be left out. A share of 0.1 of 30 persons must allow 3, although 0.1 has no
/// exact binary fraction.
pub(crate) fn allowance(max_suppressed: f64, n_persons: u64) -> u64 {
    (max_suppressed * n_persons as f64 + 1e-9).floor() as u64
}

/// The folded rows or persons that leave, ascending, out of all that would gain by leaving, which are given with their gain.
/// Those that gain most leave first, as far as the allowance goes.
pub(crate) fn leaving(mut gaining: Vec<(f64, u32)>, mut allowance: u64, weight: impl Fn(u32) -> u32) -> Vec<u32> {
    gaining.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut leaving = Vec::new();
    for (_, row) in gaining {
        if let Some(rest) = allowance.checked_sub(u64::from(weight(row))) {
            allowance = rest;
            leaving.push(row);
        }
    }
    leaving.sort_unstable();
    leaving
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
