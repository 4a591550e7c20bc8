//! [`Error`]: why there is no result, as a kind that programs can match and as messages for people.

use std::fmt::{self, Display};
use std::path::Path;

use kohort_core::AnonymizeError;
use kohort_io::{ErrorClass, LoadError, ReadError, ReadErrors, ReleaseError, WriteError};
use kohort_model::SchemaError;
use kohort_model::hierarchy::HierarchyErrors;
use kohort_model::spec::{SpecError, SpecErrors};
use kohort_verify::{BlatantRisk, Violation, Violations};

use crate::wording::{Words, in_rust, worded};

/// Why there is no result.
///
/// After an error nothing was written. No message holds a cell of a private table.
///
/// ```
/// use kohort::{Error, Job};
///
/// match Job::read("no-such-file.toml").and_then(|job| job.anonymize()) {
///     Ok(release) => println!("reached k = {}", release.manifest().achieved.k),
///     Err(Error::Unreachable(why)) => println!("ask for less: {why}"),
///     Err(error) => {
///         for report in error.reports() {
///             println!("{} ({})", report.message, report.hint.as_deref().unwrap_or("no hint"));
///         }
///     }
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A spec, a table, a hierarchy, a register or a parameter is wrong, or a file does not exist.
    Input(Vec<Report>),
    /// The requirement can't be reached with these persons.
    Unreachable(AnonymizeError),
    /// An audience, or a coalition, asks for more persons than there are.
    TooFewForAudiences(Vec<Report>),
    /// The requirement holds, but these risks make it worth little. [`crate::Job::accept_risks`] goes on in spite of them.
    Risks(Vec<BlatantRisk>),
    /// A release does not satisfy what its manifest claims, or its files are not those of the manifest.
    NotMet(Vec<Report>),
    /// The verifier could not decide whether a release can have come from the private tables.
    CannotTell(Vec<Report>),
    /// A file could not be read or written.
    Io(Vec<Report>),
    /// The work was cancelled, see [`crate::Progress::is_cancelled`].
    Cancelled,
    /// A fault of kohort itself, for example a release that does not pass its verification. It is not written.
    Fault(Vec<Report>),
}

/// A problem, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What is wrong, and where.
    pub message: String,
    /// What to do about the problem. The hint may name a [`crate::Parameter`] in braces, as `{force}`; [`Report::worded`] puts the words of a
    /// program there.
    pub hint: Option<String>,
}

impl Report {
    /// A problem without a hint.
    pub fn new(message: impl Into<String>) -> Self {
        Report { message: message.into(), hint: None }
    }

    /// Adds what to do about the problem.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same report with the words that a program has for parameters.
    #[must_use]
    pub fn worded(mut self, words: &Words) -> Self {
        self.hint = self.hint.map(|hint| worded(&hint, words));
        self
    }
}

impl Error {
    /// All problems, with hints for programmers in Rust.
    pub fn reports(&self) -> Vec<Report> {
        self.reports_in(&in_rust)
    }

    /// All problems, with hints in the words that a program has for parameters.
    pub fn reports_in(&self, words: &Words) -> Vec<Report> {
        self.raw_reports().into_iter().map(|report| report.worded(words)).collect()
    }

    /// All problems, with hints that name parameters in braces.
    fn raw_reports(&self) -> Vec<Report> {
        match self {
            Error::Input(reports)
            | Error::TooFewForAudiences(reports)
            | Error::NotMet(reports)
            | Error::CannotTell(reports)
            | Error::Io(reports)
            | Error::Fault(reports) => reports.clone(),
            Error::Unreachable(error) => vec![anonymize_report(error)],
            Error::Risks(risks) => {
                let each = risks.iter().map(|risk| Report::new(risk.to_string()).hint(risk.hint()));
                let all = "the requirement holds, but these risks make it worth little, so nothing was written";
                let hint = "change the spec, or give {accept_risks} if none of them matters for your data; the manifest then \
                            lists them";
                each.chain([Report::new(all).hint(hint)]).collect()
            }
            Error::Cancelled => vec![Report::new("cancelled, so nothing was written")],
        }
    }

    /// One problem of the input.
    pub(crate) fn input(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Error::Input(vec![Report::new(message).hint(hint)])
    }

    /// A problem with a file. It counts as a problem of the input if the file does not exist or is no text, because the user
    /// can mend that.
    pub fn file(path: &Path, doing: &str, error: &std::io::Error) -> Self {
        use std::io::ErrorKind::{InvalidData, IsADirectory, NotFound};
        let message = format!("{}: can't be {doing}: {error}", path.display());
        match error.kind() {
            NotFound | IsADirectory => Error::input(message, "check the path"),
            InvalidData => Error::input(message, "save the file as UTF-8 text"),
            _ => Error::Io(vec![Report::new(message)]),
        }
    }

    /// The problems of a spec in this file.
    pub(crate) fn spec(path: &Path, problems: &SpecErrors) -> Self {
        let report =
            |problem: &SpecError| Report { message: format!("{}: {problem}", path.display()), hint: problem.hint() };
        Error::Input(problems.0.iter().map(report).collect())
    }

    /// The problems of a hierarchy in this file.
    pub fn hierarchy(path: &Path, problems: &HierarchyErrors) -> Self {
        Error::Input(hierarchy_reports(&path.display(), problems))
    }

    /// A release that kohort made did not pass its verification. That is never the fault of the user.
    pub(crate) fn unverified(violations: &Violations) -> Self {
        let mut reports = vec![
            Report::new("the release did not pass its verification, so nothing was written")
                .hint("this is a fault of kohort: please report it"),
        ];
        reports.extend(violation_reports(&violations.0));
        Error::Fault(reports)
    }

    /// The same error, with messages that begin with the place, unless they name it already.
    pub(crate) fn at(mut self, place: &Path) -> Self {
        let place = place.display().to_string();
        if let Error::Input(reports) | Error::NotMet(reports) | Error::Io(reports) | Error::Fault(reports) = &mut self {
            for report in reports.iter_mut().filter(|report| !report.message.starts_with(&place)) {
                report.message.insert_str(0, &format!("{place}: "));
            }
        }
        self
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages: Vec<String> = self.raw_reports().into_iter().map(|report| report.message).collect();
        f.write_str(&messages.join("\n"))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Unreachable(error) => Some(error),
            _ => None,
        }
    }
}

/// Reports for what the verifier found.
pub(crate) fn violation_reports(violations: &[Violation]) -> Vec<Report> {
    let report =
        |violation: &Violation| Report { message: violation.to_string(), hint: violation.hint().map(str::to_owned) };
    violations.iter().map(report).collect()
}

fn anonymize_report(error: &AnonymizeError) -> Report {
    Report { message: error.to_string(), hint: error.hint().map(str::to_owned) }
}

fn hierarchy_reports(place: &dyn Display, problems: &HierarchyErrors) -> Vec<Report> {
    problems.0.iter().map(|problem| Report::new(format!("{place}: {problem}")).hint(problem.hint())).collect()
}

fn of_class(class: ErrorClass, reports: Vec<Report>) -> Error {
    match class {
        ErrorClass::Input => Error::Input(reports),
        ErrorClass::Io => Error::Io(reports),
    }
}

impl From<ReadErrors> for Error {
    fn from(problems: ReadErrors) -> Self {
        let class = problems.class();
        let file = problems.file.display();
        let mut reports = Vec::new();
        for problem in &problems.problems {
            match problem {
                ReadError::Hierarchy { column, path, problems } => {
                    let place = format!("{file}: column '{column}': hierarchy {}", path.display());
                    reports.extend(hierarchy_reports(&place, problems));
                }
                ReadError::HierarchyRule { problem: rule, .. } => {
                    reports.push(Report::new(format!("{file}: {problem}")).hint(rule.hint()));
                }
                _ => reports.push(Report { message: format!("{file}: {problem}"), hint: problem.hint() }),
            }
        }
        of_class(class, reports)
    }
}

impl From<LoadError> for Error {
    fn from(problem: LoadError) -> Self {
        match problem {
            LoadError::Files(files) => {
                let errors: Vec<Error> = files.into_iter().map(Error::from).collect();
                let is_input = errors.iter().all(|error| matches!(error, Error::Input(_)));
                let reports = errors.iter().flat_map(Error::raw_reports).collect();
                if is_input { Error::Input(reports) } else { Error::Io(reports) }
            }
            LoadError::Release(problem) => problem.into(),
            LoadError::Schema(problems) => {
                let report = |problem: &SchemaError| Report::new(problem.to_string()).hint(problem.hint());
                Error::Input(problems.0.iter().map(report).collect())
            }
            problem => Error::Fault(vec![Report::new(problem.to_string())]),
        }
    }
}

impl From<ReleaseError> for Error {
    fn from(problem: ReleaseError) -> Self {
        if let ReleaseError::Table(problems) = problem {
            return problems.into();
        }
        let reports = vec![Report { message: problem.to_string(), hint: problem.hint() }];
        match problem {
            // The release can be read, but its files are not those of the manifest.
            ReleaseError::Digest { .. }
            | ReleaseError::Differs { .. }
            | ReleaseError::Bounds { .. }
            | ReleaseError::Labels { .. }
            | ReleaseError::Listing { .. }
            | ReleaseError::Unnamed { .. } => Error::NotMet(reports),
            _ => of_class(problem.class(), reports),
        }
    }
}

impl From<WriteError> for Error {
    fn from(problem: WriteError) -> Self {
        of_class(problem.class(), vec![Report { message: problem.to_string(), hint: problem.hint() }])
    }
}

impl From<AnonymizeError> for Error {
    fn from(error: AnonymizeError) -> Self {
        match error {
            AnonymizeError::TooFewPersons { .. }
            | AnonymizeError::OwnKTooLarge { .. }
            | AnonymizeError::TooFrequent { .. }
            | AnonymizeError::OneValue { .. }
            | AnonymizeError::TooFewJoined { .. }
            | AnonymizeError::Presence { .. }
            | AnonymizeError::RowsLeftOut { .. }
            | AnonymizeError::NobodyFits { .. }
            | AnonymizeError::PreviousCrowd { .. }
            | AnonymizeError::PreviousValues { .. } => Error::Unreachable(error),
            AnonymizeError::NoQuasiColumn
            | AnonymizeError::Unavailable { .. }
            | AnonymizeError::LeftoversWithRegister
            | AnonymizeError::PreviousColumn { .. }
            | AnonymizeError::PreviousLabels { .. } => Error::Input(vec![anonymize_report(&error)]),
            AnonymizeError::Cancelled => Error::Cancelled,
            _ => Error::Fault(vec![anonymize_report(&error)]),
        }
    }
}
