//! The embedded store: tables that change, and text records such as definitions of views, in one SQLite file.
//!
//! A [`Store`] is a folder that one process holds at a time. [`Store::read`] returns a [`Snapshot`], one consistent
//! state. [`Store::write`] begins a [`Change`], of which there is one at a time. Both are read in the same way, through
//! [`State`]. Rows come and go as Arrow batches. Every row has a number, and a number is never used again after its row
//! was deleted, so a stored number can't come to mean another row.
//!
//! # Guarantee
//!
//! - A change is seen whole or not at all, by every reader and after every crash. Once [`Change::commit`] returns, the
//!   change survives a killed process and a power cut, because the log is flushed to the disk before (WAL with
//!   `synchronous=FULL`). This assumes that the disk keeps data it reported as flushed.
//! - Names that users choose never become part of an SQL text: tables, columns and indexes are named by number in the
//!   file, and values are bound. So any name is allowed, and no name can reach the store's own tables.
//! - No error contains a cell. Cells of deleted rows are overwritten in the file (`secure_delete`). Copies of them stay
//!   in the log until SQLite reuses it.
//!
//! The crate knows nothing about anonymization, users' SQL, or access rights.

mod backup;
mod catalog;
mod change;
mod check;
mod encoding;
mod error;
mod folder;
mod format;
#[cfg(any(fuzzing, test))]
pub mod fuzzed;
mod log;
mod scan;
mod session;
mod state;
mod store;
mod table;

pub use backup::backup_folder;
pub use change::{Change, Savepoint};
pub use check::{check_folder, record_of};
pub use error::StoreError;
pub use scan::{Comparison, Condition, Rows, ScanRequest, Value};
pub use state::{Snapshot, State};
pub use store::Store;
pub use table::{ColumnDescription, IndexDescription, ROW_NUMBER, TableDescription, TableKind, Uniqueness};
