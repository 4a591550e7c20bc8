//! [`PairFinder`]: the cells of one column that could be equal to a cell of another, without a look at all of them.
//!
//! The values that a label can stand for lie in a span, from a least to a greatest value. An exact value is a span of one
//! value. The spans form a search tree ordered by their least values, and each node knows the greatest value below it. So
//! a cell is compared only with the labels whose spans meet its own.
//!
//! # Guarantee
//! Finds the same cells as comparing with every cell, because spans only decide which cells are compared.
//! # Cost
//! One sort; then per cell a descent, and a comparison with each label whose span meets it. Nodes of a hierarchy whose
//! values are scattered have wide spans, so some of these comparisons are in vain.

use datafusion::arrow::array::{Array, StringArray};
use kohort_model::Value;

use super::{Comparison, MeaningError, Point, Possible, Side};

/// Finds cells that could be equal to others.
pub struct PairFinder {
    cells: StringArray,
    kind: Side,
    asked: Side,
    spans: Spans,
}

impl PairFinder {
    /// A finder among cells of one kind, for cells of the kind `asked`.
    ///
    /// # Errors
    /// If a cell can't be read.
    pub fn new(cells: StringArray, kind: Side, asked: Side) -> Result<PairFinder, MeaningError> {
        let mut spans = Vec::with_capacity(cells.len());
        for (row, cell) in (0..).zip(&cells) {
            let Some(cell) = cell else { continue };
            let possible = kind.possible(cell)?;
            spans.extend(possible.and_then(|possible| ValueSpan::of(&possible, row)));
        }
        Ok(PairFinder { cells, kind, asked, spans: Spans::new(spans) })
    }

    /// Adds the rows of the cells that could be equal to this one, ascending.
    ///
    /// # Errors
    /// If a cell can't be read.
    pub fn find(&self, cell: &str, rows: &mut Vec<u32>) -> Result<(), MeaningError> {
        let Some(asked) = self.asked.possible(cell)? else { return Ok(()) };
        let Some(span) = ValueSpan::of(&asked, 0) else { return Ok(()) };
        let mut met = Vec::new();
        self.spans.meet(&span, &mut met);
        met.sort_unstable();
        for row in met {
            let possible = self.kind.possible(self.cells.value(row as usize))?;
            if possible.is_some_and(|possible| possible.could_compare(Comparison::Equal, &asked)) {
                rows.push(row);
            }
        }
        Ok(())
    }
}

/// From the least to the greatest value that a cell can stand for. An end without a bound is `None`.
struct ValueSpan {
    low: Option<Point>,
    high: Option<Point>,
    row: u32,
}

impl ValueSpan {
    /// `None` if the cell stands for no value at all.
    fn of(possible: &Possible<'_>, row: u32) -> Option<ValueSpan> {
        possible.bounds(|low, high| ValueSpan { low: low.map(Point::of), high: high.map(Point::of), row })
    }
}

fn value(bound: &Option<Point>) -> Option<Value<'_>> {
    bound.as_ref().map(Point::value)
}

/// Whether a lower bound is at or below an upper one.
fn reaches(low: &Option<Point>, high: &Option<Point>) -> bool {
    match (value(low), value(high)) {
        (Some(low), Some(high)) => low <= high,
        _ => true,
    }
}

/// Spans in the order of their lower bounds. The middle span of a run is the root of a search tree over the run.
struct Spans {
    spans: Vec<ValueSpan>,
    /// For each root, the place of the span in its run that reaches highest.
    highest: Vec<usize>,
}

impl Spans {
    fn new(mut spans: Vec<ValueSpan>) -> Spans {
        // A span without a lower bound comes first.
        spans.sort_by(|a, b| value(&a.low).cmp(&value(&b.low)));
        let mut spans = Spans { highest: (0..spans.len()).collect(), spans };
        spans.settle(0, spans.spans.len());
        spans
    }

    fn settle(&mut self, start: usize, end: usize) -> Option<usize> {
        if start == end {
            return None;
        }
        let root = start.midpoint(end);
        let below = [self.settle(start, root), self.settle(root + 1, end)];
        for other in below.into_iter().flatten() {
            let (highest, other_high) = (&self.spans[self.highest[root]].high, &self.spans[other].high);
            let is_higher = match (value(highest), value(other_high)) {
                (Some(highest), Some(other)) => other > highest,
                (highest, _) => highest.is_some(),
            };
            if is_higher {
                self.highest[root] = other;
            }
        }
        Some(self.highest[root])
    }

    /// Adds the rows of all spans that share a value with this one.
    fn meet(&self, asked: &ValueSpan, rows: &mut Vec<u32>) {
        let mut runs = vec![(0, self.spans.len())];
        while let Some((start, end)) = runs.pop() {
            if start == end {
                continue;
            }
            let root = start.midpoint(end);
            if !reaches(&asked.low, &self.spans[self.highest[root]].high) {
                continue;
            }
            runs.push((start, root));
            let span = &self.spans[root];
            if reaches(&span.low, &asked.high) {
                runs.push((root + 1, end));
                if reaches(&asked.low, &span.high) {
                    rows.push(span.row);
                }
            }
        }
    }
}
