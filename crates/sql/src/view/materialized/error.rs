//! [`MaterializedError`]: why a view can't be materialized, or can't follow a change.

use kohort_core::changing::UnfitStandard;
use kohort_store::StoreError;
use kohort_verify::StepErrors;

/// Why a view can't be materialized, or can't follow a change. No cell appears.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MaterializedError {
    /// There is no store.
    #[error("a materialized view is kept in a data folder, and there is none")]
    NoDataFolder,
    /// Its query is more than columns of a stored table.
    #[error("a materialized view shows columns of one stored table, filtered by WHERE; {what}")]
    Query {
        /// What it is instead.
        what: &'static str,
    },
    /// A quasi column without a DGH.
    #[error("quasi columns of a materialized view have a DGH each, and these have none: {}", .columns.join(", "))]
    NoHierarchy {
        /// Their names.
        columns: Vec<String>,
    },
    /// Policies that are not found by the identifier.
    #[error("the policies of a materialized view are found by its identifier")]
    PolicyKey,
    /// An option that a materialized view does not have.
    #[error("a materialized view does not take {what}")]
    Option {
        /// The option.
        what: &'static str,
    },
    /// Persons with several rows.
    #[error("view '{view}' shows one row per person, and {n_persons} would have several")]
    SeveralRows {
        /// The view.
        view: String,
        /// How many persons.
        n_persons: usize,
    },
    /// A requirement that can't be held over time.
    #[error(transparent)]
    Standard(#[from] UnfitStandard),
    /// A DGH that says two things of a value.
    #[error("column '{column}': {n_values} values do not fit the DGH that the view was made with")]
    Path {
        /// The column.
        column: String,
        /// How many.
        n_values: usize,
    },
    /// What would be written does not hold.
    #[error("view '{view}': the step was not verified: {problem}")]
    Unverified {
        /// The view.
        view: String,
        /// What was found.
        problem: Box<StepErrors>,
    },
    /// A refresh that readers of the old view could combine with it.
    #[error(
        "view '{view}': whoever kept earlier answers could find {n_exposed} persons in sets that do not satisfy what is asked, the smallest of {fewest}"
    )]
    Exposes {
        /// The view.
        view: String,
        /// How many persons.
        n_exposed: u64,
        /// Persons in the smallest set.
        fewest: u64,
    },
    /// A refresh for other readers than the view was made for.
    #[error(
        "view '{view}': its choices speak of other purposes or recipients than when it was made, so that rows can't be compared"
    )]
    OtherReaders {
        /// The view.
        view: String,
    },
    /// A refresh that would leave classes as they are, whose labels no DGH has any more.
    #[error("view '{view}': some classes can't change safely, and its DGHs are others than when it was made")]
    OtherHierarchies {
        /// The view.
        view: String,
    },
    /// What is kept of it can't be read.
    #[error("what is kept of view '{view}' is damaged")]
    Damaged {
        /// The view.
        view: String,
    },
    /// The store.
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
                Some("name one: zip DGH_NAME zip; CREATE DGH any FROM FLAT fits all".to_owned())
            }
            Self::PolicyKey => Some("write the identifier before REFERENCES".to_owned()),
            Self::SeveralRows { .. } => Some("make the identifier the table's PRIMARY KEY".to_owned()),
            Self::Standard(problem) => problem.hint().map(str::to_owned),
            Self::Path { .. } => Some("REFRESH makes the view with the DGH as it is now".to_owned()),
            Self::Exposes { view, .. } => Some(format!(
                "REFRESH ANONYMIZATION_VIEW {view} PARTIAL leaves those as they are or hidden; with FORCE all is shown anew, which is right if nobody has read the old one"
            )),
            Self::OtherReaders { view } | Self::OtherHierarchies { view } => {
                Some(format!("if nobody has read the old one, REFRESH ANONYMIZATION_VIEW {view} FORCE makes it anew"))
            }
            Self::Damaged { .. } => Some("restore the data folder from a backup, or make the view anew".to_owned()),
            Self::Store(error) => error.hint().map(str::to_owned),
            Self::Option { .. } | Self::Unverified { .. } => None,
        }
    }
}
