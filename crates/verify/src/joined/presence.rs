//! How sure a reader who has the register can be that somebody is in the private table.
//!
//! If register rows are released, a reader sees how many private persons each sensitive group has and of which classes
//! it consists, and knows that each class holds at least one. So if a group has T private persons in m classes, at most
//! T - (m - 1) of them are in one class. If `delta_presence` is required, every class keeps to its bounds, which a
//! reader knows as well. If rows and boxes don't depend on who is private, everybody in a class is equally likely to be
//! private, and the share of private persons in the class bounds how sure a reader can be. [`Faces`] tests whether they
//! do depend on it.

use std::collections::HashMap;

use kohort_model::spec::RegisterRows;
use kohort_model::{InRegister, JoinedRegister, Presence, Requirement};

use super::faces::Faces;
use super::{AskedOfJoin, JoinedRows};
use crate::Violation;
use crate::count::grouping::Classes;

/// What the classes tell about presence.
pub(super) struct Sureness {
    pub(super) shares: Presence,
    /// Classes beyond the required bounds.
    beyond: Vec<usize>,
    /// Register persons who are in no class, so that a reader knows that they are not private.
    absent: u64,
}

/// The counts of a class that decide about presence.
#[derive(Clone, Copy)]
struct PresenceCounts {
    n_rows: u64,
    n_private: u64,
    /// Private persons who are in no register.
    n_absent: u64,
}

impl Sureness {
    /// Counts presence. `sizes` are the numbers of persons who count in each class.
    pub(super) fn of(faces: &Faces<'_>, asked: AskedOfJoin<'_>, sizes: &[u64]) -> Sureness {
        let Faces { shown, classes, joined, n_private, .. } = *faces;
        let counts = |class: usize| {
            let n_private = u64::from(n_private[class]);
            let rows = classes.rows(class);
            let is_absent =
                |row: &&u32| joined.persons.get(shown.rows[**row as usize] as usize) == Some(&InRegister::Absent);
            match asked.rows {
                RegisterRows::All => {
                    let n_absent = rows.iter().filter(is_absent).count() as u64;
                    PresenceCounts { n_rows: rows.len() as u64, n_private, n_absent }
                }
                RegisterRows::Microdata => {
                    PresenceCounts { n_rows: sizes[class].max(n_private), n_private, n_absent: 0 }
                }
            }
        };
        let counts: Vec<PresenceCounts> = (0..classes.len()).map(counts).collect();
        let mut shares = averages(&counts);
        let (beyond, absent) = match asked.delta_presence {
            None => (Vec::new(), 0),
            Some(bounds) => {
                let left_out = left_out(shown, joined);
                let beyond = (0..counts.len()).filter(|&class| !counts[class].is_within(bounds, left_out)).collect();
                let n_used = shown.rows.iter().filter(|&&row| row as usize >= joined.n_microdata).count();
                (beyond, if bounds.0 > 0.0 { (joined.n_register - n_used) as u64 } else { 0 })
            }
        };
        let mut sureness = Sureness { shares, beyond, absent };
        if asked.rows == RegisterRows::Microdata {
            return sureness;
        }
        shares.highest = sureness.bound(faces, asked, &counts);
        if let Some(attack) = faces.attack().filter(|attack| *attack > shares.highest) {
            shares.highest = attack;
            // The attack is judged on all classes together, so if it works, no class is within the bounds.
            if asked.delta_presence.is_some_and(|(_, most)| attack > most + 1e-9) {
                sureness.beyond = (0..classes.len()).collect();
            }
        }
        sureness.shares = shares;
        sureness
    }

    /// The largest share of private persons that a class can have, judged by everything that readers see.
    fn bound(&self, faces: &Faces<'_>, asked: AskedOfJoin<'_>, counts: &[PresenceCounts]) -> f64 {
        let Faces { shown, classes, joined, k, .. } = *faces;
        // For each group, the number of its private persons and classes.
        let mut groups: HashMap<u32, (u64, u64)> = HashMap::new();
        let group = |class: usize| shown.groups[classes.rows(class)[0] as usize];
        for (class, counts) in counts.iter().enumerate() {
            let of_group = groups.entry(group(class)).or_default();
            *of_group = (of_group.0 + counts.n_private, of_group.1 + 1);
        }
        let left_out = left_out(shown, joined);
        let all_same = joined.persons.iter().all(|person| matches!(person, InRegister::Same(_)));
        let k = u64::from(k);
        let share = |(class, counts): (usize, &PresenceCounts)| {
            let (n_private, n_classes) = groups[&group(class)];
            let most = n_private - (n_classes - 1) + left_out;
            // If private values made cells wider, two classes of k rows may look like one, so assume only k rows.
            let is_one = counts.n_rows < 2 * k || all_same;
            let n_rows = if is_one { counts.n_rows + left_out } else { k };
            let share = (most as f64 / n_rows as f64).min(1.0);
            match asked.delta_presence {
                Some((_, most)) if self.beyond.is_empty() => share.min(most),
                _ => share,
            }
        };
        counts.iter().enumerate().map(share).fold(0.0, f64::max)
    }

    /// The violation if classes are beyond the required bounds, or register persons are known to be absent.
    pub(super) fn violation(&self, classes: &Classes, asked: AskedOfJoin<'_>) -> Option<Violation> {
        let (least, most) = asked.delta_presence?;
        let n_classes = self.beyond.len() as u64;
        let first_row = self.beyond.iter().map(|&class| u64::from(classes.rows(class)[0]) + 1).min().unwrap_or(0);
        let absent = self.absent;
        (n_classes > 0 || absent > 0).then_some(Violation::Presence { least, most, n_classes, absent, first_row })
    }
}

impl PresenceCounts {
    fn share(self) -> f64 {
        self.n_private as f64 / self.n_rows.max(1) as f64
    }

    /// Whether the share of private persons is within the bounds. A reader knows that persons who are in no register
    /// are private, so the share among the others may be smaller. Private persons who were left out may be missing from
    /// this class, so the share may also be larger.
    fn is_within(self, (least, most): (f64, f64), left_out: u64) -> bool {
        let surest = (self.n_private + left_out) as f64 / (self.n_rows + left_out).max(1) as f64;
        let n_known = self.n_rows - self.n_absent;
        let least_sure = if n_known == 0 { 1.0 } else { (self.n_private - self.n_absent) as f64 / n_known as f64 };
        least_sure >= least - 1e-9 && surest <= most + 1e-9
    }
}

/// The largest and the mean share of private persons, and the number of classes that are wholly private.
fn averages(counts: &[PresenceCounts]) -> Presence {
    let total: u64 = counts.iter().map(|counts| counts.n_private).sum();
    let sum: f64 = counts.iter().map(|counts| counts.share() * counts.n_private as f64).sum();
    Presence {
        highest: counts.iter().map(|counts| counts.share()).fold(0.0, f64::max),
        average: if total > 0 { sum / total as f64 } else { 0.0 },
        certain: counts.iter().filter(|counts| counts.n_private >= counts.n_rows).count() as u64,
    }
}

/// Private persons who are in the register but not in the release. A reader may notice that their class lacks a row.
fn left_out(shown: &JoinedRows<'_>, joined: &JoinedRegister) -> u64 {
    let mut is_released = vec![false; joined.n_microdata];
    for &row in shown.rows.iter().filter(|&&row| (row as usize) < joined.n_microdata) {
        is_released[row as usize] = true;
    }
    let persons = is_released.iter().zip(&joined.persons);
    persons.filter(|(is_released, person)| !**is_released && **person != InRegister::Absent).count() as u64
}

/// The k that every class must reach.
pub(super) fn asked_k(requirements: &[Requirement]) -> u32 {
    let k = |requirement: &Requirement| match requirement {
        Requirement::K(k) => *k,
        Requirement::PersonK { .. }
        | Requirement::DistinctL { .. }
        | Requirement::EntropyL { .. }
        | Requirement::RecursiveCL { .. }
        | Requirement::TCloseness { .. }
        | Requirement::Alpha { .. }
        | Requirement::Beta { .. }
        | Requirement::EnhancedBeta { .. } => 1,
    };
    requirements.iter().map(k).max().unwrap_or(1)
}
