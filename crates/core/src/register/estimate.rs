//! [`Estimator`]: what a reader of a release makes of it: how many private rows lie in a range, and which sensitive
//! values they have.
//!
//! Rows are spread evenly in their boxes. The private rows of a sensitive group, whose number its values tell, are spread
//! evenly over the released rows of the group. A plain class is a group by itself.
//!
//! # Paper
//! `[SMP10]` section 3.3
//! # Deviations
//! a range of numbers is as wide as its ends are apart, as in the paper, or one step wider where values are known to be
//! whole steps apart, so that `[20,29]` holds ten; a node holds its leaves, each as likely as another
//! # Cost
//! per query one pass over the classes

use std::ops::Bound;

use crate::encode::{Domain, Rows};
use crate::utility::{Query, ValueRange, Workload, covered_share};

use super::JoinedClass;

/// What a reader makes of a release.
#[derive(Clone, Debug)]
pub struct Estimator {
    classes: Vec<ShownClass>,
    /// Per class its private rows, as many as can be expected.
    expected: Vec<f64>,
    groups: Vec<ShownGroup>,
}

/// Released rows that look the same.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownClass {
    /// A cell per quasi column.
    pub cells: Vec<ShownCell>,
    /// How many rows.
    pub n_rows: u64,
    /// The position of their sensitive group.
    pub group: usize,
}

/// The values of a sensitive group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownGroup {
    /// How many private rows it has.
    pub n_rows: u64,
    /// How many of them have each value, by number.
    pub values: Vec<u64>,
}

/// What a quasi cell shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ShownCell {
    /// Numbers or dates from `lo` to `hi`.
    Range {
        /// The smallest.
        lo: f64,
        /// The largest.
        hi: f64,
        /// How far two values are apart at least, 0 where they are continuous.
        step: f64,
    },
    /// Leaves of a hierarchy, numbered depth first: a node holds a run of them.
    Leaves {
        /// The first.
        first: u32,
        /// The last.
        last: u32,
    },
    /// Null, which nobody asks for.
    Null,
}

/// What a query asks of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum AskedInterval {
    /// Nothing.
    Anything,
    /// Values in a range.
    Range(ValueRange),
    /// These leaves, ascending.
    Leaves(Vec<u32>),
}

impl ShownCell {
    /// The share of its values that a query asks for, 0 to 1.
    pub fn covered_share(&self, asked: &AskedInterval) -> f64 {
        match (self, asked) {
            (_, AskedInterval::Anything) => 1.0,
            (&ShownCell::Range { lo, hi, step: 0.0 }, AskedInterval::Range(range)) => covered_share((lo, hi), range),
            (&ShownCell::Range { lo, hi, step }, AskedInterval::Range(range)) => {
                let first = match range.0 {
                    Bound::Included(value) => value.max(lo),
                    Bound::Excluded(value) => (value + step).max(lo),
                    Bound::Unbounded => lo,
                };
                let last = match range.1 {
                    Bound::Included(value) => value.min(hi),
                    Bound::Excluded(value) => (value - step).min(hi),
                    Bound::Unbounded => hi,
                };
                ((last - first + step) / (hi - lo + step)).clamp(0.0, 1.0)
            }
            (&ShownCell::Leaves { first, last }, AskedInterval::Leaves(leaves)) => {
                let n_before = |leaf: u32| leaves.partition_point(|&other| other < leaf);
                (n_before(last + 1) - n_before(first)) as f64 / f64::from(last - first + 1)
            }
            (ShownCell::Null, _)
            | (ShownCell::Range { .. }, AskedInterval::Leaves(_))
            | (ShownCell::Leaves { .. }, AskedInterval::Range(_)) => 0.0,
        }
    }
}

impl Estimator {
    /// From what a release shows.
    pub fn new(classes: Vec<ShownClass>, groups: Vec<ShownGroup>) -> Estimator {
        let mut n_released = vec![0; groups.len()];
        classes.iter().for_each(|class| n_released[class.group] += class.n_rows);
        let expected = classes
            .iter()
            .map(|class| {
                let share = class.n_rows as f64 / n_released[class.group].max(1) as f64;
                share * groups[class.group].n_rows as f64
            })
            .collect();
        Estimator { classes, expected, groups }
    }

    /// How many private rows match; one condition per quasi column.
    pub fn count(&self, query: &[AskedInterval]) -> f64 {
        self.matching(query).map(|(_, n_rows)| n_rows).sum()
    }

    /// How many private rows match, by their sensitive value.
    pub fn values(&self, query: &[AskedInterval]) -> Vec<f64> {
        let n_values = self.groups.iter().map(|group| group.values.len()).max().unwrap_or(0);
        let mut found = vec![0.0; n_values];
        for (class, n_rows) in self.matching(query) {
            let group = &self.groups[self.classes[class].group];
            for (found, &n_of_group) in found.iter_mut().zip(&group.values) {
                *found += n_rows * n_of_group as f64 / group.n_rows.max(1) as f64;
            }
        }
        found
    }

    /// Per class that may match its private rows that do.
    fn matching<'q>(&'q self, query: &'q [AskedInterval]) -> impl Iterator<Item = (usize, f64)> + 'q {
        self.classes.iter().zip(&self.expected).enumerate().filter_map(move |(position, (class, expected))| {
            let shares = class.cells.iter().zip(query).map(|(cell, asked)| cell.covered_share(asked));
            let n_rows = expected * shares.product::<f64>();
            (n_rows > 0.0).then_some((position, n_rows))
        })
    }
}

/// How codes become what cells show: values by their distance, as the domains know it, in steps of the smallest.
#[derive(Clone, Debug)]
pub struct Places<'a> {
    domains: &'a [Domain],
    steps: Vec<f64>,
}

impl<'a> Places<'a> {
    /// Of quasi columns with these domains.
    pub fn new(domains: &'a [Domain]) -> Places<'a> {
        let step = |domain: &Domain| {
            let n_values = domain.null().unwrap_or(domain.n_codes());
            let distances = (1..n_values).map(|code| domain.width(code - 1, code));
            let least = distances.filter(|&distance| distance > 0.0).fold(f64::INFINITY, f64::min);
            if least.is_finite() { least } else { 1.0 }
        };
        Places { domains, steps: domains.iter().map(step).collect() }
    }

    /// The cell of a column that shows an interval of codes.
    pub fn cell(&self, column: usize, (lo, hi): (u32, u32)) -> ShownCell {
        let (domain, step) = (&self.domains[column], self.steps[column]);
        match domain.tree() {
            Some(_) => ShownCell::Leaves { first: lo, last: hi },
            None if domain.null() == Some(lo) => ShownCell::Null,
            // Null is one value more of what the cell could be.
            None if domain.null() == Some(hi) => ShownCell::Range { lo: 0.0, hi: 1.0 + step, step },
            None => ShownCell::Range { lo: domain.width(0, lo), hi: domain.width(0, hi), step },
        }
    }

    /// The conditions of a query.
    pub fn asked(&self, query: &Query) -> Vec<AskedInterval> {
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

    /// What a reader makes of classes of the join; `values` numbers the sensitive value of each private row.
    pub fn estimator(&self, classes: &[JoinedClass], values: impl Fn(u32) -> usize) -> Estimator {
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
pub struct RangeCount {
    /// Private rows that match.
    pub actual: u64,
    /// The same as estimated from the release.
    pub estimate: f64,
}

/// Asks every query of private rows and of what was made of their release.
pub fn range_counts(
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

/// The average relative error (ARE), an actual count below `sanity_bound` taken for that many rows where it divides.
/// `None` where there are no counts.
pub fn mean_relative_error(counts: &[RangeCount], sanity_bound: f64) -> Option<f64> {
    let error = |count: &RangeCount| {
        let actual = count.actual as f64;
        (actual - count.estimate).abs() / actual.max(sanity_bound)
    };
    (!counts.is_empty()).then(|| counts.iter().map(error).sum::<f64>() / counts.len() as f64)
}
