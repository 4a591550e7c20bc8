//! Copies of the store, also while it is in use.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use crate::check::{Depth, check_pages, connect, file_of};
use crate::folder::flush_folder;
use crate::session::Session;
use crate::{StoreError, format};

/// Copies the store of a data folder to a new file, also while another process holds the folder. The copy has one
/// committed state. Like a copy made by [`Store::backup`](crate::Store::backup), it appears whole or not at all.
///
/// # Errors
/// If there is no store, the store is damaged, or the file exists already.
pub fn backup_folder(folder: &Path, to: &Path) -> Result<(), StoreError> {
    let file = file_of(folder)?;
    let connection = connect(&file)?;
    format::is_store(&connection, &file).and_then(|()| copy(&connection, to)).map_err(|error| error.in_file(&file))
}

/// Copies the state that the session sees.
pub(crate) fn backup(session: &Session, to: &Path) -> Result<(), StoreError> {
    session.with(|held| copy(&held.sql, to))
}

/// Copies the state that a connection sees to a new file. The copy is written beside the target, flushed to the disk,
/// and then renamed, which fails if the target exists.
fn copy(connection: &Connection, to: &Path) -> Result<(), StoreError> {
    let failed = |error| StoreError::io(format!("can't write the backup '{}'", to.display()), error);
    if to.symlink_metadata().is_ok() {
        return Err(StoreError::BackupExists { target: to.to_owned() });
    }
    let parent = match to.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let parent = parent.canonicalize().map_err(failed)?;
    let unfinished = tempfile::Builder::new().prefix(".backup-").tempdir_in(&parent).map_err(failed)?;
    let file = tempfile::NamedTempFile::new_in(unfinished.path()).map_err(failed)?;
    let mut copied = Connection::open(file.path())?;
    // An unfinished copy is deleted anyway, so it needs no journal.
    copied.pragma_update(None, "journal_mode", "OFF")?;
    match Backup::new(connection, &mut copied)?.step(-1)? {
        StepResult::Done => {}
        _ => return Err(StoreError::Busy { waited_ms: 0 }),
    }
    // Check the copy now, so that damage is noticed while earlier backups still exist.
    check_pages(&copied, Depth::Pages)?;
    drop(copied);
    file.as_file().sync_all().map_err(failed)?;
    file.persist_noclobber(to).map_err(|error| match error.error.kind() {
        std::io::ErrorKind::AlreadyExists => StoreError::BackupExists { target: to.to_owned() },
        _ => failed(error.error),
    })?;
    flush_folder(&parent).map_err(failed)
}
