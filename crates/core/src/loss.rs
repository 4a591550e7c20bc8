//! What a recoding loses, one definition each.
//!
//! | measure | definition |
//! | --- | --- |
//! | LM `[Iye02]` | mean over all quasi cells of (leaves of the cell - 1) / (all leaves - 1), or width over the column's range |
//! | NCP `[XWP+06]` | the same with leaves of the cell / all leaves, 0 for a value |
//! | DM `[BA05]` | sum of squared class sizes, plus the table's size for each suppressed person |
//! | average class | persons over classes |
//! | uncertainty penalty `[PTL+08]` | sum over rows and columns of the cell's width over the column's range, categories in their order |
//! | k-deviation `[EPS+12]` | sum over persons of the size of their class less the k they need |
//!
//! Suppressed cells lose 1 each. Sizes are persons; LM, NCP and the uncertainty penalty count rows.

use std::collections::BTreeMap;

use kohort_model::{Loss, Persons, Table};
use rayon::prelude::*;

use crate::encode::{Domain, Encoded, Rows};
use crate::partition::Classes;
use crate::recode::Shown;
use crate::requirement::{Rules, Tally};

/// What each column of one class loses, times its rows, and the class's own part of the sums.
struct Part {
    lm: Vec<f64>,
    ncp: f64,
    n_rows: u64,
    n_persons: u64,
    squares: f64,
    deviation: f64,
}

/// Measures a recoding.
pub fn measure(
    table: &Table,
    encoded: &Encoded<'_>,
    rules: &Rules,
    rows: &Rows,
    classes: &Classes,
    shown: &Shown,
    persons: Persons,
) -> Loss {
    let n_columns = encoded.domains.len();
    let parts: Vec<Part> = (0..shown.len())
        .into_par_iter()
        .map_init(
            || Tally::new(rules),
            |tally, class| {
                tally.clear();
                let mut members: Vec<u32> = shown.members(class, classes, rows).collect();
                members.iter().for_each(|&row| tally.add(row));
                let (n_rows, n_persons) = (members.len() as u64, tally.n_persons());
                // A person with several rows needs k once.
                members.sort_unstable_by_key(|&row| rules.person(row));
                members.dedup_by_key(|row| rules.person(*row));
                let needed: f64 = members.iter().map(|&row| f64::from(rules.k_of_row(row))).sum();
                let of_rows = |measure: fn(&Domain, u32, u32) -> f64| {
                    let intervals = encoded.domains.iter().enumerate().map(|(column, domain)| {
                        let (lo, hi) = shown.interval(class, column);
                        measure(domain, lo, hi) * n_rows as f64
                    });
                    intervals.collect::<Vec<f64>>()
                };
                Part {
                    lm: of_rows(Domain::width),
                    ncp: of_rows(Domain::leaf_share).iter().sum(),
                    n_rows,
                    n_persons,
                    squares: (n_persons as f64).powi(2),
                    deviation: (n_persons as f64).powi(2) - needed,
                }
            },
        )
        .collect();

    // Summed in class order, so that rounding does not depend on threads.
    let n_rows = table.n_rows as f64;
    let suppressed = n_rows - parts.iter().map(|part| part.n_rows).sum::<u64>() as f64;
    let n_cells = (n_rows * n_columns as f64).max(1.0);
    let column_sum = |column: usize| parts.iter().map(|part| part.lm[column]).sum::<f64>() + suppressed;
    let sum = |of: fn(&Part) -> f64| parts.iter().map(of).sum::<f64>();
    let columns: BTreeMap<String, f64> = (0..n_columns)
        .map(|column| (table.columns[encoded.columns[column]].name.clone(), column_sum(column) / n_rows.max(1.0)))
        .collect();
    let widths = (0..n_columns).map(column_sum).sum::<f64>();
    Loss {
        lm: widths / n_cells,
        ncp: (sum(|part| part.ncp) + suppressed * n_columns as f64) / n_cells,
        dm: sum(|part| part.squares) + persons.suppressed as f64 * persons.n_in as f64,
        average_class: sum(|part| part.n_persons as f64) / shown.len().max(1) as f64,
        uncertainty_penalty: widths,
        k_deviation: sum(|part| part.deviation),
        columns,
    }
}

/// The loss measure of ARX that anchors comparisons with it: the geometric mean over columns of the mean share of
/// leaves per cell, rescaled so that an unchanged column counts 0.
///
/// `columns` holds per column its number of leaves and the sum over all rows of the cell's leaves over all leaves, a
/// suppressed cell counted 1.
pub fn geometric_mean(columns: &[(u64, f64)], n_rows: u64) -> f64 {
    let n_rows = n_rows as f64;
    let factors = columns.iter().map(|&(n_leaves, shares)| {
        let least = n_rows / n_leaves as f64;
        (1.0 + (shares - least) / (n_rows - least)).powf(1.0 / columns.len() as f64)
    });
    factors.product::<f64>() - 1.0
}
