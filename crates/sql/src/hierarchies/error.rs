//! [`DghError`]: faults of a DGH or its use.

use std::path::PathBuf;
use std::sync::Arc;

use kohort_model::hierarchy::{HierarchyErrors, MakeError};

/// A fault of a DGH, or of a column that uses it. Messages contain labels, but only count values of columns.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DghError {
    /// The DGH does not exist.
    #[error("there is no DGH '{name}'")]
    Unknown {
        /// The name.
        name: String,
        /// The existing DGHs.
        known: Vec<String>,
    },
    /// The name is taken.
    #[error("DGH '{name}' exists already")]
    Exists {
        /// The name.
        name: String,
    },
    /// The DGH is not a list of pairs.
    #[error("DGH '{name}' was created from a file or a rule, so pairs can't be inserted")]
    Finished {
        /// Its name.
        name: String,
    },
    /// The pair exists already.
    #[error("pair {position}: '{child}' already has the parent '{parent}'")]
    Repeated {
        /// Its position in the statement, from 1.
        position: usize,
        /// The child.
        child: String,
        /// The parent.
        parent: String,
    },
    /// The child has another parent.
    #[error("pair {position}: '{child}' has another parent, '{parent}'")]
    SecondParent {
        /// Its position in the statement, from 1.
        position: usize,
        /// The child.
        child: String,
        /// The parent that it has.
        parent: String,
    },
    /// The pair would close a cycle.
    #[error("pair {position}: '{child}' would be its own ancestor")]
    Cycle {
        /// Its position in the statement, from 1.
        position: usize,
        /// The child.
        child: String,
    },
    /// The label is not valid.
    #[error("pair {position}: {what}")]
    BadLabel {
        /// Its position in the statement, from 1.
        position: usize,
        /// The fault.
        what: &'static str,
    },
    /// The DGH has no pairs.
    #[error("DGH '{name}' has no pairs yet")]
    Empty {
        /// Its name.
        name: String,
    },
    /// Several labels have no parent.
    #[error("DGH '{name}' has {n_roots} roots: {}", name_some(.some, *.n_roots))]
    SeveralRoots {
        /// Its name.
        name: String,
        /// The number of roots.
        n_roots: usize,
        /// Some of them.
        some: Vec<String>,
    },
    /// Values of the column are not in the DGH.
    #[error("DGH '{name}' has no leaf for {n_values} distinct values of the column")]
    NoLeaf {
        /// Its name.
        name: String,
        /// The number of missing values.
        n_values: usize,
    },
    /// The rule does not fit.
    #[error("DGH '{name}': {problem}")]
    Rule {
        /// Its name.
        name: String,
        /// The reason.
        problem: MakeError,
    },
    /// The file can't be read.
    #[error("{}: can't be read: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: Arc<std::io::Error>,
    },
    /// The file does not contain a tree.
    #[error("DGH '{name}': {}: {problems}", .path.display())]
    Content {
        /// Its name.
        name: String,
        /// The file.
        path: PathBuf,
        /// The faults.
        problems: HierarchyErrors,
    },
}

impl DghError {
    /// What to do about it, if there is a remedy.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            DghError::Unknown { known, .. } if known.is_empty() => {
                "create it first, for example: CREATE DGH zip FROM 'zip.csv'".to_owned()
            }
            DghError::Unknown { known, .. } => format!("use one of: {}", known.join(", ")),
            DghError::Exists { .. } => "write CREATE OR REPLACE DGH, or drop it first".to_owned(),
            DghError::Finished { .. } => "add the rows to the file, and create the DGH again".to_owned(),
            DghError::Repeated { .. } => "nothing was inserted: leave the pair out".to_owned(),
            DghError::SecondParent { .. } => "nothing was inserted: each label may have only one parent".to_owned(),
            DghError::Cycle { .. } => "nothing was inserted: the chain of parents must end at the root".to_owned(),
            DghError::BadLabel { .. } => "nothing was inserted: correct the label".to_owned(),
            DghError::Empty { name } => format!("for example: INSERT INTO DGH {name} VALUES ('88512', '*****')"),
            DghError::SeveralRoots { .. } => "insert pairs that give the roots one common ancestor".to_owned(),
            DghError::NoLeaf { .. } => {
                "add the values, spelled as in the column, or use a rule: STEPS, MASK, DATES or FLAT".to_owned()
            }
            DghError::Rule { problem, .. } => problem.hint().to_owned(),
            DghError::File { .. } => "check the path".to_owned(),
            DghError::Content { problems, .. } => return problems.0.first().map(|first| first.hint().to_owned()),
        })
    }
}

/// `'a', 'b' and 3 more`.
fn name_some(some: &[String], n_all: usize) -> String {
    let named = some.iter().map(|label| format!("'{label}'")).collect::<Vec<_>>().join(", ");
    match n_all - some.len() {
        0 => named,
        n_more => format!("{named} and {n_more} more"),
    }
}
