//! [`Request`]: a statement by what must be done: by the engine, or by the connection itself (cursors, transactions and
//! settings of PostgreSQL).

use datafusion::sql::parser::{ResetStatement, Statement as DFStatement};
use datafusion::sql::sqlparser::ast::{
    CloseCursor, ContextModifier, DeclareType, DiscardObject, FetchDirection, Set, Statement as SqlStatement,
    TransactionMode, Value,
};
use kohort_sql::Session;
use kohort_sql::parser::{AccessStatement, Parsed, Statement, StatementText, Statements, spelled};

use crate::catalog::PgCatalog;
use crate::error::AnswerError;
use crate::setting_calls;
use crate::settings::{SettingScope, Settings, text_of};

/// A statement for a connection.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    /// A query for the engine.
    Rows(Box<Parsed>),
    /// A statement for the engine that returns no rows, with its command tag.
    Command {
        parsed: Box<Parsed>,
        tag: &'static str,
    },
    /// A statement that changes rows of a table and returns their number.
    Change {
        parsed: Box<Parsed>,
        tag: &'static str,
    },
    Transaction(Transaction),
    /// Sets a setting of PostgreSQL, or resets it if there is no value.
    Set {
        name: String,
        value: Option<String>,
        scope: SettingScope,
    },
    /// Sets an option of views for the current transaction.
    SetLocalOption {
        name: String,
        parsed: Box<Parsed>,
    },
    /// Resets an option of views, or everything.
    Reset(Option<String>),
    /// Sets the modes of the current transaction, or of all later ones.
    SetTransaction {
        modes: Vec<TransactionMode>,
        scope: SettingScope,
    },
    /// Shows the setting of this name.
    Show(String),
    Health,
    Declare {
        name: String,
        query: Box<Parsed>,
    },
    Fetch {
        name: String,
        max_rows: Option<usize>,
    },
    /// Passes over rows of a cursor.
    Move {
        name: String,
        max_rows: Option<usize>,
    },
    /// A query without tables that reads or sets settings.
    Configure(Box<Parsed>),
    CloseCursor(Option<String>),
    /// Prepares a statement.
    Prepare {
        name: String,
        parsed: Box<Parsed>,
    },
    /// Removes a prepared statement, or all.
    Deallocate(Option<String>),
    DiscardAll,
    /// Accepted without any effect.
    Nothing(&'static str),
}

/// A statement about a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Transaction {
    Begin { tag: &'static str, modes: Vec<TransactionMode> },
    Commit,
    Rollback,
    Savepoint(String),
    Release(String),
    RollbackToSavepoint(String),
}

impl Request {
    /// Reads the statements of a text.
    pub(crate) fn read(
        text: &str,
        session: &Session,
        catalog: &PgCatalog,
        settings: &Settings,
    ) -> Result<Vec<Request>, AnswerError> {
        let statements = Statements::sent_by(session.role(), text).map_err(|problem| session.unread(text, problem))?;
        let problem = match statements.parse() {
            Ok(parsed) => return parsed.into_iter().map(|parsed| Request::of(parsed, catalog, settings)).collect(),
            Err(problem) => problem,
        };
        // The rewriting parser checks neither the number nor the depth of statements.
        let is_tried = statements.n_statements() == 1 && !problem.is_too_deep();
        let Some(statement) = is_tried.then(|| catalog.read(text)).flatten() else {
            return Err(session.unread(text, problem).into());
        };
        let parsed = of_query(statement, StatementText::of(text));
        parsed.check_depth().map_err(|problem| session.unread(text, problem))?;
        Ok(vec![Request::Rows(Box::new(parsed))])
    }

    fn of(parsed: Parsed, catalog: &PgCatalog, settings: &Settings) -> Result<Request, AnswerError> {
        let sql = match &parsed.statement {
            Statement::Sql(sql) => sql.as_ref(),
            Statement::Move { cursor, direction } => {
                return Ok(Request::Move { name: cursor.clone(), max_rows: fetched(direction)? });
            }
            own => {
                let tag = own_tag(own);
                let parsed = Box::new(parsed);
                return Ok(tag.map_or(Request::Rows(parsed.clone()), |tag| Request::Command { parsed, tag }));
            }
        };
        let statement = match sql {
            DFStatement::Statement(statement) => statement.as_ref(),
            DFStatement::Explain(_) => return Ok(Request::Rows(Box::new(parsed))),
            DFStatement::Reset(ResetStatement::Variable(name)) if settings.knows(&name.to_string()) => {
                return Ok(Request::Set { name: name.to_string(), value: None, scope: SettingScope::Session });
            }
            DFStatement::Reset(ResetStatement::Variable(name)) if name.to_string().eq_ignore_ascii_case("all") => {
                return Ok(Request::Reset(None));
            }
            DFStatement::Reset(ResetStatement::Variable(name)) if is_option(&name.to_string()) => {
                return Ok(Request::Reset(Some(name.to_string())));
            }
            DFStatement::Reset(_) => return Ok(Request::Command { parsed: Box::new(parsed), tag: "RESET" }),
            DFStatement::CreateExternalTable(_) => {
                return Ok(Request::Command { parsed: Box::new(parsed), tag: "CREATE TABLE" });
            }
            DFStatement::CopyTo(_) => return Ok(Request::Change { parsed: Box::new(parsed), tag: "COPY" }),
        };
        Ok(match statement {
            SqlStatement::Query(query) if setting_calls::calls_of(query).is_some() => {
                Request::Configure(Box::new(parsed))
            }
            SqlStatement::Query(_) => match catalog.rewrite(statement, &parsed.text.written) {
                Some(rewritten) => Request::Rows(Box::new(of_query(rewritten, parsed.text.clone()))),
                None => Request::Rows(Box::new(parsed)),
            },
            SqlStatement::Explain { .. } | SqlStatement::ShowTables { .. } | SqlStatement::ShowColumns { .. } => {
                Request::Rows(Box::new(parsed))
            }
            SqlStatement::ExplainTable { .. } | SqlStatement::Execute { .. } => Request::Rows(Box::new(parsed)),
            SqlStatement::ShowVariable { variable } => {
                let name = variable.iter().map(|part| part.value.as_str()).collect::<Vec<_>>();
                let (dotted, spaced) = (name.join("."), name.join(" "));
                if dotted.eq_ignore_ascii_case("kohort.health") {
                    Request::Health
                } else if settings.knows(&spaced) {
                    Request::Show(spaced)
                } else {
                    Request::Rows(Box::new(parsed))
                }
            }
            SqlStatement::Set(set) => match of_set(set, settings) {
                Some(request) => request,
                None => of_option(parsed),
            },
            SqlStatement::StartTransaction { begin, modes, .. } => {
                let tag = if *begin { "BEGIN" } else { "START TRANSACTION" };
                Request::Transaction(Transaction::Begin { tag, modes: modes.clone() })
            }
            SqlStatement::Commit { .. } => Request::Transaction(Transaction::Commit),
            SqlStatement::Rollback { savepoint: None, .. } => Request::Transaction(Transaction::Rollback),
            SqlStatement::Rollback { savepoint: Some(name), .. } => {
                Request::Transaction(Transaction::RollbackToSavepoint(name.to_string()))
            }
            SqlStatement::Savepoint { name } => Request::Transaction(Transaction::Savepoint(name.to_string())),
            SqlStatement::ReleaseSavepoint { name } => Request::Transaction(Transaction::Release(name.to_string())),
            SqlStatement::Declare { stmts } => match stmts.as_slice() {
                [declared] if declared.declare_type == Some(DeclareType::Cursor) && declared.names.len() == 1 => {
                    let name = declared.names[0].value.clone();
                    let Some(query) = declared.for_query.clone() else { return Err(unsupported("this DECLARE")) };
                    let query = SqlStatement::Query(query);
                    let query = catalog.rewrite(&query, &query.to_string()).unwrap_or(query);
                    let query = of_query(query, parsed.text.clone());
                    Request::Declare { name, query: Box::new(Parsed { pair: parsed.pair.clone(), ..query }) }
                }
                _ => return Err(unsupported("this DECLARE")),
            },
            SqlStatement::Fetch { name, direction, into: None, .. } => {
                Request::Fetch { name: name.value.clone(), max_rows: fetched(direction)? }
            }
            SqlStatement::Close { cursor } => Request::CloseCursor(match cursor {
                CloseCursor::All => None,
                CloseCursor::Specific { name } => Some(name.value.clone()),
            }),
            SqlStatement::Deallocate { name, .. } => Request::Deallocate(
                Some(spelled(name)).filter(|spelled| name.quote_style.is_some() || spelled != "all"),
            ),
            SqlStatement::Discard { object_type: DiscardObject::ALL } => Request::DiscardAll,
            SqlStatement::Discard { .. } => Request::Nothing("DISCARD"),
            // Nobody can LISTEN, so there is nothing to end.
            SqlStatement::UNLISTEN { .. } => Request::Nothing("UNLISTEN"),
            SqlStatement::LISTEN { .. } => return Err(unsupported("LISTEN")),
            SqlStatement::NOTIFY { .. } => return Err(unsupported("NOTIFY")),
            SqlStatement::Insert(_) => Request::Change { parsed: Box::new(parsed), tag: "INSERT 0" },
            SqlStatement::Update(_) => Request::Change { parsed: Box::new(parsed), tag: "UPDATE" },
            SqlStatement::Delete(_) => Request::Change { parsed: Box::new(parsed), tag: "DELETE" },
            SqlStatement::Copy { .. } => Request::Change { parsed: Box::new(parsed), tag: "COPY" },
            SqlStatement::Prepare { name, .. } => Request::Prepare { name: spelled(name), parsed: Box::new(parsed) },
            SqlStatement::CreateTable(_) => Request::Command { parsed: Box::new(parsed), tag: "CREATE TABLE" },
            SqlStatement::CreateView(_) => Request::Command { parsed: Box::new(parsed), tag: "CREATE VIEW" },
            SqlStatement::Drop { .. } => Request::Command { parsed: Box::new(parsed), tag: "DROP" },
            _ => Request::Command { parsed: Box::new(parsed), tag: "DONE" },
        })
    }

    /// The statement, if it can have parameters.
    pub(crate) fn parsed(&self) -> Option<&Parsed> {
        match self {
            Request::Rows(parsed) | Request::Configure(parsed) => Some(parsed),
            Request::Command { parsed, .. } | Request::Change { parsed, .. } => Some(parsed),
            Request::Declare { query, .. } => Some(query),
            _ => None,
        }
    }

    pub(crate) fn parsed_mut(&mut self) -> Option<&mut Parsed> {
        match self {
            Request::Rows(parsed) | Request::Configure(parsed) => Some(parsed),
            Request::Command { parsed, .. } | Request::Change { parsed, .. } => Some(parsed),
            Request::Declare { query, .. } => Some(query),
            _ => None,
        }
    }

    /// Whether the request may run in a failed transaction.
    pub(crate) fn ends_transaction(&self) -> bool {
        let Request::Transaction(transaction) = self else { return false };
        matches!(transaction, Transaction::Commit | Transaction::Rollback | Transaction::RollbackToSavepoint(_))
    }
}

fn of_query(statement: SqlStatement, text: StatementText) -> Parsed {
    let statement = Statement::Sql(Box::new(DFStatement::Statement(Box::new(statement))));
    Parsed { statement, pair: kohort_sql::policy::Pair::default(), text }
}

/// A SET of a PostgreSQL setting; `None` if it sets an option of the engine.
fn of_set(set: &Set, settings: &Settings) -> Option<Request> {
    match set {
        Set::SingleAssignment { scope, variable, values, .. } if settings.knows(&variable.to_string()) => {
            let scope = scope_of(scope.as_ref());
            Some(Request::Set { name: variable.to_string(), value: text_of(values), scope })
        }
        Set::SetTimeZone { local, value } => {
            let (name, value) = ("timezone".to_owned(), text_of(std::slice::from_ref(value)));
            Some(Request::Set { name, value, scope: if *local { SettingScope::Local } else { SettingScope::Session } })
        }
        Set::SetNames { charset_name, .. } => {
            let (name, value) = ("client_encoding".to_owned(), Some(charset_name.value.clone()));
            Some(Request::Set { name, value, scope: SettingScope::Session })
        }
        Set::SetTransaction { modes, session, .. } => {
            let scope = if *session { SettingScope::Session } else { SettingScope::Local };
            Some(Request::SetTransaction { modes: modes.clone(), scope })
        }
        _ => None,
    }
}

/// A SET of an option of views, without its scope, which the engine does not know.
fn of_option(mut parsed: Parsed) -> Request {
    let Statement::Sql(sql) = &mut parsed.statement else {
        return Request::Command { parsed: parsed.into(), tag: "SET" };
    };
    if let DFStatement::Statement(statement) = sql.as_mut()
        && let SqlStatement::Set(Set::SingleAssignment { scope, variable, .. }) = statement.as_mut()
        && let Some(SettingScope::Local) = scope.take().map(|scope| scope_of(Some(&scope)))
    {
        let name = variable.to_string();
        return Request::SetLocalOption { name, parsed: Box::new(parsed) };
    }
    Request::Command { parsed: Box::new(parsed), tag: "SET" }
}

fn scope_of(scope: Option<&ContextModifier>) -> SettingScope {
    if matches!(scope, Some(ContextModifier::Local)) { SettingScope::Local } else { SettingScope::Session }
}

fn is_option(name: &str) -> bool {
    name.to_lowercase().starts_with("kohort.")
}

/// The number of rows of a FETCH; `None` means all.
fn fetched(direction: &FetchDirection) -> Result<Option<usize>, AnswerError> {
    let number = |limit: &Value| match limit {
        Value::Number(digits, _) => digits.parse().ok(),
        _ => None,
    };
    let rows = match direction {
        FetchDirection::Next | FetchDirection::Forward { limit: None } => Some(Some(1)),
        FetchDirection::Count { limit } | FetchDirection::Forward { limit: Some(limit) } => {
            number(&limit.value).map(Some)
        }
        FetchDirection::All | FetchDirection::ForwardAll => Some(None),
        _ => None,
    };
    rows.ok_or_else(|| unsupported("FETCH or MOVE in this direction"))
}

fn unsupported(what: &str) -> AnswerError {
    AnswerError::statement("0A000", format!("{what} is not supported"))
}

/// The command tag of one of our own statements; `None` if it returns rows.
fn own_tag(statement: &Statement) -> Option<&'static str> {
    Some(match statement {
        Statement::CreateHierarchy { .. } => "CREATE DGH",
        // Not INSERT, because psql expects a number of rows after that.
        Statement::InsertHierarchy { .. } => "ALTER DGH",
        Statement::DropHierarchy { .. } => "DROP DGH",
        Statement::CreateView(_) => "CREATE ANONYMIZATION_VIEW",
        Statement::DropView { .. } => "DROP ANONYMIZATION_VIEW",
        Statement::RefreshView { .. } => "REFRESH ANONYMIZATION_VIEW",
        Statement::ImportPolicy { .. } => "IMPORT POLICY",
        Statement::CopyFrom { .. } => "COPY",
        Statement::Backup { .. } => "BACKUP",
        Statement::Access(AccessStatement::CreateUser { .. }) => "CREATE ROLE",
        Statement::Access(AccessStatement::SetPassword { .. }) => "ALTER ROLE",
        Statement::Access(AccessStatement::DropUser { .. }) => "DROP ROLE",
        Statement::Access(AccessStatement::Grant { .. }) => "GRANT",
        Statement::Access(AccessStatement::Revoke { .. }) => "REVOKE",
        _ => return None,
    })
}
