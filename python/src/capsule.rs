//! Tables that cross between Python and Rust through Arrow's PyCapsule interface, without being copied.
//!
//! This is the only file with `unsafe` code: Python hands over Arrow data as pointers to C structs.

#![allow(unsafe_code, reason = "capsules hold pointers to C structs")]

use std::ffi::CStr;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, from_ffi_and_data_type};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchOptions, StructArray};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
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
    Stream(Stream),
    Batch(RecordBatch),
}

/// A stream of rows. Arrow's own reader forgets that a whole row can be null in it, and would show what lies below.
pub(crate) struct Stream {
    stream: FFI_ArrowArrayStream,
    schema: SchemaRef,
}

impl Stream {
    /// Asks the stream for its columns; `None` if it was read before, or has columns of unknown types.
    fn of(mut stream: FFI_ArrowArrayStream) -> Option<Stream> {
        stream.release?;
        let get_schema = stream.get_schema?;
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: the stream is not released, so its callbacks may be called with it.
        let code = unsafe { get_schema(&raw mut stream, &raw mut schema) };
        let schema = if code == 0 { Schema::try_from(&schema).ok()? } else { return None };
        Some(Stream { stream, schema: Arc::new(schema) })
    }

    /// The next rows, `None` at the end. Errors don't quote the producer, because its words may hold a cell.
    fn next(&mut self) -> Result<Option<RecordBatch>, Error> {
        let failed =
            || input("the table can't be read: the object that holds it failed", "read it by itself to see why");
        let get_next = self.stream.get_next.ok_or_else(failed)?;
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: the stream was not released when it came, and only dropping it releases it.
        if unsafe { get_next(&raw mut self.stream, &raw mut array) } != 0 {
            return Err(failed());
        }
        if array.is_released() {
            return Ok(None);
        }
        let kind = DataType::Struct(self.schema.fields().clone());
        // SAFETY: by the stream interface, each array has the stream's schema.
        let data = unsafe { from_ffi_and_data_type(array, kind) }.map_err(|_| failed())?;
        if data.null_count() > 0 {
            return Err(input("whole rows of the table are null", "leave out the rows that are null"));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(data.len()));
        let columns = StructArray::from(data).into_parts().1;
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options).map(Some).map_err(|_| failed())
    }
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
            return Stream::of(stream).map(Rows::Stream).ok_or_else(unreadable_type);
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

    /// Reads all rows.
    pub(crate) fn read(self) -> Result<Batches, Error> {
        let (schema, batches) = match self {
            Rows::Batch(batch) => (batch.schema(), vec![batch]),
            Rows::Stream(mut stream) => {
                let mut batches = Vec::new();
                while let Some(batch) = stream.next()? {
                    batches.push(batch);
                }
                (stream.schema.clone(), batches)
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
