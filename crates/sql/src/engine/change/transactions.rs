//! Transactions of the data folder.
//!
//! Outside of BEGIN and COMMIT, each statement that changes rows is a transaction by itself. A statement that fails changes
//! nothing, and the transaction around it goes on. A transaction takes its turn to write with its first change or savepoint;
//! until then each of its statements reads the latest committed state. Tables can't be made or dropped inside a transaction. If
//! several savepoints have the same name, the name means the latest, as in PostgreSQL.

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

/// A transaction that holds the turn to write.
pub(crate) struct Transaction {
    pub(crate) change: Arc<Change>,
    /// Values of watched columns in changed rows, before and after the change. Values of rows whose change was undone stay
    /// here, because looking at a person who did not change does no harm.
    pub(crate) touched: Touched,
    /// Values that UPDATE gave to rows which had other values: a person may have a new name.
    pub(crate) renamed: Touched,
    /// Tables whose rows changed.
    pub(crate) changed: BTreeSet<String>,
    pub(crate) turn: ChangeTurn,
    /// Savepoints by name, oldest first.
    savepoints: Vec<(String, Savepoint)>,
}

/// The turn to change the data folder. Nobody else changes it as long as this is held.
pub(crate) type ChangeTurn = tokio::sync::OwnedMutexGuard<()>;

/// How long a change waits for another to end.
const WAIT: Duration = Duration::from_secs(10);

const READ_ONLY: TransactionMode = TransactionMode::AccessMode(TransactionAccessMode::ReadOnly);

/// Values as texts, by table and column.
pub(crate) type Touched = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// A statement about transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TransactionStep {
    Begin,
    BeginReadOnly,
    Commit,
    Rollback,
    Savepoint(String),
    Release(String),
    RollbackTo(String),
}

impl TransactionStep {
    /// A statement as a step of a transaction; `None` if it is about something else.
    pub(crate) fn of(statement: &DFStatement) -> Option<TransactionStep> {
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

/// Whether a session is in a transaction, and whether that transaction has changed anything.
#[derive(Default)]
pub(crate) enum SessionTransaction {
    #[default]
    Outside,
    /// A transaction was begun that has changed nothing yet. It holds no turn, so a session that only reads, or that idles
    /// after BEGIN as drivers do, keeps nobody from writing.
    Begun,
    /// A transaction has changed something.
    Changing(Transaction),
    /// A transaction was given up in the middle of a statement, and the client has not been told yet.
    Lost,
}

impl SessionTransaction {
    /// The transaction that has changed something.
    pub(crate) fn changing(&self) -> Option<&Transaction> {
        match self {
            SessionTransaction::Changing(transaction) => Some(transaction),
            SessionTransaction::Outside | SessionTransaction::Begun | SessionTransaction::Lost => None,
        }
    }

    /// Refuses the next statement of a transaction that was given up.
    pub(crate) fn check(&self) -> Result<(), SqlError> {
        if matches!(self, SessionTransaction::Lost) { Err(SqlError::TransactionLost) } else { Ok(()) }
    }
}

impl Session {
    /// Whether a transaction is under way.
    pub fn is_in_transaction(&self) -> bool {
        matches!(self.transaction, SessionTransaction::Begun | SessionTransaction::Changing(_))
    }

    /// Rolls back the transaction under way, if there is one.
    pub fn give_up_transaction(&mut self) {
        self.transaction = SessionTransaction::Outside;
    }

    /// Rolls back the changes of a transaction after an error, unless it has savepoints. PostgreSQL's clients can only end
    /// such a transaction, so others need not wait until they do.
    pub fn give_up_unless_marked(&mut self) {
        if self.transaction.changing().is_some_and(|transaction| transaction.savepoints.is_empty()) {
            self.transaction = SessionTransaction::Outside;
        }
    }
}

/// Begins, commits or rolls back a transaction or a savepoint.
pub(crate) async fn transaction_step(session: &mut Session, step: TransactionStep) -> Result<Outcome, SqlError> {
    use SessionTransaction::{Begun, Changing, Lost, Outside};
    use TransactionStep as Step;
    match (step, &mut session.transaction) {
        (Step::Rollback, state @ Lost) => {
            *state = Outside;
            done("rolled back")
        }
        (step, state @ Lost) => {
            if matches!(step, Step::Begin | Step::Commit) {
                *state = Outside;
            }
            Err(SqlError::TransactionLost)
        }
        (Step::BeginReadOnly, _) => Err(SqlError::ReadOnlyTransaction),
        (Step::Begin, Begun | Changing(_)) => Err(SqlError::InTransaction),
        (Step::Begin, Outside) if session.shared.store.is_none() => Err(SqlError::NoDataFolder),
        (Step::Begin, state @ Outside) => {
            *state = Begun;
            done("began a transaction")
        }
        (_, Outside) => Err(SqlError::NoTransaction),
        (step @ (Step::Commit | Step::Rollback), state) => {
            let is_committed = step == Step::Commit;
            match std::mem::take(state) {
                Changing(transaction) if is_committed => drop(folder::commit(session, transaction).await?),
                Changing(transaction) => transaction.change.rollback()?,
                Outside | Begun | Lost => {}
            }
            done(if is_committed { "committed" } else { "rolled back" })
        }
        (Step::Savepoint(name), Begun) => {
            let mut transaction = begin(session).await?;
            transaction.mark(name)?;
            session.transaction = Changing(transaction);
            done("marked a savepoint")
        }
        (Step::Savepoint(name), Changing(transaction)) => {
            transaction.mark(name)?;
            done("marked a savepoint")
        }
        (Step::Release(name) | Step::RollbackTo(name), Begun) => Err(SqlError::NoSavepoint { name }),
        (Step::Release(name), Changing(transaction)) => {
            let savepoint = transaction.take_savepoint(name)?;
            transaction.change.release(savepoint)?;
            done("released the savepoint")
        }
        (Step::RollbackTo(name), Changing(transaction)) => {
            let savepoint = transaction.take_savepoint(name.clone())?;
            transaction.change.undo(savepoint)?;
            transaction.mark(name)?;
            done("rolled back to the savepoint")
        }
    }
}

/// Waits until nobody else changes the data folder.
pub(crate) async fn turn(session: &Session) -> Result<ChangeTurn, SqlError> {
    let turn = tokio::time::timeout(WAIT, Arc::clone(&session.shared.turn).lock_owned()).await;
    Ok(turn.map_err(|_| StoreError::Busy { waited_ms: WAIT.as_millis() })?)
}

pub(crate) async fn begin(session: &Session) -> Result<Transaction, SqlError> {
    let store = session.shared.store.clone().ok_or(SqlError::NoDataFolder)?;
    let turn = turn(session).await?;
    Ok(Transaction::new(blocking(move || store.write()).await?, turn))
}

/// Does work in the transaction under way, or in one of its own. If it fails, nothing of it is kept.
pub(crate) async fn in_transaction<T>(
    session: &mut Session,
    work: impl AsyncFnOnce(&mut Transaction) -> Result<T, SqlError>,
) -> Result<T, SqlError> {
    if matches!(session.transaction, SessionTransaction::Begun) {
        session.transaction = SessionTransaction::Changing(begin(session).await?);
    }
    let SessionTransaction::Changing(mut transaction) = std::mem::take(&mut session.transaction) else {
        let mut transaction = begin(session).await?;
        let done = work(&mut transaction).await?;
        folder::commit(session, transaction).await?;
        return Ok(done);
    };
    // If the client stops waiting, this future is dropped, and the transaction with it.
    session.transaction = SessionTransaction::Lost;
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
    // A full disk ends the whole transaction. The next statement must not run as if it were still in one.
    if ended.is_ok() {
        session.transaction = SessionTransaction::Changing(transaction);
    }
    let done = done?;
    ended?;
    Ok(done)
}

/// Does work in a transaction of its own and commits it, all on one thread, because for a single row switching threads takes
/// longer than the row. If the client stops waiting, nothing is kept.
pub(crate) async fn in_own_transaction<T: Send + 'static>(
    session: &Session,
    work: impl FnOnce(&mut Transaction) -> Result<T, SqlError> + Send + 'static,
) -> Result<T, SqlError> {
    let store = session.shared.store.clone().ok_or(SqlError::NoDataFolder)?;
    let turn = turn(session).await?;
    let (shared, ahead) = (Arc::clone(&session.shared), session.ahead());
    let done = blocking(move || {
        let mut transaction = Transaction::new(store.write()?, turn);
        let done = work(&mut transaction)?;
        shared.keep_then(transaction, &ahead, || ())?;
        Ok::<T, SqlError>(done)
    });
    done.await
}

pub(crate) fn outside_of_transactions(session: &Session) -> Result<(), SqlError> {
    session.transaction.check()?;
    if session.is_in_transaction() { Err(SqlError::NotInTransaction) } else { Ok(()) }
}

impl Transaction {
    /// A transaction that has changed nothing yet.
    pub(crate) fn new(change: Change, turn: ChangeTurn) -> Transaction {
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

/// Runs work that takes long or waits for the disk on a thread that may block. The work goes on even if the caller stops
/// waiting.
pub(crate) async fn blocking<T, E>(work: impl FnOnce() -> Result<T, E> + Send + 'static) -> Result<T, SqlError>
where
    T: Send + 'static,
    E: Into<SqlError> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(Into::into),
        Err(_) => Err(SqlError::Running { what: "a fault of kohort stopped it".to_owned() }),
    }
}
