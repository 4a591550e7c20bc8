//! The order in which persons are met: similar ones near each other, so that whoever is met next has neighbours.
//!
//! Persons are points: one coordinate per quasi column of their own table, and for each child table how many rows fall
//! below each node near the root of each column's hierarchy. The points are halved at the median of the coordinate that
//! varies most, and the halves likewise.
//!
//! # Paper
//! left open by `[NCN08]`
//! # Guarantee
//! the order follows the cells, never the input

use rayon::prelude::*;

use super::forest::Forest;
use crate::encode::{Domain, Encoded};

/// A column of a child table is counted in at most so many groups of values.
const GROUPS: usize = 32;

/// Fewer persons than this are not parted further.
const SMALLEST: usize = 8;

/// Folded persons, those with similar trees near each other.
pub(super) fn by_similarity(forest: &Forest, encoded: &[Encoded<'_>]) -> Vec<u32> {
    let points = Points::new(forest, encoded);
    let mut order: Vec<u32> = (0..forest.len() as u32).collect();
    let mut parts: Vec<&mut [u32]> = vec![&mut order];
    while !parts.is_empty() {
        parts = parts.into_par_iter().flat_map_iter(|part| points.halve(part)).collect();
    }
    order
}

/// One point per folded person.
struct Points {
    n_coordinates: usize,
    coordinates: Vec<f32>,
}

/// How the rows of one column count.
struct Groups {
    first: usize,
    of_code: Vec<u32>,
}

impl Points {
    fn new(forest: &Forest, encoded: &[Encoded<'_>]) -> Points {
        let own = &encoded[0].domains;
        let mut n_coordinates = own.len();
        let mut groups: Vec<Vec<Groups>> = vec![Vec::new()];
        for encoded in &encoded[1..] {
            let mut of_kind = Vec::new();
            for domain in &encoded.domains {
                let of_code = group_codes(domain);
                let n_groups = of_code.iter().max().map_or(0, |&group| group as usize + 1);
                of_kind.push(Groups { first: n_coordinates, of_code });
                n_coordinates += n_groups;
            }
            groups.push(of_kind);
        }
        let mut coordinates = vec![0.0; forest.len() * n_coordinates];
        if n_coordinates > 0 {
            coordinates.par_chunks_mut(n_coordinates).enumerate().for_each(|(folded, point)| {
                let folded = folded as u32;
                for person in forest.slots(folded, 0) {
                    for ((coordinate, &code), domain) in point.iter_mut().zip(person.codes).zip(own) {
                        *coordinate = place(domain, code);
                    }
                }
                for (kind, of_kind) in groups.iter().enumerate().skip(1) {
                    for row in forest.slots(folded, kind) {
                        for (groups, &code) in of_kind.iter().zip(row.codes) {
                            point[groups.first + groups.of_code[code as usize] as usize] += 1.0;
                        }
                    }
                }
            });
        }
        Points { n_coordinates, coordinates }
    }

    fn at(&self, person: u32, coordinate: usize) -> f32 {
        self.coordinates[person as usize * self.n_coordinates + coordinate]
    }

    /// Puts the persons on either side of the median, and returns the sides that can be halved again.
    fn halve<'p>(&self, part: &'p mut [u32]) -> Vec<&'p mut [u32]> {
        if part.len() < SMALLEST {
            return Vec::new();
        }
        let n_persons = part.len() as f64;
        let (mut sums, mut squares) = (vec![0.0; self.n_coordinates], vec![0.0; self.n_coordinates]);
        for &person in &*part {
            for coordinate in 0..self.n_coordinates {
                let value = f64::from(self.at(person, coordinate));
                sums[coordinate] += value;
                squares[coordinate] += value * value;
            }
        }
        let variance = |coordinate: usize| squares[coordinate] - sums[coordinate] * sums[coordinate] / n_persons;
        let widest = (0..self.n_coordinates).max_by(|&a, &b| variance(a).total_cmp(&variance(b)).then(b.cmp(&a)));
        let Some(widest) = widest.filter(|&widest| variance(widest) > 1e-9) else { return Vec::new() };
        part.sort_by(|&a, &b| self.at(a, widest).total_cmp(&self.at(b, widest)));
        // Equal values stay together, so that what follows does not depend on how ties were broken.
        let value = |place: usize| self.at(part[place], widest);
        let middle = part.len() / 2;
        let below = part.partition_point(|&person| self.at(person, widest) < value(middle));
        let above = part.partition_point(|&person| self.at(person, widest) <= value(middle));
        let cut = if below > 0 && middle - below <= above - middle || above == part.len() { below } else { above };
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

/// Groups of values: below the nodes next to the root, or one level further where these are few.
fn group_codes(domain: &Domain) -> Vec<u32> {
    let n_codes = domain.n_codes();
    let Some(tree) = domain.tree() else {
        return (0..n_codes).map(|code| (u64::from(code) * 8 / u64::from(n_codes.max(1))) as u32).collect();
    };
    let mut firsts: Vec<u32> = vec![0];
    loop {
        let mut finer: Vec<u32> = Vec::new();
        for (position, &first) in firsts.iter().enumerate() {
            let last = firsts.get(position + 1).map_or(n_codes, |&next| next) - 1;
            if first >= last {
                finer.push(first);
            } else {
                finer.extend_from_slice(tree.child_firsts(tree.common_ancestor(first, last)));
            }
        }
        if finer.len() == firsts.len() || finer.len() > GROUPS && firsts.len() > 1 {
            break;
        }
        firsts = finer;
    }
    let group = |code: u32| (firsts.partition_point(|&first| first <= code) - 1) as u32;
    let most = GROUPS as u32 * 4;
    (0..n_codes).map(|code| group(code) * most.min(firsts.len() as u32) / firsts.len() as u32).collect()
}
