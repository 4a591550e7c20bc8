//! Dicts of Python as specs: they become TOML tables, which are read by the checks that read a spec file.

use kohort::JobBuilder;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDate, PyDict, PyFloat, PyInt, PyString};
use toml::Value;

use crate::errors::{exception, input};

/// A job builder with the settings of a dict. The dict must have `k` or `preset`, since there is no default k.
pub(crate) fn builder(document: &Bound<'_, PyDict>) -> PyResult<JobBuilder> {
    let document = table(document)?;
    let mut builder = match document.get("preset") {
        Some(Value::String(preset)) if !document.contains_key("k") => JobBuilder::preset(preset),
        // This k does not count: the document's own k replaces it, and without one the checks below refuse 0.
        _ => JobBuilder::new(0),
    };
    for (key, value) in document {
        builder = builder.set(&key, value);
    }
    Ok(builder)
}

fn table(dict: &Bound<'_, PyDict>) -> PyResult<toml::Table> {
    let mut table = toml::Table::new();
    for (key, item) in dict {
        let key = key.cast_into::<PyString>().map_err(|_| PyTypeError::new_err("names must be text"))?;
        table.insert(key.to_str()?.to_owned(), value(&item)?);
    }
    Ok(table)
}

fn value(item: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(flag) = item.cast::<PyBool>() {
        return Ok(flag.is_true().into());
    }
    if let Ok(text) = item.cast::<PyString>() {
        return Ok(text.to_str()?.into());
    }
    if let Ok(dict) = item.cast::<PyDict>() {
        return Ok(table(dict)?.into());
    }
    if item.is_instance_of::<PyInt>() {
        let number = item.extract::<i64>().map_err(|_| {
            exception(item.py(), &input("a whole number of the spec is too large", "no number of a spec needs 64 bits"))
        })?;
        return Ok(number.into());
    }
    if item.is_instance_of::<PyFloat>() {
        return Ok(item.extract::<f64>()?.into());
    }
    if item.is_instance_of::<PyDate>() {
        return Ok(item.str()?.to_str()?.into());
    }
    if item.hasattr("__fspath__")? {
        return Ok(item.call_method0("__fspath__")?.extract::<String>()?.into());
    }
    // NumPy's numbers are not instances of Python's types, so they are converted.
    if let Ok(whole) = item.extract::<i64>() {
        return Ok(whole.into());
    }
    if item.hasattr("__float__")? {
        return Ok(item.extract::<f64>()?.into());
    }
    if let Ok(items) = item.try_iter() {
        return Ok(Value::Array(items.map(|item| value(&item?)).collect::<PyResult<_>>()?));
    }
    Err(PyTypeError::new_err(format!("a spec can't say a value of type {}", item.get_type().name()?)))
}
