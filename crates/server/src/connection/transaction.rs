//! Transactions of clients.
//!
//! An analyst changes nothing, so an analyst's transactions have only the effects that clients see: the status,
//! settings that end with the transaction, and that after an error nothing runs until the transaction ends. An owner's
//! transactions are those of the data folder. Without a data folder they are refused, because changes of tables in
//! memory can't be undone.
//!
//! # Guarantee
//! A COMMIT or ROLLBACK ends the transaction, even if it fails. A COMMIT that has begun is not cancelled, because it
//! would take effect although the client was told otherwise.

use datafusion::config::ConfigOptions;
use datafusion::sql::parser::Statement as DFStatement;
use datafusion::sql::sqlparser::ast::{Statement as SqlStatement, TransactionAccessMode, TransactionMode};
use kohort_sql::parser::{Parsed, Statement, parse, spelled};
use kohort_sql::{Role, SqlError};
use pgwire::messages::response::TransactionStatus;

use super::Connection;
use crate::error::AnswerError;
use crate::request::{Request, Transaction};
use crate::settings::{NO_TRANSACTION, SettingScope};

/// The options of views to restore after a transaction.
pub(super) struct OptionsBefore {
    /// All options before the transaction, restored by a rollback.
    all: ConfigOptions,
    /// The options set for the transaction only, and their earlier values.
    local: Vec<(String, String)>,
}

impl Connection {
    /// Begins or ends a transaction, and returns the command tag.
    pub(super) async fn transact(&mut self, transaction: Transaction) -> Result<&'static str, AnswerError> {
        let step = match &transaction {
            Transaction::Begin { tag, modes } => {
                self.step("BEGIN").await?;
                self.status = TransactionStatus::Transaction;
                self.settings.begin();
                self.options_before.get_or_insert(OptionsBefore { all: self.options(), local: Vec::new() });
                self.set_modes(modes, SettingScope::Local)?;
                return Ok(*tag);
            }
            Transaction::Commit => return self.end(true).await,
            Transaction::Rollback => return self.end(false).await,
            // The name is as written, including quotes.
            Transaction::Savepoint(name) => format!("SAVEPOINT {name}"),
            Transaction::Release(name) => format!("RELEASE SAVEPOINT {name}"),
            Transaction::RollbackToSavepoint(name) => format!("ROLLBACK TO SAVEPOINT {name}"),
        };
        if self.status == TransactionStatus::Idle {
            return Err(AnswerError::statement("25P01", "savepoints can only be used in a transaction"));
        }
        self.step(&step).await?;
        Ok(match transaction {
            Transaction::Savepoint(_) => "SAVEPOINT",
            Transaction::Release(_) => "RELEASE",
            _ => {
                self.status = TransactionStatus::Transaction;
                "ROLLBACK"
            }
        })
    }

    /// Ends a transaction. COMMIT of a failed one rolls back, as in PostgreSQL.
    async fn end(&mut self, is_commit: bool) -> Result<&'static str, AnswerError> {
        let keeps = is_commit && self.status != TransactionStatus::Error;
        // Ending a transaction that was never begun is only a warning.
        let ended = match self.status {
            TransactionStatus::Idle => Ok(()),
            _ if keeps => {
                self.committing.send_replace(true);
                let ended = self.step("COMMIT").await;
                self.committing.send_replace(false);
                ended
            }
            // A transaction that does not exist any more was already rolled back.
            _ => self.step("ROLLBACK").await.or_else(|error| match error {
                SqlError::NoTransaction => Ok(()),
                error => Err(error),
            }),
        };
        self.session.give_up_transaction();
        self.status = TransactionStatus::Idle;
        self.portals.clear();
        self.end_settings(keeps && ended.is_ok())?;
        ended?;
        Ok(if keeps { "COMMIT" } else { "ROLLBACK" })
    }

    /// Runs a step of an owner's transaction. One of an analyst's transaction is only recorded.
    async fn step(&mut self, step: &str) -> Result<(), SqlError> {
        match self.session.role() {
            Role::Owner => {
                for parsed in parse(step)? {
                    self.session.run(parsed).await?;
                }
                Ok(())
            }
            Role::Analyst => self.session.note(match step {
                "BEGIN" => "BEGIN",
                "COMMIT" => "COMMIT",
                "ROLLBACK" => "ROLLBACK",
                _ => "SAVEPOINT",
            }),
        }
    }

    /// Sets the modes of the current transaction or of all later ones.
    pub(super) fn set_modes(&mut self, modes: &[TransactionMode], scope: SettingScope) -> Result<(), AnswerError> {
        let (read_only, isolation) = match scope {
            SettingScope::Local => ("transaction_read_only", "transaction_isolation"),
            SettingScope::Session => ("default_transaction_read_only", "default_transaction_isolation"),
        };
        for mode in modes {
            match mode {
                TransactionMode::AccessMode(TransactionAccessMode::ReadOnly) => {
                    self.set(read_only, Some("on"), SettingScope::Session)?;
                }
                TransactionMode::AccessMode(TransactionAccessMode::ReadWrite) => {
                    self.set(read_only, Some("off"), SettingScope::Session)?;
                }
                TransactionMode::IsolationLevel(level) => {
                    self.set(isolation, Some(&level.to_string()), SettingScope::Session)?;
                }
            }
        }
        Ok(())
    }

    /// Restores the settings and options that were set for the transaction only, and after a rollback all of them.
    fn end_settings(&mut self, is_kept: bool) -> Result<(), AnswerError> {
        if self.settings.end(is_kept) {
            self.report(None)?;
        }
        let Some(OptionsBefore { all, local }) = self.options_before.take() else { return Ok(()) };
        match is_kept {
            true => local.iter().rev().for_each(|(name, value)| self.put_option(name, value)),
            false => self.put_options(all),
        }
        Ok(())
    }

    /// Sets an option of views for the current transaction.
    pub(super) async fn set_local_option(&mut self, name: &str, parsed: Parsed) -> Result<(), AnswerError> {
        let before = self.option(name);
        let Some(options) = &mut self.options_before else { return self.say(NO_TRANSACTION) };
        if let Some(before) = before {
            options.local.push((name.to_lowercase(), before));
        }
        self.command(parsed).await
    }

    /// Refuses statements after an error in a transaction, except those that end it.
    pub(super) fn check_transaction(&self, ends_it: bool) -> Result<(), AnswerError> {
        if self.status == TransactionStatus::Error && !ends_it {
            let message = "current transaction is aborted, commands ignored until end of transaction block";
            return Err(AnswerError::statement("25P02", message));
        }
        Ok(())
    }

    /// Refuses changes in a read-only transaction.
    pub(super) fn check_read_only(&self, request: &Request) -> Result<(), AnswerError> {
        let changes = match request {
            Request::Change { .. } => true,
            Request::Command { tag, .. } => !["SET", "RESET"].contains(tag),
            Request::Rows(parsed) => match executed(parsed) {
                Some(name) => self.prepared.get(&name).is_none_or(|prepared| prepared.changes),
                None => explains_change(parsed),
            },
            _ => false,
        };
        if changes && self.settings.is_read_only() {
            return Err(AnswerError::statement("25006", "a read-only transaction can't change anything"));
        }
        Ok(())
    }
}

/// The name of the prepared statement in an EXECUTE.
fn executed(parsed: &Parsed) -> Option<String> {
    let Some(SqlStatement::Execute { name: Some(name), .. }) = parsed.sql() else { return None };
    name.0.last()?.as_ident().map(spelled)
}

/// Whether this is an EXPLAIN ANALYZE of a change, which runs the change.
fn explains_change(parsed: &Parsed) -> bool {
    let Statement::Sql(statement) = &parsed.statement else { return false };
    let DFStatement::Explain(explained) = statement.as_ref() else { return false };
    explained.options.analyze && !is_query(&explained.statement)
}

/// Whether a statement only reads rows.
fn is_query(statement: &DFStatement) -> bool {
    matches!(statement, DFStatement::Statement(statement) if matches!(statement.as_ref(), SqlStatement::Query(_)))
}
