//! Code that all leaves of physical plans share: they have no inputs, and promise no order of their rows.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::{Partitioning, PlanProperties};

/// The properties of a leaf of which only the columns are known.
pub(crate) fn properties_of_leaf(schema: &SchemaRef, n_partitions: usize) -> Arc<PlanProperties> {
    Arc::new(PlanProperties::new(
        EquivalenceProperties::new(Arc::clone(schema)),
        Partitioning::UnknownPartitioning(n_partitions),
        EmissionType::Incremental,
        Boundedness::Bounded,
    ))
}

/// The methods of `ExecutionPlan` that are the same for every leaf with a field `properties`. The argument is the field with
/// the conditions that a leaf has from joins above, if it takes any.
macro_rules! methods_of_leaf {
    ($($conditions:ident)?) => {
        fn properties(&self) -> &Arc<datafusion::physical_plan::PlanProperties> {
            &self.properties
        }

        fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
            Vec::new()
        }

        fn replace_children(
            self: Arc<Self>,
            _: Vec<Arc<dyn ExecutionPlan>>,
            _: datafusion::physical_plan::ReplaceChildrenOptions,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            Ok(self)
        }

        fn apply_expressions(
            &self,
            _visit: &mut dyn FnMut(&Arc<dyn datafusion::physical_expr::PhysicalExpr>) -> Result<TreeNodeRecursion>,
        ) -> Result<TreeNodeRecursion> {
            $(for condition in &self.$conditions {
                if _visit(condition)? == TreeNodeRecursion::Stop {
                    return Ok(TreeNodeRecursion::Stop);
                }
            })?
            Ok(TreeNodeRecursion::Continue)
        }

        fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
            Ok(self)
        }
    };
}
pub(crate) use methods_of_leaf;
