//! Errors of the library as Python's exceptions, which are defined in `kohort/_errors.py`.

use kohort::{AnonymizeError, Error, Parameter, Report};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// Something that is wrong with what was given.
pub(crate) fn input(message: impl Into<String>, hint: impl Into<String>) -> Error {
    Error::Input(vec![Report::new(message).hint(hint)])
}

/// The exception for an error.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    match build(py, error) {
        Ok(exception) => PyErr::from_value(exception),
        Err(problem) => problem,
    }
}

fn build<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    let fields = PyDict::new(py);
    let name = match error {
        Error::Input(_) => "InputError",
        Error::Unreachable(why) => {
            say_why(why, &fields)?;
            "RequirementUnreachable"
        }
        Error::TooFewForAudiences(_) => {
            fields.set_item("reason", "too_few_for_audiences")?;
            "RequirementUnreachable"
        }
        Error::Risks(risks) => {
            fields.set_item("risks", risks.iter().map(kohort::verifier::BlatantRisk::code).collect::<Vec<_>>())?;
            "RiskError"
        }
        Error::NotMet(_) => "NotMet",
        Error::CannotTell(_) => "CannotTell",
        Error::Io(_) => "FileError",
        Error::Cancelled => "Cancelled",
        _ => "Fault",
    };
    let reports = PyList::empty(py);
    for Report { message, hint } in error.reports_in(&argument) {
        reports.append((message, hint))?;
    }
    py.import("kohort._errors")?.getattr(name)?.call((reports,), Some(&fields))
}

/// The argument of Python for a parameter that a hint of the library names.
pub(crate) fn argument(parameter: Parameter, value: Option<&str>) -> String {
    match (parameter, value) {
        (Parameter::AcceptRisks | Parameter::Force, _) => format!("{}=True", parameter.key()),
        (Parameter::Folder, _) => format!("write('{}')", value.unwrap_or("folder")),
        (Parameter::Format, None) => "format='parquet'".to_owned(),
        (Parameter::Hierarchy, _) => format!("hierarchies={{'{}': ...}}", value.unwrap_or("column")),
        (parameter, Some(value)) => format!("{}='{value}'", parameter.key()),
        (parameter, None) => format!("{}=...", parameter.key()),
    }
}

/// Why a requirement can't be reached, in fields.
fn say_why(why: &AnonymizeError, fields: &Bound<'_, PyDict>) -> PyResult<()> {
    let reason = match why {
        AnonymizeError::TooFewPersons { persons, k } => {
            fields.set_item("persons", persons)?;
            fields.set_item("k", k)?;
            "too_few_persons"
        }
        AnonymizeError::TooFewJoined { persons, k } => {
            fields.set_item("persons", persons)?;
            fields.set_item("k", k)?;
            "too_few_persons_in_table_and_registers"
        }
        AnonymizeError::OwnKTooLarge { persons, .. } => {
            fields.set_item("persons", persons)?;
            "own_k_too_large"
        }
        AnonymizeError::TooFrequent { column, .. } => {
            fields.set_item("column", column)?;
            "too_frequent"
        }
        AnonymizeError::OneValue { column } => {
            fields.set_item("column", column)?;
            "one_value"
        }
        AnonymizeError::Presence { .. } => "presence",
        AnonymizeError::PreviousCrowd { k, .. } => {
            fields.set_item("k", k)?;
            "too_few_beside_earlier_releases"
        }
        AnonymizeError::PreviousValues { column } => {
            fields.set_item("column", column)?;
            "values_beside_earlier_releases"
        }
        _ => "unreachable",
    };
    fields.set_item("reason", reason)
}
