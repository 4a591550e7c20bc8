//! [`split`]: what of a plan runs in a worker, and the leaves that stay in the server. [`is_bounded`]: plans that need no
//! worker.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::work_table::WorkTableExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, displayable};

use super::remote::{Leaf, RemoteExec};
use crate::view::AnonymizeExec;

/// A plan in two processes.
pub(super) struct Split {
    /// Runs in the worker.
    pub(super) plan: Arc<dyn ExecutionPlan>,
    /// Run in the server, by the numbers that the plan asks for.
    pub(super) leaves: Vec<Arc<dyn ExecutionPlan>>,
}

/// Puts a [`RemoteExec`] in place of each leaf that reads something.
pub(super) fn split(plan: Arc<dyn ExecutionPlan>) -> Result<Split> {
    let mut leaves = Vec::new();
    let split = plan.transform_up(|node| {
        if !node.children().is_empty() || reads_nothing(&node) {
            return Ok(Transformed::no(node));
        }
        let leaf = Leaf {
            number: leaves.len(),
            n_partitions: node.output_partitioning().partition_count(),
            schema: node.schema(),
            shown: displayable(node.as_ref()).one_line().to_string().trim_end().to_owned(),
        };
        let conditions = node.downcast_ref::<AnonymizeExec>().map(|view| view.pushed_down().to_vec());
        leaves.push(node);
        Ok(Transformed::yes(Arc::new(RemoteExec::new(leaf, conditions.unwrap_or_default(), None)) as _))
    })?;
    Ok(Split { plan: split.data, leaves })
}

/// Leaves whose rows are made from the plan alone. Those of `generate_series` are not among them: what is sent of it forgets
/// which columns are wanted.
fn reads_nothing(leaf: &Arc<dyn ExecutionPlan>) -> bool {
    leaf.is::<PlaceholderRowExec>() || leaf.is::<EmptyExec>() || leaf.is::<WorkTableExec>()
}

/// Whether a plan hands rows of one leaf through, batch by batch: it computes nothing, so it holds no more than the leaf
/// does, and stops between two batches.
pub(super) fn is_bounded(plan: &Arc<dyn ExecutionPlan>) -> bool {
    match plan.children()[..] {
        [] => !plan.is::<WorkTableExec>(),
        [input] => {
            let passes_on = match plan.downcast_ref::<ProjectionExec>() {
                Some(projection) => projection.expr().iter().all(|part| {
                    // A literal stands beside each row, so there must be one row only.
                    part.expr.is::<Column>() || (part.expr.is::<Literal>() && input.is::<PlaceholderRowExec>())
                }),
                None => {
                    plan.is::<GlobalLimitExec>()
                        || plan.is::<LocalLimitExec>()
                        || plan.is::<CoalescePartitionsExec>()
                        || plan.is::<CooperativeExec>()
                }
            };
            passes_on && is_bounded(input)
        }
        _ => false,
    }
}
