//! [`AnonymizeExec`]: the operator that reads an A-view.
//!
//! It is a leaf to the plan around it and runs the view's own query in the owner's session, so that no rule, metric or
//! EXPLAIN of the reader's plan reaches what is below. It counts rows that leave and, for the owner, classes it builds.
//!
//! What joins above it let through comes to it as dynamic filters. Those that speak of quasi columns alone are asked of
//! labels when the first row is wanted, and classes that meet nothing are not built: a semi-join before anything is
//! anonymized. Conditions on other columns stay above: they can tell one member of a class from another.
//!
//! Rows come from those the version or the store keeps, or from the view's query; none is looked at before the first is
//! wanted, so that EXPLAIN reads nothing. Where the view is partitioned in blocks, and all
//! of it is read, the query gives them in the order of identifiers and classes leave as soon as they are complete, so
//! that about one block is in memory. Elsewhere everything that is needed is read first.
//!
//! # Guarantee
//! Rows leave only as [`VerifiedRows`], with the cells of the very rows that were verified. Errors from below are cut down to their kind: their messages may hold cells.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, StringArray, UInt32Array};
use datafusion::arrow::compute::{concat_batches, take_record_batch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::common::cast::as_boolean_array;
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
use kohort_model::{Role, Silent, Table};

use super::assemble::{Chosen, Matching, Shown};
use super::choose::{Comparison, quasi_schema};
use super::plan::{Plan, PlanWish};
use super::source::{Base, Source};
use crate::leaf::{methods_of_leaf, properties_of_leaf};
use crate::parser::BlockSize;
use crate::readers::{ReadingTurn, ReadsView};
use crate::role;
use crate::view::version::build::{Sources, Trees, build};
use crate::view::{Reader, Version, ViewError};

/// Small blocks are looked at some at a time.
const LEAST_ROWS_TOGETHER: usize = 16_384;

/// Reads an A-view.
pub struct AnonymizeExec {
    read: Arc<ViewRead>,
    schema: SchemaRef,
    /// Positions of the view's columns that are read.
    projection: Vec<usize>,
    properties: Arc<PlanProperties>,
    /// What joins above let through. They know it once they have read their other sides.
    pushed: Vec<Arc<dyn PhysicalExpr>>,
    metrics: ExecutionPlanMetricsSet,
}

/// What is read, and from where.
pub(in crate::view) struct ViewRead {
    pub(in crate::view) version: Arc<Version>,
    pub(in crate::view) reader: Reader,
    /// What is asked of quasi columns.
    pub(in crate::view) comparisons: Vec<Comparison>,
    pub(in crate::view) wish: PlanWish,
    pub(in crate::view) plan: Plan,
    pub(in crate::view) base: Arc<Base>,
    pub(in crate::view) source: Source,
    /// What a row's own values must satisfy for its class to answer.
    pub(in crate::view) matching: Option<Comparison>,
    /// Who reads.
    pub(in crate::view) role: role::Role,
}

impl AnonymizeExec {
    pub(in crate::view) fn new(read: ViewRead, projection: Vec<usize>) -> Result<Self> {
        let schema = Arc::new(read.version.definition.schema().project(&projection)?);
        // Nothing is claimed of order, keys or distribution: labels have none of what the query below may promise.
        let properties = properties_of_leaf(&schema, 1);
        let (read, metrics) = (Arc::new(read), ExecutionPlanMetricsSet::new());
        Ok(AnonymizeExec { read, schema, projection, properties, pushed: Vec::new(), metrics })
    }

    /// What joins above let through, where it is taken.
    pub(crate) fn pushed_down(&self) -> &[Arc<dyn PhysicalExpr>] {
        &self.pushed
    }

    /// The same, with conditions on its columns in place of those that joins above would find.
    pub(crate) fn with_pushed_down(&self, pushed: Vec<Arc<dyn PhysicalExpr>>) -> AnonymizeExec {
        AnonymizeExec {
            read: Arc::clone(&self.read),
            schema: Arc::clone(&self.schema),
            projection: self.projection.clone(),
            properties: Arc::clone(&self.properties),
            pushed,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// What joins above let through, of quasi columns alone.
    fn pushed(&self) -> Vec<Comparison> {
        let definition = &self.read.version.definition;
        self.pushed.iter().filter_map(|condition| Comparison::of(definition, condition)).collect()
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
            // How many classes there are, and how many of them hide a column, is not for readers.
            (role::Role::Analyst, Plan::SelectFirst { chosen: Chosen::Classes(_) }) => {
                "select first, some classes".to_owned()
            }
            _ => plan.describe(self.read.n_classes_in_all()),
        };
        write!(f, "AnonymizeExec: view={}", version.definition.name)?;
        // The number of one that moves counts changes, also of those whom its rows do not show yet.
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

    methods_of_leaf!();

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let mut recursion = TreeNodeRecursion::Continue;
        for condition in &self.pushed {
            recursion = visit(condition)?;
            if recursion == TreeNodeRecursion::Stop {
                break;
            }
        }
        Ok(recursion)
    }

    /// Takes what joins above let through, to leave out classes; they apply it again.
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
        let is_of_quasi = |condition: &Arc<dyn PhysicalExpr>| Comparison::of(&version.definition, condition).is_some();
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

/// How rows leave.
struct Output {
    schema: SchemaRef,
    projection: Vec<usize>,
    n_rows_per_batch: usize,
    metrics: BaselineMetrics,
    /// Classes that are built, for the owner.
    n_classes: Option<Count>,
}

impl Output {
    /// A block as batches, less the rows that do not show what is asked: a class is chosen for what some of its rows
    /// show, and how many others it has is nobody's business.
    fn batches(&self, verified: Option<&VerifiedRows>, asked: &[Comparison]) -> Result<Vec<RecordBatch>> {
        let Some(verified) = verified else { return Ok(Vec::new()) };
        let n_rows = verified.get().block().rows.len();
        let mut batches = Vec::new();
        for start in (0..n_rows).step_by(self.n_rows_per_batch) {
            let range = start..(start + self.n_rows_per_batch).min(n_rows);
            let shown = write_rows(verified, range, &self.projection, Arc::clone(&self.schema))?;
            let shown = asked.iter().try_fold(shown, |shown, comparison| comparison.filter(shown))?;
            if shown.num_rows() > 0 {
                self.metrics.record_output(shown.num_rows());
                batches.push(shown);
            }
        }
        Ok(batches)
    }
}

/// A view that is being read: everything at once, or class by class as their rows come in.
struct ReadSteps {
    read: Arc<ViewRead>,
    /// What joins above let through, until it is looked at.
    pushed: Vec<Comparison>,
    output: Output,
    memory: MemoryReservation,
    /// The rows of the view's query; `None` before they are asked for.
    input: Option<SendableRecordBatchStream>,
    /// Private rows that wait for others of their classes.
    waiting: Vec<RecordBatch>,
    /// The query's turn to read views, which is over where all are read.
    turn: Option<Arc<ReadingTurn>>,
    reads: Option<ReadsView>,
}

impl ReadSteps {
    /// The next batches that leave, `None` after the last.
    async fn step(mut self) -> Result<Option<(Vec<Result<RecordBatch>>, ReadSteps)>> {
        if self.input.is_none() {
            let pushed = std::mem::take(&mut self.pushed);
            if let Some(begun) = self.read.begun(pushed).await? {
                self.read = Arc::new(begun);
            }
            if let Some(n_classes) = &self.output.n_classes {
                n_classes.add(self.read.n_classes());
            }
        }
        let read = Arc::clone(&self.read);
        let failed = |error: DataFusionError| external(ViewError::of_query(&read.version.definition.name, &error));
        let mut input = match self.input.take() {
            Some(input) => input,
            None => read.open()?,
        };
        let enough = read.n_rows_together();
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
        let rows = concat_batches(&input.schema(), &self.waiting)?;
        self.waiting.clear();
        // Codes, cells and labels together are about as large again as the rows.
        self.memory.try_resize(2 * rows.get_array_memory_size())?;
        let (worker, elapsed) = (Arc::clone(&read), self.output.metrics.elapsed_compute().clone());
        // They are kept as long as the work goes on, which may be longer than anybody waits for it.
        let (memory, works) = (self.memory.take(), self.turn.as_ref().map(ReadingTurn::working));
        let shown = tokio::task::spawn_blocking(move || {
            let _timer = elapsed.timer();
            let _works = works;
            let shown = worker.show(&rows, if is_over { Rest::Nothing } else { Rest::MoreToCome });
            shown.map(|shown| (rows, shown, memory))
        });
        let told = |problem: ViewError| external(problem.for_reader(read.role, &read.version.definition.name));
        let (rows, shown, memory) = shown.await.map_err(|_| interrupted(&read))?.map_err(told)?;
        self.memory = memory;
        let batches = self.output.batches(shown.block.as_ref(), &read.comparisons)?;
        let batches = batches.into_iter().map(Ok).collect();
        if !shown.waiting.is_empty() {
            self.waiting.push(take_record_batch(&rows, &UInt32Array::from(shown.waiting))?);
        }
        if !is_over {
            self.input = Some(input);
        } else {
            self.reads = None;
            // Nothing comes any more, and nothing waits: the next step ends the stream.
            self.input = Some(Box::pin(EmptyRecordBatchStream::new(input.schema())));
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

impl ViewRead {
    /// The same with more that is asked, and with the rows that a store keeps; `None` where it is ready as it is.
    pub(in crate::view) async fn begun(&self, more: Vec<Comparison>) -> Result<Option<ViewRead>> {
        let comparisons: Vec<Comparison> = self.comparisons.iter().cloned().chain(more.iter().cloned()).collect();
        let (base, reader) = (Arc::clone(&self.base), self.reader);
        let (wish, matching, role) = (self.wish, self.matching.clone(), self.role);
        if let Source::Unread(unread) = &self.source {
            let (unread, asked) = (unread.clone(), comparisons.clone());
            let read = tokio::task::spawn_blocking(move || unread.read(&asked)).await;
            let told = |problem: ViewError| external(problem.for_reader(role, &self.version.definition.name));
            let stored = read.map_err(|_| interrupted(self))?.map_err(told)?;
            let (version, plan) = (Arc::clone(&stored.version), Plan::SelectFirst { chosen: Chosen::All });
            let source = Source::Stored(Box::new(stored));
            return Ok(Some(ViewRead { version, reader, comparisons, wish, plan, base, source, matching, role }));
        }
        if more.is_empty() {
            return Ok(None);
        }
        let version = Arc::clone(&self.version);
        let plan = Plan::of(wish, version.choose(reader, &comparisons)?);
        let source = base.source(&version, reader, &plan).await?;
        Ok(Some(ViewRead { version, reader, comparisons, wish, plan, base, source, matching, role }))
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

    /// Everything that is needed at once.
    pub(in crate::view) async fn fetch(&self) -> Result<RecordBatch> {
        let input = self.open()?;
        let schema = input.schema();
        let batches: Result<Vec<RecordBatch>> = input.try_collect().await;
        let batches = batches.map_err(|error| external(ViewError::of_query(&self.version.definition.name, &error)))?;
        Ok(concat_batches(&schema, &batches)?)
    }

    /// The rows that are needed, as they come.
    fn open(&self) -> Result<SendableRecordBatchStream> {
        let name = &self.version.definition.name;
        match &self.source {
            Source::Kept => {
                let rows = self.kept_rows().map_err(external)?;
                let schema = rows.schema();
                Ok(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter([Ok(rows)]))))
            }
            Source::Unread(_) => Err(interrupted(self)),
            Source::Stored(stored) => {
                let rows = stored.private.batch().clone();
                let schema = rows.schema();
                Ok(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter([Ok(rows)]))))
            }
            Source::Query(query) | Source::InOrder(query) => {
                let stream = execute_stream(Arc::clone(&query.plan), Arc::clone(&query.owner));
                stream.map_err(|error| external(ViewError::of_query(name, &error)))
            }
        }
    }

    /// The rows of the chosen classes, as the version keeps them.
    fn kept_rows(&self) -> Result<RecordBatch, ViewError> {
        let ViewRead { version, reader, .. } = self;
        let wanted = match &self.plan {
            Plan::SelectFirst { chosen: Chosen::Classes(classes) } => {
                Some(version.directory(reader.pair).rows(classes))
            }
            Plan::SelectFirst { chosen: Chosen::All | Chosen::Complete } | Plan::AnonymizeFirst => None,
        };
        let kept = version.kept.as_ref().ok_or(ViewError::Stale)?;
        let failed = |error: ArrowError| ViewError::of_query(&version.definition.name, &error.into());
        kept.rows(wanted, &version.definition).map_err(failed)
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

    /// What leaves of these rows. All that are needed are there, or more come and the classes they complete leave.
    fn show(&self, rows: &RecordBatch, rest: Rest) -> Result<Shown, ViewError> {
        let matches = |table: &Table, places: &[u32]| self.matches(table, places);
        let matching =
            self.matching.as_ref().map(|comparison| Matching { columns: comparison.columns, matches: &matches });
        match &self.plan {
            Plan::SelectFirst { .. } if let Source::Stored(stored) = &self.source => {
                self.version.stored_block(stored, self.reader)
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

    /// Everything the view shows, where all rows are there.
    pub(in crate::view) fn block(&self, rows: &RecordBatch) -> Result<Option<VerifiedRows>, ViewError> {
        self.show(rows, Rest::Nothing).map(|shown| shown.block)
    }

    /// The version made once more from these rows, which must give the same classes.
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

    /// Whether each of these rows satisfies the comparison by its own values.
    fn matches(&self, table: &Table, places: &[u32]) -> Result<Vec<bool>, ViewError> {
        let name = &self.version.definition.name;
        let quasi = self.version.definition.with_role(Role::Quasi);
        let own = |&position: &usize| {
            let column = &table.columns[position];
            Arc::new(places.iter().map(|&row| column.cell(row as usize)).collect::<StringArray>()) as _
        };
        let failed = |error: DataFusionError| ViewError::of_query(name, &error);
        let values =
            RecordBatch::try_new(Arc::clone(&quasi_schema(&self.version.definition)), quasi.iter().map(own).collect())
                .map_err(|error| failed(error.into()))?;
        let Some(comparison) = &self.matching else { return Ok(vec![true; places.len()]) };
        let found =
            comparison.condition.evaluate(&values).and_then(|found| found.into_array(places.len())).map_err(failed)?;
        Ok(as_boolean_array(&found).map_err(failed)?.iter().map(|found| found == Some(true)).collect())
    }
}

fn interrupted(read: &ViewRead) -> DataFusionError {
    external(ViewError::fault(&read.version.definition.name))
}

pub(in crate::view) fn external(problem: ViewError) -> DataFusionError {
    DataFusionError::External(Box::new(problem))
}
