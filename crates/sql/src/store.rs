//! Stored tables in queries: the tables of the embedded store as tables of DataFusion.
//!
//! The store itself is the crate `kohort-store`, which knows no query engine. A statement reads all its tables from one
//! state of the store. The session adds this state (`Reading`) to the options of the query, where scans find it. In a
//! transaction it is the change under way, so that statements see the changes of earlier ones.

mod conditions;
mod numbered;
mod records;
mod scan;
mod table;

use std::sync::Arc;

use kohort_store::{Change, Snapshot, State};

pub(crate) use conditions::value_of;
pub(crate) use numbered::{numbered, numbers_and};
pub use records::StoreRecords;
pub(crate) use table::StoredTable;

/// The state of the store that a statement reads.
#[derive(Clone)]
pub(crate) enum Reading {
    /// The committed state.
    Snapshot(Snapshot),
    /// The state inside a transaction.
    Change(Arc<Change>),
}

impl Reading {
    /// The state to read.
    pub(crate) fn state(&self) -> &State {
        match self {
            Reading::Snapshot(snapshot) => snapshot,
            Reading::Change(change) => change,
        }
    }
}
