//! [`StoredScan`]: reads a table of the store.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use kohort_store::{ScanRequest, Store, StoreError};

use super::Reading;
use crate::leaf::{methods_of_leaf, properties_of_leaf};

/// Batches that may wait for the operator above.
const WAITING_BATCHES: usize = 2;

/// Reads a table of the store, in a thread of its own.
pub(super) struct StoredScan {
    store: Store,
    table: String,
    request: ScanRequest,
    schema: SchemaRef,
    /// Where among the columns the numbers of the rows are, if they are asked for.
    number: Option<usize>,
    properties: Arc<PlanProperties>,
}

impl StoredScan {
    pub(super) fn new(
        store: Store,
        table: String,
        request: ScanRequest,
        schema: SchemaRef,
        number: Option<usize>,
    ) -> StoredScan {
        let properties = properties_of_leaf(&schema, 1);
        StoredScan { store, table, request, schema, number, properties }
    }
}

impl fmt::Debug for StoredScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoredScan({})", self.table)
    }
}

impl DisplayAs for StoredScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_conditions = self.request.conditions.len();
        write!(f, "StoredScan: table={}, conditions={n_conditions}", self.table)
    }
}

impl ExecutionPlan for StoredScan {
    fn name(&self) -> &'static str {
        "StoredScan"
    }

    methods_of_leaf!();

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let reading = match context.session_config().get_extension::<Reading>() {
            Some(reading) => reading.as_ref().clone(),
            None => Reading::Snapshot(self.store.read().map_err(external)?),
        };
        let mut builder = RecordBatchReceiverStreamBuilder::new(Arc::clone(&self.schema), WAITING_BATCHES);
        let sender = builder.tx();
        let (table, request, schema) = (self.table.clone(), self.request.clone(), Arc::clone(&self.schema));
        let number = self.number;
        builder.spawn_blocking(move || {
            for batch in reading.state().scan(&table, &request).map_err(external)? {
                let batch = batch.map_err(external).and_then(|batch| as_projected(&batch, &schema, number));
                // Nobody may be listening any more.
                if sender.blocking_send(batch).is_err() {
                    break;
                }
            }
            Ok(())
        });
        Ok(builder.build())
    }
}

/// A batch of the store, in which numbers of rows come first, with its columns where they were asked for.
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
