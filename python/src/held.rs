//! Tables of other libraries that are held while work reads them.
//!
//! The memory of such a table belongs to the library that it comes from. Work that was interrupted and has not noticed it may
//! still run when the process ends, and would give the memory back to a library that is gone by then, which kills the process
//! with an error. So once the process ends, nothing that is held is given back.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kohort::Batches;
use pyo3::prelude::*;

static HELD: Mutex<Tables> = Mutex::new(Tables { tables: BTreeMap::new(), next: 0, is_ending: false });

struct Tables {
    tables: BTreeMap<u64, Batches>,
    next: u64,
    is_ending: bool,
}

/// Holds a table until it is dropped, or for good if the process ends before.
pub(crate) struct Held(u64);

impl Held {
    pub(crate) fn new(batches: &Batches) -> Held {
        let mut held = lock();
        let number = held.next;
        held.next += 1;
        held.tables.insert(number, batches.clone());
        Held(number)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut held = lock();
        let table = if held.is_ending { None } else { held.tables.remove(&self.0) };
        // Giving memory back may take time, or need Python.
        drop(held);
        drop(table);
    }
}

/// Called when the process ends.
#[pyfunction]
pub(crate) fn hold_for_good(py: Python<'_>) {
    py.detach(|| lock().is_ending = true);
}

fn lock() -> MutexGuard<'static, Tables> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}
