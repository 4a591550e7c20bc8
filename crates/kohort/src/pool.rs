//! Work on rayon's own threads.

/// Runs work on a thread of rayon's pool.
///
/// If another thread runs a parallel iterator, that thread has to wake the pool and sleep until the pool has finished. A job on a
/// small table runs thousands of iterators, and most take less time than waking and sleeping do.
pub(crate) fn on_pool<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    rayon::scope(|_| work())
}
