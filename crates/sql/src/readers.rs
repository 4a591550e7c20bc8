//! [`Readers`]: how many queries read views at once.
//!
//! To read much of a view takes memory in proportion to its rows, and all processors. More such queries at once than there
//! are processors would not be answered sooner, only all later, and would need the memory of all of them. So each waits
//! for its turn, in the order they came. A login has at most half of the turns, however many connections it has.
//!
//! A query gives its turn back with its first rows, as from then on it is its client that is slow, or once it has read all
//! of its views: what it computes from them may take for ever. Work on a view that can't be stopped keeps the turn until it
//! has ended, also where nobody waits for the query any more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::context::SessionContext;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, stream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Turns of queries.
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

    /// Waits for a turn, of a login's own first: whoever waits for those keeps nobody else waiting.
    pub(crate) async fn turn(&self, login: Option<&str>) -> Option<Waited> {
        let mut permits = Vec::new();
        // Turns are never taken away.
        if let Some(login) = login {
            permits.push(self.of_login(login).acquire_owned().await.ok()?);
        }
        permits.push(Arc::clone(&self.turns).acquire_owned().await.ok()?);
        Some(Waited(Arc::new(ReadingTurn(Mutex::new(HeldTurn { permits, ..HeldTurn::default() })))))
    }

    fn of_login(&self, login: &str) -> Arc<Semaphore> {
        let mut logins = self.of_logins.lock().unwrap_or_else(PoisonError::into_inner);
        let own = logins.entry(login.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(self.share)));
        Arc::clone(own)
    }
}

/// The turn of one query, which its parts share.
pub(crate) struct ReadingTurn(Mutex<HeldTurn>);

#[derive(Default)]
struct HeldTurn {
    permits: Vec<OwnedSemaphorePermit>,
    /// Views that are being read.
    n_reading: usize,
    /// Parts that can't be stopped.
    n_working: usize,
    /// Whether nothing more is to be read.
    is_over: bool,
}

impl ReadingTurn {
    /// A view is read from now on, until this is dropped.
    pub(crate) fn reading(self: &Arc<Self>) -> ReadsView {
        self.held().n_reading += 1;
        ReadsView(Arc::clone(self))
    }

    /// What is done from now on can't be stopped, until this is dropped.
    pub(crate) fn working(self: &Arc<Self>) -> Works {
        self.held().n_working += 1;
        Works(Arc::clone(self))
    }

    fn held(&self) -> MutexGuard<'_, HeldTurn> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldTurn {
    fn give_back_if_over(&mut self) {
        if self.is_over && self.n_working == 0 {
            self.permits.clear();
        }
    }
}

/// A view that is being read in a turn.
pub(crate) struct ReadsView(Arc<ReadingTurn>);

impl Drop for ReadsView {
    fn drop(&mut self) {
        let mut held = self.0.held();
        held.n_reading -= 1;
        held.is_over |= held.n_reading == 0;
        held.give_back_if_over();
    }
}

/// Work in a turn that can't be stopped.
pub(crate) struct Works(Arc<ReadingTurn>);

impl Drop for Works {
    fn drop(&mut self) {
        let mut held = self.0.held();
        held.n_working -= 1;
        held.give_back_if_over();
    }
}

/// A turn that was waited for. It is over once this is dropped.
pub(crate) struct Waited(Arc<ReadingTurn>);

impl Waited {
    /// The session, whose views are read in this turn.
    pub(crate) fn scope(&self, context: &SessionContext) -> SessionContext {
        let mut state = context.state();
        state.config_mut().set_extension(Arc::clone(&self.0));
        SessionContext::new_with_state(state)
    }
}

impl Drop for Waited {
    fn drop(&mut self) {
        let mut held = self.0.held();
        held.is_over = true;
        held.give_back_if_over();
    }
}

/// Rows of which the first are there.
///
/// # Errors
/// Where the query fails before it has any.
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
