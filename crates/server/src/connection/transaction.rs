//! Transactions, as drivers open and end them.
//!
//! An analyst changes nothing, so theirs are accepted and do nothing but what clients see of them: the status, and that
//! after an error nothing runs until the transaction ends. An owner's would have to be undone, which tables in memory
//! can't be: they are refused rather than promised.

use kohort_sql::Role;
use pgwire::messages::response::TransactionStatus;

use super::Connection;
use crate::failure::{Failure, Refusal};
use crate::request::Transaction;

impl Connection {
    /// Begins or ends a transaction; returns the tag it is acknowledged by.
    pub(super) fn transact(&mut self, transaction: Transaction) -> Result<&'static str, Failure> {
        if self.session.role() == Role::Owner && matches!(transaction, Transaction::Begin(_)) {
            let refusal = Refusal::new("0A000", "there are no transactions here: each statement stands by itself");
            return Err(refusal.hint("turn autocommit on in your client").into());
        }
        let is_open = self.status != TransactionStatus::Idle;
        let has_failed = self.status == TransactionStatus::Error;
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
            Transaction::Savepoint => Ok("SAVEPOINT"),
            Transaction::Release => Ok("RELEASE"),
            Transaction::RollbackToSavepoint => {
                self.status = TransactionStatus::Transaction;
                Ok("ROLLBACK")
            }
        }
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
