//! [`Failure`]: why a client gets no answer, as PostgreSQL's clients know it: a SQLSTATE, a message and a hint.
//!
//! # Guarantee
//! Messages are those of [`SqlError`], which show no cell, or ours, which know none.

use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use kohort_sql::SqlError;
use kohort_sql::access::AccessProblem;
use kohort_sql::parser::ParseFault;
use kohort_sql::view::ViewProblem;
use pgwire::error::ErrorInfo;
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::response::{ErrorResponse, NoticeResponse};

use crate::wire::WireProblem;

/// Characters of the longest message that is sent.
const LONGEST_MESSAGE: usize = 4000;

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The statement failed; the connection goes on.
    Statement(Box<Refusal>),
    /// The connection ends, and the client is told why.
    Fatal(Box<Refusal>),
    /// The client is gone: nobody can be told.
    Gone,
}

/// What a client is told.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) state: &'static str,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Refusal {
    pub(crate) fn new(state: &'static str, message: impl Into<String>) -> Refusal {
        Refusal { state, message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: &str) -> Refusal {
        self.hint = Some(hint.to_owned());
        self
    }

    fn info(self, severity: &str) -> ErrorInfo {
        let shorten = |text: String| text.chars().take(LONGEST_MESSAGE).collect::<String>();
        let mut info = ErrorInfo::new(severity.to_owned(), self.state.to_owned(), shorten(self.message));
        info.hint = self.hint.map(shorten);
        info
    }

    /// As an error after which the connection goes on, or ends.
    pub(crate) fn message(self, severity: &str) -> PgWireBackendMessage {
        PgWireBackendMessage::ErrorResponse(ErrorResponse::from(self.info(severity)))
    }
}

/// Something a client is told beside an answer.
pub(crate) fn notice(text: &str) -> PgWireBackendMessage {
    let (severity, state, text) = match text.strip_prefix("warning: ") {
        Some(warning) => ("WARNING", "01000", warning),
        None => ("NOTICE", "00000", text),
    };
    PgWireBackendMessage::NoticeResponse(NoticeResponse::from(Refusal::new(state, text).info(severity)))
}

impl Failure {
    pub(crate) fn statement(state: &'static str, message: impl Into<String>) -> Failure {
        Failure::Statement(Box::new(Refusal::new(state, message)))
    }

    pub(crate) fn fatal(state: &'static str, message: impl Into<String>) -> Failure {
        Failure::Fatal(Box::new(Refusal::new(state, message)))
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::Statement(Box::new(refusal))
    }
}

impl From<WireProblem> for Failure {
    fn from(problem: WireProblem) -> Failure {
        match problem {
            WireProblem::Malformed(_) => Failure::fatal("08P01", problem.to_string()),
            WireProblem::TooLarge { .. } => Failure::fatal("54000", problem.to_string()),
            WireProblem::Io(_) | WireProblem::Gone => Failure::Gone,
        }
    }
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Failure {
        let state = state_of(&error);
        Refusal { state, message: error.to_string(), hint: error.hint() }.into()
    }
}

/// An error of rows that were asked for: ours, as they travel through DataFusion.
impl From<DataFusionError> for Failure {
    fn from(error: DataFusionError) -> Failure {
        SqlError::while_running(error).into()
    }
}

fn state_of(error: &SqlError) -> &'static str {
    match error {
        SqlError::Parse(problem)
            if matches!(problem.fault, ParseFault::TooDeep { .. } | ParseFault::TooManyTables { .. }) =>
        {
            "54001"
        }
        SqlError::Parse(problem)
            if matches!(problem.fault, ParseFault::TooManyTokens { .. } | ParseFault::TooManyStatements { .. }) =>
        {
            "54000"
        }
        SqlError::Parse(_) => "42601",
        SqlError::NotAllowed { .. } | SqlError::MatchingJoined { .. } | SqlError::UnknownGrowth { .. } => "42501",
        SqlError::Refused(_) | SqlError::Meaning(_) => "42804",
        SqlError::View(ViewProblem::Policy(problem)) if problem.is_refusal() => "42501",
        SqlError::View(ViewProblem::Stale | ViewProblem::Unusable { .. } | ViewProblem::Unreachable(_)) => "55000",
        SqlError::View(ViewProblem::Definition(_)) => "42611",
        SqlError::View(ViewProblem::Unverified(_)) => "XX000",
        SqlError::View(_) | SqlError::Hierarchy(_) | SqlError::Import(_) => "22023",
        SqlError::Access(problem) => match problem {
            AccessProblem::UserExists { .. } => "42710",
            AccessProblem::UnknownUser { .. } | AccessProblem::NotGranted { .. } => "42704",
            AccessProblem::BadName { .. } | AccessProblem::BadPassword { .. } => "22023",
            AccessProblem::LoginGone => "28000",
            AccessProblem::Records(_) | AccessProblem::BadRecord { .. } | AccessProblem::NoRandomness => "58000",
            _ => "42501",
        },
        SqlError::UnknownView { .. } => "42P01",
        SqlError::Exists { .. } | SqlError::Taken { .. } => "42P07",
        SqlError::IsView { .. } | SqlError::ViewOnView { .. } => "42809",
        SqlError::Volatile | SqlError::NothingAsked | SqlError::NoUtility | SqlError::NoAccounts => "0A000",
        SqlError::InTransaction | SqlError::NotInTransaction => "25001",
        SqlError::NoTransaction => "25P01",
        SqlError::NoSavepoint { .. } => "3B001",
        SqlError::TransactionLost => "25P02",
        SqlError::NoDataFolder => "0A000",
        SqlError::Log(_) | SqlError::Store(_) | SqlError::Postgres(_) => "58030",
        SqlError::OutOfMemory => "53200",
        SqlError::TooLarge { .. } | SqlError::Gathered | SqlError::TooSlow => "54000",
        SqlError::Running { .. } => "22000",
        SqlError::Query(error) => match error.find_root() {
            DataFusionError::SchemaError(problem, _) => match problem.as_ref() {
                SchemaError::FieldNotFound { .. } => "42703",
                _ => "42702",
            },
            DataFusionError::SQL(..) => "42601",
            DataFusionError::NotImplemented(_) => "0A000",
            DataFusionError::IoError(_) | DataFusionError::ObjectStore(_) => "58030",
            DataFusionError::Configuration(_) => "42704",
            DataFusionError::Plan(message) if message.starts_with("table '") => "42P01",
            DataFusionError::Plan(message) if message.starts_with("Invalid function") => "42883",
            DataFusionError::Plan(_) => "42000",
            DataFusionError::Execution(message) if message.starts_with("Prepared statement") => "26000",
            DataFusionError::Internal(_) => "XX000",
            _ => "22000",
        },
        _ => "XX000",
    }
}
