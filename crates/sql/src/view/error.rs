//! [`ViewError`]: why a view can't be built or read. No message contains a cell.

use datafusion::error::DataFusionError;
use kohort_core::AnonymizeError;
use kohort_io::ReadError;
use kohort_labels::meaning::MeaningError;
use kohort_store::StoreError;
use kohort_verify::Violations;

use super::{DefinitionError, MaterializedError};
use crate::hierarchies::DghError;
use crate::policy::PolicyError;
use crate::postgres::PostgresError;
use crate::role::Role;

/// Why a view can't be built or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the variants and fields are")]
pub enum ViewError {
    #[error("{}", lines(.0))]
    Definition(Vec<DefinitionError>),
    #[error("column '{column}': {fault}")]
    Hierarchy { column: String, fault: DghError },
    /// A column can't have its role.
    #[error("{}", lines(.0))]
    Columns(Vec<ReadError>),
    #[error(transparent)]
    Meaning(MeaningError),
    /// The policies can't be read, or do not allow the request.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error("rows of the query without an identifier, because '{column}' is NULL: {n_rows}")]
    NullIdentifiers { column: String, n_rows: u64 },
    #[error("persons with several policies, because their rows differ in '{column}': {n_persons}")]
    SeveralPolicies {
        /// The column that policies are found by.
        column: String,
        identifier: String,
        n_persons: usize,
    },
    #[error(transparent)]
    Materialized(#[from] MaterializedError),
    /// The requirement can't be reached.
    #[error(transparent)]
    Unreachable(AnonymizeError),
    /// The verifier rejected the view, which is a fault of kohort.
    #[error("the view was not verified, so no row leaves it: {0}")]
    Unverified(Violations),
    #[error("the data of the view have changed since it was verified")]
    Stale,
    #[error("the view '{view}' is unusable: {reason}")]
    Unusable { view: String, reason: String },
    #[error("the view '{view}' stays as it was, because the new one would be unusable: {reason}")]
    NotReplaced { view: String, reason: String },
    /// The view's query failed. The original message may contain cells, so only its kind is kept.
    #[error("the query of view '{view}' failed: {kind}")]
    Query { view: String, kind: &'static str },
}

impl ViewError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            ViewError::Definition(problems) => problems.iter().find_map(DefinitionError::hint).map(str::to_owned),
            ViewError::Hierarchy { fault, .. } => fault.hint(),
            ViewError::Meaning(problem) => problem.hint(),
            ViewError::Policy(problem) => problem.hint(),
            ViewError::Materialized(problem) => problem.hint(),
            ViewError::Unreachable(problem) => problem.hint().map(str::to_owned),
            ViewError::Stale => Some(
                "its owner can REFRESH ANONYMIZATION_VIEW, which verifies it for the data as they are now".to_owned(),
            ),
            ViewError::SeveralPolicies { identifier, .. } => {
                Some(format!("give each person one policy, and write {identifier} REFERENCES"))
            }
            ViewError::NullIdentifiers { column, .. } => {
                Some(format!("add WHERE {column} IS NOT NULL to the query of the view"))
            }
            ViewError::Query { .. } => {
                Some("the owner can run the query by itself to see what is wrong with it".to_owned())
            }
            ViewError::Columns(_) | ViewError::Unverified(_) => None,
            ViewError::Unusable { .. } | ViewError::NotReplaced { .. } => None,
        }
    }

    /// The error as it is shown to a reader. An analyst is not told why a view can't be built, because the reason may
    /// contain counts of private rows.
    #[must_use]
    pub(crate) fn for_reader(self, role: Role, view: &str) -> ViewError {
        match (role, self) {
            (
                Role::Analyst,
                ViewError::Unusable { .. }
                | ViewError::Unverified(_)
                | ViewError::Unreachable(_)
                | ViewError::NullIdentifiers { .. }
                | ViewError::Columns(_)
                | ViewError::Hierarchy { .. },
            ) => ViewError::Unusable { view: view.to_owned(), reason: "its owner can see why".to_owned() },
            (_, problem) => problem,
        }
    }

    /// The error for a thread of kohort that panicked.
    pub(super) fn fault(view: &str) -> ViewError {
        ViewError::Query { view: view.to_owned(), kind: "a fault of kohort stopped it" }
    }

    /// The kind of an error whose message may contain cells.
    pub(crate) fn of_query(view: &str, error: &DataFusionError) -> ViewError {
        ViewError::Query { view: view.to_owned(), kind: kind_of(error) }
    }
}

impl From<StoreError> for ViewError {
    fn from(error: StoreError) -> ViewError {
        ViewError::Materialized(error.into())
    }
}

/// The kind of a failure, in words without cells.
pub(crate) fn kind_of(error: &DataFusionError) -> &'static str {
    match error.find_root() {
        DataFusionError::ArrowError(..) => "a value could not be computed or converted",
        DataFusionError::ParquetError(_) => "a Parquet file could not be read",
        DataFusionError::ObjectStore(_) | DataFusionError::IoError(_) => "a file could not be read",
        DataFusionError::ResourcesExhausted(_) => "it needs more memory than it may use",
        DataFusionError::Plan(_) | DataFusionError::SchemaError(..) => "its tables or columns are no longer there",
        DataFusionError::External(error) if error.is::<PostgresError>() => "a PostgreSQL server did not give its rows",
        _ => "it could not be run to its end",
    }
}

fn lines<T: std::fmt::Display>(problems: &[T]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
