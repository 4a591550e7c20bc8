//! [`Spread`]: how the rows of a column lie in bins, for private rows and for the labels that a release shows instead.
//!
//! A private row lies in one bin or in none. A label lies in all bins whose values it can stand for, by the shares that
//! `kohort estimate` expects. So everything that is counted in bins can be counted before and after in the same way.

use std::collections::HashMap;

use kohort_model::{Column, Manifest, NULL, Role, Table};

use super::bins::Bin;
use crate::estimate::shares_of_labels;

/// How the rows of a column lie in bins.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spread {
    n_bins: usize,
    /// Bins with the share of the row that lies in each. No row has more than one of the same kind.
    kinds: Vec<Vec<(usize, f64)>>,
    /// The kind of each row.
    of_row: Vec<u32>,
}

impl Spread {
    /// The private rows of the bins, out of so many rows.
    pub(super) fn of_private(bins: &[Bin], n_rows: usize) -> Spread {
        let nowhere = bins.len();
        let mut of_row = vec![nowhere as u32; n_rows];
        for (bin, number) in bins.iter().zip(0u32..) {
            bin.rows.iter().for_each(|&row| of_row[row as usize] = number);
        }
        let kinds = (0..nowhere).map(|bin| vec![(bin, 1.0)]).chain([Vec::new()]).collect();
        Spread { n_bins: bins.len(), kinds, of_row }
    }

    /// The released rows of a column; `None` if readers can't estimate it. `private` is the column that the bins were made from.
    pub(super) fn of_released(
        column: &Column,
        bins: &[Bin],
        private: &Column,
        (manifest, tables): (&Manifest, &[Table]),
    ) -> Option<Spread> {
        let mut kinds: Vec<Vec<(usize, f64)>> = match column.role {
            Role::Quasi => of_labels(column, bins, manifest, tables)?,
            _ => {
                let bin_of = bin_of_texts(bins, private);
                column.texts.iter().map(|text| bin_of.get(text).map(|&bin| (bin, 1.0)).into_iter().collect()).collect()
            }
        };
        let nowhere = kinds.len() as u32;
        kinds.push(Vec::new());
        let of_row = column.ids.iter().map(|&id| if id == NULL { nowhere } else { id }).collect();
        Some(Spread { n_bins: bins.len(), kinds, of_row })
    }

    pub(super) fn n_bins(&self) -> usize {
        self.n_bins
    }

    pub(super) fn n_rows(&self) -> usize {
        self.of_row.len()
    }

    /// The bins of a row.
    pub(super) fn row(&self, row: usize) -> &[(usize, f64)] {
        &self.kinds[self.of_row[row] as usize]
    }

    /// The same for some of the rows.
    pub(super) fn of_rows(&self, rows: &[u32]) -> Spread {
        Spread { of_row: rows.iter().map(|&row| self.of_row[row as usize]).collect(), ..self.clone() }
    }

    /// How many rows are expected in each pair of bins of two columns.
    pub(super) fn joint(&self, other: &Spread) -> Vec<Vec<f64>> {
        let mut pairs: Vec<(u32, u32)> = self.of_row.iter().copied().zip(other.of_row.iter().copied()).collect();
        pairs.sort_unstable();
        let mut counts = vec![vec![0.0; other.n_bins]; self.n_bins];
        for equal in pairs.chunk_by(|one, next| one == next) {
            let (kind, other_kind) = equal[0];
            for &(bin, share) in &self.kinds[kind as usize] {
                for &(other_bin, other_share) in &other.kinds[other_kind as usize] {
                    counts[bin][other_bin] += equal.len() as f64 * share * other_share;
                }
            }
        }
        counts
    }
}

/// The bins of each label.
fn of_labels(column: &Column, bins: &[Bin], manifest: &Manifest, tables: &[Table]) -> Option<Vec<Vec<(usize, f64)>>> {
    let tests: Vec<_> = bins.iter().filter_map(|bin| bin.test.clone()).collect();
    let shares = shares_of_labels(manifest, tables, &column.name, &tests)?;
    let of_label = |label: usize| {
        let mut named = shares.iter();
        let mut left = 1.0;
        let of_bin = |(position, bin): (usize, &Bin)| {
            // A bin without a test takes the rest, and comes last.
            let share = match bin.test {
                Some(_) => named.next().map_or(0.0, |of_labels| of_labels[label]),
                None => f64::max(left, 0.0),
            };
            left -= share;
            (share > 1e-12).then_some((position, share))
        };
        bins.iter().enumerate().filter_map(of_bin).collect()
    };
    Some((0..column.texts.len()).map(of_label).collect())
}

/// The bin of each private text.
fn bin_of_texts<'t>(bins: &[Bin], private: &'t Column) -> HashMap<&'t str, usize> {
    let rows = bins.iter().enumerate().flat_map(|(position, bin)| bin.rows.iter().map(move |&row| (position, row)));
    rows.filter_map(|(position, row)| Some((private.cell(row as usize)?, position))).collect()
}
