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

use std::ops::{Bound, RangeBounds};

/// The values a query asks for in one column, with open or closed ends or none.
pub type ValueRange = (Bound<f64>, Bound<f64>);

/// What a reader makes of a release.
#[derive(Clone, Debug)]
pub struct Estimator {
    classes: Vec<ShownClass>,
    /// For each class, its private rows, as many as can be expected.
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
        /// How far two values are apart at least, 0 if they are continuous.
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
            (&ShownCell::Range { lo, hi, step }, AskedInterval::Range(range)) => covered_share((lo, hi), step, range),
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

    /// For each class that may match, its private rows that do.
    fn matching<'q>(&'q self, query: &'q [AskedInterval]) -> impl Iterator<Item = (usize, f64)> + 'q {
        self.classes.iter().zip(&self.expected).enumerate().filter_map(move |(position, (class, expected))| {
            let shares = class.cells.iter().zip(query).map(|(cell, asked)| cell.covered_share(asked));
            let n_rows = expected * shares.product::<f64>();
            (n_rows > 0.0).then_some((position, n_rows))
        })
    }
}

/// The share of the values from `lo` to `hi` that lie in a range, 0 to 1. If values are continuous, an open end of the
/// range matters only where `lo` and `hi` are one value.
fn covered_share((lo, hi): (f64, f64), step: f64, range: &ValueRange) -> f64 {
    if lo == hi && step == 0.0 {
        return f64::from(u8::from(range.contains(&lo)));
    }
    let end = |bound: Bound<f64>, step: f64, otherwise: f64| match bound {
        Bound::Included(value) => value,
        Bound::Excluded(value) => value + step,
        Bound::Unbounded => otherwise,
    };
    let (first, last) = (end(range.0, step, lo).max(lo), end(range.1, -step, hi).min(hi));
    ((last - first + step) / (hi - lo + step)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use Bound::{Excluded, Included, Unbounded};

    use super::*;

    #[test]
    fn an_open_end_leaves_out_a_single_value_and_nothing_else() {
        for (cell, range, share) in [
            ((2.0, 2.0), (Excluded(2.0), Unbounded), 0.0),
            ((2.0, 2.0), (Included(2.0), Unbounded), 1.0),
            ((2.0, 4.0), (Excluded(2.0), Unbounded), 1.0),
            ((2.0, 4.0), (Unbounded, Excluded(3.0)), 0.5),
            ((2.0, 4.0), (Included(5.0), Included(7.0)), 0.0),
            ((2.0, 4.0), (Included(3.0), Included(1.0)), 0.0),
        ] {
            assert_eq!(covered_share(cell, 0.0, &range), share, "{cell:?} {range:?}");
        }
    }
}
