//! [`Savings`]: what a release for several audiences loses, beside the two that are simpler to make.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use rayon::prelude::*;

use super::atoms::Atoms;
use super::search::BoundCounts;

/// What was gained by one release for several audiences.
#[derive(Clone, Debug, PartialEq)]
pub struct Savings {
    /// `unchanged` if the table satisfied every audience as it was, `union` if no row is in a butterfly, otherwise
    /// `butterflies`.
    pub shape: &'static str,
    /// The loss if the same partitioner is run on the columns of all audiences with everything that any of them asks.
    pub union: Losses,
    /// The loss if each audience gets a release of its own columns. Such releases together may tell persons apart. A
    /// column of several audiences counts with their mean.
    pub separate: Losses,
    /// No release that satisfies all audiences and coalitions has an uncertainty penalty below this.
    pub least: f64,
    /// This release.
    pub release: Losses,
    /// The share of released rows in bodies whose rows do not all look the same.
    pub in_butterflies: f64,
    /// The number of nodes at which the bound of theorem 4 was computed, to see whether a butterfly can pay.
    pub asked: u64,
    /// The number of these nodes at which the bound allowed that, so that a butterfly was built.
    pub let_through: u64,
    /// The number of these butterflies that did lose less, and were kept.
    pub taken: u64,
    /// The cost of letting only the common columns steer the groups, if the spec asks for that. It depends on the
    /// columns of all audiences, so only the owner may see it.
    pub steer_cost: Option<SteerCost>,
}

/// Uncertainty penalties, before anybody who is left out is counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteerCost {
    /// The uncertainty penalty of this release.
    pub steered: f64,
    /// The uncertainty penalty of the release that all columns would have steered.
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

/// The loss in each of these columns if each of these classes shows one box.
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

impl BoundCounts {
    /// The three counts: bounds computed, butterflies built, butterflies kept.
    pub(super) fn read(&self) -> (u64, u64, u64) {
        let of = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        (of(&self.asked), of(&self.let_through), of(&self.taken))
    }
}
