//! [`Tally`]: the counts by which a class is judged, kept while rows are added.
//!
//! # Cost
//! adding a row: constant; asking: the distinct sensitive values and own k of the class, and if persons have several
//! rows a sort of the class. Memory: one counter per sensitive value and own k, reused from class to class.

use super::{Bound, Rules, Sensitive, TOLERANCE, codes_of_persons};

/// Counts one class at a time.
#[derive(Debug)]
pub struct Tally<'r> {
    rules: &'r Rules,
    n_rows: u64,
    /// Rows per own k, by rank.
    own_ks: Counts,
    columns: Vec<Counts>,
    /// The rows of the class. They are kept only if persons have several rows.
    rows: Vec<u32>,
}

/// Persons per sensitive value, with the values that occur.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    of_code: Vec<u32>,
    codes: Vec<u32>,
}

impl<'r> Tally<'r> {
    /// An empty class.
    pub fn new(rules: &'r Rules) -> Tally<'r> {
        let columns = rules.sensitive.iter().map(|sensitive| Counts::of_values(sensitive.shares.len())).collect();
        let own_ks = Counts::of_values(rules.own_k.as_ref().map_or(0, |own_k| own_k.distinct.len()));
        Tally { rules, n_rows: 0, own_ks, columns, rows: Vec::new() }
    }

    /// Empties the class.
    pub fn clear(&mut self) {
        self.n_rows = 0;
        self.own_ks.clear();
        self.rows.clear();
        self.columns.iter_mut().for_each(Counts::clear);
    }

    /// Adds a row of the table.
    pub fn add(&mut self, row: u32) {
        self.n_rows += 1;
        if self.rules.person_of_row.is_some() {
            self.rows.push(row);
        }
        self.count(row, Counts::add);
    }

    /// Takes a row out again that was added before.
    pub fn remove(&mut self, row: u32) {
        self.n_rows -= 1;
        self.rows.retain(|&other| other != row);
        self.count(row, Counts::remove);
    }

    /// Changes the counts of a row's own k and, unless persons have several rows, of its values.
    #[inline]
    fn count(&mut self, row: u32, change: impl Fn(&mut Counts, u32)) {
        if let Some(own_k) = &self.rules.own_k {
            change(&mut self.own_ks, own_k.ranks[row as usize]);
        }
        if self.rules.person_of_row.is_none() {
            for (counts, sensitive) in self.columns.iter_mut().zip(&self.rules.sensitive) {
                change(counts, sensitive.codes[row as usize]);
            }
        }
    }

    /// Makes these rows of the table the class.
    pub(crate) fn recount(&mut self, rows: impl Iterator<Item = u32>) {
        self.clear();
        rows.for_each(|row| self.add(row));
    }

    /// How many persons the class has.
    pub fn n_persons(&mut self) -> u64 {
        let Some(person_of_row) = &self.rules.person_of_row else { return self.n_rows };
        self.rows.sort_unstable_by_key(|&row| person_of_row[row as usize]);
        self.rows.chunk_by(|&a, &b| person_of_row[a as usize] == person_of_row[b as usize]).count() as u64
    }

    /// The largest k that somebody in the class needs.
    pub fn largest_k(&self) -> u32 {
        let own_k = self.rules.own_k.as_ref().zip(self.own_ks.codes.iter().max());
        own_k.map_or(self.rules.k, |(own_k, &rank)| own_k.distinct[rank as usize].max(self.rules.k))
    }

    /// Whether the class satisfies every requirement.
    pub fn stands(&mut self) -> bool {
        let n_persons = self.n_persons();
        n_persons >= u64::from(self.largest_k()) && self.first_unmet(n_persons).is_none()
    }

    /// How far the class is from what is asked of it, over all requirements: 0 if it satisfies them, as far as they can be
    /// measured. Persons that are missing count 1 each.
    pub(crate) fn shortfall(&mut self) -> f64 {
        let n_persons = self.n_persons();
        self.count_pairs();
        let missing = u64::from(self.largest_k()).saturating_sub(n_persons) as f64;
        let columns = self.columns.iter_mut().zip(&self.rules.sensitive);
        let excess = columns.flat_map(|(counts, sensitive)| sensitive.excesses(counts, n_persons).map(|e| e.max(0.0)));
        missing + excess.sum::<f64>()
    }

    /// The first sensitive column, by position among the compiled ones, whose requirements the class does not meet.
    fn first_unmet(&mut self, n_persons: u64) -> Option<usize> {
        self.count_pairs();
        let columns = self.columns.iter_mut().zip(&self.rules.sensitive);
        columns.map(|(counts, sensitive)| sensitive.holds(counts, n_persons)).position(|holds| !holds)
    }

    /// The first sensitive column whose requirements the class does not meet, and its most frequent value: the
    /// column's position among the compiled ones and the value's code.
    pub fn most_frequent_of_unmet(&mut self) -> Option<(usize, u32)> {
        let n_persons = self.n_persons();
        let column = self.first_unmet(n_persons)?;
        let counts = &self.columns[column];
        let code = counts.codes.iter().max_by_key(|&&code| (counts.of_code[code as usize], std::cmp::Reverse(code)))?;
        Some((column, *code))
    }

    /// Counts each pair of a person and a value once. Used if persons have several rows.
    fn count_pairs(&mut self) {
        let Some(person_of_row) = &self.rules.person_of_row else { return };
        for (counts, sensitive) in self.columns.iter_mut().zip(&self.rules.sensitive) {
            counts.clear();
            codes_of_persons(person_of_row, &sensitive.codes, &self.rows).for_each(|code| counts.add(code));
        }
    }
}

impl Counts {
    pub(crate) fn of_values(n_values: usize) -> Counts {
        Counts { of_code: vec![0; n_values], codes: Vec::new() }
    }

    pub(crate) fn add(&mut self, code: u32) {
        let count = &mut self.of_code[code as usize];
        if *count == 0 {
            self.codes.push(code);
        }
        *count += 1;
    }

    /// Adds a value that may be newer than the counters.
    pub(crate) fn add_any(&mut self, code: u32) {
        if code as usize >= self.of_code.len() {
            self.of_code.resize(code as usize + 1, 0);
        }
        self.add(code);
    }

    fn remove(&mut self, code: u32) {
        let count = &mut self.of_code[code as usize];
        *count -= 1;
        if *count == 0 {
            self.codes.retain(|&other| other != code);
        }
    }

    pub(crate) fn clear(&mut self) {
        for code in self.codes.drain(..) {
            self.of_code[code as usize] = 0;
        }
    }
}

impl Sensitive {
    /// The same if some values may be newer than the measured shares. A bound that compares shares never holds for such
    /// a value.
    pub(crate) fn holds_for_any(&self, counts: &mut Counts, n_persons: u64) -> bool {
        let all_known =
            counts.codes.iter().all(|&code| self.shares.get(code as usize).is_some_and(|&share| share > 0.0));
        (all_known || !self.compares_shares) && self.holds(counts, n_persons)
    }

    pub(crate) fn holds(&self, counts: &mut Counts, n_persons: u64) -> bool {
        self.excesses(counts, n_persons).all(|excess| excess <= 0.0)
    }

    /// For each bound, how far the counts are beyond it; 0 or less if it holds.
    fn excesses(&self, counts: &mut Counts, n_persons: u64) -> impl Iterator<Item = f64> {
        // A class's shares must add up the same way whatever order its rows came in.
        counts.codes.sort_unstable();
        let counts = &*counts;
        let count = |code: u32| f64::from(counts.of_code[code as usize]);
        let total: f64 = counts.codes.iter().map(|&code| count(code)).sum();
        let largest = counts.codes.iter().map(|&code| count(code)).fold(0.0, f64::max);
        let gain_beyond = move |most: &dyn Fn(f64) -> f64| {
            let beyond = |&code: &u32| {
                let share = self.shares[code as usize];
                (count(code) / total - share) / share - most(share) - TOLERANCE
            };
            counts.codes.iter().map(beyond).fold(f64::NEG_INFINITY, f64::max)
        };
        self.bounds.iter().map(move |bound| match bound {
            Bound::DistinctL(l) => f64::from(*l) - counts.codes.len() as f64,
            Bound::EntropyL(l) => {
                let terms = counts.codes.iter().map(|&code| count(code) / total).map(|share| -share * share.ln());
                l.ln() - TOLERANCE - terms.sum::<f64>()
            }
            Bound::RecursiveCL { c, l } => {
                let mut descending: Vec<f64> = counts.codes.iter().map(|&code| count(code)).collect();
                descending.sort_unstable_by(|a, b| b.total_cmp(a));
                let tail: f64 = descending.iter().skip((*l as usize).saturating_sub(1)).sum();
                let excess = largest - (c * tail - TOLERANCE);
                // This bound does not hold where both sides are equal.
                if excess >= 0.0 { excess.max(TOLERANCE) } else { excess }
            }
            Bound::TCloseness { t, ground } => {
                let class: Vec<(u32, f64)> = counts.codes.iter().map(|&code| (code, count(code) / total)).collect();
                ground.distance(&class, &self.shares) - t - TOLERANCE
            }
            Bound::Alpha(alpha) => largest / n_persons as f64 - alpha - TOLERANCE,
            Bound::Beta(beta) => gain_beyond(&|_| *beta),
            Bound::EnhancedBeta(beta) => gain_beyond(&|share| beta.min(-share.ln())),
        })
    }
}

#[cfg(test)]
mod tests {
    use kohort_model::{Column, Requirement, Role, Table};
    use proptest::prelude::*;

    use super::*;

    /// Rows of (person, own k, disease).
    fn rules(rows: &[(u8, u8, u8)], requirements: &[Requirement], several_rows: bool) -> Rules {
        let texts = |cell: fn(&(u8, u8, u8)) -> u8| rows.iter().map(|row| cell(row).to_string()).collect::<Vec<_>>();
        let column = |name: &str, role, texts: &[String]| {
            Column::from_cells(name, role, texts.iter().map(|text| Some(text.as_str())))
        };
        let columns = vec![
            column("id", Role::Key, &texts(|row| row.0)),
            column("wish", Role::PersonK, &texts(|row| row.1)),
            column("disease", Role::Sensitive, &texts(|row| row.2)),
        ];
        let table = Table { name: "t".to_owned(), columns, n_rows: rows.len(), person: several_rows.then_some(0) };
        Rules::compile(&table, requirements, &(0..rows.len() as u32).collect::<Vec<_>>()).unwrap()
    }

    proptest! {
        #[test]
        fn taking_rows_out_leaves_what_counting_the_others_anew_gives(
            rows in prop::collection::vec((0..6u8, 1..8u8, 0..4u8), 1..12),
            goes in prop::collection::vec(any::<bool>(), 12),
            several_rows: bool,
        ) {
            let requirements = [
                Requirement::K(2),
                Requirement::PersonK { column: "wish".to_owned() },
                Requirement::Alpha { column: "disease".to_owned(), alpha: 0.5 },
                Requirement::DistinctL { column: "disease".to_owned(), l: 2 },
            ];
            let rules = rules(&rows, &requirements, several_rows);
            let all = 0..rows.len() as u32;
            let mut thinned = Tally::new(&rules);
            all.clone().for_each(|row| thinned.add(row));
            all.clone().filter(|&row| goes[row as usize]).for_each(|row| thinned.remove(row));
            let mut fresh = Tally::new(&rules);
            all.filter(|&row| !goes[row as usize]).for_each(|row| fresh.add(row));
            prop_assert_eq!(thinned.n_persons(), fresh.n_persons());
            prop_assert_eq!(thinned.largest_k(), fresh.largest_k());
            prop_assert_eq!(thinned.stands(), fresh.stands());
            prop_assert_eq!(thinned.most_frequent_of_unmet(), fresh.most_frequent_of_unmet());
        }
    }
}
