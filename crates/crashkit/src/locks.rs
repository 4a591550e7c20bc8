//! Locks of files and of their shared memory, between connections of one process, as SQLite describes them.

use std::sync::atomic::AtomicU64;

use rusqlite::ffi;

/// Which connections have locked a file, and how far.
#[derive(Default)]
pub(crate) struct FileLocks {
    /// Connections that have the level SHARED or more.
    readers: Vec<u64>,
    /// The connection that has RESERVED or more, and its level.
    writer: Option<(u64, i32)>,
}

impl FileLocks {
    /// Raises the level of a connection, and returns whether that was possible.
    pub(crate) fn lock(&mut self, connection: u64, level: i32) -> bool {
        let other_writer = self.writer.filter(|(writer, _)| *writer != connection);
        match level {
            ffi::SQLITE_LOCK_SHARED => {
                if other_writer.is_some_and(|(_, held)| held >= ffi::SQLITE_LOCK_PENDING) {
                    return false;
                }
                if !self.readers.contains(&connection) {
                    self.readers.push(connection);
                }
                true
            }
            ffi::SQLITE_LOCK_RESERVED | ffi::SQLITE_LOCK_PENDING if other_writer.is_none() => {
                self.writer = Some((connection, level));
                true
            }
            ffi::SQLITE_LOCK_EXCLUSIVE if other_writer.is_none() => {
                let is_alone = self.readers.iter().all(|reader| *reader == connection);
                let reached = if is_alone { level } else { ffi::SQLITE_LOCK_PENDING };
                self.writer = Some((connection, reached));
                is_alone
            }
            _ => false,
        }
    }

    /// Lowers the level of a connection to SHARED or NONE.
    pub(crate) fn unlock(&mut self, connection: u64, level: i32) {
        if self.writer.is_some_and(|(writer, _)| writer == connection) {
            self.writer = None;
        }
        if level == ffi::SQLITE_LOCK_NONE {
            self.readers.retain(|reader| *reader != connection);
        }
    }

    pub(crate) fn is_reserved(&self) -> bool {
        self.writer.is_some()
    }
}

/// The memory that connections to a file share, and its locks.
#[derive(Default)]
pub(crate) struct SharedMemory {
    pub(crate) regions: Vec<Box<[AtomicU64]>>,
    /// The connections that hold each lock: any number if they share it, or one.
    holders: [Vec<u64>; ffi::SQLITE_SHM_NLOCK as usize],
    is_exclusive: [bool; ffi::SQLITE_SHM_NLOCK as usize],
    pub(crate) users: Vec<u64>,
}

impl SharedMemory {
    /// Takes or gives back `n_locks` locks from `first` on, and returns whether that was possible.
    pub(crate) fn lock(&mut self, connection: u64, first: usize, n_locks: usize, flags: i32) -> bool {
        let slots = first..first + n_locks;
        if flags & ffi::SQLITE_SHM_UNLOCK != 0 {
            for slot in slots {
                self.holders[slot].retain(|holder| *holder != connection);
                self.is_exclusive[slot] &= !self.holders[slot].is_empty();
            }
            return true;
        }
        let is_exclusive = flags & ffi::SQLITE_SHM_EXCLUSIVE != 0;
        let is_free = |slot: usize| {
            let others = self.holders[slot].iter().any(|holder| *holder != connection);
            !others || (!is_exclusive && !self.is_exclusive[slot])
        };
        if !slots.clone().all(is_free) {
            return false;
        }
        for slot in slots {
            if !self.holders[slot].contains(&connection) {
                self.holders[slot].push(connection);
            }
            self.is_exclusive[slot] = is_exclusive;
        }
        true
    }
}
