//! [`Readers`]: limits how many queries read views at once.
//!
//! Reading much of a view takes all processors, and memory in proportion to its rows. More such queries at once than there are
//! processors would need more memory, and none would be answered sooner. So queries wait for a turn, in the order they came. A
//! login has at most half of the turns, however many connections it has.
//!
//! A query gives its turn back with its first rows, because from then on it may only wait for its client; or once it has read
//! all of its views, because what it computes from them may take for ever. Work on a view that can't be stopped keeps the turn
//! until it has ended, even if nobody waits for the query any more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::context::SessionContext;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, stream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The turns of queries that read views.
pub(crate) struct Readers {
    turns: Arc<Semaphore>,
    share: usize,
    of_logins: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Readers {
    pub(crate) fn new() -> Readers {
        Readers::of(available_parallelism().map_or(1, usize::from).max(2))
    }

    fn of(n_turns: usize) -> Readers {
        let turns = Arc::new(Semaphore::new(n_turns));
        Readers { turns, share: (n_turns / 2).max(1), of_logins: Mutex::default() }
    }

    /// Waits for a turn: first among the queries of the same login, so that a login that waits there keeps nobody else
    /// waiting.
    pub(crate) async fn turn(&self, login: Option<&str>) -> Option<Waited> {
        let mut permits = Vec::new();
        // This never fails, because the semaphores are never closed.
        if let Some(login) = login {
            permits.push(self.of_login(login).acquire_owned().await.ok()?);
        }
        permits.push(Arc::clone(&self.turns).acquire_owned().await.ok()?);
        let held = HeldTurn { permits: Some(Arc::new(permits)), n_reading: 0 };
        Some(Waited(Arc::new(ReadingTurn(Mutex::new(held)))))
    }

    fn of_login(&self, login: &str) -> Arc<Semaphore> {
        let mut logins = self.of_logins.lock().unwrap_or_else(PoisonError::into_inner);
        let own = logins.entry(login.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(self.share)));
        Arc::clone(own)
    }
}

/// The turn of one query, shared by the parts of the query.
pub(crate) struct ReadingTurn(Mutex<HeldTurn>);

struct HeldTurn {
    /// Given back when this and all [`Works`] are dropped.
    permits: Option<Works>,
    /// Views that are being read.
    n_reading: usize,
}

/// Held by work that is done in a turn and can't be stopped. The turn is given back only after this is dropped.
pub(crate) type Works = Arc<Vec<OwnedSemaphorePermit>>;

impl ReadingTurn {
    /// Notes that a view is being read, until the result is dropped.
    pub(crate) fn reading(self: &Arc<Self>) -> ReadsView {
        self.held().n_reading += 1;
        ReadsView(Arc::clone(self))
    }

    /// Notes that work is being done that can't be stopped, until the result is dropped; `None` if the turn is over.
    pub(crate) fn working(&self) -> Option<Works> {
        self.held().permits.clone()
    }

    fn held(&self) -> MutexGuard<'_, HeldTurn> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A view that is being read in a turn.
pub(crate) struct ReadsView(Arc<ReadingTurn>);

impl Drop for ReadsView {
    fn drop(&mut self) {
        let mut held = self.0.held();
        held.n_reading -= 1;
        if held.n_reading == 0 {
            held.permits = None;
        }
    }
}

/// A turn of a query. When it is dropped, the turn ends, unless work goes on that can't be stopped.
pub(crate) struct Waited(Arc<ReadingTurn>);

impl Waited {
    /// The session, with views that are read in this turn.
    pub(crate) fn scope(&self, context: &SessionContext) -> SessionContext {
        let mut state = context.state();
        state.config_mut().set_extension(Arc::clone(&self.0));
        SessionContext::new_with_state(state)
    }
}

impl Drop for Waited {
    fn drop(&mut self) {
        self.0.held().permits = None;
    }
}

/// Waits for the first rows of a stream, and returns all of them.
pub(crate) async fn begun(mut rows: SendableRecordBatchStream) -> Result<SendableRecordBatchStream, DataFusionError> {
    let schema = rows.schema();
    let first = rows.next().await.transpose()?;
    let all = stream::iter(first.map(Ok)).chain(rows);
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, all)))
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn is_free(readers: &Readers, login: Option<&str>) -> bool {
        readers.turn(login).now_or_never().flatten().is_some()
    }

    #[tokio::test]
    async fn a_turn_is_given_back_once_all_views_are_read() {
        let readers = Readers::of(2);
        let others = readers.turn(None).await.unwrap();
        let waited = readers.turn(None).await.unwrap();
        let (one, another) = (waited.0.reading(), waited.0.reading());
        drop(one);
        assert!(!is_free(&readers, None));
        drop(another);
        assert!(is_free(&readers, None));
        drop((waited, others));
        assert_eq!(readers.turns.available_permits(), 2);
    }

    #[tokio::test]
    async fn work_that_goes_on_keeps_the_turn_of_a_query_that_is_gone() {
        let readers = Readers::of(2);
        let _others = readers.turn(None).await.unwrap();
        let waited = readers.turn(None).await.unwrap();
        let (view, work) = (waited.0.reading(), waited.0.working());
        drop((view, waited));
        assert!(!is_free(&readers, None));
        drop(work);
        assert!(is_free(&readers, None));
    }

    #[tokio::test]
    async fn planning_does_not_give_a_turn_back() {
        let readers = Readers::of(2);
        let _others = readers.turn(None).await.unwrap();
        let waited = readers.turn(None).await.unwrap();
        drop(waited.0.working());
        assert!(!is_free(&readers, None));
        drop(waited);
        assert!(is_free(&readers, None));
    }

    #[tokio::test]
    async fn a_login_has_at_most_its_share() {
        let readers = Readers::of(4);
        let _ann = [readers.turn(Some("ann")).await, readers.turn(Some("ann")).await];
        assert!(!is_free(&readers, Some("ann")));
        assert!(is_free(&readers, Some("bob")));
        assert!(is_free(&readers, None));
    }
}
