//! [`SourceScan`]: the operator that reads a table of the data folder or of a PostgreSQL server.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use crate::leaf::{methods_of_leaf, properties_of_leaf};

/// How many batches may wait for the operator above.
const WAITING_BATCHES: usize = 2;

/// Starts the task that sends the rows.
type Start = dyn Fn(&mut RecordBatchReceiverStreamBuilder, &TaskContext) -> Result<()> + Send + Sync;

/// Reads a table in a task of its own.
pub(crate) struct SourceScan {
    name: &'static str,
    /// The table and the conditions, as EXPLAIN shows them.
    shown: String,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    start: Box<Start>,
}

impl SourceScan {
    /// The operator of this name whose rows have this schema.
    pub(crate) fn of(
        name: &'static str,
        shown: String,
        schema: SchemaRef,
        start: impl Fn(&mut RecordBatchReceiverStreamBuilder, &TaskContext) -> Result<()> + Send + Sync + 'static,
    ) -> Arc<dyn ExecutionPlan> {
        let properties = properties_of_leaf(&schema, 1);
        Arc::new(SourceScan { name, shown, schema, properties, start: Box::new(start) })
    }
}

impl fmt::Debug for SourceScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.shown)
    }
}

impl DisplayAs for SourceScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.shown)
    }
}

impl ExecutionPlan for SourceScan {
    fn name(&self) -> &str {
        self.name
    }

    methods_of_leaf!();

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let mut builder = RecordBatchReceiverStreamBuilder::new(Arc::clone(&self.schema), WAITING_BATCHES);
        (self.start)(&mut builder, &context)?;
        Ok(builder.build())
    }
}
