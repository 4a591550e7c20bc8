//! [`ReadError`]: what can be wrong with a file, said with place and remedy and without any of its cells.

use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;

use kohort_model::hierarchy::{HierarchyErrors, MakeError};
use kohort_model::{Role, ValueType};

use super::columns::FileColumns;
use super::nearest::nearest;
use crate::ErrorClass;

/// One problem of a file that is read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system failed.
    #[error("can't be read: {source}")]
    Io {
        /// What it said.
        source: std::io::Error,
    },
    /// The file name ends in nothing that is known.
    #[error("the name does not tell the format")]
    UnknownFormat,
    /// Parquet and Arrow files can't come from a pipe.
    #[error("only CSV and Arrow streams can be read from standard input")]
    NotFromStdin,
    /// Not what its name says, or damaged.
    #[error("is not a valid {format} file: {fault}")]
    Damaged {
        /// The format it was taken for.
        format: &'static str,
        /// What kind of fault its reader met. Never the reader's own words, because these may hold bytes of the file.
        fault: &'static str,
    },
    /// Not a byte in it.
    #[error("the file is empty")]
    Empty,
    /// Columns, but no rows.
    #[error("the file has columns but no rows")]
    NoRows,
    /// More rows than ids.
    #[error("the file has more than 4294967294 rows")]
    TooManyRows,
    /// Rows with too few or too many cells.
    #[error("{rows}: expected {expected} cells, found {found}{}", if rows.total > 1 { " in the first" } else { "" })]
    RaggedRows {
        /// Cells of the header.
        expected: usize,
        /// Cells of the first such row.
        found: usize,
        /// Where.
        rows: RowNumbers,
    },
    /// `"a"b`.
    #[error("{row}: text after a closing quote")]
    TextAfterQuote {
        /// Where.
        row: RowNumber,
    },
    /// A quote without its partner.
    #[error("{row}: a quote opens and is never closed")]
    UnclosedQuote {
        /// Where it opens.
        row: RowNumber,
    },
    /// A row that fills all memory set aside for one.
    #[error("{row}: the row is longer than 256 MiB")]
    RowTooLong {
        /// Where.
        row: RowNumber,
    },
    /// Bytes that are no text.
    #[error("{row}: invalid {encoding}")]
    InvalidText {
        /// Where.
        row: RowNumber,
        /// The encoding asked for.
        encoding: String,
    },
    /// An encoding nobody knows.
    #[error("unknown encoding '{name}'")]
    UnknownEncoding {
        /// As given.
        name: String,
    },
    /// A separator that can't be told from the rest.
    #[error("{separator:?} can't separate cells")]
    BadSeparator {
        /// As given.
        separator: char,
    },
    /// Two columns of one name.
    #[error("{} columns have the same name: {columns}", columns.len())]
    DuplicateColumn {
        /// All of them.
        columns: FileColumns,
    },
    /// A column without a name.
    #[error("column {position} has no name")]
    EmptyColumnName {
        /// Counted from 1.
        position: usize,
    },
    /// Columns of the file that the spec does not mention.
    #[error("{} no role: {columns}", if columns.len() == 1 { "column has" } else { "columns have" })]
    NoRole {
        /// Which.
        columns: FileColumns,
    },
    /// Columns of the spec that the file does not have.
    #[error("no such {}: {}", if columns.len() == 1 { "column" } else { "columns" }, quoted(columns))]
    UnknownColumn {
        /// Their names in the spec.
        columns: Vec<String>,
        /// The file's columns.
        known: FileColumns,
    },
    /// Columns named like bounds that are none.
    #[error("columns '{column}_lo' and '{column}_hi' are no bounds of '{column}', first in row {first_row}")]
    NoBounds {
        /// The column they would bound.
        column: String,
        /// Counted from 1.
        first_row: u64,
    },
    /// A rule where only released cells are at hand.
    #[error("column '{column}': a rule makes a hierarchy from private values, and releases don't show them")]
    RuleWithoutValues {
        /// The column.
        column: String,
    },
    /// Rows that belong to nobody.
    #[error("person column '{column}' is null in {rows}")]
    NullPerson {
        /// The column.
        column: String,
        /// Where.
        rows: RowNumbers,
    },
    /// A person's own k that is not a whole number from 0.
    #[error("person_k column '{column}' is not a whole number from 0 to 4294967295 in {rows}")]
    BadPersonK {
        /// The column.
        column: String,
        /// Where.
        rows: RowNumbers,
    },
    /// Values that are not of the column's type.
    #[error("column '{column}': {n_values} {} no {value_type}, in {rows}", values_are(*n_values))]
    NotOfType {
        /// The column.
        column: String,
        /// The type.
        value_type: ValueType,
        /// How many distinct values.
        n_values: usize,
        /// Where.
        rows: RowNumbers,
    },
    /// Values that look like dates, some of which no calendar has.
    #[error("column '{column}' looks like dates, but {n_values} {} impossible, in {rows}", values_are(*n_values))]
    ImpossibleDates {
        /// The column.
        column: String,
        /// How many distinct values.
        n_values: usize,
        /// Where.
        rows: RowNumbers,
    },
    /// An Arrow type that has no order or distance.
    #[error("column '{column}' of type {data_type} can't be {role}")]
    UnsupportedType {
        /// The column.
        column: String,
        /// Its role.
        role: Role,
        /// Its Arrow type.
        data_type: String,
    },
    /// An Arrow type that can't be copied.
    #[error("column '{column}' of type {data_type} can't be copied")]
    UnreadableType {
        /// The column.
        column: String,
        /// Its Arrow type.
        data_type: String,
    },
    /// Values that could be mistaken for a release's labels.
    #[error("column '{column}' holds '*' or ranges such as '[20,29]' itself, in {rows}")]
    LabelClash {
        /// The column.
        column: String,
        /// Where.
        rows: RowNumbers,
    },
    /// A hierarchy file that can't be read.
    #[error("column '{column}': hierarchy {}: can't be read: {source}", path.display())]
    HierarchyIo {
        /// The column.
        column: String,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A hierarchy file with problems.
    #[error("column '{column}': hierarchy {}: {problems}", path.display())]
    Hierarchy {
        /// The column.
        column: String,
        /// The file.
        path: PathBuf,
        /// All of them.
        problems: HierarchyErrors,
    },
    /// A rule that does not fit the values.
    #[error("column '{column}': {problem}")]
    HierarchyRule {
        /// The column.
        column: String,
        /// Why.
        problem: MakeError,
    },
    /// Values the hierarchy does not have.
    #[error(
        "column '{column}': {} {} missing from the hierarchy: {}",
        values.len(),
        values_are(values.len()),
        each_once(values)
    )]
    NotInHierarchy {
        /// The column.
        column: String,
        /// Every missing value, by its first row.
        values: Vec<MissingValue>,
    },
    /// An identifier that would have to be released.
    #[error("column '{column}' is an identifier and joins tables, and keys = \"keep\" would release it")]
    IdentifierKept {
        /// The column.
        column: String,
    },
    /// Persons of several rows beside a register.
    #[error("person column '{column}' repeats a person in {rows}; with a register each person has one row")]
    PersonTwice {
        /// The column.
        column: String,
        /// Where.
        rows: RowNumbers,
    },
    /// A name that releases beside a register need themselves.
    #[error("a {what} is called '{name}', which a release with a register needs for something else")]
    ReservedName {
        /// A table or a column.
        what: &'static str,
        /// The name.
        name: &'static str,
    },
    /// A register that is not the one the spec means.
    #[error("its sha256 begins with {found}, and the spec pins one that begins with {pinned}")]
    OtherDigest {
        /// The first digits of the spec's.
        pinned: String,
        /// The first digits of the file's.
        found: String,
    },
    /// A column of a register that stands for two.
    #[error("column '{column}' would stand for two columns at once")]
    RegisterColumnTwice {
        /// The column.
        column: String,
    },
    /// Register rows without something, where the spec refuses them.
    #[error("column '{column}' is null in {rows}, and missing = \"refuse\"")]
    RegisterLacks {
        /// The column.
        column: String,
        /// Where.
        rows: RowNumbers,
    },
    /// Hierarchical distance without a hierarchy.
    #[error("column '{column}' asks for hierarchical distance and has no hierarchy")]
    NeedsHierarchy {
        /// The column.
        column: String,
    },
}

impl ReadError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            ReadError::Io { .. } | ReadError::HierarchyIo { .. } => {
                "check that the path is right and that you may read it".into()
            }
            ReadError::UnknownFormat => "name it .csv, .csv.gz, .csv.zst, .parquet or .arrow".into(),
            ReadError::NotFromStdin => "give the file by its name".into(),
            ReadError::Damaged { .. } => "check that the file is complete and of the kind its name says".into(),
            ReadError::Empty | ReadError::NoRows => "check that this is the file you mean".into(),
            ReadError::TooManyRows => "split the table".into(),
            ReadError::RaggedRows { .. } => {
                "check the separator (separator = \";\" in a spec), and quote cells that hold it".into()
            }
            ReadError::TextAfterQuote { .. } => "double the quotes inside a quoted cell: \"a \"\"b\"\" c\"".into(),
            ReadError::UnclosedQuote { .. } | ReadError::RowTooLong { .. } => {
                "close the quote, or double it if it is part of the text".into()
            }
            ReadError::InvalidText { .. } => {
                "say how the file is encoded, e.g. encoding = \"windows-1252\" in a spec".into()
            }
            ReadError::UnknownEncoding { .. } => {
                "use a name such as \"utf-8\", \"windows-1252\" or \"utf-16le\"".into()
            }
            ReadError::BadSeparator { .. } => "use one ASCII character other than a quote or a line break".into(),
            ReadError::DuplicateColumn { .. } => "rename all but one of them".into(),
            ReadError::EmptyColumnName { .. } => "name it in the header, or say header = false".into(),
            ReadError::NoRole { columns } => match columns.names() {
                Some(names) => {
                    let first = names.first().map_or("", String::as_str);
                    format!("give every column a role, e.g. {first} = \"quasi\" in a spec or --quasi {first}")
                }
                None => NO_HEADER.into(),
            },
            ReadError::UnknownColumn { columns, known } => match known.names() {
                Some(known) => {
                    let near: Option<Vec<String>> = columns
                        .iter()
                        .map(|column| nearest(column, known.iter().map(String::as_str)).map(str::to_owned))
                        .collect();
                    match near {
                        Some(near) => format!("did you mean {}?", quoted(&near)),
                        None => format!("the file has {}", quoted(known)),
                    }
                }
                None => format!("none of the {} columns of the file is called so; {NO_HEADER}", known.len()),
            },
            ReadError::NoBounds { .. } => "give both bounds or none, the upper one next to the lower".into(),
            ReadError::RuleWithoutValues { .. } => {
                "write it to a file with `kohort hierarchy make`, from the private table, and name the file".into()
            }
            ReadError::NullPerson { .. } => "remove these rows, or say whose they are".into(),
            ReadError::BadPersonK { .. } => "write each person's own k as a number; 0 where they have no wish".into(),
            ReadError::NotOfType { column, value_type, .. } => match value_type {
                ValueType::Date | ValueType::Timestamp => format!(
                    "dates run from 0000-01-01 to 9999-12-31; say date_format, or give '{column}' type = \"text\""
                ),
                ValueType::Decimal | ValueType::Float => {
                    format!("say decimal = \",\" if that is how they are written, or give '{column}' type = \"text\"")
                }
                ValueType::Integer | ValueType::Text | ValueType::Boolean => {
                    format!("correct them, or give '{column}' type = \"text\"")
                }
            },
            ReadError::ImpossibleDates { column, .. } => {
                format!("correct them, or give '{column}' type = \"text\"")
            }
            ReadError::UnsupportedType { column, .. } => {
                format!("convert '{column}' to text, numbers or dates, or give it role \"plain\" or \"drop\"")
            }
            ReadError::UnreadableType { column, .. } => format!("give '{column}' role \"drop\", or convert it"),
            ReadError::LabelClash { column, .. } => {
                format!("give '{column}' a hierarchy that has these values as leaves, or rename them")
            }
            ReadError::Hierarchy { .. } => "`kohort hierarchy check` shows them all".into(),
            ReadError::HierarchyRule { .. } => return None,
            ReadError::NotInHierarchy { column, .. } => {
                format!("add these values of '{column}' to the hierarchy as leaves, or correct them")
            }
            ReadError::IdentifierKept { column } => {
                format!("leave keys = \"keep\" out, or give '{column}' role \"key\" if it may be released")
            }
            ReadError::PersonTwice { .. } => {
                "bring each person to one row, for example the latest, or release without a register".into()
            }
            ReadError::ReservedName { what, .. } => format!("rename the {what}"),
            ReadError::OtherDigest { .. } => {
                "get the register that is meant, or pin this one if it is: sha256sum shows all digits".into()
            }
            ReadError::RegisterColumnTwice { .. } => {
                "name one column of the register for the key and for each quasi column".into()
            }
            ReadError::RegisterLacks { .. } => {
                "complete these rows, or leave them out with missing = \"skip\" under [register]".into()
            }
            ReadError::NeedsHierarchy { column } => {
                format!("give '{column}' a hierarchy, or distance = \"equal\" or \"ordered\"")
            }
        };
        Some(hint)
    }

    /// Who can do something about it.
    pub fn class(&self) -> ErrorClass {
        match self {
            ReadError::Io { source } | ReadError::HierarchyIo { source, .. } => match source.kind() {
                // The wrong file was named, or it does not hold what its name says.
                ErrorKind::NotFound
                | ErrorKind::IsADirectory
                | ErrorKind::InvalidData
                | ErrorKind::InvalidInput
                | ErrorKind::UnexpectedEof => ErrorClass::Input,
                _ => ErrorClass::Io,
            },
            _ => ErrorClass::Input,
        }
    }
}

/// What to do where the first row may be data.
const NO_HEADER: &str = "if its first row is data, say header = false and give roles to column_1, column_2 and so on";

/// All problems of one file.
#[derive(Debug)]
pub struct ReadErrors {
    /// The file.
    pub file: PathBuf,
    /// At least one problem.
    pub problems: Vec<ReadError>,
}

impl ReadErrors {
    /// Who can do something about them.
    pub fn class(&self) -> ErrorClass {
        if self.problems.iter().any(|problem| problem.class() == ErrorClass::Io) {
            ErrorClass::Io
        } else {
            ErrorClass::Input
        }
    }
}

impl fmt::Display for ReadErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            let line_break = if i == 0 { "" } else { "\n" };
            write!(f, "{line_break}{}: {problem}", self.file.display())?;
        }
        Ok(())
    }
}

impl std::error::Error for ReadErrors {}

/// A row of a file, data rows counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowNumber {
    /// The row that names the columns.
    Header,
    /// A row of data.
    Data(u64),
}

impl fmt::Display for RowNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RowNumber::Header => f.write_str("header"),
            RowNumber::Data(row) => write!(f, "row {row}"),
        }
    }
}

/// Rows that share a problem: the first few, and how many in all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowNumbers {
    /// The first few, counted from 1.
    pub first: Vec<u64>,
    /// How many there are.
    pub total: u64,
}

impl RowNumbers {
    const SHOWN: usize = 5;

    pub(crate) fn add(&mut self, row: u64) {
        if self.first.len() < RowNumbers::SHOWN {
            self.first.push(row);
        }
        self.total += 1;
    }

    /// Rows whose id satisfies a condition.
    pub(crate) fn with_ids(ids: &[u32], mut wanted: impl FnMut(u32) -> bool) -> Self {
        let mut rows = RowNumbers::default();
        for (row, &id) in ids.iter().enumerate() {
            if wanted(id) {
                rows.add(row as u64 + 1);
            }
        }
        rows
    }
}

impl fmt::Display for RowNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<String> = self.first.iter().map(u64::to_string).collect();
        let hidden = self.total - shown.len() as u64;
        match (shown.as_slice(), hidden) {
            ([row], 0) => write!(f, "row {row}"),
            ([rows @ .., last], 0) => write!(f, "rows {} and {last}", rows.join(", ")),
            (rows, _) => write!(f, "rows {} and {hidden} more", rows.join(", ")),
        }
    }
}

/// A value that a hierarchy does not have, by where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingValue {
    /// The first row that holds it, counted from 1.
    pub first_row: u64,
    /// How many rows hold it.
    pub n_rows: u64,
}

/// Missing values by first row and number of rows, as many as a person reads.
fn each_once(values: &[MissingValue]) -> String {
    const SHOWN: usize = 40;
    let rows = |value: &MissingValue| match value.n_rows {
        1 => format!("row {}", value.first_row),
        n_rows => format!("row {} ({n_rows} rows)", value.first_row),
    };
    let shown: Vec<String> = values.iter().take(SHOWN).map(rows).collect();
    match values.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        hidden => format!("{} and {hidden} values more", shown.join(", ")),
    }
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    names.join(", ")
}

fn values_are(n_values: usize) -> &'static str {
    if n_values == 1 { "value is" } else { "values are" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_listed_up_to_five_and_counted_beyond() {
        let rows = |rows: &[u64]| {
            let mut all = RowNumbers::default();
            rows.iter().for_each(|&row| all.add(row));
            all.to_string()
        };
        assert_eq!(rows(&[7]), "row 7");
        assert_eq!(rows(&[7, 9]), "rows 7 and 9");
        assert_eq!(rows(&[1, 2, 3, 4, 5]), "rows 1, 2, 3, 4 and 5");
        assert_eq!(rows(&[1, 2, 3, 4, 5, 6, 7]), "rows 1, 2, 3, 4, 5 and 2 more");
    }

    #[test]
    fn an_unknown_column_is_hinted_at_by_its_likely_name() {
        let names = ["age".to_owned(), "postcode".to_owned()];
        let hint = |asked: &[&str]| {
            let known = FileColumns::of_file(&names, asked.iter().copied());
            let unknown = asked.iter().filter(|asked| !names.iter().any(|name| name == **asked));
            let problem = ReadError::UnknownColumn { columns: unknown.map(|&name| name.to_owned()).collect(), known };
            problem.hint().unwrap()
        };
        assert_eq!(hint(&["Age"]), "did you mean 'age'?");
        assert_eq!(hint(&["age", "disease"]), "the file has 'age', 'postcode'");
        assert!(hint(&["disease"]).starts_with("none of the 2 columns of the file is called so; "));
    }

    #[test]
    fn messages_say_where_and_how_many() {
        let rows = RowNumbers { first: vec![3, 8], total: 2 };
        let values = vec![MissingValue { first_row: 3, n_rows: 2 }, MissingValue { first_row: 8, n_rows: 1 }];
        let problem = ReadError::NotInHierarchy { column: "zip".into(), values };
        let expected = "column 'zip': 2 values are missing from the hierarchy: row 3 (2 rows), row 8";
        assert_eq!(problem.to_string(), expected);
        let problem = ReadError::RaggedRows { expected: 4, found: 3, rows };
        assert_eq!(problem.to_string(), "rows 3 and 8: expected 4 cells, found 3 in the first");
    }
}
