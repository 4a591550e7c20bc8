//! [`Store`]: a data folder that this process holds.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::check::{Depth, check_pages};
use crate::folder::Folder;
use crate::session::{Home, Session};
use crate::{Change, Snapshot, StoreError, backup};

/// How long [`Store::write`] waits for another change, unless told otherwise.
const WAIT: Duration = Duration::from_secs(10);

/// The store in a data folder. Clones share one store. The folder is unlocked when the last clone and the last
/// snapshot, change or scan of it are dropped.
#[derive(Clone)]
pub struct Store {
    home: Arc<Home>,
}

impl Store {
    /// Opens the store in this folder, and creates both if they do not exist.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        Self::open_waiting(folder, WAIT)
    }

    /// Like [`Store::open`], but [`Store::write`] waits this long for another change to end.
    pub fn open_waiting(folder: &Path, wait: Duration) -> Result<Self, StoreError> {
        Ok(Self { home: Arc::new(Home::open(Folder::hold(folder)?, wait)?) })
    }

    /// Tests whether the folder's disk can be written. A store that can be read may still be unable to commit a change.
    ///
    /// # Errors
    /// [`StoreError::Full`], or another failure of the disk.
    pub fn try_writing(&self) -> Result<(), StoreError> {
        self.home.try_writing().map_err(|error| StoreError::io("can't write to the data folder", error))
    }

    /// The current state, for reading. Later commits do not change it.
    pub fn read(&self) -> Result<Snapshot, StoreError> {
        Ok(Snapshot::new(Session::read(&self.home)?))
    }

    /// Begins a change, after any other change has ended.
    pub fn write(&self) -> Result<Change, StoreError> {
        Ok(Change::new(Session::write(&self.home)?))
    }

    /// Copies the current state to a new file, which appears whole or not at all. Reading and writing continue
    /// meanwhile. To open the copy, put it into a folder under the name `kohort.db`.
    pub fn backup(&self, to: &Path) -> Result<(), StoreError> {
        backup::backup(&Session::read(&self.home)?, to)
    }

    /// Reads the whole file and checks it for damage.
    pub fn check(&self) -> Result<(), StoreError> {
        Session::read(&self.home)?.with(|held| check_pages(&held.sql, Depth::Everything))
    }
}
