//! New persons in the classes of an earlier release.

use std::path::PathBuf;

use kohort::Apply;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::functions::{Source, hierarchies, spec};
use crate::held::Held;
use crate::job::Release;
use crate::work::Caller;

/// Releases new persons in the classes of the release in a folder. `document` is a spec of one table that says how a CSV file is
/// read; `settings` holds hierarchies by column, as a spec has them.
#[pyfunction]
#[pyo3(signature = (folder, source, document, settings, identifiers, drop, person=None, not_in=None, max_suppressed=1.0, accept_risks=false, threads=None, hook=None))]
#[allow(clippy::too_many_arguments, reason = "Python gives them by name")]
pub(crate) fn apply(
    py: Python<'_>,
    folder: PathBuf,
    source: &Bound<'_, PyAny>,
    document: &Bound<'_, PyDict>,
    settings: &Bound<'_, PyDict>,
    identifiers: Vec<String>,
    drop: Vec<String>,
    person: Option<String>,
    not_in: Option<PathBuf>,
    max_suppressed: f64,
    accept_risks: bool,
    threads: Option<i64>,
    hook: Option<Bound<'_, PyAny>>,
) -> PyResult<Release> {
    let (path, rows) = match Source::of(source)? {
        Source::File(path) => (path, None),
        Source::Rows(rows) => (PathBuf::from("table"), Some(rows)),
    };
    let mut apply = Apply::new(folder, path).max_suppressed(max_suppressed);
    if let Some(table) = spec(py, document)?.tables.first() {
        apply = apply.csv(table.csv.clone());
    }
    apply = identifiers.into_iter().fold(apply, Apply::identifier);
    apply = drop.into_iter().fold(apply, Apply::drop);
    apply = hierarchies(py, settings)?
        .into_iter()
        .fold(apply, |apply, (column, hierarchy)| apply.hierarchy(column, hierarchy));
    if let Some(person) = person {
        apply = apply.person(person);
    }
    if let Some(file) = not_in {
        apply = apply.not_in(file);
    }
    if accept_risks {
        apply = apply.accept_risks();
    }
    let release = Caller { threads, hook }.run(py, move |progress| {
        let Some(rows) = rows else { return apply.release_with(progress) };
        let rows = rows.read()?;
        let _held = Held::new(&rows);
        apply.instead_of(rows).release_with(progress)
    })?;
    Ok(Release::of(release))
}
