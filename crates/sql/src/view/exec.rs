//! [`AnonymizeExec`]: the operator that reads an A-view.
//!
//! It is a leaf to the plan around it and runs the view's own query in the owner's session, so that no rule, metric or
//! EXPLAIN of the reader's plan reaches what is below. Its one metric of its own, rows, counts rows that leave.
//!
//! Where the view is partitioned in blocks, and all of it is read, rows come in the order of identifiers and classes
//! leave as soon as they are complete, so that about one block is in memory. Elsewhere everything that is needed is
//! read first.
//!
//! # Guarantee
//! Rows leave only as a `Verified<Block>`. Errors from below are cut down to their kind: their messages may hold cells.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, StringArray, UInt32Array};
use datafusion::arrow::compute::{concat_batches, take_record_batch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::cast::as_boolean_array;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, EmptyRecordBatchStream, ExecutionPlan, Partitioning, PlanProperties,
    ReplaceChildrenOptions, collect, execute_stream,
};
use futures::TryStreamExt;
use kohort_io::write_rows;
use kohort_model::{Block, Role, Silent, Table};
use kohort_verify::Verified;

use super::assemble::{Chosen, Matching, Shown};
use super::build::{Sources, Trees, build};
use super::plan::Plan;
use super::{Definition, Reader, Version, ViewProblem};
use crate::engine;
use crate::parser::{BlockSize, Purposes};

/// Small blocks are looked at some at a time.
const LEAST_ROWS_TOGETHER: usize = 16_384;

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
    /// Who reads.
    pub(super) role: engine::Role,
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
            EmissionType::Incremental,
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
        let output = Output {
            schema: Arc::clone(&self.schema),
            projection: self.projection.clone(),
            n_rows_per_batch: context.session_config().batch_size(),
            metrics: BaselineMetrics::new(&self.metrics, partition),
        };
        let memory = MemoryConsumer::new("AnonymizeExec").register(context.memory_pool());
        let reading = Reading { job: Arc::clone(&self.job), output, memory, input: None, waiting: Vec::new() };
        let batches = futures::stream::try_unfold(reading, Reading::step).map_ok(futures::stream::iter).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches)))
    }
}

/// How rows leave.
struct Output {
    schema: SchemaRef,
    projection: Vec<usize>,
    n_rows_per_batch: usize,
    metrics: BaselineMetrics,
}

impl Output {
    /// A block as batches.
    fn batches(&self, rows: &RecordBatch, block: Option<&Verified<Block>>) -> Result<Vec<Result<RecordBatch>>> {
        let Some(block) = block else { return Ok(Vec::new()) };
        let n_rows = block.get().rows.len();
        self.metrics.record_output(n_rows);
        let ranges =
            (0..n_rows).step_by(self.n_rows_per_batch).map(|start| start..(start + self.n_rows_per_batch).min(n_rows));
        let batch = |range| Ok(write_rows(block, rows, range, &self.projection, Arc::clone(&self.schema))?);
        Ok(ranges.map(batch).collect())
    }
}

/// A view that is being read: everything at once, or class by class as their rows come in.
struct Reading {
    job: Arc<Job>,
    output: Output,
    memory: MemoryReservation,
    /// The rows of the view's query; `None` before they are asked for.
    input: Option<SendableRecordBatchStream>,
    /// Private rows that wait for others of their classes.
    waiting: Vec<RecordBatch>,
}

impl Reading {
    /// The next batches that leave, `None` after the last.
    async fn step(mut self) -> Result<Option<(Vec<Result<RecordBatch>>, Reading)>> {
        let job = Arc::clone(&self.job);
        let failed = |error: DataFusionError| external(ViewProblem::of_query(&job.version.definition.name, &error));
        let mut input = match self.input.take() {
            Some(input) => input,
            None => execute_stream(Arc::clone(&job.query), Arc::clone(&job.owner)).map_err(failed)?,
        };
        let enough = job.n_rows_together();
        let mut n_rows: usize = self.waiting.iter().map(RecordBatch::num_rows).sum::<usize>();
        let enough = enough.saturating_add(n_rows);
        let mut is_over = false;
        while n_rows < enough && !is_over {
            match input.try_next().await.map_err(failed)? {
                Some(batch) => {
                    n_rows += batch.num_rows();
                    self.waiting.push(batch);
                }
                None => is_over = true,
            }
        }
        if n_rows == 0 {
            return Ok(None);
        }
        let rows = concat_batches(&job.query.schema(), &self.waiting)?;
        self.waiting.clear();
        // Codes, cells and labels together are about as large again as the rows.
        self.memory.try_resize(2 * rows.get_array_memory_size())?;
        let (worker, elapsed) = (Arc::clone(&job), self.output.metrics.elapsed_compute().clone());
        let shown = tokio::task::spawn_blocking(move || {
            let _timer = elapsed.timer();
            let shown = worker.show(&rows, if is_over { Rest::Nothing } else { Rest::MoreToCome });
            shown.map(|shown| (rows, shown))
        });
        let told = |problem: ViewProblem| external(problem.for_reader(job.role, &job.version.definition.name));
        let (rows, shown) = shown.await.map_err(|_| interrupted(&job))?.map_err(told)?;
        let batches = self.output.batches(&rows, shown.block.as_ref())?;
        if !shown.waiting.is_empty() {
            self.waiting.push(take_record_batch(&rows, &UInt32Array::from(shown.waiting))?);
        }
        if !is_over {
            self.input = Some(input);
        } else {
            // Nothing comes any more, and nothing waits: the next step ends the stream.
            self.input = Some(Box::pin(EmptyRecordBatchStream::new(job.query.schema())));
        }
        Ok(Some((batches, self)))
    }
}

/// Whether more rows of the view's query will come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    MoreToCome,
    Nothing,
}

impl Job {
    /// Everything that is needed at once.
    pub(super) async fn fetch(&self) -> Result<RecordBatch> {
        let name = &self.version.definition.name;
        let batches = collect(Arc::clone(&self.query), Arc::clone(&self.owner)).await;
        let batches = batches.map_err(|error| external(ViewProblem::of_query(name, &error)))?;
        Ok(concat_batches(&self.query.schema(), &batches)?)
    }

    /// Whether classes leave as their rows come in: blocks of few rows follow each other in the order of identifiers.
    pub(super) fn is_pipelined(definition: &Definition, plan: &Plan) -> bool {
        let reads_all = matches!(plan, Plan::SelectFirst { persons: None, .. });
        reads_all && definition.block != BlockSize::All && definition.purposes == Purposes::Together
    }

    /// How many rows are looked at together.
    fn n_rows_together(&self) -> usize {
        match self.version.definition.block {
            BlockSize::Rows(n_rows) if Job::is_pipelined(&self.version.definition, &self.plan) => {
                n_rows.get().max(LEAST_ROWS_TOGETHER)
            }
            _ => usize::MAX,
        }
    }

    /// What leaves of these rows. All that are needed are there, or more come and the classes they complete leave.
    fn show(&self, rows: &RecordBatch, rest: Rest) -> Result<Shown, ViewProblem> {
        let matches = |table: &Table, places: &[u32]| self.matches(table, places);
        let matching =
            self.matching.as_ref().map(|comparison| Matching { columns: comparison.columns, matches: &matches });
        match &self.plan {
            Plan::SelectFirst { chosen, .. } => {
                let directory = self.version.directory(self.reader.pair);
                let is_pipelined = Job::is_pipelined(&self.version.definition, &self.plan);
                let chosen = if is_pipelined { &Chosen::Complete } else { chosen };
                let shown = self.version.block(directory, rows, self.reader, chosen, matching)?;
                if rest == Rest::Nothing && !shown.waiting.is_empty() { Err(ViewProblem::Stale) } else { Ok(shown) }
            }
            Plan::AnonymizeFirst => {
                let built = self.rebuilt(rows)?;
                built.block(built.directory(self.reader.pair), rows, self.reader, &Chosen::All, matching)
            }
        }
    }

    /// Everything the view shows, where all rows are there.
    pub(super) fn block(&self, rows: &RecordBatch) -> Result<Option<Verified<Block>>, ViewProblem> {
        self.show(rows, Rest::Nothing).map(|shown| shown.block)
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
        let found =
            comparison.condition.evaluate(&values).and_then(|found| found.into_array(places.len())).map_err(failed)?;
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
