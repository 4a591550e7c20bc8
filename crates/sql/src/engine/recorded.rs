//! [`Asked`]: each statement is recorded once, however it ends.

use std::sync::Arc;

use super::{Session, Shared};
use crate::SqlError;
use crate::parser::{Access, ParseProblem, StatementText};
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

    fn entry(&mut self, outcome: LogOutcome, views: Vec<UsedView>) -> LogEntry {
        let entry = self.entry.take().expect("a statement ends once");
        let is_answered = outcome == LogOutcome::Answered;
        let statement = match is_answered {
            true => std::mem::take(&mut self.structure),
            false => StatementText::without_quoted_names(&self.structure),
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

impl Session {
    /// Records a text that is no statement, and says what is wrong with it.
    pub fn unread(&self, text: &str, problem: ParseProblem) -> SqlError {
        let asked = Asked::new(self, &StatementText::of_unread(text), &self.stated(&Access::default()));
        match asked.end(LogOutcome::Failed, Vec::new()) {
            Ok(_) => problem.into(),
            Err(unwritten) => unwritten,
        }
    }
}

impl Shared {
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
        let views = self.views.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
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
