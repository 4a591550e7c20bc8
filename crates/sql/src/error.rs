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
#[allow(missing_docs, reason = "the messages say what the variants and fields are")]
pub enum SqlError {
    #[error(transparent)]
    Parse(#[from] ParseError),
    #[error(transparent)]
    Hierarchy(#[from] DghError),
    #[error(transparent)]
    View(#[from] ViewError),
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A query compares labels in a way that means nothing.
    #[error(transparent)]
    Refused(#[from] RewriteError),
    /// A query compares labels with something that is no value.
    #[error(transparent)]
    Meaning(#[from] MeaningError),
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error("this engine has no users")]
    NoAccounts,
    #[error("{what}: cursors are for clients of kohort-serve")]
    NoCursors { what: &'static str },
    #[error(transparent)]
    Postgres(#[from] PostgresError),
    #[error("analysts may not run this statement: {what}")]
    NotAllowed { what: &'static str },
    #[error("there is no anonymization view '{name}'")]
    UnknownView { name: String },
    /// The name is taken, and OR REPLACE would replace what has it.
    #[error("'{name}' exists already")]
    Exists { name: String },
    #[error("there is no {noun} '{name}'")]
    UnknownTable {
        /// `table` or `view`.
        noun: &'static str,
        name: String,
    },
    #[error("the only schema is public, and schemas can't be made or dropped")]
    OneSchema,
    #[error("CREATE and DROP can't be prepared")]
    NotPrepared,
    #[error("'{name}' is an anonymization view, which this statement can't change")]
    IsView { name: String },
    /// The name is taken by something that can't be replaced.
    #[error("'{name}' exists already")]
    Taken { name: String },
    #[error("'{name}' answers by the values of its members (ANSWERS MATCHING), so it can't be joined with anything")]
    MatchingJoined { name: String },
    /// A question that a view with ANSWERS AGGREGATES does not answer.
    #[error("'{view}' answers only counts, sums and averages (ANSWERS AGGREGATES), and {what}")]
    OnlyAggregates {
        view: String,
        what: String,
        /// The columns of labels.
        labels: Vec<String>,
    },
    #[error("an anonymization view can't read another one, '{name}'")]
    ViewOnView { name: String },
    #[error(
        "the query of an anonymization view must give the same rows every time, and this one calls a function that does not"
    )]
    Volatile,
    #[error("PURPOSE and RECIPIENT are for queries, and this statement is not one")]
    NothingAsked,
    #[error(
        "EXPLAIN UTILITY works only for SELECT ... FROM anonymization views WHERE ..., without grouping, DISTINCT and LIMIT"
    )]
    NoUtility,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("a transaction is under way already")]
    InTransaction,
    #[error("READ ONLY transactions are not supported")]
    ReadOnlyTransaction,
    #[error("no transaction is under way")]
    NoTransaction,
    #[error("there is no savepoint {name} in this transaction")]
    NoSavepoint { name: String },
    #[error("the transaction was rolled back, because one of its statements was stopped or failed")]
    TransactionLost,
    #[error("tables, indexes, views, users and grants can't be made or dropped inside a transaction")]
    NotInTransaction,
    #[error("this statement needs a data folder")]
    NoDataFolder,
    #[error("'{name}' is not a table of the data folder")]
    NotStored { name: String },
    #[error("stored tables do not support {what}")]
    NotForStored { what: &'static str },
    #[error("the materialized view '{view}' is made from '{name}'")]
    InUse { name: String, view: String },
    /// CREATE OR REPLACE of a materialized view.
    #[error(
        "'{name}' is a materialized view and can't be replaced: readers could combine its answers with those of the new view"
    )]
    Kept { name: String },
    /// CREATE OR REPLACE of a computed view by a materialized one.
    #[error(
        "'{name}' can't be replaced by a materialized view: readers could combine kept answers with those of the new view"
    )]
    Computed { name: String },
    #[error("'{name}' is not materialized, so REFRESH takes neither PARTIAL nor FORCE")]
    NotMaterialized { name: String },
    #[error("the views and users of the data folder are of format {found}; this kohort reads formats up to {known}")]
    NewerFormat { found: u64, known: u64 },
    #[error("the data folder is damaged: {what} can't be read")]
    Damaged { what: String },
    #[error("'{file}' can't be read: {kind}")]
    File { file: String, kind: std::io::ErrorKind },
    #[error("'{file}' is no .csv, .csv.gz, .csv.zst, .parquet or .arrow file")]
    UnknownFormat { file: String },
    /// A file has columns that the table lacks. The error does not name them, because without a header they are cells.
    #[error("{n_unknown} of the {n_columns} columns of '{file}' {} not in the table", if *n_unknown == 1 { "is" } else { "are" })]
    OtherColumns { file: String, n_unknown: usize, n_columns: usize },
    #[error("'{file}': {problem}")]
    Unreadable { file: String, problem: ReadError },
    #[error("the compliance log can't be written, so nothing is answered: {0}")]
    Log(std::io::Error),
    /// A query failed at run time. DataFusion's message may quote a cell, so only its kind is kept.
    #[error("the query failed while it ran: {what}")]
    Running { what: String },
    #[error("a whole number is out of range")]
    OutOfRange,
    #[error("division by zero")]
    DivisionByZero,
    #[error("a subquery that stands for one value has more than one row")]
    SeveralRows,
    #[error("a column that must have a value was given none")]
    NoValue,
    #[error("the query could make more than {} KB of values per row", .most / 1024)]
    TooLarge {
        /// Bytes that a query may make per row.
        most: u64,
    },
    #[error("CUBE of {n} columns groups rows in 2^{n} ways, and {most} is the most it takes")]
    TooManyGroupings { n: usize, most: usize },
    #[error("analysts may not use {function}, because the size of its result is not known beforehand")]
    UnknownGrowth { function: String },
    /// A value that was gathered from many rows would be copied beside each of many rows.
    #[error("results of string_agg and array_agg can't be joined, repeated or gathered again")]
    Gathered,
    #[error("the query could take too long to compute one row")]
    TooSlow,
    #[error("columns of nested queries are computed from each other too often")]
    TooManyCopies,
    #[error("the query needs more memory than it may use")]
    OutOfMemory,
    /// No worker process could be started for a statement. The statement does not run in the server's process instead.
    #[error("no process could be started for the statement: {kind}")]
    NoWorker { kind: std::io::ErrorKind },
    #[error("the process that ran the statement ended unexpectedly")]
    WorkerLost,
    /// A panic in the worker process of a statement.
    #[error("a fault of kohort stopped the statement at {place}")]
    StatementFault { place: String },
    /// An error of DataFusion's about the statement itself, before it reads any data.
    #[error("{}", first_line(.0))]
    Query(DataFusionError),
}

impl SqlError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let text = |text: &str| Some(text.to_owned());
        match self {
            SqlError::Parse(problem) => problem.hint(),
            SqlError::Hierarchy(fault) => fault.hint(),
            SqlError::View(problem) => problem.hint(),
            SqlError::Import(problem) => problem.hint(),
            SqlError::Refused(refusal) => refusal.hint(),
            SqlError::Meaning(problem) => problem.hint(),
            SqlError::Access(problem) => problem.hint(),
            SqlError::Postgres(problem) => problem.hint().map(str::to_owned),
            SqlError::NotAllowed { .. } => text("analysts read anonymization views: SELECT, EXPLAIN, SET, SHOW"),
            SqlError::UnknownView { .. } => text("SHOW ANONYMIZATION_VIEWS lists them"),
            SqlError::Exists { .. } => text("write CREATE OR REPLACE to replace it"),
            SqlError::UnknownTable { .. } => text("SHOW TABLES lists tables and views"),
            SqlError::OneSchema => text("make or drop the tables one by one"),
            SqlError::NotPrepared => text("run the statement directly"),
            SqlError::IsView { name } => {
                Some(format!("change its tables and REFRESH it, or DROP ANONYMIZATION_VIEW {name}"))
            }
            SqlError::Taken { .. } => text("DROP it first, or take another name"),
            SqlError::MatchingJoined { .. } => text("define a view with ANSWERS VIEW for joins"),
            SqlError::OnlyAggregates { labels, .. } => Some(format!(
                "ask for count(*), sum(column) or avg(column), with conditions and groups on {}",
                labels.join(", ")
            )),
            SqlError::ViewOnView { .. } => text("read the tables below it instead"),
            SqlError::Volatile => text("leave out functions such as random() and now()"),
            SqlError::NothingAsked => text("give them to EXECUTE, or to the session: SET kohort.purpose = 'care'"),
            SqlError::NoAccounts => text("users log in to kohort-serve"),
            SqlError::Store(error) => error.hint().map(str::to_owned),
            SqlError::InTransaction => text("COMMIT or ROLLBACK first"),
            SqlError::NoTransaction => text("BEGIN starts one"),
            SqlError::NoSavepoint { .. } => text("SAVEPOINT name marks one"),
            SqlError::TransactionLost => text("ROLLBACK, and begin again"),
            SqlError::NotInTransaction => {
                text("COMMIT or ROLLBACK first, or turn autocommit on if your driver begins transactions by itself")
            }
            SqlError::NoCursors { .. } => text("a query shows all of its rows at once here"),
            SqlError::NoDataFolder => text("start with --data FOLDER"),
            SqlError::NotStored { .. } => text("CREATE TABLE makes one"),
            SqlError::InUse { view, .. } => Some(format!("DROP ANONYMIZATION_VIEW {view} first")),
            SqlError::Kept { name } => Some(format!("REFRESH it, or DROP ANONYMIZATION_VIEW {name} first")),
            SqlError::Computed { name } => {
                Some(format!("take another name, or DROP ANONYMIZATION_VIEW {name} first and grant it anew"))
            }
            SqlError::NotMaterialized { name } => Some(format!("write REFRESH ANONYMIZATION_VIEW {name}")),
            SqlError::ReadOnlyTransaction => text("use BEGIN without READ ONLY"),
            SqlError::NewerFormat { .. } => text("use the kohort that wrote it, or a newer one"),
            SqlError::Damaged { .. } => text("restore the data folder from a backup"),
            SqlError::OutOfMemory => text("ask for less at once, or give the server more query_memory"),
            SqlError::OtherColumns { .. } => {
                text("columns are found by name, and the first line of a CSV file must hold the names")
            }
            SqlError::Unreadable { problem: ReadError::RaggedRows { .. }, .. } => {
                text("quote cells that hold the separator")
            }
            SqlError::Unreadable { problem: ReadError::InvalidText { .. }, .. } => text("the file has to be UTF-8"),
            SqlError::Unreadable { problem, .. } => problem.hint(),
            SqlError::NotForStored { .. } | SqlError::File { .. } | SqlError::UnknownFormat { .. } => None,
            SqlError::TooLarge { .. } => text("repeat, pad or concatenate texts less often, and by constant numbers"),
            SqlError::TooManyGroupings { .. } => text("GROUPING SETS names the groupings you need"),
            SqlError::UnknownGrowth { .. } => text("use other functions"),
            SqlError::Gathered => text("call string_agg or array_agg in the outermost query, after all joins"),
            SqlError::TooManyCopies => text("use each computed column fewer times, or nest fewer queries"),
            SqlError::TooSlow => text("compare shorter texts, with simpler patterns, or fewer of them at once"),
            SqlError::OutOfRange => text("compute with DOUBLE or DECIMAL, e.g. sum(CAST(x AS DECIMAL(38, 0)))"),
            SqlError::DivisionByZero => text("NULLIF(x, 0) makes a zero NULL"),
            SqlError::SeveralRows => text("use IN, max(x) or LIMIT 1"),
            SqlError::NoValue => text("DESCRIBE tells which columns take NULL"),
            SqlError::NoWorker { .. } => text("the server's user may start too few processes, or memory is short"),
            SqlError::StatementFault { .. } => text("please report the place it names"),
            SqlError::WorkerLost => text("run the statement again"),
            SqlError::NoUtility | SqlError::Log(_) | SqlError::Running { .. } | SqlError::Query(_) => None,
        }
    }

    /// An error that came up while data were read. Errors of ours stay as they are.
    pub fn while_running(error: DataFusionError) -> SqlError {
        match SqlError::from(error) {
            SqlError::Query(error) => match error.find_root() {
                // These messages are about the statement, not about data.
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
                DataFusionError::Execution(message) if message.starts_with(MANY_ROWS) => SqlError::SeveralRows,
                _ => SqlError::Running { what: kind_of(&error).to_owned() },
            },
            ours => ours,
        }
    }

    /// The exit code of a command that ends with this error: 1 if a requirement can't be reached, 2 if the statement or its
    /// data are wrong, 3 if the file system or kohort failed.
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

    /// Whether the statement is well formed but not allowed.
    pub fn is_refusal(&self) -> bool {
        match self {
            SqlError::NotAllowed { .. } | SqlError::Refused(_) | SqlError::MatchingJoined { .. } => true,
            SqlError::UnknownGrowth { .. } | SqlError::OnlyAggregates { .. } => true,
            SqlError::View(ViewError::Policy(problem)) => problem.is_refusal(),
            SqlError::Access(problem) => problem.is_refusal(),
            _ => false,
        }
    }
}

/// Errors of ours that went through DataFusion come out unchanged.
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

impl From<MaterializedError> for SqlError {
    fn from(problem: MaterializedError) -> SqlError {
        SqlError::View(problem.into())
    }
}

/// Errors of ours go through DataFusion as they are.
impl From<SqlError> for DataFusionError {
    fn from(error: SqlError) -> Self {
        DataFusionError::External(Box::new(error))
    }
}

/// A copy of an error of ours that is shared, because all parallel parts of a query fail with the first failure.
fn ours_in(shared: &DataFusionError) -> Option<SqlError> {
    let DataFusionError::External(error) = shared.find_root() else { return None };
    let refused = error.downcast_ref::<RewriteError>().cloned().map(SqlError::Refused);
    let meaning = || error.downcast_ref::<MeaningError>().cloned().map(SqlError::Meaning);
    let postgres = || error.downcast_ref::<PostgresError>().cloned().map(SqlError::Postgres);
    let view = || {
        Some(SqlError::View(match error.downcast_ref::<ViewError>()? {
            ViewError::Stale => ViewError::Stale,
            ViewError::Unusable { view, reason } => ViewError::Unusable { view: view.clone(), reason: reason.clone() },
            ViewError::Query { view, kind } => ViewError::Query { view: view.clone(), kind },
            _ => return None,
        }))
    };
    refused.or_else(meaning).or_else(postgres).or_else(view)
}

fn from_external(error: External) -> SqlError {
    let own = downcast::<SqlError>(error)
        .or_else(downcast::<ViewError>)
        .or_else(downcast::<RewriteError>)
        .or_else(downcast::<StoreError>)
        .or_else(downcast::<PostgresError>)
        .or_else(downcast::<MeaningError>);
    own.unwrap_or_else(|other| SqlError::Query(DataFusionError::External(other)))
}

type External = Box<dyn std::error::Error + Send + Sync>;

fn downcast<E: std::error::Error + Into<SqlError> + 'static>(error: External) -> Result<SqlError, External> {
    error.downcast::<E>().map(|own| (*own).into())
}

/// DataFusion's words for a subquery that stands for one value and has several rows.
const MANY_ROWS: &str = "Scalar subquery returned more than one row";

/// Whether NULL was to be put into a column that must have a value. The name of the column is not known here.
fn is_missing_value(problem: &ArrowError) -> bool {
    let ArrowError::InvalidArgumentError(text) = problem else { return false };
    text.ends_with("is declared as non-nullable but contains null values")
}

/// The type that a value should have, or the place in a CSV file that does not fit its table. Arrow's message quotes the cell,
/// so only numbers and the name of a type are taken from it. A large file is read in parts, and lines are counted in each part.
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

/// DataFusion's message without a backtrace. If it dumps a part of the syntax tree, only the name of that part.
fn first_line(error: &DataFusionError) -> String {
    let message = error.strip_backtrace();
    let line = message.lines().next().unwrap_or_default();
    match (error.find_root(), dumped(line)) {
        (DataFusionError::NotImplemented(_) | DataFusionError::Plan(_), Some(part)) => {
            format!("{part} is not supported")
        }
        _ => line.to_owned(),
    }
}

/// The name, as SQL writes it, of the first part of the syntax tree that a message dumps: `CREATE POLICY` for
/// `CreatePolicy { name: ... }`.
fn dumped(message: &str) -> Option<String> {
    let open = message.find(" { ").or_else(|| message.find("("))?;
    let is_tree = message[open..].starts_with(" { ") || message[open..].starts_with("(Ident");
    let name = message[..open].rsplit([' ', ':', '\'']).next()?;
    let is_variant = name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.chars().all(|part| part.is_ascii_alphanumeric())
        && name.chars().any(|part| part.is_ascii_lowercase());
    if !is_tree || !is_variant {
        return None;
    }
    let mut spelled = String::new();
    for part in name.chars() {
        if part.is_ascii_uppercase() && !spelled.is_empty() {
            spelled.push(' ');
        }
        spelled.push(part.to_ascii_uppercase());
    }
    Some(spelled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_of_the_syntax_tree_becomes_the_name_of_its_part() {
        let said = |message: &str| SqlError::from(DataFusionError::NotImplemented(message.to_owned())).to_string();
        let dump = "Unsupported ast node MatchRecognize { table: Table { name: ObjectName([]) } } in create_relation";
        assert_eq!(said(dump), "MATCH RECOGNIZE is not supported");
        assert_eq!(said("SET variant not implemented yet: SetRole { role_name: None }"), "SET ROLE is not supported");
        let plain = "Temporary tables not supported";
        assert_eq!(said(plain), format!("This feature is not implemented: {plain}"));
    }

    #[test]
    fn a_subquery_of_many_rows_is_told_from_other_failures() {
        let error = DataFusionError::Execution(MANY_ROWS.to_owned());
        assert_eq!(SqlError::while_running(error).sqlstate(), "21000");
    }
}
