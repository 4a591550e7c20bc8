//! Whether an engine can answer: what every statement needs is tried.

use super::access;
use crate::SqlError;
use crate::engine::Session;
use crate::engine::change::transactions::blocking;
use crate::parser::Access;
use crate::policy::{LogEntry, LogOutcome};

impl Session {
    /// Tries to read the store, where there is one, to write to its folder, and to write to the log, without which nothing
    /// is answered.
    ///
    /// # Errors
    /// What can't be done.
    pub async fn health(&self) -> Result<(), SqlError> {
        access::check_login(self)?;
        if let Some(data) = &self.shared.data {
            let store = data.store.clone();
            blocking(move || {
                store.read()?.tables()?;
                store.try_writing()
            })
            .await?;
        }
        let (time, statement) = ((self.shared.clock)(), "SHOW kohort.health");
        let entry = LogEntry::new(time, self.role.word(), statement, &Access::default(), LogOutcome::Answered);
        self.shared.log().record(entry.by(self.login.as_deref())).map_err(SqlError::Log)
    }
}
