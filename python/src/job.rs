//! [`Job`] and [`Release`]: from a spec and tables to a verified release.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_schema::{DataType, FieldRef};
use kohort::model::spec::TableSpec;
use kohort::{
    Batches, CellForm, Error, Existing, Format, Memory, MissingText, NotHandedOver, PlannedCells, Progress, Report,
    Role, TooLarge, WriteOptions,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::capsule::Rows;
use crate::document::builder;
use crate::errors::{exception, input};
use crate::frame::{Frame, Thrifty};
use crate::held::Held;
use crate::json;
use crate::midpoint::midpoints;
use crate::table::ArrowTable;
use crate::work::{Caller, Errands};

/// A job: tables, and how they are to be released.
#[pyclass(frozen, module = "kohort._kohort")]
pub(crate) struct Job {
    job: kohort::Job,
    toml: String,
    /// Tables that are handed over column by column when the job is done, by the file that each of them replaces.
    frames: Vec<(PathBuf, Arc<Frame>)>,
    /// Tables that were handed over as a whole.
    wholes: Vec<Batches>,
}

impl Job {
    fn with(&self, job: kohort::Job) -> Job {
        Job { job, toml: self.toml.clone(), frames: self.frames.clone(), wholes: self.wholes.clone() }
    }

    /// The job, ready to run in a thread of its own. Its frames stay in Python until [`JobStart::run`] asks for them.
    pub(crate) fn start(&self) -> JobStart {
        let held = self.wholes.iter().map(Held::new).collect();
        JobStart { job: self.job.clone(), frames: self.frames.clone(), held }
    }

    fn start_with(&self, seed: Option<u64>, accept_risks: bool) -> JobStart {
        let mut start = self.start();
        if let Some(seed) = seed {
            start.job = start.job.seed(seed);
        }
        if accept_risks {
            start.job = start.job.accept_risks();
        }
        start
    }

    /// Refuses columns that would be released and can't be.
    fn refuse_unfit(&self, file: &Path, rows: &Batches) -> Result<(), Error> {
        let Some(table) = self.job.spec().tables.iter().find(|table| table.file == file) else { return Ok(()) };
        let report = |(position, field): (usize, &FieldRef)| {
            let NotHandedOver { fault, hint } = unfit(rows, position)?;
            Some(Report::new(format!("{}: column '{}' {fault}", table.name, field.name())).hint(hint))
        };
        let columns = rows.schema().fields().iter().enumerate();
        let reports: Vec<Report> =
            columns.filter(|(_, field)| is_released(table, field.name())).filter_map(report).collect();
        if reports.is_empty() { Ok(()) } else { Err(Error::Input(reports)) }
    }
}

/// A job whose frames are still in Python: [`Errands`] ask the calling thread for their columns.
pub(crate) struct JobStart {
    job: kohort::Job,
    frames: Vec<(PathBuf, Arc<Frame>)>,
    held: Vec<Held>,
}

impl JobStart {
    /// Does `work` with the job, whose frames are handed over column by column, by errands.
    pub(crate) fn run<T>(
        self,
        progress: &dyn Progress,
        errands: &Errands,
        work: impl FnOnce(&kohort::Job, &dyn Progress) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let frames = self.frames.iter().map(|(_, frame)| Arc::clone(frame)).collect();
        let progress = Thrifty { progress, errands, frames };
        let JobStart { job, frames, held } = self;
        let done = work(&with_frames(job, frames, errands)?, &progress);
        drop(held);
        done
    }
}

/// The job with frames that are handed over by errands.
fn with_frames(
    mut job: kohort::Job,
    frames: Vec<(PathBuf, Arc<Frame>)>,
    errands: &Errands,
) -> Result<kohort::Job, Error> {
    for (file, frame) in frames {
        let table = job.spec().tables.iter().find(|table| table.file == file);
        let released: Vec<bool> =
            frame.names().iter().map(|name| table.is_some_and(|table| is_released(table, name))).collect();
        refuse_unreadable(&file, &frame, &released, errands)?;
        let unfit = move |position: usize, rows: &Batches| if released[position] { unfit(rows, 0) } else { None };
        let columns = frame.columns(errands, unfit);
        job = job.instead_of_columns(file, columns);
    }
    Ok(job)
}

/// Refuses columns that can't be handed over although they are not released either. Such a column is probably a mistake in
/// the frame, which its owner should know.
fn refuse_unreadable(file: &Path, frame: &Arc<Frame>, released: &[bool], errands: &Errands) -> Result<(), Error> {
    let report = |(position, name): (usize, &String)| {
        let NotHandedOver { fault, hint } = frame.hand_over(position, errands).err()?;
        Some(Report::new(format!("{}: column '{name}' {fault}", file.display())).hint(hint))
    };
    let columns = frame.names().iter().enumerate().filter(|(position, _)| !released[*position]);
    let reports: Vec<Report> = columns.filter_map(report).collect();
    if reports.is_empty() { Ok(()) } else { Err(Error::Input(reports)) }
}

fn is_released(table: &TableSpec, name: &str) -> bool {
    let column = table.columns.iter().find(|column| column.name == name);
    column.is_some_and(|column| !matches!(column.role, Role::Drop | Role::Identifier))
}

/// Why a column can't be released.
///
/// A requirement on a column speaks of values, and nobody has said which values within a list, a struct or a map count.
/// Texts of a type with offsets of 32 bits would not fit into one piece when they are written.
fn unfit(rows: &Batches, position: usize) -> Option<NotHandedOver> {
    let data_type = rows.schema().field(position).data_type();
    if data_type.is_nested() {
        let hint = "take it apart into columns of their own, or drop it";
        return Some(NotHandedOver { fault: format!("holds {data_type}"), hint: hint.to_owned() });
    }
    let n_bytes: u64 = rows.batches().iter().map(|batch| n_bytes(batch.column(position))).sum();
    (n_bytes > i32::MAX as u64).then(|| NotHandedOver {
        fault: format!("holds {n_bytes} bytes, and its type {data_type} 2147483647 at most"),
        hint: "cast it to large_string or large_binary".to_owned(),
    })
}

/// Bytes of a column whose type has offsets of 32 bits, and 0 of any other.
fn n_bytes(column: &ArrayRef) -> u64 {
    let length = |offsets: &[i32]| u64::from((offsets[offsets.len() - 1] - offsets[0]).unsigned_abs());
    match column.data_type() {
        DataType::Utf8 => length(column.as_string::<i32>().value_offsets()),
        DataType::Binary => length(column.as_binary::<i32>().value_offsets()),
        _ => 0,
    }
}

#[pymethods]
impl Job {
    /// A job for a spec that is a dict. Relative paths in it start from a folder.
    #[new]
    fn new(py: Python<'_>, document: &Bound<'_, PyDict>, folder: PathBuf) -> PyResult<Job> {
        let builder = builder(document)?.folder(folder);
        let job = builder.build().map_err(|error| exception(py, &error))?;
        Ok(Job { job, toml: builder.to_toml(), frames: Vec::new(), wholes: Vec::new() })
    }

    /// A job for the text of a spec file, whose path messages name.
    #[staticmethod]
    fn from_text(py: Python<'_>, text: String, file: PathBuf) -> PyResult<Job> {
        let job = kohort::Job::from_text(&text, file).map_err(|error| exception(py, &error))?;
        Ok(Job { job, toml: text, frames: Vec::new(), wholes: Vec::new() })
    }

    /// The spec as a file holds it.
    #[getter]
    fn toml(&self) -> &str {
        &self.toml
    }

    /// Tables and registers: name and file.
    #[getter]
    fn files(&self) -> Vec<(String, PathBuf)> {
        let spec = self.job.spec();
        let tables = spec.tables.iter().map(|table| (table.name.clone(), table.file.clone()));
        let registers = spec.registers.iter().map(|(name, register)| (name.clone(), register.file.clone()));
        tables.chain(registers).collect()
    }

    /// The names of the registers.
    #[getter]
    fn registers(&self) -> Vec<String> {
        self.job.spec().registers.keys().cloned().collect()
    }

    /// The job with rows in memory instead of a file that the spec names.
    #[pyo3(signature = (file, rows, threads=None, hook=None))]
    fn instead_of(
        &self,
        py: Python<'_>,
        file: PathBuf,
        rows: &Bound<'_, PyAny>,
        threads: Option<i64>,
        hook: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Job> {
        let rows = Rows::of(rows)?;
        let batches = Caller { threads, hook }.run(py, move |_| rows.read())?;
        self.refuse_unfit(&file, &batches).map_err(|error| exception(py, &error))?;
        let mut job = self.with(self.job.clone().instead_of(file, batches.clone()));
        job.wholes.push(batches);
        Ok(job)
    }

    /// The same for a table that is handed over column by column, by an object with `names`, `column(position)` and
    /// `release_unused()`.
    fn instead_of_columns(&self, file: PathBuf, frame: &Bound<'_, PyAny>) -> PyResult<Job> {
        let mut job = self.with(self.job.clone());
        job.frames.push((file, Arc::new(Frame::new(frame)?)));
        Ok(job)
    }

    /// The job with a hierarchy in memory instead of a file that the spec names.
    fn instead_of_text(&self, file: PathBuf, text: String) -> Job {
        self.with(self.job.clone().instead_of_text(file, text))
    }

    /// The job with another k, another effort, or both.
    #[pyo3(signature = (k=None, effort=None))]
    fn asking(&self, py: Python<'_>, k: Option<i64>, effort: Option<i64>) -> PyResult<Job> {
        let mut reports = Vec::new();
        let mut job = self.job.clone();
        if let Some(k) = k {
            match u32::try_from(k).ok().and_then(NonZeroU32::new) {
                Some(k) => job = job.k(k),
                None => reports.push(Report::new(format!("k={k}: no k")).hint("give a whole number from 1 on")),
            }
        }
        if let Some(effort) = effort {
            match u32::try_from(effort).ok().filter(|effort| (1..=1000).contains(effort)) {
                Some(effort) => job = job.effort(effort),
                None => reports.push(Report::new(format!("effort={effort}: no effort")).hint("give 1 to 1000")),
            }
        }
        if reports.is_empty() { Ok(self.with(job)) } else { Err(exception(py, &Error::Input(reports))) }
    }

    /// About how many bytes the job would need in memory, how many there are, and how many it could use in cells; `None` if it is
    /// estimated to fit. `n_bytes` is what the machine has, if the system is not to be asked.
    #[pyo3(signature = (n_bytes=None))]
    fn too_large(&self, py: Python<'_>, n_bytes: Option<u64>) -> Option<(u64, u64, u64)> {
        py.detach(|| {
            let n_bytes = n_bytes.or_else(kohort::machine_memory)?;
            let TooLarge { n_bytes_needed, memory } = self.job.too_large_for(n_bytes)?;
            Some((n_bytes_needed, n_bytes, memory.n_bytes()))
        })
    }

    /// How the table would be cut into cells of this much memory: rows, cells, rows of the largest cell, bytes on the disk,
    /// times that the table is read.
    #[pyo3(signature = (n_bytes, threads=None, hook=None))]
    fn plan_in_cells(
        &self,
        py: Python<'_>,
        n_bytes: u64,
        threads: Option<i64>,
        hook: Option<Bound<'_, PyAny>>,
    ) -> PyResult<(u64, u64, u64, u64, u64)> {
        let start = self.start();
        let planned = Caller { threads, hook }.run_with_errands(py, move |progress, errands| {
            start.run(progress, errands, |job, progress| job.plan_in_cells(Memory::bytes(n_bytes), progress))
        })?;
        let PlannedCells { n_rows, n_cells, rows_of_largest_cell, n_bytes_on_disk, n_passes } = planned;
        Ok((n_rows, n_cells, rows_of_largest_cell, n_bytes_on_disk, n_passes))
    }

    /// The values that hierarchy files lack: table, column, value, rows that hold it. They are cells of private tables.
    #[pyo3(signature = (threads=None, hook=None))]
    fn missing_values(
        &self,
        py: Python<'_>,
        threads: Option<i64>,
        hook: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Vec<(String, String, String, u64)>> {
        let start = self.start();
        let found = Caller { threads, hook }
            .run_with_errands(py, move |progress, errands| start.run(progress, errands, kohort::Job::missing_values))?;
        let each = |missing: MissingText| (missing.table, missing.column, missing.value, missing.n_rows);
        Ok(found.into_iter().map(each).collect())
    }

    /// Reads, anonymizes and verifies.
    #[pyo3(signature = (cells="labels", seed=None, accept_risks=false, threads=None, hook=None))]
    fn anonymize(
        &self,
        py: Python<'_>,
        cells: &str,
        seed: Option<u64>,
        accept_risks: bool,
        threads: Option<i64>,
        hook: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Release> {
        let (form, shown) = match cells {
            "labels" => (CellForm::Labels, Shown::AsWritten),
            "bounds" => (CellForm::Bounds, Shown::AsWritten),
            "midpoint" => (CellForm::Bounds, Shown::Midpoints),
            _ => {
                let problem = input(format!("cells='{cells}': no such form"), "use 'labels', 'bounds' or 'midpoint'");
                return Err(exception(py, &problem));
            }
        };
        let mut start = self.start_with(seed, accept_risks);
        start.job = start.job.cells(form);
        let release = Caller { threads, hook }
            .run_with_errands(py, move |progress, errands| start.run(progress, errands, kohort::Job::anonymize_with))?;
        Ok(Release { release: Arc::new(release), shown })
    }

    /// Reads, anonymizes, verifies and writes a table that may be larger than memory. Returns the manifest as JSON, and the
    /// columns whose released hierarchy lists only values of the private table.
    #[pyo3(signature = (folder, n_bytes, format=None, force=false, seed=None, accept_risks=false, threads=None, hook=None))]
    #[allow(clippy::too_many_arguments, reason = "Python gives them by name")]
    fn write_in_cells(
        &self,
        py: Python<'_>,
        folder: PathBuf,
        n_bytes: u64,
        format: Option<&str>,
        force: bool,
        seed: Option<u64>,
        accept_risks: bool,
        threads: Option<i64>,
        hook: Option<Bound<'_, PyAny>>,
    ) -> PyResult<(String, Vec<String>)> {
        let options = write_options(py, format, force)?;
        let start = self.start_with(seed, accept_risks);
        let memory = Memory::bytes(n_bytes);
        let write = move |progress: &dyn Progress, errands: &Errands| {
            start.run(progress, errands, |job, progress| job.write_in_cells(folder, options, memory, progress))
        };
        let written = Caller { threads, hook }.run_with_errands(py, write)?;
        Ok((json::text(&written.manifest)?, written.own_values_listed))
    }
}

/// How a release is written.
fn write_options(py: Python<'_>, format: Option<&str>, force: bool) -> PyResult<WriteOptions> {
    let format = match format {
        None => None,
        Some(word) => Some(Format::from_word(word).ok_or_else(|| {
            let known: Vec<&str> = Format::ALL.iter().map(|format| format.extension()).collect();
            exception(py, &input(format!("format='{word}': no such format"), format!("use {}", known.join(", "))))
        })?),
    };
    Ok(WriteOptions { format, existing: if force { Existing::Replace } else { Existing::Refuse } })
}

/// The form of quasi cells in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    AsWritten,
    Midpoints,
}

/// A release that the verifier has accepted.
#[pyclass(frozen, module = "kohort._kohort")]
pub(crate) struct Release {
    release: Arc<kohort::Release>,
    shown: Shown,
}

impl Release {
    /// A release whose quasi cells are labels.
    pub(crate) fn of(release: kohort::Release) -> Release {
        Release { release: Arc::new(release), shown: Shown::AsWritten }
    }
}

#[pymethods]
impl Release {
    /// The manifest as JSON: requirements asked and reached, and losses.
    #[getter]
    fn manifest(&self) -> PyResult<String> {
        json::text(self.release.manifest())
    }

    /// The verifier's counts as JSON.
    #[getter]
    fn findings(&self) -> String {
        json::findings(self.release.findings(), &[]).to_string()
    }

    /// Rows of the private table, from 1, that were left out beside earlier releases.
    #[getter]
    fn rows_left_out(&self) -> Vec<u64> {
        self.release.rows_left_out().to_vec()
    }

    /// By how much rows that are left out change totals: table, column, change of the total, change of the mean.
    #[getter]
    fn total_changes(&self) -> Vec<(String, String, f64, f64)> {
        let changes = self.release.total_changes();
        changes.into_iter().map(|change| (change.table, change.column, change.total, change.mean)).collect()
    }

    /// Columns whose released hierarchy lists only values of the private table.
    #[getter]
    fn own_values_listed(&self) -> Vec<String> {
        self.release.own_values_listed()
    }

    /// The released tables, by name.
    #[pyo3(signature = (threads=None, hook=None))]
    fn tables(
        &self,
        py: Python<'_>,
        threads: Option<i64>,
        hook: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Vec<(String, ArrowTable)>> {
        let (release, shown) = (Arc::clone(&self.release), self.shown);
        Caller { threads, hook }.run(py, move |_| {
            let tables = release.to_batches()?;
            let each = tables.into_iter().zip(&release.manifest().tables).map(|(table, entry)| {
                let rows = if shown == Shown::Midpoints { midpoints(&table.rows, entry)? } else { table.rows };
                Ok((table.name, ArrowTable { rows }))
            });
            each.collect()
        })
    }

    /// Writes the release to a folder, as the command does. Gives the manifest as JSON.
    #[pyo3(signature = (folder, format=None, force=false, threads=None, hook=None))]
    fn write(
        &self,
        py: Python<'_>,
        folder: PathBuf,
        format: Option<&str>,
        force: bool,
        threads: Option<i64>,
        hook: Option<Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        let options = write_options(py, format, force)?;
        let release = Arc::clone(&self.release);
        let write = move |progress: &dyn Progress| release.write_with(folder, options, progress);
        json::text(&Caller { threads, hook }.run(py, write)?)
    }

    /// The only table of the release as CSV.
    fn csv(&self, py: Python<'_>) -> PyResult<String> {
        let release = Arc::clone(&self.release);
        let bytes = Caller { threads: None, hook: None }.run(py, move |_| {
            let mut bytes = Vec::new();
            release.write_csv(&mut bytes)?;
            Ok(bytes)
        })?;
        String::from_utf8(bytes).map_err(|_| PyValueError::new_err("the release is not UTF-8"))
    }
}
