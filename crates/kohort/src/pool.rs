//! Work on rayon's own threads.

/// Runs work on a thread of rayon's pool.
///
/// A parallel iterator that any other thread calls wakes the pool and sleeps until the pool is done. A job on a small table has
/// thousands of iterators that take less time than that.
pub(crate) fn on_pool<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    rayon::scope(|_| work())
}
