//! Transactions, as drivers open and end them.
//!
//! An analyst changes nothing, so theirs are accepted and do nothing but what clients see of them: the status, and that
//! after an error nothing runs until the transaction ends. An owner's are the data folder's; without one they are
//! refused, since tables in memory can't be undone.

use kohort_sql::parser::parse;
use kohort_sql::{Role, SqlError};
use pgwire::messages::response::TransactionStatus;

use super::Connection;
use crate::failure::Failure;
use crate::request::Transaction;

impl Connection {
    /// Begins or ends a transaction; returns the tag it is acknowledged by.
    pub(super) async fn transact(&mut self, transaction: Transaction) -> Result<&'static str, Failure> {
        let has_failed = self.status == TransactionStatus::Error;
        if self.session.role() == Role::Owner {
            self.transact_in_engine(&transaction, has_failed).await?;
        }
        let is_open = self.status != TransactionStatus::Idle;
        match transaction {
            Transaction::Begin(tag) => {
                self.status = TransactionStatus::Transaction;
                Ok(tag)
            }
            Transaction::Commit | Transaction::Rollback => {
                self.status = TransactionStatus::Idle;
                self.portals.clear();
                let is_commit = transaction == Transaction::Commit && !has_failed;
                Ok(if is_commit { "COMMIT" } else { "ROLLBACK" })
            }
            _ if !is_open => Err(Failure::statement("25P01", "savepoints belong to a transaction")),
            Transaction::Savepoint(_) => Ok("SAVEPOINT"),
            Transaction::Release(_) => Ok("RELEASE"),
            Transaction::RollbackToSavepoint(_) => {
                self.status = TransactionStatus::Transaction;
                Ok("ROLLBACK")
            }
        }
    }

    /// What a failed transaction would keep is given up, as in PostgreSQL.
    async fn transact_in_engine(&mut self, transaction: &Transaction, has_failed: bool) -> Result<(), Failure> {
        let step = match transaction {
            Transaction::Begin(_) => "BEGIN".to_owned(),
            // Clients end what they did not begin, and are only told so.
            Transaction::Commit | Transaction::Rollback if self.status == TransactionStatus::Idle => return Ok(()),
            Transaction::Commit if !has_failed => "COMMIT".to_owned(),
            Transaction::Commit | Transaction::Rollback => "ROLLBACK".to_owned(),
            // Names are as they were written, quotes included.
            Transaction::Savepoint(name) => format!("SAVEPOINT {name}"),
            Transaction::Release(name) => format!("RELEASE SAVEPOINT {name}"),
            Transaction::RollbackToSavepoint(name) => format!("ROLLBACK TO SAVEPOINT {name}"),
        };
        for parsed in parse(&step).map_err(SqlError::from)? {
            self.session.run(parsed).await?;
        }
        Ok(())
    }

    /// Refuses what can't run after an error in a transaction.
    pub(super) fn check_transaction(&self, ends_it: bool) -> Result<(), Failure> {
        if self.status == TransactionStatus::Error && !ends_it {
            let message = "current transaction is aborted, commands ignored until end of transaction block";
            return Err(Failure::statement("25P02", message));
        }
        Ok(())
    }
}
