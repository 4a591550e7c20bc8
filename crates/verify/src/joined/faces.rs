//! [`Faces`]: an attack on releases whose boxes were fitted to the private persons.
//!
//! A publisher who leaves register rows out where that shrinks a box shows who is private: a class of n rows where k
//! are enough could do without n - k of them. If so few register persons lie on one face of its box that the class could
//! do without all of them, it would show a smaller box, unless one of them is private. So the attacker concludes that
//! one is. In columns with a hierarchy the same holds for those outside of one child of the node that is shown.
//!
//! # Guarantee
//! The attack works only if its conclusions are right more often than chance allows, were everybody of a class equally
//! likely to be private. Chance does so much once in a billion releases, so a release whose boxes don't depend on who is
//! private is not accused. It also must not be refused by who happens to lie on a face: the persons who don't would
//! then be surer than their share.
//!
//! # Paper   the tail is Chernoff's: persons of a class are drawn without replacement, so conclusions about different
//! persons are negatively associated

use std::collections::{BTreeMap, HashSet};

use kohort_model::{Column, Hierarchy, InRegister, JoinedRegister, NULL};
use rayon::prelude::*;

use super::Shown;
use crate::count::grouping::Classes;

/// The logarithm of how seldom chance may be as right as an attack that is taken for a working one: a billionth.
const CHANCE: f64 = -20.7;

/// What the attack is run on.
pub(super) struct Faces<'a> {
    pub(super) shown: &'a Shown<'a>,
    pub(super) classes: &'a Classes,
    pub(super) joined: &'a JoinedRegister,
    /// Private persons per class.
    pub(super) n_private: &'a [u32],
    pub(super) k: u32,
}

/// A conclusion: one of these persons is private. Persons are joined rows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    persons: Vec<u32>,
    class: usize,
}

/// Conclusions about equally many persons.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    n: u64,
    right: u64,
    /// How many are right by chance.
    by_chance: f64,
}

impl Faces<'_> {
    /// How sure the attack makes its reader that one person is private; `None` where it does not work.
    pub(super) fn attack(&self) -> Option<f64> {
        let order: Vec<Order<'_>> = self.joined.rows.columns.par_iter().map(Order::of).collect();
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

    /// What the attacker concludes from one class.
    fn claims(&self, class: usize, order: &[Order<'_>]) -> Vec<Claim> {
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

/// A person of a class: the joined row of their cells, and that of where the register says they are.
#[derive(Clone, Copy)]
struct Member {
    source: u32,
    place: Option<u32>,
}

/// How the values of a column lie.
enum Order<'a> {
    /// In a row: the rank of each text.
    Ranks(Vec<u32>),
    /// In a tree: the leaf of each text.
    Tree(&'a Hierarchy, Vec<u32>),
    /// Beside each other.
    Apart,
}

impl<'a> Order<'a> {
    fn of(column: &'a Column) -> Order<'a> {
        let ids = 0..column.texts.len() as u32;
        if let Some(hierarchy) = &column.hierarchy {
            let leaf = |id: u32| hierarchy.leaf(column.texts.get(id)).unwrap_or(NULL);
            return Order::Tree(hierarchy, ids.map(leaf).collect());
        }
        if !column.value_type.is_ordered() {
            return Order::Apart;
        }
        let mut sorted: Vec<u32> = ids.collect();
        sorted.par_sort_by_cached_key(|&id| column.value(id));
        let mut ranks = vec![0; sorted.len()];
        let mut rank = 0;
        for (position, &id) in sorted.iter().enumerate() {
            rank += u32::from(position > 0 && column.value(sorted[position - 1]) != column.value(id));
            ranks[id as usize] = rank;
        }
        Order::Ranks(ranks)
    }

    /// Register persons on each face of a box. `cell` is the cell of a joined row; a class with nulls has no faces.
    fn faces(&self, members: &[Member], cell: impl Fn(u32) -> u32) -> Vec<Vec<u32>> {
        let places = || members.iter().filter_map(|member| Some((member.source, cell(member.place?))));
        let cells = || places().map(|(_, cell)| cell).chain(members.iter().map(|member| cell(member.source)));
        if cells().any(|cell| cell == NULL) {
            return Vec::new();
        }
        // Persons in each part of the box, where leaving a part, or all but one, would make it smaller.
        let mut parts: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        match self {
            Order::Ranks(ranks) => {
                let rank = |cell: u32| ranks[cell as usize];
                let (first, last) =
                    cells().fold((u32::MAX, 0), |(lo, hi), cell| (lo.min(rank(cell)), hi.max(rank(cell))));
                if first == last {
                    return Vec::new();
                }
                let at = |end: u32| places().filter(|&(_, cell)| rank(cell) == end).map(|(person, _)| person).collect();
                return vec![at(first), at(last)];
            }
            Order::Apart => places().for_each(|(person, cell)| parts.entry(cell).or_default().push(person)),
            Order::Tree(hierarchy, leaves) => {
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

/// The lowest node that is above all leaves.
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
    /// Whether chance is as right so seldom that it can't be the reason.
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
