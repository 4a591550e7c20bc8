//! [`AnswerError`]: an error in the form that PostgreSQL's clients expect: a SQLSTATE, a message and a hint.
//!
//! # Guarantee
//! No message contains a cell: they are messages of [`SqlError`], which has none, or fixed texts of this crate.

use datafusion::error::DataFusionError;
use kohort_sql::SqlError;
use pgwire::error::ErrorInfo;
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::response::{ErrorResponse, NoticeResponse};

use crate::wire::WireError;

/// The length in characters to which messages are cut.
const LONGEST_MESSAGE: usize = 4000;

/// Why a client gets no answer.
#[derive(Debug)]
pub(crate) enum AnswerError {
    /// The statement failed, and the connection continues.
    Statement(Box<ErrorMessage>),
    /// The connection ends with this message.
    Fatal(Box<ErrorMessage>),
    /// The client has disconnected, so no message is sent.
    Gone,
}

/// The message for a client.
#[derive(Debug)]
pub(crate) struct ErrorMessage {
    pub(crate) state: &'static str,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl ErrorMessage {
    pub(crate) fn new(state: &'static str, message: impl Into<String>) -> ErrorMessage {
        ErrorMessage { state, message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: &str) -> ErrorMessage {
        self.hint = Some(hint.to_owned());
        self
    }

    fn info(self, severity: &str) -> ErrorInfo {
        let shorten = |text: String| text.chars().take(LONGEST_MESSAGE).collect::<String>();
        let mut info = ErrorInfo::new(severity.to_owned(), self.state.to_owned(), shorten(self.message));
        info.hint = self.hint.map(shorten);
        info
    }

    /// The message with this severity.
    pub(crate) fn message(self, severity: &str) -> PgWireBackendMessage {
        PgWireBackendMessage::ErrorResponse(ErrorResponse::from(self.info(severity)))
    }
}

/// The beginning of the engine's warnings.
pub(crate) const WARNING: &str = "warning: ";

/// A notice for a client.
pub(crate) fn notice(text: &str) -> PgWireBackendMessage {
    let (severity, state, text) = match text.strip_prefix(WARNING) {
        Some(warning) => ("WARNING", "01000", warning),
        None => ("NOTICE", "00000", text),
    };
    PgWireBackendMessage::NoticeResponse(NoticeResponse::from(ErrorMessage::new(state, text).info(severity)))
}

impl AnswerError {
    pub(crate) fn statement(state: &'static str, message: impl Into<String>) -> AnswerError {
        AnswerError::Statement(Box::new(ErrorMessage::new(state, message)))
    }

    pub(crate) fn fatal(state: &'static str, message: impl Into<String>) -> AnswerError {
        AnswerError::Fatal(Box::new(ErrorMessage::new(state, message)))
    }
}

impl From<ErrorMessage> for AnswerError {
    fn from(refusal: ErrorMessage) -> AnswerError {
        AnswerError::Statement(Box::new(refusal))
    }
}

impl From<WireError> for AnswerError {
    fn from(problem: WireError) -> AnswerError {
        match problem {
            WireError::Malformed(_) => AnswerError::fatal("08P01", problem.to_string()),
            WireError::TooLarge { .. } => AnswerError::fatal("54000", problem.to_string()),
            WireError::Io(_) | WireError::Gone => AnswerError::Gone,
        }
    }
}

impl From<SqlError> for AnswerError {
    fn from(error: SqlError) -> AnswerError {
        ErrorMessage { state: error.sqlstate(), message: error.to_string(), hint: error.hint() }.into()
    }
}

/// Converts an error of a stream of rows, which may wrap one of our own.
impl From<DataFusionError> for AnswerError {
    fn from(error: DataFusionError) -> AnswerError {
        SqlError::while_running(error).into()
    }
}
