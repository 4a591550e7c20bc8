//! A reader who kept every answer and knows who was in which class at each time.
//!
//! Unions, intersections and differences of classes are always unions of the finest sets, which are rows that were always in the
//! same classes. Each finest set must satisfy what the view asks of a class. Nobody may be in two crowds, because only that person
//! might have the value that both crowds have in common.

use std::collections::{BTreeMap, BTreeSet};

use super::Asked;
use super::kept::{Kept, KeptRow, Place};

/// A row while it is shown without a break. A row that is hidden and shown again is another item.
type Item = usize;

pub(crate) struct Attacker {
    asked: Asked,
    /// For each snapshot, the class of each item.
    snapshots: Vec<BTreeMap<Item, String>>,
    items: Vec<KeptRow>,
    /// Items of the last snapshot by their rows, and the atoms these were in.
    last: BTreeMap<i64, (Item, String)>,
    /// Shares of diseases when the view was made.
    shares: Option<BTreeMap<String, f64>>,
}

impl Attacker {
    pub(crate) fn new(asked: Asked) -> Attacker {
        Attacker { asked, snapshots: Vec::new(), items: Vec::new(), last: BTreeMap::new(), shares: None }
    }

    pub(crate) fn sees(&mut self, kept: &Kept, is_refresh: bool) {
        let mut snapshot = BTreeMap::new();
        let mut last = BTreeMap::new();
        let crowd: Vec<&KeptRow> = kept.rows.iter().filter(|row| row.place == Place::Crowd).collect();
        if self.shares.is_none() || is_refresh {
            self.shares = Some(shares(crowd.iter().copied()));
        }
        for row in crowd {
            let known = self.last.get(&row.key).filter(|(_, atom)| is_refresh || *atom == row.atom);
            let item = known.map_or(self.items.len(), |(item, _)| *item);
            if item == self.items.len() {
                self.items.push(row.clone());
            }
            snapshot.insert(item, row.class.clone());
            last.insert(row.key, (item, row.atom.clone()));
        }
        self.last = last;
        self.snapshots.push(snapshot);
    }

    /// Finds somebody who is in two crowds, or a set that does not satisfy what the view asks for.
    pub(crate) fn fails(&self) -> Result<(), String> {
        let mut names = BTreeSet::new();
        if let Some(twice) = self.items.iter().find(|row| !names.insert(&row.name)) {
            return Err(format!("{} was shown in two crowds", twice.name));
        }
        let mut sets: BTreeMap<Vec<Option<&String>>, Vec<&KeptRow>> = BTreeMap::new();
        for (item, row) in self.items.iter().enumerate() {
            let signature = self.snapshots.iter().map(|snapshot| snapshot.get(&item)).collect();
            sets.entry(signature).or_default().push(row);
        }
        sets.values().try_for_each(|set| self.satisfies(set))
    }

    fn satisfies(&self, set: &[&KeptRow]) -> Result<(), String> {
        let persons: BTreeSet<&str> = set.iter().map(|row| row.name.as_str()).collect();
        let most = set.iter().map(|row| row.k as usize).max().unwrap_or(0).max(self.asked.k);
        if persons.len() < most {
            return Err(format!("{persons:?} can be told apart, and {most} are asked for"));
        }
        let n_diseases = set.iter().map(|row| row.disease()).collect::<BTreeSet<_>>().len();
        let n_raised = set.iter().map(|row| row.raised()).collect::<BTreeSet<_>>().len();
        if n_diseases.min(n_raised) < self.asked.l {
            return Err(format!("{persons:?} have {n_diseases} diseases, seen as {n_raised}"));
        }
        let (now, then) = (shares(set.iter().copied()), self.shares.as_ref().unwrap());
        let all: BTreeSet<&String> = now.keys().chain(then.keys()).collect();
        let share = |shares: &BTreeMap<String, f64>, disease: &String| shares.get(disease).copied().unwrap_or(0.0);
        let distance: f64 = all.into_iter().map(|disease| (share(&now, disease) - share(then, disease)).abs()).sum();
        if self.asked.t < 1.0 && distance / 2.0 > self.asked.t + 1e-9 {
            return Err(format!("{persons:?} are {} from everybody's shares", distance / 2.0));
        }
        Ok(())
    }
}

fn shares<'a>(rows: impl Iterator<Item = &'a KeptRow> + Clone) -> BTreeMap<String, f64> {
    let n_rows = rows.clone().count() as f64;
    let mut shares = BTreeMap::new();
    rows.for_each(|row| *shares.entry(row.disease().to_owned()).or_default() += 1.0 / n_rows);
    shares
}
