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
//! EXPLAIN reads none. Rows in memory leave in [`pieces`](super::pieces) of whole classes; all others are read first.
//!
//! # Guarantee
//! Rows leave only as [`VerifiedRows`], with the cells of the very rows that were verified, or with totals of these cells
//! ([`totals`](super::totals)). Errors of the view's query are
//! reduced to their kind, because their messages may contain cells.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{BooleanArray, RecordBatch};
use datafusion::arrow::compute::{concat_batches, filter_record_batch};
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
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, execute_stream};
use futures::TryStreamExt;
use kohort_io::{VerifiedRows, write_rows};
use kohort_model::Silent;

use super::assemble::Chosen;
use super::choose::{LabelComparison, answering_rows};
use super::plan::{Plan, PlanWish};
use super::source::{Base, Source};
use super::totals::totals_of_classes;
use crate::leaf::{methods_of_leaf, properties_of_leaf};
use crate::parser::Answers;
use crate::readers::{ReadingTurn, ReadsView};
use crate::role;
use crate::view::version::build::{Sources, Trees, build};
use crate::view::{Reader, Version, ViewError};

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
        if version.definition.clauses.answers == Answers::Aggregates {
            f.write_str(", totals of classes")?;
        }
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
        let reading = ReadSteps { read, pushed, output, memory, pieces: None, turn, reads };
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
        let definition = &read.version.definition;
        let totals = match definition.clauses.answers {
            Answers::Aggregates => {
                Some(totals_of_classes(verified, definition, &self.projection, Arc::clone(&self.schema))?)
            }
            Answers::View | Answers::Matching => None,
        };
        let mut batches = Vec::new();
        for start in (0..n_rows).step_by(self.n_rows_per_batch) {
            let range = start..(start + self.n_rows_per_batch).min(n_rows);
            let mut shown = match &totals {
                Some(totals) => totals.slice(start, range.len()),
                None => write_rows(verified, range.clone(), &self.projection, Arc::clone(&self.schema))?,
            };
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

impl Output {
    /// The labels of a piece as batches.
    fn batches_of_labels(&self, piece: &Chosen, read: &ViewRead) -> Result<Vec<RecordBatch>> {
        let _timer = self.metrics.elapsed_compute().timer();
        let labels = read.labels_of_classes(piece, &self.projection, Arc::clone(&self.schema))?;
        self.metrics.record_output(labels.num_rows());
        let starts = (0..labels.num_rows()).step_by(self.n_rows_per_batch);
        let length = |start: usize| self.n_rows_per_batch.min(labels.num_rows() - start);
        Ok(starts.map(|start| labels.slice(start, length(start))).collect())
    }
}

/// A view that is being read, piece by piece.
struct ReadSteps {
    read: Arc<ViewRead>,
    /// The comparisons of joins above, until they are evaluated.
    pushed: Vec<LabelComparison>,
    output: Output,
    memory: MemoryReservation,
    /// The classes that were not read yet; `None` before the first step.
    pieces: Option<VecDeque<Chosen>>,
    /// The query's turn to read views, which ends when all of its views are read.
    turn: Option<Arc<ReadingTurn>>,
    reads: Option<ReadsView>,
}

impl ReadSteps {
    /// The next batches that leave; `None` after the last.
    async fn step(mut self) -> Result<Option<(Vec<Result<RecordBatch>>, ReadSteps)>> {
        if self.pieces.is_none() {
            let pushed = std::mem::take(&mut self.pushed);
            self.read = Arc::new(self.read.begun(pushed).await?);
            if let Some(n_classes) = &self.output.n_classes {
                n_classes.add(self.read.n_classes());
            }
            self.pieces = Some(self.read.pieces().into());
        }
        let Some(piece) = self.pieces.as_mut().and_then(VecDeque::pop_front) else { return Ok(None) };
        let is_last = self.pieces.as_ref().is_none_or(VecDeque::is_empty);
        let read = Arc::clone(&self.read);
        if read.needs_no_rows(&self.output.projection) {
            let batches = self.output.batches_of_labels(&piece, &read)?;
            if is_last {
                self.reads = None;
            }
            return Ok(Some((batches.into_iter().map(Ok).collect(), self)));
        }
        let rows = read.rows(&piece).await?;
        // Codes, cells and labels together are about as large again as the rows.
        self.memory.try_resize(2 * rows.get_array_memory_size())?;
        let (worker, elapsed) = (Arc::clone(&read), self.output.metrics.elapsed_compute().clone());
        // The work keeps memory and turn until it ends, even if nobody waits for it any more.
        let (memory, works) = (self.memory.take(), self.turn.as_ref().and_then(|turn| turn.working()));
        let shown = tokio::task::spawn_blocking(move || {
            let _timer = elapsed.timer();
            let _works = works;
            worker.show(&rows, &piece).map(|shown| (shown, memory))
        });
        let shown = shown.await.map_err(|_| read.fault())?;
        let (shown, memory) = shown.map_err(|problem| read.told(problem))?;
        self.memory = memory;
        let batches = self.output.batches(shown.as_ref(), &read)?;
        let batches = batches.into_iter().map(Ok).collect();
        if is_last {
            self.reads = None;
        }
        Ok(Some((batches, self)))
    }
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

    /// The classes that are built, in the pieces in which they leave.
    fn pieces(&self) -> Vec<Chosen> {
        match (&self.plan, &self.source) {
            (Plan::SelectFirst { chosen }, Source::Kept) => self.version.pieces(self.reader, chosen),
            _ => vec![self.chosen()],
        }
    }

    fn chosen(&self) -> Chosen {
        match &self.plan {
            Plan::SelectFirst { chosen } => chosen.clone(),
            Plan::AnonymizeFirst => Chosen::All,
        }
    }

    /// All rows that are needed.
    pub(in crate::view) async fn fetch(&self) -> Result<RecordBatch> {
        self.rows(&self.chosen()).await
    }

    /// The rows that are needed to show a piece.
    async fn rows(&self, piece: &Chosen) -> Result<RecordBatch> {
        match &self.source {
            Source::Kept => self.kept_rows(piece),
            Source::Stored(stored) => Ok(stored.private.batch().clone()),
            Source::Unread(_) => Err(self.fault()),
            Source::Query(query) => {
                let stream = execute_stream(Arc::clone(&query.plan), Arc::clone(&query.owner));
                let stream = stream.map_err(|error| self.failed(error))?;
                let schema = stream.schema();
                let batches: Result<Vec<RecordBatch>> = stream.try_collect().await;
                let batches = batches.map_err(|error| self.failed(error))?;
                Ok(concat_batches(&schema, &batches)?)
            }
        }
    }

    /// The rows of classes, which the version keeps.
    fn kept_rows(&self, piece: &Chosen) -> Result<RecordBatch> {
        let ViewRead { version, reader, .. } = self;
        let wanted = match piece {
            Chosen::Classes(classes) => Some(version.directory(reader.pair).rows(classes)),
            Chosen::All => None,
        };
        let kept = version.kept.as_ref().ok_or_else(|| external(ViewError::Stale))?;
        kept.rows(wanted, &version.definition).map_err(|error| self.failed(error))
    }

    /// What leaves of the rows of a piece.
    fn show(&self, rows: &RecordBatch, piece: &Chosen) -> Result<Option<VerifiedRows>, ViewError> {
        if rows.num_rows() == 0 {
            return Ok(None);
        }
        let matching = self.matching.as_ref();
        match &self.plan {
            Plan::SelectFirst { .. } if let Source::Stored(stored) = &self.source => {
                self.version.stored_block(stored, self.reader)
            }
            Plan::SelectFirst { .. } => {
                let directory = self.version.directory(self.reader.pair);
                self.version.block(directory, rows, self.reader, piece, matching)
            }
            Plan::AnonymizeFirst => {
                let built = self.rebuilt(rows)?;
                built.block(built.directory(self.reader.pair), rows, self.reader, &Chosen::All, matching)
            }
        }
    }

    /// Everything that the view shows, if these are all rows.
    pub(in crate::view) fn block(&self, rows: &RecordBatch) -> Result<Option<VerifiedRows>, ViewError> {
        self.show(rows, &self.chosen())
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
