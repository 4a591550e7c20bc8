//! [`Layers`]: rows show the first of many layers in which everybody who looks at them is satisfied.
//!
//! A layer generalizes each column to one of its levels. The layers are gone through by what they lose, least first: the
//! first one shows every value as it is. In each layer as many of the remaining rows as possible are placed together, and
//! they may join classes that were formed before.
//!
//! # Guarantee
//! that of [`Views`]
//! # Deviations
//! the number of layers grows with the product of the columns' levels, so only the first ones are tried
//! # Cost
//! a hash of each row for each combination of levels that a view's columns have, and what the moves cost

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use kohort_model::Progress;
use rayon::prelude::*;

use super::atoms::Atoms;
use super::looks::{Interval, Looks, look_of};
use super::views::Views;
use crate::partition::Levels;

/// Losses are compared as whole multiples of this share of a row's cell.
const FINENESS: f64 = 1e12;

/// To look through this many rows counts as one visit.
const LOOKED_THROUGH: u64 = 8;

/// The levels of all columns.
pub(super) struct Layers<'a> {
    rows: &'a Atoms<'a>,
    columns: Vec<Vec<Level>>,
}

/// A column at one of its levels.
struct Level {
    /// For each code, the cell it is in.
    cells: Vec<Interval>,
    /// For each code, the hash of its cell.
    looks: Vec<u64>,
    /// What the table's rows lose together.
    loss: f64,
}

/// The rows that can be in a class of k in the columns of a view, at some levels of these columns.
type Fit = Vec<bool>;

/// Layers that are still to be tried.
struct Queue<'l, 'a> {
    layers: &'l Layers<'a>,
    /// By loss: a level for each column, and the last column that was raised.
    open: BinaryHeap<(Reverse<u64>, Reverse<Vec<u8>>, usize)>,
}

impl<'a> Layers<'a> {
    pub(super) fn new(rows: &'a Atoms<'a>) -> Layers<'a> {
        let columns = (0..rows.domains.len()).into_par_iter().map(|column| levels(rows, column)).collect();
        Layers { rows, columns }
    }

    pub(super) fn n_levels(&self, column: usize) -> usize {
        self.columns[column].len()
    }

    /// The cell of a code at a level.
    pub(super) fn cell(&self, column: usize, level: usize, code: u32) -> Interval {
        self.columns[column][level].cells[code as usize]
    }

    /// Goes through the layers until `views` has made this many visits, all rows are placed without loss, or a layer loses
    /// as much as the row that loses most.
    pub(super) fn place(&self, views: &mut Views<'_>, most_visits: u64, progress: &dyn Progress) {
        let mut queue = Queue::new(self);
        let asked: Vec<(&[usize], u64)> = views.asked().collect();
        let mut fits: Vec<BTreeMap<Vec<u8>, Fit>> = vec![BTreeMap::new(); asked.len()];
        let end = views.visits() + most_visits;
        let mut extra = 0;
        let mut remaining = views.losing();
        while let Some(layer) = queue.next() {
            let loss = self.loss_of(&layer) / self.rows.rows.n_members().max(1) as f64;
            let most = remaining.iter().map(|&row| views.loss(row)).fold(0.0, f64::max);
            if remaining.is_empty() || loss >= most || views.visits() + extra > end || progress.is_cancelled() {
                return;
            }
            // To look through the rows costs a fraction of what it costs to move them, but there can be many layers.
            extra += remaining.len() as u64 / LOOKED_THROUGH + 1;
            let mut candidates = remaining.clone();
            for ((columns, k), fits) in asked.iter().zip(&mut fits) {
                // Each layer has its own fit in all columns: to keep it would gain nothing.
                if columns.len() < self.columns.len() {
                    let levels: Vec<u8> = columns.iter().map(|&column| layer[column]).collect();
                    let fit = fits.entry(levels).or_insert_with(|| {
                        extra += self.rows.len() as u64;
                        self.fit(columns, *k, &layer)
                    });
                    candidates.retain(|&row| fit[row as usize]);
                }
            }
            let target = |row: u32, shown: &mut [Interval]| {
                let codes = self.rows.rows.cells(row);
                for ((shown, levels), (&level, &code)) in
                    shown.iter_mut().zip(&self.columns).zip(layer.iter().zip(codes))
                {
                    *shown = levels[level as usize].cells[code as usize];
                }
            };
            if views.advance(&candidates, target) > 0 {
                remaining = views.losing();
            }
        }
    }

    /// What the table's rows lose together in a layer.
    fn loss_of(&self, layer: &[u8]) -> f64 {
        self.columns.iter().zip(layer).map(|(levels, &level)| levels[level as usize].loss).sum()
    }

    /// The rows that at least k rows equal in some columns at the levels of a layer.
    fn fit(&self, columns: &[usize], k: u64, layer: &[u8]) -> Fit {
        let of_row = |row: u32| {
            let codes = self.rows.rows.cells(row);
            columns.iter().fold(0, |look: u64, &column| {
                look.wrapping_add(self.columns[column][layer[column] as usize].looks[codes[column] as usize])
            })
        };
        let mut classes = Looks::with_room(self.rows.len());
        let mut weights: Vec<u64> = Vec::new();
        let mut class = |row: u32| {
            let class = classes.number(of_row(row));
            weights.resize(classes.len(), 0);
            weights[class as usize] += u64::from(self.rows.rows.weight(row));
            class
        };
        let class_of_row: Vec<u32> = (0..self.rows.len() as u32).map(&mut class).collect();
        class_of_row.iter().map(|&class| weights[class as usize] >= k).collect()
    }
}

fn levels(rows: &Atoms<'_>, column: usize) -> Vec<Level> {
    let domain = &rows.domains[column];
    let levels = Levels::of(domain);
    let mut weights = vec![0.0; domain.n_codes() as usize];
    (0..rows.len() as u32)
        .for_each(|row| weights[rows.rows.cells(row)[column] as usize] += f64::from(rows.rows.weight(row)));
    let level = |level: usize| {
        let cells: Vec<Interval> = (0..domain.n_codes()).map(|code| levels.cell(level, code)).collect();
        let loss = cells.iter().zip(&weights).map(|(&(lo, hi), weight)| domain.width(lo, hi) * weight).sum();
        Level { looks: cells.iter().map(|&cell| look_of(column, cell)).collect(), cells, loss }
    };
    (0..levels.n_levels().min(usize::from(u8::MAX))).map(level).collect()
}

impl<'l, 'a> Queue<'l, 'a> {
    fn new(layers: &'l Layers<'a>) -> Queue<'l, 'a> {
        let mut queue = Queue { layers, open: BinaryHeap::new() };
        queue.push(vec![0; layers.columns.len()], 0);
        queue
    }

    fn push(&mut self, layer: Vec<u8>, last: usize) {
        let share = self.layers.loss_of(&layer) / self.layers.rows.rows.n_members().max(1) as f64;
        self.open.push((Reverse((share * FINENESS) as u64), Reverse(layer), last));
    }

    /// The layer that loses least of all that are left.
    fn next(&mut self) -> Option<Vec<u8>> {
        let (_, Reverse(layer), last) = self.open.pop()?;
        // A layer is reached in one way only: by raising columns in their order.
        for column in last..layer.len() {
            if usize::from(layer[column]) + 1 < self.layers.n_levels(column) {
                let mut raised = layer.clone();
                raised[column] += 1;
                self.push(raised, column);
            }
        }
        Some(layer)
    }
}
