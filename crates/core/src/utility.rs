//! What a release is still good for: range counts estimated from it, and rows found in it.
//!
//! A [`Workload`] of range queries over quasi columns is asked of the table and of its recoding.
//!
//! | measure | definition |
//! | --- | --- |
//! | estimate | rows spread evenly in their boxes: a class counts by the share of its box that the query covers |
//! | relative error | (actual - estimate) / actual, without its sign; the actual count taken for no less than a sanity bound |
//! | precision | rows returned that do match, over rows returned; 1 where none is returned |
//! | recall | rows returned that do match, over rows that match; 1 where none matches |
//!
//! Three ways to return rows: all classes whose box meets the query ("could be", anonymize then select), only those
//! that hold a row which matches (select then anonymize), or only those whose box lies within the query ("must be").
//! The first two miss nobody but rows left out of the release, the third returns nobody in vain.
//!
//! # Paper
//! range counts `[SMP10]` sections 3.3 and 5; precision and recall `[EPS+12]` section 8.1
//! # Deviations
//! the papers say nothing of queries that nothing matches: see the table, and [`sanity_bound`]; with a bound of 1 the
//! error of all other queries is the paper's. Precision and recall are means over queries. Counts are rows of the
//! table, not persons, and estimates are not scaled up for rows left out.
//! # Cost
//! per query one pass over the boxes and over the rows of classes that the query cuts; queries run in parallel

mod continuous;
mod scale;
mod workload;

pub use continuous::{ValueBox, ValueRange, covered_share, estimate_count};
pub use workload::{Query, QueryInterval, UnfitWorkload, Workload, WorkloadSpec};

use rayon::prelude::*;

use crate::encode::{Domain, Rows};
use crate::partition::Classes;
use crate::recode::Shown;
use scale::Scale;

/// The classes of a table and what they show.
#[derive(Clone, Copy, Debug)]
pub struct Recoding<'a> {
    /// The domain of each quasi column.
    pub domains: &'a [Domain],
    /// The folded rows that were partitioned.
    pub rows: &'a Rows,
    /// Their classes.
    pub classes: &'a Classes,
    /// What the classes show.
    pub shown: &'a Shown,
}

/// What came of one query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// Rows of the table that match.
    pub actual: u64,
    /// The same as estimated from the release.
    pub estimate: f64,
    /// Classes whose box meets the query.
    pub could_be: Returned,
    /// Classes that hold a row which matches.
    pub matching: Returned,
    /// Classes whose box lies within the query.
    pub must_be: Returned,
}

/// Rows returned for a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Returned {
    /// All of them.
    pub n_rows: u64,
    /// Those that match.
    pub n_matching: u64,
}

impl Returned {
    fn add(&mut self, n_rows: u64, n_matching: u64) {
        self.n_rows += n_rows;
        self.n_matching += n_matching;
    }
}

/// Asks every query of the table and of its recoding. `left_out` are the rows of the table that are in no class.
pub fn ask(workload: &Workload, recoding: &Recoding<'_>, left_out: &Rows) -> Vec<Answer> {
    let released = Released::new(recoding);
    let answer = |query: &Query| {
        let mut answer = released.answer(query);
        let missed = (0..left_out.len() as u32).filter(|&row| query.matches(left_out.cells(row)));
        answer.actual += missed.map(|row| u64::from(left_out.weight(row))).sum::<u64>();
        answer
    };
    workload.queries.par_iter().map(answer).collect()
}

/// Boxes and rows, class after class, so that a query reads memory in order.
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
        let n_columns = recoding.domains.len();
        let mut released = Released {
            scales: recoding.domains.par_iter().map(Scale::new).collect(),
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

    /// The rows of a class that match.
    fn count(&self, class: usize, query: &Query) -> u64 {
        let rows = self.starts[class]..self.starts[class + 1];
        let matching = rows.filter(|&row| query.matches(&self.cells[row * self.n_columns..][..self.n_columns]));
        matching.map(|row| u64::from(self.weights[row])).sum()
    }
}

/// What a release is good for, over a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Utility {
    /// The average relative error (ARE) of estimated counts.
    pub mean_error: f64,
    /// The median relative error.
    pub median_error: f64,
    /// Of classes whose box meets the query.
    pub could_be: Quality,
    /// Of classes that hold a row which matches.
    pub matching: Quality,
    /// Of classes whose box lies within the query.
    pub must_be: Quality,
}

/// Precision and recall, means over queries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// Share of the returned rows that match.
    pub precision: f64,
    /// Share of the matching rows that are returned.
    pub recall: f64,
}

impl Utility {
    /// Summarizes the answers to a workload; an actual count below `sanity_bound` counts as that many rows where it
    /// divides. `None` where there are no answers.
    pub fn of(answers: &[Answer], sanity_bound: f64) -> Option<Utility> {
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

/// The sanity bound in use unless a caller has another: a thousandth of the table's rows, and at least one row. Without
/// it the queries that hardly anybody matches would decide the mean alone.
pub fn sanity_bound(n_rows: u64) -> f64 {
    (n_rows as f64 / 1000.0).max(1.0)
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests;
