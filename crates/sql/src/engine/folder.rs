//! The data folder, which keeps the tables, DGHs and views of an engine until it is opened again.
//!
//! Tables are kept as rows. Everything else is kept as a text record with a kind and a name: a DGH as its nodes; a table of
//! files or a view as the statement that made it, which runs again when the folder is opened. A computed view comes back as it
//! was, or stale ([`pinned`]). The format of all this has a number ([`format`]).

pub(super) mod calendar;
pub(super) mod format;
pub(super) mod pinned;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::common::TableReference;
use datafusion::sql::parser::Statement as DFStatement;
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;
use kohort_store::{Snapshot, Store, TableKind};
use serde::{Deserialize, Serialize};

use crate::SqlError;
use crate::engine::change::transactions::{ChangeTurn, Transaction, blocking};
use crate::engine::session::Outcome;
use crate::engine::session::recorded::Ahead;
use crate::engine::{Clock, Engine, Session, Shared};
use crate::hierarchies::Tried;
use crate::parser::{Parsed, Statement, ViewStatement, parse};
use crate::policy::ComplianceLog;
use crate::role::Role;
use crate::store::StoredTable;
use crate::view::{MaterializedError, State, ViewError};
use pinned::{Pinned, restored};

const HIERARCHY: &str = "dgh";
const STATEMENT: &str = "statement";
/// Records of this kind name the tables that hold imported policies.
pub(crate) const IMPORTED: &str = "imported policy";
const COUNTER: &str = "counter";

/// A view or a table of files that could not be made again.
#[derive(Debug)]
pub struct Lost {
    /// Its name.
    pub name: String,
    /// Why it could not be made.
    pub problem: SqlError,
}

/// A statement that made something, and its place in the order of all such statements.
#[derive(Serialize, Deserialize)]
struct StatementRecord {
    order: u64,
    text: String,
    /// The state of the view, if the statement makes a computed view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pinned: Option<Pinned>,
}

/// The kind of thing that a kept statement makes.
pub(crate) enum Makes {
    /// A table of files, or of a server.
    Table,
    /// A plain view.
    View,
    /// An anonymization view.
    AnonymizationView(Box<ViewStatement>),
}

impl Makes {
    fn of(statement: &Statement) -> Makes {
        match statement {
            Statement::CreateView(view) => Makes::AnonymizationView(view.clone()),
            Statement::Sql(sql) if matches!(sql.as_ref(), DFStatement::CreateExternalTable(_)) => Makes::Table,
            _ => Makes::View,
        }
    }
}

/// A kept statement that is to run again.
struct KeptStatement {
    name: String,
    parsed: Parsed,
    pinned: Option<Pinned>,
}

impl Engine {
    /// Opens the engine of a data folder. The folder is made if there is none.
    ///
    /// # Errors
    /// The folder can't be opened or read.
    pub async fn open(folder: &Path, clock: Clock, log: ComplianceLog) -> Result<Engine, SqlError> {
        let folder = folder.to_owned();
        let store = blocking(move || {
            let store = Store::open(&folder)?;
            format::upgrade(&store)?;
            Ok::<Store, SqlError>(store)
        });
        let store = store.await?;
        let engine = Engine::with(clock, log, Some(store.clone()));
        let state = store.read()?;
        engine.shared.calendar.restore(&state)?;
        for table in state.tables()?.into_iter().filter(|table| table.kind == TableKind::Base) {
            let name = TableReference::bare(table.name.as_str());
            engine.shared.owner.register_table(name, Arc::new(StoredTable::new(store.clone(), table)))?;
        }
        for (name, record) in state.records(HIERARCHY)? {
            let restored = engine.shared.hierarchies.write().restore(&name, &record);
            restored.ok_or_else(|| SqlError::Damaged { what: format!("DGH '{name}'") })?;
        }
        engine.shared.imported.lock().extend(state.records(IMPORTED)?.into_iter().map(|(name, _)| name));
        for (table, generation) in state.records(COUNTER)? {
            engine.shared.generations.set(&table, generation.parse().unwrap_or_default());
        }
        let made = kept_statements(&state)?;
        drop(state);
        let numbers = made.iter().filter_map(|kept| kept.pinned.as_ref()?.number());
        let next_number = numbers.max().map_or(1, |last| last + 1);
        let shared = &engine.shared;
        let as_before = |kept: &KeptStatement| {
            // Views are restored one at a time, so each gets the number that its version had.
            let number = kept.pinned.as_ref().and_then(Pinned::number).unwrap_or(next_number);
            shared.next_version.store(number, Ordering::Relaxed);
        };
        let lost = restore_all(&mut engine.session(Role::Owner), made, as_before).await?;
        shared.next_version.store(next_number, Ordering::Relaxed);
        for (KeptStatement { name, parsed, .. }, problem) in lost {
            if let Makes::AnonymizationView(view) = Makes::of(&parsed.statement)
                && view.clauses.is_materialized
            {
                if is_of_store(&problem) {
                    return Err(problem);
                }
                // The view can't follow its tables, so nobody may change them.
                let tables = shared.tables_of(&view)?;
                shared.unfollowed.lock().insert(name.clone(), tables);
            }
            shared.lost.lock().push(Lost { name, problem });
        }
        Ok(engine)
    }

    /// Tables and views that could not be made again, because a file or a table is gone. They are tried again when the
    /// folder is next opened, or when a view is refreshed.
    pub fn take_lost(&self) -> Vec<Lost> {
        std::mem::take(&mut self.shared.lost.lock())
    }

    /// The store of its data folder.
    pub fn store(&self) -> Option<&Store> {
        self.shared.store.as_ref()
    }
}

/// Whether the problem is the store itself rather than one view.
fn is_of_store(problem: &SqlError) -> bool {
    matches!(problem, SqlError::Store(_) | SqlError::View(ViewError::Materialized(MaterializedError::Store(_))))
}

/// The statements that a data folder keeps, in the order in which they first ran.
fn kept_statements(state: &Snapshot) -> Result<Vec<KeptStatement>, SqlError> {
    let mut made: Vec<(u64, KeptStatement)> = Vec::new();
    for (name, record) in state.records(STATEMENT)? {
        let StatementRecord { order, text, pinned } = read_made(&name, &record)?;
        let parsed = parsed_again(&name, &text)?;
        made.push((order, KeptStatement { name, parsed, pinned }));
    }
    made.sort_by_key(|(order, _)| *order);
    Ok(made.into_iter().map(|(_, kept)| kept).collect())
}

fn read_made(name: &str, record: &str) -> Result<StatementRecord, SqlError> {
    serde_json::from_str(record).map_err(|_| SqlError::Damaged { what: format!("'{name}'") })
}

fn parsed_again(name: &str, text: &str) -> Result<Parsed, SqlError> {
    let parsed = parse(text)?.into_iter().next();
    parsed.ok_or_else(|| SqlError::Damaged { what: format!("'{name}'") })
}

/// What the statement makes that a data folder keeps under this name.
pub(crate) fn kept(state: &kohort_store::State, name: &str) -> Result<Option<Makes>, SqlError> {
    let Some(record) = state.record(STATEMENT, name)? else { return Ok(None) };
    let made = read_made(name, &record)?;
    Ok(Some(Makes::of(&parsed_again(name, &made.text)?.statement)))
}

/// Runs kept statements, and returns those that fail. A table or view that was replaced comes after views that read it, so
/// views are tried again as long as one more succeeds. Tables of files read nothing else, so they are tried once.
async fn restore_all(
    session: &mut Session,
    made: Vec<KeptStatement>,
    before_each: impl Fn(&KeptStatement),
) -> Result<Vec<(KeptStatement, SqlError)>, SqlError> {
    let (mut open, mut lost_tables) = (made, Vec::new());
    loop {
        let (n_open, mut lost) = (open.len(), Vec::new());
        for kept in open {
            before_each(&kept);
            match session.restore(kept.parsed.clone()).await {
                Ok(()) => {
                    if let Some(view) = session.shared.view(&kept.name) {
                        view.set_state(restored(kept.pinned, view.state()));
                    }
                }
                Err(problem) => match Makes::of(&kept.parsed.statement) {
                    Makes::Table => lost_tables.push((kept, problem)),
                    Makes::View | Makes::AnonymizationView(_) => lost.push((kept, problem)),
                },
            }
        }
        if lost.len() == n_open || lost.is_empty() {
            lost_tables.extend(lost);
            return Ok(lost_tables);
        }
        open = lost.into_iter().map(|(kept, _)| kept).collect();
    }
}

/// Tries again to make a view that could not be made when the folder was opened, and all tables that could not be made: a
/// file or a server may be back. Other views stay lost until they are refreshed themselves.
pub(crate) async fn restore_lost(session: &Session, view: &str) -> Result<(), SqlError> {
    let Some(store) = &session.shared.store else { return Ok(()) };
    let mut made = kept_statements(&store.read()?)?;
    if !made.iter().any(|kept| kept.name == view) {
        return Ok(());
    }
    let is_other_view =
        |kept: &KeptStatement| matches!(kept.parsed.statement, Statement::CreateView(_)) && kept.name != view;
    let is_there = |kept: &KeptStatement| session.shared.owner.table_exist(TableReference::bare(kept.name.as_str()));
    made.retain(|kept| !is_other_view(kept) && !is_there(kept).unwrap_or(false));
    // Use another session: this one would stay in the state of restoring if the client stopped waiting.
    let mut session = Session::new(Arc::clone(&session.shared), Role::Owner);
    let lost = restore_all(&mut session, made, |_| ()).await?;
    match lost.iter().any(|(kept, _)| kept.name == view) {
        // Failures are listed in dependency order: the first one is the cause.
        true => lost.into_iter().next().map_or(Ok(()), |(_, problem)| Err(problem)),
        false => Ok(()),
    }
}

/// Copies the data folder to a new file. Other statements go on meanwhile.
pub(crate) async fn backup(session: &Session, file: &str) -> Result<Outcome, SqlError> {
    let store = session.shared.store.clone().ok_or(SqlError::NoDataFolder)?;
    let target = std::path::PathBuf::from(file);
    // The copy holds all private tables, so record the statement first.
    session.ahead().record().map_err(SqlError::Log)?;
    blocking(move || store.backup(&target)).await?;
    Ok(Outcome::Done(format!("copied the data folder to {file}")))
}

/// Commits a transaction together with the changes of the views that follow it. Nobody else writes until the turn ends.
pub(crate) async fn commit(session: &Session, transaction: Transaction) -> Result<ChangeTurn, SqlError> {
    commit_then(session, transaction, || ()).await
}

/// Commits a transaction and then calls `after`. Once the statement is recorded, both happen even if the client stops
/// waiting, because memory and the data folder must stay the same.
pub(crate) async fn commit_then(
    session: &Session,
    transaction: Transaction,
    after: impl FnOnce() + Send + 'static,
) -> Result<ChangeTurn, SqlError> {
    let (shared, ahead) = (Arc::clone(&session.shared), session.ahead());
    blocking(move || shared.keep_then(transaction, &ahead, after)).await
}

impl Transaction {
    /// What the statement makes that is kept under this name.
    pub(crate) fn kept(&self, name: &str) -> Result<Option<Makes>, SqlError> {
        kept(&self.change, name)
    }

    /// Keeps the statement that made something of this name.
    pub(crate) fn keep_statement(&self, name: &str, text: &str, pinned: Option<Pinned>) -> Result<(), SqlError> {
        let known = self.change.records(STATEMENT)?;
        let orders = known.iter().filter_map(|(_, record)| serde_json::from_str(record).ok());
        let order = orders.map(|made: StatementRecord| made.order).max().map_or(0, |last| last + 1);
        self.put_made(name, &StatementRecord { order, text: text.to_owned(), pinned })
    }

    /// Keeps the new state of a computed view.
    pub(crate) fn keep_pinned(&self, name: &str, state: &State) -> Result<(), SqlError> {
        let known = self.change.record(STATEMENT, name)?;
        let known = known.ok_or_else(|| SqlError::UnknownView { name: name.to_owned() })?;
        self.put_made(name, &StatementRecord { pinned: Pinned::of(state), ..read_made(name, &known)? })
    }

    fn put_made(&self, name: &str, made: &StatementRecord) -> Result<(), SqlError> {
        let record = serde_json::to_string(made).expect("texts and numbers are JSON");
        Ok(self.change.put_record(STATEMENT, name, &record)?)
    }

    /// Forgets the statement that made something of this name; `false` if there was none.
    pub(crate) fn forget_statement(&self, name: &str) -> Result<bool, SqlError> {
        Ok(self.change.remove_record(STATEMENT, name)?)
    }

    /// Keeps a DGH after a change, or forgets it if it was dropped.
    pub(crate) fn keep_hierarchy(&self, tried: &Tried) -> Result<(), SqlError> {
        match &tried.record {
            Some(record) => self.change.put_record(HIERARCHY, &tried.key, record)?,
            None => drop(self.change.remove_record(HIERARCHY, &tried.key)?),
        }
        Ok(())
    }
}

/// When dropped, makes views forget changes in memory that were not committed, even after a panic.
struct Unkept<'a> {
    shared: &'a Shared,
    is_kept: bool,
}

impl Drop for Unkept<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.shared.materialized().iter().for_each(|(view, _)| view.forget());
        }
    }
}

impl Shared {
    /// The tables that the statement of a view names.
    fn tables_of(&self, view: &ViewStatement) -> Result<BTreeSet<String>, SqlError> {
        let query = DFStatement::Statement(Box::new(SqlStatement::Query(view.query.clone())));
        let named = self.owner.state().resolve_table_references(&query)?;
        let choices = view.clauses.policy.as_ref().map(|policy| &policy.table);
        Ok(named.iter().chain(choices).map(|table| table.table().to_owned()).collect())
    }

    /// Records a transaction, commits it, and calls `after`. Waits for the disk.
    pub(crate) fn keep_then(
        &self,
        transaction: Transaction,
        ahead: &Ahead,
        after: impl FnOnce(),
    ) -> Result<ChangeTurn, SqlError> {
        let mut unkept = Unkept { shared: self, is_kept: false };
        self.keep(&transaction, ahead)?;
        unkept.is_kept = true;
        after();
        self.published.notify_waiters();
        Ok(transaction.turn)
    }

    fn keep(&self, transaction: &Transaction, ahead: &Ahead) -> Result<(), SqlError> {
        let followed = self.let_views_follow(transaction)?;
        let change = &transaction.change;
        for table in &transaction.changed {
            let next = self.generations.of(table) + 1;
            change.put_record(COUNTER, table, &next.to_string())?;
        }
        let day = self.calendar.keep(change)?;
        ahead.record().map_err(SqlError::Log)?;
        change.commit()?;
        day.into_iter().for_each(|day| self.calendar.was_kept(day));
        followed.iter().for_each(|view| view.publish());
        transaction.changed.iter().for_each(|table| self.generations.bump(table));
        Ok(())
    }
}
