//! [`Histories`]: in which earlier classes each released person can have been, and who else can have been there with
//! them.
//!
//! A reader can look a person up with three sets of values, called lives: those of the registers at the time of each
//! release, those of the private table, and those of the current registers. In each release, the person was in one
//! class that covers these values, or in none. A *way* is one such choice for all releases. The crowd of a way are the
//! persons whom all of its classes cover.
//!
//! Some ways are impossible. If a release was verified beside an earlier one, nobody was in two of their classes that
//! together cover fewer than its k persons.

use std::collections::HashMap;

use kohort_model::{JoinedRegister, NULL};

use super::Earlier;

/// One class of each earlier release, [`NULL`] for none.
type Way = Vec<u32>;

/// The number of lives of a person.
const N_LIVES: usize = 3;

/// For each life of a person in an earlier release, the row of the join with the values of that life. `then` gives, for
/// each person, the row with the values of the registers of that time.
pub(super) fn places_then(joined: &JoinedRegister, then: &[u32], person: u32) -> [u32; N_LIVES] {
    let now = joined.public_place(person).unwrap_or(person);
    let described = then.get(person as usize).copied().filter(|&place| place != NULL);
    [described.unwrap_or(now), person, now]
}

/// The ways of persons through the earlier releases.
pub(super) struct Histories {
    /// The persons, ascending.
    persons: Vec<u32>,
    /// The ways of each person.
    ways: Vec<Vec<Way>>,
    crowds: HashMap<Way, Vec<u32>>,
}

impl Histories {
    /// The ways of these persons, who are ascending and were looked up in the earlier releases.
    pub(super) fn new(earlier: &[Earlier<'_>], persons: Vec<u32>) -> Self {
        let mut crowds = HashMap::new();
        let ways = persons.iter().enumerate().map(|(at, &person)| ways(earlier, &mut crowds, (at, person))).collect();
        Histories { persons, ways, crowds }
    }

    /// The ways of a person. A way that is part of a longer one is left out.
    pub(super) fn ways(&self, person: u32) -> &[Way] {
        self.persons.binary_search(&person).map_or(&[], |at| &self.ways[at])
    }

    /// The crowd of a way, ascending: the persons of any time whom its classes cover with the values of the registers
    /// then.
    pub(super) fn crowd(&self, way: &Way) -> &[u32] {
        &self.crowds[way]
    }
}

fn ways(earlier: &[Earlier<'_>], crowds: &mut HashMap<Way, Vec<u32>>, (place, person): (usize, u32)) -> Vec<Way> {
    let mut found: Vec<Way> = Vec::new();
    for life in 0..N_LIVES {
        let mut open = vec![vec![NULL; earlier.len()]];
        for (at, release) in earlier.iter().enumerate() {
            for known in 0..open.len() {
                for &class in &release.holding[place * N_LIVES + life] {
                    let mut longer = open[known].clone();
                    longer[at] = class;
                    if can_be(earlier, crowds, &longer, person) {
                        open.push(longer);
                    }
                }
            }
        }
        found.append(&mut open);
    }
    found.retain(|way| way.iter().any(|&class| class != NULL));
    found.sort_unstable();
    found.dedup();
    let is_part = |way: &Way, whole: &Way| way != whole && way.iter().zip(whole).all(|(a, b)| *a == NULL || a == b);
    let whole: Vec<Way> = found.iter().filter(|way| !found.iter().any(|other| is_part(way, other))).cloned().collect();
    for way in &whole {
        crowds.entry(way.clone()).or_insert_with_key(|way| persons_of(earlier, way));
    }
    whole
}

/// Whether a person can have been in all classes of a way, given what was verified about each release and those before
/// it.
fn can_be(earlier: &[Earlier<'_>], crowds: &mut HashMap<Way, Vec<u32>>, way: &Way, person: u32) -> bool {
    earlier.iter().enumerate().filter(|(at, _)| way[*at] != NULL).all(|(at, release)| {
        let Some(beside) = release.beside else { return true };
        let mut both = vec![NULL; way.len()];
        beside.releases.iter().for_each(|&other| both[other] = way[other]);
        if both.iter().all(|&class| class == NULL) {
            return true;
        }
        both[at] = way[at];
        let crowd = crowds.entry(both).or_insert_with_key(|both| persons_of(earlier, both));
        crowd.len() as u64 + u64::from(crowd.binary_search(&person).is_err()) >= beside.k
    })
}

fn persons_of(earlier: &[Earlier<'_>], way: &Way) -> Vec<u32> {
    let mut classes: Vec<&Vec<u32>> = earlier
        .iter()
        .zip(way)
        .filter(|(_, class)| **class != NULL)
        .map(|(release, &class)| &release.persons[class as usize])
        .collect();
    classes.sort_by_key(|persons| persons.len());
    let Some((fewest, others)) = classes.split_first() else { return Vec::new() };
    let in_all = |person: &&u32| others.iter().all(|persons| persons.binary_search(person).is_ok());
    fewest.iter().filter(in_all).copied().collect()
}
