//! [`Asked`]: each statement is recorded once, however it ends. [`Answered`]: and once more where its answer breaks off.

use std::collections::HashSet;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, ready};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use futures::{Stream, StreamExt};

use super::{Described, Session, Shared};
use crate::SqlError;
use crate::access::Accounts;
use crate::parser::{Access, ParseProblem, Parsed, StatementText};
use crate::policy::{LogEntry, LogOutcome, UsedView};

/// A statement that was asked. Dropped before it has ended, it is recorded as stopped: too late, or cancelled.
pub(super) struct Asked {
    shared: Arc<Shared>,
    structure: String,
    /// `None` once it is recorded.
    entry: Option<LogEntry>,
}

impl Asked {
    /// A statement of a session, for what and whom it was asked.
    pub(super) fn new(session: &Session, text: &StatementText, access: &Access) -> Asked {
        let time = (session.shared.clock)();
        let entry = LogEntry::new(time, session.role.word(), "", access, LogOutcome::Stopped);
        let entry = Some(entry.by(session.login.as_deref()));
        Asked { shared: Arc::clone(&session.shared), structure: text.structure.clone(), entry }
    }

    /// Records how it ended, and what it read.
    ///
    /// # Errors
    /// Where the record can't be kept.
    pub(super) fn end(mut self, outcome: LogOutcome, views: Vec<UsedView>) -> Result<LogEntry, SqlError> {
        let entry = self.entry(outcome, views);
        self.shared.log().record(entry.clone()).map_err(SqlError::Log)?;
        Ok(entry)
    }

    /// Records nothing: it will be asked another time.
    fn put_off(mut self) {
        self.entry = None;
    }

    fn entry(&mut self, outcome: LogOutcome, views: Vec<UsedView>) -> LogEntry {
        let entry = self.entry.take().expect("a statement ends once");
        let is_answered = outcome == LogOutcome::Answered;
        let statement = match is_answered {
            true => std::mem::take(&mut self.structure),
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

impl Drop for Asked {
    fn drop(&mut self) {
        if self.entry.is_some() {
            let entry = self.entry(LogOutcome::Stopped, Vec::new());
            // Nobody is left to be told.
            let _ = self.shared.log().record(entry);
        }
    }
}

/// Rows of an answer. Where they fail, or nobody waits for the next any more, they are recorded as broken off. Whoever has
/// read some and asks for no others, as of a cursor, breaks nothing off.
pub(super) struct Answered {
    rows: SendableRecordBatchStream,
    shared: Arc<Shared>,
    entry: LogEntry,
    /// Whether somebody waits for rows.
    is_awaited: bool,
}

impl Answered {
    pub(super) fn watch(
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
        let granted = self.granted(&parsed.access).unwrap_or_else(|_| parsed.access.clone());
        let asked = Asked::new(self, &parsed.text, &self.stated(&granted));
        match self.describe(parsed).await {
            Ok(described) => {
                asked.put_off();
                Ok(described)
            }
            Err(error) => {
                asked.end(LogOutcome::of(&error), Vec::new())?;
                Err(self.told(error))
            }
        }
    }

    /// Records a text that is no statement, and says what is wrong with it.
    pub fn unread(&self, text: &str, problem: ParseProblem) -> SqlError {
        let asked = Asked::new(self, &StatementText::of_unread(text), &self.stated(&Access::default()));
        match asked.end(LogOutcome::Failed, Vec::new()) {
            Ok(_) => problem.into(),
            Err(unwritten) => unwritten,
        }
    }
}

impl LogOutcome {
    /// How a statement ended that failed so.
    pub(super) fn of(error: &SqlError) -> LogOutcome {
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
