//! [`QueryMemory`]: what sorts, joins and groupings of all queries may take together.
//!
//! # Guarantee
//! A query that would need more ends, and the others go on. Nothing is written to temporary files instead: rows below a
//! view would lie there.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool, MemoryReservation};

/// Bytes that queries take, and the most they may.
#[derive(Debug)]
pub(super) struct QueryMemory {
    most: AtomicUsize,
    taken: AtomicUsize,
}

impl QueryMemory {
    pub(super) fn unlimited() -> QueryMemory {
        QueryMemory { most: AtomicUsize::new(usize::MAX), taken: AtomicUsize::new(0) }
    }

    pub(super) fn limit(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }
}

impl fmt::Display for QueryMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl MemoryPool for QueryMemory {
    fn name(&self) -> &str {
        "queries"
    }

    fn grow(&self, _reservation: &MemoryReservation, additional: usize) {
        self.taken.fetch_add(additional, Ordering::Relaxed);
    }

    fn shrink(&self, _reservation: &MemoryReservation, shrink: usize) {
        self.taken.fetch_sub(shrink, Ordering::Relaxed);
    }

    fn try_grow(&self, _reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let most = self.most.load(Ordering::Relaxed);
        let grown = |taken: usize| taken.checked_add(additional).filter(|taken| *taken <= most);
        match self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown) {
            Ok(_) => Ok(()),
            Err(_) => Err(DataFusionError::ResourcesExhausted(format!("queries may take {most} bytes together"))),
        }
    }

    fn reserved(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    fn memory_limit(&self) -> MemoryLimit {
        match self.most.load(Ordering::Relaxed) {
            usize::MAX => MemoryLimit::Infinite,
            most => MemoryLimit::Finite(most),
        }
    }
}
