//! [`Session`]: a transaction and its connection; [`Home`]: the pool of connections without a transaction.
//!
//! There is one connection that writes and any number that read. A session gives its connection back when it ends, so
//! scans of it that are still open then fail. An idle connection keeps its read transaction, so that the next reader
//! need not begin one. As soon as a write begins, idle read transactions end: their state would be old after the
//! commit, and an open read transaction stops SQLite from moving the log into the file.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::StoreError;
use crate::catalog::Catalog;
use crate::check::{Depth, check_pages};
use crate::folder::Folder;
use crate::format;
use crate::log::check_log;

/// The number of idle connections for readers. Further ones are closed when their readers are done.
const IDLE_READERS: usize = 8;
const CACHED_STATEMENTS: usize = 64;
/// The page cache of a connection in KiB, negative as SQLite wants it. The writer's is larger, because inserting many
/// rows searches every index of their table.
const CACHE: i64 = -8_192;
const CACHE_OF_WRITER: i64 = -65_536;
/// A file of at most this many bytes is checked for damage when it is opened, which takes half a second for 200 MB.
/// Views read most of the file at that time anyway.
const CHECKED_WHEN_OPENED: u64 = 256 << 20;
/// A log that grew beyond this many bytes is truncated when SQLite reuses it.
const LONGEST_LOG: i64 = 64 << 20;

/// A connection, with the catalog and the counters of its transaction.
pub(crate) struct Held {
    pub(crate) sql: Connection,
    pub(crate) catalog: Arc<Catalog>,
    /// SQLite's version number of the schema that `catalog` was read from.
    catalog_version: Option<i64>,
    /// [`Idle::n_turns`] when the transaction began.
    n_turns: u64,
    /// How often this transaction wrote to each table.
    pub(crate) writes: HashMap<i64, u64>,
    /// The number of the next row, for each table that got rows in this transaction.
    pub(crate) next_rows: HashMap<i64, i64>,
    /// The number of savepoints that this transaction made.
    pub(crate) n_savepoints: u64,
}

impl Held {
    fn new(sql: Connection) -> Self {
        let catalog = Arc::new(Catalog::default());
        Self {
            sql,
            catalog,
            catalog_version: None,
            n_turns: 0,
            writes: HashMap::new(),
            next_rows: HashMap::new(),
            n_savepoints: 0,
        }
    }

    /// Begins a transaction and fixes the state that it sees.
    fn begin(&mut self, statement: &str) -> Result<(), StoreError> {
        // Ending the previous transaction may have failed.
        self.roll_back()?;
        self.sql.prepare_cached(statement)?.execute([])?;
        // The first read of a deferred transaction fixes the state that it sees. This is that read.
        let version: i64 = self.sql.prepare_cached("PRAGMA schema_version")?.query_row([], |row| row.get(0))?;
        if self.catalog_version != Some(version) {
            self.read_catalog()?;
            self.catalog_version = Some(version);
        }
        Ok(())
    }

    /// Reads the catalog again, after this transaction changed it.
    pub(crate) fn read_catalog(&mut self) -> Result<(), StoreError> {
        // Read the catalog again in the next transaction: after a rollback, the next change reuses the same version
        // number.
        self.catalog_version = None;
        self.catalog = Arc::new(Catalog::read(&self.sql)?);
        Ok(())
    }

    /// Rolls back the transaction, if there is one.
    fn roll_back(&mut self) -> Result<(), StoreError> {
        self.writes.clear();
        self.next_rows.clear();
        self.n_savepoints = 0;
        if !self.sql.is_autocommit() {
            self.sql.prepare_cached("ROLLBACK")?.execute([])?;
        }
        Ok(())
    }
}

/// Which connection a session has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Reader,
    Writer,
}

/// A transaction, which ends when it is closed or dropped.
pub(crate) struct Session {
    held: Mutex<Option<Held>>,
    role: Role,
    home: Arc<Home>,
}

impl Session {
    /// Begins a transaction that reads the current state.
    pub(crate) fn read(home: &Arc<Home>) -> Result<Self, StoreError> {
        let (idle, n_turns) = {
            let mut idle = lock(&home.idle);
            (idle.readers.pop(), idle.n_turns)
        };
        let mut held = match idle {
            Some(held) => held,
            None => Held::new(home.connect(OpenFlags::SQLITE_OPEN_READ_ONLY)?),
        };
        // A connection that is still in a transaction sees the current state; a write would have ended the transaction.
        if held.sql.is_autocommit() {
            held.n_turns = n_turns;
            // A connection that fails here is closed, not given back.
            held.begin("BEGIN").map_err(|error| error.in_file(&home.folder.file))?;
        }
        Ok(Self { held: Mutex::new(Some(held)), role: Role::Reader, home: home.clone() })
    }

    /// Begins the transaction that writes, after any other has ended.
    pub(crate) fn write(home: &Arc<Home>) -> Result<Self, StoreError> {
        let session = Self { held: Mutex::new(Some(home.take_writer()?)), role: Role::Writer, home: home.clone() };
        // If this fails, dropping the session gives the connection back.
        let begun = lock(&session.held).as_mut().expect("just put there").begin("BEGIN IMMEDIATE");
        begun.map_err(|error| error.in_file(&home.folder.file))?;
        Ok(session)
    }

    /// Runs `work` with the connection.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Held) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut guard = lock(&self.held);
        let held = guard.as_mut().ok_or(StoreError::TransactionOver)?;
        // SQLite ends a transaction by itself after some failures. Later statements would then be committed one by one.
        if held.sql.is_autocommit() {
            return Err(StoreError::TransactionOver);
        }
        work(held).map_err(|error| error.in_file(&self.home.folder.file))
    }

    /// Ends the transaction, and rolls back what was not committed.
    pub(crate) fn close(&self) -> Result<(), StoreError> {
        let Some(mut held) = lock(&self.held).take() else {
            return Ok(());
        };
        match self.role {
            Role::Reader => self.home.give_back_reader(held),
            Role::Writer => {
                let outcome = held.roll_back();
                self.home.give_back_writer(held);
                outcome
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SQLite keeps nothing of an unfinished transaction, even if ending it fails.
        let _ = self.close();
    }
}

/// Idle connections for readers.
#[derive(Default)]
struct Idle {
    readers: Vec<Held>,
    /// How often the writer was taken or given back. The number is odd while the writer is in use.
    n_turns: u64,
}

/// The file, and its idle connections. The fields are dropped in this order: the writer after the readers, so that
/// SQLite moves the log into the file, and the folder's lock at the end.
pub(crate) struct Home {
    idle: Mutex<Idle>,
    writer: Mutex<Option<Held>>,
    writer_is_back: Condvar,
    wait: Duration,
    folder: Folder,
}

impl Home {
    /// Writes a test file to the folder and removes it.
    pub(crate) fn try_writing(&self) -> std::io::Result<()> {
        self.folder.try_writing()
    }

    /// Opens the file, and upgrades it to the newest format.
    pub(crate) fn open(folder: Folder, wait: Duration) -> Result<Self, StoreError> {
        let mut home =
            Self { idle: Mutex::default(), writer: Mutex::new(None), writer_is_back: Condvar::new(), wait, folder };
        let file = home.folder.file.clone();
        let writer = home.open_writer(&file).map_err(|error| error.in_file(&file))?;
        home.writer = Mutex::new(Some(Held::new(writer)));
        Ok(home)
    }

    fn open_writer(&self, file: &Path) -> Result<Connection, StoreError> {
        check_log(file)?;
        let mut writer = self.connect(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        // Check the format before setting up the log, because a refused file must not be written to.
        format::check(&writer, file)?;
        if std::fs::metadata(file).is_ok_and(|found| found.len() <= CHECKED_WHEN_OPENED) {
            check_pages(&writer, Depth::Pages)?;
        }
        self.set_up_writer(&writer)?;
        format::upgrade(&mut writer, file)?;
        Ok(writer)
    }

    /// A new connection to the file.
    fn connect(&self, access: OpenFlags) -> Result<Connection, StoreError> {
        let open = || {
            let connection = Connection::open_with_flags(&self.folder.file, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
            connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
            // Sorted rows must not land in temporary files outside the folder.
            connection.pragma_update(None, "temp_store", "MEMORY")?;
            connection.pragma_update(None, "cell_size_check", true)?;
            connection.pragma_update(None, "cache_size", CACHE)?;
            Ok(connection)
        };
        open().map_err(|error| self.refused(error))
    }

    fn set_up_writer(&self, writer: &Connection) -> Result<(), StoreError> {
        let mode: String = writer
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
            .map_err(|error| self.refused(error))?;
        if mode != "wal" {
            return Err(StoreError::ReadOnly { folder: self.folder.path().to_owned() });
        }
        writer.pragma_update(None, "synchronous", "FULL")?;
        writer.pragma_update(None, "cache_size", CACHE_OF_WRITER)?;
        // Without these settings, macOS flushes only to the disk's cache. Elsewhere they have no effect.
        writer.pragma_update(None, "fullfsync", true)?;
        writer.pragma_update(None, "checkpoint_fullfsync", true)?;
        writer.pragma_update(None, "secure_delete", true)?;
        writer.pragma_update_and_check(None, "journal_size_limit", LONGEST_LOG, |_| Ok(()))?;
        Ok(())
    }

    /// The reason why the file can't be opened.
    fn refused(&self, error: rusqlite::Error) -> StoreError {
        match error.sqlite_error_code() {
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly) => {
                StoreError::ReadOnly { folder: self.folder.path().to_owned() }
            }
            Some(ErrorCode::NotADatabase) => StoreError::Foreign { file: self.folder.file.clone() },
            _ => error.into(),
        }
    }

    fn take_writer(&self) -> Result<Held, StoreError> {
        let start = Instant::now();
        let mut writer = lock(&self.writer);
        loop {
            if let Some(held) = writer.take() {
                drop(writer);
                self.end_idle_transactions();
                return Ok(held);
            }
            let Some(left) = self.wait.checked_sub(start.elapsed()) else {
                return Err(StoreError::Busy { waited_ms: start.elapsed().as_millis() });
            };
            writer = self.writer_is_back.wait_timeout(writer, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends the transactions of idle connections.
    fn end_idle_transactions(&self) {
        let mut idle = lock(&self.idle);
        idle.n_turns += 1;
        // A connection that fails here is closed.
        idle.readers.retain_mut(|held| held.roll_back().is_ok());
    }

    /// Takes a reader's connection back. Its transaction stays open if it still sees the current state.
    fn give_back_reader(&self, mut held: Held) -> Result<(), StoreError> {
        let mut idle = lock(&self.idle);
        let is_current = idle.n_turns.is_multiple_of(2) && idle.n_turns == held.n_turns;
        if idle.readers.len() == IDLE_READERS || !is_current {
            drop(idle);
            held.roll_back()?;
            idle = lock(&self.idle);
        }
        if idle.readers.len() < IDLE_READERS {
            idle.readers.push(held);
        }
        Ok(())
    }

    fn give_back_writer(&self, held: Held) {
        lock(&self.idle).n_turns += 1;
        *lock(&self.writer) = Some(held);
        self.writer_is_back.notify_one();
    }
}

/// Locks a mutex, even after a panic of another holder. The data is still consistent then, because transactions are
/// begun, checked and ended in one place.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
