//! [`gather`]: an assignment of origins in which all private rows with equal quasi cells go to one class.
//!
//! Most partitioners never separate rows that look the same, so this often finds the very rows that a release was made
//! from. The result is only a proposal from which the search starts. If there is none, the search starts from any
//! assignment.
//! # Method
//! A spot is a set of private rows with equal quasi cells. The spot that the fewest classes can take is placed first,
//! always in the class that has the least room left. A choice is never taken back; instead, there are several attempts.

use std::collections::{BTreeSet, HashMap};

use super::persons::{CandidateGraph, NONE, Puzzle, Random};
use crate::count::grouping::Classes;

/// The largest number of attempts.
const MOST_ATTEMPTS: usize = 12;

/// How many pairs of a class and a spot are considered at most.
const MOST_WEIGHED: usize = 1 << 25;

/// The rows of several points with the same quasi cells.
struct Spot {
    /// The points, each with the number of its rows that are not left out.
    points: Vec<(u32, u32)>,
    /// The classes whose boxes may take all of these points.
    classes: Vec<u32>,
}

/// Triples of a box, a point that it takes, and the number of rows that it takes. `None` if no assignment was found.
pub(super) fn gather(
    puzzle: &Puzzle<'_>,
    graph: &CandidateGraph,
    supplies: &[u32],
    random: &mut Random,
) -> Option<Vec<(u32, u32, u32)>> {
    let classes = Classes::group(&puzzle.roll.quasi.iter().collect::<Vec<_>>(), puzzle.roll.n_rows);
    let class_of_slot = classes.class_of_rows();
    let class_of_box: Vec<u32> =
        (0..graph.needs.len()).map(|of| class_of_slot[puzzle.origins.boxes.rows(of)[0] as usize]).collect();
    let box_of: HashMap<(u32, u32), u32> = (0..graph.needs.len() as u32)
        .map(|of| ((class_of_box[of as usize], graph.bucket_of_box[of as usize]), of))
        .collect();

    let spots = Classes::group(&puzzle.quasi.iter().collect::<Vec<_>>(), puzzle.n_original);
    let mut spot_of_point = vec![NONE; supplies.len()];
    for spot in 0..spots.len() {
        let rows = spots.rows(spot).iter();
        rows.for_each(|&row| spot_of_point[graph.point_of_row[row as usize] as usize] = spot as u32);
    }
    let mut all: Vec<Spot> = (0..spots.len()).map(|_| Spot { points: Vec::new(), classes: Vec::new() }).collect();
    for (point, &n) in supplies.iter().enumerate().filter(|(_, n)| **n > 0) {
        all[spot_of_point[point] as usize].points.push((point as u32, n));
    }
    for of in 0..graph.needs.len() as u32 {
        for &point in graph.candidates(of).iter().filter(|&&point| supplies[point as usize] > 0) {
            all[spot_of_point[point as usize] as usize].classes.push(class_of_box[of as usize]);
        }
    }
    let mut spots_of_class: Vec<Vec<u32>> = vec![Vec::new(); classes.len()];
    let mut n_weighed = 0;
    for (number, spot) in (0..).zip(&mut all) {
        // The list holds a class once for each point of the spot that one of its boxes may take. Keep the classes that
        // may take all points.
        spot.classes.sort_unstable();
        let runs = spot.classes.chunk_by(|a, b| a == b);
        let n_points = spot.points.len();
        spot.classes = runs.filter(|run| run.len() == n_points).map(|run| run[0]).collect();
        spot.classes.iter().for_each(|&class| spots_of_class[class as usize].push(number));
        n_weighed += spot.classes.len();
    }
    if n_weighed > MOST_WEIGHED {
        return None;
    }
    let gathering = Gathering { graph, spots: &all, spots_of_class: &spots_of_class, box_of: &box_of };
    let mut n_weighed = 0;
    (0..MOST_ATTEMPTS).find_map(|_| gathering.attempt(random, &mut n_weighed))
}

struct Gathering<'a> {
    graph: &'a CandidateGraph,
    spots: &'a [Spot],
    spots_of_class: &'a [Vec<u32>],
    /// The box of a class in a bucket.
    box_of: &'a HashMap<(u32, u32), u32>,
}

impl Gathering<'_> {
    fn attempt(&self, random: &mut Random, n_weighed: &mut usize) -> Option<Vec<(u32, u32, u32)>> {
        let mut needs = self.graph.needs.clone();
        let mut n_classes: Vec<u32> = self.spots.iter().map(|spot| spot.classes.len() as u32).collect();
        let mut placed: Vec<bool> = self.spots.iter().map(|spot| spot.points.is_empty()).collect();
        let mut open: BTreeSet<(u32, u64, u32)> = BTreeSet::new();
        let ties: Vec<u64> = self.spots.iter().map(|_| random.below(1 << 20)).collect();
        for spot in (0..self.spots.len() as u32).filter(|&spot| !placed[spot as usize]) {
            open.insert((n_classes[spot as usize], ties[spot as usize], spot));
        }
        let mut handed = Vec::new();
        while let Some((_, _, spot)) = open.pop_first() {
            let able = self.spots[spot as usize].classes.iter().filter(|&&class| self.takes(class, spot, &needs));
            let room = |class: u32| -> u32 {
                let points = self.spots[spot as usize].points.iter();
                points.map(|&(point, n)| needs[self.box_of_point(class, point) as usize] - n).sum()
            };
            let class = able.map(|&class| (room(class), random.below(4), class)).min()?.2;
            placed[spot as usize] = true;
            for &(point, n) in &self.spots[spot as usize].points {
                let of = self.box_of_point(class, point);
                needs[of as usize] -= n;
                handed.push((of, point, n));
            }
            for &other in self.spots_of_class[class as usize].iter().filter(|&&other| !placed[other as usize]) {
                *n_weighed += 1;
                let able = self.spots[other as usize].classes.iter().filter(|&&class| self.takes(class, other, &needs));
                let n_able = able.count() as u32;
                if n_able != n_classes[other as usize] {
                    open.remove(&(n_classes[other as usize], ties[other as usize], other));
                    n_classes[other as usize] = n_able;
                    open.insert((n_able, ties[other as usize], other));
                }
            }
            if *n_weighed > MOST_WEIGHED {
                return None;
            }
        }
        Some(handed)
    }

    fn box_of_point(&self, class: u32, point: u32) -> u32 {
        self.box_of[&(class, self.graph.bucket_of_point[point as usize])]
    }

    /// Whether a class still has room for all rows of a spot.
    fn takes(&self, class: u32, spot: u32, needs: &[u32]) -> bool {
        // Points of a spot in one bucket differ only in own k, so they go to the same box.
        let points = &self.spots[spot as usize].points;
        points.iter().enumerate().all(|(at, &(point, n))| {
            let of = self.box_of_point(class, point);
            let before = points[..at].iter().filter(|(other, _)| self.box_of_point(class, *other) == of);
            needs[of as usize] >= n + before.map(|(_, n)| n).sum::<u32>()
        })
    }
}
