//! [`count_in_parts`]: counts a table that is larger than memory. Rows wait on the disk, encrypted, in parts that fit into memory.
//!
//! Rows with the same cells in the quasi columns go to the same part. So every class is counted at once, and the counts of all parts
//! are those of the table.

mod compare;

use std::path::Path;

use kohort_io::{CellStore, CountedTable, NumberedRows, Spill, parts_of};
use kohort_model::Progress;
use kohort_verify::{PartsCounter, Violations};

use crate::error::Error;
use crate::memory::Memory;
pub(crate) use compare::{BothTables, ComparedInParts, compare_in_parts};

/// Counts all rows of a table. `folder` is where they wait.
pub(crate) fn count_in_parts(
    counted: &mut CountedTable,
    counter: &mut PartsCounter,
    quasi: &[usize],
    memory: Memory,
    folder: &Path,
    progress: &dyn Progress,
) -> Result<Result<(), Violations>, Error> {
    if counted.n_rows >= u64::from(u32::MAX) {
        return Err(Error::input("a table of more than 4294967294 rows can't be counted", "count parts of it"));
    }
    // Each row has its number as one more column, so that messages can name it.
    let n_columns = counted.table.columns.len() + 1;
    let n_parts = counted.n_rows.div_ceil(memory.rows_of_part(n_columns)).max(1);
    let spill = Spill::below(folder, counted.n_rows.saturating_mul(4 * n_columns as u64).saturating_mul(9) / 8)?;
    let mut store = CellStore::new(&spill, n_parts as usize, n_columns, memory.waiting_rows(n_columns));
    let mut first = 0;
    counted.rows.for_each_piece(progress, |rows: &NumberedRows| -> Result<(), Error> {
        let n_rows = rows.first().map_or(0, Vec::len) as u32;
        let mut with_number = rows.to_vec();
        with_number.push((first..first + n_rows).collect());
        first += n_rows;
        Ok(store.add(&with_number, &parts_of(rows, quasi, n_parts))?)
    })?;
    store.flush()?;
    progress.begin("counting", counted.n_rows);
    for part in 0..n_parts as usize {
        if progress.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let n_rows = store.n_rows(part);
        if n_rows == 0 {
            continue;
        }
        memory.check_part(n_rows, n_columns)?;
        let mut ids = store.rows(&[part], n_columns)?;
        let row_numbers = ids.pop().unwrap_or_default();
        let rows = counted.with_rows(ids);
        if let Err(violations) = counter.count(&rows, &row_numbers, &counted.counts) {
            return Ok(Err(violations));
        }
        store.remove(&[part])?;
        progress.advance(n_rows);
    }
    Ok(Ok(()))
}
