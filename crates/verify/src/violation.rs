//! [`Violation`]: what a table or release does wrong, by column and row number, never by cell.
//!
//! Rows are numbered from 1 without the header. `n` is how often it happens, `first_row` where first.

use std::fmt;

use kohort_model::{Distance, Requirement, Role};

/// Everything that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Violations(pub Vec<Violation>);

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, violation) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{violation}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Violations {}

impl From<Violation> for Violations {
    fn from(violation: Violation) -> Self {
        Violations(vec![violation])
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum Violation {
    /// An empty table satisfies nothing.
    #[error("table '{table}' has no rows, so nothing can be said of it")]
    NoRows { table: String },
    /// Row numbers are 32 bits wide.
    #[error("table '{table}' has {n_rows} rows; at most 4294967294 can be verified")]
    TooManyRows { table: String, n_rows: u64 },
    /// A release of several tables, or of none.
    #[error("the release holds {n} tables where exactly one is meant")]
    NotOneTable { n: u64 },
    /// A column of another length than its table.
    #[error("column '{column}' has {n_cells} cells where the table has {n_rows} rows")]
    ColumnLength { column: String, n_cells: u64, n_rows: u64 },
    /// A cell that points behind its dictionary.
    #[error("column '{column}': {n} cells point to no text, first in row {first_row}")]
    CellWithoutText { column: String, n: u64, first_row: u64 },
    /// A requirement on a column that is not there.
    #[error("a requirement names column '{column}', which the table does not have")]
    UnknownColumn { column: String },
    /// Persons that can't be told apart.
    #[error(
        "person column '{column}' is null in {n} rows, first in row {first_row}; \
         hint: give each person an id, or leave the person column out so that each row is one"
    )]
    PersonMissing { column: String, n: u64, first_row: u64 },
    /// An own k that is no whole number.
    #[error("column '{column}': {n} persons' own k is not a whole number, first in row {first_row}")]
    OwnKUnreadable { column: String, n: u64, first_row: u64 },
    /// A distance by hierarchy without one.
    #[error("column '{column}' has no hierarchy, so its hierarchical distance is not defined; hint: give it one")]
    NoHierarchy { column: String },
    /// Values that the hierarchy does not know.
    #[error("column '{column}': {n} distinct values are no leaves of its hierarchy")]
    NotInHierarchy { column: String, n: u64 },

    /// A released row that comes from nowhere.
    #[error("{n} released rows name a source row that does not exist, first in released row {first_row}")]
    SourceRowOutOfRange { n: u64, first_row: u64 },
    /// A row of the private table that was released twice.
    #[error("{n} released rows repeat a source row, first in released row {first_row}")]
    SourceRowTwice { n: u64, first_row: u64 },
    /// A person of whom some rows are released and some not.
    #[error("{n} persons are released only in part, first seen in row {first_row} of the original")]
    PersonSplit { n: u64, first_row: u64 },
    /// A released column that has no source.
    #[error("released column '{column}' comes from no column of the original")]
    ColumnWithoutSource { column: String },
    /// A released column under another name.
    #[error("released column '{released}' comes from column '{column}' and must keep its name")]
    ColumnRenamed { column: String, released: String },
    /// A column twice, or not in the order of the file.
    #[error("released column '{column}' is out of order or released twice")]
    ColumnOrder { column: String },
    /// A column whose role keeps it out of any release.
    #[error("column '{column}' is released although its role is {role}")]
    ColumnForbidden { column: String, role: Role },
    /// The person column in a table that stands alone.
    #[error("column '{column}' names the person and is released; in a table that stands alone it must not be")]
    PersonReleased { column: String },
    /// A column that has to be released and is not.
    #[error("column '{column}' of role {role} is not released")]
    ColumnMissing { column: String, role: Role },
    /// Cells of another kind than the role asks for.
    #[error("column '{column}' of role {role} must be released {expected}")]
    WrongCells { column: String, role: Role, expected: &'static str },
    /// Released cells that do not cover what they stand for.
    #[error("column '{column}': {n} released cells do not cover their original, first in released row {first_row}")]
    NotCovered { column: String, n: u64, first_row: u64 },
    /// Keys whose renumbering is no renumbering.
    #[error(
        "key column '{column}': {n} rows are not numbered from 1 in the released order with equal keys kept equal, \
         first in released row {first_row}"
    )]
    KeyRenumbering { column: String, n: u64, first_row: u64 },

    /// The file has other columns than the release.
    #[error("the written file's columns are not those of the release, first at column {position}")]
    WrittenColumns { position: u64 },
    /// The file has another number of rows than the release.
    #[error("the written file has {written} rows where the release has {released}")]
    WrittenRows { released: u64, written: u64 },
    /// The file has other cells than the release.
    #[error("column '{column}': {n} cells of the written file are not those of the release, first in row {first_row}")]
    WrittenCells { column: String, n: u64, first_row: u64 },

    /// Released rows that no assignment can trace back to a row of the original.
    #[error("{n} released rows can't have come from the original, such as released row {first_row}")]
    WithoutOrigin { n: u64, first_row: u64 },
    /// More rows left out than admitted, or fewer.
    #[error("{counted} {what} of the original are not released where {admitted} are said to be suppressed")]
    SuppressedMiscounted { what: &'static str, admitted: u64, counted: u64 },
    /// Too many ways to trace rows back.
    #[error(
        "the released boxes overlap so much that more than {limit} origins would have to be weighed; \
         hint: verify without the original"
    )]
    TooManyOrigins { limit: u64 },

    /// A requirement that some class does not satisfy.
    #[error(
        "{}: {n_classes} classes fail, the worst reaching {}; the first stands in row {first_row} and has \
         {class_size} persons", Asked(requirement), Reached(*reached)
    )]
    Unmet { requirement: Requirement, n_classes: u64, reached: f64, first_row: u64, class_size: u64 },
}

/// A requirement in words.
struct Asked<'a>(&'a Requirement);

impl fmt::Display for Asked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Requirement::K(k) => write!(f, "at least {k} persons in each class"),
            Requirement::PersonK { column } => {
                write!(f, "at least as many persons as each member asks for in '{column}'")
            }
            Requirement::DistinctL { column, l } => write!(f, "column '{column}': at least {l} distinct values"),
            Requirement::EntropyL { column, l } => write!(f, "column '{column}': entropy of at least ln {l}"),
            Requirement::RecursiveCL { column, c, l } => {
                write!(f, "column '{column}': recursive ({c}, {l})-diversity")
            }
            Requirement::TCloseness { column, t, distance } => {
                let distance = match distance {
                    Distance::Equal => "equal",
                    Distance::Ordered => "ordered",
                    Distance::Hierarchical => "hierarchical",
                };
                write!(f, "column '{column}': {distance} distance of at most {t}")
            }
            Requirement::Alpha { column, alpha } => {
                write!(f, "column '{column}': no value held by more than {alpha} of the persons")
            }
            Requirement::Beta { column, beta } => {
                write!(f, "column '{column}': no value's share gains more than {beta}")
            }
            Requirement::EnhancedBeta { column, beta } => {
                write!(f, "column '{column}': no value's share gains more than {beta} or its surprise")
            }
        }
    }
}

/// A count as it is, a share to four places.
struct Reached(f64);

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.fract() == 0.0 { write!(f, "{}", self.0) } else { write!(f, "{:.4}", self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_place_and_what_was_reached() {
        let unmet =
            |requirement| Violation::Unmet { requirement, n_classes: 2, reached: 0.25, first_row: 7, class_size: 4 };
        let column = "disease".to_owned();
        let t = Requirement::TCloseness { column, t: 0.2, distance: Distance::Ordered };
        assert_eq!(
            Violations(vec![Violation::NoRows { table: "visit".to_owned() }, unmet(t)]).to_string(),
            "table 'visit' has no rows, so nothing can be said of it\n\
             column 'disease': ordered distance of at most 0.2: 2 classes fail, the worst reaching 0.2500; \
             the first stands in row 7 and has 4 persons"
        );
        assert!(unmet(Requirement::K(5)).to_string().starts_with("at least 5 persons in each class: 2 classes fail"));
    }
}
