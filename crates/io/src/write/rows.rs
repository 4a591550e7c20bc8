//! [`write_rows`]: a verified block of an A-view as a record batch for the readers of the view.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, StringArray, UInt32Array, new_null_array};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::nullif::nullif;
use arrow_select::take::take;
use kohort_model::{BlockCells, NULL, Texts};
use kohort_verify::{BlockOf, Verified};
use rayon::prelude::*;

use crate::read::{PrivateRows, columns_together};

/// A verified block of an A-view with the rows that it shows.
pub type VerifiedRows = Verified<BlockOf<Arc<PrivateRows>>>;

/// Some rows of a verified block, with the columns at these positions. Cells that are released unchanged come from the
/// private rows that the block was verified with, and a caller can't name other rows:
///
/// ```compile_fail,E0061
/// use arrow_array::RecordBatch;
/// use kohort_io::{VerifiedRows, write_rows};
///
/// fn mix(verified: &VerifiedRows, others: &RecordBatch) {
///     let _ = write_rows(verified, others, 0..1, &[0], others.schema());
/// }
/// ```
///
/// Nor can a caller take a verified block and exchange the private rows that it was verified with:
///
/// ```compile_fail,E0451
/// use std::sync::Arc;
///
/// use kohort_io::{PrivateRows, VerifiedRows};
/// use kohort_verify::BlockOf;
///
/// fn exchange(verified: VerifiedRows, others: Arc<PrivateRows>) -> BlockOf<Arc<PrivateRows>> {
///     BlockOf { private: others, ..verified.into_inner() }
/// }
/// ```
///
/// # Errors
/// If the schema is another than the block's: a fault of the caller.
pub fn write_rows(
    verified: &VerifiedRows,
    rows: Range<usize>,
    positions: &[usize],
    schema: SchemaRef,
) -> Result<RecordBatch, ArrowError> {
    let (block, private) = (verified.get().block(), verified.get().private().batch());
    let n_rows = rows.len();
    let sources = UInt32Array::from(block.rows[rows.clone()].to_vec());
    let arrays: Result<Vec<ArrayRef>, ArrowError> = positions
        .par_iter()
        .with_min_len(columns_together(n_rows, positions.len()))
        .map(|&position| match &block.columns[position] {
            BlockCells::Labels { labels, ids } => Ok(Arc::new(labels_array(labels, &ids[rows.clone()])) as ArrayRef),
            BlockCells::Own { hidden } => {
                let hidden = &hidden[rows.clone()];
                if hidden.iter().all(|&hidden| hidden) {
                    return Ok(new_null_array(private.column(position).data_type(), n_rows));
                }
                let own = take(private.column(position), &sources, None)?;
                if hidden.contains(&true) { nullif(&own, &BooleanArray::from(hidden.to_vec())) } else { Ok(own) }
            }
        })
        .collect();
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(n_rows));
    RecordBatch::try_new_with_options(schema, arrays?, &options)
}

fn labels_array(labels: &Texts, ids: &[u32]) -> StringArray {
    let length = |id: u32| if id == NULL { 0 } else { labels.get(id).len() };
    let mut bytes = Vec::with_capacity(ids.iter().map(|&id| length(id)).sum());
    let mut ends = Vec::with_capacity(ids.len() + 1);
    ends.push(0);
    for &id in ids {
        if id != NULL {
            bytes.extend_from_slice(labels.get(id).as_bytes());
        }
        ends.push(i32::try_from(bytes.len()).expect("batches are far below two gigabytes"));
    }
    let nulls = NullBuffer::new(BooleanBuffer::collect_bool(ids.len(), |row| ids[row] != NULL));
    StringArray::new(OffsetBuffer::new(ScalarBuffer::from(ends)), bytes.into(), Some(nulls))
}
