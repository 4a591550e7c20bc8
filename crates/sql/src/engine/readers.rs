//! [`Readers`]: how many queries read views at once.
//!
//! To read much of a view takes memory in proportion to its rows, and all processors. More such queries at once than there
//! are processors would not be answered sooner, only all later, and would need the memory of all of them. So each waits
//! for its turn, in the order they came, and gives it back with its first rows: from then on it is its client that is slow.

use std::sync::Arc;
use std::thread::available_parallelism;

use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, stream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Turns of queries.
pub(super) struct Readers {
    turns: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new() -> Readers {
        let n_processors = available_parallelism().map_or(1, usize::from);
        Readers { turns: Arc::new(Semaphore::new(n_processors.max(2))) }
    }

    /// Waits for a turn.
    pub(super) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        // Turns are never taken away.
        Arc::clone(&self.turns).acquire_owned().await.ok()
    }
}

/// Rows of which the first are there.
///
/// # Errors
/// Where the query fails before it has any.
pub(super) async fn begun(mut rows: SendableRecordBatchStream) -> Result<SendableRecordBatchStream, DataFusionError> {
    let schema = rows.schema();
    let first = rows.next().await.transpose()?;
    let all = stream::iter(first.map(Ok)).chain(rows);
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, all)))
}
