//! What can be wrong with a hierarchy's file. Problems name lines and positions, never labels: those are values of
//! the private column.

/// One problem of a hierarchy's file. Lines and positions count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HierarchyError {
    /// Nothing but blank lines.
    #[error("the hierarchy has no rows")]
    NoRows,
    /// A quote opens a label and none ends it.
    #[error("line {line}: a quoted label is not closed")]
    UnclosedQuote {
        /// The row's line.
        line: usize,
    },
    /// Something other than a separator follows a closing quote.
    #[error("line {line}: text follows a closing quote")]
    TextAfterQuote {
        /// The row's line.
        line: usize,
    },
    /// A label without characters.
    #[error("line {line}: label {position} is empty")]
    EmptyLabel {
        /// The row's line.
        line: usize,
        /// The label's position in the row.
        position: usize,
    },
    /// A row of a single label.
    #[error("line {line}: the row has a value but no parent")]
    NoParent {
        /// The row's line.
        line: usize,
    },
    /// A row of edges that is no pair.
    #[error("line {line}: an edge is a child and its parent, and this row has {n_labels} labels")]
    NotAnEdge {
        /// The row's line.
        line: usize,
        /// How many labels it has.
        n_labels: usize,
    },
    /// A value that begins two rows which lead to different parents.
    #[error("line {line}: the value of line {earlier} again, on another path")]
    SecondPath {
        /// The row's line.
        line: usize,
        /// Where the value stood before.
        earlier: usize,
    },
    /// A label below two parents.
    #[error("line {line}: label {position} has another parent than in line {earlier}")]
    SecondParent {
        /// The row's line.
        line: usize,
        /// The label's position in the row.
        position: usize,
        /// Where it got its first parent.
        earlier: usize,
    },
    /// A value that is also an ancestor.
    #[error("line {line}: the value of this row is an ancestor of others in line {inner}")]
    ValueIsInner {
        /// The row's line.
        line: usize,
        /// A line where it is an ancestor.
        inner: usize,
    },
    /// Labels that are their own ancestors.
    #[error("{}: following the parents leads back to where it began", render_lines(.lines))]
    Cycle {
        /// The lines whose parents form the cycle.
        lines: Vec<usize>,
    },
    /// Several topmost labels, and the name of the root to be added above them is taken.
    #[error("there are {n_tops} topmost labels, and the root '*' cannot be added above them: line {line} uses '*'")]
    RootTaken {
        /// How many labels have no parent.
        n_tops: usize,
        /// Where `*` is used.
        line: usize,
    },
}

impl HierarchyError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            HierarchyError::NoRows => "write one row per value, from the value up to the root: value;parent;...;*",
            HierarchyError::UnclosedQuote { .. } | HierarchyError::TextAfterQuote { .. } => {
                "quote a whole label, on one line, and write a quote inside it twice: \"the \"\"old\"\" town\""
            }
            HierarchyError::EmptyLabel { .. } => "take out the empty label: rows may have different lengths",
            HierarchyError::NoParent { .. } => {
                "write the value's ancestors after it, separated by ';' or ',', up to the root"
            }
            HierarchyError::NotAnEdge { .. } => "give whole paths with hierarchy = \"file.csv\", without 'edges'",
            HierarchyError::SecondPath { .. } => "keep one of the two rows",
            HierarchyError::SecondParent { .. } => {
                "a label is one node of the tree: give it the same parent everywhere, or two different names"
            }
            HierarchyError::ValueIsInner { .. } => {
                "only values without anything below them begin a row: rename the ancestor"
            }
            HierarchyError::Cycle { .. } => "let every path end in the root, without meeting a label twice",
            HierarchyError::RootTaken { .. } => "end every row in one common root",
        }
    }
}

/// All problems of a hierarchy's file, in the order of their lines.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", render_problems(.0))]
pub struct HierarchyErrors(pub Vec<HierarchyError>);

fn render_problems(problems: &[HierarchyError]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn render_lines(lines: &[usize]) -> String {
    match lines {
        [line] => format!("line {line}"),
        [first @ .., last] => {
            let first = first.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            format!("lines {first} and {last}")
        }
        [] => String::new(),
    }
}
