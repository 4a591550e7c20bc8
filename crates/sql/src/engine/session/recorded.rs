//! [`AskedStatement`]: each statement is recorded once, however it ends. [`Answered`]: and once more where its answer breaks
//! off.
//!
//! # Guarantee
//! No change is kept without its record: a statement that changes something is recorded as answered right before that is
//! committed ([`Ahead`]), and where the record can't be written nothing is. Where committing fails after that, a second record
//! says that the statement broke off. What is taken away (REVOKE, DROP USER, a new password) counts in memory first; then
//! neither the change nor its record is on the disk until both can be, in that order.

use std::collections::HashSet;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use futures::{Stream, StreamExt};

use super::access;
use crate::SqlError;
use crate::access::Accounts;
use crate::engine::{Described, Session, Shared};
use crate::parser::{Access, ParseError, Parsed, StatementText};
use crate::policy::{LogEntry, LogOutcome, UsedView};

/// A statement that was asked. Dropped before it has ended, it is recorded as stopped, because it took too long or was
/// cancelled, or as broken off, where it was recorded as answered already.
pub(in crate::engine) struct AskedStatement {
    recorder: Arc<Recorder>,
}

/// What becomes of the record of a statement.
pub(in crate::engine) struct Recorder {
    shared: Arc<Shared>,
    /// Without what the statement says.
    entry: LogEntry,
    structure: String,
    /// Views that were read for a change.
    views: Mutex<Vec<UsedView>>,
    /// Held while the log is written to, and no other lock is taken meanwhile.
    stage: Mutex<Stage>,
}

enum Stage {
    /// There is no record yet.
    Asked,
    /// It is recorded as answered, and something it changes is being kept.
    Answered(LogEntry),
    /// Nobody waits for it any more.
    Over,
}

impl AskedStatement {
    /// A statement of a session, for what and whom it was asked.
    pub(in crate::engine) fn new(session: &Session, text: &StatementText, access: &Access) -> AskedStatement {
        let time = (session.shared.clock)();
        let entry = LogEntry::new(time, session.role.word(), "", access, LogOutcome::Stopped);
        let entry = entry.by(session.login.as_deref());
        let (shared, structure) = (Arc::clone(&session.shared), text.structure.clone());
        let (views, stage) = (Mutex::default(), Mutex::new(Stage::Asked));
        AskedStatement { recorder: Arc::new(Recorder { shared, entry, structure, views, stage }) }
    }

    pub(in crate::engine) fn recorder(&self) -> Arc<Recorder> {
        Arc::clone(&self.recorder)
    }

    /// Records how it ended, and what it read. A statement that was recorded before it changed something is recorded once
    /// more only where it failed after that.
    ///
    /// # Errors
    /// Where the record can't be kept.
    pub(in crate::engine) fn end(self, outcome: LogOutcome, views: Vec<UsedView>) -> Result<LogEntry, SqlError> {
        match self.recorder.take_stage() {
            Stage::Answered(entry) if outcome == LogOutcome::Answered => Ok(entry),
            Stage::Answered(entry) => {
                // The statement is told why it failed; the record follows once there is room.
                let _ = self.recorder.break_off(entry.clone());
                Ok(entry)
            }
            Stage::Asked | Stage::Over => {
                let entry = self.recorder.entry(outcome, views);
                self.recorder.shared.log().record(entry.clone()).map_err(SqlError::Log)?;
                Ok(entry)
            }
        }
    }

    /// Records nothing: it will be asked another time.
    fn put_off(self) {
        self.recorder.take_stage();
    }
}

impl Drop for AskedStatement {
    fn drop(&mut self) {
        // Nobody is left to be told where it can't be recorded.
        match self.recorder.take_stage() {
            Stage::Asked => {
                let entry = self.recorder.entry(LogOutcome::Stopped, Vec::new());
                let _ = self.recorder.shared.log().record(entry);
            }
            Stage::Answered(entry) => {
                let _ = self.recorder.break_off(entry);
            }
            Stage::Over => {}
        }
    }
}

impl Recorder {
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far it is, once it goes no further.
    fn take_stage(&self) -> Stage {
        std::mem::replace(&mut self.stage(), Stage::Over)
    }

    fn views(&self) -> MutexGuard<'_, Vec<UsedView>> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn break_off(&self, entry: LogEntry) -> io::Result<()> {
        let entry = LogEntry { time: (self.shared.clock)(), outcome: LogOutcome::BrokenOff, ..entry };
        self.shared.log().record_or_owe(entry)
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
        // Whoever read a view did so for what its policies know.
        let access =
            if is_answered && !views.is_empty() { entry.access.clone() } else { self.shared.known(&entry.access) };
        let time = (self.shared.clock)();
        LogEntry { time, outcome, access, ..entry }.saying(&statement).reading(views)
    }
}

/// The record of a statement that is about to change something. It comes first: a change that can't be recorded is not kept,
/// and one that nobody waits for any more, which is recorded as stopped, is not either.
pub(in crate::engine) struct Ahead(Option<(Arc<Recorder>, LogEntry)>);

impl Ahead {
    /// Of a change that no statement asked for.
    pub(in crate::engine) fn unasked() -> Ahead {
        Ahead(None)
    }

    /// Records the statement as answered, unless it is recorded already.
    ///
    /// # Errors
    /// Where the record can't be kept, or nobody waits for the statement any more: the change must not be kept then.
    pub(in crate::engine) fn record(&self) -> io::Result<()> {
        self.record_or(Unrecorded::Refused)
    }

    /// The same for a change that counts already, as what is taken away does: where its record can't be written, that is
    /// owed.
    ///
    /// # Errors
    /// Where the record can't be kept yet: the change must not be written before.
    pub(in crate::engine) fn record_or_owe(&self) -> io::Result<()> {
        self.record_or(Unrecorded::Owed)
    }

    fn record_or(&self, unrecorded: Unrecorded) -> io::Result<()> {
        let Some((recorder, entry)) = &self.0 else { return Ok(()) };
        let mut stage = recorder.stage();
        match (&*stage, unrecorded) {
            (Stage::Answered(_), _) => return Ok(()),
            (Stage::Over, Unrecorded::Refused) => return Err(io::ErrorKind::Interrupted.into()),
            (Stage::Over, Unrecorded::Owed) | (Stage::Asked, _) => {}
        }
        let entry = LogEntry { time: (recorder.shared.clock)(), ..entry.clone() };
        let mut log = recorder.shared.log();
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

/// What becomes of a change whose record can't be written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unrecorded {
    /// It is not kept.
    Refused,
    /// It counts, and its record is written before any other.
    Owed,
}

impl Session {
    /// The record of the statement that runs, for when it changes something. Made before the locks that a change holds, since
    /// it looks at users and views.
    pub(in crate::engine) fn ahead(&self) -> Ahead {
        let Some(recorder) = &self.recorder else { return Ahead::unasked() };
        let views = recorder.views().clone();
        let entry = recorder.entry(LogOutcome::Answered, views);
        Ahead(Some((Arc::clone(recorder), entry)))
    }
}

/// Notes what a statement reads that changes something.
pub(in crate::engine) fn reads_for_change(session: &Session, views: &[UsedView]) {
    if let Some(recorder) = &session.recorder {
        *recorder.views() = views.to_vec();
    }
}

/// Rows of an answer. Where they fail, or nobody waits for the next any more, they are recorded as broken off. Whoever has
/// read some and asks for no others, as of a cursor, breaks nothing off.
pub(in crate::engine) struct Answered {
    rows: SendableRecordBatchStream,
    shared: Arc<Shared>,
    entry: LogEntry,
    /// Whether somebody waits for rows.
    is_awaited: bool,
}

impl Answered {
    pub(in crate::engine) fn watch(
        session: &Session,
        rows: SendableRecordBatchStream,
        entry: LogEntry,
    ) -> SendableRecordBatchStream {
        Box::pin(Answered { rows, shared: Arc::clone(&session.shared), entry, is_awaited: false })
    }

    fn record(&mut self) -> io::Result<()> {
        self.is_awaited = false;
        let entry = LogEntry { time: (self.shared.clock)(), outcome: LogOutcome::BrokenOff, ..self.entry.clone() };
        self.shared.log().record(entry)
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
            Err(unwritten) => DataFusionError::External(Box::new(SqlError::Log(unwritten))),
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
            // Nobody is left to be told.
            let _ = self.record();
        }
    }
}

impl Session {
    /// [`Session::describe`], before a statement is run. One that will never run is recorded, with why; others are once they
    /// run.
    ///
    /// # Errors
    /// Where it is not allowed, or can't be planned.
    pub async fn prepare(&self, parsed: &Parsed) -> Result<Option<Described>, SqlError> {
        let granted = access::granted(self, &parsed.access).unwrap_or_else(|_| parsed.access.clone());
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

    /// Records a text that is no statement, and says what is wrong with it.
    pub fn unread(&self, text: &str, problem: ParseError) -> SqlError {
        let asked = AskedStatement::new(self, &StatementText::of_unread(text), &self.stated(&Access::default()));
        match asked.end(LogOutcome::Failed, Vec::new()) {
            Ok(_) => problem.into(),
            Err(unwritten) => unwritten,
        }
    }
}

impl LogOutcome {
    /// How a statement ended that failed so.
    pub(in crate::engine) fn of(error: &SqlError) -> LogOutcome {
        if error.is_refusal() { LogOutcome::Refused } else { LogOutcome::Failed }
    }
}

impl Shared {
    /// Names of tables, functions, users and views, and of views' columns, in small letters.
    fn names(&self) -> HashSet<String> {
        let state = self.owner.state();
        let catalogs = state.catalog_list();
        let catalogs = catalogs.catalog_names().into_iter().filter_map(|name| catalogs.catalog(&name));
        let schemas = catalogs.flat_map(|catalog| {
            catalog.schema_names().into_iter().filter_map(move |name| catalog.schema(&name)).collect::<Vec<_>>()
        });
        let mut names: HashSet<String> = schemas.flat_map(|schema| schema.table_names()).collect();
        names.extend(state.scalar_functions().keys().cloned());
        names.extend(state.aggregate_functions().keys().cloned());
        names.extend(state.window_functions().keys().cloned());
        names.extend(state.table_functions().keys().cloned());
        let users = self.accounts.get().map(Accounts::users).unwrap_or_default();
        names.extend(users.into_iter().map(|(user, _)| user));
        for view in self.views.read().unwrap_or_else(PoisonError::into_inner).values() {
            names.extend(view.definition.columns.iter().map(|column| column.name.clone()));
        }
        names.into_iter().map(|name| name.to_lowercase()).collect()
    }

    /// A purpose and a recipient as far as they are granted to anybody or choices were made for them, and `?` for others:
    /// anything can be claimed.
    fn known(&self, access: &Access) -> Access {
        if *access == Access::default() {
            return Access::default();
        }
        let (mut purposes, mut recipients) = (Vec::new(), Vec::new());
        if let Some(accounts) = self.accounts.get() {
            for pair in accounts.users().iter().flat_map(|(user, _)| accounts.pairs_ever(user)) {
                purposes.push(pair.purpose);
                recipients.push(pair.recipient);
            }
        }
        let views = self.views.read().unwrap_or_else(PoisonError::into_inner).clone();
        for policies in views.values().filter_map(|view| view.version()?.policies.clone()) {
            for pair in policies.pairs() {
                purposes.extend(pair.purpose.clone());
                recipients.extend(pair.recipient.clone());
            }
        }
        let known = |name: &Option<String>, known: &[String]| {
            let is_known = |name: &String| known.iter().any(|known| known.to_lowercase() == name.to_lowercase());
            name.clone().map(|name| if is_known(&name) { name } else { "?".to_owned() })
        };
        Access { purpose: known(&access.purpose, &purposes), recipient: known(&access.recipient, &recipients) }
    }
}
