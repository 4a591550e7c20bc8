//! Copying the store while it runs.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use crate::check::{Depth, check_pages, connect, file_of};
use crate::folder::flush_folder;
use crate::session::Session;
use crate::{StoreError, format};

/// Copies the store of a data folder to a new file, also while another process holds the folder: the copy is of one state
/// that was committed. As [`Store::backup`](crate::Store::backup), it appears whole or not at all.
///
/// # Errors
/// Where there is no store, it is damaged, or the file is there already.
pub fn backup_folder(folder: &Path, to: &Path) -> Result<(), StoreError> {
    let file = file_of(folder)?;
    let connection = connect(&file)?;
    format::is_store(&connection, &file).and_then(|()| copy(&connection, to)).map_err(|error| error.in_file(&file))
}

/// Copies the state that the session sees.
pub(crate) fn backup(session: &Session, to: &Path) -> Result<(), StoreError> {
    session.with(|held| copy(&held.sql, to))
}

/// Copies the state that a connection sees to a new file: first beside the target, then, flushed to the disk, under its
/// name, which fails if there is something of that name.
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
    // The copy is of no use before it is whole, so it needs no journal of its own.
    copied.pragma_update(None, "journal_mode", "OFF")?;
    match Backup::new(connection, &mut copied)?.step(-1)? {
        StepResult::Done => {}
        _ => return Err(StoreError::Busy { waited_ms: 0 }),
    }
    // A copy of damaged pages is no backup, and is better noticed while earlier ones are still there.
    check_pages(&copied, Depth::Pages)?;
    drop(copied);
    file.as_file().sync_all().map_err(failed)?;
    file.persist_noclobber(to).map_err(|error| match error.error.kind() {
        std::io::ErrorKind::AlreadyExists => StoreError::BackupExists { target: to.to_owned() },
        _ => failed(error.error),
    })?;
    flush_folder(&parent).map_err(failed)
}
