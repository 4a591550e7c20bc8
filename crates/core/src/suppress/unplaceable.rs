//! Who must be left out before anything is partitioned, so that a class can stand at all.
//!
//! A person who wants a larger k than there are persons can be in no class. A sensitive value that is too frequent in
//! the whole table is too frequent in at least one class of any partition. Such persons are left out, as few as
//! possible, up to the limit of the spec; above it the release can't be reached.

use std::collections::BTreeSet;

use kohort_model::{Requirement, Table};

use crate::AnonymizeError;
use crate::encode::Encoded;
use crate::requirement::{Rules, Tally};
use crate::suppress::{allowance, n_persons};

/// The rows that take part, ascending.
///
/// # Errors
/// Where too many would have to be left out, or nobody would remain.
pub(crate) fn rows_that_can_stand(
    table: &Table,
    encoded: &Encoded<'_>,
    requirements: &[Requirement],
    max_suppressed: f64,
) -> Result<Vec<u32>, AnonymizeError> {
    let mut kept: Vec<u32> = (0..table.n_rows as u32).collect();
    let rules = Rules::compile(table, requirements, &kept)?;
    let n_all = n_persons(&rules, &kept);
    let limit = allowance(max_suppressed, n_all);
    if n_all < u64::from(rules.k()) {
        return Err(AnonymizeError::TooFewPersons { persons: n_all, k: rules.k() });
    }
    let mut left_out = 0;

    // Largest own k first: each who leaves makes the crowd of the others smaller.
    loop {
        let n_left = n_persons(&rules, &kept);
        let largest = kept.iter().map(|&row| rules.k_of_row(row)).max().unwrap_or(0);
        if u64::from(largest) <= n_left {
            break;
        }
        let before = kept.len();
        let leaving: BTreeSet<u32> =
            kept.iter().filter(|&&row| rules.k_of_row(row) == largest).map(|&row| person(&rules, row)).collect();
        kept.retain(|&row| !leaving.contains(&person(&rules, row)));
        left_out += n_left - n_persons(&rules, &kept);
        if left_out > limit || kept.len() == before || kept.is_empty() {
            return Err(AnonymizeError::OwnKTooLarge { persons: n_all, largest });
        }
    }

    let mut tally = Tally::new(&rules);
    kept.iter().for_each(|&row| tally.add(row));
    while !tally.stands() {
        // Only the rarest remedy is tried: one holder of the most frequent value leaves at a time.
        let Some((column, holders)) = tally.most_frequent_of_unmet(&kept) else {
            return Err(AnonymizeError::TooFewPersons { persons: n_persons(&rules, &kept), k: rules.k() });
        };
        left_out += 1;
        if left_out > limit {
            return Err(AnonymizeError::TooFrequent { column: column.to_owned(), limit });
        }
        // Who goes is decided by quasi cells, so that it does not depend on the order of the input.
        let cells = |row: u32| (0..encoded.domains.len()).map(|column| encoded.code(column, row)).collect::<Vec<u32>>();
        let leaving = holders.into_iter().min_by_key(|&row| (cells(row), row)).map(|row| person(&rules, row));
        kept.retain(|&row| Some(person(&rules, row)) != leaving);
        tally.clear();
        kept.iter().for_each(|&row| tally.add(row));
    }
    Ok(kept)
}

fn person(rules: &Rules, row: u32) -> u32 {
    rules.person_of_row().map_or(row, |person_of_row| person_of_row[row as usize])
}
