//! [`Bounds`]: between which numbers the truth must lie, whatever rows are behind the released cells.
//!
//! # Guarantee
//! For every private table that the release can come from, the number of its released rows that match lies within the bounds.
//! They need no assumption on how rows are spread; bounds of several figures can't all be reached at once.

use std::ops::Bound;

use kohort_core::register::estimate::{AskedInterval, ShownCell};

use super::scale::meet;
use super::shown::{ClassOfRows, ShownRows};

/// The least and the largest number that is possible.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// It is no less.
    pub least: f64,
    /// It is no more.
    pub most: f64,
}

/// How many rows of a group match, at least and at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Matching {
    pub(super) least: u64,
    pub(super) most: u64,
}

impl Matching {
    /// How many rows match of a group of which each row may match.
    pub(super) fn of_groups(shown: &ShownRows<'_>, queries: &[Vec<AskedInterval>]) -> Vec<Matching> {
        let mut n_released = vec![0; shown.groups.len()];
        let mut found = vec![Matching::default(); shown.groups.len()];
        for class in &shown.classes {
            n_released[class.group] += class.n_rows;
            if queries.iter().any(|query| class.must_match(query)) {
                found[class.group].least += class.n_rows;
            }
            if queries.iter().any(|query| class.may_match(query)) {
                found[class.group].most += class.n_rows;
            }
        }
        let of_group = |(matching, (group, n_released)): (Matching, (&super::shown::Group, u64))| {
            // All private rows may be among the released rows that match, or as many as possible among the others.
            let others = n_released - matching.least;
            Matching { least: group.n_rows.saturating_sub(others), most: matching.most.min(group.n_rows) }
        };
        found.into_iter().zip(shown.groups.iter().zip(n_released)).map(of_group).collect()
    }

    /// How many of `n` rows of a group match, if the group has `n_rows`.
    pub(super) fn part(self, n: u64, n_rows: u64) -> Matching {
        Matching { least: self.least.saturating_sub(n_rows - n), most: self.most.min(n) }
    }

    /// The sum over groups.
    pub(super) fn sum(all: impl Iterator<Item = Matching>) -> Bounds {
        all.fold(Bounds::default(), |sum, one| Bounds {
            least: sum.least + one.least as f64,
            most: sum.most + one.most as f64,
        })
    }
}

impl ClassOfRows {
    fn may_match(&self, query: &[AskedInterval]) -> bool {
        let cells = self.cells.iter().zip(&self.is_everything).zip(query);
        cells.into_iter().all(|((cell, &is_everything), asked)| match asked {
            AskedInterval::Anything | AskedInterval::Range(_) if is_everything => true,
            _ => may_match(cell, asked),
        })
    }

    /// With several queries the rows of a class may be spread over them. Such a class is not counted, so that the bound holds.
    fn must_match(&self, query: &[AskedInterval]) -> bool {
        let cells = self.cells.iter().zip(&self.is_everything).zip(query);
        cells.into_iter().all(|((cell, &is_everything), asked)| match asked {
            AskedInterval::Anything => true,
            // A label of everything hides rows without a value, too.
            _ => !is_everything && must_match(cell, asked),
        })
    }
}

fn may_match(cell: &ShownCell, asked: &AskedInterval) -> bool {
    match (cell, asked) {
        (_, AskedInterval::Anything) => true,
        (&ShownCell::Range { lo, hi, .. }, AskedInterval::Range(range)) => {
            meet(&(Bound::Included(lo), Bound::Included(hi)), range).is_some()
        }
        (ShownCell::Leaves { .. }, AskedInterval::Leaves(_)) => cell.covered_share(asked) > 0.0,
        (ShownCell::Null | ShownCell::Range { .. } | ShownCell::Leaves { .. }, _) => false,
    }
}

fn must_match(cell: &ShownCell, asked: &AskedInterval) -> bool {
    match (cell, asked) {
        (&ShownCell::Range { lo, hi, .. }, AskedInterval::Range(range)) => {
            std::ops::RangeBounds::contains(range, &lo) && std::ops::RangeBounds::contains(range, &hi)
        }
        (ShownCell::Leaves { .. }, AskedInterval::Leaves(_)) => cell.covered_share(asked) >= 1.0,
        (ShownCell::Null | ShownCell::Range { .. } | ShownCell::Leaves { .. }, _) => false,
    }
}
