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

/// The store in a data folder. Clones are the same store; the folder is let go when the last of them, and of what was
/// begun on them, is dropped.
#[derive(Clone)]
pub struct Store {
    home: Arc<Home>,
}

impl Store {
    /// Opens the store in this folder; makes both if they are not there.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        Self::open_waiting(folder, WAIT)
    }

    /// The same, and [`Store::write`] waits this long for another change to end.
    pub fn open_waiting(folder: &Path, wait: Duration) -> Result<Self, StoreError> {
        Ok(Self { home: Arc::new(Home::open(Folder::hold(folder)?, wait)?) })
    }

    /// Whether the disk of the folder takes anything: a store that can be read may be unable to keep a change.
    ///
    /// # Errors
    /// [`StoreError::Full`], or what else the disk says.
    pub fn try_writing(&self) -> Result<(), StoreError> {
        self.home.try_writing().map_err(|error| StoreError::io("can't write to the data folder", error))
    }

    /// The state as it is now, for reading. It stays as it is whatever is committed meanwhile.
    pub fn read(&self) -> Result<Snapshot, StoreError> {
        Ok(Snapshot::new(Session::read(&self.home)?))
    }

    /// Begins the change; waits until no other is under way.
    pub fn write(&self) -> Result<Change, StoreError> {
        Ok(Change::new(Session::write(&self.home)?))
    }

    /// Copies the state as it is now to a file of its own, which appears whole or not at all. Others go on reading and
    /// writing. The copy is a store's `kohort.db`: put into a folder under that name, it can be opened.
    pub fn backup(&self, to: &Path) -> Result<(), StoreError> {
        backup::backup(&Session::read(&self.home)?, to)
    }

    /// Reads the whole file and says whether it is sound.
    pub fn check(&self) -> Result<(), StoreError> {
        Session::read(&self.home)?.with(|held| check_pages(&held.sql, Depth::Everything))
    }
}
