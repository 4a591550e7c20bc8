//! [`Session`]: a connection of the store while a transaction has it, and [`Home`], where connections wait.
//!
//! There is one connection that writes and any number that read. A session gives its connection back when it ends; scans
//! that are still open then find it gone. A connection that read keeps its transaction while it waits, so that who reads
//! next need not begin one: until somebody begins to write, for nobody else does, and nothing of the log can be worked
//! into the file below a state that is still read.

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

/// More connections than these are closed when their readers are done.
const IDLE_READERS: usize = 8;
const CACHED_STATEMENTS: usize = 64;
/// Pages that a connection keeps, in KiB (negative, as SQLite has it). The one that writes keeps more: rows that come in
/// bulk are searched for in every index of their table.
const CACHE: i64 = -8_192;
const CACHE_OF_WRITER: i64 = -65_536;
/// A file of at most so many bytes is looked through when it is opened, which takes half a second for 200 MB. What is in it
/// is read then anyway, where it is shown by views.
const CHECKED_WHEN_OPENED: u64 = 256 << 20;
/// A log that grew beyond so many bytes is cut when it is reused.
const LONGEST_LOG: i64 = 64 << 20;

/// A connection, and what is known of the state it sees.
pub(crate) struct Held {
    pub(crate) sql: Connection,
    pub(crate) catalog: Arc<Catalog>,
    /// SQLite's number of the schema that `catalog` was read from.
    catalog_version: Option<i64>,
    /// [`Idle::n_turns`] when the transaction began.
    n_turns: u64,
    /// How often this transaction wrote to each table.
    pub(crate) writes: HashMap<i64, u64>,
    /// The next number of a row, of the tables that got rows in this transaction.
    pub(crate) next_rows: HashMap<i64, i64>,
    /// How many savepoints this transaction made.
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

    /// Begins a transaction and fixes the state it sees.
    fn begin(&mut self, statement: &str) -> Result<(), StoreError> {
        // The end of the transaction before may have failed.
        self.roll_back()?;
        self.sql.prepare_cached(statement)?.execute([])?;
        // A deferred transaction has its state from the first read on; this is it.
        let version: i64 = self.sql.prepare_cached("PRAGMA schema_version")?.query_row([], |row| row.get(0))?;
        if self.catalog_version != Some(version) {
            self.read_catalog()?;
            self.catalog_version = Some(version);
        }
        Ok(())
    }

    /// Reads the catalog again, after this transaction changed it.
    pub(crate) fn read_catalog(&mut self) -> Result<(), StoreError> {
        // Forgotten at the end: a transaction that is rolled back gives the number of its schema to the next.
        self.catalog_version = None;
        self.catalog = Arc::new(Catalog::read(&self.sql)?);
        Ok(())
    }

    /// Ends the transaction, if there is one, without keeping what it wrote.
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

/// A transaction. Ends when it is closed or dropped.
pub(crate) struct Session {
    held: Mutex<Option<Held>>,
    role: Role,
    home: Arc<Home>,
}

impl Session {
    /// A transaction on the state as it is now, which reads.
    pub(crate) fn read(home: &Arc<Home>) -> Result<Self, StoreError> {
        let (idle, n_turns) = {
            let mut idle = lock(&home.idle);
            (idle.readers.pop(), idle.n_turns)
        };
        let mut held = match idle {
            Some(held) => held,
            None => Held::new(home.connect(OpenFlags::SQLITE_OPEN_READ_ONLY)?),
        };
        // One that still has a transaction has the state as it is now, or it would have ended.
        if held.sql.is_autocommit() {
            held.n_turns = n_turns;
            // A connection that fails here is closed, not given back.
            held.begin("BEGIN").map_err(|error| error.in_file(&home.folder.file))?;
        }
        Ok(Self { held: Mutex::new(Some(held)), role: Role::Reader, home: home.clone() })
    }

    /// The transaction that writes, once no other does.
    pub(crate) fn write(home: &Arc<Home>) -> Result<Self, StoreError> {
        let session = Self { held: Mutex::new(Some(home.take_writer()?)), role: Role::Writer, home: home.clone() };
        // Given back by the session's end if this fails.
        let begun = lock(&session.held).as_mut().expect("just put there").begin("BEGIN IMMEDIATE");
        begun.map_err(|error| error.in_file(&home.folder.file))?;
        Ok(session)
    }

    /// Works with the connection.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Held) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut guard = lock(&self.held);
        let held = guard.as_mut().ok_or(StoreError::TransactionOver)?;
        // SQLite ends a transaction by itself after some failures; what came next would be committed piece by piece.
        if held.sql.is_autocommit() {
            return Err(StoreError::TransactionOver);
        }
        work(held).map_err(|error| error.in_file(&self.home.folder.file))
    }

    /// Ends the transaction; whatever was not committed is undone.
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
        // Nothing of an unfinished transaction is kept even if its end fails.
        let _ = self.close();
    }
}

/// Connections that wait for readers.
#[derive(Default)]
struct Idle {
    readers: Vec<Held>,
    /// How often the writer was taken or given back: while it is away, this is odd.
    n_turns: u64,
}

/// The file, and its connections that no transaction has. The writer is closed last but the folder's lock, so that the
/// log is worked into the file.
pub(crate) struct Home {
    idle: Mutex<Idle>,
    writer: Mutex<Option<Held>>,
    writer_is_back: Condvar,
    wait: Duration,
    folder: Folder,
}

impl Home {
    /// Writes to the folder and takes it back.
    pub(crate) fn try_writing(&self) -> std::io::Result<()> {
        self.folder.try_writing()
    }

    /// Opens the file, and brings it to the newest format.
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
        // A file that is refused is not written to, so this comes before the log is set up.
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
        // Without these, macOS flushes to the disk's cache only. Elsewhere they do nothing.
        writer.pragma_update(None, "fullfsync", true)?;
        writer.pragma_update(None, "checkpoint_fullfsync", true)?;
        writer.pragma_update(None, "secure_delete", true)?;
        writer.pragma_update_and_check(None, "journal_size_limit", LONGEST_LOG, |_| Ok(()))?;
        Ok(())
    }

    /// Why the file can't be opened.
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

    /// What waits for readers lets go of the state it has.
    fn end_idle_transactions(&self) {
        let mut idle = lock(&self.idle);
        idle.n_turns += 1;
        // A connection that fails here is closed.
        idle.readers.retain_mut(|held| held.roll_back().is_ok());
    }

    /// A connection whose state is still that of the file keeps its transaction.
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

/// Locks; what a panic left behind is whole, since every transaction is begun, checked and ended in one place.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
