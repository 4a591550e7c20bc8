//! [`stored_scan`]: reads a table of the store.

use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_plan::ExecutionPlan;
use kohort_store::{ScanRequest, Store, StoreError};

use super::Reading;
use crate::scan::SourceScan;

/// Reads a table of the store, in a thread of its own. `number` is the position of the row numbers among the columns, if they
/// are wanted.
pub(super) fn stored_scan(
    store: Store,
    table: String,
    request: ScanRequest,
    schema: SchemaRef,
    number: Option<usize>,
) -> Arc<dyn ExecutionPlan> {
    let shown = format!("table={table}, conditions={}", request.conditions.len());
    SourceScan::of("StoredScan", shown, Arc::clone(&schema), move |stream, context| {
        let reading = match context.session_config().get_extension::<Reading>() {
            Some(reading) => reading.as_ref().clone(),
            None => Reading::Snapshot(store.read().map_err(external)?),
        };
        let (sender, table, request, schema) = (stream.tx(), table.clone(), request.clone(), Arc::clone(&schema));
        stream.spawn_blocking(move || {
            for batch in reading.state().scan(&table, &request).map_err(external)? {
                let batch = batch.map_err(external).and_then(|batch| as_projected(&batch, &schema, number));
                // The receiver may be gone.
                if sender.blocking_send(batch).is_err() {
                    break;
                }
            }
            Ok(())
        });
        Ok(())
    })
}

/// A batch of the store with its columns in the wanted order. The store puts the row numbers first.
fn as_projected(batch: &RecordBatch, schema: &SchemaRef, number: Option<usize>) -> Result<RecordBatch> {
    let mut columns = batch.columns().to_vec();
    if let Some(place) = number {
        let numbers = columns.remove(0);
        columns.insert(place, numbers);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

pub(super) fn external(error: StoreError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
