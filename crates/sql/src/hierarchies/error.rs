//! [`DghError`]: what is wrong with a DGH or its use.

use std::path::PathBuf;
use std::sync::Arc;

use kohort_model::hierarchy::{HierarchyErrors, MakeError};

/// What is wrong with a DGH, or with a column that uses it. Labels are shown, values of columns are counted.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DghError {
    /// A name nothing has.
    #[error("there is no DGH '{name}'")]
    Unknown {
        /// The name.
        name: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// A name that is taken.
    #[error("there is a DGH '{name}' already")]
    Exists {
        /// The name.
        name: String,
    },
    /// Pairs for a DGH that takes none.
    #[error("DGH '{name}' comes from a file or a rule and takes no pairs")]
    Finished {
        /// Its name.
        name: String,
    },
    /// A pair that is there already.
    #[error("pair {position}: '{child}' has the parent '{parent}' already")]
    Repeated {
        /// Its position in the statement, from 1.
        position: usize,
        /// The child.
        child: String,
        /// The parent.
        parent: String,
    },
    /// A second parent.
    #[error("pair {position}: '{child}' has another parent, '{parent}'")]
    SecondParent {
        /// Its position in the statement, from 1.
        position: usize,
        /// The child.
        child: String,
        /// The parent it has.
        parent: String,
    },
    /// A label above itself.
    #[error("pair {position}: '{child}' would stand above itself")]
    Cycle {
        /// Its position in the statement, from 1.
        position: usize,
        /// The child.
        child: String,
    },
    /// A label nothing can show.
    #[error("pair {position}: {what}")]
    BadLabel {
        /// Its position in the statement, from 1.
        position: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// No pair.
    #[error("DGH '{name}' has no pairs yet")]
    Empty {
        /// Its name.
        name: String,
    },
    /// Labels without a parent.
    #[error("DGH '{name}' has {n_roots} roots: {}", name_some(.some, *.n_roots))]
    SeveralRoots {
        /// Its name.
        name: String,
        /// How many.
        n_roots: usize,
        /// Some of them.
        some: Vec<String>,
    },
    /// Values that are not in it.
    #[error("DGH '{name}' has no leaf for values of the column: {n_values} distinct")]
    NoLeaf {
        /// Its name.
        name: String,
        /// How many values.
        n_values: usize,
    },
    /// A rule that does not fit.
    #[error("DGH '{name}': {problem}")]
    Rule {
        /// Its name.
        name: String,
        /// Why not.
        problem: MakeError,
    },
    /// A file that can't be read.
    #[error("{}: can't be read: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: Arc<std::io::Error>,
    },
    /// A file that holds no tree.
    #[error("DGH '{name}': {}: {problems}", .path.display())]
    Content {
        /// Its name.
        name: String,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problems: HierarchyErrors,
    },
}

impl DghError {
    /// What to do about it, where there is a remedy.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            DghError::Unknown { known, .. } if known.is_empty() => {
                "make one, for example: CREATE DGH zip FROM 'zip.csv'".to_owned()
            }
            DghError::Unknown { known, .. } => format!("there are: {}", known.join(", ")),
            DghError::Exists { .. } => "write CREATE OR REPLACE DGH, or drop it first".to_owned(),
            DghError::Finished { .. } => "add the rows to its file, and create it again".to_owned(),
            DghError::Repeated { .. } => "nothing was inserted: leave the pair out".to_owned(),
            DghError::SecondParent { .. } => {
                "nothing was inserted: a label is one node of the tree, with one parent".to_owned()
            }
            DghError::Cycle { .. } => "nothing was inserted: following the parents must end in the root".to_owned(),
            DghError::BadLabel { .. } => "nothing was inserted: correct the label".to_owned(),
            DghError::Empty { name } => format!("for example: INSERT INTO DGH {name} VALUES ('88512', '*****')"),
            DghError::SeveralRoots { .. } => "insert pairs that put them below one common root".to_owned(),
            DghError::NoLeaf { .. } => {
                "add the values, spelled as the column spells them, or use a rule: STEPS, MASK, DATES or FLAT"
                    .to_owned()
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
