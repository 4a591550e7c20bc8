//! Making, refreshing and dropping views.
//!
//! What a view can't be is an error, and nothing is made. What it can't be *yet*, because the data do not reach what it
//! asks for, makes a view that is there and unusable: it says why to everybody who reads it, until a REFRESH. It takes
//! the place of none that can be built.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::TableReference;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use datafusion::sql::parser::Statement as DFStatement;
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;

use super::catalog::CatalogChange;
use super::folder::{Makes, kept};
use super::pinned::Pinned;
use super::session::{Outcome, counted};
use super::transactions::Transaction;
use super::warnings::told_of_refresh;
use super::{Session, Shared};
use crate::SqlError;
use crate::parser::{Refresh, Statement, ViewStatement, parse};
use crate::policy::Policies;
use crate::view::{
    AView, Definition, Digest, Fingerprint, Owner, Sources, Standing, State, Trees, Version, ViewProblem, build,
};

/// A definition and the plans it reads by.
pub(super) struct Planned {
    pub(super) definition: Arc<Definition>,
    pub(super) query: Arc<LogicalPlan>,
    pub(super) policies: Option<Arc<LogicalPlan>>,
}

/// A version, and what it was made from.
pub(super) struct Built {
    pub(super) version: Version,
    pub(super) rows: RecordBatch,
    /// What it shows, where that has to be compared later.
    digest: Option<Digest>,
}

impl Session {
    pub(super) async fn create_view(&self, statement: ViewStatement, text: &str) -> Result<Outcome, SqlError> {
        self.replaced_by(&statement)?;
        let query = DFStatement::Statement(Box::new(SqlStatement::Query(statement.query.clone())));
        let planned = self.plan_view(&statement, query).await?;
        let (mut change, mut state) = match statement.materialized {
            true => self.materialize(&planned).await?,
            false => {
                let state = self.state(&planned).await?;
                (self.change_catalog().await?, state)
            }
        };
        // The name may have been taken while this waited for its turn.
        let replaced = self.replaced_by(&statement)?;
        if let (Some(replaced), State::Unusable { reason, was_shown }) = (&replaced, &mut state) {
            let before = replaced.state();
            *was_shown = before.was_shown();
            if !matches!(before, State::Unusable { .. }) {
                let (view, reason) = (statement.name, reason.clone());
                return Err(ViewProblem::NotReplaced { view, reason }.into());
            }
        }
        if let Some(transaction) = change.transaction().filter(|_| !self.is_restoring) {
            transaction.check_lost(&statement)?;
            transaction.keep_statement(&statement.name, text, Pinned::of(&state))?;
        }
        let said = self.said(&planned, &state, replaced.as_ref(), &mut change, "")?;
        let view = Arc::new(AView::new(planned.definition, state, self.owner()));
        self.publish(change, move |shared| shared.put_view(view, replaced)).await?;
        Ok(Outcome::Done(said?))
    }

    /// The view that a new one replaces, where it may.
    fn replaced_by(&self, statement: &ViewStatement) -> Result<Option<Arc<AView>>, SqlError> {
        let name = statement.name.clone();
        let Some(known) = self.shared.view(&name) else {
            let is_lost = self.shared.unfollowed().contains_key(&name) && !self.is_restoring;
            let is_taken = is_lost || self.shared.owner.table_exist(TableReference::bare(name.as_str()))?;
            return if is_taken { Err(SqlError::Taken { name }) } else { Ok(None) };
        };
        if !statement.or_replace {
            return Err(SqlError::Exists { name });
        }
        // Whoever reads it would hold two partitions of the same persons.
        match (known.definition.is_materialized, statement.materialized) {
            (true, _) => Err(SqlError::Kept { name }),
            (false, true) => Err(SqlError::Computed { name }),
            (false, false) => Ok(Some(known)),
        }
    }

    pub(super) async fn refresh_view(&self, name: &str, how: Refresh) -> Result<Outcome, SqlError> {
        if self.shared.view(name).is_none() {
            // It runs statements, and this is one.
            Box::pin(self.restore_lost(name)).await?;
        }
        let unknown = || SqlError::UnknownView { name: name.to_owned() };
        let view = self.shared.view(name).ok_or_else(unknown)?;
        let planned = self.plan_anew(&view).await?;
        let mut told = String::new();
        let (mut change, state) = match view.state() {
            State::Materialized { view: old, .. } => {
                let (change, state, of_refresh) = self.rematerialize(&planned, old, how).await?;
                told = told_of_refresh(of_refresh);
                (change, state)
            }
            State::Usable { .. } | State::Unusable { .. } | State::Stale(_) if how != Refresh::Whole => {
                return Err(SqlError::NotMaterialized { name: name.to_owned() });
            }
            State::Usable { .. } | State::Unusable { .. } | State::Stale(_) => {
                let mut state = self.state(&planned).await?;
                if let State::Unusable { was_shown, .. } = &mut state {
                    *was_shown = view.state().was_shown();
                }
                (self.change_catalog().await?, state)
            }
        };
        // It may have been dropped or replaced while this waited for its turn.
        if !self.shared.view(name).is_some_and(|known| Arc::ptr_eq(&known, &view)) {
            return Err(unknown());
        }
        if let Some(transaction) = change.transaction().filter(|_| !view.definition.is_materialized) {
            transaction.keep_pinned(name, &state)?;
        }
        let said = self.said(&planned, &state, Some(&view), &mut change, &told)?;
        // The old one must not follow once the new one is kept.
        self.publish(change, move |_| view.set_state(state)).await?;
        Ok(Outcome::Done(said?))
    }

    /// Drops a view, also one that a data folder keeps and could not make again.
    pub(super) async fn drop_view(&self, name: &str, if_exists: bool) -> Result<Outcome, SqlError> {
        // Whom it were granted meanwhile, another view of this name would be granted.
        let _granting = self.shared.granting.lock().await;
        let (unknown, is_there) = (SqlError::UnknownView { name: name.to_owned() }, self.is_view(name)?);
        if !is_there && self.shared.owner.table_exist(TableReference::bare(name))? {
            return Err(unknown);
        }
        // First: were it to end in between, another view of this name must not be theirs who read this one. Some may hold
        // one that is gone.
        self.revoke_from_all(name).await?;
        if !is_there {
            return if if_exists { Ok(Outcome::Done(format!("there is no view {name}"))) } else { Err(unknown) };
        }
        let mut change = self.change_catalog().await?;
        if let Some(transaction) = change.transaction() {
            transaction.forget_statement(name)?;
            Session::unmaterialize(name, transaction).await?;
        }
        let dropped = name.to_owned();
        self.publish(change, move |shared| shared.take_view(&dropped)).await?;
        Ok(Outcome::Done(format!("dropped anonymization view {name}")))
    }

    /// Whether there is an anonymization view of this name, or one that is kept and could not be made again.
    fn is_view(&self, name: &str) -> Result<bool, SqlError> {
        let (None, Some(data)) = (self.shared.view(name), &self.shared.data) else {
            return Ok(self.shared.view(name).is_some());
        };
        let snapshot = data.store.read()?;
        Ok(matches!(kept(&snapshot, name)?, Some(Makes::AnonymizationView(_))))
    }

    /// What is said of a view once it is kept. One that is unusable is kept too, and an error.
    fn said(
        &self,
        planned: &Planned,
        state: &State,
        before: Option<&Arc<AView>>,
        change: &mut CatalogChange,
        told: &str,
    ) -> Result<Result<String, ViewProblem>, SqlError> {
        // Nobody listens while a folder is opened, and to count the rows of a materialized view is to read it all.
        if self.is_restoring {
            return Ok(described(&planned.definition, state));
        }
        let described = match (state, change.transaction()) {
            (State::Materialized { view, .. }, Some(transaction)) => {
                Ok(described_materialized(&planned.definition, &view.standing(&transaction.change)?))
            }
            _ => described(&planned.definition, state),
        };
        let warnings = self.warnings(planned, state, before)?;
        Ok(described.map(|described| described + told + &warnings))
    }

    /// The plans of a view, over tables as they are now.
    pub(super) async fn plan_anew(&self, view: &AView) -> Result<Planned, SqlError> {
        let definition = &view.definition;
        let query = parse(&definition.query)?.into_iter().next().map(|parsed| parsed.statement);
        let Some(Statement::Sql(query)) = query else {
            return Err(SqlError::UnknownView { name: definition.name.clone() });
        };
        let query = Arc::new(self.plan_query(*query).await?);
        let policies = self.plan_policies(definition).await?;
        Ok(Planned { definition: Arc::clone(definition), query, policies })
    }

    async fn plan_view(&self, statement: &ViewStatement, query: DFStatement) -> Result<Planned, SqlError> {
        let plan = self.plan_query(query).await?;
        let definition = Definition::resolve(statement, plan.schema().as_arrow());
        let definition = Arc::new(definition.map_err(ViewProblem::Definition)?);
        let policies = self.plan_policies(&definition).await?;
        Ok(Planned { definition, query: Arc::new(plan), policies })
    }

    /// The plan of a view's query, which must read tables alone and always give the same.
    async fn plan_query(&self, query: DFStatement) -> Result<LogicalPlan, SqlError> {
        let plan = self.shared.owner.state().statement_to_plan(query).await?;
        check_sources(&plan)?;
        Ok(plan)
    }

    async fn plan_policies(&self, definition: &Definition) -> Result<Option<Arc<LogicalPlan>>, SqlError> {
        let Some(policy) = &definition.policy else { return Ok(None) };
        let plan = self.shared.owner.table(policy.table.clone()).await?.into_unoptimized_plan();
        check_sources(&plan)?;
        Ok(Some(Arc::new(plan)))
    }

    fn owner(&self) -> Owner {
        let calendar = Arc::clone(&self.shared.calendar);
        Owner {
            session: self.shared.owner.state(),
            generations: self.shared.generations.clone(),
            today: Arc::new(move || calendar.today()),
        }
    }

    /// Builds a version. What the data do not allow makes the view unusable.
    async fn state(&self, planned: &Planned) -> Result<State, SqlError> {
        match self.version(planned).await {
            Ok(Built { version, digest, .. }) => {
                let (query, policies) = (Arc::clone(&planned.query), planned.policies.clone());
                Ok(State::Usable { version: Arc::new(version), query, policies, digest })
            }
            Err(SqlError::View(
                problem @ (ViewProblem::Unreachable(_)
                | ViewProblem::NullIdentifiers { .. }
                | ViewProblem::Unverified(_)
                | ViewProblem::Stale),
            )) => Ok(State::unusable(problem.to_string())),
            // A view that a data folder keeps is there, whatever became of its tables.
            Err(error) if self.is_restoring => Ok(State::unusable(error.to_string())),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn version(&self, planned: &Planned) -> Result<Built, SqlError> {
        self.version_in(&self.shared.owner, planned).await
    }

    /// A version of what a session of the owner reads.
    pub(super) async fn version_in(&self, owner: &SessionContext, planned: &Planned) -> Result<Built, SqlError> {
        let Planned { definition, query, policies } = planned;
        let plans: Vec<&LogicalPlan> = std::iter::once(query.as_ref()).chain(policies.as_deref()).collect();
        let fingerprint = Fingerprint::of(&plans, &self.shared.generations)?;
        let mut choices = Vec::new();
        let read_policies = match (policies, &definition.policy) {
            (Some(plan), Some(reference)) => {
                let frame = owner.execute_logical_plan(plan.as_ref().clone()).await?;
                choices = frame.collect().await.map_err(SqlError::while_running)?;
                let columns: Vec<String> = definition.columns.iter().map(|column| column.name.clone()).collect();
                let read = Policies::read(&choices, reference, &columns).map_err(ViewProblem::Policy)?;
                Some(Arc::new(read))
            }
            _ => None,
        };
        let failed = |error| ViewProblem::of_query(&definition.name, &error);
        let frame = owner.execute_logical_plan(query.as_ref().clone()).await.map_err(failed)?;
        let schema = Arc::new(frame.schema().as_arrow().clone());
        let batches = frame.collect().await.map_err(failed)?;
        let schema = batches.first().map_or(schema, RecordBatch::schema);
        let rows = concat_batches(&schema, &batches).map_err(|error| failed(error.into()))?;
        // The rows of a materialized view are the store's.
        let most_kept_bytes = if definition.is_materialized { 0 } else { self.options().most_kept_bytes() };
        let number = self.shared.next_version.fetch_add(1, Ordering::Relaxed);
        let (definition, shared, progress) =
            (Arc::clone(definition), Arc::clone(&self.shared), Arc::clone(&self.progress));
        let is_compared =
            self.shared.data.is_some() && !definition.is_materialized || !fingerprint.counts_all_changes();
        let built = tokio::task::spawn_blocking(move || {
            let hierarchies = shared.hierarchies.read().unwrap_or_else(PoisonError::into_inner);
            let trees = Trees::Catalog(&hierarchies);
            let policies = read_policies.as_ref();
            let sources = Sources { definition: &definition, policies, trees, fingerprint, most_kept_bytes, number };
            let version = build(sources, &rows, progress.as_ref())?;
            let digest = is_compared.then(|| Digest::of(&version, &rows, &choices, &hierarchies)).flatten();
            Ok(Built { version, rows, digest })
        });
        built.await.map_err(|_| ViewProblem::Query {
            view: planned.definition.name.clone(),
            kind: "a fault of kohort stopped it",
        })?
    }
}

/// Whether a plan reads tables alone, and always gives the same.
fn check_sources(plan: &LogicalPlan) -> Result<(), SqlError> {
    let mut read = None;
    let mut is_constant = true;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(view) = source_as_provider(&scan.source)?.downcast_ref::<AView>()
        {
            read = Some(view.definition.name.clone());
        }
        for expression in node.expressions() {
            // What says the same within a statement, such as now(), may say something else in the next.
            let changes = expression.exists(|part| match part {
                Expr::ScalarFunction(call) => Ok(call.func.signature().volatility != Volatility::Immutable),
                _ => Ok(false),
            })?;
            is_constant &= !changes && !expression.is_volatile();
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    match read {
        Some(name) => Err(SqlError::ViewOnView { name }),
        None if !is_constant => Err(SqlError::Volatile),
        None => Ok(()),
    }
}

impl Shared {
    /// Lets everybody know of a view, in place of another.
    fn put_view(&self, view: Arc<AView>, replaced: Option<Arc<AView>>) {
        let name = view.definition.name.clone();
        self.register(&TableReference::bare(name.as_str()), Arc::clone(&view) as _);
        // As with the owner's catalog, whoever changes it has the turn.
        let _ = self.analyst.deregister_table(TableReference::bare(name.as_str()));
        let _ = self.analyst.register_table(TableReference::bare(name.as_str()), Arc::clone(&view) as _);
        self.unfollowed().remove(&name);
        self.views.write().unwrap_or_else(PoisonError::into_inner).insert(name, view);
        // Prepared statements still hold the one before.
        if let Some(replaced) = replaced {
            replaced.set_state(State::unusable("it was replaced"));
        }
    }

    /// Takes a view away from everybody.
    fn take_view(&self, name: &str) {
        self.unfollowed().remove(name);
        let Some(view) = self.views.write().unwrap_or_else(PoisonError::into_inner).remove(name) else { return };
        view.set_state(State::unusable("it was dropped"));
        for context in [&self.owner, &self.analyst] {
            // What is not there need not go.
            let _ = context.deregister_table(TableReference::bare(name));
        }
    }
}

impl Transaction {
    /// Refuses to make a view that is kept where another of its name is, one that could not be made again.
    fn check_lost(&self, statement: &ViewStatement) -> Result<(), SqlError> {
        let name = statement.name.clone();
        match self.kept(&name)? {
            Some(Makes::AnonymizationView(lost)) if lost.materialized != statement.materialized => {
                Err(SqlError::Taken { name })
            }
            _ => Ok(()),
        }
    }
}

/// What is said of a materialized view that was made.
fn described_materialized(definition: &Definition, standing: &Standing) -> String {
    let mut message = format!(
        "materialized anonymization view {}: {} in {}, loss {:.4}",
        definition.name,
        counted(standing.n_shown as usize, "row"),
        if standing.n_classes == 1 { "1 class".to_owned() } else { format!("{} classes", standing.n_classes) },
        standing.ncp,
    );
    if standing.n_hidden > 0 {
        message += &format!("; {} hidden", counted(standing.n_hidden as usize, "row"));
    }
    message
}

/// What is said of a view that was made. One that is unusable is there, and an error.
fn described(definition: &Definition, state: &State) -> Result<String, ViewProblem> {
    let name = &definition.name;
    let version = match state {
        State::Materialized { .. } => return Ok(format!("materialized anonymization view {name}")),
        State::Unusable { reason, .. } => {
            return Err(ViewProblem::Unusable { view: name.clone(), reason: reason.clone() });
        }
        State::Stale(_) => return Err(ViewProblem::Stale),
        State::Usable { version, .. } => version,
    };
    let summary = &version.summary;
    let mut message = format!(
        "anonymization view {name}: {} in {}, k = {}, loss {:.4}",
        counted(summary.n_rows as usize, "row"),
        if summary.n_classes == 1 { "1 class".to_owned() } else { format!("{} classes", summary.n_classes) },
        summary.k,
        summary.ncp,
    );
    if summary.n_denied > 0 {
        message += &format!("; {} left out, for no policy speaks of them", counted(summary.n_denied as usize, "row"));
    }
    if summary.n_left_over > 0 {
        message += &format!("; {} left over", counted(summary.n_left_over as usize, "row"));
    }
    Ok(message)
}
