//! The data folder: an engine whose tables, DGHs and views are still there when it is opened again.
//!
//! Tables are kept as rows. Everything else is kept as text, by kind and name: DGHs as their nodes, tables of files and
//! views as the statements that made them, which run once more when the folder is opened. A view that is computed comes
//! back as it was, or stale ([`super::pinned`]).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::common::TableReference;
use kohort_store::{Snapshot, Store, TableKind};
use serde::{Deserialize, Serialize};

use super::pinned::{Pinned, restored};
use super::session::Outcome;
use super::transactions::{Transaction, Turn, blocking};
use super::{Clock, Engine, Role, Session, Shared};
use crate::SqlError;
use crate::parser::{Statement, parse};
use crate::policy::ComplianceLog;
use crate::store::StoredTable;
use crate::view::{AView, State};

const HIERARCHY: &str = "dgh";
const STATEMENT: &str = "statement";
const IMPORTED: &str = "imported policy";
const COUNTER: &str = "counter";

/// What an engine keeps in a folder.
pub(super) struct Data {
    pub(super) store: Store,
}

/// A view, or a table of a file, that can't be made again.
#[derive(Debug)]
pub struct Lost {
    /// Its name.
    pub name: String,
    /// Why.
    pub problem: SqlError,
}

/// A statement that made something, and when it ran among the others.
#[derive(Serialize, Deserialize)]
struct Made {
    order: u64,
    text: String,
    /// What became of it, where it is a view that is computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pinned: Option<Pinned>,
}

impl Engine {
    /// The engine of a data folder, which is made where there is none.
    ///
    /// # Errors
    /// Where the folder can't be opened, or something in it can't be made again.
    pub async fn open(folder: &Path, clock: Clock, log: ComplianceLog) -> Result<Engine, SqlError> {
        let folder = folder.to_owned();
        let store = blocking(move || Store::open(&folder)).await?;
        let engine = Engine::with(clock, log, Some(Data { store: store.clone() }));
        let state = store.read()?;
        engine.shared.calendar.restore(&state)?;
        for table in state.tables()?.into_iter().filter(|table| table.kind == TableKind::Base) {
            let name = TableReference::bare(table.name.as_str());
            engine.shared.owner.register_table(name, Arc::new(StoredTable::new(store.clone(), table)))?;
        }
        for (name, record) in state.records(HIERARCHY)? {
            let restored = engine.shared.hierarchies_mut().restore(&name, &record);
            restored.ok_or_else(|| SqlError::Damaged { what: format!("DGH '{name}'") })?;
        }
        engine.shared.imported().extend(state.records(IMPORTED)?.into_iter().map(|(name, _)| name));
        for (table, generation) in state.records(COUNTER)? {
            engine.shared.generations.set(&table, generation.parse().unwrap_or_default());
        }
        let made = kept_statements(&state)?;
        drop(state);
        let mut session = engine.session(Role::Owner);
        let numbers = made.iter().filter_map(|(_, made)| made.pinned.as_ref()?.number());
        let next_number = numbers.max().map_or(1, |last| last + 1);
        for (name, Made { text, pinned, .. }) in made {
            // Nobody makes another version meanwhile.
            let number = pinned.as_ref().and_then(Pinned::number).unwrap_or(next_number);
            engine.shared.next_version.store(number, Ordering::Relaxed);
            for parsed in parse(&text)? {
                // A materialized view follows its table, or nobody may change that.
                let is_needed = matches!(&parsed.statement, Statement::CreateView(view) if view.materialized);
                match session.restore(parsed).await {
                    Err(problem) if !is_needed => engine.shared.lost().push(Lost { name: name.clone(), problem }),
                    done => done?,
                }
            }
            if let Some(view) = engine.shared.view(&name) {
                view.set_state(restored(pinned, view.state()));
            }
        }
        engine.shared.next_version.store(next_number, Ordering::Relaxed);
        Ok(engine)
    }

    /// What the data folder keeps and could not be made again, for a file or a table is gone. It is tried again when the
    /// folder is next opened, or when a view is refreshed.
    pub fn take_lost(&self) -> Vec<Lost> {
        std::mem::take(&mut self.shared.lost())
    }

    /// The store of its data folder.
    pub fn store(&self) -> Option<&Store> {
        self.shared.data.as_ref().map(|data| &data.store)
    }
}

/// The statements that a data folder keeps, by what they made, in the order in which they ran.
fn kept_statements(state: &Snapshot) -> Result<Vec<(String, Made)>, SqlError> {
    let mut made: Vec<(String, Made)> = Vec::new();
    for (name, record) in state.records(STATEMENT)? {
        let known = serde_json::from_str(&record).map_err(|_| SqlError::Damaged { what: format!("'{name}'") })?;
        made.push((name, known));
    }
    made.sort_unstable_by_key(|(_, made)| made.order);
    Ok(made)
}

impl Session {
    /// Makes a view that the data folder keeps and that could not be made when it was opened, and the tables that could
    /// not: a file may be back, or a server. Other views wait until they are refreshed themselves.
    ///
    /// # Errors
    /// Why it still can't be made.
    pub(super) async fn restore_lost(&self, view: &str) -> Result<(), SqlError> {
        let Some(data) = &self.shared.data else { return Ok(()) };
        let made = kept_statements(&data.store.read()?)?;
        if !made.iter().any(|(name, _)| name == view) {
            return Ok(());
        }
        // One of its own: whoever gives up waiting must not go on as if something were being restored.
        let mut session = Session::new(Arc::clone(&self.shared), Role::Owner);
        let mut problem = None;
        for (name, Made { text, pinned, .. }) in made {
            if self.shared.owner.table_exist(TableReference::bare(name.as_str()))? {
                continue;
            }
            for parsed in parse(&text)? {
                let is_view = matches!(parsed.statement, Statement::CreateView(_));
                if is_view && name != view {
                    continue;
                }
                match session.restore(parsed).await {
                    Ok(()) => {}
                    Err(error) if is_view => return Err(problem.unwrap_or(error)),
                    Err(error) => problem = problem.or(Some(error)),
                }
            }
            if let Some(view) = self.shared.view(&name) {
                view.set_state(restored(pinned, view.state()));
            }
        }
        Ok(())
    }

    /// Copies the data folder to a new file, while others go on.
    pub(super) async fn backup(&self, file: &str) -> Result<Outcome, SqlError> {
        let Some(data) = &self.shared.data else { return Err(SqlError::NoDataFolder) };
        let (store, target) = (data.store.clone(), std::path::PathBuf::from(file));
        blocking(move || store.backup(&target)).await?;
        Ok(Outcome::Done(format!("copied everything to {file}")))
    }

    /// Keeps a statement that made something of this name.
    pub(super) async fn keep_statement(&mut self, name: &str, text: &str) -> Result<(), SqlError> {
        if self.shared.data.is_none() || self.is_restoring {
            return Ok(());
        }
        let (name, text) = (name.to_owned(), text.to_owned());
        let pinned = self.shared.view(&name).and_then(|view| Pinned::of(&view.state()));
        self.in_transaction(async |transaction| {
            let known = transaction.change.records(STATEMENT)?;
            let orders = known.iter().filter_map(|(_, record)| serde_json::from_str(record).ok());
            let order = orders.map(|made: Made| made.order).max().map_or(0, |last| last + 1);
            let record = serde_json::to_string(&Made { order, text, pinned }).expect("texts and numbers are JSON");
            Ok(transaction.change.put_record(STATEMENT, &name, &record)?)
        })
        .await
    }

    /// Keeps what a view that is computed has become.
    pub(super) async fn keep_pinned(&mut self, name: &str, state: &State) -> Result<(), SqlError> {
        if self.shared.data.is_none() {
            return Ok(());
        }
        let (name, pinned) = (name.to_owned(), Pinned::of(state));
        self.in_transaction(async |transaction| {
            let known = transaction.change.record(STATEMENT, &name)?;
            let made = known.as_deref().and_then(|record| serde_json::from_str(record).ok());
            let made: Made = made.ok_or_else(|| SqlError::UnknownView { name: name.clone() })?;
            let record = serde_json::to_string(&Made { pinned, ..made }).expect("texts and numbers are JSON");
            Ok(transaction.change.put_record(STATEMENT, &name, &record)?)
        })
        .await
    }

    /// Forgets the statement that made something of this name.
    pub(super) async fn forget_statement(&mut self, name: &str) -> Result<(), SqlError> {
        if self.shared.data.is_none() {
            return Ok(());
        }
        let name = name.to_owned();
        self.in_transaction(async |transaction| Ok(transaction.change.remove_record(STATEMENT, &name).map(drop)?)).await
    }

    /// Forgets everything that is kept of an A-view, and says whether anything was. Nobody else writes until the turn is
    /// over.
    pub(super) async fn forget_view(
        &mut self,
        name: &str,
        materialized: Option<Arc<AView>>,
    ) -> Result<(bool, Option<Turn>), SqlError> {
        if self.shared.data.is_none() {
            return Ok((false, None));
        }
        let transaction = self.begin().await?;
        let was_kept = transaction.change.remove_record(STATEMENT, name)?;
        if let Some(view) = &materialized {
            self.unmaterialize(Arc::clone(&view.definition), &transaction).await?;
        }
        let follow_no_more = move || {
            if let Some(view) = materialized {
                view.set_state(State::Unusable("it was dropped".to_owned()));
            }
        };
        Ok((was_kept, Some(self.commit_then(transaction, follow_no_more).await?)))
    }

    /// Keeps a DGH as it now is, or forgets it where there is none.
    pub(super) async fn keep_hierarchy(&mut self, name: &str) -> Result<(), SqlError> {
        if self.shared.data.is_none() {
            return Ok(());
        }
        let key = name.to_lowercase();
        let record = self.shared.hierarchies().record(&key);
        self.in_transaction(async |transaction| {
            match record {
                Some(record) => transaction.change.put_record(HIERARCHY, &key, &record)?,
                None => drop(transaction.change.remove_record(HIERARCHY, &key)?),
            }
            Ok(())
        })
        .await
    }

    /// Notes that a table holds imported policies.
    pub(super) fn keep_imported(transaction: &Transaction, name: &str) -> Result<(), SqlError> {
        Ok(transaction.change.put_record(IMPORTED, name, "")?)
    }

    /// Notes that a table holds imported policies no more.
    pub(super) fn forget_imported(transaction: &Transaction, name: &str) -> Result<(), SqlError> {
        Ok(transaction.change.remove_record(IMPORTED, name).map(drop)?)
    }

    /// Keeps a transaction: what it changed, and what follows from it, together. Nobody else writes until the turn is
    /// over.
    pub(super) async fn commit(&self, transaction: Transaction) -> Result<Turn, SqlError> {
        self.commit_then(transaction, || ()).await
    }

    /// The same, and what must happen once it is kept. All of it happens whether or not somebody still waits: what is in
    /// memory would not be what is kept.
    pub(super) async fn commit_then(
        &self,
        transaction: Transaction,
        after: impl FnOnce() + Send + 'static,
    ) -> Result<Turn, SqlError> {
        let shared = Arc::clone(&self.shared);
        blocking(move || shared.keep_then(transaction, after)).await
    }
}

/// Forgets what views have followed in memory, unless it was kept: also where a fault ends this early.
struct Unkept<'a> {
    shared: &'a Shared,
    is_kept: bool,
}

impl Drop for Unkept<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.shared.materialized().iter().for_each(|following| following.view.forget());
        }
    }
}

impl Shared {
    /// Keeps a transaction, and does what must happen then. Waits for the disk.
    pub(super) fn keep_then(&self, transaction: Transaction, after: impl FnOnce()) -> Result<Turn, SqlError> {
        let mut unkept = Unkept { shared: self, is_kept: false };
        self.keep(&transaction)?;
        unkept.is_kept = true;
        after();
        self.published.notify_waiters();
        Ok(transaction.turn)
    }

    fn keep(&self, transaction: &Transaction) -> Result<(), SqlError> {
        let followed = self.follow(transaction)?;
        let change = &transaction.change;
        for table in &transaction.changed {
            let next = self.generations.of(table) + 1;
            change.put_record(COUNTER, table, &next.to_string())?;
        }
        let day = self.calendar.keep(change)?;
        change.commit()?;
        day.into_iter().for_each(|day| self.calendar.was_kept(day));
        followed.iter().for_each(|view| view.publish());
        transaction.changed.iter().for_each(|table| self.generations.bump(table));
        Ok(())
    }
}
