//! What can go wrong in the store, and what to do about it.
//!
//! Messages hold names of tables and columns, and numbers of rows; never a cell, and never a message of SQLite, whose
//! wording is not ours to promise.

use std::path::{Path, PathBuf};

use arrow_schema::DataType;
use rusqlite::ErrorCode;

/// Why the store refused or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process (or another [`Store`](crate::Store) of this one) holds the folder.
    #[error("the data folder '{}' is in use by {holder}", folder.display())]
    Locked {
        /// The data folder.
        folder: PathBuf,
        /// Who holds it, as far as it said: `process 123` or `another process`.
        holder: String,
    },
    /// Another change was under way for longer than the store waits.
    #[error("another change of the data is under way, and did not end within {waited_ms} ms")]
    Busy {
        /// How long the store waited.
        waited_ms: u128,
    },
    /// The folder or its file can't be written.
    #[error("the data folder '{}' can't be written", folder.display())]
    ReadOnly {
        /// The data folder.
        folder: PathBuf,
    },
    /// There is no room left for what was written. Nothing of the change remains.
    #[error("the disk is full")]
    Full,
    /// A file is damaged.
    #[error("{} is damaged: {what}", named(file.as_deref()))]
    Corrupt {
        /// The file; known wherever a store says this.
        file: Option<PathBuf>,
        /// What was found.
        what: String,
    },
    /// There is no store where one was named.
    #[error("there is no store in '{}'", path.display())]
    Absent {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A store that is there and can't be read.
    #[error("'{}' can't be read", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
    },
    /// The file is an SQLite file of something else, or none at all.
    #[error("'{}' is not a store of kohort", file.display())]
    Foreign {
        /// The file.
        file: PathBuf,
    },
    /// A file in the place of a data folder.
    #[error("'{}' is a file, not a data folder", path.display())]
    NoFolder {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by a newer kohort.
    #[error("the store has format {found}; this kohort reads formats up to {known}")]
    NewerFormat {
        /// The format of the file.
        found: i64,
        /// The newest format that is known here.
        known: i64,
    },
    /// The target of a backup is there already.
    #[error("'{}' exists already", target.display())]
    BackupExists {
        /// The target.
        target: PathBuf,
    },
    /// There is no such table.
    #[error("there is no table '{table}'")]
    UnknownTable {
        /// The name that was asked for.
        table: String,
    },
    /// There is no such column.
    #[error("table '{table}' has no column '{column}'")]
    UnknownColumn {
        /// The table.
        table: String,
        /// The name that was asked for.
        column: String,
    },
    /// There is no row of this number.
    #[error("table '{table}' has no row {row}")]
    UnknownRow {
        /// The table.
        table: String,
        /// The number that was asked for.
        row: i64,
    },
    /// A table of this name is there already.
    #[error("there is a table '{table}' already")]
    TableExists {
        /// The name.
        table: String,
    },
    /// A description of a table that can't be made.
    #[error("table '{table}' can't be made: {why}")]
    BadDescription {
        /// The table.
        table: String,
        /// What is wrong with it.
        why: String,
    },
    /// A type that the store does not keep.
    #[error("column '{column}' is of type {data_type}, which the store does not keep")]
    UnsupportedType {
        /// The column.
        column: String,
        /// Its type.
        data_type: DataType,
    },
    /// A batch whose columns are not those of the table.
    #[error("the rows for table '{table}' do not have its columns: {why}")]
    OtherColumns {
        /// The table.
        table: String,
        /// What differs.
        why: String,
    },
    /// A condition compares a column with a value of another type.
    #[error("column '{column}' of type {data_type} can't be compared with a value of another type")]
    OtherType {
        /// The column.
        column: String,
        /// The column's type.
        data_type: DataType,
    },
    /// More conditions than a scan takes, or more values in them.
    #[error("a scan of table '{table}' takes at most {most} {what}")]
    TooManyConditions {
        /// The table.
        table: String,
        /// Conditions, or values in them.
        what: &'static str,
        /// How many it takes.
        most: usize,
    },
    /// A value that the column's type has no room for.
    #[error("{}the value of column '{column}' does not fit its type {data_type}", at(*row))]
    DoesNotFit {
        /// The column.
        column: String,
        /// The column's type.
        data_type: DataType,
        /// The number of the row among those that came with it, from 1; none where rows are changed.
        row: Option<u64>,
    },
    /// A missing value where the column must have one.
    #[error("{}column '{column}' must have a value", at(*row))]
    Missing {
        /// The column.
        column: String,
        /// The number of the row among those that came with it, from 1; none where rows are changed.
        row: Option<u64>,
    },
    /// A row that agrees with another in columns that must be unique.
    #[error("{}table '{table}' has a row with the same {} already", at(*row), columns.join(", "))]
    Duplicate {
        /// The table.
        table: String,
        /// The columns that must be unique together.
        columns: Vec<String>,
        /// The number of the row among those that came with it, from 1; none where rows are changed.
        row: Option<u64>,
    },
    /// A unique index over columns in which rows agree.
    #[error("table '{table}' has rows that agree in {}", columns.join(", "))]
    NotUnique {
        /// The table.
        table: String,
        /// The columns of the index.
        columns: Vec<String>,
    },
    /// A scan of a change goes on after the change wrote to the table.
    #[error("table '{table}' was changed while it was read")]
    ChangedUnderScan {
        /// The table.
        table: String,
    },
    /// The transaction ended, by its commit, its rollback, or an earlier failure.
    #[error("the transaction is over")]
    TransactionOver,
    /// The operating system refused something.
    #[error("{doing}: {source}")]
    Io {
        /// What was attempted.
        doing: String,
        /// The refusal.
        source: std::io::Error,
    },
    /// Any other failure of SQLite.
    #[error("SQLite failed with code {code}")]
    Sqlite {
        /// Its extended result code.
        code: i32,
    },
}

impl StoreError {
    /// What to do about it, where there is something.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Locked { .. } => Some("one process opens a data folder at a time: stop the other, or ask it instead"),
            Self::Busy { .. } => Some("try again when the other change has ended"),
            Self::ReadOnly { .. } => Some("make the folder and its files writable for this user, or copy it elsewhere"),
            Self::Full => Some("make room on the disk; what was committed before is still there"),
            Self::Corrupt { .. } => Some("restore the store from a backup"),
            Self::Absent { .. } => Some("name a folder that kohort made, or a backup"),
            Self::Unreadable { .. } => {
                Some("be the user it belongs to: reading takes a lock, in a file beside it that has to be written")
            }
            Self::Foreign { .. } => Some("name a folder that kohort made, or one that does not exist yet"),
            Self::NoFolder { .. } => Some("put a backup into a folder of its own, under the name kohort.db"),
            Self::NewerFormat { .. } => Some("use the kohort that wrote it, or a newer one"),
            Self::BackupExists { .. } => Some("name a file that does not exist yet; backups are never overwritten"),
            Self::ChangedUnderScan { .. } => Some("read all rows before writing to their table"),
            Self::TransactionOver => Some("begin a new one"),
            _ => None,
        }
    }

    /// The same, of rows that were there before: where one stands among those that change is no place anybody knows.
    pub(crate) fn without_row(mut self) -> Self {
        if let Self::DoesNotFit { row, .. } | Self::Missing { row, .. } | Self::Duplicate { row, .. } = &mut self {
            *row = None;
        }
        self
    }

    /// The same, of a batch that so many rows came before: a row's number is counted from the first of them.
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

    /// Damage in a file that [`StoreError::in_file`] names.
    pub(crate) fn corrupt(what: impl Into<String>) -> Self {
        Self::Corrupt { file: None, what: what.into() }
    }

    /// The same, and in which file it was found where something is damaged.
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

/// How a message begins that is of a row.
fn at(row: Option<u64>) -> String {
    row.map(|row| format!("row {row}: ")).unwrap_or_default()
}

/// SQLITE_IOERR_SHMSIZE.
const SHARED_MEMORY_SIZE: i32 = 10 | 19 << 8;

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let (rusqlite::Error::SqliteFailure(found, _) | rusqlite::Error::SqlInputError { error: found, .. }) = error
        else {
            // The statements are the store's own, so what they give has the shape it asks for, unless the file is damaged.
            return Self::corrupt("a value of the store's own tables has an unknown form");
        };
        match found.code {
            ErrorCode::DiskFull => Self::Full,
            // The file beside the log that readers share could not become as large as it has to be.
            _ if found.extended_code == SHARED_MEMORY_SIZE => Self::Full,
            ErrorCode::DatabaseCorrupt => Self::corrupt("a page can't be read"),
            ErrorCode::NotADatabase => Self::corrupt("it is not an SQLite file"),
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Busy { waited_ms: 0 },
            _ => Self::Sqlite { code: found.extended_code },
        }
    }
}

/// A damaged file, in a message.
fn named(file: Option<&Path>) -> String {
    file.map_or_else(|| "the store's file".to_owned(), |file| format!("'{}'", file.display()))
}
