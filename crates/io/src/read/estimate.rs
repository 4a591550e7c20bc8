//! [`estimated_rows`]: about how many rows a table file has, by its first rows and its size.

use std::sync::atomic::{AtomicU64, Ordering};

use kohort_model::Progress;
use kohort_model::spec::TableSpec;

use super::Sources;
use super::open::OpenTable;
use super::streamed::Pieces;

/// Rows from which the others are estimated.
const ENOUGH: u64 = 1 << 14;

/// About how many rows the table of a spec has. Little of the file is read. `None` for standard input, for tables in memory, and
/// for files that can't be read, of which the job itself tells why.
pub fn estimated_rows(sources: Sources<'_>, table_spec: &TableSpec) -> Option<u64> {
    let place = sources.place(&table_spec.file);
    let n_bytes_of_file = std::fs::metadata(&place).ok().filter(std::fs::Metadata::is_file)?.len();
    let share = Share::default();
    let (open, _) = sources.open(&table_spec.file, &table_spec.csv, &share).ok()?;
    if matches!(open, OpenTable::Lazy(_)) {
        return None;
    }
    let every: Vec<usize> = (0..open.names().len()).collect();
    let (mut n_rows, mut n_bytes) = (0, 0);
    for batch in Pieces::of(open, &every).ok()? {
        let batch = batch.ok()?;
        n_rows += batch.num_rows() as u64;
        n_bytes += batch.get_array_memory_size() as u64;
        if n_rows >= ENOUGH {
            // A format that does not tell how much of the file was read has about the same size in memory.
            let (done, total) = match (share.done.load(Ordering::Relaxed), share.total.load(Ordering::Relaxed)) {
                (_, 0) => (n_bytes, n_bytes_of_file),
                read => read,
            };
            let factor = total as f64 / done.max(1) as f64;
            return Some((n_rows as f64 * factor.max(1.0)) as u64);
        }
    }
    Some(n_rows)
}

/// How much of a file was read.
#[derive(Default)]
struct Share {
    done: AtomicU64,
    total: AtomicU64,
}

impl Progress for Share {
    fn begin(&self, _stage: &str, total: u64) {
        self.total.store(total, Ordering::Relaxed);
    }

    fn advance(&self, steps: u64) {
        self.done.fetch_add(steps, Ordering::Relaxed);
    }
}
