//! [`AnonymizeExec`]: the operator that reads an A-view.
//!
//! It is a leaf to the plan around it and runs the view's own query in the owner's session, so that no rule, metric or
//! EXPLAIN of the reader's plan reaches what is below. Its one metric of its own, rows, counts rows that leave.
//!
//! # Guarantee
//! Rows leave only as a `Verified<Block>`. Errors from below are cut down to their kind: their messages may hold cells.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, StringArray};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::cast::as_boolean_array;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, ReplaceChildrenOptions, collect,
};
use futures::{StreamExt, TryStreamExt};
use kohort_io::write_rows;
use kohort_model::{Block, Role, Silent, Table};
use kohort_verify::Verified;

use super::assemble::{Chosen, Matching};
use super::build::{Sources, Trees, build};
use super::plan::Plan;
use super::{Reader, Version, ViewProblem};

/// Reads an A-view.
pub struct AnonymizeExec {
    job: Arc<Job>,
    schema: SchemaRef,
    /// Positions of the view's columns that are read.
    projection: Vec<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// What is read, and from where.
pub(super) struct Job {
    pub(super) version: Arc<Version>,
    pub(super) reader: Reader,
    pub(super) plan: Plan,
    /// The view's query.
    pub(super) query: Arc<dyn ExecutionPlan>,
    /// Where it runs.
    pub(super) owner: Arc<TaskContext>,
    /// What a row's own values must satisfy for its class to answer.
    pub(super) matching: Option<Comparison>,
    /// The quasi columns as text.
    pub(super) quasi_schema: SchemaRef,
}

/// A comparison of quasi columns as text.
pub(super) struct Comparison {
    pub(super) condition: Arc<dyn PhysicalExpr>,
    /// The columns it speaks of, bit by bit.
    pub(super) columns: u64,
}

impl AnonymizeExec {
    pub(super) fn new(job: Job, projection: Vec<usize>) -> Result<Self> {
        let schema = Arc::new(job.version.definition.schema().project(&projection)?);
        // Nothing is claimed of order, keys or distribution: labels have none of what the query below may promise.
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        let (job, properties) = (Arc::new(job), Arc::new(properties));
        Ok(AnonymizeExec { job, schema, projection, properties, metrics: ExecutionPlanMetricsSet::new() })
    }
}

impl fmt::Debug for AnonymizeExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnonymizeExec({})", self.job.version.definition.name)
    }
}

impl DisplayAs for AnonymizeExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Job { version, reader, plan, .. } = self.job.as_ref();
        let described = plan.describe(version.directory(reader.pair));
        write!(f, "AnonymizeExec: view={}, version={}, plan={described}", version.definition.name, version.number)
    }
}

impl ExecutionPlan for AnonymizeExec {
    fn name(&self) -> &'static str {
        "AnonymizeExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let (job, schema, projection) = (Arc::clone(&self.job), Arc::clone(&self.schema), self.projection.clone());
        let n_rows_per_batch = context.session_config().batch_size();
        let read = async move {
            let memory = MemoryConsumer::new("AnonymizeExec").register(context.memory_pool());
            let rows = job.fetch().await?;
            // Codes, cells and labels together are about as large again as the rows.
            memory.try_grow(2 * rows.get_array_memory_size())?;
            let elapsed = metrics.elapsed_compute().clone();
            let worker = Arc::clone(&job);
            let shown = tokio::task::spawn_blocking(move || {
                let _timer = elapsed.timer();
                let block = worker.block(&rows);
                block.map(|block| (rows, block))
            });
            let (rows, block) = shown.await.map_err(|_| interrupted(&job))?.map_err(external)?;
            let n_rows = block.as_ref().map_or(0, |block| block.get().rows.len());
            let batches = (0..n_rows).step_by(n_rows_per_batch).map(move |start| {
                let _held = &memory;
                let range = start..(start + n_rows_per_batch).min(n_rows);
                let Some(block) = &block else { unreachable!("without a block there are no rows") };
                metrics.record_output(range.len());
                Ok(write_rows(block, &rows, range, &projection, Arc::clone(&schema))?)
            });
            Ok::<_, DataFusionError>(futures::stream::iter(batches))
        };
        let stream = futures::stream::once(read).try_flatten().boxed();
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), stream)))
    }
}

impl Job {
    /// The private rows that are needed.
    pub(super) async fn fetch(&self) -> Result<RecordBatch> {
        let name = &self.version.definition.name;
        let batches = collect(Arc::clone(&self.query), Arc::clone(&self.owner)).await;
        let batches = batches.map_err(|error| external(ViewProblem::of_query(name, &error)))?;
        Ok(concat_batches(&self.query.schema(), &batches)?)
    }

    pub(super) fn block(&self, rows: &RecordBatch) -> Result<Option<Verified<Block>>, ViewProblem> {
        let matches = |table: &Table, places: &[u32]| self.matches(table, places);
        let matching = self.matching.as_ref().map(|comparison| Matching { columns: comparison.columns, matches: &matches });
        match &self.plan {
            Plan::SelectFirst { chosen, .. } => {
                let directory = self.version.directory(self.reader.pair);
                self.version.block(directory, rows, self.reader, chosen, matching)
            }
            Plan::AnonymizeFirst => {
                let built = self.rebuilt(rows)?;
                built.block(built.directory(self.reader.pair), rows, self.reader, &Chosen::All, matching)
            }
        }
    }

    /// The version made once more from these rows, which must give the same classes.
    fn rebuilt(&self, rows: &RecordBatch) -> Result<Version, ViewProblem> {
        let version = &self.version;
        let sources = Sources {
            definition: &version.definition,
            policies: version.policies.as_ref(),
            trees: Trees::Of(version),
            fingerprint: version.fingerprint.clone(),
            number: version.number,
        };
        let built = build(sources, rows, &Silent)?;
        if version.is_same_as(&built) { Ok(built) } else { Err(ViewProblem::Stale) }
    }

    /// Whether each of these rows satisfies the comparison by its own values.
    fn matches(&self, table: &Table, places: &[u32]) -> Result<Vec<bool>, ViewProblem> {
        let name = &self.version.definition.name;
        let quasi = self.version.definition.with_role(Role::Quasi);
        let own = |&position: &usize| {
            let column = &table.columns[position];
            Arc::new(places.iter().map(|&row| column.cell(row as usize)).collect::<StringArray>()) as _
        };
        let failed = |error: DataFusionError| ViewProblem::of_query(name, &error);
        let values = RecordBatch::try_new(Arc::clone(&self.quasi_schema), quasi.iter().map(own).collect())
            .map_err(|error| failed(error.into()))?;
        let Some(comparison) = &self.matching else { return Ok(vec![true; places.len()]) };
        let found = comparison.condition.evaluate(&values).and_then(|found| found.into_array(places.len())).map_err(failed)?;
        Ok(as_boolean_array(&found).map_err(failed)?.iter().map(|found| found == Some(true)).collect())
    }
}

fn interrupted(job: &Job) -> DataFusionError {
    let kind = "a fault of kohort stopped it";
    external(ViewProblem::Query { view: job.version.definition.name.clone(), kind })
}

pub(super) fn external(problem: ViewProblem) -> DataFusionError {
    DataFusionError::External(Box::new(problem))
}
