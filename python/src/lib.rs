//! The extension module `kohort._kohort`: the library for Python.
//!
//! The package in `python/kohort` is what people use. This module takes dicts and Arrow data, gives JSON and Arrow data,
//! and does all work without holding the interpreter.

mod apply;
mod capsule;
mod charts;
mod document;
mod errors;
mod frame;
mod functions;
mod held;
mod job;
mod json;
mod midpoint;
mod reports;
mod table;
mod work;

/// The module.
#[pyo3::pymodule]
mod _kohort {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::apply::apply;
    #[pymodule_export]
    use crate::charts::{bar_chart, curve_chart, histogram, pair_chart};
    #[pymodule_export]
    use crate::functions::{audit, check, estimate, schema, suggest, tree, tree_of_codes, tree_of_values, verify};
    #[pymodule_export]
    use crate::job::{Job, Release};
    #[pymodule_export]
    use crate::reports::{explore, owner_report, report, write_report};
    #[pymodule_export]
    use crate::table::ArrowTable;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::work::note_panics();
        let at_end = pyo3::wrap_pyfunction!(crate::held::hold_for_good, module)?;
        module.py().import("atexit")?.call_method1("register", (at_end,))?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
