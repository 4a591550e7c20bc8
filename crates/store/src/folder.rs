//! [`Folder`]: the data folder, held by one process.
//!
//! # Guarantee
//!
//! The lock is the operating system's, on `kohort.lock`, and ends with the process however that ends: the file that a
//! killed process leaves behind locks nothing. The folder is made for its user alone (0700), and so are its files (0600;
//! SQLite gives the mode of `kohort.db` to the files beside it).

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::StoreError;

/// The folder, as long as it is held.
pub(crate) struct Folder {
    /// The file of the store. Absolute, so SQLite can't take it for a URI.
    pub(crate) file: PathBuf,
    path: PathBuf,
    lock: File,
}

impl Folder {
    /// Makes the folder if there is none, and takes it for this process.
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

    /// Writes a small file and removes it, to see whether the disk takes anything at all.
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

    /// Has the disk keep that the folder and its files exist, which flushing their contents does not.
    fn flush_names(&self) -> std::io::Result<()> {
        flush_folder(&self.path)?;
        self.path.parent().map_or(Ok(()), flush_folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Closing the file would not do: a process that is being started shares it for a moment. If this fails, the end
        // of the last such process unlocks.
        let _ = self.lock.unlock();
    }
}

/// Has the disk keep the names in a folder. A folder that may not be read (the parent of ours may be such) is left alone.
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

/// A file for reading and writing, made for its user alone if there is none.
fn private_file(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Who holds the lock, by what it wrote down.
fn holder(lock: &mut File) -> String {
    let mut text = String::new();
    let read = lock.rewind().and_then(|()| lock.read_to_string(&mut text));
    match (read, text.parse::<u32>()) {
        (Ok(_), Ok(process)) => format!("process {process}"),
        _ => "another process".to_owned(),
    }
}
