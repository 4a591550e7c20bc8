//! [`MaterializedError`]: why a view can't be materialized, or can't follow a change.

use kohort_core::changing::UnfitStandard;
use kohort_store::StoreError;
use kohort_verify::StepErrors;

/// Why a view can't be materialized, or can't follow a change. No message contains a cell.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MaterializedError {
    #[error("a materialized view needs a data folder, and there is none")]
    NoDataFolder,
    #[error("a materialized view shows columns of one stored table, filtered by WHERE; {what}")]
    Query { what: &'static str },
    #[error("every quasi column of a materialized view needs a DGH, and these have none: {}", .columns.join(", "))]
    NoHierarchy { columns: Vec<String> },
    #[error("a materialized view must refer to its policies by its identifier")]
    PolicyKey,
    #[error("a materialized view does not take {what}")]
    Option { what: &'static str },
    #[error("view '{view}' shows one row per person, but this many persons would have several: {n_persons}")]
    SeveralRows { view: String, n_persons: usize },
    /// A requirement that can't be kept over time.
    #[error(transparent)]
    Standard(#[from] UnfitStandard),
    #[error("view '{view}': the step was not verified: {problem}")]
    Unverified { view: String, problem: Box<StepErrors> },
    #[error(
        "view '{view}': a reader who kept earlier answers could find {n_exposed} persons in sets that do not satisfy the requirements; the smallest set has {fewest}"
    )]
    Exposes {
        view: String,
        n_exposed: u64,
        /// Persons in the smallest set.
        fewest: u64,
    },
    #[error(
        "view '{view}': its choices name other purposes or recipients than when it was made, so old and new rows can't be compared"
    )]
    OtherReaders { view: String },
    #[error("view '{view}': some classes can't change safely, but their labels are not in the changed DGHs")]
    OtherHierarchies { view: String },
    #[error("the stored data of view '{view}' are damaged")]
    Damaged { view: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl MaterializedError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoDataFolder => Some("start with --data FOLDER, and make its table there".to_owned()),
            Self::Query { .. } => Some("CREATE TABLE ... AS SELECT makes a table of a query".to_owned()),
            Self::NoHierarchy { .. } => {
                Some("write zip DGH_NAME zip; a DGH that fits every column: CREATE DGH any FROM FLAT".to_owned())
            }
            Self::PolicyKey => Some("write the identifier before REFERENCES".to_owned()),
            Self::SeveralRows { .. } => Some("make the identifier the table's PRIMARY KEY".to_owned()),
            Self::Standard(problem) => problem.hint().map(str::to_owned),
            Self::Exposes { view, .. } => Some(format!(
                "REFRESH ANONYMIZATION_VIEW {view} PARTIAL keeps or hides these persons; FORCE shows everybody anew, which is safe if nobody has read the old view"
            )),
            Self::OtherReaders { view } | Self::OtherHierarchies { view } => {
                Some(format!("if nobody has read the old view, REFRESH ANONYMIZATION_VIEW {view} FORCE makes it anew"))
            }
            Self::Damaged { .. } => {
                Some("restore the data folder from a backup, or DROP and CREATE the view".to_owned())
            }
            Self::Store(error) => error.hint().map(str::to_owned),
            Self::Option { .. } | Self::Unverified { .. } => None,
        }
    }
}
