//! Copying the store while it runs.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use crate::StoreError;
use crate::folder::flush_folder;
use crate::session::Session;

/// Copies the state that the session sees to a new file: first beside the target, then, flushed to the disk, under its
/// name, which fails if there is something of that name.
pub(crate) fn backup(session: &Session, to: &Path) -> Result<(), StoreError> {
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
    session.with(|held| {
        let mut copy = Connection::open(file.path())?;
        // The copy is of no use before it is whole, so it needs no journal of its own.
        copy.pragma_update(None, "journal_mode", "OFF")?;
        let backup = Backup::new(&held.sql, &mut copy)?;
        match backup.step(-1)? {
            StepResult::Done => Ok(()),
            _ => Err(StoreError::Busy { waited_ms: 0 }),
        }
    })?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist_noclobber(to).map_err(|error| match error.error.kind() {
        std::io::ErrorKind::AlreadyExists => StoreError::BackupExists { target: to.to_owned() },
        _ => failed(error.error),
    })?;
    flush_folder(&parent).map_err(failed)
}
