//! [`AView`]: an A-view as a table of a query.
//!
//! # Guarantee
//! The version, the reader's purpose and recipient, and the day determine one relation. Every query is answered as if it
//! read that relation. Filters are taken only to leave out classes that can't match; DataFusion applies them again.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use chrono::NaiveDate;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::{ExecutionPlan, collect};
use kohort_labels::rewrite::Meanings;

use super::materialized::{Materialized, MaterializedError, Unread};
use super::read::choose::{LabelComparison, quasi_position, quasi_schema};
use super::read::exec::{AnonymizeExec, ViewRead, external};
use super::read::plan::{Plan, PlanWish};
use super::read::source::{Base, Source};
use super::{Definition, Digest, Fingerprint, Generations, Reader, Version, ViewError};
use crate::options::ViewOptions;
use crate::readers::ReadingTurn;
use crate::store::Reading;

/// An A-view.
pub(crate) struct AView {
    pub definition: Arc<Definition>,
    schema: SchemaRef,
    state: RwLock<State>,
    owner: Arc<Owner>,
}

/// The owner of the tables that a view reads.
#[derive(Clone)]
pub(crate) struct Owner {
    /// The session in which the view's query runs.
    pub session: SessionState,
    /// How often each table was changed.
    pub generations: Generations,
    /// The day that retention periods are compared with.
    pub today: Arc<dyn Fn() -> NaiveDate + Send + Sync>,
}

/// The plans that read the rows of a view and its choices.
#[derive(Clone)]
pub(crate) struct ViewPlans {
    /// The view's query.
    pub query: Arc<LogicalPlan>,
    /// The query of its policies.
    pub policies: Option<Arc<LogicalPlan>>,
}

impl ViewPlans {
    /// The state of all tables that the plans read.
    pub(crate) fn fingerprint(&self, generations: &Generations) -> Result<Fingerprint> {
        let plans: Vec<&LogicalPlan> = std::iter::once(&self.query).chain(&self.policies).map(Arc::as_ref).collect();
        Fingerprint::of(&plans, generations)
    }
}

/// Whether a view can be read.
#[derive(Clone)]
pub(crate) enum State {
    /// The view was verified.
    Usable {
        /// The version it is pinned to.
        version: Arc<Version>,
        plans: ViewPlans,
        /// A digest of what it shows, if a data folder keeps the view or its tables can change unnoticed.
        digest: Option<Digest>,
    },
    /// The rows of the view are kept, and follow their table.
    Materialized { view: Arc<Materialized>, plans: ViewPlans },
    /// The view could not be built.
    Unusable {
        /// Why.
        reason: String,
        /// Whether somebody may have read an earlier version.
        was_shown: bool,
    },
    /// The view is not the same as when its data folder was last open, for this reason.
    Stale(String),
}

impl State {
    /// The state of a view that could not be built and was never shown.
    pub(crate) fn unusable(reason: impl Into<String>) -> State {
        State::Unusable { reason: reason.into(), was_shown: false }
    }

    /// Whether somebody may have read the view.
    pub(crate) fn was_shown(&self) -> bool {
        match self {
            State::Usable { .. } | State::Materialized { .. } | State::Stale(_) => true,
            State::Unusable { was_shown, .. } => *was_shown,
        }
    }
}

/// A view, opened for a reader.
pub(super) struct Opened {
    pub(super) rows: OpenedRows,
    pub(super) reader: Reader,
    query: Arc<LogicalPlan>,
    pub(super) options: ViewOptions,
}

/// Where the rows of a view are.
pub(super) enum OpenedRows {
    /// In memory or in the tables of the view's query; the version's directory knows which rows are needed.
    Of(Arc<Version>),
    /// In the store.
    Unread(Unread),
}

impl fmt::Debug for AView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AView({})", self.definition.name)
    }
}

impl AView {
    /// A view in this state.
    pub(crate) fn new(definition: Arc<Definition>, state: State, owner: Owner) -> AView {
        AView { schema: definition.schema(), definition, state: RwLock::new(state), owner: Arc::new(owner) }
    }

    /// Whether it can be read.
    pub(crate) fn state(&self) -> State {
        self.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The version it is pinned to, even if that is stale.
    pub(crate) fn version(&self) -> Option<Arc<Version>> {
        match self.state() {
            State::Usable { version, .. } => Some(version),
            State::Materialized { .. } | State::Unusable { .. } | State::Stale(_) => None,
        }
    }

    /// Pins it to another version, or makes it unusable.
    pub(crate) fn set_state(&self, state: State) {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// Whether the tables it was made from have changed.
    pub(crate) fn is_stale(&self) -> Result<bool> {
        match self.state() {
            State::Materialized { .. } | State::Unusable { .. } => Ok(false),
            State::Stale(_) => Ok(true),
            State::Usable { version, plans, .. } => self.is_stale_version(&version, &plans),
        }
    }

    fn is_stale_version(&self, version: &Version, plans: &ViewPlans) -> Result<bool> {
        Ok(plans.fingerprint(&self.owner.generations)? != version.fingerprint)
    }

    /// What the labels of its columns can stand for.
    pub(crate) fn meanings(&self) -> Meanings {
        match self.state() {
            State::Usable { version, .. } => version.meanings(),
            State::Materialized { view, .. } => view.meanings(),
            State::Unusable { .. } | State::Stale(_) => self.definition.columns.iter().map(|_| None).collect(),
        }
    }

    /// Opens the view for the reader of a session, who compares its quasi columns like this. Reads no row.
    pub(super) async fn open(&self, session: &dyn Session, comparisons: &[LabelComparison]) -> Result<Opened> {
        let options = session.config_options().extensions.get::<ViewOptions>().cloned().unwrap_or_default();
        let (version, plans, digest) = match self.state() {
            State::Usable { version, plans, digest } => (version, plans, digest),
            State::Materialized { .. } if options.plan == PlanWish::AnonymizeFirst => {
                let what = "kohort.plan = 'anonymize_first', as it keeps its classes";
                return Err(external(ViewError::Materialized(MaterializedError::Option { what })));
            }
            State::Materialized { view, plans } => {
                let unread = self.unread(session, view, options.clone(), comparisons.to_vec()).await?;
                let reader = self.reader(&unread.version, &options)?;
                return Ok(Opened { rows: OpenedRows::Unread(unread), reader, query: plans.query, options });
            }
            State::Stale(_) => return Err(external(ViewError::Stale)),
            State::Unusable { reason, .. } => {
                let problem = ViewError::Unusable { view: self.definition.name.clone(), reason };
                return Err(external(problem.for_reader(options.role, &self.definition.name)));
            }
        };
        let is_stale = self.is_stale_version(&version, &plans)?;
        if is_stale || !self.has_its_choices(plans.policies.as_deref(), digest.as_ref()).await? {
            return Err(external(ViewError::Stale));
        }
        let reader = self.reader(&version, &options)?;
        Ok(Opened { rows: OpenedRows::Of(version), reader, query: plans.query, options })
    }

    /// Whether the choices are still those of the version. Only choices that can change unnoticed are read for it.
    async fn has_its_choices(&self, policies: Option<&LogicalPlan>, digest: Option<&Digest>) -> Result<bool> {
        let Some(policies) = policies else { return Ok(true) };
        if Fingerprint::of(&[policies], &self.owner.generations)?.counts_all_changes() {
            return Ok(true);
        }
        let failed = |error| external(self.definition.failed(error));
        let plan = self.owner.session.create_physical_plan(policies).await.map_err(failed)?;
        let choices = collect(plan, self.owner.session.task_ctx()).await.map_err(failed)?;
        Ok(digest.is_some_and(|digest| digest.has_choices(&choices)))
    }

    pub(super) fn reader(&self, version: &Version, options: &ViewOptions) -> Result<Reader> {
        let pair = version.pair(&options.pair).map_err(|problem| external(problem.into()))?;
        Ok(Reader { pair, today: (self.owner.today)() })
    }

    /// A materialized view, in the state of the store that a session reads.
    async fn unread(
        &self,
        session: &dyn Session,
        view: Arc<Materialized>,
        options: ViewOptions,
        comparisons: Vec<LabelComparison>,
    ) -> Result<Unread> {
        let fault = || external(ViewError::fault(&self.definition.name));
        let reading = session.config().get_extension::<Reading>().ok_or_else(fault)?;
        let works = session.config().get_extension::<ReadingTurn>().and_then(|turn| turn.working());
        let unread = tokio::task::spawn_blocking(move || {
            // This goes on even if nobody waits for it any more, and keeps the reader's turn until it ends.
            let _works = works;
            Unread::of(view, reading, &options, &comparisons)
        });
        unread.await.map_err(|_| fault())?.map_err(external)
    }

    /// What a session reads of the view through these filters.
    pub(super) async fn view_read(&self, session: &dyn Session, filters: &[Expr]) -> Result<ViewRead> {
        let of_quasi: Vec<&Expr> = filters.iter().filter(|filter| self.speaks_of_quasi(filter)).collect();
        let over_quasi = |filter: &Expr| -> Result<Option<LabelComparison>> {
            Ok(LabelComparison::of(&self.definition, &self.over_quasi(session, filter)?))
        };
        let comparisons = of_quasi.iter().filter_map(|filter| over_quasi(filter).transpose());
        let comparisons: Vec<LabelComparison> = comparisons.collect::<Result<_>>()?;
        let Opened { rows, reader, query, options } = self.open(session, &comparisons).await?;
        let base = Arc::new(self.base(session, query));
        let (wish, role) = (options.plan, options.role);
        let (version, plan, source) = match rows {
            OpenedRows::Of(version) => {
                let plan = Plan::of(wish, version.choose(reader, &comparisons)?);
                let source = base.source(&version, reader, &plan).await?;
                (version, plan, source)
            }
            OpenedRows::Unread(unread) => {
                let (version, chosen) = (Arc::clone(&unread.version), unread.chosen.clone());
                (version, Plan::SelectFirst { chosen }, Source::Unread(Box::new(unread)))
            }
        };
        let matching = match conjunction(of_quasi.into_iter().cloned()) {
            Some(filter) if version.answers_matching() => over_quasi(&filter)?,
            _ => None,
        };
        Ok(ViewRead { version, reader, comparisons, wish, plan, base, source, matching, role })
    }

    /// The view's query, in the state of the store that a session reads.
    fn base(&self, session: &dyn Session, query: Arc<LogicalPlan>) -> Base {
        let mut owner = Arc::clone(&self.owner);
        if let Some(reading) = session.config().get_extension::<Reading>() {
            let mut reads = owner.as_ref().clone();
            reads.session.config_mut().set_extension(reading);
            owner = Arc::new(reads);
        }
        Base { definition: Arc::clone(&self.definition), owner, query }
    }

    /// Whether a filter names only quasi columns, and always has the same result for the same labels.
    fn speaks_of_quasi(&self, filter: &Expr) -> bool {
        let columns = filter.column_refs();
        let is_quasi = |column: &&Column| quasi_position(&self.definition, &column.name).is_some();
        let depends_on_more = |part: &Expr| {
            Ok(matches!(
                part,
                Expr::Exists(_)
                    | Expr::InSubquery(_)
                    | Expr::ScalarSubquery(_)
                    | Expr::OuterReferenceColumn(..)
                    | Expr::Placeholder(_)
            ))
        };
        let is_of_labels = !columns.is_empty() && columns.iter().all(is_quasi);
        is_of_labels && !filter.is_volatile() && filter.exists(depends_on_more).is_ok_and(|depends| !depends)
    }

    fn over_quasi(
        &self,
        session: &dyn Session,
        filter: &Expr,
    ) -> Result<Arc<dyn datafusion::physical_plan::PhysicalExpr>> {
        let unqualified = filter.clone().transform(|part| {
            Ok(match part {
                Expr::Column(column) => Transformed::yes(Expr::Column(Column::new_unqualified(column.name))),
                other => Transformed::no(other),
            })
        })?;
        let schema = DFSchema::try_from(quasi_schema(&self.definition).as_ref().clone())?;
        session.create_physical_expr(unqualified.data, &schema)
    }
}

#[async_trait]
impl TableProvider for AView {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match self.speaks_of_quasi(filter) {
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let read = self.view_read(session, filters).await?;
        let projection = projection.cloned().unwrap_or_else(|| (0..self.definition.columns.len()).collect());
        Ok(Arc::new(AnonymizeExec::new(read, projection)?))
    }
}
