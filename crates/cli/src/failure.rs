//! [`Failure`]: why a command fails, as messages and as an exit code.
//!
//! | exit code | meaning |
//! | --- | --- |
//! | 1 | the requirement is not met, or can't be reached |
//! | 2 | wrong use or input |
//! | 3 | I/O, or a fault of ours |
//! | 4 | it can't be told whether the requirement is met |
//! | 130 | stopped by Ctrl-C, nothing written |

use std::process::ExitCode;

pub(crate) use kohort::Report;
use kohort::{Error, Parameter};
use serde_json::json;

use crate::commands::Output;
use crate::terminal;

/// Why a command fails.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) reports: Vec<Report>,
}

/// Exit codes by their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// The requirement is not met, or can't be reached.
    NotMet = 1,
    /// Wrong use or input.
    Input = 2,
    /// I/O, or a fault of ours.
    Fault = 3,
    /// Neither shown to be wrong nor to be right.
    CannotTell = 4,
    /// Stopped by Ctrl-C. The code is 128 plus the number of the signal, as in shells.
    Cancelled = 130,
}

impl Status {
    /// The verdict in the JSON of a verification, if there is one.
    fn verdict(self) -> Option<&'static str> {
        match self {
            Status::NotMet => Some("not_met"),
            Status::CannotTell => Some("cannot_tell"),
            Status::Input | Status::Fault | Status::Cancelled => None,
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
            // If several problems in a row have the same hint, it is printed once, after the last of them.
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
            // If nobody reads stdout any more, there is nothing left to do.
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
            Error::Cancelled => Status::Cancelled,
            _ => Status::Fault,
        };
        Failure::new(status, error.reports_in(&flag))
    }
}

/// The flag for a parameter that a hint of the library names.
fn flag(parameter: Parameter, value: Option<&str>) -> String {
    let name = match parameter {
        Parameter::Folder => return format!("-o {}", value.unwrap_or("FOLDER")),
        Parameter::Hierarchy => {
            let column = value.unwrap_or("COLUMN");
            return format!("--hierarchy {column}={column}.csv");
        }
        other => other.key().replace('_', "-"),
    };
    value.map_or_else(|| format!("--{name}"), |value| format!("--{name} {value}"))
}
