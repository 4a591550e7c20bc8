//! [`Faces`]: an attack on releases whose boxes were fitted to the private persons.
//!
//! Suppose that a publisher leaves out register rows to make boxes smaller. A class of n rows needs only k of them, so
//! n - k can be left out. If at most n - k persons lie on one face of its box, leaving them out would make the box
//! smaller. If the class still shows the larger box, the attacker concludes that one of them is private. In columns
//! with a hierarchy, the same holds for the persons outside of one child of the node that is shown.
//!
//! # Guarantee
//! The attack counts as working only if its conclusions are right much more often than they would be by chance, if
//! everybody in a class were equally likely to be private. By chance, they would be right that often only once in a
//! billion releases, so a release whose boxes don't depend on who is private is not refused by mistake. A release must
//! not be refused because of who happens to lie on a face, because readers would then be surer than before about the
//! persons who don't.
//!
//! # Paper   The bound is Chernoff's. It applies because the private persons of a class are drawn without replacement, so
//! conclusions about different persons are negatively associated.

use std::collections::{BTreeMap, HashSet};

use kohort_model::{Column, Hierarchy, InRegister, JoinedRegister, NULL};
use rayon::prelude::*;

use super::JoinedRows;
use crate::count::grouping::Classes;

/// The attack works if its conclusions would be right that often by chance with a probability below a billionth. This
/// is the natural logarithm of a billionth.
const CHANCE: f64 = -20.7;

/// The release that is attacked.
pub(super) struct Faces<'a> {
    pub(super) shown: &'a JoinedRows<'a>,
    pub(super) classes: &'a Classes,
    pub(super) joined: &'a JoinedRegister,
    /// The number of private persons in each class.
    pub(super) n_private: &'a [u32],
    pub(super) k: u32,
}

/// A conclusion: one of these persons is private. Persons are given as rows of the join.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    persons: Vec<u32>,
    class: usize,
}

/// How often conclusions about equally many persons are right.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    n: u64,
    right: u64,
    /// The number of conclusions that would be right by chance.
    by_chance: f64,
}

impl Faces<'_> {
    /// How sure the attack makes a reader that one person is private; `None` if it does not work.
    pub(super) fn attack(&self) -> Option<f64> {
        let order: Vec<ValueOrder<'_>> = self.joined.rows.columns.par_iter().map(ValueOrder::of).collect();
        let mut claims: Vec<Claim> =
            (0..self.classes.len()).into_par_iter().flat_map_iter(|class| self.claims(class, &order)).collect();
        claims.par_sort_unstable_by(|a, b| a.persons.len().cmp(&b.persons.len()).then_with(|| a.cmp(b)));
        let mut records: BTreeMap<usize, Record> = BTreeMap::new();
        let mut met: HashSet<u32> = HashSet::new();
        // Conclusions about the same person are not independent, so only the first counts.
        for Claim { persons, class } in claims {
            if persons.iter().any(|person| met.contains(person)) {
                continue;
            }
            let record = records.entry(persons.len()).or_default();
            let share = f64::from(self.n_private[class]) / self.classes.rows(class).len() as f64;
            record.n += 1;
            record.by_chance += (share * persons.len() as f64).min(1.0);
            record.right += u64::from(persons.iter().any(|&person| (person as usize) < self.joined.n_microdata));
            met.extend(persons);
        }
        let working = records.into_iter().filter(|(_, record)| record.is_beyond_chance());
        working
            .map(|(n_persons, record)| record.right as f64 / record.n as f64 / n_persons as f64)
            .max_by(f64::total_cmp)
    }

    /// The conclusions from one class.
    fn claims(&self, class: usize, order: &[ValueOrder<'_>]) -> Vec<Claim> {
        let rows = self.classes.rows(class);
        let spare = rows.len().saturating_sub(self.k as usize);
        if spare == 0 {
            return Vec::new();
        }
        let members: Vec<Member> = rows.iter().map(|&row| self.member(self.shown.rows[row as usize])).collect();
        let faces = order.iter().enumerate().flat_map(|(column, order)| {
            let cell = |row: u32| self.joined.rows.columns[column].ids[row as usize];
            order.faces(&members, cell)
        });
        let is_few = |persons: &Vec<u32>| !persons.is_empty() && persons.len() <= spare;
        faces.filter(is_few).map(|persons| Claim { persons, class }).collect()
    }

    fn member(&self, source: u32) -> Member {
        let place = match self.joined.persons.get(source as usize) {
            None | Some(InRegister::Same(_)) => Some(source),
            Some(InRegister::Differs(place)) => Some(*place),
            Some(InRegister::Absent) => None,
        };
        Member { source, place }
    }
}

/// A person of a class: the row of the join with their cells, and the row with the values that the register gives them.
#[derive(Clone, Copy)]
struct Member {
    source: u32,
    place: Option<u32>,
}

/// How the values of a column are arranged.
enum ValueOrder<'a> {
    /// In an order: the rank of each text.
    Ranks(Vec<u32>),
    /// In a tree: the leaf of each text.
    Tree(&'a Hierarchy, Vec<u32>),
    /// Without any order.
    Apart,
}

impl<'a> ValueOrder<'a> {
    fn of(column: &'a Column) -> ValueOrder<'a> {
        let ids = 0..column.texts.len() as u32;
        if let Some(hierarchy) = &column.hierarchy {
            let leaf = |id: u32| hierarchy.leaf(column.texts.get(id)).unwrap_or(NULL);
            return ValueOrder::Tree(hierarchy, ids.map(leaf).collect());
        }
        if !column.value_type.is_ordered() {
            return ValueOrder::Apart;
        }
        let mut sorted: Vec<u32> = ids.collect();
        sorted.par_sort_by_cached_key(|&id| column.value(id));
        let mut ranks = vec![0; sorted.len()];
        let mut rank = 0;
        for (position, &id) in sorted.iter().enumerate() {
            rank += u32::from(position > 0 && column.value(sorted[position - 1]) != column.value(id));
            ranks[id as usize] = rank;
        }
        ValueOrder::Ranks(ranks)
    }

    /// The register persons on each face of a box. `cell` gives the cell of a row of the join. A class with nulls has
    /// no faces.
    fn faces(&self, members: &[Member], cell: impl Fn(u32) -> u32) -> Vec<Vec<u32>> {
        let places = || members.iter().filter_map(|member| Some((member.source, cell(member.place?))));
        let cells = || places().map(|(_, cell)| cell).chain(members.iter().map(|member| cell(member.source)));
        if cells().any(|cell| cell == NULL) {
            return Vec::new();
        }
        // The persons in each part of the box. Without those outside of one part, the box would shrink to this part.
        let mut parts: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        match self {
            ValueOrder::Ranks(ranks) => {
                let rank = |cell: u32| ranks[cell as usize];
                let (first, last) =
                    cells().fold((u32::MAX, 0), |(lo, hi), cell| (lo.min(rank(cell)), hi.max(rank(cell))));
                if first == last {
                    return Vec::new();
                }
                let at = |end: u32| places().filter(|&(_, cell)| rank(cell) == end).map(|(person, _)| person).collect();
                return vec![at(first), at(last)];
            }
            ValueOrder::Apart => places().for_each(|(person, cell)| parts.entry(cell).or_default().push(person)),
            ValueOrder::Tree(hierarchy, leaves) => {
                let leaf = |cell: u32| leaves[cell as usize];
                if cells().any(|cell| leaf(cell) == NULL) {
                    return Vec::new();
                }
                let Some(top) = common_node(hierarchy, cells().map(leaf)) else { return Vec::new() };
                for (person, cell) in places() {
                    let below = hierarchy.path(leaf(cell)).take_while(|&node| node != top).last();
                    parts.entry(below.unwrap_or(top)).or_default().push(person);
                }
            }
        }
        let others =
            |part: u32| parts.iter().filter(move |(other, _)| **other != part).flat_map(|(_, persons)| persons);
        parts.keys().map(|&part| others(part).copied().collect()).collect()
    }
}

/// The lowest node above all of these leaves.
fn common_node(hierarchy: &Hierarchy, leaves: impl Iterator<Item = u32>) -> Option<u32> {
    let mut leaves: Vec<u32> = leaves.collect();
    leaves.sort_unstable();
    leaves.dedup();
    let mut above: Vec<u32> = hierarchy.path(*leaves.first()?).collect();
    for &leaf in &leaves[1..] {
        let path: HashSet<u32> = hierarchy.path(leaf).collect();
        above.retain(|node| path.contains(node));
    }
    above.first().copied()
}

impl Record {
    /// Whether the conclusions are right so often that chance can't be the reason.
    fn is_beyond_chance(self) -> bool {
        let n = self.n as f64;
        let (right, by_chance) = (self.right as f64 / n, self.by_chance / n);
        let term = |share: f64, other: f64| if share == 0.0 { 0.0 } else { share * (share / other).ln() };
        right > by_chance && -n * (term(right, by_chance) + term(1.0 - right, 1.0 - by_chance)) < CHANCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attack_works_when_it_is_right_more_often_than_chance_allows() {
        let is_beyond_chance = |n, right, by_chance| Record { n, right, by_chance }.is_beyond_chance();
        for (n, right, by_chance) in [(22, 22, 4.8), (450, 450, 135.0), (100, 50, 20.0)] {
            assert!(is_beyond_chance(n, right, by_chance), "{right} of {n} right, {by_chance} by chance");
        }
        for (n, right, by_chance) in [(100, 30, 20.0), (100, 20, 20.0), (1, 1, 0.01), (9, 0, 0.0), (20, 5, 10.0)] {
            assert!(!is_beyond_chance(n, right, by_chance), "{right} of {n} right, {by_chance} by chance");
        }
    }
}
