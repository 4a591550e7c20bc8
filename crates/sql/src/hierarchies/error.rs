//! [`DghError`]: faults of a DGH or its use.

use std::path::PathBuf;
use std::sync::Arc;

use kohort_model::hierarchy::{HierarchyErrors, MakeError};

/// A fault of a DGH, or of a column that uses it. Messages contain labels, but only count values of columns.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DghError {
    #[error("there is no DGH '{name}'")]
    Unknown { name: String, known: Vec<String> },
    #[error("DGH '{name}' exists already")]
    Exists { name: String },
    #[error("DGH '{name}' was created from a file or a rule, so pairs can't be inserted")]
    Finished { name: String },
    #[error("pair {position}: '{child}' already has the parent '{parent}'")]
    Repeated { position: usize, child: String, parent: String },
    #[error("pair {position}: '{child}' has another parent, '{parent}'")]
    SecondParent {
        position: usize,
        child: String,
        /// The parent that it has.
        parent: String,
    },
    #[error("pair {position}: '{child}' would be its own ancestor")]
    Cycle { position: usize, child: String },
    #[error("pair {position}: {what}")]
    BadLabel { position: usize, what: &'static str },
    #[error("DGH '{name}' has no pairs yet")]
    Empty { name: String },
    #[error("DGH '{name}' has {n_roots} roots: {}", name_some(.some, *.n_roots))]
    SeveralRoots { name: String, n_roots: usize, some: Vec<String> },
    #[error("DGH '{name}' has no leaf for {n_values} distinct values of the column")]
    NoLeaf { name: String, n_values: usize },
    #[error("DGH '{name}': {problem}")]
    Rule { name: String, problem: MakeError },
    #[error("{}: can't be read: {error}", .path.display())]
    File { path: PathBuf, error: Arc<std::io::Error> },
    #[error("DGH '{name}': {}: {problems}", .path.display())]
    Content { name: String, path: PathBuf, problems: HierarchyErrors },
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
