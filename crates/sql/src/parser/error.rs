//! [`ParseError`]: a fault in a statement and its place.

use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;

use super::source::Place;

/// A fault in a statement, its place, and an example of a correct statement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {fault}")]
pub struct ParseError {
    /// The line, from 1.
    pub line: u64,
    /// The column in characters, from 1.
    pub column: u64,
    /// The fault.
    pub fault: ParseErrorKind,
    /// A correct statement of the same kind.
    pub example: Option<&'static str>,
}

/// The kinds of faults.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the variants and fields are")]
pub enum ParseErrorKind {
    #[error("{0}")]
    Sql(String),
    #[error("expected {expected}, found {found}")]
    Expected { expected: String, found: String },
    #[error("{0} is given twice")]
    Twice(&'static str),
    #[error("column '{0}' is named twice")]
    ColumnTwice(String),
    #[error("the view has no {0}")]
    Missing(&'static str),
    #[error("the view has neither K nor REFERENCES")]
    NoK,
    #[error("{0} needs ANONYMIZATION_SENSITIVE_ATTR")]
    NothingSensitive(&'static str),
    #[error("expected a query, found another statement")]
    NoQuery,
    /// A clause that the query engine would accept and then ignore.
    #[error("{clause} is not supported")]
    Ignored { clause: &'static str },
    /// A statement that would need too much stack.
    #[error("the statement nests or chains more than {most} operators, joins or UNIONs")]
    TooDeep { most: usize },
    /// A statement that would take too long to parse.
    #[error("the statement is nested too deeply")]
    TooNested,
    /// A text that would need too much memory.
    #[error("the text has more than {most} words, signs and values")]
    TooManyTokens { most: usize },
    #[error("the text has more than {most} statements")]
    TooManyStatements { most: usize },
    /// A statement whose plan would be too large.
    #[error("the statement reads more than {most} tables, counting those of a WITH query each time the query is named")]
    TooManyTables { most: u64 },
}

impl ParseError {
    pub(super) fn new(place: Place, fault: ParseErrorKind) -> Self {
        ParseError { line: place.line, column: place.column, fault, example: None }
    }

    /// Converts an error of the SQL parser. Its message contains the place, except if the statement ends too early.
    pub(super) fn from_sql(error: &DataFusionError, end: Place) -> Self {
        let message = match error.find_root() {
            DataFusionError::SQL(error, _) => match error.as_ref() {
                ParserError::ParserError(message) | ParserError::TokenizerError(message) => message.clone(),
                ParserError::RecursionLimitExceeded => return ParseError::new(end, ParseErrorKind::TooNested),
            },
            other => other.strip_backtrace(),
        };
        let message = message.replace("found: EOF", "found: the end of the statement");
        let (message, place) = split_place(&message).unwrap_or((message.as_str(), end));
        let message = message.replace("Expected: ", "expected ").replace(", found: ", ", found ");
        ParseError::new(place, ParseErrorKind::Sql(message))
    }

    /// Whether the statement is too deep or too large to be parsed and planned.
    pub fn is_too_deep(&self) -> bool {
        use ParseErrorKind::{TooDeep, TooManyTables, TooNested};
        matches!(self.fault, TooDeep { .. } | TooManyTables { .. } | TooNested)
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match &self.fault {
            ParseErrorKind::NoK => Some(
                "add K 5 for groups of at least 5 persons, or name REFERENCES choices (k) to let persons choose".into(),
            ),
            ParseErrorKind::TooDeep { .. } => Some(
                "replace a long chain such as a OR b OR c: use IN for a list of values, or join a table of them".into(),
            ),
            // The clause's words already say what to write instead.
            ParseErrorKind::Ignored { clause } if clause.contains('(') => None,
            ParseErrorKind::Ignored { .. } => Some("leave it out".into()),
            ParseErrorKind::TooNested => Some("compute the inner parts in queries of WITH".into()),
            ParseErrorKind::TooManyTables { .. } => {
                Some("name each query of WITH fewer times, or split the statement into several".into())
            }
            ParseErrorKind::TooManyTokens { .. } | ParseErrorKind::TooManyStatements { .. } => {
                Some("send the text in parts, or pass long lists of values as parameters".into())
            }
            ParseErrorKind::ColumnTwice(_) => Some("name every column of the query in exactly one clause".into()),
            _ => self.example.map(|example| format!("for example: {example}")),
        }
    }
}

/// Splits `... at Line: 1, Column: 7` into message and place.
fn split_place(message: &str) -> Option<(&str, Place)> {
    let (message, place) = message.rsplit_once(" at Line: ")?;
    let (line, column) = place.split_once(", Column: ")?;
    Some((message, Place { line: line.parse().ok()?, column: column.parse().ok()? }))
}
