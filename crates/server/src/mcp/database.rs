//! [`Database`]: the server that questions are put to, one at a time.

use kohort_sql::SqlError;
use kohort_sql::postgres::{PostgresError, ServerAddress, ServerClient};
use tokio::sync::{Mutex, Notify};
use tokio_postgres::SimpleQueryMessage;
use tokio_postgres::error::{DbError, SqlState};

/// Whether the login is an owner's: only owners may make tables.
const IS_OWNER: &str = "SELECT has_schema_privilege('public', 'CREATE')";

/// Ends what a question that was not answered may have left open.
const CLOSE: &str = "CLOSE ALL";

/// A server, reached as one login.
pub(super) struct Database {
    address: ServerAddress,
    client: Mutex<ServerClient>,
}

/// The answer to a question.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Table {
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<Option<String>>>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum DatabaseError {
    #[error(transparent)]
    Server(#[from] PostgresError),
    #[error("the server said something else than was expected")]
    Unexpected,
    /// The server refused a statement. Its messages contain no cell.
    #[error("{message}")]
    Refused { message: String, hint: Option<String> },
    #[error("{0}")]
    Statement(Box<SqlError>),
    #[error("this takes one SELECT statement and nothing else")]
    NotOneQuery,
    #[error("there is no view '{name}' for this login")]
    UnknownView { name: String },
    #[error("'{user}' is an owner, who can read and change the private tables")]
    Owner { user: String },
    #[error("the question was cancelled")]
    Cancelled,
}

impl DatabaseError {
    pub(super) fn hint(&self) -> Option<String> {
        match self {
            DatabaseError::Server(problem) => problem.hint().map(str::to_owned),
            DatabaseError::Refused { hint, .. } => hint.clone(),
            DatabaseError::Statement(problem) => problem.hint(),
            DatabaseError::UnknownView { .. } => Some("list_views names them".to_owned()),
            DatabaseError::Owner { .. } => Some(
                "let agents log in as an analyst: CREATE USER agent PASSWORD '...'; GRANT SELECT ON view TO agent"
                    .to_owned(),
            ),
            DatabaseError::Unexpected | DatabaseError::NotOneQuery | DatabaseError::Cancelled => None,
        }
    }
}

impl Database {
    /// Logs in.
    ///
    /// # Errors
    /// If the server can't be reached, refuses the login, or the login is an owner's.
    pub(super) async fn connect(address: ServerAddress) -> Result<Database, DatabaseError> {
        let client = logged_in(&address).await?;
        Ok(Database { address, client: Mutex::new(client) })
    }

    /// Who is logged in.
    pub(super) fn user(&self) -> &str {
        self.address.user()
    }

    /// Puts a question, after those that were put before, unless it is cancelled first.
    ///
    /// # Errors
    /// If the server does not answer it.
    pub(super) async fn ask(&self, sql: &str, cancelled: &Notify) -> Result<Table, DatabaseError> {
        let mut client = tokio::select! {
            client = self.client.lock() => client,
            () = cancelled.notified() => return Err(DatabaseError::Cancelled),
        };
        if client.client().is_closed() {
            *client = logged_in(&self.address).await?;
        }
        let asked = client.client().simple_query(sql);
        tokio::pin!(asked);
        let answer = tokio::select! {
            answer = &mut asked => answer,
            () = cancelled.notified() => {
                client.cancel().await?;
                // The next question must not be the one that is cancelled, nor find its cursor open.
                let _ = asked.await;
                let _ = client.client().simple_query(CLOSE).await;
                return Err(DatabaseError::Cancelled);
            }
        };
        match answer {
            Ok(messages) => Ok(table(messages)),
            Err(problem) => {
                // A question that failed halfway leaves its cursor open.
                let _ = client.client().simple_query(CLOSE).await;
                Err(problem.as_db_error().map_or_else(|| self.address.problem(&problem).into(), said))
            }
        }
    }
}

/// A new connection of an analyst.
async fn logged_in(address: &ServerAddress) -> Result<ServerClient, DatabaseError> {
    let client = address.connect().await?;
    let asked = client.client().simple_query(IS_OWNER).await;
    let asked = table(asked.map_err(|problem| address.problem(&problem))?);
    match asked.rows.first().and_then(|row| row.first()?.as_deref()) {
        Some("f") => Ok(client),
        Some("t") => Err(DatabaseError::Owner { user: address.user().to_owned() }),
        _ => Err(DatabaseError::Unexpected),
    }
}

fn said(problem: &DbError) -> DatabaseError {
    let message = match *problem.code() {
        SqlState::QUERY_CANCELED => "the question took too long, or was cancelled".to_owned(),
        _ => problem.message().to_owned(),
    };
    DatabaseError::Refused { message, hint: problem.hint().map(str::to_owned) }
}

/// The rows of the last statement that had some.
fn table(messages: Vec<SimpleQueryMessage>) -> Table {
    let mut table = Table::default();
    for message in messages {
        match message {
            SimpleQueryMessage::RowDescription(columns) => {
                let columns = columns.iter().map(|column| column.name().to_owned()).collect();
                table = Table { columns, rows: Vec::new() };
            }
            SimpleQueryMessage::Row(row) => {
                table.rows.push((0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect());
            }
            _ => {}
        }
    }
    table
}
