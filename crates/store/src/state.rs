//! [`State`]: what a transaction sees. A [`Snapshot`] and a [`Change`](crate::Change) are both read through it.

use std::ops::Deref;
use std::sync::Arc;

use rusqlite::OptionalExtension;

use crate::scan::{Filter, Rows, bind};
use crate::session::Session;
use crate::{Condition, ScanRequest, StoreError, TableDescription};

/// One state of the store, for reading.
pub struct State {
    pub(crate) session: Arc<Session>,
}

impl State {
    /// All tables including hidden ones, sorted by name.
    pub fn tables(&self) -> Result<Vec<TableDescription>, StoreError> {
        self.session.with(|held| Ok(held.catalog.tables.values().map(|table| table.description.clone()).collect()))
    }

    /// The table of this name.
    pub fn table(&self, name: &str) -> Result<Option<TableDescription>, StoreError> {
        self.session.with(|held| Ok(held.catalog.tables.get(name).map(|table| table.description.clone())))
    }

    /// Rows of a table, in the order of their numbers.
    pub fn scan(&self, table: &str, request: &ScanRequest) -> Result<Rows, StoreError> {
        Rows::open(&self.session, table, request)
    }

    /// How many rows a table has.
    pub fn count(&self, table: &str) -> Result<u64, StoreError> {
        self.session.with(|held| {
            let sql = format!("SELECT count(*) FROM t{}", held.catalog.table(table)?.id);
            Ok(held.sql.prepare_cached(&sql)?.query_row([], |row| row.get::<_, i64>(0))?.cast_unsigned())
        })
    }

    /// How many rows of a table satisfy all of these conditions.
    pub fn count_of(&self, table: &str, conditions: &[Condition]) -> Result<u64, StoreError> {
        self.session.with(|held| {
            let found = held.catalog.table(table)?;
            let filter = Filter::new(found, conditions)?;
            let sql = format!("SELECT count(*) FROM t{} WHERE TRUE{}", found.id, filter.sql);
            let mut statement = held.sql.prepare_cached(&sql)?;
            bind(&mut statement, &filter.values)?;
            let mut rows = statement.raw_query();
            let count: i64 = rows.next()?.map_or(Ok(0), |row| row.get(0))?;
            Ok(count.cast_unsigned())
        })
    }

    /// The text that is stored under a kind and a name.
    pub fn record(&self, kind: &str, name: &str) -> Result<Option<String>, StoreError> {
        self.session.with(|held| {
            let mut statement = held.sql.prepare_cached("SELECT text FROM records WHERE kind = ? AND name = ?")?;
            Ok(statement.query_row([kind, name], |row| row.get(0)).optional()?)
        })
    }

    /// All names and texts of a kind, sorted by name.
    pub fn records(&self, kind: &str) -> Result<Vec<(String, String)>, StoreError> {
        self.session.with(|held| {
            let mut statement =
                held.sql.prepare_cached("SELECT name, text FROM records WHERE kind = ? ORDER BY name")?;
            let records = statement.query_map([kind], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(records.collect::<Result<_, _>>()?)
        })
    }
}

/// One state of the store, which later commits do not change. Clones see the same state.
#[derive(Clone)]
pub struct Snapshot {
    state: Arc<State>,
}

impl Snapshot {
    pub(crate) fn new(session: Session) -> Self {
        Self { state: Arc::new(State { session: Arc::new(session) }) }
    }
}

impl Deref for Snapshot {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}
