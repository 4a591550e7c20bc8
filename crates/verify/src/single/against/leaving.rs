//! [`Leaving`]: persons whose rows are exactly those that a release left out.
//!
//! # Guarantee
//! Boxes and points that are connected, because a box may take a point, form a part. If a part has more private rows
//! than released rows, it must leave out exactly the difference. A person is decided only if these counts leave no
//! choice. If the counts contradict each other, nobody's rows can be those left out.
//! # Method
//! Two rules are repeated until nothing changes. If a part leaves out no row, everybody with a row in it stays. If a
//! part must leave out as many rows as its undecided persons have in it, all of these leave. Among the remaining
//! persons, a random choice is improved by exchanging one person for another until the counts of all parts are met.

use super::persons::{CandidateGraph, NONE, Puzzle, Random};
use crate::Violation;

/// How many exchanges are tried for one choice of persons.
const MOST_EXCHANGES: usize = 1 << 17;

/// Whether a person is left out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Open,
    Stays,
    Leaves,
}

/// Who is left out, as far as the counts of parts tell.
pub(super) struct Leaving {
    places: Vec<Place>,
    /// The parts that hold the rows of each person, one entry per row.
    parts_of_person: Vec<Vec<u32>>,
    /// For each part, how many rows of undecided persons it leaves out.
    missing: Vec<i64>,
    /// Undecided persons.
    open: Vec<u32>,
    /// How many of the undecided persons leave.
    n_open: usize,
}

impl Leaving {
    /// Applies both rules.
    ///
    /// # Errors
    /// If nobody's rows can be those left out.
    pub(super) fn new(puzzle: &Puzzle<'_>, graph: &CandidateGraph) -> Result<Self, Violation> {
        let parts = parts(graph);
        let n_parts = parts.iter().max().map_or(0, |&part| part as usize + 1);
        let mut missing = vec![0i64; n_parts];
        let mut parts_of_person: Vec<Vec<u32>> = vec![Vec::new(); puzzle.persons.n_numbers()];
        let mut persons_of_part: Vec<Vec<u32>> = vec![Vec::new(); n_parts];
        for (&point, &person) in graph.point_of_row.iter().zip(&graph.person_of_row) {
            let part = parts[point as usize];
            missing[part as usize] += 1;
            parts_of_person[person as usize].push(part);
            persons_of_part[part as usize].push(person);
        }
        for of in 0..graph.needs.len() as u32 {
            let part = parts[graph.candidates(of)[0] as usize];
            missing[part as usize] -= i64::from(graph.needs[of as usize]);
        }
        let places = parts_of_person.iter().map(|parts| if parts.is_empty() { Place::Stays } else { Place::Open });
        let mut leaving = Leaving { places: places.collect(), parts_of_person, missing, open: Vec::new(), n_open: 0 };
        let n_left = leaving.decide(&persons_of_part).map_err(|part| {
            let is_there = |person: &u32| persons_of_part[part].contains(person);
            let first_row = graph.person_of_row.iter().position(is_there).map_or(0, |row| row as u64 + 1);
            Violation::PersonSplit { n: 1, first_row }
        })?;
        let n_left_out = puzzle.n_left_out as usize;
        leaving.open =
            (0..leaving.places.len() as u32).filter(|&of| leaving.places[of as usize] == Place::Open).collect();
        let n_missing: i64 = leaving.missing.iter().sum();
        // Each undecided person who leaves takes at least one of the missing rows along.
        let is_possible = n_left <= n_left_out
            && (n_left_out == n_left) == (n_missing == 0)
            && (n_left_out - n_left) as i64 <= n_missing
            && n_left_out - n_left <= leaving.open.len();
        if !is_possible {
            let counted = (n_left + usize::from(n_missing > 0)) as u64;
            return Err(Violation::SuppressedMiscounted { what: "persons", admitted: puzzle.n_left_out, counted });
        }
        leaving.n_open = n_left_out - n_left;
        Ok(leaving)
    }

    /// Repeats both rules until nothing changes, and returns the number of persons who leave.
    ///
    /// # Errors
    /// A part in which only some rows of a person could be left out.
    fn decide(&mut self, persons_of_part: &[Vec<u32>]) -> Result<usize, usize> {
        let mut n_open_rows: Vec<i64> = persons_of_part.iter().map(|persons| persons.len() as i64).collect();
        let mut due: Vec<u32> = (0..self.missing.len() as u32).collect();
        let mut n_left = 0;
        while let Some(part) = due.pop() {
            let part = part as usize;
            if self.missing[part] < 0 || n_open_rows[part] < self.missing[part] {
                return Err(part);
            }
            let place = match self.missing[part] {
                _ if n_open_rows[part] == 0 => continue,
                0 => Place::Stays,
                missing if missing == n_open_rows[part] => Place::Leaves,
                _ => continue,
            };
            for &person in &persons_of_part[part] {
                if self.places[person as usize] != Place::Open {
                    continue;
                }
                self.places[person as usize] = place;
                n_left += usize::from(place == Place::Leaves);
                for &of_row in &self.parts_of_person[person as usize] {
                    n_open_rows[of_row as usize] -= 1;
                    self.missing[of_row as usize] -= i64::from(place == Place::Leaves);
                    due.push(of_row);
                }
            }
        }
        Ok(n_left)
    }

    /// Whether it is certain who is left out.
    pub(super) fn is_certain(&self) -> bool {
        self.n_open == 0
    }

    /// For each person, whether they leave for certain.
    pub(super) fn certain(&self) -> Vec<bool> {
        self.places.iter().map(|&place| place == Place::Leaves).collect()
    }

    /// How many undecided persons leave.
    pub(super) fn n_open(&self) -> usize {
        self.n_open
    }

    /// A choice of undecided persons whose rows meet the counts of all parts, if one was found.
    pub(super) fn some_set(&self, random: &mut Random, work: &mut u64) -> Option<Vec<u32>> {
        let mut persons_of_part: Vec<Vec<u32>> = vec![Vec::new(); self.missing.len()];
        for &person in &self.open {
            let parts = &self.parts_of_person[person as usize];
            parts.iter().for_each(|&part| persons_of_part[part as usize].push(person));
        }
        let mut order = self.open.clone();
        for last in (1..order.len()).rev() {
            order.swap(last, random.below(last as u64 + 1) as usize);
        }
        // The first `n_open` persons of `order` are the choice.
        let mut places = vec![NONE; self.places.len()];
        (0..).zip(&order).for_each(|(at, &person)| places[person as usize] = at);
        let mut missing = self.missing.clone();
        let mut off = Vec::new();
        let leave = |person: u32, by: i64, missing: &mut [i64]| -> i64 {
            let parts = self.parts_of_person[person as usize].iter();
            parts
                .map(|&part| {
                    let before = missing[part as usize].abs();
                    missing[part as usize] -= by;
                    missing[part as usize].abs() - before
                })
                .sum()
        };
        order[..self.n_open].iter().for_each(|&person| {
            leave(person, 1, &mut missing);
        });
        let mut distance: i64 = missing.iter().map(|missing| missing.abs()).sum();
        for _ in 0..MOST_EXCHANGES {
            if distance == 0 {
                return Some(order[..self.n_open].to_vec());
            }
            *work += 8;
            if off.is_empty() || random.below(16) == 0 {
                off = (0..missing.len() as u32).filter(|&part| missing[part as usize] != 0).collect();
                *work += missing.len() as u64 / 16;
                if off.is_empty() {
                    continue;
                }
            }
            let part = off[random.below(off.len() as u64) as usize] as usize;
            if persons_of_part[part].is_empty() || missing[part] == 0 {
                off.clear();
                continue;
            }
            let near = persons_of_part[part][random.below(persons_of_part[part].len() as u64) as usize];
            let is_in = |person: u32, places: &[u32]| (places[person as usize] as usize) < self.n_open;
            // Exchange a person with a row in this part for a person on the other side of the choice.
            let other = if is_in(near, &places) {
                self.n_open + random.below((order.len() - self.n_open).max(1) as u64) as usize
            } else {
                random.below(self.n_open as u64) as usize
            };
            let &far = order.get(other)?;
            if is_in(near, &places) != (missing[part] < 0) && random.below(8) > 0 {
                continue;
            }
            let (comes, goes) = if is_in(near, &places) { (near, far) } else { (far, near) };
            let change = leave(comes, -1, &mut missing) + leave(goes, 1, &mut missing);
            let worse = change.max(0) as f64;
            if change <= 0 || (random.below(1 << 20) as f64) < (-worse * 1.5).exp() * f64::from(1 << 18) {
                distance += change;
                let (at, other) = (places[comes as usize], places[goes as usize]);
                order.swap(at as usize, other as usize);
                places[comes as usize] = other;
                places[goes as usize] = at;
            } else {
                leave(goes, -1, &mut missing);
                leave(comes, 1, &mut missing);
            }
        }
        None
    }
}

/// The part of each point. Points that one box may take are in one part.
fn parts(graph: &CandidateGraph) -> Vec<u32> {
    let n_points = graph.degrees.len();
    let mut above: Vec<u32> = (0..n_points as u32).collect();
    fn top(above: &mut [u32], mut at: u32) -> u32 {
        while above[at as usize] != at {
            above[at as usize] = above[above[at as usize] as usize];
            at = above[at as usize];
        }
        at
    }
    for of in 0..graph.needs.len() as u32 {
        let candidates = graph.candidates(of);
        for pair in candidates.windows(2) {
            let (a, b) = (top(&mut above, pair[0]), top(&mut above, pair[1]));
            above[a.max(b) as usize] = a.min(b);
        }
    }
    let mut numbers = vec![NONE; n_points];
    let mut next = 0;
    (0..n_points as u32)
        .map(|point| {
            let top = top(&mut above, point) as usize;
            if numbers[top] == NONE {
                numbers[top] = next;
                next += 1;
            }
            numbers[top]
        })
        .collect()
}
