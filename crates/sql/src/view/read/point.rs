//! [`AView::point`]: a few classes of a materialized view, without a plan.
//!
//! For an answer of some rows, planning takes far longer than reading. If everything that is asked is known at once, no
//! plan is needed. The steps are those of [`AnonymizeExec`](crate::view::AnonymizeExec), in the same order and by the same
//! functions: choose the classes that could match, read their rows, verify them, leave out the rows that could not match.
//!
//! # Guarantee
//! The rows that a plan gives, in the same order, or nothing. Whatever fails or is not certain is left to the planner, so
//! there is one answer and one message.
//! # Cost
//! Runs on the thread that calls it, and reads at most a few hundred classes.

use std::sync::Arc;

use datafusion::arrow::array::{BooleanArray, RecordBatch};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::catalog::TableProvider;
use kohort_io::write_rows;
use kohort_store::State as StoreState;

use super::choose::{LabelComparison, answering_rows};
use crate::options::ViewOptions;
use crate::view::materialized::StoredRead;
use crate::view::{AView, State};

/// The answer to a query that needs few classes.
pub(crate) enum Point<T = RecordBatch> {
    Rows(T),
    /// The query must be planned, because it needs many classes, or it is not known which.
    Planned,
    /// The classes in memory are of another state of the store, because a change was committed and is not published yet.
    /// The next state may fit.
    OtherState,
}

impl AView {
    /// The rows that satisfy all comparisons, with the columns at these positions.
    pub(crate) fn point(
        &self,
        store: &StoreState,
        options: &ViewOptions,
        comparisons: &[LabelComparison],
        projection: &[usize],
    ) -> Point {
        let State::Materialized { view, .. } = self.state() else { return Point::Planned };
        match view.read_point(store, options, comparisons) {
            Ok(Point::Rows(stored)) => {
                self.shown(&stored, options, comparisons, projection).map_or(Point::Planned, Point::Rows)
            }
            Ok(Point::OtherState) => Point::OtherState,
            Ok(Point::Planned) | Err(_) => Point::Planned,
        }
    }

    fn shown(
        &self,
        stored: &StoredRead,
        options: &ViewOptions,
        comparisons: &[LabelComparison],
        projection: &[usize],
    ) -> Option<RecordBatch> {
        let reader = self.reader(&stored.version, options).ok()?;
        let schema = Arc::new(self.schema().project(projection).ok()?);
        let Some(verified) = stored.version.stored_block(stored, reader).ok()? else {
            return Some(RecordBatch::new_empty(schema));
        };
        let block = verified.get().block();
        let answers = answering_rows(&self.definition, block, comparisons).ok()??;
        let shown = write_rows(&verified, 0..block.rows.len(), projection, schema).ok()?;
        filter_record_batch(&shown, &BooleanArray::from(answers)).ok()
    }
}
