//! What can be wrong with how tables hang together: which table, which rows, and what to do about it. Never a cell.

use std::fmt;

/// A message names so many rows and counts the others.
const NAMED: usize = 10;

/// One problem of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    /// The table.
    pub table: String,
    /// What is wrong with it.
    pub fault: SchemaErrorKind,
}

/// All problems, table by table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct SchemaErrors(pub Vec<SchemaError>);

/// What is wrong with a table. Rows are numbered from 1, ascending, and all there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaErrorKind {
    /// Rows that hang off nothing.
    #[error("{} without a row of '{parent}' to belong to", listed(.rows))]
    Orphans {
        /// The parent.
        parent: String,
        /// The rows.
        rows: Vec<u64>,
    },
    /// References to rows that are not there.
    #[error("{} with a reference in '{column}' to no row of '{target}'", listed(.rows))]
    Dangling {
        /// The column.
        column: String,
        /// The table it references.
        target: String,
        /// The rows.
        rows: Vec<u64>,
    },
    /// Rows without a key.
    #[error("{} without a key in '{column}'", listed(.rows))]
    NullKeys {
        /// The key.
        column: String,
        /// The rows.
        rows: Vec<u64>,
    },
    /// Rows with the key of an earlier one.
    #[error("{}", repeated(.rows, .column))]
    RepeatedKeys {
        /// The key.
        column: String,
        /// Each row with the first one of the same key.
        rows: Vec<(u64, u64)>,
    },
    /// Persons whom nothing hangs off.
    #[error("{} of persons without a row in any table that hangs off this one", listed(.rows))]
    Childless {
        /// The rows.
        rows: Vec<u64>,
    },
    /// A key column that the table does not have.
    #[error("there is no column '{column}'")]
    MissingColumn {
        /// The column.
        column: String,
    },
    /// A parent that is not there.
    #[error("there is no table '{parent}'")]
    MissingParent {
        /// The parent.
        parent: String,
    },
}

impl SchemaError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match &self.fault {
            SchemaErrorKind::Orphans { .. } => {
                "correct the foreign key, or leave such rows out with orphans = \"drop\" in this table"
            }
            SchemaErrorKind::Dangling { .. } => "correct the reference, or leave the cell empty",
            SchemaErrorKind::NullKeys { .. } | SchemaErrorKind::RepeatedKeys { .. } => {
                "a key names one row and only one"
            }
            SchemaErrorKind::Childless { .. } => "allow such persons with childless = \"keep\" in this table",
            SchemaErrorKind::MissingColumn { .. } => "name a column of the file as key, person or foreign_key",
            SchemaErrorKind::MissingParent { .. } => "name a table of the spec as parent",
        }
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table '{}': {}", self.table, self.fault)
    }
}

/// `row 3`, `rows 3, 4 and 9`, `rows 1, 2, ..., and 7 more`.
fn listed(rows: &[u64]) -> String {
    let named: Vec<String> = rows.iter().take(NAMED).map(ToString::to_string).collect();
    match (named.as_slice(), rows.len().saturating_sub(NAMED)) {
        ([row], _) => format!("row {row}"),
        ([first @ .., last], 0) => format!("rows {} and {last}", first.join(", ")),
        (named, more) => format!("rows {} and {more} more", named.join(", ")),
    }
}

/// `row 5 has the key of row 2 in 'id'`.
fn repeated(rows: &[(u64, u64)], column: &str) -> String {
    let named = rows.iter().take(NAMED).map(|(row, earlier)| format!("row {row} has the key of row {earlier}"));
    let named = named.collect::<Vec<_>>().join(", ");
    match rows.len().saturating_sub(NAMED) {
        0 => format!("{named} in '{column}'"),
        more => format!("{named} in '{column}', and {more} more"),
    }
}
