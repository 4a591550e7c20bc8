//! [`PairsExec`]: joins rows whose cells could be equal. [`FindPairs`] is the rule that puts it in the place of a join that
//! compares every row with every row.
//!
//! ```text
//! NestedLoopJoinExec: join_type=Inner, filter=a AVLIKE b AND c AVLIKE d AND n < 3
//!   =>  FilterExec: n < 3
//!         PairsExec: a AVLIKE b, c AVLIKE d
//! ```
//!
//! # Guarantee
//! The same rows in the same partitions.
//! # Cost
//! The left side is in memory. What rows show is compared once, see [`tuples`]; after that a pair of rows costs the copy
//! of its cells, and nothing at all if no cell is wanted, as in `count(*)`.

mod tuples;

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringArray, UInt32Array};
use datafusion::arrow::compute::{cast, concat_batches, take};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinSide, JoinType, internal_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    EquivalenceProperties, PhysicalExpr, ScalarFunctionExpr, conjunction, split_conjunction,
};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties, InputDistributionRequirements,
    Partitioning, PlanProperties, ReplaceChildrenOptions,
};
use futures::TryStreamExt;
use kohort_model::Hierarchy;
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

use crate::meaning::{Carried, CouldMatch, MeaningError};
use tuples::{TupleLookup, Tuples};

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
            let pairs = node.downcast_ref::<NestedLoopJoinExec>().map(instead_of).transpose()?.flatten();
            Ok(match pairs {
                Some(pairs) => Transformed::yes(pairs),
                None => Transformed::no(node),
            })
        })?;
        Ok(replaced.data)
    }
}

/// The operators that do the same as a join; `None` if the join does not compare labels for equality.
fn instead_of(join: &NestedLoopJoinExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(filter) = join.filter().filter(|_| *join.join_type() == JoinType::Inner) else { return Ok(None) };
    let (mut conditions, mut others) = (Vec::new(), Vec::new());
    for part in split_conjunction(filter.expression()) {
        match PairCondition::of(part, filter) {
            Some(condition) => conditions.push(condition),
            None => others.push(over_both_sides(part, filter, join)?),
        }
    }
    if conditions.is_empty() {
        return Ok(None);
    }
    let fields = fields_of_both(join.left(), join.right());
    let all = || (0..fields.len()).collect::<Vec<usize>>();
    let wanted = join.projection().as_ref().map_or_else(all, |places| places.to_vec());
    let mut pairs = PairsExec {
        left: Arc::clone(join.left()),
        right: Arc::clone(join.right()),
        conditions,
        projection: wanted.clone(),
        properties: Arc::clone(join.properties()),
        found: Arc::default(),
        metrics: ExecutionPlanMetricsSet::new(),
    };
    if others.is_empty() {
        return Ok(Some(Arc::new(pairs)));
    }
    pairs.projection = all();
    pairs.properties = Arc::new(properties_of(fields.clone(), join.right()));
    let filtered = Arc::new(FilterExec::try_new(conjunction(others), Arc::new(pairs))?);
    let kept = wanted.iter().map(|&place| {
        let name = fields[place].name();
        (Arc::new(Column::new(name, place)) as Arc<dyn PhysicalExpr>, name.clone())
    });
    Ok(Some(Arc::new(ProjectionExec::try_new(kept.collect::<Vec<_>>(), filtered)?)))
}

/// A part of a join's filter as a condition over the columns of both sides.
fn over_both_sides(
    part: &Arc<dyn PhysicalExpr>,
    filter: &JoinFilter,
    join: &NestedLoopJoinExec,
) -> Result<Arc<dyn PhysicalExpr>> {
    let n_left = join.left().schema().fields().len();
    let moved = Arc::clone(part).transform_up(|node| {
        let Some(column) = node.downcast_ref::<Column>() else { return Ok(Transformed::no(node)) };
        let Some(found) = filter.column_indices().get(column.index()) else {
            return internal_err!("a filter of a join names a column that it does not have");
        };
        let place = match found.side {
            JoinSide::Left => found.index,
            JoinSide::Right => n_left + found.index,
            JoinSide::None => return internal_err!("a filter of a join names a column of neither side"),
        };
        Ok(Transformed::yes(Arc::new(Column::new(column.name(), place)) as Arc<dyn PhysicalExpr>))
    });
    moved.data()
}

fn fields_of_both(left: &Arc<dyn ExecutionPlan>, right: &Arc<dyn ExecutionPlan>) -> Vec<Arc<Field>> {
    left.schema().fields().iter().chain(right.schema().fields()).cloned().collect()
}

/// The properties of an operator with these columns and the partitions of the right side.
fn properties_of(fields: Vec<Arc<Field>>, right: &Arc<dyn ExecutionPlan>) -> PlanProperties {
    PlanProperties::new(
        EquivalenceProperties::new(Arc::new(Schema::new(fields))),
        Partitioning::UnknownPartitioning(right.output_partitioning().partition_count()),
        EmissionType::Incremental,
        Boundedness::Bounded,
    )
}

/// Joins rows whose cells could be equal.
pub struct PairsExec {
    left: Arc<dyn ExecutionPlan>,
    right: Arc<dyn ExecutionPlan>,
    /// All of them must hold.
    conditions: Vec<PairCondition>,
    /// Positions of the output columns among the columns of both sides.
    projection: Vec<usize>,
    /// The properties of the join that it replaces.
    properties: Arc<PlanProperties>,
    found: Arc<OnceCell<Build>>,
    metrics: ExecutionPlanMetricsSet,
}

/// Two columns that are compared, and the function that compares them.
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
    tuples: Tuples,
    _memory: MemoryReservation,
}

impl PairsExec {
    /// What another process needs to execute it, beside its inputs; `None` if a function is not one of labels.
    pub fn carried(&self, hierarchies: &mut Vec<Arc<Hierarchy>>) -> Option<CarriedPairs> {
        let mut conditions = Vec::with_capacity(self.conditions.len());
        for PairCondition { function, left, right, is_left_first } in &self.conditions {
            let function = Carried::of(function, hierarchies)?;
            conditions.push(CarriedCondition { function, left: *left, right: *right, is_left_first: *is_left_first });
        }
        Some(CarriedPairs { conditions, projection: self.projection.clone() })
    }

    /// The operator that was carried; `None` if it was not written by [`PairsExec::carried`].
    pub fn of(
        carried: CarriedPairs,
        left: Arc<dyn ExecutionPlan>,
        right: Arc<dyn ExecutionPlan>,
        hierarchies: &[Arc<Hierarchy>],
    ) -> Option<PairsExec> {
        let CarriedPairs { conditions, projection } = carried;
        let all = fields_of_both(&left, &right);
        let fields = projection.iter().map(|&place| all.get(place).cloned()).collect::<Option<Vec<_>>>()?;
        let condition = |carried: CarriedCondition| {
            let CarriedCondition { function, left, right, is_left_first } = carried;
            Some(PairCondition { function: Arc::new(function.function(hierarchies)?), left, right, is_left_first })
        };
        let conditions = conditions.into_iter().map(condition).collect::<Option<Vec<_>>>()?;
        let (n_left, n_right) = (left.schema().fields().len(), right.schema().fields().len());
        let is_there = |condition: &PairCondition| condition.left < n_left && condition.right < n_right;
        if conditions.is_empty() || !conditions.iter().all(is_there) {
            return None;
        }
        let properties = Arc::new(properties_of(fields, &right));
        let (found, metrics) = (Arc::default(), ExecutionPlanMetricsSet::new());
        Some(PairsExec { left, right, conditions, projection, properties, found, metrics })
    }
}

/// A [`PairsExec`] without its inputs.
#[derive(Serialize, Deserialize)]
pub struct CarriedPairs {
    conditions: Vec<CarriedCondition>,
    projection: Vec<usize>,
}

/// A [`PairCondition`] with a function that can be sent.
#[derive(Serialize, Deserialize)]
struct CarriedCondition {
    function: Carried,
    left: usize,
    right: usize,
    is_left_first: bool,
}

impl fmt::Debug for PairsExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PairsExec")
    }
}

impl DisplayAs for PairsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (left, right) = (self.left.schema(), self.right.schema());
        f.write_str("PairsExec: ")?;
        for (place, condition) in self.conditions.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            let (left, right) = (left.field(condition.left).name(), right.field(condition.right).name());
            write!(f, "{comma}{left} AVLIKE {right}")?;
        }
        Ok(())
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
            conditions: self.conditions.clone(),
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
        let (left, found, conditions) = (Arc::clone(&self.left), Arc::clone(&self.found), self.conditions.clone());
        let schema = self.schema();
        let memory = MemoryConsumer::new("PairsExec").register(context.memory_pool());
        let finding = Finding {
            found: Arc::clone(&found),
            right: self.right.execute(partition, Arc::clone(&context))?,
            compared: conditions.iter().map(|condition| condition.right).collect(),
            lookup: TupleLookup::new(conditions.len(), memory),
            batch: None,
            projection: self.projection.clone(),
            schema: Arc::clone(&schema),
            enough: context.session_config().batch_size(),
            metrics: BaselineMetrics::new(&self.metrics, partition),
        };
        let pairs = async move {
            found.get_or_try_init(|| build(left.as_ref(), &conditions, context)).await?;
            Ok::<_, DataFusionError>(futures::stream::try_unfold(finding, Finding::step))
        };
        let pairs = futures::stream::once(pairs).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, pairs)))
    }
}

/// Reads the left side.
async fn build(left: &dyn ExecutionPlan, conditions: &[PairCondition], context: Arc<TaskContext>) -> Result<Build> {
    let memory = MemoryConsumer::new("PairsExec").register(context.memory_pool());
    let schema = left.schema();
    let batches: Vec<RecordBatch> = left.execute(0, context)?.try_collect().await?;
    let rows = concat_batches(&schema, &batches)?;
    drop(batches);
    // The spans of cells are about as large again as the cells, and each row has some numbers per condition.
    let numbers = rows.num_rows() * 4 * size_of::<u64>() * conditions.len();
    memory.try_resize(2 * rows.get_array_memory_size() + numbers)?;
    let mut compared = Vec::with_capacity(conditions.len());
    for PairCondition { function, left, is_left_first, .. } in conditions {
        let function = function.inner().downcast_ref::<CouldMatch>();
        let Some((first, second)) = function.map(CouldMatch::sides) else { return internal_err!("not our function") };
        let (kind, asked) = if *is_left_first { (first, second) } else { (second, first) };
        compared.push((*left, kind.clone(), asked.clone()));
    }
    Ok(Build { tuples: Tuples::new(rows, compared)?, _memory: memory })
}

impl PairCondition {
    /// The condition that a part of a join's filter is; `None` if it compares other things than labels of both sides.
    fn of(part: &Arc<dyn PhysicalExpr>, filter: &JoinFilter) -> Option<PairCondition> {
        let call = part.downcast_ref::<ScalarFunctionExpr>()?;
        call.fun().inner().downcast_ref::<CouldMatch>().filter(|function| function.is_equality())?;
        let [first, second] = call.args() else { return None };
        let place = |argument: &Arc<dyn PhysicalExpr>| {
            let column = argument.downcast_ref::<Column>()?;
            filter.column_indices().get(column.index()).map(|found| (found.side, found.index))
        };
        let function = Arc::new(call.fun().clone());
        match (place(first)?, place(second)?) {
            ((JoinSide::Left, left), (JoinSide::Right, right)) => {
                Some(PairCondition { function, left, right, is_left_first: true })
            }
            ((JoinSide::Right, right), (JoinSide::Left, left)) => {
                Some(PairCondition { function, left, right, is_left_first: false })
            }
            _ => None,
        }
    }
}

/// The rows of the right side while they are looked up in the left side.
struct Finding {
    found: Arc<OnceCell<Build>>,
    right: SendableRecordBatchStream,
    /// Positions of the compared columns of the right side.
    compared: Vec<usize>,
    lookup: TupleLookup,
    batch: Option<RightBatch>,
    projection: Vec<usize>,
    schema: SchemaRef,
    enough: usize,
    metrics: BaselineMetrics,
}

/// A batch of the right side, and how far it was joined.
struct RightBatch {
    rows: RecordBatch,
    /// The cells of the compared columns.
    cells: Vec<StringArray>,
    /// The first row that was not joined with all of its rows yet.
    next: usize,
    /// How many of these it was joined with.
    n_joined: usize,
    /// The first tuple, and the first row of it, that it was not joined with.
    at: (usize, usize),
}

impl RightBatch {
    fn leave_row(&mut self) {
        self.next += 1;
        self.n_joined = 0;
        self.at = (0, 0);
    }
}

impl Finding {
    /// The next pairs, `None` after the last.
    async fn step(mut self) -> Result<Option<(RecordBatch, Finding)>> {
        loop {
            let Some(mut batch) = self.batch.take() else {
                let Some(rows) = self.right.try_next().await? else { return Ok(None) };
                let cells = self.compared.iter().map(|&column| texts(&rows, column)).collect::<Result<_>>()?;
                self.batch = Some(RightBatch { rows, cells, next: 0, n_joined: 0, at: (0, 0) });
                continue;
            };
            let elapsed = self.metrics.elapsed_compute().clone();
            let timer = elapsed.timer();
            let found = Arc::clone(&self.found);
            let Some(Build { tuples, .. }) = found.get() else { return internal_err!("the left side is read first") };
            let pairs = match self.projection.is_empty() {
                true => self.count(tuples, &mut batch)?,
                false => self.pairs(tuples, &mut batch)?,
            };
            drop(timer);
            if batch.next < batch.rows.num_rows() {
                self.batch = Some(batch);
            }
            if pairs.num_rows() > 0 {
                self.metrics.record_output(pairs.num_rows());
                return Ok(Some((pairs, self)));
            }
        }
    }

    /// Looks up the next row of a batch.
    fn look_up(&mut self, tuples: &Tuples, batch: &RightBatch) -> Result<()> {
        let cells = batch.cells.iter().map(|cells| cells.is_valid(batch.next).then(|| cells.value(batch.next)));
        self.lookup.find(tuples, &cells.collect::<Vec<_>>())
    }

    /// The next pairs without any column.
    fn count(&mut self, tuples: &Tuples, batch: &mut RightBatch) -> Result<RecordBatch> {
        let mut n_pairs = 0;
        while batch.next < batch.rows.num_rows() && n_pairs < self.enough {
            self.look_up(tuples, batch)?;
            let n_more = (self.lookup.n_rows - batch.n_joined).min(self.enough - n_pairs);
            n_pairs += n_more;
            batch.n_joined += n_more;
            if batch.n_joined == self.lookup.n_rows {
                batch.leave_row();
            }
        }
        self.output(Vec::new(), n_pairs)
    }

    /// The next pairs.
    fn pairs(&mut self, tuples: &Tuples, batch: &mut RightBatch) -> Result<RecordBatch> {
        let (mut lefts, mut rights): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        while batch.next < batch.rows.num_rows() && lefts.len() < self.enough {
            self.look_up(tuples, batch)?;
            let (mut tuple, mut row) = batch.at;
            while let Some(&found) = self.lookup.tuples.get(tuple).filter(|_| lefts.len() < self.enough) {
                let rows = tuples.rows_of(found);
                let end = rows.len().min(row + self.enough - lefts.len());
                lefts.extend_from_slice(&rows[row..end]);
                (tuple, row) = if end == rows.len() { (tuple + 1, 0) } else { (tuple, end) };
            }
            rights.resize(lefts.len(), batch.next as u32);
            batch.at = (tuple, row);
            if tuple == self.lookup.tuples.len() {
                batch.leave_row();
            }
        }
        if lefts.is_empty() {
            return self.output(Vec::new(), 0);
        }
        let n_pairs = lefts.len();
        let (lefts, rights) = (UInt32Array::from(lefts), UInt32Array::from(rights));
        let n_left = tuples.rows.num_columns();
        let column = |&place: &usize| match place.checked_sub(n_left) {
            None => take(tuples.rows.column(place), &lefts, None),
            Some(place) => take(batch.rows.column(place), &rights, None),
        };
        let columns = self.projection.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        self.output(columns, n_pairs)
    }

    fn output(&self, columns: Vec<ArrayRef>, n_rows: usize) -> Result<RecordBatch> {
        let schema = Arc::clone(&self.schema);
        if n_rows == 0 {
            return Ok(RecordBatch::new_empty(schema));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(n_rows));
        Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
    }
}

/// A column's cells as texts.
fn texts(rows: &RecordBatch, column: usize) -> Result<StringArray> {
    Ok(cast(rows.column(column), &DataType::Utf8)?.as_string::<i32>().clone())
}

fn external(problem: MeaningError) -> DataFusionError {
    DataFusionError::External(Box::new(problem))
}
