//! [`StoreError`]: what can go wrong in the store, with hints.
//!
//! Messages contain names of tables and columns, and row numbers. They never contain a cell, and never a message of
//! SQLite, because we can't know what it contains.

use std::path::{Path, PathBuf};

use arrow_schema::DataType;
use rusqlite::ErrorCode;

/// A failure of the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the variants and fields are")]
pub enum StoreError {
    /// Another process (or another [`Store`](crate::Store) of this one) holds the folder.
    #[error("the data folder '{}' is in use by {holder}", folder.display())]
    Locked {
        folder: PathBuf,
        /// The holder, if known: `process 123` or `another process`.
        holder: String,
    },
    #[error("another change of the data is under way, and did not end within {waited_ms} ms")]
    Busy { waited_ms: u128 },
    #[error("the data folder '{}' can't be written", folder.display())]
    ReadOnly { folder: PathBuf },
    /// There is no room left on the disk. Nothing of the change remains.
    #[error("the disk is full")]
    Full,
    #[error("{} is damaged: {what}", named(file.as_deref()))]
    Corrupt {
        /// The file. Errors that leave the crate always have it.
        file: Option<PathBuf>,
        what: String,
    },
    #[error("there is no store in '{}'", path.display())]
    Absent { path: PathBuf },
    #[error("'{}' can't be read", file.display())]
    Unreadable { file: PathBuf },
    #[error("'{}' is not a store of kohort", file.display())]
    Foreign { file: PathBuf },
    #[error("'{}' is a file, not a data folder", path.display())]
    NoFolder { path: PathBuf },
    #[error("the store has format {found}; this kohort reads formats up to {known}")]
    NewerFormat { found: i64, known: i64 },
    #[error("'{}' exists already", target.display())]
    BackupExists { target: PathBuf },
    #[error("there is no table '{table}'")]
    UnknownTable { table: String },
    #[error("table '{table}' has no column '{column}'")]
    UnknownColumn { table: String, column: String },
    #[error("table '{table}' has no row {row}")]
    UnknownRow { table: String, row: i64 },
    #[error("table '{table}' exists already")]
    TableExists { table: String },
    #[error("can't create table '{table}': {why}")]
    BadDescription { table: String, why: String },
    #[error("column '{column}' has the type {data_type}, which the store does not support")]
    UnsupportedType { column: String, data_type: DataType },
    /// The columns of a batch are not the columns of the table.
    #[error("the rows for table '{table}' do not have its columns: {why}")]
    OtherColumns { table: String, why: String },
    #[error("column '{column}' of type {data_type} can't be compared with a value of another type")]
    OtherType { column: String, data_type: DataType },
    #[error("a scan of table '{table}' takes at most {most} {what}")]
    TooManyConditions {
        table: String,
        /// What there is too much of: conditions, or values in them.
        what: &'static str,
        most: usize,
    },
    #[error("{}the value of column '{column}' does not fit its type {data_type}", at(*row))]
    DoesNotFit {
        column: String,
        data_type: DataType,
        /// The row's number in its batch, from 1; `None` for rows that are updated.
        row: Option<u64>,
    },
    #[error("{}column '{column}' must have a value", at(*row))]
    Missing {
        column: String,
        /// The row's number in its batch, from 1; `None` for rows that are updated.
        row: Option<u64>,
    },
    #[error("{}table '{table}' already has a row with the same {}", at(*row), columns.join(", "))]
    Duplicate {
        table: String,
        columns: Vec<String>,
        /// The row's number in its batch, from 1; `None` for rows that are updated.
        row: Option<u64>,
    },
    #[error("table '{table}' has rows with the same {}", columns.join(", "))]
    NotUnique { table: String, columns: Vec<String> },
    /// A scan was continued after the same change wrote to the table.
    #[error("table '{table}' was changed while it was read")]
    ChangedUnderScan { table: String },
    /// The transaction has ended, by a commit, a rollback, or an earlier failure.
    #[error("the transaction has ended")]
    TransactionOver,
    #[error("{doing}: {source}")]
    Io { doing: String, source: std::io::Error },
    /// Any other failure of SQLite.
    #[error("SQLite failed with code {code}")]
    Sqlite { code: i32 },
}

impl StoreError {
    /// How to solve the problem, if there is a way.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Locked { .. } => {
                Some("only one process can open a data folder: stop the other one, or connect to it")
            }
            Self::Busy { .. } => Some("try again after the other change has ended"),
            Self::ReadOnly { .. } => Some("make the folder and its files writable for this user, or copy it elsewhere"),
            Self::Full => Some("free some disk space; everything committed before is still there"),
            Self::Corrupt { .. } => Some("restore the store from a backup"),
            Self::Absent { .. } => Some("name a folder that kohort made, or a backup"),
            Self::Unreadable { .. } => {
                Some("run this as the owner of the file: reading needs a lock, which is written to a file beside it")
            }
            Self::Foreign { .. } => Some("name a folder that kohort made, or one that does not exist yet"),
            Self::NoFolder { .. } => Some("put a backup into a folder of its own, under the name kohort.db"),
            Self::NewerFormat { .. } => Some("use the version of kohort that wrote it, or a newer one"),
            Self::BackupExists { .. } => Some("name a file that does not exist yet; backups are never overwritten"),
            Self::ChangedUnderScan { .. } => Some("read all rows before writing to their table"),
            Self::TransactionOver => Some("begin a new transaction"),
            _ => None,
        }
    }

    /// The same error without the row number. Updated rows come in an order that users do not know.
    pub(crate) fn without_row(mut self) -> Self {
        if let Self::DoesNotFit { row, .. } | Self::Missing { row, .. } | Self::Duplicate { row, .. } = &mut self {
            *row = None;
        }
        self
    }

    /// The same error for a later batch: adds the number of rows before the batch to the row number.
    #[must_use]
    pub fn after_rows(mut self, n_before: u64) -> Self {
        if let Self::DoesNotFit { row: Some(row), .. }
        | Self::Missing { row: Some(row), .. }
        | Self::Duplicate { row: Some(row), .. } = &mut self
        {
            *row += n_before;
        }
        self
    }

    /// Damage. [`StoreError::in_file`] adds the file.
    pub(crate) fn corrupt(what: impl Into<String>) -> Self {
        Self::Corrupt { file: None, what: what.into() }
    }

    /// Adds the file to an error about damage.
    pub(crate) fn in_file(self, file: &Path) -> Self {
        match self {
            Self::Corrupt { file: None, what } => Self::Corrupt { file: Some(file.to_owned()), what },
            other => other,
        }
    }

    /// A failure of the operating system while `doing` something.
    pub(crate) fn io(doing: impl Into<String>, source: std::io::Error) -> Self {
        match source.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Self::Full,
            _ => Self::Io { doing: doing.into(), source },
        }
    }
}

/// The beginning of a message about a row.
fn at(row: Option<u64>) -> String {
    row.map(|row| format!("row {row}: ")).unwrap_or_default()
}

/// SQLITE_IOERR_SHMSIZE.
const SHARED_MEMORY_SIZE: i32 = 10 | 19 << 8;

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let (rusqlite::Error::SqliteFailure(found, _) | rusqlite::Error::SqlInputError { error: found, .. }) = error
        else {
            // All statements are the store's own, so a result of an unexpected type means that the file is damaged.
            return Self::corrupt("a value of the store's own tables has a wrong type");
        };
        match found.code {
            ErrorCode::DiskFull => Self::Full,
            // The file beside the log that readers share could not grow.
            _ if found.extended_code == SHARED_MEMORY_SIZE => Self::Full,
            ErrorCode::DatabaseCorrupt => Self::corrupt("a page can't be read"),
            ErrorCode::NotADatabase => Self::corrupt("it is not an SQLite file"),
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Busy { waited_ms: 0 },
            _ => Self::Sqlite { code: found.extended_code },
        }
    }
}

/// The name of a damaged file for a message.
fn named(file: Option<&Path>) -> String {
    file.map_or_else(|| "the store's file".to_owned(), |file| format!("'{}'", file.display()))
}
