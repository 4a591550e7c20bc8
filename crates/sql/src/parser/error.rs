//! [`ParseError`]: what is wrong with a text, and where.

use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;

use super::source::Place;

/// What is wrong with a text, where, and an example of how it is right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {fault}")]
pub struct ParseError {
    /// The line, from 1.
    pub line: u64,
    /// The column in characters, from 1.
    pub column: u64,
    /// What is wrong there.
    pub fault: ParseErrorKind,
    /// The statement as it could be.
    pub example: Option<&'static str>,
}

/// What is wrong at a place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// What SQL's own parser says.
    #[error("{0}")]
    Sql(String),
    /// Something else was expected.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What could stand here.
        expected: String,
        /// What does.
        found: String,
    },
    /// A clause that was there before.
    #[error("{0} is given twice")]
    Twice(&'static str),
    /// A column in two clauses, or twice in one.
    #[error("column '{0}' is named twice")]
    ColumnTwice(String),
    /// A clause without which there is no view.
    #[error("the view has no {0}")]
    Missing(&'static str),
    /// A view that does not say how many persons look the same: there is no default.
    #[error("the view has neither K nor REFERENCES")]
    NoK,
    /// A requirement on sensitive columns where there is none.
    #[error("{0} needs ANONYMIZATION_SENSITIVE_ATTR")]
    NothingSensitive(&'static str),
    /// A statement where a query should be.
    #[error("expected a query, found another statement")]
    NoQuery,
    /// A clause that the query engine would read and then ignore.
    #[error("{clause} is not supported")]
    Ignored {
        /// The clause as people write it.
        clause: &'static str,
    },
    /// A statement that would take too much of the stack.
    #[error("the statement has more than {most} operators, joins or UNIONs inside each other")]
    TooDeep {
        /// As many as are allowed.
        most: usize,
    },
    /// A statement that would take too long to read.
    #[error("too many functions, CASEs or queries stand inside each other")]
    TooNested,
    /// A text that would take too much memory.
    #[error("there are more than {most} words, signs and values in what was sent at once")]
    TooManyTokens {
        /// As many as are allowed.
        most: usize,
    },
    /// A text of too many statements.
    #[error("more than {most} statements were sent at once")]
    TooManyStatements {
        /// As many as are allowed.
        most: usize,
    },
    /// A statement that would become too large.
    #[error("the statement reads more than {most} tables, with each query of WITH in all places that name it")]
    TooManyTables {
        /// As many as are allowed.
        most: u64,
    },
}

impl ParseError {
    pub(super) fn new(place: Place, fault: ParseErrorKind) -> Self {
        ParseError { line: place.line, column: place.column, fault, example: None }
    }

    /// SQL's parser writes the place into its message, and none where the statement ends too early.
    pub(super) fn from_sql(error: &DataFusionError, end: Place) -> Self {
        let message = match error.find_root() {
            DataFusionError::SQL(error, _) => match error.as_ref() {
                ParserError::ParserError(message) | ParserError::TokenizerError(message) => message.clone(),
                ParserError::RecursionLimitExceeded => "the statement is nested too deeply".to_owned(),
            },
            other => other.strip_backtrace(),
        };
        let message = message.replace("found: EOF", "found: the end of the statement");
        let (message, place) = split_place(&message).unwrap_or((message.as_str(), end));
        let message = message.replace("Expected: ", "expected ").replace(", found: ", ", found ");
        ParseError::new(place, ParseErrorKind::Sql(message))
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match &self.fault {
            ParseErrorKind::NoK => Some(
                "say how many persons look the same with K 5, or who decides with name REFERENCES choices (k)".into(),
            ),
            ParseErrorKind::TooDeep { .. } => Some(
                "a OR b OR c counts as deep: use IN for a list of values, and tables or parentheses for the rest"
                    .into(),
            ),
            // It says what to write instead.
            ParseErrorKind::Ignored { clause } if clause.contains('(') => None,
            ParseErrorKind::Ignored { .. } => Some("leave it out".into()),
            ParseErrorKind::TooNested => Some("compute inner ones in queries of WITH, one after the other".into()),
            ParseErrorKind::TooManyTables { .. } => {
                Some("name each query of WITH once or twice, or ask in several steps".into())
            }
            ParseErrorKind::TooManyTokens { .. } | ParseErrorKind::TooManyStatements { .. } => {
                Some("send it in parts, or long lists of values as parameters".into())
            }
            ParseErrorKind::ColumnTwice(_) => Some("every column of the query stands in one clause, once".into()),
            _ => self.example.map(|example| format!("for example: {example}")),
        }
    }
}

/// `... at Line: 1, Column: 7`, taken apart.
fn split_place(message: &str) -> Option<(&str, Place)> {
    let (message, place) = message.rsplit_once(" at Line: ")?;
    let (line, column) = place.split_once(", Column: ")?;
    Some((message, Place { line: line.parse().ok()?, column: column.parse().ok()? }))
}
