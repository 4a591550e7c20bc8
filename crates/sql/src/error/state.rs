//! SQLSTATEs: the five characters by which clients of PostgreSQL tell errors apart.
//!
//! Drivers choose their exceptions by the first two characters: 23 is a row that breaks a constraint, 42 a statement that is
//! wrong or not allowed, 53 a resource that ran out, and 58 and XX a failure of the system or of kohort. The matches name every
//! error, so a new one does not get the state of an internal error by mistake.

use std::io;

use datafusion::arrow::error::ArrowError;
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use kohort_store::StoreError;

use super::SqlError;
use crate::access::AccessError;
use crate::parser::{ParseError, ParseErrorKind};
use crate::view::{MaterializedError, ViewError};

/// SQLite's code for running out of memory.
const SQLITE_NOMEM: i32 = 7;

impl SqlError {
    /// The SQLSTATE of what is wrong.
    pub fn sqlstate(&self) -> &'static str {
        match self {
            SqlError::Parse(problem) => of_parsing(problem),
            SqlError::NotAllowed { .. } | SqlError::MatchingJoined { .. } | SqlError::UnknownGrowth { .. } => "42501",
            SqlError::OnlyAggregates { .. } => "42501",
            SqlError::Refused(_) | SqlError::Meaning(_) => "42804",
            SqlError::View(problem) => of_view(problem),
            SqlError::Hierarchy(_) | SqlError::Import(_) | SqlError::UnknownFormat { .. } => "22023",
            SqlError::Access(problem) => of_access(problem),
            SqlError::Store(error) => of_store(error),
            SqlError::Postgres(_) => "58030",
            SqlError::UnknownView { .. } | SqlError::UnknownTable { .. } | SqlError::NotStored { .. } => "42P01",
            SqlError::Exists { .. } | SqlError::Taken { .. } => "42P07",
            SqlError::IsView { .. }
            | SqlError::ViewOnView { .. }
            | SqlError::Kept { .. }
            | SqlError::Computed { .. }
            | SqlError::NotMaterialized { .. } => "42809",
            SqlError::InUse { .. } => "2BP01",
            SqlError::Volatile
            | SqlError::NothingAsked
            | SqlError::NoUtility
            | SqlError::NoAccounts
            | SqlError::NoDataFolder
            | SqlError::NoCursors { .. }
            | SqlError::OneSchema
            | SqlError::NotPrepared
            | SqlError::ReadOnlyTransaction
            | SqlError::NotForStored { .. } => "0A000",
            SqlError::InTransaction | SqlError::NotInTransaction => "25001",
            SqlError::NoTransaction => "25P01",
            SqlError::NoSavepoint { .. } => "3B001",
            SqlError::TransactionLost => "25P02",
            SqlError::OtherColumns { .. } => "42703",
            SqlError::File { kind, .. } => match kind {
                io::ErrorKind::NotFound | io::ErrorKind::IsADirectory => "58P01",
                io::ErrorKind::PermissionDenied => "42501",
                _ => "58030",
            },
            SqlError::Log(error) => of_io(error),
            SqlError::Unreadable { .. } => "22P04",
            SqlError::Damaged { .. } | SqlError::NewerFormat { .. } => "XX001",
            SqlError::OutOfMemory => "53200",
            SqlError::NoWorker { .. } => "53000",
            SqlError::WorkerLost | SqlError::StatementFault { .. } => "XX000",
            SqlError::TooLarge { .. } | SqlError::Gathered | SqlError::TooSlow | SqlError::TooManyCopies => "54000",
            SqlError::TooManyGroupings { .. } => "54000",
            SqlError::OutOfRange => "22003",
            SqlError::DivisionByZero => "22012",
            SqlError::SeveralRows => "21000",
            SqlError::NoValue => "23502",
            SqlError::Running { .. } => "22000",
            SqlError::Query(error) => of_query(error.find_root()),
        }
    }
}

fn of_parsing(problem: &ParseError) -> &'static str {
    match problem.fault {
        _ if problem.is_too_deep() => "54001",
        ParseErrorKind::TooManyTokens { .. } | ParseErrorKind::TooManyStatements { .. } => "54000",
        ParseErrorKind::Ignored { .. } => "0A000",
        _ => "42601",
    }
}

fn of_view(problem: &ViewError) -> &'static str {
    match problem {
        ViewError::Policy(problem) if problem.is_refusal() => "42501",
        ViewError::Stale | ViewError::Unreachable(_) => "55000",
        ViewError::Unusable { .. } | ViewError::NotReplaced { .. } => "55000",
        ViewError::Definition(_) => "42611",
        ViewError::Unverified(_) => "XX000",
        ViewError::Materialized(problem) => of_materialized(problem),
        ViewError::Hierarchy { .. }
        | ViewError::Columns(_)
        | ViewError::Meaning(_)
        | ViewError::Policy(_)
        | ViewError::NullIdentifiers { .. }
        | ViewError::SeveralPolicies { .. }
        | ViewError::Query { .. } => "22023",
    }
}

fn of_materialized(problem: &MaterializedError) -> &'static str {
    match problem {
        MaterializedError::NoDataFolder
        | MaterializedError::Query { .. }
        | MaterializedError::NoHierarchy { .. }
        | MaterializedError::PolicyKey
        | MaterializedError::Option { .. } => "0A000",
        // A second row of the same person is like a duplicate key.
        MaterializedError::SeveralRows { .. } => "23505",
        MaterializedError::Standard(_) => "22023",
        MaterializedError::Exposes { .. }
        | MaterializedError::OtherReaders { .. }
        | MaterializedError::OtherHierarchies { .. } => "55000",
        MaterializedError::Unverified { .. } => "XX000",
        MaterializedError::Damaged { .. } => "XX001",
        MaterializedError::Store(error) => of_store(error),
    }
}

fn of_access(problem: &AccessError) -> &'static str {
    match problem {
        AccessError::BadName { .. } | AccessError::BadPassword { .. } | AccessError::HashedPassword => "22023",
        AccessError::UserExists { .. } => "42710",
        AccessError::UnknownUser { .. } | AccessError::NotGranted { .. } => "42704",
        AccessError::LastOwner
        | AccessError::IsOwner { .. }
        | AccessError::Together { .. }
        | AccessError::Unaudited { .. }
        | AccessError::Dropped { .. }
        | AccessError::SeveralPairs { .. }
        | AccessError::PairNotGranted { .. }
        | AccessError::ViewNotGranted { .. } => "42501",
        AccessError::LoginGone => "28000",
        AccessError::Records(error) | AccessError::Log(error) | AccessError::Unrecorded(error) => of_io(error),
        AccessError::Unwritten { .. } => "58030",
        AccessError::BadRecord { .. } => "XX001",
        AccessError::NoRandomness => "58000",
    }
}

/// The store may get new errors. They count as failures of the store.
fn of_store(error: &StoreError) -> &'static str {
    match error {
        StoreError::Duplicate { .. } | StoreError::NotUnique { .. } => "23505",
        StoreError::Missing { .. } => "23502",
        StoreError::DoesNotFit { .. } => "22003",
        StoreError::Busy { .. } => "55P03",
        StoreError::Locked { .. } => "55006",
        StoreError::Full => "53100",
        StoreError::Corrupt { .. } => "XX001",
        StoreError::Foreign { .. } | StoreError::NewerFormat { .. } | StoreError::ChangedUnderScan { .. } => "55000",
        StoreError::BackupExists { .. } => "58P02",
        StoreError::Absent { .. } => "58P01",
        StoreError::Unreadable { .. } => "42501",
        StoreError::UnknownTable { .. } => "42P01",
        StoreError::UnknownColumn { .. } => "42703",
        StoreError::TableExists { .. } => "42P07",
        StoreError::BadDescription { .. } => "42P16",
        StoreError::UnsupportedType { .. } => "0A000",
        StoreError::OtherColumns { .. } | StoreError::OtherType { .. } => "42804",
        StoreError::TooManyConditions { .. } => "54000",
        StoreError::TransactionOver => "25P02",
        StoreError::Io { source, .. } => of_io(source),
        StoreError::Sqlite { code } if code & 0xff == SQLITE_NOMEM => "53200",
        _ => "58030",
    }
}

fn of_io(error: &io::Error) -> &'static str {
    if let Some(error) = error.get_ref().and_then(|error| error.downcast_ref::<StoreError>()) {
        return of_store(error);
    }
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "53100",
        io::ErrorKind::OutOfMemory => "53200",
        _ => "58030",
    }
}

/// Errors of DataFusion, told apart by their words where they have no kinds.
fn of_query(error: &DataFusionError) -> &'static str {
    match error {
        DataFusionError::SchemaError(problem, _) => match problem.as_ref() {
            SchemaError::FieldNotFound { .. } => "42703",
            _ => "42702",
        },
        DataFusionError::SQL(..) => "42601",
        DataFusionError::NotImplemented(_) => "0A000",
        DataFusionError::IoError(error) => of_io(error),
        DataFusionError::ObjectStore(_) => "58030",
        DataFusionError::ResourcesExhausted(_) => "53200",
        DataFusionError::Configuration(_) => "42704",
        DataFusionError::Plan(message) if message.starts_with("table '") => "42P01",
        DataFusionError::Plan(message) if message.starts_with("Invalid function") => "42883",
        DataFusionError::Plan(_) => "42000",
        DataFusionError::Execution(message) if message.starts_with("Prepared statement") => "26000",
        DataFusionError::Internal(_) => "XX000",
        DataFusionError::ArrowError(problem, _) => match problem.as_ref() {
            ArrowError::ArithmeticOverflow(_) => "22003",
            ArrowError::DivideByZero => "22012",
            _ => "22000",
        },
        _ => "22000",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_of_users_are_told_apart_from_faults() {
        let duplicate = StoreError::Duplicate { table: "t".into(), columns: vec!["id".into()], row: Some(1) };
        let file = |kind| SqlError::File { file: "x.csv".into(), kind };
        for (error, state) in [
            (SqlError::Store(duplicate), "23505"),
            (StoreError::Missing { column: "id".into(), row: Some(1) }.into(), "23502"),
            (StoreError::Busy { waited_ms: 1 }.into(), "55P03"),
            (StoreError::Full.into(), "53100"),
            (StoreError::Sqlite { code: SQLITE_NOMEM | 256 }.into(), "53200"),
            (SqlError::Log(io::ErrorKind::StorageFull.into()), "53100"),
            (AccessError::Records(io::Error::other(StoreError::Full)).into(), "53100"),
            (SqlError::InUse { name: "t".into(), view: "v".into() }, "2BP01"),
            (SqlError::Kept { name: "v".into() }, "42809"),
            (SqlError::NotStored { name: "t".into() }, "42P01"),
            (SqlError::NotForStored { what: "it" }, "0A000"),
            (file(io::ErrorKind::NotFound), "58P01"),
            (file(io::ErrorKind::PermissionDenied), "42501"),
            (SqlError::Damaged { what: "it".into() }, "XX001"),
            (DataFusionError::ResourcesExhausted(String::new()).into(), "53200"),
        ] {
            assert_eq!(error.sqlstate(), state, "{error}");
        }
    }
}
