//! Who must be left out before anything is partitioned, so that a class can stand at all.
//!
//! A person who wants a larger k than there are persons can be in no class. A sensitive value that is too frequent in
//! the whole table is too frequent in at least one class of any partition. Such persons are left out, one at a time
//! and up to the limit of the spec; above it the release can't be reached.
//!
//! # Deviations
//! of those who hold the value, the one with the smallest released cells leaves, so that the choice does not depend on
//! the order of the input; requirements that compare a class with the release hold for everybody together, whoever
//! leaves, and are not asked

use std::collections::{BTreeMap, BTreeSet};

use kohort_model::{Requirement, Role, Table};

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
    let absolute: Vec<Requirement> = requirements.iter().filter(|asked| !is_relative(asked)).cloned().collect();
    let rules = Rules::compile(table, &absolute, &kept)?;
    let n_all = n_persons(&rules, &kept);
    let limit = allowance(max_suppressed, n_all);
    if n_all < u64::from(rules.k()) {
        return Err(AnonymizeError::TooFewPersons { persons: n_all, k: rules.k() });
    }
    let mut left_out = leave_out_large_k(&rules, &mut kept, limit)?;

    let mut tally = Tally::new(&rules);
    kept.iter().for_each(|&row| tally.add(row));
    let mut holders: BTreeMap<(usize, u32), Vec<u32>> = BTreeMap::new();
    let mut leaving: BTreeSet<u32> = BTreeSet::new();
    while !tally.stands() {
        let Some((column, code)) = tally.most_frequent_of_unmet() else {
            return Err(AnonymizeError::TooFewPersons { persons: n_all - left_out, k: rules.k() });
        };
        left_out += 1;
        if left_out > limit {
            return Err(AnonymizeError::TooFrequent { column: rules.sensitive_column(column).to_owned(), limit });
        }
        // Holders of a value in the order in which they leave, the first last.
        let queue = holders.entry((column, code)).or_insert_with(|| {
            let rows = kept.iter().copied().filter(|&row| rules.holds(row, column, code));
            in_released_order(table, encoded, &rules, &kept, rows.collect())
        });
        let next = std::iter::from_fn(|| queue.pop()).find(|person| !leaving.contains(person));
        let Some(person) = next else {
            return Err(AnonymizeError::TooFrequent { column: rules.sensitive_column(column).to_owned(), limit });
        };
        leaving.insert(person);
        kept.iter().filter(|&&row| rules.person(row) == person).for_each(|&row| tally.remove(row));
    }
    kept.retain(|&row| !leaving.contains(&rules.person(row)));
    Ok(kept)
}

fn is_relative(requirement: &Requirement) -> bool {
    match requirement {
        Requirement::TCloseness { .. } | Requirement::Beta { .. } | Requirement::EnhancedBeta { .. } => true,
        Requirement::K(_)
        | Requirement::PersonK { .. }
        | Requirement::DistinctL { .. }
        | Requirement::EntropyL { .. }
        | Requirement::RecursiveCL { .. }
        | Requirement::Alpha { .. } => false,
    }
}

/// Leaves out who asks for a larger k than there are persons, largest first: each who leaves makes the crowd of the
/// others smaller. Returns how many left.
fn leave_out_large_k(rules: &Rules, kept: &mut Vec<u32>, limit: u64) -> Result<u64, AnonymizeError> {
    let n_all = n_persons(rules, kept);
    loop {
        let n_left = n_persons(rules, kept);
        let largest = kept.iter().map(|&row| rules.k_of_row(row)).max().unwrap_or(0);
        if !kept.is_empty() && u64::from(largest) <= n_left {
            return Ok(n_all - n_left);
        }
        let n_before = kept.len();
        kept.retain(|&row| rules.k_of_row(row) < largest);
        if n_all - n_persons(rules, kept) > limit || kept.len() == n_before {
            return Err(AnonymizeError::OwnKTooLarge { persons: n_all, largest });
        }
    }
}

/// The persons of some rows, by the cells that all their rows may show, largest first. Who shows the same is put by
/// their own k, and only then, when it makes no difference, by number.
fn in_released_order(table: &Table, encoded: &Encoded<'_>, rules: &Rules, kept: &[u32], holders: Vec<u32>) -> Vec<u32> {
    let copied: Vec<_> =
        table.columns.iter().filter(|column| matches!(column.role, Role::Sensitive | Role::Plain)).collect();
    let cells = |row: u32| {
        let quasi: Vec<u32> = (0..encoded.domains.len()).map(|column| encoded.code(column, row)).collect();
        let copied: Vec<Option<&str>> = copied.iter().map(|column| column.cell(row as usize)).collect();
        (quasi, copied, rules.k_of_row(row))
    };
    let persons: BTreeSet<u32> = holders.iter().map(|&row| rules.person(row)).collect();
    let rows = if rules.person_of_row().is_some() { kept.to_vec() } else { holders };
    let mut shown: BTreeMap<u32, Vec<_>> = BTreeMap::new();
    for row in rows.into_iter().filter(|&row| persons.contains(&rules.person(row))) {
        shown.entry(rules.person(row)).or_default().push(cells(row));
    }
    let mut ordered: Vec<_> = shown
        .into_iter()
        .map(|(person, mut rows)| {
            rows.sort_unstable();
            (rows, person)
        })
        .collect();
    ordered.sort_unstable_by(|a, b| b.cmp(a));
    ordered.into_iter().map(|(_, person)| person).collect()
}
