//! [`Prices`]: how hard each row is to place.
//!
//! The least loss is an integer program: open boxes, and put every row into one of them, so that each open box holds at
//! least what a class needs. Its linear relaxation has a dual variable for each row, the row's price. A box is worth
//! opening if some of its rows pay more than the box costs them, and rows that are easy to place fill up boxes for rows
//! that are not. Prices rise for rows that no box takes and fall for rows that several boxes take. Steps become smaller
//! when the bound on the loss that follows from the prices no longer rises.
//!
//! # Paper
//! subgradient steps on Lagrangian prices, and many roundings on the way, as in `[CFT99]`
//! # Deviations
//! The paper covers each row at least once with sets that are given. Here a row belongs to exactly one class, so prices may
//! be negative, and each box picks its own rows at every step. With requirements on sensitive values it picks greedily.
//! # Cost
//! each step reads every candidate once

use rayon::prelude::*;

use super::candidates::Candidates;
use super::pick::Picker;
use crate::partition::Task;

/// How many candidates one thread reads at a time.
const AT_ONCE: usize = 1 << 8;

/// The first step, as a share of the one that would reach the known loss if all rows agreed.
const FIRST_STEP: f64 = 0.6;

/// Steps become smaller by this factor after [`PATIENCE`] steps without a better bound.
const SMALLER: f64 = 0.7;
const PATIENCE: usize = 4;

/// The price of every row, while it settles.
pub(super) struct Prices<'t> {
    task: &'t Task<'t>,
    candidates: &'t Candidates,
    /// The loss of a known release.
    loss: f64,
    now: Vec<f64>,
    /// The highest bound so far, and its prices.
    best: (f64, Vec<f64>),
    share_of_step: f64,
    n_without_gain: usize,
}

impl<'t> Prices<'t> {
    pub(super) fn new(task: &'t Task<'t>, candidates: &'t Candidates, prices: Vec<f64>, loss: f64) -> Prices<'t> {
        let best = (f64::NEG_INFINITY, prices.clone());
        Prices { task, candidates, loss, now: prices, best, share_of_step: FIRST_STEP, n_without_gain: 0 }
    }

    /// The prices with the highest bound.
    pub(super) fn best(&self) -> &[f64] {
        &self.best.1
    }

    /// Moves the prices by some steps, and returns where they are then.
    pub(super) fn settle(&mut self, n_steps: usize) -> &[f64] {
        for _ in 0..n_steps {
            if self.task.progress.is_cancelled() {
                break;
            }
            self.step();
        }
        &self.now
    }

    fn step(&mut self) {
        let (task, candidates, prices) = (self.task, self.candidates, &self.now);
        let all: Vec<u32> = (0..candidates.len() as u32).collect();
        let ask = |picker: &mut Picker<'_>, boxes: &[u32]| {
            let (mut surplus, mut taken) = (0.0, Vec::new());
            for &candidate in boxes {
                let candidate = candidate as usize;
                let value = picker.pick_worthy(candidates.best_rows(candidate), prices, candidates.costs[candidate]);
                if let Some(value) = value {
                    surplus += value;
                    taken.extend_from_slice(&picker.picked);
                }
            }
            (surplus, taken)
        };
        let answers: Vec<(f64, Vec<u32>)> = all.par_chunks(AT_ONCE).map_init(|| Picker::new(task), ask).collect();
        // For each row, one less the number of boxes that take it.
        let mut missing = vec![1i32; prices.len()];
        answers.iter().flat_map(|(_, taken)| taken).for_each(|&row| missing[row as usize] -= 1);
        let weight = |row: usize| f64::from(task.rows.weight(row as u32));
        let paid: f64 = prices.iter().enumerate().map(|(row, price)| price * weight(row)).sum();
        let bound = paid - answers.iter().map(|(surplus, _)| surplus).sum::<f64>();
        if bound > self.best.0 {
            self.best = (bound, prices.clone());
            self.n_without_gain = 0;
        } else {
            self.n_without_gain += 1;
            if self.n_without_gain == PATIENCE {
                self.share_of_step *= SMALLER;
                self.n_without_gain = 0;
            }
        }
        let square = |(row, &missing): (usize, &i32)| f64::from(missing).powi(2) * weight(row);
        let squares: f64 = missing.iter().enumerate().map(square).sum();
        let step = self.share_of_step * (self.loss - bound) / squares.max(1.0);
        self.now.iter_mut().zip(&missing).for_each(|(price, &missing)| *price += step * f64::from(missing));
    }
}
