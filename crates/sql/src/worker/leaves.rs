//! [`split`]: separates the part of a plan that runs in a worker from the leaves that stay in the server.
//! [`is_bounded`]: recognizes plans that need no worker.

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

/// A plan for two processes.
pub(super) struct Split {
    /// The part that runs in the worker.
    pub(super) plan: Arc<dyn ExecutionPlan>,
    /// The leaves that run in the server. The plan refers to them by number.
    pub(super) leaves: Vec<Arc<dyn ExecutionPlan>>,
}

/// Replaces each leaf that reads data by a [`RemoteExec`].
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

/// Whether a leaf makes its rows from the plan alone. `generate_series` does not count, because its encoding loses the
/// choice of columns.
fn reads_nothing(leaf: &Arc<dyn ExecutionPlan>) -> bool {
    leaf.is::<PlaceholderRowExec>() || leaf.is::<EmptyExec>() || leaf.is::<WorkTableExec>()
}

/// Whether a plan only passes on the rows of one leaf. Such a plan computes nothing, so it needs no more memory than
/// the leaf and can be stopped between two batches.
pub(super) fn is_bounded(plan: &Arc<dyn ExecutionPlan>) -> bool {
    match plan.children()[..] {
        [] => !plan.is::<WorkTableExec>(),
        [input] => {
            let passes_on = match plan.downcast_ref::<ProjectionExec>() {
                Some(projection) => projection.expr().iter().all(|part| {
                    // A literal is repeated for each row, so allow it only with a single row.
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
