//! [`MeterWindows`]: window functions count towards the memory that queries may take.
//!
//! DataFusion's window operators keep the rows of a partition, and a value per row for each function, without asking the memory
//! pool. A process that the system gives no memory ends, for everybody. So the rows that flow into a window operator are
//! counted on their way, and a query that would need too much fails instead.
//!
//! # Guarantee
//! the same rows, in the same partitions and order
//! # Cost
//! All rows count that went in, including those that a running function has already let go of.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::config::ConfigOptions;
use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use futures::StreamExt;

/// Bytes that a window function takes per row: the value itself, and its place in the finished column.
const PER_ROW: usize = 128;

/// The rule that puts a [`MeterExec`] below each window operator.
#[derive(Debug, Default)]
pub(crate) struct MeterWindows;

impl PhysicalOptimizerRule for MeterWindows {
    fn name(&self) -> &str {
        "meter_windows"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let metered = plan.transform_up(|node| {
            let unbounded = node.downcast_ref::<WindowAggExec>().map(|window| window.window_expr().len());
            let bounded = node.downcast_ref::<BoundedWindowAggExec>().map(|window| window.window_expr().len());
            let Some(n_functions) = unbounded.or(bounded) else { return Ok(Transformed::no(node)) };
            let inputs = node.children().into_iter().map(|input| {
                let properties = Arc::clone(input.properties());
                Arc::new(MeterExec { input: Arc::clone(input), n_functions, properties }) as Arc<dyn ExecutionPlan>
            });
            let inputs = inputs.collect();
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            Ok(Transformed::yes(node.replace_children(inputs, options)?))
        })?;
        Ok(metered.data)
    }
}

/// Counts the rows that go to a window operator.
struct MeterExec {
    input: Arc<dyn ExecutionPlan>,
    n_functions: usize,
    /// The properties of the input.
    properties: Arc<PlanProperties>,
}

impl fmt::Debug for MeterExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MeterExec")
    }
}

impl DisplayAs for MeterExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MeterExec")
    }
}

impl ExecutionPlan for MeterExec {
    fn name(&self) -> &'static str {
        "MeterExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = &children[..] else { return internal_err!("a meter has one input") };
        let (input, properties) = (Arc::clone(input), Arc::clone(input.properties()));
        Ok(Arc::new(MeterExec { input, n_functions: self.n_functions, properties }))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let memory = MemoryConsumer::new("windows").register(context.memory_pool());
        let per_row = PER_ROW * self.n_functions;
        let stream = self.input.execute(partition, context)?;
        let schema = stream.schema();
        let counted = stream.map(move |batch: Result<RecordBatch>| {
            let batch = batch?;
            memory.try_grow(batch.get_array_memory_size() + per_row * batch.num_rows())?;
            Ok(batch)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, counted)))
    }
}
