//! Faults in the links between tables: which table, which rows, and what to do. Messages never contain a cell.

use std::fmt;

/// The number of rows that a message names. The others are counted.
const NAMED: usize = 10;

/// One fault of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    /// The table.
    pub table: String,
    /// What is wrong with the table.
    pub fault: SchemaErrorKind,
}

/// All faults, table by table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct SchemaErrors(pub Vec<SchemaError>);

/// What is wrong with a table. All rows concerned are listed, ascending, numbered from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum SchemaErrorKind {
    /// Rows without a parent.
    #[error("{} without a row of '{parent}' to belong to", listed(.rows))]
    Orphans { parent: String, rows: Vec<u64> },
    /// References to rows that do not exist.
    #[error("{} with a reference in '{column}' to no row of '{target}'", listed(.rows))]
    Dangling { column: String, target: String, rows: Vec<u64> },
    /// Rows without a key.
    #[error("{} without a key in '{column}'", listed(.rows))]
    NullKeys { column: String, rows: Vec<u64> },
    /// Rows with the key of an earlier row.
    #[error("{}", repeated(.rows, .column))]
    RepeatedKeys {
        column: String,
        /// Each row with the first one of the same key.
        rows: Vec<(u64, u64)>,
    },
    /// Persons without a row in any child table.
    #[error("{} without a row in any child table", listed(.rows))]
    Childless { rows: Vec<u64> },
    /// A key column that the table does not have.
    #[error("there is no column '{column}'")]
    MissingColumn { column: String },
    /// A parent that does not exist.
    #[error("there is no table '{parent}'")]
    MissingParent { parent: String },
}

impl SchemaError {
    /// What to do about the fault.
    pub fn hint(&self) -> &'static str {
        match &self.fault {
            SchemaErrorKind::Orphans { .. } => {
                "correct the foreign key, or leave such rows out with orphans = \"drop\" in this table"
            }
            SchemaErrorKind::Dangling { .. } => "correct the reference, or leave the cell empty",
            SchemaErrorKind::NullKeys { .. } | SchemaErrorKind::RepeatedKeys { .. } => "give each row a key of its own",
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
