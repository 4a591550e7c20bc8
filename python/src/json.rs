//! Counts as JSON for Python.

use kohort::Report;
use kohort::verifier::{AuditFindings, AuditedAudience, Findings, Hidden};
use pyo3::PyResult;
use pyo3::exceptions::PyValueError;
use serde_json::{Map, Value, json};

use crate::errors::argument;

pub(crate) fn text(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))
}

pub(crate) fn reports(reports: &[Report]) -> Value {
    let worded = reports.iter().map(|report| report.clone().worded(&argument));
    worded.map(|report| json!({ "message": report.message, "hint": report.hint })).collect()
}

/// What the command prints as JSON, and requirements that are not met.
pub(crate) fn findings(found: &Findings, unmet: &[Report]) -> Value {
    let mut object = kohort::counts(found);
    object.insert("unmet".to_owned(), reports(unmet));
    object.into()
}

pub(crate) fn audited(found: &AuditFindings, names: &[String], unmet: &[Report]) -> Value {
    let audiences: Map<String, Value> = names.iter().cloned().zip(found.audiences.iter().map(audience)).collect();
    json!({
        "persons": found.persons,
        "persons_in_all": found.persons_in_all,
        "rows": found.rows,
        "audiences": audiences,
        "union": found.union.as_ref().map(audience),
        "unmet": reports(unmet),
    })
}

fn audience(found: &AuditedAudience) -> Value {
    json!({
        "alone": found.alone.iter().map(|alone| alone.as_ref().map(hidden)).collect::<Vec<_>>(),
        "together": hidden(&found.together),
    })
}

fn hidden(found: &Hidden) -> Value {
    json!({
        "classes": found.classes, "smallest": found.smallest, "below_k": found.below_k,
        "unique_persons": found.unique_persons, "smallest_classes": found.smallest_classes,
    })
}
