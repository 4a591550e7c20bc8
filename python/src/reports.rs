//! The documents of a release, and what several values of k would cost.

use std::path::PathBuf;

use kohort::model::spec::Algorithm;
use kohort::{Costs, ExploreOptions, OwnerOptions, Report};
use pyo3::prelude::*;

use crate::errors::exception;
use crate::job::Job;
use crate::json;
use crate::work::Caller;

/// Documents of a release: names and texts.
type Texts = Vec<(String, String)>;

fn owned<const N: usize>(texts: [(&'static str, String); N]) -> Texts {
    texts.into_iter().map(|(name, text)| (name.to_owned(), text)).collect()
}

/// The documents of a release, from its files alone. Nothing is written.
#[pyfunction]
#[pyo3(signature = (folder, threads=None, hook=None))]
pub(crate) fn report(
    py: Python<'_>,
    folder: PathBuf,
    threads: Option<i64>,
    hook: Option<Bound<'_, PyAny>>,
) -> PyResult<Texts> {
    Caller { threads, hook }.run(py, move |progress| kohort::report_texts(&folder, progress).map(owned))
}

/// Makes the documents of a release anew and writes them into its folder.
#[pyfunction]
#[pyo3(signature = (folder, threads=None, hook=None))]
pub(crate) fn write_report(
    py: Python<'_>,
    folder: PathBuf,
    threads: Option<i64>,
    hook: Option<Bound<'_, PyAny>>,
) -> PyResult<()> {
    Caller { threads, hook }.run(py, move |progress| kohort::write_report(&folder, progress).map(drop))
}

/// The report for the owner of the private tables, which is written to `out` if that is named.
#[pyfunction]
#[pyo3(signature = (folder, against, out=None, costs=false, target=None, population=None, threads=None, hook=None))]
#[allow(clippy::too_many_arguments, reason = "Python gives them by name")]
pub(crate) fn owner_report(
    py: Python<'_>,
    folder: PathBuf,
    against: &Bound<'_, Job>,
    out: Option<PathBuf>,
    costs: bool,
    target: Option<String>,
    population: Option<u64>,
    threads: Option<i64>,
    hook: Option<Bound<'_, PyAny>>,
) -> PyResult<Texts> {
    let start = against.get().start();
    let costs = if costs { Costs::Measured } else { Costs::Unmeasured };
    let options = OwnerOptions { population, target, costs };
    Caller { threads, hook }.run_with_errands(py, move |progress, errands| {
        let report = start
            .run(progress, errands, |job, progress| kohort::report_against_with(&folder, job, &options, progress))?;
        if let Some(out) = out {
            kohort::write_owner_report(&report, &folder, out)?;
        }
        kohort::owner_report_texts(&report).map(owned)
    })
}

/// What several releases of a job would cost, as the command prints it as JSON.
#[pyfunction]
#[pyo3(signature = (job, k, max_suppressed, algorithms, drop_columns, threads=None, hook=None))]
#[allow(clippy::too_many_arguments, reason = "Python gives them by name")]
pub(crate) fn explore(
    py: Python<'_>,
    job: &Bound<'_, Job>,
    k: Vec<u32>,
    max_suppressed: Vec<f64>,
    algorithms: Vec<String>,
    drop_columns: Vec<String>,
    threads: Option<i64>,
    hook: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    let unknown = |word: &&String| Algorithm::from_word(word).is_none();
    let reports: Vec<Report> = algorithms
        .iter()
        .filter(unknown)
        .map(|word| {
            let known = Algorithm::ALL.map(Algorithm::word).join(", ");
            Report::new(format!("algorithm='{word}': no such algorithm")).hint(format!("use {known}"))
        })
        .collect();
    if !reports.is_empty() {
        return Err(exception(py, &kohort::Error::Input(reports)));
    }
    let algorithms = algorithms.iter().filter_map(|word| Algorithm::from_word(word)).collect();
    let options = ExploreOptions { k, max_suppressed, algorithms, drop_columns };
    let start = job.get().start();
    let found = Caller { threads, hook }.run_with_errands(py, move |progress, errands| {
        start.run(progress, errands, |job, progress| job.explore(&options, progress))
    })?;
    Ok(json::explored(&found).to_string())
}
