//! A reader who tries all diseases that people could have, given all answers.
//!
//! Whoever is withdrawn and shown again must still be able to have had each disease of those they first came with.

use std::collections::{BTreeMap, BTreeSet};

use super::kept::{Kept, KeptRow, Place};

/// So many tries, then it is taken that there is a world.
const MOST_TRIES: u64 = 200_000;

#[derive(Default)]
pub(crate) struct Worlds {
    /// Rows that were shown together, and their diseases.
    seen: BTreeSet<(Vec<i64>, Vec<String>)>,
    /// Per row what it is.
    truth: BTreeMap<i64, String>,
    /// Per row the atoms it was shown in.
    atoms: BTreeMap<i64, BTreeSet<String>>,
    /// Per row the diseases of those it was first shown with, who were shown for the first time, too.
    first: BTreeMap<i64, BTreeSet<String>>,
}

impl Worlds {
    pub(crate) fn sees(&mut self, kept: &Kept) {
        let mut classes: BTreeMap<&str, Vec<&KeptRow>> = BTreeMap::new();
        let mut cores: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for row in kept.rows.iter().filter(|row| row.place == Place::Crowd) {
            classes.entry(&row.class).or_default().push(row);
            let core = cores.entry(&row.atom).or_default();
            core.extend(row.is_core.then(|| row.disease().to_owned()));
            self.truth.insert(row.key, row.disease().to_owned());
            self.atoms.entry(row.key).or_default().insert(row.atom.clone());
        }
        for rows in classes.values() {
            let mut keys: Vec<i64> = rows.iter().map(|row| row.key).collect();
            let mut diseases: Vec<String> = rows.iter().map(|row| row.disease().to_owned()).collect();
            keys.sort_unstable();
            diseases.sort_unstable();
            self.seen.insert((keys, diseases));
            for row in rows {
                self.first.entry(row.key).or_insert_with(|| cores[row.atom.as_str()].clone());
            }
        }
    }

    /// How many rows were shown in several atoms.
    pub(crate) fn n_returned(&self) -> usize {
        self.atoms.values().filter(|atoms| atoms.len() > 1).count()
    }

    /// The first who came back and can't have had what they could have had at first, as an error.
    pub(crate) fn keep_everything_open(&self) -> Result<(), String> {
        for key in self.atoms.iter().filter(|(_, atoms)| atoms.len() > 1).map(|(key, _)| *key) {
            for disease in &self.first[&key] {
                if !self.is_possible(key, disease) {
                    return Err(format!("row {key} can't have had {disease}"));
                }
            }
        }
        Ok(())
    }

    fn is_possible(&self, key: i64, disease: &str) -> bool {
        let mut search = Search {
            rows: std::iter::once(key).chain(self.truth.keys().copied().filter(|&row| row != key)).collect(),
            sets_of: BTreeMap::new(),
            left: Vec::new(),
            n_tries: 0,
        };
        for (number, (keys, diseases)) in self.seen.iter().enumerate() {
            let mut left: BTreeMap<&str, usize> = BTreeMap::new();
            diseases.iter().for_each(|disease| *left.entry(disease).or_default() += 1);
            search.left.push(left);
            keys.iter().for_each(|&key| search.sets_of.entry(key).or_default().push(number));
        }
        search.finish(0, &self.truth, Some(disease))
    }
}

/// Gives row by row a disease.
struct Search<'a> {
    rows: Vec<i64>,
    sets_of: BTreeMap<i64, Vec<usize>>,
    /// Per set how many of its rows with each disease are not given yet.
    left: Vec<BTreeMap<&'a str, usize>>,
    n_tries: u64,
}

impl<'a> Search<'a> {
    fn finish(&mut self, place: usize, truth: &'a BTreeMap<i64, String>, only: Option<&str>) -> bool {
        self.n_tries += 1;
        if place == self.rows.len() || self.n_tries > MOST_TRIES {
            return true;
        }
        let row = self.rows[place];
        let sets = self.sets_of[&row].clone();
        let mut options: Vec<&'a str> = self.left[sets[0]].keys().copied().collect();
        options.sort_by_key(|option| *option != truth[&row]);
        for option in options.into_iter().filter(|option| only.is_none_or(|only| only == *option)) {
            if sets.iter().any(|&set| self.left[set].get(option).copied().unwrap_or(0) == 0) {
                continue;
            }
            sets.iter().for_each(|&set| *self.left[set].entry(option).or_default() -= 1);
            if self.finish(place + 1, truth, None) {
                return true;
            }
            sets.iter().for_each(|&set| *self.left[set].entry(option).or_default() += 1);
        }
        false
    }
}
