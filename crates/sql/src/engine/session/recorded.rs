//! [`AskedStatement`] records each statement once, however it ends. [`Answered`] records it once more if its answer breaks off.
//!
//! # Guarantee
//! There is no change without a record. A statement that changes something is recorded as answered right before the commit
//! ([`Ahead`]). If the record can't be written, nothing is committed. If the commit fails after that, a second record says that
//! the statement broke off. A right that is taken away (REVOKE, DROP USER, a new password) is gone in memory first. If the record
//! can't be written then, it is written before any other, and the change after it.

use std::collections::HashSet;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use futures::{Stream, StreamExt};
use parking_lot::Mutex;

use super::access;
use crate::SqlError;
use crate::access::Accounts;
use crate::engine::context::table_names;
use crate::engine::{Described, Session, Shared};
use crate::parser::{ParseError, Parsed, StatementText};
use crate::policy::{LogEntry, LogOutcome, Pair, UsedView, is_same};

/// A statement that is running. If it is dropped before it has ended, because it took too long or was cancelled, it is recorded
/// as stopped; or as broken off, if it was already recorded as answered.
pub(crate) struct AskedStatement {
    recorder: Arc<Recorder>,
}

/// The record of a statement, until it is written.
pub(crate) struct Recorder {
    shared: Arc<Shared>,
    /// The record without the text of the statement.
    entry: LogEntry,
    structure: String,
    /// Views that the statement reads in order to change something.
    views: Mutex<Vec<UsedView>>,
    /// Locked while the log is written. Whoever holds it takes no lock but the log's.
    stage: Mutex<Stage>,
}

enum Stage {
    /// There is no record yet.
    Asked,
    /// The statement is recorded as answered, and its change is being committed.
    Answered(LogEntry),
    /// The statement has ended.
    Over,
}

impl AskedStatement {
    /// A statement of a session, with its purpose and recipient.
    pub(crate) fn new(session: &Session, text: &StatementText, pair: &Pair) -> AskedStatement {
        let time = (session.shared.clock)();
        let entry = LogEntry::new(time, session.role, session.login.as_deref(), pair, LogOutcome::Stopped);
        let (shared, structure) = (Arc::clone(&session.shared), text.structure.clone());
        let (views, stage) = (Mutex::default(), Mutex::new(Stage::Asked));
        AskedStatement { recorder: Arc::new(Recorder { shared, entry, structure, views, stage }) }
    }

    pub(crate) fn recorder(&self) -> Arc<Recorder> {
        Arc::clone(&self.recorder)
    }

    /// Records how the statement ended and which views it read. A statement that was recorded before its commit is recorded
    /// once more only if it failed after that.
    pub(crate) fn end(self, outcome: LogOutcome, views: Vec<UsedView>) -> Result<LogEntry, SqlError> {
        match self.recorder.take_stage() {
            Stage::Answered(entry) if outcome == LogOutcome::Answered => Ok(entry),
            Stage::Answered(entry) => {
                // The client gets the error of the statement. The record is written once the disk has room.
                let _ = self.recorder.break_off(entry.clone());
                Ok(entry)
            }
            Stage::Asked | Stage::Over => {
                let entry = self.recorder.entry(outcome, views);
                self.recorder.shared.log.lock().record(entry.clone()).map_err(SqlError::Log)?;
                Ok(entry)
            }
        }
    }

    /// Records nothing, because the statement will run later.
    fn put_off(self) {
        self.recorder.take_stage();
    }
}

impl Drop for AskedStatement {
    fn drop(&mut self) {
        // Nobody waits any more, so nobody can be told if the record can't be written.
        match self.recorder.take_stage() {
            Stage::Asked => {
                let entry = self.recorder.entry(LogOutcome::Stopped, Vec::new());
                let _ = self.recorder.shared.log.lock().record(entry);
            }
            Stage::Answered(entry) => {
                let _ = self.recorder.break_off(entry);
            }
            Stage::Over => {}
        }
    }
}

impl Recorder {
    /// Ends the statement, and returns its last stage.
    fn take_stage(&self) -> Stage {
        std::mem::replace(&mut self.stage.lock(), Stage::Over)
    }

    fn break_off(&self, entry: LogEntry) -> io::Result<()> {
        let entry = LogEntry { time: (self.shared.clock)(), outcome: LogOutcome::BrokenOff, ..entry };
        self.shared.log.lock().record_or_owe(entry)
    }

    fn entry(&self, outcome: LogOutcome, views: Vec<UsedView>) -> LogEntry {
        let entry = self.entry.clone();
        let is_answered = outcome == LogOutcome::Answered;
        let statement = match is_answered {
            true => self.structure.clone(),
            false => {
                let names = self.shared.names();
                StatementText::with_known_names(&self.structure, |name| names.contains(name))
            }
        };
        // If a view was read, its policies know this purpose and recipient.
        let pair = if is_answered && !views.is_empty() { entry.pair.clone() } else { self.shared.known(&entry.pair) };
        let time = (self.shared.clock)();
        LogEntry { time, outcome, pair, views, ..entry }.saying(&statement)
    }
}

/// The record of a statement that is about to change something. It is written before the commit: a change that can't be recorded
/// is not committed. Nor is the change of a statement that nobody waits for any more, which is recorded as stopped.
pub(crate) struct Ahead(Option<(Arc<Recorder>, LogEntry)>);

impl Ahead {
    /// For a change that no statement asked for.
    pub(crate) fn unasked() -> Ahead {
        Ahead(None)
    }

    /// Records the statement as answered, unless it is recorded already.
    ///
    /// # Errors
    /// The record can't be written, or nobody waits for the statement any more. The change must not be committed then.
    pub(crate) fn record(&self) -> io::Result<()> {
        self.record_or(Unrecorded::Refused)
    }

    /// Does the same for a right that is already taken away in memory. If its record can't be written now, the log owes it
    /// and writes it before any other.
    ///
    /// # Errors
    /// The record is not written yet. The change must not be written before it.
    pub(crate) fn record_or_owe(&self) -> io::Result<()> {
        self.record_or(Unrecorded::Owed)
    }

    fn record_or(&self, unrecorded: Unrecorded) -> io::Result<()> {
        let Some((recorder, entry)) = &self.0 else { return Ok(()) };
        let mut stage = recorder.stage.lock();
        match (&*stage, unrecorded) {
            (Stage::Answered(_), _) => return Ok(()),
            (Stage::Over, Unrecorded::Refused) => return Err(io::ErrorKind::Interrupted.into()),
            (Stage::Over, Unrecorded::Owed) | (Stage::Asked, _) => {}
        }
        let entry = LogEntry { time: (recorder.shared.clock)(), ..entry.clone() };
        let mut log = recorder.shared.log.lock();
        let written = match unrecorded {
            Unrecorded::Refused => log.record_ahead(entry.clone()),
            Unrecorded::Owed => log.record_or_owe(entry.clone()),
        };
        if matches!(*stage, Stage::Asked) && (written.is_ok() || unrecorded == Unrecorded::Owed) {
            *stage = Stage::Answered(entry);
        }
        written
    }
}

/// What happens to a change whose record can't be written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unrecorded {
    /// The change is not made.
    Refused,
    /// The change is made, and the log writes its record before any other.
    Owed,
}

impl Session {
    /// The record of the current statement, to be written before its commit. Call this before taking the locks of a change,
    /// because it locks users and views.
    pub(in crate::engine) fn ahead(&self) -> Ahead {
        let Some(recorder) = &self.recorder else { return Ahead::unasked() };
        let views = recorder.views.lock().clone();
        let entry = recorder.entry(LogOutcome::Answered, views);
        Ahead(Some((Arc::clone(recorder), entry)))
    }
}

/// Notes the views that a statement reads in order to change something.
pub(crate) fn reads_for_change(session: &Session, views: &[UsedView]) {
    if let Some(recorder) = &session.recorder {
        *recorder.views.lock() = views.to_vec();
    }
}

/// The rows of an answer. If they fail, or are dropped while somebody waits for the next ones, the statement is recorded as
/// broken off. A client that does not ask for more rows of a cursor breaks nothing off.
pub(crate) struct Answered {
    rows: SendableRecordBatchStream,
    shared: Arc<Shared>,
    entry: LogEntry,
    /// Whether somebody waits for the next rows.
    is_awaited: bool,
}

impl Answered {
    pub(crate) fn watch(
        session: &Session,
        rows: SendableRecordBatchStream,
        entry: LogEntry,
    ) -> SendableRecordBatchStream {
        Box::pin(Answered { rows, shared: Arc::clone(&session.shared), entry, is_awaited: false })
    }

    fn record(&mut self) -> io::Result<()> {
        self.is_awaited = false;
        let entry = LogEntry { time: (self.shared.clock)(), outcome: LogOutcome::BrokenOff, ..self.entry.clone() };
        self.shared.log.lock().record(entry)
    }
}

impl Stream for Answered {
    type Item = Result<RecordBatch, DataFusionError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.is_awaited = true;
        let next = ready!(self.rows.poll_next_unpin(context));
        self.is_awaited = false;
        let Some(Err(error)) = next else { return Poll::Ready(next) };
        let error = match self.record() {
            Ok(()) => error,
            Err(unwritten) => SqlError::Log(unwritten).into(),
        };
        Poll::Ready(Some(Err(error)))
    }
}

impl RecordBatchStream for Answered {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }
}

impl Drop for Answered {
    fn drop(&mut self) {
        if self.is_awaited {
            // Nobody waits any more, so nobody can be told if the record can't be written.
            let _ = self.record();
        }
    }
}

impl Session {
    /// Does what [`Session::describe`] does, for a statement that is to run later. A statement that is refused here never
    /// runs, so it is recorded now. Others are recorded when they run.
    ///
    /// # Errors
    /// The statement is not allowed, or can't be planned.
    pub async fn prepare(&self, parsed: &Parsed) -> Result<Option<Described>, SqlError> {
        let granted = access::granted(self, &parsed.pair).unwrap_or_else(|_| parsed.pair.clone());
        let asked = AskedStatement::new(self, &parsed.text, &self.stated(&granted));
        match self.describe(parsed).await {
            Ok(described) => {
                asked.put_off();
                Ok(described)
            }
            Err(error) => {
                asked.end(LogOutcome::of(&error), Vec::new())?;
                Err(access::told(self, error))
            }
        }
    }

    /// Records something that the client's connection does by itself, such as a FETCH, before it is answered.
    ///
    /// # Errors
    /// The log can't be written, so nothing may be answered.
    pub fn note(&self, done: &'static str) -> Result<(), SqlError> {
        let (time, pair) = ((self.shared.clock)(), self.shared.known(&self.stated(&Pair::default())));
        let entry = LogEntry::new(time, self.role, self.login.as_deref(), &pair, LogOutcome::Answered);
        self.shared.log.lock().record(entry.saying(done)).map_err(SqlError::Log)
    }

    /// Records a text that can't be parsed, and returns the error.
    pub fn unread(&self, text: &str, problem: ParseError) -> SqlError {
        let asked = AskedStatement::new(self, &StatementText::of_unread(text), &self.stated(&Pair::default()));
        match asked.end(LogOutcome::Failed, Vec::new()) {
            Ok(_) => problem.into(),
            Err(unwritten) => unwritten,
        }
    }
}

impl LogOutcome {
    /// The outcome of a statement that failed with this error.
    pub(crate) fn of(error: &SqlError) -> LogOutcome {
        if error.is_refusal() { LogOutcome::Refused } else { LogOutcome::Failed }
    }
}

impl Shared {
    /// The names of tables, functions, users, views and columns of views, in lower case.
    fn names(&self) -> HashSet<String> {
        let state = self.owner.state();
        let mut names = table_names(&self.owner);
        names.extend(state.scalar_functions().keys().cloned());
        names.extend(state.aggregate_functions().keys().cloned());
        names.extend(state.window_functions().keys().cloned());
        names.extend(state.table_functions().keys().cloned());
        let users = self.accounts.get().map(Accounts::users).unwrap_or_default();
        names.extend(users.into_iter().map(|(user, _)| user));
        for view in self.views.read().values() {
            names.extend(view.definition.columns.iter().map(|column| column.name.clone()));
        }
        names.into_iter().map(|name| name.to_lowercase()).collect()
    }

    /// The purpose and recipient as the log shows them: `?` for one that is granted to nobody and that no choice names,
    /// because a statement can claim anything, even a value.
    fn known(&self, pair: &Pair) -> Pair {
        if *pair == Pair::default() {
            return Pair::default();
        }
        let mut known: Vec<Pair> = Vec::new();
        if let Some(accounts) = self.accounts.get() {
            known.extend(accounts.users().iter().flat_map(|(user, _)| accounts.pairs_ever(user)));
        }
        let views = self.views.read().clone();
        for policies in views.values().filter_map(|view| view.version()?.policies.clone()) {
            known.extend_from_slice(policies.pairs());
        }
        let shown = |of: fn(&Pair) -> &Option<String>| {
            let is_known =
                |name: &str| known.iter().filter_map(|pair| of(pair).as_deref()).any(|own| is_same(own, name));
            of(pair).clone().map(|name| if is_known(&name) { name } else { "?".to_owned() })
        };
        Pair { purpose: shown(|pair| &pair.purpose), recipient: shown(|pair| &pair.recipient) }
    }
}
