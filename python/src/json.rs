//! Counts as JSON for Python.

use kohort::verifier::{AuditFindings, AuditedAudience, Counted, Findings, Hidden, SensitiveFindings};
use kohort::{Report, sensitive_columns};
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

pub(crate) fn findings(found: &Findings, unmet: &[Report]) -> Value {
    let sensitive: Map<String, Value> =
        sensitive_columns(found).into_iter().map(|(name, column)| (name, sensitive(column))).collect();
    json!({
        "counted": match found.counted { Counted::Persons => "persons", Counted::Rows => "rows" },
        "rows": found.rows,
        "persons": found.persons,
        "classes": found.classes,
        "k": found.k,
        "unique_persons": found.unique_persons,
        "smallest_classes": found.smallest_classes,
        "highest_risk": found.highest_risk,
        "average_risk": found.average_risk,
        "sensitive": sensitive,
        "unmet": reports(unmet),
    })
}

fn sensitive(column: &SensitiveFindings) -> Value {
    let SensitiveFindings { l, entropy_l, recursive_c, t, alpha, beta, enhanced_beta, .. } = column;
    json!({
        "l": l, "entropy_l": entropy_l, "recursive_c": recursive_c, "t": t, "t_by_distance": column.t_by_distance(),
        "alpha": alpha, "beta": beta, "enhanced_beta": enhanced_beta,
    })
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
