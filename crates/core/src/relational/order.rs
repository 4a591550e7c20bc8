//! [`Points`]: persons as points, to see quickly who is similar to whom, and the order in which persons are met.
//!
//! A point has one coordinate per quasi column of the table of persons, and for each column of each child table the
//! numbers of rows below each node of its hierarchy, or above each of a few thresholds. Weighed by how much wider the
//! node above is, differences of these numbers add up to what pairing the rows of two persons by that column alone
//! would lose at best: rows that find no partner below a node must look for one above it. Numbers of rows by table
//! are coordinates, too, where rows are worth more than their cells.
//!
//! # Guarantee
//! Points depend on the cells, never on the order of the input.
//! # Paper
//! `[NCN08]` leaves the order of persons open
//! # Deviations
//! If a hierarchy has many nodes, its lowest levels are left out, as if pairs within one group lost nothing.
//! # Cost
//! at most [`GROUPS`] bytes per person, and a sort of all persons as often as they can be halved

use rayon::prelude::*;

use super::forest::{Forest, Kind};
use crate::encode::{Domain, Encoded, Tree};

/// Rows of child tables are counted in about this many groups of values, over all columns.
const GROUPS: usize = 512;

/// A column without a hierarchy has at most this many thresholds. For each one, a person's rows above it are counted.
const THRESHOLDS: u32 = 15;

/// Weights are whole multiples of one divided by this number.
const UNIT: f64 = 1024.0;

/// Fewer persons than this are not parted further.
const SMALLEST: usize = 8;

/// One point per folded person.
#[derive(Debug)]
pub(super) struct Points {
    n_own: usize,
    /// Where each of the person's own cells lies in its column, from 0 for the first code to 1 for the last.
    own: Vec<f32>,
    n_groups: usize,
    /// Rows per group of values.
    counts: Vec<u8>,
    /// For each group, the weight of one row more or less.
    weights: Vec<i16>,
    /// For each person and child table, the number of rows. They weigh what a row is worth beyond its cells.
    totals: Vec<u32>,
}

/// Groups of a column's values, each a run of codes and the weight of a row in it.
struct Groups {
    first: usize,
    runs: Vec<(u32, u32, f64)>,
    /// For each code, the groups that hold it.
    of_code: Vec<Vec<u32>>,
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
                let column = Groups::new(domain, GROUPS / n_columns, n_groups);
                n_groups += column.runs.len();
                of_kind.push(column);
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
                            for &group in &groups.of_code[code as usize] {
                                let count = &mut point[groups.first + group as usize];
                                *count = count.saturating_add(1);
                            }
                        }
                    }
                }
            });
        }
        let runs = groups.iter().flatten().flat_map(|column| &column.runs);
        let weights = runs.map(|&(_, _, weight)| (weight * UNIT) as i16).collect();
        let totals = (0..forest.len() as u32)
            .flat_map(|folded| (1..forest.kinds.len()).map(move |kind| forest.n_rows(folded, kind)))
            .collect();
        Points { n_own, own, n_groups, counts, weights, totals }
    }

    /// Folded persons in an order in which similar trees are near each other. Persons are halved at the median of the
    /// coordinate that varies most, and so is each half. `kinds` say what rows are worth.
    pub(super) fn by_similarity(&self, persons: &[u32], kinds: &[Kind]) -> Vec<u32> {
        let mut order = persons.to_vec();
        let mut parts: Vec<&mut [u32]> = vec![&mut order];
        while !parts.is_empty() {
            parts = parts.into_par_iter().flat_map_iter(|part| self.halve(part, kinds)).collect();
        }
        order
    }

    /// What pairing the rows that two persons have in child tables would lose at best, column by column, and what the rows
    /// that only one of them has are worth beyond that.
    pub(super) fn difference(&self, a: u32, b: u32, kinds: &[Kind]) -> f64 {
        let counts = |person: u32| &self.counts[person as usize * self.n_groups..][..self.n_groups];
        // Products of 16-bit numbers that add up to 32 bits are what processors do eight at a time.
        let products = counts(a).iter().zip(counts(b)).zip(&self.weights);
        let sum: i32 = products.map(|((a, b), &weight)| i32::from(i16::from(a.abs_diff(*b))) * i32::from(weight)).sum();
        let totals = |person: u32| &self.totals[person as usize * (kinds.len() - 1)..][..kinds.len() - 1];
        let surplus = totals(a).iter().zip(totals(b)).zip(&kinds[1..]);
        let surplus: f64 = surplus.map(|((a, b), kind)| f64::from(a.abs_diff(*b)) * kind.beyond_cells()).sum();
        f64::from(sum) / UNIT + surplus
    }

    fn at(&self, person: u32, coordinate: usize, n_totals: usize) -> f32 {
        let person = person as usize;
        match coordinate.checked_sub(self.n_own) {
            None => self.own[person * self.n_own + coordinate],
            Some(group) => match group.checked_sub(self.n_groups) {
                None => f32::from(self.counts[person * self.n_groups + group]),
                Some(child) => self.totals[person * n_totals + child] as f32,
            },
        }
    }

    /// Puts the persons on either side of the median, and returns the sides that can be halved again.
    fn halve<'p>(&self, part: &'p mut [u32], kinds: &[Kind]) -> Vec<&'p mut [u32]> {
        if part.len() < SMALLEST {
            return Vec::new();
        }
        let n_persons = part.len() as f64;
        let n_totals = kinds.len() - 1;
        let weight = |coordinate: usize| match coordinate.checked_sub(self.n_own) {
            None => 1.0,
            Some(group) => match group.checked_sub(self.n_groups) {
                None => f64::from(self.weights[group]) / UNIT,
                Some(child) => kinds[child + 1].beyond_cells(),
            },
        };
        let variance = |coordinate: usize| {
            let (mut sum, mut squares) = (0.0, 0.0);
            for &person in &*part {
                let value = f64::from(self.at(person, coordinate, n_totals));
                sum += value;
                squares += value * value;
            }
            (squares - sum * sum / n_persons) * weight(coordinate) * weight(coordinate)
        };
        let variances: Vec<f64> = (0..self.n_own + self.n_groups + n_totals).into_par_iter().map(variance).collect();
        let widest = (0..variances.len()).max_by(|&a, &b| variances[a].total_cmp(&variances[b]).then(b.cmp(&a)));
        let Some(widest) = widest.filter(|&widest| variances[widest] > 1e-9) else { return Vec::new() };
        let at = |person: u32| self.at(person, widest, n_totals);
        part.sort_by(|&a, &b| at(a).total_cmp(&at(b)));
        // Equal values stay together, so that what follows does not depend on how ties were broken.
        let median = at(part[part.len() / 2]);
        let below = part.partition_point(|&person| at(person) < median);
        let above = part.partition_point(|&person| at(person) <= median);
        let is_nearer = below > 0 && part.len() / 2 - below <= above - part.len() / 2;
        let cut = if is_nearer || above == part.len() { below } else { above };
        let (left, right) = part.split_at_mut(cut);
        vec![left, right]
    }
}

/// The position of a code between the first code and the last, 0 to 1.
fn place(domain: &Domain, code: u32) -> f32 {
    match domain.tree() {
        None if Some(code) != domain.null() => domain.width(0, code) as f32,
        _ => code as f32 / (domain.n_codes() - 1).max(1) as f32,
    }
}

impl Groups {
    fn new(domain: &Domain, most: usize, first: usize) -> Groups {
        let n_codes = domain.n_codes();
        let runs = match domain.tree() {
            // A table without rows.
            _ if n_codes == 0 => Vec::new(),
            None => thresholds(domain),
            Some(tree) => levels(domain, tree, most),
        };
        let holds = |code: u32| (0..).zip(&runs).filter(move |&(_, &(lo, hi, _))| lo <= code && code <= hi);
        let of_code = (0..n_codes).map(|code| holds(code).map(|(group, _)| group).collect()).collect();
        Groups { first, runs, of_code }
    }
}

/// All codes from a threshold up: two rows are apart by as many of these as lie between them.
fn thresholds(domain: &Domain) -> Vec<(u32, u32, f64)> {
    let last = domain.n_codes() - 1;
    let from = |threshold: u32| {
        let place = f64::from(threshold) / f64::from(THRESHOLDS + 1);
        (0..last).find(|&code| Some(code) != domain.null() && domain.width(0, code) >= place).unwrap_or(last)
    };
    (1..=THRESHOLDS).map(|threshold| (from(threshold), last, 2.0 / f64::from(THRESHOLDS + 1))).collect()
}

/// The nodes of a hierarchy but its root, level by level while there are not too many.
fn levels(domain: &Domain, tree: &Tree, most: usize) -> Vec<(u32, u32, f64)> {
    let mut runs: Vec<(u32, u32, f64)> = Vec::new();
    let mut level = vec![(0, domain.n_codes() - 1)];
    loop {
        let mut below = Vec::new();
        for &(lo, hi) in level.iter().filter(|(lo, hi)| lo < hi) {
            let firsts = tree.child_firsts(tree.common_ancestor(lo, hi));
            for (position, &first) in firsts.iter().enumerate() {
                let last = firsts.get(position + 1).map_or(hi, |next| next - 1);
                below.push((first, last, domain.width(lo, hi) - domain.width(first, last)));
            }
        }
        if runs.is_empty() && below.len() > most {
            // A flat hierarchy with many values: let neighbours share a group.
            let step = below.len().div_ceil(most.max(1));
            return below.chunks(step).map(|part| (part[0].0, part[part.len() - 1].1, 1.0)).collect();
        }
        if below.is_empty() || runs.len() + below.len() > most {
            return runs;
        }
        level = below.iter().map(|&(lo, hi, _)| (lo, hi)).collect();
        runs.extend(below);
    }
}
