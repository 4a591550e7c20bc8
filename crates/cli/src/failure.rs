//! [`Failure`]: why a command ends, in words and as an exit code.
//!
//! | exit code | meaning |
//! | --- | --- |
//! | 1 | the requirement is not met, or can't be reached |
//! | 2 | wrong use or input |
//! | 3 | I/O, or a fault of ours |
//! | 4 | it can't be told whether the requirement is met |

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

use kohort_core::AnonymizeError;
use kohort_io::{ErrorClass, LoadProblem, ReadProblem, ReadProblems, ReleaseProblem, WriteProblem};
use kohort_model::SchemaProblem;
use kohort_model::hierarchy::HierarchyProblems;
use kohort_model::spec::{SpecProblem, SpecProblems};
use kohort_verify::Violation;
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

/// One thing that is wrong, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Report {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Report { message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
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

    /// Something with this file failed; it is the user's to mend where the file is not there or no text.
    pub(crate) fn file(path: &Path, doing: &str, error: &std::io::Error) -> Self {
        use std::io::ErrorKind::{InvalidData, IsADirectory, NotFound};
        let message = format!("{}: can't be {doing}: {error}", path.display());
        match error.kind() {
            NotFound | IsADirectory => Failure::input(message, "check the path"),
            InvalidData => Failure::input(message, "save the file as UTF-8 text"),
            _ => Failure::new(Status::Fault, vec![Report::new(message)]),
        }
    }

    pub(crate) fn spec(path: &Path, problems: &SpecProblems) -> Self {
        let report =
            |problem: &SpecProblem| Report { message: format!("{}: {problem}", path.display()), hint: problem.hint() };
        Failure::new(Status::Input, problems.0.iter().map(report).collect())
    }

    pub(crate) fn hierarchy(path: &Path, problems: &HierarchyProblems) -> Self {
        Failure::new(Status::Input, hierarchy_reports(&path.display(), problems))
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

/// What the verifier found.
pub(crate) fn violation_reports(violations: &[Violation]) -> Vec<Report> {
    let report =
        |violation: &Violation| Report { message: violation.to_string(), hint: violation.hint().map(str::to_owned) };
    violations.iter().map(report).collect()
}

fn hierarchy_reports(place: &dyn Display, problems: &HierarchyProblems) -> Vec<Report> {
    problems.0.iter().map(|problem| Report::new(format!("{place}: {problem}")).hint(problem.hint())).collect()
}

impl From<ReadProblems> for Failure {
    fn from(problems: ReadProblems) -> Self {
        let status = status_of(problems.class());
        let file = problems.file.display();
        let mut reports = Vec::new();
        for problem in &problems.problems {
            match problem {
                ReadProblem::Hierarchy { column, path, problems } => {
                    let place = format!("{file}: column '{column}': hierarchy {}", path.display());
                    reports.extend(hierarchy_reports(&place, problems));
                }
                ReadProblem::HierarchyRule { problem: rule, .. } => {
                    reports.push(Report::new(format!("{file}: {problem}")).hint(rule.hint()));
                }
                _ => reports.push(Report { message: format!("{file}: {problem}"), hint: problem.hint() }),
            }
        }
        Failure::new(status, reports)
    }
}

impl From<LoadProblem> for Failure {
    fn from(problem: LoadProblem) -> Self {
        match problem {
            LoadProblem::Files(files) => {
                let failures: Vec<Failure> = files.into_iter().map(Failure::from).collect();
                let is_input = failures.iter().all(|failure| failure.status == Status::Input);
                let status = if is_input { Status::Input } else { Status::Fault };
                Failure::new(status, failures.into_iter().flat_map(|failure| failure.reports).collect())
            }
            LoadProblem::Release(problem) => problem.into(),
            LoadProblem::Schema(problems) => {
                let report = |problem: &SchemaProblem| Report::new(problem.to_string()).hint(problem.hint());
                Failure::new(Status::Input, problems.0.iter().map(report).collect())
            }
            problem => Failure::new(Status::Fault, vec![Report::new(problem.to_string())]),
        }
    }
}

impl From<ReleaseProblem> for Failure {
    fn from(problem: ReleaseProblem) -> Self {
        if let ReleaseProblem::Table(problems) = problem {
            return problems.into();
        }
        let status = match problem {
            // The release can be read, and is not what it says it is.
            ReleaseProblem::Digest { .. }
            | ReleaseProblem::Differs { .. }
            | ReleaseProblem::Bounds { .. }
            | ReleaseProblem::Labels { .. }
            | ReleaseProblem::Listing { .. }
            | ReleaseProblem::Unnamed { .. } => Status::NotMet,
            _ => status_of(problem.class()),
        };
        Failure::new(status, vec![Report { message: problem.to_string(), hint: problem.hint() }])
    }
}

impl From<WriteProblem> for Failure {
    fn from(problem: WriteProblem) -> Self {
        let report = Report { message: problem.to_string(), hint: problem.hint() };
        Failure::new(status_of(problem.class()), vec![report])
    }
}

fn status_of(class: ErrorClass) -> Status {
    match class {
        ErrorClass::Input => Status::Input,
        ErrorClass::Io => Status::Fault,
    }
}

impl From<AnonymizeError> for Failure {
    fn from(error: AnonymizeError) -> Self {
        let status = match error {
            AnonymizeError::TooFewPersons { .. }
            | AnonymizeError::OwnKTooLarge { .. }
            | AnonymizeError::TooFrequent { .. }
            | AnonymizeError::TooFewJoined { .. }
            | AnonymizeError::Presence { .. }
            | AnonymizeError::PreviousCrowd { .. }
            | AnonymizeError::PreviousValues { .. } => Status::NotMet,
            AnonymizeError::NoQuasiColumn
            | AnonymizeError::Unavailable(_)
            | AnonymizeError::UnavailableForTables(_)
            | AnonymizeError::UnavailableForAudiences(_)
            | AnonymizeError::UnavailableWithRegister(_)
            | AnonymizeError::PreviousColumn { .. }
            | AnonymizeError::PreviousLabels { .. } => Status::Input,
            _ => Status::Fault,
        };
        let hint = error.hint().map(str::to_owned);
        Failure::new(status, vec![Report { message: error.to_string(), hint }])
    }
}
