//! [`PairFinder`]: the cells of one column that could be equal to a cell of another, without a look at all of them.
//!
//! Whatever a label stands for lies between a least and a greatest value. So labels are kept in the order of the least,
//! with the greatest of all below each place of the search, and a cell is compared with those alone whose spans meet
//! its own. Exact values are spans of one value.
//!
//! # Guarantee
//! finds what comparing with every cell would find: spans only choose whom to compare with
//! # Cost
//! one sort; per cell asked, a descent and the labels whose spans meet it. Nodes of a hierarchy whose values are
//! scattered have wide spans, and are compared in vain

use datafusion::arrow::array::{Array, StringArray};
use kohort_model::Value;

use super::{Comparison, MeaningError, Possible, Side};

/// Finds cells that could be equal to others.
pub struct PairFinder {
    cells: StringArray,
    kind: Side,
    asked: Side,
    spans: Spans,
}

impl PairFinder {
    /// Cells of a kind, among which those are found that could be equal to cells of the kind that is asked.
    ///
    /// # Errors
    /// Where a cell can't be read.
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
    /// Where a cell can't be read.
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

/// From the least to the greatest value of a cell.
struct ValueSpan {
    low: Bound,
    high: Bound,
    row: u32,
}

impl ValueSpan {
    /// `None` where a cell stands for no value at all.
    fn of(possible: &Possible<'_>, row: u32) -> Option<ValueSpan> {
        possible.bounds(|low, high| ValueSpan { low: Bound::of(low), high: Bound::of(high), row })
    }
}

/// The end of a span, which owns its text.
enum Bound {
    None,
    Text(Box<str>),
    Other(Value<'static>),
}

impl Bound {
    fn of(value: Option<Value<'_>>) -> Bound {
        match value {
            None => Bound::None,
            Some(Value::Text(text)) => Bound::Text(text.into()),
            Some(Value::Integer(number)) => Bound::Other(Value::Integer(number)),
            Some(Value::Decimal(number)) => Bound::Other(Value::Decimal(number)),
            Some(Value::Float(number)) => Bound::Other(Value::Float(number)),
            Some(Value::Date(days)) => Bound::Other(Value::Date(days)),
            Some(Value::Timestamp(nanoseconds)) => Bound::Other(Value::Timestamp(nanoseconds)),
            Some(Value::Boolean(truth)) => Bound::Other(Value::Boolean(truth)),
        }
    }

    fn value(&self) -> Option<Value<'_>> {
        match self {
            Bound::None => None,
            Bound::Text(text) => Some(Value::Text(text)),
            Bound::Other(value) => Some(*value),
        }
    }
}

/// Whether a lower bound is at or below an upper one.
fn reaches(low: &Bound, high: &Bound) -> bool {
    match (low.value(), high.value()) {
        (Some(low), Some(high)) => low <= high,
        _ => true,
    }
}

/// Spans in the order of their lower bounds. The middle of a run of them is the root of a search tree over the run.
struct Spans {
    spans: Vec<ValueSpan>,
    /// Per root, the span of its run that reaches highest.
    highest: Vec<usize>,
}

impl Spans {
    fn new(mut spans: Vec<ValueSpan>) -> Spans {
        // No lower bound is below all others.
        spans.sort_by(|a, b| a.low.value().cmp(&b.low.value()));
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
            let is_higher = match (highest.value(), other_high.value()) {
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
