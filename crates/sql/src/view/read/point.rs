//! [`AView::point`]: a few classes of a materialized view, past the planner.
//!
//! For an answer of some rows, planning takes far longer than reading. Where all that is asked is known before, nothing
//! has to be planned: the classes that could match are found by their labels, their rows read, shown and verified, and
//! those that could not match left out. Each of these steps is the one that [`AnonymizeExec`](crate::view::AnonymizeExec)
//! takes, in this order.
//!
//! # Guarantee
//! the rows that the planner's way gives, in the same order, or nothing: whatever fails or is not certain is left to
//! the planner, so that there is one answer and one message
//! # Cost
//! runs where it is called; reads the rows of at most a few hundred classes

use std::sync::Arc;

use datafusion::arrow::array::{BooleanArray, RecordBatch};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::catalog::TableProvider;
use kohort_io::write_rows;
use kohort_labels::meaning::CouldBe;
use kohort_model::{Block, BlockCells, NULL};
use kohort_store::State as StoreState;

use crate::options::ViewOptions;
use crate::view::materialized::{PointRead, StoredRead};
use crate::view::{AView, State};

/// The answer to a question for a few classes.
pub enum Point {
    /// The rows.
    Rows(RecordBatch),
    /// The planner has to see to it.
    Planned,
    /// What is in memory is of another state of the store: the next one may be the same.
    OtherState,
}

impl AView {
    /// The rows that satisfy all of some questions of quasi columns, by the positions of both in the view.
    pub fn point(
        &self,
        store: &StoreState,
        options: &ViewOptions,
        asked: &[(usize, &CouldBe)],
        projection: &[usize],
    ) -> Point {
        let State::Materialized { view, .. } = self.state() else { return Point::Planned };
        let stored = match view.read_point(store, options, asked) {
            Ok(PointRead::Found(stored)) => stored,
            Ok(PointRead::OtherState) => return Point::OtherState,
            Ok(PointRead::Many) | Err(_) => return Point::Planned,
        };
        self.shown(&stored, options, asked, projection).map_or(Point::Planned, Point::Rows)
    }

    fn shown(
        &self,
        stored: &StoredRead,
        options: &ViewOptions,
        asked: &[(usize, &CouldBe)],
        projection: &[usize],
    ) -> Option<RecordBatch> {
        let reader = self.reader(&stored.version, options).ok()?;
        let schema = Arc::new(self.schema().project(projection).ok()?);
        let Some(verified) = stored.version.stored_block(stored, reader).ok()?.block else {
            return Some(RecordBatch::new_empty(schema));
        };
        let block = verified.get().block();
        let answers = matching(block, asked)?;
        let shown = write_rows(&verified, 0..block.rows.len(), projection, schema).ok()?;
        if answers.iter().all(|&answers| answers) {
            return Some(shown);
        }
        filter_record_batch(&shown, &BooleanArray::from(answers)).ok()
    }
}

/// Per row whether its labels satisfy all questions.
fn matching(block: &Block, asked: &[(usize, &CouldBe)]) -> Option<Vec<bool>> {
    let mut answers = vec![true; block.rows.len()];
    for (position, question) in asked {
        let BlockCells::Labels { labels, ids } = block.columns.get(*position)? else { return None };
        let of_label: Vec<bool> =
            labels.iter().map(|label| question.matches(Some(label))).collect::<Result<_, _>>().ok()?;
        let of_missing = question.matches(None).ok()?;
        for (answer, &id) in answers.iter_mut().zip(ids) {
            *answer &= if id == NULL { of_missing } else { of_label[id as usize] };
        }
    }
    Some(answers)
}
