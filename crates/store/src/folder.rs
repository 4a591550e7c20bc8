//! [`Folder`]: the data folder, held by one process.
//!
//! # Guarantee
//!
//! The lock is a lock of the operating system on `kohort.lock`, which ends with the process. So the file that a killed
//! process leaves behind does not lock anything. Only the user can access the folder (0700) and its files (0600; SQLite
//! gives the mode of `kohort.db` to the files beside it).

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::StoreError;

/// A locked data folder.
pub(crate) struct Folder {
    /// The file of the store. The path is absolute, so SQLite can't take it for a URI.
    pub(crate) file: PathBuf,
    path: PathBuf,
    lock: File,
}

impl Folder {
    /// Creates the folder if it does not exist, and locks it for this process.
    pub(crate) fn hold(path: &Path) -> Result<Self, StoreError> {
        let refused = |doing: &str, error: std::io::Error| match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                StoreError::ReadOnly { folder: path.to_owned() }
            }
            _ => StoreError::io(format!("{doing} '{}'", path.display()), error),
        };
        if path.is_file() {
            return Err(StoreError::NoFolder { path: path.to_owned() });
        }
        folder_builder().create(path).map_err(|error| refused("can't make the data folder", error))?;
        let path_found = path.canonicalize().map_err(|error| refused("can't find the data folder", error))?;
        let mut lock = private_file(&path_found.join("kohort.lock"))
            .map_err(|error| refused("can't lock the data folder", error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::Locked { folder: path.to_owned(), holder: holder(&mut lock) });
            }
            Err(TryLockError::Error(error)) => return Err(refused("can't lock the data folder", error)),
        }
        let write_holder = |lock: &mut File| {
            lock.set_len(0)?;
            write!(lock, "{}", std::process::id())
        };
        write_holder(&mut lock).map_err(|error| refused("can't lock the data folder", error))?;

        let file = path_found.join("kohort.db");
        private_file(&file).map_err(|error| refused("can't open the data folder", error))?;
        let folder = Self { file, path: path_found, lock };
        folder.flush_names().map_err(|error| refused("can't write to the data folder", error))?;
        Ok(folder)
    }

    /// The folder's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a small file and removes it, to test whether the disk can be written.
    pub(crate) fn try_writing(&self) -> std::io::Result<()> {
        let path = self.path.join("kohort.probe");
        let write = || {
            let mut file = private_file(&path)?;
            file.write_all(&[0; 64 << 10])?;
            file.sync_all()
        };
        let written = write();
        std::fs::remove_file(&path)?;
        written
    }

    /// Flushes the names of the folder and its files to the disk. Flushing the contents of files does not flush their
    /// names.
    fn flush_names(&self) -> std::io::Result<()> {
        flush_folder(&self.path)?;
        self.path.parent().map_or(Ok(()), flush_folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Closing the file is not enough: a process that is just being started shares it for a moment. If unlocking
        // fails, the end of the last such process unlocks.
        let _ = self.lock.unlock();
    }
}

/// Flushes the names in a folder to the disk. A folder without read permission is skipped, because the parent of the
/// data folder may be one.
pub(crate) fn flush_folder(path: &Path) -> std::io::Result<()> {
    match File::open(path) {
        Ok(folder) => folder.sync_all(),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(error),
    }
}

fn folder_builder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// Opens a file for reading and writing, and creates it for the user alone if it does not exist.
fn private_file(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The process that holds the lock, according to the content of the lock file.
fn holder(lock: &mut File) -> String {
    let mut text = String::new();
    let read = lock.rewind().and_then(|()| lock.read_to_string(&mut text));
    match (read, text.parse::<u32>()) {
        (Ok(_), Ok(process)) => format!("process {process}"),
        _ => "another process".to_owned(),
    }
}
