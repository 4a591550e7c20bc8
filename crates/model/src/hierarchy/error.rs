//! Faults of a hierarchy file. Messages name lines and positions, never labels, because labels are values of the
//! private column.

/// One fault of a hierarchy file. Lines and positions count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum HierarchyError {
    /// The file has only blank lines.
    #[error("the hierarchy has no rows")]
    NoRows,
    /// A quote opens a label, and no quote closes it.
    #[error("line {line}: a quoted label is not closed")]
    UnclosedQuote { line: usize },
    /// Something other than a separator follows a closing quote.
    #[error("line {line}: text follows a closing quote")]
    TextAfterQuote { line: usize },
    /// A label without characters.
    #[error("line {line}: label {position} is empty")]
    EmptyLabel { line: usize, position: usize },
    /// A row of a single label.
    #[error("line {line}: the row has a value but no parent")]
    NoParent { line: usize },
    /// A row of edges that is not a pair.
    #[error("line {line}: an edge is a child and its parent, but this row has {n_labels} labels")]
    NotAnEdge { line: usize, n_labels: usize },
    /// A value that begins two rows with different parents.
    #[error("line {line}: the value is the same as in line {earlier}, but its path differs")]
    SecondPath { line: usize, earlier: usize },
    /// A label below two parents.
    #[error("line {line}: label {position} has another parent than in line {earlier}")]
    SecondParent { line: usize, position: usize, earlier: usize },
    /// A value that is also an ancestor.
    #[error("line {line}: the value of this row is an ancestor of another value in line {inner}")]
    ValueIsInner { line: usize, inner: usize },
    /// Labels that are their own ancestors.
    #[error("{}: the parents form a circle", render_lines(.lines))]
    Cycle { lines: Vec<usize> },
    /// Several topmost labels, and the name of the root to be added above them is taken.
    #[error(
        "there are {n_tops} topmost labels, but the root '*' can't be added above them, because line {line} uses '*'"
    )]
    RootTaken { n_tops: usize, line: usize },
}

impl HierarchyError {
    /// What to do about the fault.
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
                "rename the ancestor, because only values without anything below them may begin a row"
            }
            HierarchyError::Cycle { .. } => "make every path end in the root, and name no label twice on the way",
            HierarchyError::RootTaken { .. } => "end every row in one common root",
        }
    }
}

/// All faults of a hierarchy file, in the order of their lines.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct HierarchyErrors(pub Vec<HierarchyError>);

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
