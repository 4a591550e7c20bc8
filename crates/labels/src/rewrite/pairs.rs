//! [`PairsExec`]: finds all pairs of cells of two columns that could be equal. [`FindPairs`] is the rule that puts it in the
//! place of a join that compares every cell with every cell.
//!
//! ```text
//! NestedLoopJoinExec: join_type=Inner, filter=label AVLIKE value   =>   PairsExec: label AVLIKE value
//! ```
//!
//! # Guarantee
//! The same rows in the same partitions.
//! # Cost
//! The left side is in memory. Each cell of the right side is compared with a few cells of the left, see [`PairFinder`].

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, RecordBatch, StringArray, UInt32Array};
use datafusion::arrow::compute::{cast, concat_batches, take_record_batch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinSide, JoinType, internal_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties, InputDistributionRequirements,
    Partitioning, PlanProperties, ReplaceChildrenOptions,
};
use futures::TryStreamExt;
use kohort_model::Hierarchy;
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

use crate::meaning::{Carried, CouldMatch, MeaningError, PairFinder};

/// The rule that replaces nested loops over cells that could be equal.
#[derive(Debug, Default)]
pub struct FindPairs;

impl PhysicalOptimizerRule for FindPairs {
    fn name(&self) -> &str {
        "find_pairs"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let replaced = plan.transform_up(|node| {
            let pairs = node.downcast_ref::<NestedLoopJoinExec>().and_then(PairsExec::instead_of);
            Ok(match pairs {
                Some(pairs) => Transformed::yes(Arc::new(pairs) as _),
                None => Transformed::no(node),
            })
        })?;
        Ok(replaced.data)
    }
}

/// Joins rows whose cells could be equal.
pub struct PairsExec {
    left: Arc<dyn ExecutionPlan>,
    right: Arc<dyn ExecutionPlan>,
    condition: PairCondition,
    /// Positions of the output columns among the columns of both sides.
    projection: Vec<usize>,
    /// The properties of the join that it replaces.
    properties: Arc<PlanProperties>,
    found: Arc<OnceCell<Build>>,
    metrics: ExecutionPlanMetricsSet,
}

/// The columns that are compared, and the function that compares them.
#[derive(Clone)]
struct PairCondition {
    function: Arc<ScalarUDF>,
    left: usize,
    right: usize,
    /// Whether the left side's cells are the function's first argument.
    is_left_first: bool,
}

/// The left side, in memory.
struct Build {
    rows: RecordBatch,
    finder: PairFinder,
    _memory: MemoryReservation,
}

impl PairsExec {
    /// The operator that does the same as a join; `None` if the join does something else.
    fn instead_of(join: &NestedLoopJoinExec) -> Option<PairsExec> {
        let filter = join.filter().filter(|_| *join.join_type() == JoinType::Inner)?;
        let call = filter.expression().downcast_ref::<ScalarFunctionExpr>()?;
        call.fun().inner().downcast_ref::<CouldMatch>().filter(|function| function.is_equality())?;
        let [first, second] = call.args() else { return None };
        let place = |argument: &Arc<dyn PhysicalExpr>| {
            let column = argument.downcast_ref::<Column>()?;
            filter.column_indices().get(column.index()).map(|found| (found.side, found.index))
        };
        let function = Arc::new(call.fun().clone());
        let condition = match (place(first)?, place(second)?) {
            ((JoinSide::Left, left), (JoinSide::Right, right)) => {
                PairCondition { function, left, right, is_left_first: true }
            }
            ((JoinSide::Right, right), (JoinSide::Left, left)) => {
                PairCondition { function, left, right, is_left_first: false }
            }
            _ => return None,
        };
        let n_columns = join.left().schema().fields().len() + join.right().schema().fields().len();
        let projection = join.projection().as_ref().map_or_else(|| (0..n_columns).collect(), |places| places.to_vec());
        Some(PairsExec {
            left: Arc::clone(join.left()),
            right: Arc::clone(join.right()),
            condition,
            projection,
            properties: Arc::clone(join.properties()),
            found: Arc::default(),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// What another process needs to execute it, beside its inputs; `None` if the function is not one of labels.
    pub fn carried(&self, hierarchies: &mut Vec<Arc<Hierarchy>>) -> Option<CarriedPairs> {
        let PairCondition { function, left, right, is_left_first } = &self.condition;
        Some(CarriedPairs {
            function: Carried::of(function, hierarchies)?,
            left: *left,
            right: *right,
            is_left_first: *is_left_first,
            projection: self.projection.clone(),
        })
    }

    /// The operator that was carried; `None` if it was not written by [`PairsExec::carried`].
    pub fn of(
        carried: CarriedPairs,
        left: Arc<dyn ExecutionPlan>,
        right: Arc<dyn ExecutionPlan>,
        hierarchies: &[Arc<Hierarchy>],
    ) -> Option<PairsExec> {
        let CarriedPairs { function, left: left_column, right: right_column, is_left_first, projection } = carried;
        let function = Arc::new(function.function(hierarchies)?);
        let (left_schema, right_schema) = (left.schema(), right.schema());
        let all: Vec<&Arc<Field>> = left_schema.fields().iter().chain(right_schema.fields()).collect();
        let fields = projection.iter().map(|&place| all.get(place).copied().cloned()).collect::<Option<Vec<_>>>()?;
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::new(Schema::new(fields))),
            Partitioning::UnknownPartitioning(right.output_partitioning().partition_count()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Some(PairsExec {
            left,
            right,
            condition: PairCondition { function, left: left_column, right: right_column, is_left_first },
            projection,
            properties: Arc::new(properties),
            found: Arc::default(),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }
}

/// A [`PairsExec`] without its inputs.
#[derive(Serialize, Deserialize)]
pub struct CarriedPairs {
    function: Carried,
    left: usize,
    right: usize,
    is_left_first: bool,
    projection: Vec<usize>,
}

impl fmt::Debug for PairsExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PairsExec")
    }
}

impl DisplayAs for PairsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (left, right) = (self.left.schema(), self.right.schema());
        let (left, right) = (left.field(self.condition.left).name(), right.field(self.condition.right).name());
        write!(f, "PairsExec: {left} AVLIKE {right}")
    }
}

impl ExecutionPlan for PairsExec {
    fn name(&self) -> &'static str {
        "PairsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.left, &self.right]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition, Distribution::UnspecifiedDistribution])
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
        let [left, right] = &children[..] else { return internal_err!("pairs have two sides") };
        Ok(Arc::new(PairsExec {
            left: Arc::clone(left),
            right: Arc::clone(right),
            condition: self.condition.clone(),
            projection: self.projection.clone(),
            properties: Arc::clone(&self.properties),
            found: Arc::default(),
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(datafusion::physical_plan::ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (left, found, condition) = (Arc::clone(&self.left), Arc::clone(&self.found), self.condition.clone());
        let schema = self.schema();
        let finding = Finding {
            found: Arc::clone(&found),
            right: self.right.execute(partition, Arc::clone(&context))?,
            right_column: condition.right,
            batch: None,
            projection: self.projection.clone(),
            schema: Arc::clone(&schema),
            enough: context.session_config().batch_size(),
            metrics: BaselineMetrics::new(&self.metrics, partition),
        };
        let pairs = async move {
            found.get_or_try_init(|| condition.build(left.as_ref(), context)).await?;
            Ok::<_, DataFusionError>(futures::stream::try_unfold(finding, Finding::step))
        };
        let pairs = futures::stream::once(pairs).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, pairs)))
    }
}

impl PairCondition {
    /// Reads the left side.
    async fn build(&self, left: &dyn ExecutionPlan, context: Arc<TaskContext>) -> Result<Build> {
        let memory = MemoryConsumer::new("PairsExec").register(context.memory_pool());
        let schema = left.schema();
        let batches: Vec<RecordBatch> = left.execute(0, context)?.try_collect().await?;
        let rows = concat_batches(&schema, &batches)?;
        // Spans are about as large again as the cells.
        memory.try_resize(2 * rows.get_array_memory_size())?;
        let function = self.function.inner().downcast_ref::<CouldMatch>();
        let Some((first, second)) = function.map(CouldMatch::sides) else { return internal_err!("not our function") };
        let (kind, asked) = if self.is_left_first { (first, second) } else { (second, first) };
        let finder = PairFinder::new(texts(&rows, self.left)?, kind.clone(), asked.clone()).map_err(external)?;
        Ok(Build { rows, finder, _memory: memory })
    }
}

/// The rows of the right side while they are looked up in the left side.
struct Finding {
    found: Arc<OnceCell<Build>>,
    right: SendableRecordBatchStream,
    right_column: usize,
    /// The current batch, its cells, and the first row that was not looked up yet.
    batch: Option<(RecordBatch, StringArray, usize)>,
    projection: Vec<usize>,
    schema: SchemaRef,
    enough: usize,
    metrics: BaselineMetrics,
}

impl Finding {
    /// The next pairs, `None` after the last.
    async fn step(mut self) -> Result<Option<(RecordBatch, Finding)>> {
        loop {
            let Some((batch, cells, mut next)) = self.batch.take() else {
                let Some(batch) = self.right.try_next().await? else { return Ok(None) };
                let cells = texts(&batch, self.right_column)?;
                self.batch = Some((batch, cells, 0));
                continue;
            };
            let timer = self.metrics.elapsed_compute().timer();
            let Some(build) = self.found.get() else { return internal_err!("the left side is read first") };
            let (mut lefts, mut rights) = (Vec::new(), Vec::new());
            while next < batch.num_rows() && lefts.len() < self.enough {
                if cells.is_valid(next) {
                    let cell = cells.value(next);
                    build.finder.find(cell, &mut lefts).map_err(external)?;
                }
                rights.resize(lefts.len(), next as u32);
                next += 1;
            }
            let pairs = (!lefts.is_empty()).then(|| self.pairs(build, lefts, &batch, rights)).transpose()?;
            drop(timer);
            if next < batch.num_rows() {
                self.batch = Some((batch, cells, next));
            }
            if let Some(pairs) = pairs {
                self.metrics.record_output(pairs.num_rows());
                return Ok(Some((pairs, self)));
            }
        }
    }

    fn pairs(&self, build: &Build, lefts: Vec<u32>, right: &RecordBatch, rights: Vec<u32>) -> Result<RecordBatch> {
        let lefts = take_record_batch(&build.rows, &UInt32Array::from(lefts))?;
        let rights = take_record_batch(right, &UInt32Array::from(rights))?;
        let columns: Vec<_> = lefts.columns().iter().chain(rights.columns()).collect();
        let projected = self.projection.iter().map(|&place| Arc::clone(columns[place])).collect();
        let options = datafusion::arrow::array::RecordBatchOptions::new().with_row_count(Some(lefts.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), projected, &options)?)
    }
}

/// A column's cells as texts.
fn texts(rows: &RecordBatch, column: usize) -> Result<StringArray> {
    Ok(cast(rows.column(column), &DataType::Utf8)?.as_string::<i32>().clone())
}

fn external(problem: MeaningError) -> DataFusionError {
    DataFusionError::External(Box::new(problem))
}
