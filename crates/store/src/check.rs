//! Checks a store's files for damage.
//!
//! SQLite has no checksums of pages. So only damage of the structure is found: pages outside every tree, rows out of
//! order, values of a wrong type, rows and indexes that do not agree. A changed byte inside a value is not found if its
//! column has no index.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};

use crate::format::Content;
use crate::log::check_log;
use crate::{StoreError, format};

/// How long to wait for another process that recovers the store.
const WAIT: Duration = Duration::from_secs(10);

/// How thoroughly a file is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Checks every page, and every row by itself.
    Pages,
    /// Also checks whether indexes and rows agree, which takes twenty times as long.
    Everything,
}

/// Reads a file and checks it for damage.
pub(crate) fn check_pages(connection: &Connection, depth: Depth) -> Result<(), StoreError> {
    let statement = match depth {
        Depth::Pages => "PRAGMA quick_check(1)",
        Depth::Everything => "PRAGMA integrity_check(1)",
    };
    let found: String = connection.query_row(statement, [], |row| row.get(0))?;
    if found == "ok" {
        return Ok(());
    }
    Err(StoreError::corrupt("pages, rows and indexes do not agree"))
}

/// Reads the whole store of a data folder, or a backup, and checks it for damage, also while another process holds the
/// folder.
///
/// # Errors
/// What is damaged in which file, or why the store can't be read.
pub fn check_folder(path: &Path) -> Result<(), StoreError> {
    let is_folder = path.is_dir();
    let file = if is_folder { file_of(path)? } else { found(path, path)? };
    let check = || {
        // If a process holds the folder, don't check the log: that process writes to it, and has checked it when it
        // opened the folder.
        if is_folder && let Some(_held) = free_lock(path) {
            check_log(&file)?;
        }
        let connection = connect(&file)?;
        format::is_store(&connection, &file)?;
        check_pages(&connection, Depth::Everything)
    };
    check().map_err(|error| error.in_file(&file))
}

/// The text that is stored in a data folder or a backup under a kind and a name, also while another process holds the
/// folder.
///
/// # Errors
/// If this is not a store of a known format, or can't be read.
pub fn record_of(path: &Path, kind: &str, name: &str) -> Result<Option<String>, StoreError> {
    let file = if path.is_dir() { file_of(path)? } else { found(path, path)? };
    let connection = connect(&file)?;
    let read = || match format::check(&connection, &file)? {
        Content::Nothing => Ok(None),
        Content::Store => {
            let statement = "SELECT text FROM records WHERE kind = ? AND name = ?";
            Ok(connection.query_row(statement, [kind, name], |row| row.get(0)).optional()?)
        }
    };
    read().map_err(|error: StoreError| error.in_file(&file))
}

/// The file of the store in a data folder. The path is absolute, so SQLite can't take it for a URI.
pub(crate) fn file_of(folder: &Path) -> Result<PathBuf, StoreError> {
    found(&folder.join("kohort.db"), folder)
}

fn found(file: &Path, named: &Path) -> Result<PathBuf, StoreError> {
    file.canonicalize().map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => StoreError::Absent { path: named.to_owned() },
        _ => StoreError::io(format!("can't read '{}'", file.display()), error),
    })
}

/// Opens a file for reading, which other processes may have open.
pub(crate) fn connect(file: &Path) -> Result<Connection, StoreError> {
    // Try to open the file first: the operating system's error is clearer than SQLite's.
    File::open(file).map_err(|error| StoreError::io(format!("can't read '{}'", file.display()), error))?;
    let open = || {
        let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.busy_timeout(WAIT)?;
        connection.pragma_update(None, "cell_size_check", true)?;
        // This first read fixes the state that the connection sees.
        connection.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema")?;
        Ok(connection)
    };
    open().map_err(|error: rusqlite::Error| match error.sqlite_error_code() {
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly) => StoreError::Unreadable { file: file.to_owned() },
        Some(ErrorCode::NotADatabase) => StoreError::Foreign { file: file.to_owned() },
        _ => StoreError::from(error).in_file(file),
    })
}

/// Locks a folder, unless another process holds it. Dropping the result unlocks.
fn free_lock(folder: &Path) -> Option<File> {
    let lock = File::open(folder.join("kohort.lock")).ok()?;
    lock.try_lock().is_ok().then_some(lock)
}
