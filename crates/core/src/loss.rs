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

mod labels;

use std::collections::BTreeMap;

pub use labels::NcpOfLabels;

use kohort_model::{Loss, Persons, Table};
use rayon::prelude::*;

use crate::encode::{Encoded, Rows};
use crate::partition::Classes;
use crate::recode::Shown;
use crate::requirement::{Rules, Tally};

/// So many classes are summed up by a thread together, in their order, so that rounding does not depend on threads.
const CLASSES_AT_ONCE: usize = 64;

/// What some classes lose.
#[derive(Default)]
struct Part {
    /// Per quasi column, times rows.
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
    let all: Vec<usize> = (0..shown.len()).collect();
    let parts: Vec<Part> = all
        .par_chunks(CLASSES_AT_ONCE)
        .map_init(
            || (Tally::new(rules), Vec::new()),
            |(tally, members), some| {
                let mut part = Part { lm: vec![0.0; n_columns], ..Part::default() };
                for &class in some {
                    members.clear();
                    members.extend(shown.members(class, classes, rows));
                    let n_rows = members.len() as f64;
                    for (column, domain) in encoded.domains.iter().enumerate() {
                        let (lo, hi) = shown.interval(class, column);
                        part.lm[column] += domain.width(lo, hi) * n_rows;
                        part.ncp += domain.leaf_share(lo, hi) * n_rows;
                    }
                    part.n_rows += members.len() as u64;
                    tally.clear();
                    members.iter().for_each(|&row| tally.add(row));
                    let n_persons = tally.n_persons();
                    // A person with several rows needs k once.
                    members.sort_unstable_by_key(|&row| rules.person(row));
                    members.dedup_by_key(|row| rules.person(*row));
                    let needed: f64 = members.iter().map(|&row| f64::from(rules.k_of_row(row))).sum();
                    part.n_persons += n_persons;
                    part.squares += (n_persons as f64).powi(2);
                    part.deviation += (n_persons as f64).powi(2) - needed;
                }
                part
            },
        )
        .collect();

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
