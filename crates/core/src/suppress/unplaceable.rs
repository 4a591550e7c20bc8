//! Which persons must be left out before anything is partitioned, so that any class can satisfy the rules.
//!
//! A person who wants a larger k than there are persons can be in no class. A sensitive value that is too frequent in
//! the whole table is too frequent in at least one class of any partition. Such persons are left out, one at a time
//! and up to the limit of the spec; above it the release can't be reached.
//!
//! # Guarantee
//! If persons and rows are few, a table is refused only if no set of persons that may be left out makes the others
//! satisfy the rules together. In large tables not all such sets can be tried, so the first choice decides.
//!
//! # Deviations
//! Of those who hold the value, the one with the largest own k leaves, and among equals the one with the smallest
//! released cells, so that the choice does not depend on the order of the input. Requirements that compare a class with
//! the release are not asked here: everybody together satisfies them, whoever leaves.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use kohort_model::{Requirement, Table};

use crate::AnonymizeError;
use crate::encode::Encoded;
use crate::partition::Unreachable;
use crate::recode::is_copied;
use crate::requirement::{Rules, Tally};
use crate::suppress::{allowance, n_persons};

/// Sets of persons are tried until about this many rows were looked at.
const MOST_WORK: usize = 1 << 18;

/// The rows that take part, ascending, where the persons of some rows are left out already. These are within the limit and
/// count towards it.
///
/// # Errors
/// If too many more would have to be left out, or nobody would remain.
pub(crate) fn rows_that_can_stand(
    table: &Table,
    encoded: &Encoded<'_>,
    requirements: &[Requirement],
    max_suppressed: f64,
    left_out: &[u32],
) -> Result<Vec<u32>, AnonymizeError> {
    let all: Vec<u32> = (0..table.n_rows as u32).collect();
    let is_left_out: BTreeSet<u32> = left_out.iter().copied().collect();
    let mut kept: Vec<u32> = all.iter().copied().filter(|row| !is_left_out.contains(row)).collect();
    let absolute: Vec<Requirement> =
        requirements.iter().filter(|asked| !asked.compares_with_release()).cloned().collect();
    let rules = Rules::compile(table, &absolute, &kept)?;
    let (n_all, n_kept) = (n_persons(&rules, &all), n_persons(&rules, &kept));
    let limit = allowance(max_suppressed, n_all).saturating_sub(n_all - n_kept);
    if n_kept < u64::from(rules.k()) {
        return Err(AnonymizeError::TooFewPersons { persons: n_kept, k: rules.k() });
    }
    let mut tally = Tally::new(&rules);
    tally.recount(kept.iter().copied());
    if tally.stands() {
        return Ok(kept);
    }
    let mut crowd = Remaining::new(&rules, &kept, limit);
    if let Err(refusal) = crowd.thin_out(|column, code| {
        let rows = kept.iter().copied().filter(|&row| rules.holds(row, column, code));
        in_leaving_order(table, encoded, &rules, &kept, rows.collect())
    }) {
        let everybody = in_leaving_order(table, encoded, &rules, &kept, kept.clone());
        crowd = Remaining::new(&rules, &kept, limit);
        if !crowd.search(&everybody, &mut BTreeSet::new(), &mut (MOST_WORK / kept.len())) {
            return Err(refusal);
        }
    }
    kept.retain(|&row| !crowd.gone.contains(&rules.person(row)));
    Ok(kept)
}

/// Everybody who has not left yet, counted as one class.
struct Remaining<'r> {
    rules: &'r Rules,
    tally: Tally<'r>,
    rows_of: BTreeMap<u32, Vec<u32>>,
    gone: BTreeSet<u32>,
    limit: u64,
}

impl<'r> Remaining<'r> {
    fn new(rules: &'r Rules, kept: &[u32], limit: u64) -> Self {
        let mut crowd =
            Remaining { rules, tally: Tally::new(rules), rows_of: BTreeMap::new(), gone: BTreeSet::new(), limit };
        for &row in kept {
            crowd.tally.add(row);
            crowd.rows_of.entry(rules.person(row)).or_default().push(row);
        }
        crowd
    }

    fn leave(&mut self, person: u32) {
        self.gone.insert(person);
        self.rows_of[&person].iter().for_each(|&row| self.tally.remove(row));
    }

    fn come_back(&mut self, person: u32) {
        self.gone.remove(&person);
        self.rows_of[&person].iter().for_each(|&row| self.tally.add(row));
    }

    /// The persons who ask for more persons than are left. They can't stay, because everybody who leaves makes the
    /// crowd smaller.
    fn asking_too_much(&self, n_left: u64) -> Vec<u32> {
        let asks = |rows: &[u32]| u64::from(self.rules.k_of_row(rows[0])) > n_left;
        let stays = self.rows_of.iter().filter(|(person, _)| !self.gone.contains(person));
        stays.filter(|(_, rows)| asks(rows)).map(|(&person, _)| person).collect()
    }

    /// Leaves out one person after another until the others satisfy the rules together. Each time, some value is too
    /// frequent, and the last person in the list of its `holders` leaves.
    fn thin_out(&mut self, holders: impl Fn(usize, u32) -> Vec<u32>) -> Result<(), AnonymizeError> {
        let mut queues: BTreeMap<(usize, u32), Vec<u32>> = BTreeMap::new();
        let mut asking = 0;
        while !self.tally.stands() {
            let n_left = self.tally.n_persons();
            if n_left < u64::from(self.rules.k()) {
                return Err(AnonymizeError::TooFewPersons { persons: n_left, k: self.rules.k() });
            }
            if u64::from(self.tally.largest_k()) > n_left {
                let too_much = self.asking_too_much(n_left);
                asking += too_much.len() as u64;
                too_much.into_iter().for_each(|person| self.leave(person));
                if self.gone.len() as u64 > self.limit || self.gone.len() == self.rows_of.len() {
                    return Err(AnonymizeError::OwnKTooLarge { persons: n_left, asking });
                }
                continue;
            }
            let (column, code) = self.tally.most_frequent_of_unmet().ok_or(Unreachable)?;
            let column_name = self.rules.sensitive_column(column).to_owned();
            let queue = queues.entry((column, code)).or_insert_with(|| holders(column, code));
            let next = std::iter::from_fn(|| queue.pop()).find(|person| !self.gone.contains(person));
            let next = next.filter(|_| (self.gone.len() as u64) < self.limit);
            let next = next.ok_or(AnonymizeError::TooFrequent { column: column_name })?;
            self.leave(next);
        }
        Ok(())
    }

    /// Tries to leave out sets of persons, holders of too frequent values first, until the others satisfy the rules
    /// together. This search is needed if persons hold several values: the person who leaves because of one value may
    /// be the wrong choice for another. Gives up after `n_tries` tries.
    fn search(&mut self, everybody: &[u32], tried: &mut BTreeSet<BTreeSet<u32>>, n_tries: &mut usize) -> bool {
        if *n_tries == 0 || !tried.insert(self.gone.clone()) {
            return false;
        }
        *n_tries -= 1;
        if self.tally.stands() {
            return true;
        }
        let n_left = self.tally.n_persons();
        if self.gone.len() as u64 >= self.limit || n_left <= u64::from(self.rules.k()) {
            return false;
        }
        let next = match self.asking_too_much(n_left).first() {
            Some(&person) => vec![person],
            None => {
                let value = self.tally.most_frequent_of_unmet();
                let holds = |person: &u32| {
                    value.is_some_and(|(column, code)| {
                        self.rows_of[person].iter().any(|&row| self.rules.holds(row, column, code))
                    })
                };
                let stays = everybody.iter().rev().copied().filter(|person| !self.gone.contains(person));
                let (holders, others): (Vec<u32>, Vec<u32>) = stays.partition(holds);
                [holders, others].concat()
            }
        };
        for person in next {
            self.leave(person);
            if self.search(everybody, tried, n_tries) {
                return true;
            }
            self.come_back(person);
        }
        false
    }
}

/// The persons of some rows, in reverse order of leaving. The person with the largest k leaves first, because the
/// others can then stay in a smaller crowd; then the person with the smallest cells that all their rows may show; and
/// among equals, where it makes no difference, the number decides.
fn in_leaving_order(table: &Table, encoded: &Encoded<'_>, rules: &Rules, kept: &[u32], holders: Vec<u32>) -> Vec<u32> {
    let copied: Vec<_> = table.columns.iter().filter(|column| is_copied(column)).collect();
    let cells = |row: u32| {
        let quasi: Vec<u32> = (0..encoded.domains.len()).map(|column| encoded.code(column, row)).collect();
        let copied: Vec<Option<&str>> = copied.iter().map(|column| column.cell(row as usize)).collect();
        (quasi, copied)
    };
    let persons: BTreeSet<u32> = holders.iter().map(|&row| rules.person(row)).collect();
    let rows = if rules.person_of_row().is_some() { kept.to_vec() } else { holders };
    let mut shown: BTreeMap<u32, (u32, Vec<_>)> = BTreeMap::new();
    for row in rows.into_iter().filter(|&row| persons.contains(&rules.person(row))) {
        // All rows of a person ask for the same k.
        shown.entry(rules.person(row)).or_insert((rules.k_of_row(row), Vec::new())).1.push(cells(row));
    }
    let mut ordered: Vec<_> = shown
        .into_iter()
        .map(|(person, (k, mut rows))| {
            rows.sort_unstable();
            (k, Reverse((rows, person)))
        })
        .collect();
    ordered.sort_unstable();
    ordered.into_iter().map(|(_, Reverse((_, person)))| person).collect()
}

#[cfg(test)]
mod tests {
    use kohort_model::{Column, Role, ValueType};

    use super::*;

    /// Rows of (age, own k, disease) of persons of whom as many as `limit` may be left out, by the diseases that stay.
    fn stays(rows: &[(&str, &str, &str)], alpha: f64, limit: f64) -> Result<Vec<String>, AnonymizeError> {
        let columns = vec![
            Column::from_cells("age", Role::Quasi, rows.iter().map(|row| Some(row.0))).typed(ValueType::Integer),
            Column::from_cells("wish", Role::PersonK, rows.iter().map(|row| Some(row.1))),
            Column::from_cells("disease", Role::Sensitive, rows.iter().map(|row| Some(row.2))),
        ];
        let table = Table { name: "t".to_owned(), columns, n_rows: rows.len(), person: None };
        let requirements = [
            Requirement::K(2),
            Requirement::PersonK { column: "wish".to_owned() },
            Requirement::Alpha { column: "disease".to_owned(), alpha },
        ];
        let encoded = Encoded::new(&table, &[0])?;
        let kept = rows_that_can_stand(&table, &encoded, &requirements, limit, &[])?;
        Ok(kept.into_iter().map(|row| rows[row as usize].2.to_owned()).collect())
    }

    #[test]
    fn the_own_k_of_a_person_who_left_counts_no_longer() {
        // Somebody with the flu must leave. The youngest does, who asked for all five; four are left, and two suffice.
        let rows =
            [("20", "5", "flu"), ("30", "2", "flu"), ("40", "2", "flu"), ("50", "2", "cold"), ("60", "2", "gout")];
        assert_eq!(stays(&rows, 0.5, 0.2).unwrap(), ["flu", "flu", "cold", "gout"]);
    }

    #[test]
    fn the_holder_of_a_frequent_value_with_the_largest_k_leaves_first() {
        // If the youngest left, the oldest with the flu would ask for one person more than are left.
        let rows =
            [("20", "2", "flu"), ("30", "2", "flu"), ("40", "5", "flu"), ("50", "2", "cold"), ("60", "2", "gout")];
        assert_eq!(stays(&rows, 0.5, 0.2).unwrap(), ["flu", "flu", "cold", "gout"]);
    }

    #[test]
    fn a_person_who_asks_for_more_than_are_left_leaves_after_holders_of_a_frequent_value() {
        let rows =
            [("20", "2", "flu"), ("30", "2", "flu"), ("40", "2", "flu"), ("50", "5", "cold"), ("60", "2", "gout")];
        let own_k = AnonymizeError::OwnKTooLarge { persons: 4, asking: 1 };
        assert_eq!(stays(&rows, 0.5, 0.2), Err(own_k));
        assert_eq!(stays(&rows, 0.5, 0.6).unwrap(), ["flu", "gout"]);
    }

    #[test]
    fn if_everybody_asks_for_too_much_all_are_counted() {
        let rows = [("20", "7", "flu"), ("30", "7", "cold"), ("40", "7", "gout")];
        assert_eq!(stays(&rows, 0.5, 1.0), Err(AnonymizeError::OwnKTooLarge { persons: 3, asking: 3 }));
    }
}
