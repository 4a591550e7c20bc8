//! New classes from old ones: rows get prices, prices choose boxes, and boxes are opened and exchanged.
//!
//! Classes that were cut from the top, or filled from the bottom, take the rows that are easy to place first, and what is
//! left has no cheap box. Prices tell how much it is worth to keep easy rows for boxes that hard rows need. Boxes are
//! found twice, because the first prices come from classes and the second from boxes.
//!
//! # Guarantee
//! every class satisfies the rules, and no more loss than before
//! # Paper
//! the relaxation of `[AHR+14]`, with boxes instead of sums of squares; prices and roundings as in `[CFT99]`
//! # Deviations
//! Boxes are enumerated once per round instead of one at a time for the prices of an optimum, and nothing is branched on:
//! the rounded classes are improved by [`Packing`].
//! # Cost
//! bounded by the effort: visits of rows while boxes are found, steps of prices, and starts

use rayon::prelude::*;

use super::candidates::Candidates;
use super::packing::Packing;
use super::prices::Prices;
use super::round;
use crate::partition::Task;
use crate::partition::outline::Outline;
use crate::requirement::Tally;

/// How much is tried.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    /// The number of steps in which prices settle, each time that boxes were found.
    pub(super) steps: usize,
    /// The number of prices from which classes are made.
    pub(super) starts: usize,
    /// The search for boxes may look at rows this many times, multiplied by the number of rows.
    pub(super) visits: usize,
}

/// Boxes are found if their rows pay at least this share of their cost.
const LEAST_SHARE: f64 = 0.95;

/// First prices are this share of what rows lose.
const FIRST_PRICE: f64 = 0.95;

/// The number of steps between two starts.
const STEPS_BETWEEN: usize = 4;

/// A box's cost is compared with the mean loss per row, multiplied by this, if it costs less.
const BASE: f64 = 0.1;

/// How often all boxes are tried.
const PASSES: usize = 3;

/// Another pass is worth it if the last one gained more than this share of the loss.
const WORTH_A_PASS: f64 = 0.0005;

/// The classes after all, and boxes that were found on the way.
pub(super) fn repack(task: &Task<'_>, classes: Vec<Vec<u32>>, search: Search) -> (Vec<Vec<u32>>, Candidates) {
    let loss = task.loss(&classes);
    let mut prices = vec![0.0; task.rows.len()];
    for class in &classes {
        let price = FIRST_PRICE * Outline::of(task, class).perimeter;
        class.iter().for_each(|&row| prices[row as usize] = price);
    }
    let find = |prices: &[f64]| {
        let mut candidates = Candidates::find(task, prices, LEAST_SHARE, search.visits);
        candidates.add_classes(task, &classes);
        candidates
    };
    let candidates = find(&prices);
    let mut first = Prices::new(task, &candidates, prices, loss);
    first.settle(search.steps);
    let prices = first.best().to_vec();
    let candidates = find(&prices);
    let mut second = Prices::new(task, &candidates, prices, loss);
    second.settle(search.steps);
    let mut starts = vec![second.best().to_vec()];
    for _ in 1..search.starts {
        starts.push(second.settle(STEPS_BETWEEN).to_vec());
    }
    let base = BASE * loss / task.rows.n_members() as f64;
    let found: Vec<(f64, Vec<Vec<u32>>)> = starts
        .par_iter()
        .map(|prices| {
            let packed = exchange(task, opened(task, &candidates, prices, base), &candidates);
            (task.loss(&packed), packed)
        })
        .collect();
    let least = found.into_iter().reduce(|least, other| if other.0 < least.0 { other } else { least });
    match least {
        Some((least, packed)) if least < loss && !task.progress.is_cancelled() => (packed, candidates),
        _ => (classes, candidates),
    }
}

/// The classes after boxes were exchanged for others as long as that helps.
pub(super) fn exchange(task: &Task<'_>, classes: Vec<Vec<u32>>, candidates: &Candidates) -> Vec<Vec<u32>> {
    let mut packing = Packing::new(task, classes);
    for _ in 0..PASSES {
        let before = packing.loss();
        packing.shift();
        for candidate in 0..candidates.len() {
            packing.try_box(candidates.rows(candidate), candidates.costs[candidate]);
        }
        if before - packing.loss() <= WORTH_A_PASS * before || task.progress.is_cancelled() {
            break;
        }
    }
    packing.shift();
    packing.into_classes()
}

/// Classes of all rows, from boxes that are opened at these prices.
fn opened(task: &Task<'_>, candidates: &Candidates, prices: &[f64], base: f64) -> Vec<Vec<u32>> {
    let (classes, left) = round::open(task, candidates, prices, base);
    let mut packing = Packing::new(task, classes);
    left.into_iter().for_each(|row| packing.place(row));
    let classes = packing.into_classes();
    if task.rules.weight_suffices() {
        return classes;
    }
    let stands = |rows: &[u32]| task.stands(&mut Tally::new(task.rules), rows.iter().copied());
    task.join_leftovers(classes, stands).to_lists()
}
