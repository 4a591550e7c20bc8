//! Transactions of the data folder.
//!
//! A statement that changes rows outside of a transaction is one by itself. A statement that fails leaves nothing behind,
//! and the transaction around it goes on. A transaction takes its turn to write with its first change or savepoint; until then
//! each of its statements reads the latest state that was committed. Statements that make or drop tables stand outside of transactions. Names of
//! savepoints mean the latest of them, as in PostgreSQL.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use datafusion::sql::parser::Statement as DFStatement;
use datafusion::sql::sqlparser::ast::{Statement as SqlStatement, TransactionAccessMode, TransactionMode};
use kohort_store::{Change, Savepoint, StoreError};

use crate::SqlError;
use crate::engine::Session;
use crate::engine::folder;
use crate::engine::session::Outcome;
use crate::parser::spelled;

/// A change under way.
pub(in crate::engine) struct Transaction {
    pub(in crate::engine) change: Arc<Change>,
    /// The values, before and after, of columns that views watch, in rows that were changed. What was undone stays: to
    /// look at somebody who did not change does no harm.
    pub(in crate::engine) touched: Touched,
    /// Those of them that UPDATE gave rows which had others: somebody may have another name now.
    pub(in crate::engine) renamed: Touched,
    /// Tables whose rows changed.
    pub(in crate::engine) changed: BTreeSet<String>,
    pub(in crate::engine) turn: ChangeTurn,
    /// Where it can go back to, oldest first.
    savepoints: Vec<(String, Savepoint)>,
}

/// Nobody else changes the data folder as long as this is held.
pub(in crate::engine) type ChangeTurn = tokio::sync::OwnedMutexGuard<()>;

/// How long a change waits for another to end.
const WAIT: Duration = Duration::from_secs(10);

const READ_ONLY: TransactionMode = TransactionMode::AccessMode(TransactionAccessMode::ReadOnly);

/// By table and column, texts of values.
pub(in crate::engine) type Touched = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// What a statement about transactions says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) enum TransactionStep {
    Begin,
    BeginReadOnly,
    Commit,
    Rollback,
    Savepoint(String),
    Release(String),
    RollbackTo(String),
}

impl TransactionStep {
    /// What a statement says of transactions; `None` where it is about something else.
    pub(in crate::engine) fn of(statement: &DFStatement) -> Option<TransactionStep> {
        let DFStatement::Statement(statement) = statement else { return None };
        match statement.as_ref() {
            SqlStatement::StartTransaction { modes, .. } => Some(match modes.as_slice() {
                modes if modes.contains(&READ_ONLY) => TransactionStep::BeginReadOnly,
                _ => TransactionStep::Begin,
            }),
            SqlStatement::Commit { .. } => Some(TransactionStep::Commit),
            SqlStatement::Rollback { savepoint: None, .. } => Some(TransactionStep::Rollback),
            SqlStatement::Rollback { savepoint: Some(name), .. } => Some(TransactionStep::RollbackTo(spelled(name))),
            SqlStatement::Savepoint { name } => Some(TransactionStep::Savepoint(spelled(name))),
            SqlStatement::ReleaseSavepoint { name } => Some(TransactionStep::Release(spelled(name))),
            _ => None,
        }
    }
}

impl Session {
    /// Whether a transaction is under way.
    pub fn is_in_transaction(&self) -> bool {
        self.transaction.is_some() || self.has_begun
    }

    /// Forgets the transaction under way, if there is one: nothing of it is kept.
    pub fn give_up_transaction(&mut self) {
        self.transaction = None;
        self.has_begun = false;
        self.is_transaction_lost = false;
    }

    /// Forgets the changes of a transaction after an error, unless a savepoint leads back to some of them. For clients whose
    /// transaction can then only end, so that nobody waits for it until they end it.
    pub fn give_up_unless_marked(&mut self) {
        if self.transaction.as_ref().is_some_and(|transaction| transaction.savepoints.is_empty()) {
            self.transaction = None;
        }
    }
}

/// Begins, keeps or forgets a transaction, or a part of it.
pub(in crate::engine) async fn transaction_step(
    session: &mut Session,
    step: TransactionStep,
) -> Result<Outcome, SqlError> {
    if session.is_transaction_lost {
        let is_over = matches!(step, TransactionStep::Begin | TransactionStep::Commit | TransactionStep::Rollback);
        session.is_transaction_lost = !is_over;
        return match step {
            TransactionStep::Rollback => done("rolled back"),
            _ => Err(SqlError::TransactionLost),
        };
    }
    if session.has_begun {
        match &step {
            TransactionStep::Commit | TransactionStep::Rollback => {
                session.has_begun = false;
                return done(if step == TransactionStep::Commit { "committed" } else { "rolled back" });
            }
            TransactionStep::Savepoint(_) => start_changing(session).await?,
            TransactionStep::Release(name) | TransactionStep::RollbackTo(name) => {
                return Err(SqlError::NoSavepoint { name: name.clone() });
            }
            TransactionStep::Begin => return Err(SqlError::InTransaction),
            TransactionStep::BeginReadOnly => {}
        }
    }
    match (step, &mut session.transaction) {
        (TransactionStep::Begin, None) if session.shared.data.is_none() => Err(SqlError::NoDataFolder),
        (TransactionStep::Begin, None) => {
            session.has_begun = true;
            done("began a transaction")
        }
        (TransactionStep::Begin, Some(_)) => Err(SqlError::InTransaction),
        (TransactionStep::BeginReadOnly, _) => Err(SqlError::ReadOnlyTransaction),
        (_, None) => Err(SqlError::NoTransaction),
        (TransactionStep::Savepoint(name), Some(transaction)) => {
            transaction.mark(name)?;
            done("marked a savepoint")
        }
        (TransactionStep::Release(name), Some(transaction)) => {
            let savepoint = transaction.take_savepoint(name)?;
            transaction.change.release(savepoint)?;
            done("released the savepoint")
        }
        (TransactionStep::RollbackTo(name), Some(transaction)) => {
            let savepoint = transaction.take_savepoint(name.clone())?;
            transaction.change.undo(savepoint)?;
            transaction.mark(name)?;
            done("rolled back to the savepoint")
        }
        (step @ (TransactionStep::Commit | TransactionStep::Rollback), open @ Some(_)) => {
            let transaction = open.take().expect("it is open");
            if step == TransactionStep::Commit {
                folder::commit(session, transaction).await?;
                return done("committed");
            }
            transaction.change.rollback()?;
            done("rolled back")
        }
    }
}

/// Takes the turn of a transaction that has changed nothing yet.
async fn start_changing(session: &mut Session) -> Result<(), SqlError> {
    session.transaction = Some(begin(session).await?);
    session.has_begun = false;
    Ok(())
}

/// Waits until nobody else changes the data folder.
pub(in crate::engine) async fn turn(session: &Session) -> Result<ChangeTurn, SqlError> {
    let turn = tokio::time::timeout(WAIT, Arc::clone(&session.shared.turn).lock_owned()).await;
    Ok(turn.map_err(|_| StoreError::Busy { waited_ms: WAIT.as_millis() })?)
}

pub(in crate::engine) async fn begin(session: &Session) -> Result<Transaction, SqlError> {
    let Some(data) = &session.shared.data else { return Err(SqlError::NoDataFolder) };
    let turn = turn(session).await?;
    let store = data.store.clone();
    Ok(Transaction::new(blocking(move || store.write()).await?, turn))
}

/// Does something in the transaction under way, or in one of its own. What fails leaves nothing.
pub(in crate::engine) async fn in_transaction<T>(
    session: &mut Session,
    work: impl AsyncFnOnce(&mut Transaction) -> Result<T, SqlError>,
) -> Result<T, SqlError> {
    if session.has_begun {
        start_changing(session).await?;
    }
    let is_own = session.transaction.is_none();
    let mut transaction = match session.transaction.take() {
        Some(open) => open,
        None => begin(session).await?,
    };
    if is_own {
        let done = work(&mut transaction).await?;
        folder::commit(session, transaction).await?;
        return Ok(done);
    }
    // Whoever stops waiting for this takes the transaction with it.
    session.is_transaction_lost = true;
    let savepoint = transaction.change.savepoint()?;
    let mut done = work(&mut transaction).await;
    if done.is_ok()
        && let Err(unrecorded) = session.ahead().record()
    {
        done = Err(SqlError::Log(unrecorded));
    }
    let ended = match &done {
        Ok(_) => transaction.change.release(savepoint),
        Err(_) => transaction.change.undo(savepoint),
    };
    // A full disk and some other failures end all of it. What comes next must not be taken for a part of nothing.
    session.is_transaction_lost = ended.is_err();
    if ended.is_ok() {
        session.transaction = Some(transaction);
    }
    let done = done?;
    ended?;
    Ok(done)
}

/// Does something in a transaction of its own and keeps it, all on one thread: for a single row, handing it from one
/// to the next would take longer than the row. What nobody waits for any more is not kept.
pub(in crate::engine) async fn in_own_transaction<T: Send + 'static>(
    session: &Session,
    work: impl FnOnce(&mut Transaction) -> Result<T, SqlError> + Send + 'static,
) -> Result<T, SqlError> {
    let Some(data) = &session.shared.data else { return Err(SqlError::NoDataFolder) };
    let turn = turn(session).await?;
    let (store, shared, ahead) = (data.store.clone(), Arc::clone(&session.shared), session.ahead());
    let done = blocking(move || {
        let mut transaction = Transaction::new(store.write()?, turn);
        let done = work(&mut transaction)?;
        shared.keep_then(transaction, &ahead, || ())?;
        Ok::<T, SqlError>(done)
    });
    done.await
}

pub(in crate::engine) fn outside_of_transactions(session: &Session) -> Result<(), SqlError> {
    match (session.is_transaction_lost, session.is_in_transaction()) {
        (true, _) => Err(SqlError::TransactionLost),
        (false, true) => Err(SqlError::NotInTransaction),
        (false, false) => Ok(()),
    }
}

impl Transaction {
    /// A transaction that has changed nothing yet.
    pub(in crate::engine) fn new(change: Change, turn: ChangeTurn) -> Transaction {
        let (touched, renamed, changed) = (Touched::new(), Touched::new(), BTreeSet::new());
        Transaction { change: Arc::new(change), touched, renamed, changed, turn, savepoints: Vec::new() }
    }

    fn mark(&mut self, name: String) -> Result<(), SqlError> {
        let savepoint = self.change.savepoint()?;
        self.savepoints.push((name, savepoint));
        Ok(())
    }

    /// The latest savepoint of this name; those after it end with it.
    fn take_savepoint(&mut self, name: String) -> Result<Savepoint, SqlError> {
        let Some(place) = self.savepoints.iter().rposition(|(known, _)| *known == name) else {
            return Err(SqlError::NoSavepoint { name });
        };
        self.savepoints.truncate(place + 1);
        let (_, savepoint) = self.savepoints.pop().expect("it was found");
        Ok(savepoint)
    }
}

fn done(message: &str) -> Result<Outcome, SqlError> {
    Ok(Outcome::Done(message.to_owned()))
}

/// Runs what takes long, or waits for the disk, on a thread that may. It ends whether or not somebody waits for it.
pub(in crate::engine) async fn blocking<T, E>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, SqlError>
where
    T: Send + 'static,
    E: Into<SqlError> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(Into::into),
        Err(_) => Err(SqlError::Running { what: "a fault of kohort stopped it".to_owned() }),
    }
}
