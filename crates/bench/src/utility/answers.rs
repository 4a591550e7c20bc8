//! What a release is still good for: range counts estimated from it, and rows found in it.
//!
//! Every range query of a [`Workload`] is asked of the private table and of its recoding, and the answers are compared.
//!
//! | measure | definition |
//! | --- | --- |
//! | estimate | each class counts by the share of its box that the query covers, as if rows were spread evenly |
//! | relative error | abs(actual - estimate) / max(actual, sanity bound) |
//! | precision | returned rows that match / all returned rows; 1 if no row is returned |
//! | recall | returned rows that match / all rows that match; 1 if no row matches |
//!
//! There are three ways to return rows: all classes whose box meets the query ("could be", anonymize then select), only
//! classes that hold a matching row ("matching", select then anonymize), or only classes whose box lies within the
//! query ("must be"). The first two miss only rows that were left out of the release. The third returns only rows that
//! match.
//!
//! # Paper
//! Range counts: `[SMP10]` sections 3.3 and 5. Precision and recall: `[EPS+12]` section 8.1.
//! # Deviations
//! The papers don't define the measures for queries that no row matches: see the table, and [`sanity_bound`]. With a
//! bound of 1 the error of all other queries is the paper's. Precision and recall are means over queries. Counts are
//! rows of the table, not persons, and estimates are not scaled up for rows that were left out.
//! # Cost
//! Per query one pass over the boxes, and over the rows of classes that the query cuts. Queries run in parallel.

use kohort_core::encode::Rows;
use kohort_core::recode::Recoding;
use rayon::prelude::*;

use super::scale::Scale;
use super::workload::{Query, QueryInterval, Workload};

/// The answers to one query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Answer {
    /// Rows of the table that match.
    pub(crate) actual: u64,
    /// The estimate of `actual` from the release.
    pub(crate) estimate: f64,
    /// The rows of classes whose box meets the query.
    pub(crate) could_be: Returned,
    /// The rows of classes that hold a matching row.
    pub(crate) matching: Returned,
    /// The rows of classes whose box lies within the query.
    pub(crate) must_be: Returned,
}

/// How many rows are returned for a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Returned {
    /// All returned rows.
    pub(crate) n_rows: u64,
    /// Returned rows that match.
    pub(crate) n_matching: u64,
}

impl Returned {
    fn add(&mut self, n_rows: u64, n_matching: u64) {
        self.n_rows += n_rows;
        self.n_matching += n_matching;
    }
}

/// Asks every query of the table and of its recoding. `left_out` are the rows of the table that are in no class.
pub(crate) fn ask(workload: &Workload, recoding: &Recoding<'_>, left_out: &Rows) -> Vec<Answer> {
    let released = Released::new(recoding);
    let answer = |query: &Query| {
        let mut answer = released.answer(query);
        let missed = (0..left_out.len() as u32).filter(|&row| query.matches(left_out.cells(row)));
        answer.actual += missed.map(|row| u64::from(left_out.weight(row))).sum::<u64>();
        answer
    };
    workload.queries.par_iter().map(answer).collect()
}

/// The boxes and rows of all classes, stored class after class, so that a query reads memory in order.
struct Released {
    scales: Vec<Scale>,
    n_columns: usize,
    /// One interval per class and column.
    boxes: Vec<(u32, u32)>,
    /// Rows of the table per class.
    sizes: Vec<u64>,
    /// Folded rows of class `c` are `starts[c]..starts[c + 1]`.
    starts: Vec<usize>,
    /// One code per folded row and column.
    cells: Vec<u32>,
    /// Rows of the table per folded row.
    weights: Vec<u32>,
}

impl Released {
    fn new(recoding: &Recoding<'_>) -> Released {
        let n_columns = recoding.encoded.domains.len();
        let mut released = Released {
            scales: recoding.encoded.domains.par_iter().map(Scale::new).collect(),
            n_columns,
            boxes: Vec::with_capacity(recoding.shown.len() * n_columns),
            sizes: Vec::with_capacity(recoding.shown.len()),
            starts: vec![0],
            cells: Vec::with_capacity(recoding.classes.all_rows().len() * n_columns),
            weights: Vec::with_capacity(recoding.classes.all_rows().len()),
        };
        for (class, rows) in recoding.shown.folded_rows(recoding.classes).iter().enumerate() {
            released.boxes.extend((0..n_columns).map(|column| recoding.shown.interval(class, column)));
            for &row in rows {
                released.cells.extend_from_slice(recoding.rows.cells(row));
                released.weights.push(recoding.rows.weight(row));
            }
            released.sizes.push(rows.iter().map(|&row| u64::from(recoding.rows.weight(row))).sum());
            released.starts.push(released.weights.len());
        }
        released
    }

    fn answer(&self, query: &Query) -> Answer {
        let mut estimate = 0.0;
        let (mut could_be, mut matching, mut must_be) = Default::default();
        for (class, &size) in self.sizes.iter().enumerate() {
            let shown = &self.boxes[class * self.n_columns..][..self.n_columns];
            let meets = |interval: &QueryInterval| {
                let (lo, hi) = shown[interval.column];
                interval.lo <= hi && lo <= interval.hi
            };
            if !query.intervals.iter().all(meets) {
                continue;
            }
            let covers = |interval: &QueryInterval| {
                let (lo, hi) = shown[interval.column];
                interval.lo <= lo && hi <= interval.hi
            };
            if query.intervals.iter().all(covers) {
                estimate += size as f64;
                for returned in [&mut could_be, &mut matching, &mut must_be] {
                    Returned::add(returned, size, size);
                }
                continue;
            }
            let share = |interval: &QueryInterval| {
                self.scales[interval.column].covered_share(shown[interval.column], (interval.lo, interval.hi))
            };
            estimate += size as f64 * query.intervals.iter().map(share).product::<f64>();
            let n_matching = self.count(class, query);
            could_be.add(size, n_matching);
            if n_matching > 0 {
                matching.add(size, n_matching);
            }
        }
        Answer { actual: could_be.n_matching, estimate, could_be, matching, must_be }
    }

    /// The number of rows of a class that match.
    fn count(&self, class: usize, query: &Query) -> u64 {
        let rows = self.starts[class]..self.starts[class + 1];
        let matching = rows.filter(|&row| query.matches(&self.cells[row * self.n_columns..][..self.n_columns]));
        matching.map(|row| u64::from(self.weights[row])).sum()
    }
}

/// How useful a release is for a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Utility {
    /// The average relative error (ARE) of estimated counts.
    pub(crate) mean_error: f64,
    /// The median relative error.
    pub(crate) median_error: f64,
    /// The quality of searching classes whose box meets the query.
    pub(crate) could_be: Quality,
    /// The quality of searching classes that contain a matching row.
    pub(crate) matching: Quality,
    /// The quality of searching classes whose box lies within the query.
    pub(crate) must_be: Quality,
}

/// Precision and recall, means over queries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quality {
    /// Share of the returned rows that match.
    pub(crate) precision: f64,
    /// Share of the matching rows that are returned.
    pub(crate) recall: f64,
}

impl Utility {
    /// Summarizes the answers to a workload. In a division, an actual count below `sanity_bound` is replaced by it.
    /// `None` if there are no answers.
    pub(crate) fn of(answers: &[Answer], sanity_bound: f64) -> Option<Utility> {
        if answers.is_empty() {
            return None;
        }
        let n_answers = answers.len() as f64;
        let error = |answer: &Answer| {
            let actual = answer.actual as f64;
            (actual - answer.estimate).abs() / actual.max(sanity_bound)
        };
        let mut errors: Vec<f64> = answers.iter().map(error).collect();
        let mean_error = errors.iter().sum::<f64>() / n_answers;
        errors.sort_unstable_by(f64::total_cmp);
        let quality = |returned: fn(&Answer) -> Returned| {
            let mean = |of: &dyn Fn(&Answer) -> f64| answers.iter().map(of).sum::<f64>() / n_answers;
            Quality {
                precision: mean(&|answer| ratio(returned(answer).n_matching, returned(answer).n_rows)),
                recall: mean(&|answer| ratio(returned(answer).n_matching, answer.actual)),
            }
        };
        Some(Utility {
            mean_error,
            median_error: f64::midpoint(errors[(errors.len() - 1) / 2], errors[errors.len() / 2]),
            could_be: quality(|answer| answer.could_be),
            matching: quality(|answer| answer.matching),
            must_be: quality(|answer| answer.must_be),
        })
    }
}

/// The usual sanity bound: a thousandth of the table's rows, and at least one row. Without a bound, the few queries
/// that hardly any row matches would dominate the mean error.
pub(crate) fn sanity_bound(n_rows: u64) -> f64 {
    (n_rows as f64 / 1000.0).max(1.0)
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}
