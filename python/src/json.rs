//! Counts as JSON for Python.

use kohort::verifier::{AuditFindings, AuditedAudience, Findings, Hidden, PopulationRisk, SudaFindings};
use kohort::{ColumnRisk, Explored, Outcome, Report, Risks, Run, Series};
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

/// Where the risk of a table comes from, as the command prints it as JSON, and the rows by number.
pub(crate) fn risks(found: &Risks) -> Value {
    let column = |column: &ColumnRisk| {
        json!({
            "column": column.column,
            "adds": column.adds,
            "k_without": column.k_without,
            "unique_without": column.unique_without,
            "average_risk_without": column.average_without,
            "suda_share": column.suda_share,
        })
    };
    let suda = found.suda.as_ref().map(|SudaFindings { largest, scores, found, .. }| {
        json!({
            "largest": largest,
            "rows": scores.iter().filter(|score| **score > 0.0).count(),
            "minimal_sets": found,
            "highest_score": scores.iter().copied().fold(0.0, f64::max),
        })
    });
    let population = |risk: &PopulationRisk| {
        let alone: Map<String, Value> =
            risk.alone.iter().map(|(model, alone)| (model.word().to_owned(), json!(alone))).collect();
        json!({
            "persons": risk.persons,
            "share": risk.share,
            "alone_in_table": risk.alone_in_sample,
            "alone": alone,
            "highest_risk": risk.highest_risk,
            "average_risk": risk.average_risk,
        })
    };
    json!({
        "columns": found.columns.iter().map(column).collect::<Vec<_>>(),
        "suda": suda,
        "population": found.population.as_ref().map(population),
        "persons": found.class_sizes,
        "scores": found.suda.as_ref().map(|suda| &suda.scores),
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

/// The series of an exploration, and risks that would keep a release from being made.
pub(crate) fn explored(found: &Explored) -> Value {
    let run = |run: &Run| match &run.outcome {
        Outcome::Reached(figures) => json!({
            "k": run.k,
            "achieved": {
                "k": figures.k,
                "algorithm": figures.algorithm,
                "highest_risk": figures.highest_risk,
                "average_risk": figures.average_risk,
                "classes": figures.classes,
                "persons": figures.persons,
                "suppressed": figures.suppressed,
                "loss": figures.loss,
                "notes": figures.notes,
            },
        }),
        Outcome::Unreachable(why) => json!({ "k": run.k, "achieved": null, "unreachable": why }),
    };
    let series = |series: &Series| {
        json!({
            "algorithm": series.algorithm.word(),
            "max_suppressed": series.max_suppressed,
            "dropped": series.dropped,
            "knee": series.knee.map(|position| series.runs[position].k),
            "runs": series.runs.iter().map(run).collect::<Vec<_>>(),
        })
    };
    json!({ "series": found.series.iter().map(series).collect::<Vec<_>>(), "risks": reports(&found.risks) })
}
