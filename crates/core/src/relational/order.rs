//! [`Points`]: persons as points, to see quickly who is similar to whom, and the order in which persons are met.
//!
//! A point has one coordinate per quasi column of the table of persons, and for each column of each child table the
//! numbers of rows below each node of its hierarchy, down to the level that still has few nodes.
//!
//! # Guarantee
//! points follow the cells, never the input
//! # Paper
//! `[NCN08]` leaves the order of persons open
//! # Cost
//! at most [`GROUPS`] bytes per person, and a sort of all persons as often as they can be halved

use rayon::prelude::*;

use super::forest::Forest;
use crate::encode::{Domain, Encoded};

/// Rows of child tables are counted in about so many groups of values, all columns together.
const GROUPS: usize = 256;

/// A column without a hierarchy is counted in so many ranges.
const RANGES: u64 = 8;

/// Fewer persons than this are not parted further.
const SMALLEST: usize = 8;

/// One point per folded person.
#[derive(Debug)]
pub(super) struct Points {
    n_own: usize,
    /// Places of the person's own cells, 0 to 1.
    own: Vec<f32>,
    n_groups: usize,
    /// Rows per group of values.
    counts: Vec<u8>,
}

/// Which group the codes of a column belong to.
struct Groups {
    first: usize,
    of_code: Vec<u32>,
}

impl Points {
    pub(super) fn new(forest: &Forest, encoded: &[Encoded<'_>]) -> Points {
        let domains = &encoded[0].domains;
        let n_columns: usize = encoded[1..].iter().map(|encoded| encoded.domains.len()).sum();
        let mut n_groups = 0;
        let mut groups: Vec<Vec<Groups>> = vec![Vec::new()];
        for encoded in &encoded[1..] {
            let mut of_kind = Vec::new();
            for domain in &encoded.domains {
                let of_code = group_codes(domain, GROUPS / n_columns);
                let first = n_groups;
                n_groups += of_code.iter().max().map_or(0, |&group| group as usize + 1);
                of_kind.push(Groups { first, of_code });
            }
            groups.push(of_kind);
        }
        let n_own = domains.len();
        let mut own = vec![0.0; forest.len() * n_own];
        if n_own > 0 {
            own.par_chunks_mut(n_own).enumerate().for_each(|(folded, point)| {
                for person in forest.slots(folded as u32, 0) {
                    for ((coordinate, &code), domain) in point.iter_mut().zip(person.codes).zip(domains) {
                        *coordinate = place(domain, code);
                    }
                }
            });
        }
        let mut counts = vec![0u8; forest.len() * n_groups];
        if n_groups > 0 {
            counts.par_chunks_mut(n_groups).enumerate().for_each(|(folded, point)| {
                for (kind, of_kind) in groups.iter().enumerate().skip(1) {
                    for row in forest.slots(folded as u32, kind) {
                        for (groups, &code) in of_kind.iter().zip(row.codes) {
                            let count = &mut point[groups.first + groups.of_code[code as usize] as usize];
                            *count = count.saturating_add(1);
                        }
                    }
                }
            });
        }
        Points { n_own, own, n_groups, counts }
    }

    /// Folded persons, those with similar trees near each other: halved at the median of the coordinate that varies
    /// most, and the halves likewise.
    pub(super) fn by_similarity(&self, n_persons: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..n_persons as u32).collect();
        let mut parts: Vec<&mut [u32]> = vec![&mut order];
        while !parts.is_empty() {
            parts = parts.into_par_iter().flat_map_iter(|part| self.halve(part)).collect();
        }
        order
    }

    /// How many rows of child tables one of two persons has in a group and the other has not.
    pub(super) fn differing_rows(&self, a: u32, b: u32) -> u32 {
        let counts = |person: u32| &self.counts[person as usize * self.n_groups..][..self.n_groups];
        counts(a).iter().zip(counts(b)).map(|(a, b)| u32::from(a.abs_diff(*b))).sum()
    }

    fn at(&self, person: u32, coordinate: usize) -> f32 {
        match coordinate.checked_sub(self.n_own) {
            None => self.own[person as usize * self.n_own + coordinate],
            Some(group) => f32::from(self.counts[person as usize * self.n_groups + group]),
        }
    }

    /// Puts the persons on either side of the median, and returns the sides that can be halved again.
    fn halve<'p>(&self, part: &'p mut [u32]) -> Vec<&'p mut [u32]> {
        if part.len() < SMALLEST {
            return Vec::new();
        }
        let n_persons = part.len() as f64;
        let variance = |coordinate: usize| {
            let (mut sum, mut squares) = (0.0, 0.0);
            for &person in &*part {
                let value = f64::from(self.at(person, coordinate));
                sum += value;
                squares += value * value;
            }
            squares - sum * sum / n_persons
        };
        let variances: Vec<f64> = (0..self.n_own + self.n_groups).into_par_iter().map(variance).collect();
        let widest = (0..variances.len()).max_by(|&a, &b| variances[a].total_cmp(&variances[b]).then(b.cmp(&a)));
        let Some(widest) = widest.filter(|&widest| variances[widest] > 1e-9) else { return Vec::new() };
        part.sort_by(|&a, &b| self.at(a, widest).total_cmp(&self.at(b, widest)));
        // Equal values stay together, so that what follows does not depend on how ties were broken.
        let median = self.at(part[part.len() / 2], widest);
        let below = part.partition_point(|&person| self.at(person, widest) < median);
        let above = part.partition_point(|&person| self.at(person, widest) <= median);
        let is_nearer = below > 0 && part.len() / 2 - below <= above - part.len() / 2;
        let cut = if is_nearer || above == part.len() { below } else { above };
        let (left, right) = part.split_at_mut(cut);
        vec![left, right]
    }
}

/// Where a code stands between the first and the last.
fn place(domain: &Domain, code: u32) -> f32 {
    match domain.tree() {
        None if Some(code) != domain.null() => domain.width(0, code) as f32,
        _ => code as f32 / (domain.n_codes() - 1).max(1) as f32,
    }
}

/// Groups of values: below the nodes of the lowest level that has few of them.
fn group_codes(domain: &Domain, most: usize) -> Vec<u32> {
    let n_codes = domain.n_codes();
    let Some(tree) = domain.tree() else {
        return (0..n_codes).map(|code| (u64::from(code) * RANGES / u64::from(n_codes.max(1))) as u32).collect();
    };
    let mut firsts: Vec<u32> = vec![0];
    loop {
        let mut finer: Vec<u32> = Vec::new();
        for (position, &first) in firsts.iter().enumerate() {
            let last = firsts.get(position + 1).map_or(n_codes, |&next| next).saturating_sub(1);
            if first >= last {
                finer.push(first);
            } else {
                finer.extend_from_slice(tree.child_firsts(tree.common_ancestor(first, last)));
            }
        }
        if finer.len() <= firsts.len() || finer.len() > most.max(2) {
            break;
        }
        firsts = finer;
    }
    let group = |code: u32| firsts.partition_point(|&first| first <= code) as u32 - 1;
    match firsts.len() {
        // A flat hierarchy with many values: neighbours share a group.
        1 => (0..n_codes).map(|code| (u64::from(code) * most as u64 / u64::from(n_codes.max(1))) as u32).collect(),
        _ => (0..n_codes).map(group).collect(),
    }
}
