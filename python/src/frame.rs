//! [`Frame`]: a table of Python whose columns become Arrow data one at a time.
//!
//! A DataFrame of pandas must be converted. One column of it, converted, is read and dropped before the next one is asked
//! for, so the frame is never in memory twice.

use std::sync::Arc;

use kohort::{Batches, Error, LazyColumns, NotHandedOver, Progress, Report};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::capsule::Rows;
use crate::errors::argument;
use crate::work::Errands;

/// An object of Python with `names`, with a method `column` that gives the column at a position, and with a method
/// `release_unused` that is called when a stage after reading begins.
pub(crate) struct Frame {
    names: Vec<String>,
    object: Py<PyAny>,
}

impl Frame {
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Frame { names: object.getattr("names")?.extract()?, object: object.clone().unbind() })
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The columns for the library. `unfit` says what is wrong with a column that was handed over.
    pub(crate) fn columns(
        self: &Arc<Self>,
        errands: &Errands,
        unfit: impl Fn(usize, &Batches) -> Option<NotHandedOver> + Send + Sync + 'static,
    ) -> LazyColumns {
        let (frame, errands) = (Arc::clone(self), errands.clone());
        LazyColumns::new(self.names.clone(), move |position| {
            let rows = frame.hand_over(position, &errands)?;
            match unfit(position, &rows) {
                Some(problem) => Err(problem),
                None => Ok(rows),
            }
        })
    }

    /// Asks Python for a column.
    pub(crate) fn hand_over(self: &Arc<Self>, position: usize, errands: &Errands) -> Result<Batches, NotHandedOver> {
        let frame = Arc::clone(self);
        let asked = errands.ask(move |py| {
            let column = frame.object.bind(py).call_method1("column", (position,));
            match column.and_then(|column| Rows::of(&column)) {
                Ok(rows) => Ok(Ok(rows)),
                Err(problem) if problem.is_instance_of::<PyTypeError>(py) => Ok(Err(unreadable())),
                Err(problem) => said(py, &problem).map(Err).ok_or(problem),
            }
        });
        let interrupted = || NotHandedOver { fault: "was not read".to_owned(), hint: "call again".to_owned() };
        let rows = asked.ok_or_else(interrupted)??;
        rows.read().map_err(|error| said_by(&error))
    }
}

/// Progress of a job with frames. When a stage has ended, Python is asked to give back memory that nobody needs any more.
pub(crate) struct Thrifty<'a> {
    pub(crate) progress: &'a dyn Progress,
    pub(crate) errands: &'a Errands,
    pub(crate) frames: Vec<Arc<Frame>>,
}

impl Progress for Thrifty<'_> {
    fn begin(&self, stage: &str, total: u64) {
        if stage != READING {
            for frame in self.frames.iter().cloned() {
                self.errands.send(move |py| frame.object.bind(py).call_method0("release_unused").map(drop));
            }
        }
        self.progress.begin(stage, total);
    }

    fn advance(&self, steps: u64) {
        self.progress.advance(steps);
    }

    fn is_cancelled(&self) -> bool {
        self.progress.is_cancelled()
    }
}

/// The stage in which the library reads tables.
const READING: &str = "reading";

/// What an exception of the package says about a column; `None` for any other exception, such as one that Ctrl-C raises.
fn said(py: Python<'_>, problem: &PyErr) -> Option<NotHandedOver> {
    if !problem.is_instance_of::<PyValueError>(py) {
        return None;
    }
    let reports: Vec<(String, Option<String>)> = problem.value(py).getattr("reports").ok()?.extract().ok()?;
    let (fault, hint) = reports.into_iter().next()?;
    Some(NotHandedOver { fault, hint: hint.unwrap_or_default() })
}

fn unreadable() -> NotHandedOver {
    NotHandedOver {
        fault: "has a type that can't be read".to_owned(),
        hint: "convert it to another type, or drop it".to_owned(),
    }
}

fn said_by(error: &Error) -> NotHandedOver {
    let Report { message, hint } = error.reports_in(&argument).swap_remove(0);
    NotHandedOver { fault: format!("was not handed over: {message}"), hint: hint.unwrap_or_default() }
}
