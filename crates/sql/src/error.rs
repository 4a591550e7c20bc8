//! [`SqlError`]: why a statement gave no answer, and what to do about it.

mod state;

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use kohort_io::ReadError;
use kohort_labels::meaning::MeaningError;
use kohort_labels::rewrite::RewriteError;
use kohort_store::StoreError;

use crate::access::AccessError;
use crate::hierarchies::DghError;
use crate::parser::ParseError;
use crate::policy::ImportError;
use crate::postgres::PostgresError;
use crate::view::{MaterializedError, ViewError, kind_of};

/// Why a statement gave no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqlError {
    /// It is no statement.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// A DGH is wrong.
    #[error(transparent)]
    Hierarchy(#[from] DghError),
    /// A view can't be built or read.
    #[error(transparent)]
    View(#[from] ViewError),
    /// A policy file can't be imported.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A query compares labels in a way that means nothing.
    #[error(transparent)]
    Refused(#[from] RewriteError),
    /// A query compares labels with something that is no value.
    #[error(transparent)]
    Meaning(#[from] MeaningError),
    /// A user or a grant can't be made or used.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// A statement about users where nobody can log in.
    #[error("there are no users here")]
    NoAccounts,
    /// A table of a PostgreSQL server can't be made or read.
    #[error(transparent)]
    Postgres(#[from] PostgresError),
    /// An analyst asks for what is not theirs.
    #[error("an analyst may not run this: {what}")]
    NotAllowed {
        /// What it is.
        what: &'static str,
    },
    /// There is no such view.
    #[error("there is no anonymization view '{name}'")]
    UnknownView {
        /// The name.
        name: String,
    },
    /// There is something else of this name.
    #[error("'{name}' exists already")]
    Exists {
        /// The name.
        name: String,
    },
    /// A table or plain view that is none.
    #[error("there is no {noun} '{name}'")]
    UnknownTable {
        /// What it should be.
        noun: &'static str,
        /// The name.
        name: String,
    },
    /// A statement about schemas.
    #[error("there is one schema, public, which is neither made nor dropped")]
    OneSchema,
    /// A statement that can't be prepared.
    #[error("what makes or drops something can't be prepared")]
    NotPrepared,
    /// A statement about tables that names a view.
    #[error("'{name}' is an anonymization view, which this statement can't change")]
    IsView {
        /// The name.
        name: String,
    },
    /// A table of this name is there, and is not replaced.
    #[error("'{name}' exists already")]
    Taken {
        /// The name.
        name: String,
    },
    /// A view whose answers depend on its members' values, beside another table.
    #[error("'{name}' answers by the values of its members (ANSWERS MATCHING), so it can't be joined with anything")]
    MatchingJoined {
        /// The view.
        name: String,
    },
    /// A view that reads a view.
    #[error("an anonymization view can't read another one, '{name}'")]
    ViewOnView {
        /// The one that is read.
        name: String,
    },
    /// A view that would not be the same twice.
    #[error(
        "the query of an anonymization view must give the same rows every time, and this one holds a function that does not"
    )]
    Volatile,
    /// A purpose for a statement that asks nothing.
    #[error("PURPOSE and RECIPIENT belong to a query, and this statement asks nothing")]
    NothingAsked,
    /// `EXPLAIN UTILITY` of something it can't measure.
    #[error("EXPLAIN UTILITY is for SELECT ... FROM one anonymization view WHERE ..., if it is not materialized")]
    NoUtility,
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A transaction in a transaction.
    #[error("a transaction is under way already")]
    InTransaction,
    /// A transaction that is not to change anything, of a session that can't promise it.
    #[error("a transaction of the data folder is READ WRITE")]
    ReadOnlyTransaction,
    /// The end of a transaction that was never begun.
    #[error("no transaction is under way")]
    NoTransaction,
    /// A savepoint that is none.
    #[error("there is no savepoint {name} in this transaction")]
    NoSavepoint {
        /// Its name.
        name: String,
    },
    /// A transaction whose statement was given up.
    #[error("the transaction was given up with the statement that was stopped or failed, and nothing of it is kept")]
    TransactionLost,
    /// A statement about tables in a transaction.
    #[error("tables, indexes, views, users and grants are made and dropped outside of transactions")]
    NotInTransaction,
    /// A statement that needs a data folder.
    #[error("this needs a data folder")]
    NoDataFolder,
    /// A statement about a stored table that names another.
    #[error("'{name}' is no table of the data folder")]
    NotStored {
        /// The name.
        name: String,
    },
    /// What stored tables do not do.
    #[error("stored tables do not take {what}")]
    NotForStored {
        /// What it is.
        what: &'static str,
    },
    /// A table that a view is made from.
    #[error("the materialized view '{view}' is made from '{name}'")]
    InUse {
        /// The table.
        name: String,
        /// The view.
        view: String,
    },
    /// A materialized view that would be replaced.
    #[error("'{name}' is a materialized view: whoever kept its answers could combine them with those of another")]
    Kept {
        /// The view.
        name: String,
    },
    /// A view that is computed and would be replaced by one that is materialized.
    #[error("'{name}' is computed: whoever kept its answers could combine them with those of a materialized view")]
    Computed {
        /// The view.
        name: String,
    },
    /// A way to refresh a view that is for others.
    #[error("'{name}' is not materialized: a REFRESH shows all of it anew, and there is no PARTIAL or FORCE")]
    NotMaterialized {
        /// The view.
        name: String,
    },
    /// A data folder whose records a newer kohort wrote.
    #[error("the views and users of the data folder are of format {found}; this kohort reads formats up to {known}")]
    NewerFormat {
        /// The format of the folder.
        found: u64,
        /// The newest format that is known here.
        known: u64,
    },
    /// Something a data folder keeps that can't be read.
    #[error("the data folder is damaged: {what} can't be read")]
    Damaged {
        /// What it is.
        what: String,
    },
    /// A file that can't be opened.
    #[error("'{file}' can't be read: {kind}")]
    File {
        /// The file.
        file: String,
        /// Why.
        kind: std::io::ErrorKind,
    },
    /// A file whose name does not say what it is.
    #[error("'{file}' is no .csv, .csv.gz, .csv.zst, .parquet or .arrow file")]
    UnknownFormat {
        /// The file.
        file: String,
    },
    /// A file with columns that the table lacks. Without a header what stands for their names are cells.
    #[error("{n_unknown} of the {n_columns} columns of '{file}' {} not in the table", if *n_unknown == 1 { "is" } else { "are" })]
    OtherColumns {
        /// The file.
        file: String,
        /// How many.
        n_unknown: usize,
        /// Of so many.
        n_columns: usize,
    },
    /// A file that is not what it should be.
    #[error("'{file}': {problem}")]
    Unreadable {
        /// The file.
        file: String,
        /// What is wrong with it.
        problem: ReadError,
    },
    /// The record of the statement could not be kept.
    #[error("the compliance log can't be written, so nothing is answered: {0}")]
    Log(std::io::Error),
    /// A query failed on some value. What DataFusion says of it may quote a cell, so only its kind is kept.
    #[error("the query failed while it ran: {what}")]
    Running {
        /// What kind of failure, and where in a file.
        what: String,
    },
    /// A whole number that its type can't hold.
    #[error("a whole number is out of range")]
    OutOfRange,
    /// Something was divided by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// A missing value where there must be one.
    #[error("a column that must have a value was given none")]
    NoValue,
    /// A query of functions that may take more memory than there is.
    #[error("the query could make more than {} KB of values per row", .most / 1024)]
    TooLarge {
        /// Bytes that it may make.
        most: u64,
    },
    /// A CUBE of more groupings than anybody could read.
    #[error("CUBE of {n} columns groups rows in 2^{n} ways, and {most} is the most it takes")]
    TooManyGroupings {
        /// So many columns.
        n: usize,
        /// So many it may be.
        most: usize,
    },
    /// A function that makes texts or lists of a length that nobody can tell beforehand.
    #[error("an analyst may not use {function}: how large what it makes can be is not known beforehand")]
    UnknownGrowth {
        /// Its name.
        function: String,
    },
    /// What was gathered from many rows, where it would stand beside each of many.
    #[error("what string_agg and array_agg gather can't be joined, repeated or gathered again")]
    Gathered,
    /// A query of functions that compute for long without a pause.
    #[error("the query could compute for too long at once")]
    TooSlow,
    /// A query that was ended before it took what others need.
    #[error("the query needs more memory than it may use")]
    OutOfMemory,
    /// No process could be started for a statement, which runs in none of ours instead.
    #[error("no process could be started for the statement: {kind}")]
    NoWorker {
        /// Why.
        kind: std::io::ErrorKind,
    },
    /// The process of a statement ended and said nothing.
    #[error("the process that ran the statement has ended")]
    WorkerLost,
    /// A panic in the process of a statement.
    #[error("a fault of kohort stopped the statement at {place}")]
    StatementFault {
        /// Where in the code.
        place: String,
    },
    /// Anything DataFusion says of a statement, before it looks at data.
    #[error("{}", first_line(.0))]
    Query(DataFusionError),
}

impl SqlError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            SqlError::Parse(problem) => problem.hint(),
            SqlError::Hierarchy(fault) => fault.hint(),
            SqlError::View(problem) => problem.hint(),
            SqlError::Import(problem) => problem.hint(),
            SqlError::Refused(refusal) => refusal.hint(),
            SqlError::Meaning(problem) => problem.hint(),
            SqlError::Access(problem) => problem.hint(),
            SqlError::Postgres(problem) => problem.hint().map(str::to_owned),
            SqlError::NotAllowed { .. } => {
                Some("analysts read anonymization views: SELECT, EXPLAIN, SET, SHOW".to_owned())
            }
            SqlError::UnknownView { .. } => Some("SHOW ANONYMIZATION_VIEWS lists them".to_owned()),
            SqlError::Exists { .. } => Some("write CREATE OR REPLACE to replace it".to_owned()),
            SqlError::UnknownTable { .. } => Some("SHOW TABLES lists tables and views".to_owned()),
            SqlError::OneSchema => Some("tables are made and dropped one by one".to_owned()),
            SqlError::NotPrepared => Some("run it as it is".to_owned()),
            SqlError::IsView { name } => {
                Some(format!("change its tables and REFRESH it, or DROP ANONYMIZATION_VIEW {name}"))
            }
            SqlError::Taken { .. } => Some("DROP it first, or take another name".to_owned()),
            SqlError::MatchingJoined { .. } => Some("define a view with ANSWERS VIEW for joins".to_owned()),
            SqlError::ViewOnView { .. } => Some("read the tables below it instead".to_owned()),
            SqlError::Volatile => Some("leave out functions such as random() and now()".to_owned()),
            SqlError::NothingAsked => {
                Some("give them to EXECUTE, or to the session: SET kohort.purpose = 'care'".to_owned())
            }
            SqlError::NoAccounts => Some("users log in to kohort-serve".to_owned()),
            SqlError::Store(error) => error.hint().map(str::to_owned),
            SqlError::InTransaction => Some("COMMIT or ROLLBACK first".to_owned()),
            SqlError::NoTransaction => Some("BEGIN starts one".to_owned()),
            SqlError::NoSavepoint { .. } => Some("SAVEPOINT name marks one".to_owned()),
            SqlError::TransactionLost => Some("ROLLBACK, and begin again".to_owned()),
            SqlError::NotInTransaction => {
                Some("COMMIT or ROLLBACK first, or turn autocommit on where a driver begins transactions".to_owned())
            }
            SqlError::NoDataFolder => Some("start with --data FOLDER".to_owned()),
            SqlError::NotStored { .. } => Some("CREATE TABLE makes one".to_owned()),
            SqlError::InUse { view, .. } => Some(format!("DROP ANONYMIZATION_VIEW {view} first")),
            SqlError::Kept { name } => Some(format!("REFRESH it, or DROP ANONYMIZATION_VIEW {name} first")),
            SqlError::Computed { name } => {
                Some(format!("take another name, or DROP ANONYMIZATION_VIEW {name} first and grant it anew"))
            }
            SqlError::NotMaterialized { name } => Some(format!("write REFRESH ANONYMIZATION_VIEW {name}")),
            SqlError::ReadOnlyTransaction => Some("write BEGIN".to_owned()),
            SqlError::NewerFormat { .. } => Some("use the kohort that wrote it, or a newer one".to_owned()),
            SqlError::Damaged { .. } => Some("restore the data folder from a backup".to_owned()),
            SqlError::OutOfMemory => Some("ask for less at once, or give the server more query_memory".to_owned()),
            SqlError::OtherColumns { .. } => {
                Some("columns are found by their names, which the first line of a CSV file has to give".to_owned())
            }
            SqlError::Unreadable { problem: ReadError::RaggedRows { .. }, .. } => {
                Some("quote cells that hold the separator".to_owned())
            }
            SqlError::Unreadable { problem: ReadError::InvalidText { .. }, .. } => {
                Some("the file has to be UTF-8".to_owned())
            }
            SqlError::Unreadable { problem, .. } => problem.hint(),
            SqlError::NotForStored { .. } | SqlError::File { .. } | SqlError::UnknownFormat { .. } => None,
            SqlError::TooLarge { .. } => Some(
                "texts are repeated, filled up or put together too often, or by a number that is not written out"
                    .to_owned(),
            ),
            SqlError::TooManyGroupings { .. } => Some("GROUPING SETS names the groupings you need".to_owned()),
            SqlError::UnknownGrowth { .. } => Some("write it with other functions".to_owned()),
            SqlError::Gathered => Some("let the outermost query gather, after everything is joined".to_owned()),
            SqlError::TooSlow => {
                Some("compare shorter texts, with simpler patterns, or fewer of them at once".to_owned())
            }
            SqlError::OutOfRange => {
                Some("compute with DOUBLE or DECIMAL, e.g. sum(CAST(x AS DECIMAL(38, 0)))".to_owned())
            }
            SqlError::DivisionByZero => Some("NULLIF(x, 0) makes a zero NULL".to_owned()),
            SqlError::NoValue => Some("DESCRIBE says of each column whether it takes NULL".to_owned()),
            SqlError::NoWorker { .. } => {
                Some("the server's user may start too few processes, or memory is short".to_owned())
            }
            SqlError::StatementFault { .. } => Some("please report the place it names".to_owned()),
            SqlError::WorkerLost => Some("ask again".to_owned()),
            SqlError::NoUtility | SqlError::Log(_) | SqlError::Running { .. } | SqlError::Query(_) => None,
        }
    }

    /// An error that came up while data were looked at. Errors of ours stay as they are.
    pub fn while_running(error: DataFusionError) -> SqlError {
        match SqlError::from(error) {
            SqlError::Query(error) => match error.find_root() {
                // Said of the statement, whatever the data are.
                DataFusionError::Plan(_)
                | DataFusionError::SchemaError(..)
                | DataFusionError::SQL(..)
                | DataFusionError::NotImplemented(_)
                | DataFusionError::Configuration(_) => SqlError::Query(error),
                DataFusionError::ResourcesExhausted(_) => SqlError::OutOfMemory,
                DataFusionError::ArrowError(problem, _) if is_missing_value(problem) => SqlError::NoValue,
                DataFusionError::ArrowError(problem, _) if matches!(**problem, ArrowError::ArithmeticOverflow(_)) => {
                    SqlError::OutOfRange
                }
                DataFusionError::ArrowError(problem, _) if matches!(**problem, ArrowError::DivideByZero) => {
                    SqlError::DivisionByZero
                }
                DataFusionError::ArrowError(problem, _) => {
                    let what = wrong_value(problem).unwrap_or_else(|| kind_of(&error).to_owned());
                    SqlError::Running { what }
                }
                _ => SqlError::Running { what: kind_of(&error).to_owned() },
            },
            ours => ours,
        }
    }

    /// The exit code of a command that ends with it: 1 where a requirement can't be reached, 2 where the statement or
    /// its data are wrong, 3 where the file system or kohort failed.
    pub fn exit_code(&self) -> u8 {
        match self {
            SqlError::View(ViewError::Unreachable(_) | ViewError::Unusable { .. }) => 1,
            SqlError::View(ViewError::NotReplaced { .. }) => 1,
            SqlError::View(ViewError::Materialized(MaterializedError::Exposes { .. })) => 1,
            SqlError::View(ViewError::Unverified(_)) | SqlError::Log(_) => 3,
            SqlError::Access(AccessError::Records(_) | AccessError::NoRandomness) => 3,
            SqlError::Store(error) | SqlError::View(ViewError::Materialized(MaterializedError::Store(error))) => {
                match error {
                    StoreError::Full
                    | StoreError::Corrupt { .. }
                    | StoreError::ReadOnly { .. }
                    | StoreError::Unreadable { .. }
                    | StoreError::Io { .. }
                    | StoreError::Sqlite { .. } => 3,
                    _ => 2,
                }
            }
            SqlError::View(ViewError::Materialized(MaterializedError::Damaged { .. })) | SqlError::Damaged { .. } => 3,
            SqlError::OutOfMemory => 3,
            SqlError::NoWorker { .. } | SqlError::WorkerLost | SqlError::StatementFault { .. } => 3,
            SqlError::Query(DataFusionError::IoError(_) | DataFusionError::ResourcesExhausted(_)) => 3,
            SqlError::Query(DataFusionError::Internal(_)) => 3,
            _ => 2,
        }
    }

    /// Whether the statement was well formed but not allowed.
    pub fn is_refusal(&self) -> bool {
        match self {
            SqlError::NotAllowed { .. } | SqlError::Refused(_) | SqlError::MatchingJoined { .. } => true,
            SqlError::UnknownGrowth { .. } => true,
            SqlError::View(ViewError::Policy(problem)) => problem.is_refusal(),
            SqlError::Access(problem) => problem.is_refusal(),
            _ => false,
        }
    }
}

/// Errors of ours that travelled through DataFusion come out as they went in.
impl From<DataFusionError> for SqlError {
    fn from(error: DataFusionError) -> Self {
        let mut error = error;
        loop {
            error = match error {
                DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => *inner,
                DataFusionError::Shared(inner) => match std::sync::Arc::try_unwrap(inner) {
                    Ok(inner) => inner,
                    Err(shared) => {
                        return ours_in(&shared).unwrap_or_else(|| SqlError::Query(DataFusionError::Shared(shared)));
                    }
                },
                DataFusionError::External(inner) => return from_external(inner),
                other => return SqlError::Query(other),
            };
        }
    }
}

/// An error of ours that others hold too: parallel parts of a query all fail with the first failure.
fn ours_in(shared: &DataFusionError) -> Option<SqlError> {
    let DataFusionError::External(error) = shared.find_root() else { return None };
    if let Some(refusal) = error.downcast_ref::<RewriteError>() {
        return Some(SqlError::Refused(refusal.clone()));
    }
    if let Some(problem) = error.downcast_ref::<MeaningError>() {
        return Some(SqlError::Meaning(problem.clone()));
    }
    if let Some(problem) = error.downcast_ref::<PostgresError>() {
        return Some(SqlError::Postgres(problem.clone()));
    }
    match error.downcast_ref::<ViewError>()? {
        ViewError::Stale => Some(SqlError::View(ViewError::Stale)),
        ViewError::Unusable { view, reason } => {
            Some(SqlError::View(ViewError::Unusable { view: view.clone(), reason: reason.clone() }))
        }
        ViewError::Query { view, kind } => Some(SqlError::View(ViewError::Query { view: view.clone(), kind })),
        _ => None,
    }
}

fn from_external(error: Box<dyn std::error::Error + Send + Sync>) -> SqlError {
    let error = match error.downcast::<ViewError>() {
        Ok(problem) => return SqlError::View(*problem),
        Err(error) => error,
    };
    let error = match error.downcast::<RewriteError>() {
        Ok(refusal) => return SqlError::Refused(*refusal),
        Err(error) => error,
    };
    let error = match error.downcast::<StoreError>() {
        Ok(error) => return SqlError::Store(*error),
        Err(error) => error,
    };
    let error = match error.downcast::<PostgresError>() {
        Ok(problem) => return SqlError::Postgres(*problem),
        Err(error) => error,
    };
    let error = match error.downcast::<SqlError>() {
        Ok(error) => return *error,
        Err(error) => error,
    };
    match error.downcast::<MeaningError>() {
        Ok(problem) => SqlError::Meaning(*problem),
        Err(error) => SqlError::Query(DataFusionError::External(error)),
    }
}

/// Whether a column that must have a value was to get none. Which one it is in the table is not known here.
fn is_missing_value(problem: &ArrowError) -> bool {
    let ArrowError::InvalidArgumentError(text) = problem else { return false };
    text.ends_with("is declared as non-nullable but contains null values")
}

/// Which type a value should have, and where a CSV file is not what its table says. Arrow quotes the cell and its row, of
/// which nothing is taken but numbers and the name of a type. A large file is read in parts, and lines are counted in each.
fn wrong_value(problem: &ArrowError) -> Option<String> {
    let number = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u64>().ok();
    let name = |data_type: &str| {
        let is_name = data_type.len() < 40 && data_type.chars().all(|part| part.is_ascii_alphanumeric());
        if is_name { data_type.to_owned() } else { "what its type says".to_owned() }
    };
    match problem {
        ArrowError::ParseError(text) => {
            let (data_type, place) = text.split_once("' as type '")?.1.split_once("' for column ")?;
            let (column, line) = place.split_once(" at line ")?;
            let (column, line) = (number(column)? + 1, number(line)?);
            let name = name(data_type);
            Some(format!("column {column} of a CSV file can't be read as {name}, at or after row {line}"))
        }
        ArrowError::CsvError(text) => {
            let line = number(text.split_once("incorrect number of fields for line ")?.1)?;
            Some(format!("a row of a CSV file has too many or too few cells, at or after line {line}"))
        }
        ArrowError::CastError(text) => {
            let data_type = text.rsplit_once("' to value of ")?.1.strip_suffix(" type")?;
            Some(format!("a value could not be computed or converted: it is no {}", name(data_type)))
        }
        _ => None,
    }
}

/// What DataFusion says, without the traces it may append.
fn first_line(error: &DataFusionError) -> String {
    let message = error.strip_backtrace();
    message.lines().next().unwrap_or_default().to_owned()
}
