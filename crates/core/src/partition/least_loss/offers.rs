//! Which rows a class would rather send away: one row, a slab of rows at the edge of its box, or all of them.
//!
//! A slab is what lies at one end of a column, or below one child of a node, or outside of it: without it the box
//! becomes narrower for everybody who stays. Whether that pays depends on what the rows cost where they go, which is
//! asked once per row; sums over runs of equal codes then price every slab.

use std::ops::{Add, Sub};

use super::edges::Edges;
use super::moves::State;
use super::runs::{Runs, Slab, slabs};
use crate::encode::bounds;

/// Less than this is rounding, not gain.
pub(super) const LEAST_GAIN: f64 = 1e-9;

/// A class may send away this share of k more than it can spare, if it is given other rows in return.
const EXCHANGED: f64 = 1.0 / 3.0;

/// A row may cost up to this many times its present loss, even if its absence alone saves less, so that whole classes
/// can dissolve.
const DEAREST: f64 = 2.0;

/// The number of slabs that a class offers at once. After the first is granted, the others have usually changed.
const SLABS_OFFERED: usize = 2;

/// Rows that a class would like to send away.
#[derive(Clone, Debug)]
pub(super) struct Offer {
    /// An estimate: every row at its price, with all other rows where they are now.
    pub(super) gain: f64,
    pub(super) from: usize,
    pub(super) rows: Vec<u32>,
}

/// The offers of a class, and where its rows would go.
#[derive(Default)]
pub(super) struct Answer {
    pub(super) offers: Vec<Offer>,
    /// For each row of the class, the other class in which it costs least.
    pub(super) exits: Vec<u32>,
}

/// What it costs to send rows away.
#[derive(Clone, Copy, Default)]
struct Price {
    weight: u64,
    /// By how much the loss of the receiving classes grows.
    cost: f64,
    /// The loss of a row in the receiving classes, summed over the leaving rows.
    perimeter: f64,
    /// The number of rows that no class takes for less than the loss of the whole class.
    n_stuck: u32,
}

/// A slab without which a class loses less.
struct SlabCandidate {
    column: usize,
    slab: Slab,
    /// The loss that is saved if the slab leaves, its own loss included.
    saved: f64,
    perimeter_left: f64,
}

/// Finds offers, in memory that one thread reuses from class to class.
#[derive(Default)]
pub(super) struct Offers {
    runs: Runs,
    candidates: Vec<SlabCandidate>,
    /// Row by row the position of its run in each column.
    positions: Vec<u32>,
    /// For each row the most it may cost elsewhere, and what it costs.
    limits: Vec<f64>,
    prices: Vec<Price>,
    /// For each run, the price of all runs before it.
    before: Vec<Price>,
}

impl Offers {
    pub(super) fn of_class(&mut self, state: &State<'_>, class: usize) -> Answer {
        let outline = &state.outlines[class];
        if outline.perimeter <= 0.0 {
            return Answer::default();
        }
        self.find_candidates(state, class);
        let exits = self.price_rows(state, class);
        let mut offers = self.offer_slabs(state, class);
        self.offer_single_rows(state, class, &mut offers);
        let all = self.prices.iter().fold(Price::default(), |sum, &price| sum + price);
        let gain = outline.loss() - all.cost;
        if all.n_stuck == 0 && gain > LEAST_GAIN {
            offers.push(Offer { gain, from: class, rows: state.classes[class].clone() });
        }
        Answer { offers, exits }
    }

    /// Slabs that save something, and what their rows may cost elsewhere.
    fn find_candidates(&mut self, state: &State<'_>, class: usize) {
        let (task, rows, outline) = (state.task, &state.classes[class], &state.outlines[class]);
        let n_columns = task.rows.n_columns();
        let k = u64::from(task.rules.k());
        let least_left = (k - (k as f64 * EXCHANGED) as u64).max(1);
        self.candidates.clear();
        self.positions.clear();
        self.positions.resize(rows.len() * n_columns, 0);
        self.limits.clear();
        self.limits.extend(rows.iter().map(|&row| DEAREST * outline.perimeter * f64::from(task.rows.weight(row))));
        for (column, &bounds) in outline.bounds.iter().enumerate() {
            if bounds.0 == bounds.1 {
                continue;
            }
            self.runs.find(task, rows, column, bounds);
            for (row, positions) in rows.iter().zip(self.positions.chunks_exact_mut(n_columns)) {
                positions[column] = self.runs.position(task.rows.cells(*row)[column]) as u32;
            }
            for slab in slabs(task, &self.runs, column) {
                let left = outline.weight - slab.weight(&self.runs);
                if left < least_left {
                    continue;
                }
                let perimeter_left = slab.perimeter_left(task, &self.runs);
                let saved = outline.loss() - perimeter_left * left as f64;
                for (limit, positions) in self.limits.iter_mut().zip(self.positions.chunks_exact(n_columns)) {
                    if saved > *limit && slab.holds(positions[column] as usize) {
                        *limit = saved;
                    }
                }
                self.candidates.push(SlabCandidate { column, slab, saved, perimeter_left });
            }
        }
    }

    fn price_rows(&mut self, state: &State<'_>, class: usize) -> Vec<u32> {
        self.prices.clear();
        let mut exits = Vec::with_capacity(state.classes[class].len());
        for (&row, &limit) in state.classes[class].iter().zip(&self.limits) {
            let weight = u64::from(state.task.rows.weight(row));
            let cheapest = state.cheapest(row, class, limit);
            exits.push(cheapest.map_or(u32::MAX, |(_, to)| to as u32));
            self.prices.push(match cheapest {
                None => Price { weight, n_stuck: 1, ..Price::default() },
                Some((cost, to)) => {
                    Price { weight, cost, perimeter: state.outlines[to].perimeter * weight as f64, n_stuck: 0 }
                }
            });
        }
        exits
    }

    /// The best slabs of all columns that pay.
    fn offer_slabs(&mut self, state: &State<'_>, class: usize) -> Vec<Offer> {
        let rows = &state.classes[class];
        let n_columns = state.task.rows.n_columns();
        let mut best: Vec<(f64, usize)> = Vec::new();
        let mut priced = None;
        for candidate in 0..self.candidates.len() {
            let column = self.candidates[candidate].column;
            if priced != Some(column) {
                self.price_runs(n_columns, column);
                priced = Some(column);
            }
            best.extend(self.gain(state, class, candidate).map(|gain| (gain, candidate)));
        }
        best.sort_by(|a, b| b.0.total_cmp(&a.0));
        best.truncate(SLABS_OFFERED);
        let offer = |(gain, candidate): (f64, usize)| {
            let SlabCandidate { column, slab, .. } = &self.candidates[candidate];
            let positions = self.positions.chunks_exact(n_columns).map(|positions| positions[*column] as usize);
            let held = rows.iter().zip(positions).filter(|(_, position)| slab.holds(*position));
            Offer { gain, from: class, rows: held.map(|(&row, _)| row).collect() }
        };
        best.into_iter().map(offer).collect()
    }

    fn price_runs(&mut self, n_columns: usize, column: usize) {
        self.before.clear();
        for (positions, &price) in self.positions.chunks_exact(n_columns).zip(&self.prices) {
            let next = positions[column] as usize + 1;
            if self.before.len() <= next {
                self.before.resize(next + 1, Price::default());
            }
            self.before[next] = self.before[next] + price;
        }
        for run in 1..self.before.len() {
            self.before[run] = self.before[run] + self.before[run - 1];
        }
    }

    /// What sending a slab away gains, if anything.
    fn gain(&self, state: &State<'_>, class: usize, candidate: usize) -> Option<f64> {
        let SlabCandidate { slab, saved, perimeter_left, .. } = &self.candidates[candidate];
        let price = price(slab, &self.before);
        let left = state.outlines[class].weight - price.weight;
        let missing = u64::from(state.task.rules.k()).saturating_sub(left) as f64;
        // Rows given in return lose the perimeter that is left of this box, and no longer lose that of their old one.
        let returned = missing * (perimeter_left - price.perimeter / price.weight as f64);
        let gain = saved - price.cost - returned;
        (price.n_stuck == 0 && gain > LEAST_GAIN).then_some(gain)
    }

    /// Rows that alone save more than they cost.
    fn offer_single_rows(&self, state: &State<'_>, class: usize, offers: &mut Vec<Offer>) {
        let task = state.task;
        let outline = &state.outlines[class];
        let k = u64::from(task.rules.k());
        let edges = Edges::of(task, &state.classes[class]);
        for (&row, price) in state.classes[class].iter().zip(&self.prices) {
            if outline.weight < k + price.weight || price.n_stuck > 0 {
                continue;
            }
            let left = bounds::width(task.domains, &edges.without(task.rows.cells(row)));
            let gain = outline.loss() - left * (outline.weight - price.weight) as f64 - price.cost;
            if gain > LEAST_GAIN {
                offers.push(Offer { gain, from: class, rows: vec![row] });
            }
        }
    }
}

/// The price of a slab, computed from the sums over all runs before each of its ends.
fn price(slab: &Slab, before: &[Price]) -> Price {
    match slab {
        Slab::These(side) => before[side.end] - before[side.start],
        Slab::AllBut(side) => before[before.len() - 1] - (before[side.end] - before[side.start]),
    }
}

impl Add for Price {
    type Output = Price;

    fn add(self, other: Price) -> Price {
        Price {
            weight: self.weight + other.weight,
            cost: self.cost + other.cost,
            perimeter: self.perimeter + other.perimeter,
            n_stuck: self.n_stuck + other.n_stuck,
        }
    }
}

impl Sub for Price {
    type Output = Price;

    fn sub(self, other: Price) -> Price {
        Price {
            weight: self.weight - other.weight,
            cost: self.cost - other.cost,
            perimeter: self.perimeter - other.perimeter,
            n_stuck: self.n_stuck - other.n_stuck,
        }
    }
}
