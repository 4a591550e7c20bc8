//! [`Workload`]: random range queries over quasi columns.
//!
//! # Paper
//! `[SMP10]` section 5: each query ranges over all quasi columns and spans a share of the domain space, the same share
//! of each column.
//! # Deviations
//! A query may range over fewer columns, each of which is equally likely. A range starts at one of the values from
//! which it fits into the column, each equally likely, and ends at the last value within its share. So it spans no more
//! than asked, unless a single value is already wider; a share of 0 gives point queries. Over a tree a range is a run
//! of leaves in depth-first order. NULL matches no range, so columns without any value are not drawn.

use kohort_core::encode::Domain;
use kohort_testkit::random::Random;

use super::scale::{Scale, Window};

/// What queries to draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WorkloadSpec {
    /// How many queries to draw.
    pub(crate) n_queries: usize,
    /// Over how many columns each query ranges.
    pub(crate) n_columns: usize,
    /// How much of the space of those columns a query spans, 0 to 1.
    pub(crate) share: f64,
    /// The same seed gives the same queries.
    pub(crate) seed: u64,
}

/// Why a workload can't be drawn.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub(crate) enum UnfitWorkload {
    /// A query would need more columns than there are, or none.
    #[error("a query can't range over {asked} columns: {there} quasi columns hold values, and it needs at least one")]
    Columns {
        /// The number of columns that was asked for.
        asked: usize,
        /// The number of columns that hold a value.
        there: usize,
    },
    /// The share is not between 0 and 1.
    #[error("a query can't span {0} of the domain space: give a share between 0 and 1")]
    Share(f64),
}

/// Range queries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Workload {
    /// The queries.
    pub(crate) queries: Vec<Query>,
}

/// A range query: it matches rows that lie in every interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Query {
    /// The intervals, at most one per column.
    pub(crate) intervals: Vec<QueryInterval>,
}

/// The codes `lo..=hi` of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueryInterval {
    /// Position among the quasi columns.
    pub(crate) column: usize,
    /// The first code.
    pub(crate) lo: u32,
    /// The last code.
    pub(crate) hi: u32,
}

impl Query {
    /// Whether a row with these codes, one per quasi column, matches.
    pub(crate) fn matches(&self, cells: &[u32]) -> bool {
        self.intervals.iter().all(|interval| (interval.lo..=interval.hi).contains(&cells[interval.column]))
    }
}

impl Workload {
    /// Draws queries over the quasi columns with these domains.
    ///
    /// # Errors
    /// If there are too few columns, or the share is not between 0 and 1.
    pub(crate) fn random(domains: &[Domain], spec: &WorkloadSpec) -> Result<Workload, UnfitWorkload> {
        let scales: Vec<Scale> = domains.iter().map(Scale::new).collect();
        let mut columns: Vec<usize> = (0..scales.len()).filter(|&column| scales[column].n_values() > 0).collect();
        if spec.n_columns == 0 || spec.n_columns > columns.len() {
            return Err(UnfitWorkload::Columns { asked: spec.n_columns, there: columns.len() });
        }
        if !(0.0..=1.0).contains(&spec.share) {
            return Err(UnfitWorkload::Share(spec.share));
        }
        let share_of_column = spec.share.powf(1.0 / spec.n_columns as f64);
        let windows: Vec<Window<'_>> = scales.iter().map(|scale| scale.window(share_of_column)).collect();
        let mut random = Random::new(spec.seed);
        let mut draw = || {
            for position in 0..spec.n_columns {
                let other = position + random.below(columns.len() - position);
                columns.swap(position, other);
            }
            let mut intervals: Vec<QueryInterval> = columns[..spec.n_columns]
                .iter()
                .map(|&column| {
                    let lo = random.below(windows[column].n_starts()) as u32;
                    QueryInterval { column, lo, hi: windows[column].end(lo) }
                })
                .collect();
            intervals.sort_unstable_by_key(|interval| interval.column);
            Query { intervals }
        };
        Ok(Workload { queries: (0..spec.n_queries).map(|_| draw()).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kohort_model::{Column, Role, ValueType};

    fn numbers(n: u32) -> Domain {
        let texts: Vec<String> = (0..n).map(|number| number.to_string()).collect();
        let cells = texts.iter().map(|text| Some(text.as_str()));
        Domain::of(&Column::from_cells("c", Role::Quasi, cells).typed(ValueType::Integer)).unwrap().0
    }

    fn only_nulls() -> Domain {
        Domain::of(&Column::from_cells("c", Role::Quasi, [None, None]).typed(ValueType::Integer)).unwrap().0
    }

    const SPEC: WorkloadSpec = WorkloadSpec { n_queries: 400, n_columns: 2, share: 0.25, seed: 7 };

    #[test]
    fn every_query_spans_its_share_of_the_columns_it_ranges_over() {
        let domains = [numbers(10), numbers(100), only_nulls(), numbers(40)];
        let workload = Workload::random(&domains, &SPEC).unwrap();
        assert_eq!(workload.queries.len(), 400);
        for query in &workload.queries {
            assert_eq!(query.intervals.len(), 2);
            assert!(query.intervals[0].column < query.intervals[1].column);
            for interval in &query.intervals {
                assert_eq!(interval.hi - interval.lo + 1, domains[interval.column].n_codes() / 2);
                assert!(interval.hi < domains[interval.column].n_codes());
            }
        }
    }

    #[test]
    fn all_columns_and_all_starts_are_drawn() {
        let domains = [numbers(4), numbers(4), numbers(4)];
        let workload = Workload::random(&domains, &SPEC).unwrap();
        for column in 0..3 {
            for lo in 0..3 {
                let wanted = QueryInterval { column, lo, hi: lo + 1 };
                assert!(workload.queries.iter().any(|query| query.intervals.contains(&wanted)));
            }
        }
    }

    #[test]
    fn a_seed_fixes_the_queries() {
        let domains = [numbers(50), numbers(50)];
        let draw = |seed| Workload::random(&domains, &WorkloadSpec { seed, ..SPEC }).unwrap();
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn a_share_of_nothing_asks_for_points() {
        let workload = Workload::random(&[numbers(9)], &WorkloadSpec { n_columns: 1, share: 0.0, ..SPEC }).unwrap();
        assert!(workload.queries.iter().all(|query| query.intervals[0].lo == query.intervals[0].hi));
        assert!(workload.queries.iter().any(|query| query.intervals[0].hi == 8));
    }

    #[test]
    fn a_workload_that_makes_no_sense_is_refused() {
        let domains = [numbers(9), only_nulls()];
        let refused = |spec| Workload::random(&domains, &spec).unwrap_err();
        assert_eq!(refused(SPEC), UnfitWorkload::Columns { asked: 2, there: 1 });
        assert_eq!(refused(WorkloadSpec { n_columns: 0, ..SPEC }), UnfitWorkload::Columns { asked: 0, there: 1 });
        assert_eq!(refused(WorkloadSpec { n_columns: 1, share: 1.5, ..SPEC }), UnfitWorkload::Share(1.5));
    }
}
