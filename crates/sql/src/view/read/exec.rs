//! [`AnonymizeExec`]: the operator that reads an A-view.
//!
//! The operator is a leaf of the plan around it and runs the view's own query in the owner's session. So no rule, metric or
//! EXPLAIN of the reader's plan reaches the view's query. The metrics count rows that leave and, for the owner, the classes
//! that are built.
//!
//! Joins above pass the values they can meet as dynamic filters. Filters that name only quasi columns are asked of labels
//! when the first row is wanted, and classes that can't satisfy them are not built: a semi-join before anything is
//! anonymized. Filters on other columns stay above, because they can tell one member of a class from another.
//!
//! Rows come from memory, from the store, or from the view's query. No row is read before the first one is wanted, so
//! EXPLAIN reads none. If the view is partitioned in blocks and all of it is read, its query returns rows in the order of
//! identifiers, and classes leave as soon as they are complete, so about one block is in memory. Otherwise all needed rows
//! are read first.
//!
//! # Guarantee
//! Rows leave only as [`VerifiedRows`], with the cells of the very rows that were verified. Errors of the view's query are
//! reduced to their kind, because their messages may contain cells.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{BooleanArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{concat_batches, filter_record_batch, take_record_batch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::filter_pushdown::{ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation};
use datafusion::physical_plan::metrics::{BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, EmptyRecordBatchStream, ExecutionPlan, PlanProperties, execute_stream,
};
use futures::TryStreamExt;
use kohort_io::{VerifiedRows, write_rows};
use kohort_model::Silent;

use super::assemble::{Chosen, Shown};
use super::choose::{LabelComparison, answering_rows};
use super::plan::{Plan, PlanWish};
use super::source::{Base, Source};
use crate::leaf::{methods_of_leaf, properties_of_leaf};
use crate::parser::BlockSize;
use crate::readers::{ReadingTurn, ReadsView};
use crate::role;
use crate::view::version::build::{Sources, Trees, build};
use crate::view::{Reader, Version, ViewError};

/// Small blocks are shown several at a time, so that this many rows are shown together.
const LEAST_ROWS_TOGETHER: usize = 16_384;

/// Reads an A-view.
#[derive(Clone)]
pub(crate) struct AnonymizeExec {
    read: Arc<ViewRead>,
    schema: SchemaRef,
    /// Positions of the view's columns that are read.
    projection: Vec<usize>,
    properties: Arc<PlanProperties>,
    /// Dynamic filters of joins above. Their values are known once the joins have read their other sides.
    pushed: Vec<Arc<dyn PhysicalExpr>>,
    metrics: ExecutionPlanMetricsSet,
}

/// What is read of a view, and from where.
#[derive(Clone)]
pub(in crate::view) struct ViewRead {
    pub(in crate::view) version: Arc<Version>,
    pub(in crate::view) reader: Reader,
    /// The comparisons with quasi columns.
    pub(in crate::view) comparisons: Vec<LabelComparison>,
    pub(in crate::view) wish: PlanWish,
    pub(in crate::view) plan: Plan,
    pub(in crate::view) base: Arc<Base>,
    pub(in crate::view) source: Source,
    /// The comparison that a row's own values must satisfy for its class to answer, with ANSWERS MATCHING.
    pub(in crate::view) matching: Option<LabelComparison>,
    /// The role of the reader.
    pub(in crate::view) role: role::Role,
}

impl AnonymizeExec {
    pub(in crate::view) fn new(read: ViewRead, projection: Vec<usize>) -> Result<Self> {
        let schema = Arc::new(read.version.definition.schema().project(&projection)?);
        // Claim nothing about order, keys or distribution, because labels do not keep what the view's query promises.
        let properties = properties_of_leaf(&schema, 1);
        let (read, metrics) = (Arc::new(read), ExecutionPlanMetricsSet::new());
        Ok(AnonymizeExec { read, schema, projection, properties, pushed: Vec::new(), metrics })
    }

    /// The dynamic filters of joins above.
    pub(crate) fn pushed_down(&self) -> &[Arc<dyn PhysicalExpr>] {
        &self.pushed
    }

    /// The same operator with these dynamic filters.
    pub(crate) fn with_pushed_down(&self, pushed: Vec<Arc<dyn PhysicalExpr>>) -> AnonymizeExec {
        AnonymizeExec { pushed, metrics: ExecutionPlanMetricsSet::new(), ..self.clone() }
    }

    /// The dynamic filters as comparisons with quasi columns.
    fn pushed(&self) -> Vec<LabelComparison> {
        let definition = &self.read.version.definition;
        self.pushed.iter().filter_map(|condition| LabelComparison::of(definition, condition)).collect()
    }
}

impl fmt::Debug for AnonymizeExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnonymizeExec({})", self.read.version.definition.name)
    }
}

impl DisplayAs for AnonymizeExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ViewRead { version, plan, role, .. } = self.read.as_ref();
        let described = match (role, plan) {
            // Readers must not learn how many classes there are, or how many of them hide a column.
            (role::Role::Analyst, Plan::SelectFirst { chosen: Chosen::Classes(_) }) => {
                "select first, some classes".to_owned()
            }
            _ => plan.describe(self.read.n_classes_in_all()),
        };
        write!(f, "AnonymizeExec: view={}", version.definition.name)?;
        // The version of a materialized view counts changes, also of persons who are not shown yet.
        if *role == role::Role::Owner || !version.definition.clauses.is_materialized {
            write!(f, ", version={}", version.number)?;
        }
        write!(f, ", plan={described}")?;
        if self.pushed.is_empty() { Ok(()) } else { f.write_str(", fewer where a join meets fewer") }
    }
}

impl ExecutionPlan for AnonymizeExec {
    fn name(&self) -> &'static str {
        "AnonymizeExec"
    }

    methods_of_leaf!(pushed);

    /// Takes filters of joins above, to leave out classes. The joins apply them again.
    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        result: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let ViewRead { version, plan, .. } = self.read.as_ref();
        let is_taken = phase == FilterPushdownPhase::Post
            && matches!(plan, Plan::SelectFirst { .. })
            && !version.answers_matching();
        let is_of_quasi =
            |condition: &Arc<dyn PhysicalExpr>| LabelComparison::of(&version.definition, condition).is_some();
        let filters = result.parent_filters.iter().map(|filter| Arc::clone(&filter.filter));
        let pushed: Vec<_> = filters.filter(|condition| is_taken && is_of_quasi(condition)).collect();
        let propagation = FilterPushdownPropagation::all_unsupported(result);
        if pushed.is_empty() {
            return Ok(propagation);
        }
        let narrowed = self.with_pushed_down(self.pushed.iter().cloned().chain(pushed).collect());
        Ok(propagation.with_updated_node(Arc::new(narrowed)))
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
            n_classes: (self.read.role == role::Role::Owner)
                .then(|| MetricBuilder::new(&self.metrics).counter("classes", partition)),
        };
        let memory = MemoryConsumer::new("AnonymizeExec").register(context.memory_pool());
        let (read, pushed) = (Arc::clone(&self.read), self.pushed());
        let turn = context.session_config().get_extension::<ReadingTurn>();
        let reads = turn.as_ref().map(ReadingTurn::reading);
        let reading = ReadSteps { read, pushed, output, memory, input: None, waiting: Vec::new(), turn, reads };
        let batches = futures::stream::try_unfold(reading, ReadSteps::step).map_ok(futures::stream::iter).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches)))
    }
}

/// The output of the operator.
struct Output {
    schema: SchemaRef,
    projection: Vec<usize>,
    n_rows_per_batch: usize,
    metrics: BaselineMetrics,
    /// Counts the classes that are built, for the owner.
    n_classes: Option<Count>,
}

impl Output {
    /// A block as batches, without the rows that do not satisfy the comparisons: a class is chosen for what some of its
    /// rows show, and readers must not learn how many other rows it has.
    fn batches(&self, verified: Option<&VerifiedRows>, read: &ViewRead) -> Result<Vec<RecordBatch>> {
        let Some(verified) = verified else { return Ok(Vec::new()) };
        let block = verified.get().block();
        let n_rows = block.rows.len();
        // If a comparison can't be evaluated, the filter above fails too, with its own message.
        let answers = answering_rows(&read.version.definition, block, &read.comparisons)?;
        let answers = answers.filter(|answers| answers.contains(&false));
        let mut batches = Vec::new();
        for start in (0..n_rows).step_by(self.n_rows_per_batch) {
            let range = start..(start + self.n_rows_per_batch).min(n_rows);
            let mut shown = write_rows(verified, range.clone(), &self.projection, Arc::clone(&self.schema))?;
            if let Some(answers) = &answers {
                shown = filter_record_batch(&shown, &BooleanArray::from(answers[range].to_vec()))?;
            }
            if shown.num_rows() > 0 {
                self.metrics.record_output(shown.num_rows());
                batches.push(shown);
            }
        }
        Ok(batches)
    }
}

/// A view that is being read: all at once, or class by class as rows come in.
struct ReadSteps {
    read: Arc<ViewRead>,
    /// The comparisons of joins above, until they are evaluated.
    pushed: Vec<LabelComparison>,
    output: Output,
    memory: MemoryReservation,
    /// The rows of the view's query; `None` before the first step.
    input: Option<SendableRecordBatchStream>,
    /// Private rows that wait for others of their classes.
    waiting: Vec<RecordBatch>,
    /// The query's turn to read views, which ends when all of its views are read.
    turn: Option<Arc<ReadingTurn>>,
    reads: Option<ReadsView>,
}

impl ReadSteps {
    /// The next batches that leave; `None` after the last.
    async fn step(mut self) -> Result<Option<(Vec<Result<RecordBatch>>, ReadSteps)>> {
        if self.input.is_none() {
            let pushed = std::mem::take(&mut self.pushed);
            self.read = Arc::new(self.read.begun(pushed).await?);
            if let Some(n_classes) = &self.output.n_classes {
                n_classes.add(self.read.n_classes());
            }
        }
        let read = Arc::clone(&self.read);
        let mut input = match self.input.take() {
            Some(input) => input,
            None => read.open()?,
        };
        let enough = read.n_rows_together();
        let mut n_rows: usize = self.waiting.iter().map(RecordBatch::num_rows).sum::<usize>();
        let enough = enough.saturating_add(n_rows);
        let mut is_over = false;
        while n_rows < enough && !is_over {
            match input.try_next().await.map_err(|error| read.failed(error))? {
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
        let rows = concat_batches(&input.schema(), &self.waiting)?;
        self.waiting.clear();
        // Codes, cells and labels together are about as large again as the rows.
        self.memory.try_resize(2 * rows.get_array_memory_size())?;
        let (worker, elapsed) = (Arc::clone(&read), self.output.metrics.elapsed_compute().clone());
        // The work keeps memory and turn until it ends, even if nobody waits for it any more.
        let (memory, works) = (self.memory.take(), self.turn.as_ref().and_then(|turn| turn.working()));
        let shown = tokio::task::spawn_blocking(move || {
            let _timer = elapsed.timer();
            let _works = works;
            let shown = worker.show(&rows, if is_over { Rest::Nothing } else { Rest::MoreToCome });
            shown.map(|shown| (rows, shown, memory))
        });
        let shown = shown.await.map_err(|_| read.fault())?;
        let (rows, shown, memory) = shown.map_err(|problem| read.told(problem))?;
        self.memory = memory;
        let batches = self.output.batches(shown.block.as_ref(), &read)?;
        let batches = batches.into_iter().map(Ok).collect();
        if !shown.waiting.is_empty() {
            self.waiting.push(take_record_batch(&rows, &UInt32Array::from(shown.waiting))?);
        }
        if is_over {
            self.reads = None;
            // No more rows come and none waits, so the next step ends the stream.
            input = Box::pin(EmptyRecordBatchStream::new(input.schema()));
        }
        self.input = Some(input);
        Ok(Some((batches, self)))
    }
}

/// Whether more rows of the view's query will come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    MoreToCome,
    Nothing,
}

impl ViewRead {
    /// The same read with more comparisons, and with the rows of a store read.
    pub(in crate::view) async fn begun(&self, more: Vec<LabelComparison>) -> Result<ViewRead> {
        let (mut begun, has_more) = (self.clone(), !more.is_empty());
        begun.comparisons.extend(more);
        if let Source::Unread(unread) = &self.source {
            let (unread, asked) = (unread.clone(), begun.comparisons.clone());
            let read = tokio::task::spawn_blocking(move || unread.read(&asked)).await.map_err(|_| self.fault())?;
            let stored = read.map_err(|problem| self.told(problem))?;
            begun.version = Arc::clone(&stored.version);
            begun.plan = Plan::SelectFirst { chosen: Chosen::All };
            begun.source = Source::Stored(Arc::new(stored));
        } else if has_more {
            begun.plan = Plan::of(self.wish, self.version.choose(self.reader, &begun.comparisons)?);
            begun.source = self.base.source(&self.version, self.reader, &begun.plan).await?;
        }
        Ok(begun)
    }

    /// The error for a failure of the view's query.
    fn failed(&self, error: impl Into<DataFusionError>) -> DataFusionError {
        external(self.version.definition.failed(error))
    }

    /// A problem as the reader is told of it.
    fn told(&self, problem: ViewError) -> DataFusionError {
        external(problem.for_reader(self.role, &self.version.definition.name))
    }

    /// The error for a thread of kohort that panicked.
    fn fault(&self) -> DataFusionError {
        external(ViewError::fault(&self.version.definition.name))
    }

    /// How many classes are built.
    fn n_classes(&self) -> usize {
        match &self.plan {
            Plan::SelectFirst { chosen: Chosen::Classes(classes) } => classes.len(),
            _ => self.n_classes_in_all(),
        }
    }

    /// How many classes there are to choose from.
    fn n_classes_in_all(&self) -> usize {
        match &self.source {
            Source::Unread(unread) => unread.n_classes,
            _ => self.version.directory(self.reader.pair).n_classes(),
        }
    }

    /// All rows that are needed.
    pub(in crate::view) async fn fetch(&self) -> Result<RecordBatch> {
        let input = self.open()?;
        let schema = input.schema();
        let batches: Result<Vec<RecordBatch>> = input.try_collect().await;
        let batches = batches.map_err(|error| self.failed(error))?;
        Ok(concat_batches(&schema, &batches)?)
    }

    /// The rows that are needed, as a stream.
    fn open(&self) -> Result<SendableRecordBatchStream> {
        let rows = match &self.source {
            Source::Kept => self.kept_rows()?,
            Source::Stored(stored) => stored.private.batch().clone(),
            Source::Unread(_) => return Err(self.fault()),
            Source::Query(query) | Source::InOrder(query) => {
                let stream = execute_stream(Arc::clone(&query.plan), Arc::clone(&query.owner));
                return stream.map_err(|error| self.failed(error));
            }
        };
        let schema = rows.schema();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter([Ok(rows)]))))
    }

    /// The rows of the chosen classes, which the version keeps.
    fn kept_rows(&self) -> Result<RecordBatch> {
        let ViewRead { version, reader, .. } = self;
        let wanted = match &self.plan {
            Plan::SelectFirst { chosen: Chosen::Classes(classes) } => {
                Some(version.directory(reader.pair).rows(classes))
            }
            Plan::SelectFirst { chosen: Chosen::All | Chosen::Complete } | Plan::AnonymizeFirst => None,
        };
        let kept = version.kept.as_ref().ok_or_else(|| external(ViewError::Stale))?;
        kept.rows(wanted, &version.definition).map_err(|error| self.failed(error))
    }

    /// Whether classes leave as their rows come in.
    fn is_pipelined(&self) -> bool {
        matches!(self.source, Source::InOrder(..))
    }

    /// How many rows are looked at together.
    fn n_rows_together(&self) -> usize {
        match self.version.definition.clauses.block {
            BlockSize::Rows(n_rows) if self.is_pipelined() => n_rows.get().max(LEAST_ROWS_TOGETHER),
            _ => usize::MAX,
        }
    }

    /// What leaves of these rows. If more rows come, only complete classes leave.
    fn show(&self, rows: &RecordBatch, rest: Rest) -> Result<Shown, ViewError> {
        let matching = self.matching.as_ref();
        match &self.plan {
            Plan::SelectFirst { .. } if let Source::Stored(stored) = &self.source => {
                let block = self.version.stored_block(stored, self.reader)?;
                Ok(Shown { block, waiting: Vec::new() })
            }
            Plan::SelectFirst { chosen } => {
                let directory = self.version.directory(self.reader.pair);
                let chosen = if self.is_pipelined() { &Chosen::Complete } else { chosen };
                let shown = self.version.block(directory, rows, self.reader, chosen, matching)?;
                if rest == Rest::Nothing && !shown.waiting.is_empty() { Err(ViewError::Stale) } else { Ok(shown) }
            }
            Plan::AnonymizeFirst => {
                let built = self.rebuilt(rows)?;
                built.block(built.directory(self.reader.pair), rows, self.reader, &Chosen::All, matching)
            }
        }
    }

    /// Everything that the view shows, if these are all rows.
    pub(in crate::view) fn block(&self, rows: &RecordBatch) -> Result<Option<VerifiedRows>, ViewError> {
        self.show(rows, Rest::Nothing).map(|shown| shown.block)
    }

    /// The version, built again from these rows. It must have the same classes.
    fn rebuilt(&self, rows: &RecordBatch) -> Result<Version, ViewError> {
        let version = &self.version;
        let sources = Sources {
            definition: &version.definition,
            policies: version.policies.as_ref(),
            trees: Trees::Of(version),
            fingerprint: version.fingerprint.clone(),
            most_kept_bytes: 0,
            number: version.number,
        };
        let built = build(sources, rows, &Silent)?;
        if version.is_same_as(&built) { Ok(built) } else { Err(ViewError::Stale) }
    }
}

pub(in crate::view) fn external(problem: ViewError) -> DataFusionError {
    DataFusionError::External(Box::new(problem))
}
