//! Range counts that a reader estimates from classes of the join of a table and a register.

use std::ops::Bound;

use kohort_core::encode::{Domain, Rows};
use kohort_core::register::JoinedClass;
use kohort_core::register::estimate::{AskedInterval, Estimator, ShownCell, ShownClass, ShownGroup};

use super::workload::{Query, Workload};

/// Converts intervals of codes to the cells that a reader sees: values lie at the distances that their domains know, in
/// steps of the smallest distance.
#[derive(Clone, Debug)]
pub(crate) struct Places<'a> {
    domains: &'a [Domain],
    steps: Vec<f64>,
}

impl<'a> Places<'a> {
    /// The places of values in quasi columns with these domains.
    pub(crate) fn new(domains: &'a [Domain]) -> Places<'a> {
        let step = |domain: &Domain| {
            let n_values = domain.null().unwrap_or(domain.n_codes());
            let distances = (1..n_values).map(|code| domain.width(code - 1, code));
            let least = distances.filter(|&distance| distance > 0.0).fold(f64::INFINITY, f64::min);
            if least.is_finite() { least } else { 1.0 }
        };
        Places { domains, steps: domains.iter().map(step).collect() }
    }

    /// The cell of a column that shows an interval of codes.
    pub(crate) fn cell(&self, column: usize, (lo, hi): (u32, u32)) -> ShownCell {
        let (domain, step) = (&self.domains[column], self.steps[column]);
        match domain.tree() {
            Some(_) => ShownCell::Leaves { first: lo, last: hi },
            None if domain.null() == Some(lo) => ShownCell::Null,
            // Null counts as one more value that the cell could have.
            None if domain.null() == Some(hi) => ShownCell::Range { lo: 0.0, hi: 1.0 + step, step },
            None => ShownCell::Range { lo: domain.width(0, lo), hi: domain.width(0, hi), step },
        }
    }

    /// The conditions of a query.
    pub(crate) fn asked(&self, query: &Query) -> Vec<AskedInterval> {
        let mut asked = vec![AskedInterval::Anything; self.domains.len()];
        for interval in &query.intervals {
            let domain = &self.domains[interval.column];
            asked[interval.column] = match domain.tree() {
                Some(_) => AskedInterval::Leaves((interval.lo..=interval.hi).collect()),
                None => {
                    let place = |code: u32| Bound::Included(domain.width(0, code));
                    AskedInterval::Range((place(interval.lo), place(interval.hi)))
                }
            };
        }
        asked
    }

    /// An estimator that estimates from classes of the join as a reader would; `values` gives the number of each
    /// private row's sensitive value.
    pub(crate) fn estimator(&self, classes: &[JoinedClass], values: impl Fn(u32) -> usize) -> Estimator {
        let n_groups = classes.iter().map(|class| class.group as usize + 1).max().unwrap_or(0);
        let mut groups = vec![ShownGroup::default(); n_groups];
        let mut shown = Vec::with_capacity(classes.len());
        for class in classes {
            let group = &mut groups[class.group as usize];
            group.n_rows += class.microdata.len() as u64;
            for &row in &class.microdata {
                let value = values(row);
                if group.values.len() <= value {
                    group.values.resize(value + 1, 0);
                }
                group.values[value] += 1;
            }
            shown.push(ShownClass {
                cells: class.cells.iter().enumerate().map(|(column, &cell)| self.cell(column, cell)).collect(),
                n_rows: (class.microdata.len() + class.register.len()) as u64,
                group: class.group as usize,
            });
        }
        Estimator::new(shown, groups)
    }
}

/// A range count and its estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RangeCount {
    /// Private rows that match.
    pub(crate) actual: u64,
    /// The estimate of `actual` from the release.
    pub(crate) estimate: f64,
}

/// Asks every query of the private rows, and of an estimator that was made from their release.
pub(crate) fn range_counts(
    workload: &Workload,
    places: &Places<'_>,
    estimator: &Estimator,
    private: &Rows,
) -> Vec<RangeCount> {
    let answer = |query: &Query| {
        let matching = (0..private.len() as u32).filter(|&row| query.matches(private.cells(row)));
        RangeCount {
            actual: matching.map(|row| u64::from(private.weight(row))).sum(),
            estimate: estimator.count(&places.asked(query)),
        }
    };
    workload.queries.iter().map(answer).collect()
}

/// The average relative error (ARE). In a division, an actual count below `sanity_bound` is replaced by it. `None` if
/// there are no counts.
pub(crate) fn mean_relative_error(counts: &[RangeCount], sanity_bound: f64) -> Option<f64> {
    let error = |count: &RangeCount| {
        let actual = count.actual as f64;
        (actual - count.estimate).abs() / actual.max(sanity_bound)
    };
    (!counts.is_empty()).then(|| counts.iter().map(error).sum::<f64>() / counts.len() as f64)
}
