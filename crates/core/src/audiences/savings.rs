//! [`Savings`]: what a release for several audiences loses, beside the two that are simpler to make.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use rayon::prelude::*;

use super::atoms::Atoms;
use super::search::Counts;

/// What was gained by one release for several audiences.
#[derive(Clone, Debug, PartialEq)]
pub struct Savings {
    /// `unchanged`, where the table satisfied every audience as it was; `union`, where no rows are in a butterfly;
    /// `butterflies`.
    pub shape: &'static str,
    /// The same partitioner on the columns of all audiences and everything that any of them asks.
    pub union: Losses,
    /// A release per audience on its own columns, which together may tell persons apart. A column of several counts
    /// with their mean.
    pub separate: Losses,
    /// This release.
    pub release: Losses,
    /// The share of released rows in bodies whose rows do not all look the same.
    pub in_butterflies: f64,
    /// Nodes where the bound of theorem 4 was asked whether a butterfly may pay.
    pub asked: u64,
    /// Of these, where it may, so that one was built.
    pub let_through: u64,
    /// Of those, where it did pay.
    pub taken: u64,
    /// What it cost that common columns alone steered the groups, where that was asked. It depends on the columns of all
    /// audiences, so it is for the owner alone.
    pub steer_cost: Option<SteerCost>,
}

/// Uncertainty penalties, before anybody who is left out is counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteerCost {
    /// Of this release.
    pub steered: f64,
    /// Of the one that all columns would have steered.
    pub free: f64,
}

/// What a release loses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Losses {
    /// Uncertainty penalty on columns of more than one audience.
    pub common: f64,
    /// Uncertainty penalty on columns of one audience.
    pub own: f64,
    /// Mean loss per cell, 0 to 1.
    pub lm: f64,
}

impl Losses {
    /// Uncertainty penalty on all columns.
    pub fn uncertainty_penalty(&self) -> f64 {
        self.common + self.own
    }

    /// From what each column loses, cells of rows that are left out not included.
    pub(super) fn of_columns(columns: &[f64], common: &BTreeSet<usize>, n_rows: usize, n_left_out: usize) -> Losses {
        let mut losses = Losses::default();
        for (column, loss) in columns.iter().enumerate() {
            let part = if common.contains(&column) { &mut losses.common } else { &mut losses.own };
            *part += loss + n_left_out as f64;
        }
        losses.lm = losses.uncertainty_penalty() / ((n_rows * columns.len()) as f64).max(1.0);
        losses
    }
}

/// What each of some columns loses where each of these classes shows one box.
pub(super) fn loss_of_classes(atoms: &Atoms<'_>, classes: &[Vec<u32>], columns: &[usize]) -> Vec<f64> {
    let of_class = |class: &Vec<u32>| -> Vec<f64> {
        let weight = atoms.rows.weight_of(class) as f64;
        let bounds = atoms.bounds(class, columns).into_iter().zip(columns);
        bounds.map(|((lo, hi), &column)| weight * atoms.domains[column].width(lo, hi)).collect()
    };
    let of_classes: Vec<Vec<f64>> = classes.par_iter().map(of_class).collect();
    // Summed in the order of classes, so that rounding does not depend on threads.
    (0..columns.len()).map(|column| of_classes.iter().map(|of_class| of_class[column]).sum()).collect()
}

impl Counts {
    /// Asked, let through and taken.
    pub(super) fn read(&self) -> (u64, u64, u64) {
        let of = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        (of(&self.asked), of(&self.let_through), of(&self.taken))
    }
}
