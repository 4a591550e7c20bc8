//! The embedded store: tables that change, and the texts that define what is made of them, in one SQLite file.
//!
//! A [`Store`] is a folder that one process holds at a time. [`Store::read`] gives a [`Snapshot`], one consistent state;
//! [`Store::write`] gives the [`Change`], of which there is one at a time. Both read alike, through [`State`]. Rows come
//! and go as Arrow batches; numbers of rows are never given twice, so whatever refers to a row by its number can't come to
//! mean another.
//!
//! # Guarantee
//!
//! - A change is seen whole or not at all, by every reader and after every crash. Once [`Change::commit`] returns, the
//!   change survives the end of the process and of the power: the log is flushed to the disk before (WAL with
//!   `synchronous=FULL`), as far as the disk keeps what it says it has kept.
//! - What a name of a user holds never becomes part of an SQL text: tables, columns and indexes are named by number in
//!   the file, and values are bound. So any name is fine, and none can reach the store's own tables.
//! - No error holds a cell. Cells of deleted rows are overwritten in the file (`secure_delete`); copies in the log last
//!   until it is reused.
//!
//! The crate knows nothing of anonymization, of SQL as users write it, or of who may see what.

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
