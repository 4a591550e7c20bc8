//! Stored tables in queries: what the embedded store keeps, as tables of DataFusion.
//!
//! The store itself is the crate `kohort-store`, which knows no query engine. A statement reads all its tables from one
//! state of the store: the session puts it beside the options of the query ([`Reading`]), and scans take it from there.
//! Within a transaction that state is the change under way, so that statements see what earlier ones did.

mod conditions;
mod numbered;
mod records;
mod scan;
mod table;

use std::sync::Arc;

use kohort_store::{Change, Snapshot, State};

pub use conditions::value_of;
pub use numbered::{numbered, numbers_and};
pub use records::StoreRecords;
pub use table::StoredTable;

/// The state of the store that a statement reads.
#[derive(Clone)]
pub enum Reading {
    /// As it was committed.
    Snapshot(Snapshot),
    /// As a transaction has changed it so far.
    Change(Arc<Change>),
}

impl Reading {
    /// What is read.
    pub fn state(&self) -> &State {
        match self {
            Reading::Snapshot(snapshot) => snapshot,
            Reading::Change(change) => change,
        }
    }
}
