//! [`ArrowTable`]: a table for Python, which any library takes that speaks Arrow's PyCapsule interface.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use kohort::Batches;
use pyo3::exceptions::{PyIndexError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::capsule::{self, Rows};
use crate::work::Caller;

/// A table in memory. pyarrow, polars, pandas, DuckDB and others take it as it is.
#[pyclass(frozen, module = "kohort._kohort")]
pub(crate) struct ArrowTable {
    pub(crate) rows: Batches,
}

#[pymethods]
impl ArrowTable {
    /// The rows of an object that speaks Arrow's PyCapsule interface.
    #[staticmethod]
    fn of(py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<ArrowTable> {
        let rows = Rows::of(rows)?;
        let rows = Caller { threads: None, hook: None }.run(py, move |_| rows.read())?;
        Ok(ArrowTable { rows })
    }

    /// A capsule with a stream of the rows. The requested schema is ignored, as Arrow's interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        capsule::stream(py, &self.rows)
    }

    /// A capsule with the columns and their types.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule::schema(py, &self.rows)
    }

    /// How many rows there are.
    #[getter]
    fn num_rows(&self) -> usize {
        self.rows.batches().iter().map(RecordBatch::num_rows).sum()
    }

    /// The names of the columns, in order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.rows.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// A table of one column.
    fn column(&self, position: usize) -> PyResult<ArrowTable> {
        let project = |batch: &RecordBatch| batch.project(&[position]);
        let schema = self.rows.schema().project(&[position]);
        let batches = self.rows.batches().iter().map(project).collect::<Result<Vec<_>, _>>();
        let (Ok(schema), Ok(batches)) = (schema, batches) else { return Err(PyIndexError::new_err("no such column")) };
        let rows = Batches::new(Arc::new(schema), batches).map_err(|_| PyIndexError::new_err("batches differ"))?;
        Ok(ArrowTable { rows })
    }

    /// The Arrow types of the columns, in words.
    #[getter]
    fn types(&self) -> Vec<String> {
        self.rows.schema().fields().iter().map(|field| field.data_type().to_string()).collect()
    }

    /// Writes the rows as an Arrow file.
    fn write_arrow(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let write = || -> Result<(), String> {
            let file = File::create(&path).map_err(|error| error.to_string())?;
            let mut writer = FileWriter::try_new(file, self.rows.schema()).map_err(|error| error.to_string())?;
            self.rows.batches().iter().try_for_each(|batch| writer.write(batch)).map_err(|error| error.to_string())?;
            writer.finish().map_err(|error| error.to_string())
        };
        py.detach(write).map_err(|error| PyOSError::new_err(format!("{}: {error}", path.display())))
    }

    fn __repr__(&self) -> String {
        format!("<kohort table of {} rows: {}>", self.num_rows(), self.column_names().join(", "))
    }
}
