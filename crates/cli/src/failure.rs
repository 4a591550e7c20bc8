//! [`Failure`]: why a command ends, in words and as an exit code.
//!
//! | exit code | meaning |
//! | --- | --- |
//! | 1 | the requirement is not met, or can't be reached |
//! | 2 | wrong use or input |
//! | 3 | I/O, or a fault of ours |
//! | 4 | it can't be told whether the requirement is met |

use std::process::ExitCode;

use kohort::Error;
pub(crate) use kohort::Report;
use serde_json::json;

use crate::commands::Output;
use crate::terminal;

/// Why a command ends without what was asked for.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) reports: Vec<Report>,
}

/// The exit code, by its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// The requirement is not met, or can't be reached.
    NotMet = 1,
    /// Wrong use or input.
    Input = 2,
    /// I/O, or a fault of ours.
    Fault = 3,
    /// Nothing is shown to be wrong, nor to be right.
    CannotTell = 4,
}

impl Status {
    /// What a verification says with it, where it says anything.
    fn verdict(self) -> Option<&'static str> {
        match self {
            Status::NotMet => Some("not_met"),
            Status::CannotTell => Some("cannot_tell"),
            Status::Input | Status::Fault => None,
        }
    }
}

impl Failure {
    pub(crate) fn new(status: Status, reports: Vec<Report>) -> Self {
        Failure { status, reports }
    }

    /// Wrong use or input.
    pub(crate) fn input(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Failure::new(Status::Input, vec![Report::new(message).hint(hint)])
    }

    /// Prints the failure and returns its exit code.
    pub(crate) fn report(&self, output: Output) -> ExitCode {
        for (position, report) in self.reports.iter().enumerate() {
            terminal::error(&report.message);
            // A hint that is the same for several problems in a row is given once, after the last.
            let next = self.reports.get(position + 1);
            if let Some(hint) = &report.hint
                && next.is_none_or(|next| next.hint != report.hint)
            {
                terminal::hint(hint);
            }
        }
        if output == Output::Json {
            let errors: Vec<_> =
                self.reports.iter().map(|report| json!({ "message": report.message, "hint": report.hint })).collect();
            // A reader that is gone can't be told anything.
            let mut object = json!({ "exit": self.status as u8, "errors": errors });
            if let (Some(verdict), Some(object)) = (self.status.verdict(), object.as_object_mut()) {
                object.insert("verdict".to_owned(), verdict.into());
            }
            let _ = terminal::print(&format!("{object:#}\n"));
        }
        ExitCode::from(self.status as u8)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::Unreachable(_) | Error::TooFewForAudiences(_) | Error::NotMet(_) => Status::NotMet,
            Error::Input(_) | Error::Risks(_) => Status::Input,
            Error::CannotTell(_) => Status::CannotTell,
            _ => Status::Fault,
        };
        let mut reports = error.reports();
        if let (Error::Risks(_), Some(all)) = (&error, reports.last_mut()) {
            let hint = "change the spec, or give --accept-risks if none of them matters for your data; the manifest then lists them";
            all.hint = Some(hint.to_owned());
        }
        Failure::new(status, reports)
    }
}
