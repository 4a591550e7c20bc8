//! The functions that need no job: check, verify, audit, estimate, suggest, and trees of hierarchies. Charts are in `charts.rs`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kohort::model::hierarchy::Rule;
use kohort::model::spec::HierarchySource;
use kohort::model::{Hierarchy, Notation, Spec, Texts, ValueType};
use kohort::{
    Audit, Check, Classification, EstimateOptions, GroupBy, Knows, Memory, RiskOptions, Role, Suggestion, Suggestions,
    Widths,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};

use crate::capsule::Rows;
use crate::document::builder;
use crate::errors::{exception, input};
use crate::held::Held;
use crate::job::Job;
use crate::json;
use crate::work::Caller;

/// A file, or rows that Python handed over.
pub(crate) enum Source {
    File(PathBuf),
    Rows(Rows),
}

impl Source {
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Source> {
        match object.extract::<PathBuf>() {
            Ok(path) => Ok(Source::File(path)),
            Err(_) => Rows::of(object).map(Source::Rows),
        }
    }
}

/// The spec that a dict says.
pub(crate) fn spec(py: Python<'_>, document: &Bound<'_, PyDict>) -> PyResult<Spec> {
    let job = builder(document)?.build().map_err(|error| exception(py, &error))?;
    Ok(job.spec().clone())
}

/// Counts any table. `document` is a spec of one table that says what is asked; its k is asked only if `has_k` is true. A file may
/// be larger than the memory that is named. With `risks` the result also tells where the risk comes from.
#[pyfunction]
#[pyo3(signature = (source, document, has_k, n_bytes=None, risks=false, suda=None, population=None, threads=None, hook=None))]
#[allow(clippy::too_many_arguments, reason = "Python gives them by name")]
pub(crate) fn check(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    document: &Bound<'_, PyDict>,
    has_k: bool,
    n_bytes: Option<u64>,
    risks: bool,
    suda: Option<usize>,
    population: Option<u64>,
    threads: Option<i64>,
    hook: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    let spec = spec(py, document)?;
    let [table] = spec.tables.as_slice() else { return Err(PyTypeError::new_err("one table is checked at a time")) };
    let with_role = |role: Role| {
        let columns = table.columns.iter().filter(|column| column.role == role);
        columns.map(|column| column.name.clone()).collect::<Vec<String>>()
    };
    let mut requirements = spec.requirements(table);
    requirements.retain(|requirement| has_k || requirement.k().is_none());
    let person = document_text(document, "person")?;
    let check = Check { quasi: with_role(Role::Quasi), sensitive: with_role(Role::Sensitive), person, requirements };
    let options = RiskOptions { suda, population, csv: table.csv.clone() };
    let source = Source::of(source)?;
    let (checked, found) = Caller { threads, hook }.run(py, move |progress| match (source, n_bytes) {
        (Source::File(path), None) if risks => {
            check.risks_of_file(path, &options, progress).map(|(checked, found)| (checked, Some(found)))
        }
        (Source::File(path), None) => Ok((check.file_read_as(path, options.csv, progress)?, None)),
        (Source::File(path), Some(n_bytes)) => Ok((check.file_within(path, Memory::bytes(n_bytes), progress)?, None)),
        (Source::Rows(_), Some(_)) => Err(input("memory is for tables in files", "write the table to a file first")),
        (Source::Rows(rows), None) => {
            let rows = rows.read()?;
            let _held = Held::new(&rows);
            if risks {
                let (checked, found) = check.risks_of_batches(&rows, &options, progress)?;
                return Ok((checked, Some(found)));
            }
            Ok((check.batches(&rows, progress)?, None))
        }
    })?;
    let mut object = json::findings(&checked.findings, &checked.unmet);
    if let Some(found) = &found {
        object["risks"] = json::risks(found);
    }
    Ok(object.to_string())
}

/// The person column of the only table of a document.
fn document_text(document: &Bound<'_, PyDict>, key: &str) -> PyResult<Option<String>> {
    let Some(tables) = document.get_item("tables")? else { return Ok(None) };
    let tables = tables.cast_into::<PyDict>()?;
    let Some(table) = tables.values().iter().next() else { return Ok(None) };
    table.cast_into::<PyDict>()?.get_item(key)?.map(|text| text.extract()).transpose()
}

/// Counts a release again, alone or against the private tables of a job. The tables may be larger than the memory that is named.
/// `applied_from` is the release whose classes it has.
#[pyfunction]
#[pyo3(signature = (folder, against=None, n_bytes=None, applied_from=None, threads=None, hook=None))]
pub(crate) fn verify(
    py: Python<'_>,
    folder: PathBuf,
    against: Option<&Bound<'_, Job>>,
    n_bytes: Option<u64>,
    applied_from: Option<PathBuf>,
    threads: Option<i64>,
    hook: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    let start = against.map(|against| against.get().start());
    let found = Caller { threads, hook }.run_with_errands(py, move |progress, errands| match start {
        None => match (n_bytes, applied_from) {
            (_, Some(earlier)) => kohort::verify_applied(folder, earlier, progress),
            (None, None) => kohort::verify_with(folder, progress),
            (Some(n_bytes), None) => kohort::verify_within(folder, Memory::bytes(n_bytes), progress),
        },
        Some(start) => start.run(progress, errands, |job, progress| match n_bytes {
            None => kohort::verify_against_with(folder, job, progress),
            Some(n_bytes) => kohort::verify_against_within(folder, job, Memory::bytes(n_bytes), progress),
        }),
    })?;
    let manifest = serde_json::from_str::<Value>(&json::text(&found.manifest)?).unwrap_or_default();
    let object = json!({
        "verdict": found.verdict.word(),
        "findings": json::findings(&found.findings, &[]),
        "not_counted": found.not_counted,
        "unconfirmed": found.claims.unconfirmed,
        "taken": found.claims.taken,
        "wrong": json::reports(&found.wrong),
        "manifest": manifest,
    });
    Ok(object.to_string())
}

/// Hierarchies by column, from settings as a spec has them.
pub(crate) fn hierarchies(py: Python<'_>, settings: &Bound<'_, PyDict>) -> PyResult<BTreeMap<String, HierarchySource>> {
    if settings.is_empty() {
        return Ok(BTreeMap::new());
    }
    let spec = spec(py, settings)?;
    let columns = spec.tables.into_iter().flat_map(|table| table.columns);
    Ok(columns.filter_map(|column| Some((column.name, column.hierarchy?))).collect())
}

/// Reads several releases of the same persons together.
#[pyfunction]
#[pyo3(signature = (releases, audiences, hierarchies, person=None, k=None, threads=None, hook=None))]
#[allow(clippy::too_many_arguments, reason = "Python gives them by name")]
pub(crate) fn audit(
    py: Python<'_>,
    releases: Vec<PathBuf>,
    audiences: Vec<(String, Vec<String>)>,
    hierarchies: &Bound<'_, PyDict>,
    person: Option<String>,
    k: Option<u64>,
    threads: Option<i64>,
    hook: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    if k == Some(0) {
        return Err(exception(py, &input("k: must be a whole number of at least 1, not 0", "for example k=5")));
    }
    let hierarchies = self::hierarchies(py, hierarchies)?;
    let names: Vec<String> = audiences.iter().map(|(name, _)| name.clone()).collect();
    let audiences = audiences.into_iter().map(|(audience, columns)| Knows { audience, columns }).collect();
    let audit = Audit { releases, audiences, person, hierarchies, k };
    let audited = Caller { threads, hook }.run(py, move |progress| audit.run(progress))?;
    Ok(json::audited(&audited.findings, &names, &audited.unmet).to_string())
}

/// Estimates how many rows of the private table match conditions, from a release alone: groups and what is estimated of each. Without
/// `by` there is one group, which has no name.
#[pyfunction]
#[pyo3(signature = (folder, conditions, hierarchies, by=None, continuous=false, threads=None, hook=None))]
#[allow(clippy::too_many_arguments, reason = "Python gives them by name")]
pub(crate) fn estimate(
    py: Python<'_>,
    folder: PathBuf,
    conditions: String,
    hierarchies: &Bound<'_, PyDict>,
    by: Option<&str>,
    continuous: bool,
    threads: Option<i64>,
    hook: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    let widths = if continuous { Widths::Continuous } else { Widths::Steps };
    let options = EstimateOptions { widths, hierarchies: self::hierarchies(py, hierarchies)? };
    let by = by.map(GroupBy::parse).transpose().map_err(|report| exception(py, &kohort::Error::Input(vec![report])))?;
    let found = Caller { threads, hook }.run(py, move |progress| match by {
        None => kohort::estimate(folder, &conditions, &options, progress).map(|found| vec![(String::new(), found)]),
        Some(by) => kohort::estimate_by(folder, &conditions, &by, &options, progress),
    })?;
    let groups = found.into_iter().map(|(group, found)| json!([group, Value::Object(found.to_object())]));
    Ok(Value::Array(groups.collect()).to_string())
}

/// Suggests roles and hierarchies of a table.
#[pyfunction]
#[pyo3(signature = (source, name, file, threads=None, hook=None))]
pub(crate) fn suggest(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    name: String,
    file: String,
    threads: Option<i64>,
    hook: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    let source = Source::of(source)?;
    let found = Caller { threads, hook }.run(py, move |progress| match source {
        Source::File(path) => kohort::suggest(path, progress),
        Source::Rows(rows) => {
            let rows = rows.read()?;
            let _held = Held::new(&rows);
            kohort::suggest_batches(&name, &rows, progress)
        }
    })?;
    let Suggestions { table, settings, person, columns } = &found;
    let column = |Suggestion { name, role, settings, reason }: &Suggestion| {
        let settings: BTreeMap<&str, &str> = settings.iter().copied().collect();
        json!({ "name": name, "role": role.word(), "settings": settings, "reason": reason })
    };
    let settings: Vec<Value> =
        settings.iter().map(|setting| json!([setting.key, setting.value, setting.reason])).collect();
    let object = json!({
        "table": table,
        "settings": settings,
        "person": person,
        "columns": columns.iter().map(column).collect::<Vec<_>>(),
        "toml": found.to_toml(file),
    });
    Ok(object.to_string())
}

/// The JSON Schema of a file that programs read.
#[pyfunction]
pub(crate) fn schema(py: Python<'_>, kind: &str) -> PyResult<String> {
    match kind {
        "spec" => Ok(kohort::model::spec::json_schema().to_owned()),
        "manifest" => Ok(kohort::model::manifest_schema().to_owned()),
        "report" => Ok(kohort::model::report::report_schema().to_owned()),
        _ => Err(exception(py, &input(format!("no schema of '{kind}'"), "use 'spec', 'manifest' or 'report'"))),
    }
}

/// The nodes of a hierarchy from its text: label, parent's position, values below it.
#[pyfunction]
pub(crate) fn tree(py: Python<'_>, text: &str, is_edges: bool, place: PathBuf) -> PyResult<String> {
    let tree = if is_edges { Hierarchy::from_edges(text) } else { Hierarchy::from_paths(text) };
    let tree = tree.map_err(|problems| exception(py, &kohort::Error::hierarchy(&place, &problems)))?;
    Ok(nodes(&tree))
}

/// The nodes of a hierarchy that a rule makes from values.
#[pyfunction]
pub(crate) fn tree_of_values(py: Python<'_>, document: &Bound<'_, PyDict>, values: Vec<String>) -> PyResult<String> {
    let spec = spec(py, document)?;
    let column = spec.tables.first().and_then(|table| table.columns.first());
    let Some(HierarchySource::Rule(rule)) = column.and_then(|column| column.hierarchy.as_ref()) else {
        return Err(PyTypeError::new_err("this hierarchy is no rule, so it has a tree without values"));
    };
    let types: &[ValueType] = match rule {
        Rule::Steps(_) => &[ValueType::Integer, ValueType::Decimal, ValueType::Float],
        Rule::Dates(_) => &[ValueType::Date, ValueType::Timestamp],
        Rule::Mask(_) | Rule::Flat => &[ValueType::Text],
    };
    let texts: Texts = values.iter().map(String::as_str).collect();
    let mut problem = None;
    for &value_type in types {
        match rule.make(&texts, value_type, &Notation::default()) {
            Ok(tree) => return Ok(nodes(&tree)),
            Err(found) => problem = problem.or(Some(input(found.to_string(), found.hint()))),
        }
    }
    Err(exception(py, &problem.unwrap_or_else(|| input("no tree can be made", "give values"))))
}

/// The nodes of the hierarchy of codes.
#[pyfunction]
pub(crate) fn tree_of_codes(py: Python<'_>, kind: &str, values: Vec<String>) -> PyResult<String> {
    let Some(kind) = Classification::from_word(kind) else {
        let known: Vec<&str> = Classification::ALL.iter().map(|kind| kind.word()).collect();
        return Err(exception(py, &input(format!("no codes of '{kind}'"), format!("use {}", known.join(", ")))));
    };
    let tree = kohort::classified(values.iter().map(String::as_str), kind).map_err(|error| exception(py, &error))?;
    Ok(nodes(&tree))
}

fn nodes(tree: &Hierarchy) -> String {
    let mut n_leaves = vec![0u64; tree.n_nodes()];
    for node in (0..tree.n_nodes() as u32).rev() {
        n_leaves[node as usize] += u64::from(tree.is_leaf(node));
        if let Some(parent) = tree.parent(node) {
            n_leaves[parent as usize] += n_leaves[node as usize];
        }
    }
    let node = |node: u32| json!([tree.label(node), tree.parent(node), n_leaves[node as usize]]);
    Value::from((0..tree.n_nodes() as u32).map(node).collect::<Vec<_>>()).to_string()
}
