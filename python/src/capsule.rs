//! Tables that cross between Python and Rust through Arrow's PyCapsule interface, without being copied.
//!
//! This is the only file with `unsafe` code: Python hands over Arrow data as pointers to C structs.

#![allow(unsafe_code, reason = "capsules hold pointers to C structs")]

use std::ffi::CStr;
use std::ptr::NonNull;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use kohort::{Batches, Error};
use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::errors::{exception, input};

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";

/// Rows that Python handed over. Creating this does not read a stream: its producer may take long, so the stream is
/// read later, by [`Rows::read`], without holding the interpreter.
pub(crate) enum Rows {
    Stream(ArrowArrayStreamReader),
    Batch(RecordBatch),
}

impl Rows {
    /// Takes the rows of an object that speaks Arrow's PyCapsule interface.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Rows> {
        if object.hasattr("__arrow_c_stream__")? {
            let capsule = handed_over(object, "__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
            let pointer: NonNull<FFI_ArrowArrayStream> = capsule.pointer_checked(Some(STREAM))?.cast();
            // SAFETY: by the PyCapsule interface, a capsule of this name points to a valid stream, which its consumer may
            // move out. The capsule is alive until the end of this block, and keeps a released stream.
            let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr()) };
            let reader = ArrowArrayStreamReader::try_new(stream).map_err(|_| unreadable_type())?;
            return Ok(Rows::Stream(reader));
        }
        if object.hasattr("__arrow_c_array__")? {
            let pair = handed_over(object, "__arrow_c_array__")?.cast_into::<PyTuple>()?;
            let schema = pair.get_item(0)?.cast_into::<PyCapsule>()?;
            let array = pair.get_item(1)?.cast_into::<PyCapsule>()?;
            let schema_pointer: NonNull<FFI_ArrowSchema> = schema.pointer_checked(Some(SCHEMA))?.cast();
            let array_pointer: NonNull<FFI_ArrowArray> = array.pointer_checked(Some(ARRAY))?.cast();
            // SAFETY: by the PyCapsule interface, capsules of these names point to a valid schema and a valid array, which
            // their consumer may move out. Both capsules are alive until the end of this block.
            let (schema, array) = unsafe {
                (FFI_ArrowSchema::from_raw(schema_pointer.as_ptr()), FFI_ArrowArray::from_raw(array_pointer.as_ptr()))
            };
            // SAFETY: both come from one call, so the schema describes the array.
            let data = unsafe { from_ffi(array, &schema) }.map_err(|_| unreadable_type())?;
            if !matches!(data.data_type(), DataType::Struct(_)) || data.null_count() > 0 {
                return Err(PyTypeError::new_err("an Arrow array is no table: give an array of structs, or a table"));
            }
            return Ok(Rows::Batch(RecordBatch::from(StructArray::from(data))));
        }
        Err(PyTypeError::new_err("the object has neither __arrow_c_stream__ nor __arrow_c_array__"))
    }

    /// Reads all rows. Errors don't quote the producer, because its words may hold a cell.
    pub(crate) fn read(self) -> Result<Batches, Error> {
        let (schema, batches): (SchemaRef, Vec<RecordBatch>) = match self {
            Rows::Batch(batch) => (batch.schema(), vec![batch]),
            Rows::Stream(reader) => {
                let schema = reader.schema();
                let batches = reader.collect::<Result<_, ArrowError>>().map_err(|_| {
                    input("the table can't be read: the object that holds it failed", "read it by itself to see why")
                })?;
                (schema, batches)
            }
        };
        Batches::new(schema, batches).map_err(|position| {
            let message = format!("batch {} has other columns than batch 1", position + 1);
            input(message, "give batches of one schema")
        })
    }
}

/// Calls a method that hands rows over. The words of its exception are not passed on, because they may hold a cell.
fn handed_over<'py>(object: &Bound<'py, PyAny>, method: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    object.call_method0(method).map_err(|error| {
        if error.is_instance_of::<PyKeyboardInterrupt>(py) {
            return error;
        }
        let message = format!("the table can't be handed over as Arrow data: its {method} failed");
        exception(py, &input(message, "convert it to a table of pyarrow yourself to see why"))
    })
}

fn unreadable_type() -> PyErr {
    PyTypeError::new_err(
        "this is no table, or has a column of a type that can't be read, or was read by somebody else already: give a table",
    )
}

/// Rows for Python: a capsule with a stream of them.
pub(crate) fn stream<'py>(py: Python<'py>, rows: &Batches) -> PyResult<Bound<'py, PyCapsule>> {
    let batches: Vec<Result<RecordBatch, ArrowError>> = rows.batches().iter().cloned().map(Ok).collect();
    let reader = RecordBatchIterator::new(batches, rows.schema().clone());
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
}

/// The columns of rows for Python: a capsule with a schema.
pub(crate) fn schema<'py>(py: Python<'py>, rows: &Batches) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(rows.schema().as_ref()).map_err(|_| unreadable_type())?;
    PyCapsule::new_with_value(py, schema, SCHEMA)
}
