//! [`ReadError`]: what can be wrong with a file. Messages say where, hints say what to do, and neither shows a cell.

use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;

use kohort_model::hierarchy::{HierarchyErrors, MakeError};
use kohort_model::{Role, ValueType};
use kohort_verify::Violation;

use super::columns::FileColumns;
use super::nearest::nearest;
use super::pseudonym::KeyFault;
use crate::ErrorClass;

/// One problem of a file that is read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ReadError {
    /// The operating system failed.
    #[error("can't be read: {source}")]
    Io { source: std::io::Error },
    /// The ending of the file name is not known.
    #[error("the file name does not tell the format")]
    UnknownFormat,
    /// Parquet and Arrow files can't come from a pipe.
    #[error("only CSV and Arrow streams can be read from standard input")]
    NotFromStdin,
    /// The file is damaged, or has another format than its name says.
    #[error("not a valid {format} file: {fault}")]
    Damaged {
        format: &'static str,
        /// The kind of the fault. The message of the reader is not used, because it may quote bytes of the file.
        fault: &'static str,
    },
    /// The file has no bytes.
    #[error("the file is empty")]
    Empty,
    /// Columns, but no rows.
    #[error("the file has columns but no rows")]
    NoRows,
    /// There are more rows than ids.
    #[error("the file has more than 4294967294 rows")]
    TooManyRows,
    /// Rows with too few or too many cells.
    #[error("{rows}: expected {expected} cells, found {found}{}", if rows.total > 1 { " in the first" } else { "" })]
    RaggedRows { expected: usize, found: usize, rows: RowNumbers },
    /// Text right after a closing quote, as in `"a"b`.
    #[error("{row}: text after a closing quote")]
    TextAfterQuote { row: RowNumber },
    /// A quote without its partner.
    #[error("{row}: a quote opens and is never closed")]
    UnclosedQuote { row: RowNumber },
    /// A row that is longer than the memory set aside for one.
    #[error("{row}: the row is longer than 256 MiB")]
    RowTooLong { row: RowNumber },
    /// Bytes that are no text.
    #[error("{row}: bytes that are not {encoding}")]
    InvalidText { row: RowNumber, encoding: String },
    /// An unknown encoding.
    #[error("unknown encoding '{name}'")]
    UnknownEncoding { name: String },
    /// A byte order mark of another encoding than the spec names.
    #[error("the file begins with the byte order mark of {marked}, but the spec says encoding '{encoding}'")]
    ContradictingMark { encoding: String, marked: &'static str },
    /// UTF-16 in an order of bytes that neither the spec nor the file tells.
    #[error("encoding '{encoding}' leaves the byte order open, and the file has no byte order mark")]
    NoByteOrder { encoding: String },
    /// A character that can't be a separator.
    #[error("{separator:?} can't separate cells")]
    BadSeparator { separator: char },
    /// Two columns of one name.
    #[error("{} columns have the same name: {columns}", columns.len())]
    DuplicateColumn { columns: FileColumns },
    /// A column without a name.
    #[error("column {position} has no name")]
    EmptyColumnName { position: usize },
    /// Columns of the file that the spec does not mention.
    #[error("{} no role: {columns}", if columns.len() == 1 { "column has" } else { "columns have" })]
    NoRole { columns: FileColumns },
    /// Columns of the spec that the file does not have.
    #[error("no such {}: {}", if columns.len() == 1 { "column" } else { "columns" }, quoted(columns))]
    UnknownColumn { columns: Vec<String>, known: FileColumns },
    /// Columns that are named like bounds but hold none.
    #[error("columns '{column}_lo' and '{column}_hi' don't hold bounds of '{column}', first in row {first_row}")]
    NoBounds { column: String, first_row: u64 },
    /// A rule for a hierarchy, although only released cells are given.
    #[error("column '{column}': a rule makes a hierarchy from private values, and releases don't show them")]
    RuleWithoutValues { column: String },
    /// Some rows have no person: the person column is null there.
    #[error("person column '{column}' is null in {rows}")]
    NullPerson { column: String, rows: RowNumbers },
    /// A person's own k that is not a whole number.
    #[error("person_k column '{column}' is not a whole number from 0 to 4294967295 in {rows}")]
    BadPersonK { column: String, rows: RowNumbers },
    /// Values that don't have the type of their column.
    #[error("column '{column}': {n_values} {} no {value_type}, in {rows}", values_are(*n_values))]
    NotOfType { column: String, value_type: ValueType, n_values: usize, rows: RowNumbers },
    /// Values that look like dates, of which some are impossible.
    #[error("column '{column}' looks like dates, but {n_values} {} impossible, in {rows}", values_are(*n_values))]
    ImpossibleDates { column: String, n_values: usize, rows: RowNumbers },
    /// An Arrow type that has no order or distance.
    #[error("column '{column}' of type {data_type} can't be {role}")]
    UnsupportedType { column: String, role: Role, data_type: String },
    /// The program that holds a column in memory can't hand it over.
    #[error("column '{column}' {fault}")]
    NotHandedOver { column: String, fault: String, hint: String },
    /// An Arrow type that can't be copied.
    #[error("column '{column}' of type {data_type} can't be copied")]
    UnreadableType { column: String, data_type: String },
    /// Values that look like labels of a release.
    #[error("column '{column}' already holds '*' or ranges such as '[20,29]', in {rows}")]
    LabelClash { column: String, rows: RowNumbers },
    /// Several rows with one value, which its pseudonym would link.
    #[error("column '{column}': pseudonyms would link the rows of one value, in {rows}")]
    PseudonymRepeats { column: String, rows: RowNumbers },
    /// A key that can't be used.
    #[error("column '{column}': the key {}: {why}", path.display())]
    PseudonymKey { column: String, path: PathBuf, why: KeyFault },
    /// A hierarchy file that can't be read.
    #[error("column '{column}': hierarchy {}: can't be read: {source}", path.display())]
    HierarchyIo { column: String, path: PathBuf, source: std::io::Error },
    /// A hierarchy file with problems.
    #[error("column '{column}': hierarchy {}: {problems}", path.display())]
    Hierarchy { column: String, path: PathBuf, problems: HierarchyErrors },
    /// A rule that does not fit the values.
    #[error("column '{column}': {problem}")]
    HierarchyRule { column: String, problem: MakeError },
    /// Values that the hierarchy lacks.
    #[error(
        "column '{column}': {} {} missing from the hierarchy: {}",
        values.len(),
        values_are(values.len()),
        each_once(values)
    )]
    NotInHierarchy {
        column: String,
        /// Every missing value, by its first row.
        values: Vec<MissingValue>,
    },
    /// An identifier that the spec would release.
    #[error("column '{column}' is an identifier and joins tables, and keys = \"keep\" would release it")]
    IdentifierKept { column: String },
    /// Persons with several rows in a release with a register.
    #[error("person column '{column}' repeats a person in {rows}; with a register each person has one row")]
    PersonTwice { column: String, rows: RowNumbers },
    /// A name that releases with a register use themselves.
    #[error("a {what} is called '{name}', a name that releases with a register use themselves")]
    ReservedName { what: &'static str, name: &'static str },
    /// A register that is not the one that the spec pins.
    #[error("its sha256 begins with {found}, but the spec pins one that begins with {pinned}")]
    OtherDigest { pinned: String, found: String },
    /// A column of a register that would be used for two columns.
    #[error("column '{column}' is used for two columns")]
    RegisterColumnTwice { column: String },
    /// Register rows that lack a value, if the spec refuses such rows.
    #[error("column '{column}' is null in {rows}, which missing = \"refuse\" does not allow")]
    RegisterLacks { column: String, rows: RowNumbers },
    /// Standard input or columns of a program, although the table must be read several times, row by row.
    #[error("a table that is larger than memory must be a file, because it is read several times")]
    ReadOnce,
    /// The file is not the same as when it was read before.
    #[error("the file has changed while it was read")]
    FileChanged,
    /// The distinct values of the columns don't fit into memory.
    #[error("the distinct values don't fit into the given memory: column '{column}' alone has more than {n_values}")]
    TooManyValues { column: String, n_values: usize },
    /// A change of cells that needs values of another type.
    #[error("column '{column}': {key} needs {needs}, but the column is of type {value_type}")]
    TransformOnType { column: String, key: &'static str, needs: &'static str, value_type: ValueType },
    /// Numbers that can't be rounded exactly.
    #[error("column '{column}': some numbers can't be rounded, because they are written with an exponent or too long")]
    NotRounded { column: String },
    /// A bound that is no value of the column's type.
    #[error("column '{column}': the bound of {key} is no {value_type}")]
    BoundNotOfType { column: String, key: &'static str, value_type: ValueType },
    /// A bound that codes nothing, or everything.
    #[error("column '{column}': the bound of {key} lies outside of the data, so it would code no value or all")]
    BoundOutside { column: String, key: &'static str },
    /// A bottom above the top.
    #[error("column '{column}': bottom is not below top")]
    BoundsCross { column: String },
    /// A bound by quantile would show a value of fewer than k persons.
    #[error(
        "column '{column}': no value on the inner side of the quantile of {key} is held by {k} persons, so the bound would show somebody's value"
    )]
    QuantileHeldByFew { column: String, key: &'static str, k: u32 },
    /// Persons with several rows who hold a value are not counted in a table that is larger than memory.
    #[error(
        "column '{column}': {key} by a quantile needs the whole table in memory in this version, because persons may have several \
         rows"
    )]
    QuantileInCells { column: String, key: &'static str },
    /// A fault of ours: changed cells are not what the spec says.
    #[error("{violation}")]
    Transform { violation: Violation },
    /// Hierarchical distance without a hierarchy.
    #[error("column '{column}' asks for hierarchical distance but has no hierarchy")]
    NeedsHierarchy { column: String },
}

impl ReadError {
    /// The same problem of a table of which only the distinct values were at hand, one in each row. The rows of the file are not
    /// known then, except for values that a hierarchy lacks: `place` tells first row and number of rows of a value.
    pub(crate) fn of_values(mut self, place: impl Fn(&str, u64) -> MissingValue) -> Self {
        if let ReadError::NotInHierarchy { column, values, .. } = &mut self {
            values.iter_mut().for_each(|value| *value = place(column, value.first_row));
            values.sort_unstable_by_key(|value| value.first_row);
        }
        if let ReadError::NullPerson { rows, .. }
        | ReadError::BadPersonK { rows, .. }
        | ReadError::NotOfType { rows, .. }
        | ReadError::ImpossibleDates { rows, .. }
        | ReadError::PseudonymRepeats { rows, .. }
        | ReadError::LabelClash { rows, .. } = &mut self
        {
            *rows = RowNumbers::default();
        }
        self
    }

    /// What to do about the problem.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            ReadError::Io { .. } | ReadError::HierarchyIo { .. } => {
                "check that the path is right and that you may read it".into()
            }
            ReadError::UnknownFormat => "name it .csv, .csv.gz, .csv.zst, .parquet or .arrow".into(),
            ReadError::NotFromStdin => "give the file by its name".into(),
            ReadError::Damaged { .. } => "check that the file is complete and of the kind its name says".into(),
            ReadError::ReadOnce => "write the table to a file first".into(),
            ReadError::FileChanged => "try again when nobody writes to it".into(),
            ReadError::TooManyValues { column, .. } => {
                format!("give more memory, drop '{column}', or release it in larger units")
            }
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
            ReadError::ContradictingMark { marked, .. } => {
                format!("say encoding = \"{}\", or leave encoding out", marked.to_ascii_lowercase())
            }
            ReadError::NoByteOrder { .. } => "say encoding = \"utf-16le\" or \"utf-16be\"".into(),
            ReadError::BadSeparator { .. } => "use one ASCII character other than a quote or a line break".into(),
            ReadError::DuplicateColumn { .. } => "rename all but one of them".into(),
            ReadError::EmptyColumnName { .. } => "name it in the header, or say header = false".into(),
            ReadError::NoRole { columns } => match columns.names() {
                Some(names) => {
                    let first = names.first().map_or("", String::as_str);
                    format!("give every column a role, e.g. {first} = \"quasi\" in a spec or {{quasi={first}}}")
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
                None => format!("none of the {} columns of the file has this name; {NO_HEADER}", known.len()),
            },
            ReadError::NoBounds { .. } => "give both bounds or none in each row, and put the column of upper bounds right after that of lower ones".into(),
            ReadError::RuleWithoutValues { .. } => {
                "make the hierarchy from the private table with `kohort hierarchy make`, and name its file".into()
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
            ReadError::NotHandedOver { hint, .. } => hint.clone(),
            ReadError::UnreadableType { column, .. } => format!("give '{column}' role \"drop\", or convert it"),
            ReadError::LabelClash { column, .. } => {
                format!("give '{column}' a hierarchy that has these values as leaves, or rename them")
            }
            ReadError::PseudonymRepeats { column, .. } => {
                format!("release one row for each person, or give '{column}' role \"identifier\" or \"drop\"")
            }
            ReadError::PseudonymKey { path, why, .. } => why.hint(path),
            ReadError::Hierarchy { .. } => "`kohort hierarchy check` shows all problems".into(),
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
                "get the register that the spec means, or pin this one if it is right: sha256sum shows its digits".into()
            }
            ReadError::RegisterColumnTwice { .. } => {
                "name a different column of the register for the key and for each quasi column".into()
            }
            ReadError::RegisterLacks { .. } => {
                "complete these rows, or leave them out with missing = \"skip\" under [register]".into()
            }
            ReadError::TransformOnType { column, .. } => {
                format!("take it out, or correct the values of '{column}' or its type")
            }
            ReadError::NotRounded { .. } => "write them in plain digits, at most 38".into(),
            ReadError::BoundNotOfType { .. } => {
                "write numbers with a point, and dates in quotes as the file writes them".into()
            }
            ReadError::BoundOutside { key, .. } => format!("choose a bound between the least and the greatest value, or take {key} out"),
            ReadError::BoundsCross { .. } => "choose a bottom below the top".into(),
            ReadError::QuantileHeldByFew { column, .. } => {
                format!("name the bound by its value, or round '{column}' first, so that more persons share a value")
            }
            ReadError::QuantileInCells { .. } => "name the bound by its value, or anonymize the table in memory".into(),
            ReadError::Transform { .. } => "this is a fault of kohort: please report it".into(),
            ReadError::NeedsHierarchy { column } => {
                format!("give '{column}' a hierarchy, or distance = \"equal\" or \"ordered\"")
            }
        };
        Some(hint)
    }

    /// Who can mend the problem.
    pub fn class(&self) -> ErrorClass {
        match self {
            ReadError::Io { source } | ReadError::HierarchyIo { source, .. } => match source.kind() {
                // Another file was meant, or its content is not what its name says.
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

/// The hint if the first row may be data.
const NO_HEADER: &str = "if its first row is data, say header = false and give roles to column_1, column_2 and so on";

/// All problems of a file.
#[derive(Debug)]
pub struct ReadErrors {
    /// The file that has the problems.
    pub file: PathBuf,
    /// At least one problem.
    pub problems: Vec<ReadError>,
}

impl ReadErrors {
    /// Who can mend the problems.
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
    /// The number of all rows.
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
    pub fn with_ids(ids: &[u32], mut wanted: impl FnMut(u32) -> bool) -> Self {
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
            // A table that is read in pieces is judged by its distinct values.
            ([], 0) => f.write_str("rows that were not counted"),
            ([row], 0) => write!(f, "row {row}"),
            ([rows @ .., last], 0) => write!(f, "rows {} and {last}", rows.join(", ")),
            (rows, _) => write!(f, "rows {} and {hidden} more", rows.join(", ")),
        }
    }
}

/// A value that a hierarchy lacks, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingValue {
    /// The first row that holds the value, counted from 1.
    pub first_row: u64,
    /// The number of rows that hold the value.
    pub n_rows: u64,
}

/// Missing values by their first row and number of rows. Long lists are cut.
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
        assert!(hint(&["disease"]).starts_with("none of the 2 columns of the file has this name; "));
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
