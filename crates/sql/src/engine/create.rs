//! Making, refreshing and dropping views.
//!
//! What a view can't be is an error, and nothing is made. What it can't be *yet*, because the data do not reach what it
//! asks for, makes a view that is there and unusable: it says why to everybody who reads it, until a REFRESH.

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
use kohort_core::changing::UNSAFE;

use super::Session;
use super::session::{Outcome, counted};
use crate::SqlError;
use crate::parser::{Changes, Statement, ViewStatement, parse};
use crate::policy::Policies;
use crate::view::{
    AView, Definition, Digest, Fingerprint, Force, Owner, Sources, State, Trees, Version, ViewProblem, build,
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
    pub(super) async fn create_view(&mut self, statement: ViewStatement) -> Result<Outcome, SqlError> {
        let name = statement.name.clone();
        let known = self.shared.view(&name);
        let taken = known.is_some() && !statement.or_replace
            || known.is_none() && self.context.table_exist(TableReference::bare(name.as_str()))?;
        if taken {
            return Err(SqlError::Exists { name });
        }
        let query = DFStatement::Statement(Box::new(SqlStatement::Query(statement.query.clone())));
        let planned = self.plan_view(&statement, query).await?;
        let is_replaced = known.as_ref().is_some_and(|view| matches!(view.state(), State::Materialized { .. }));
        if is_replaced && !self.is_restoring {
            return Err(SqlError::Kept { name });
        }
        let (state, _turn) = match planned.definition.is_materialized {
            true => self.materialize(&planned).await?,
            false => (self.state(&planned).await?, None),
        };
        let mut message = self.described(&planned.definition, &state);
        if let Ok(message) = &mut message {
            *message += &self.warnings(&planned, &state, known.as_ref())?;
        }
        let view = Arc::new(AView::new(planned.definition, state, self.owner()));
        for context in [&self.shared.owner, &self.shared.analyst] {
            context.deregister_table(TableReference::bare(name.as_str()))?;
            context.register_table(TableReference::bare(name.as_str()), Arc::clone(&view) as _)?;
        }
        self.shared.views.write().unwrap_or_else(PoisonError::into_inner).insert(name, view);
        // Prepared statements still hold the one before.
        if let Some(replaced) = known {
            replaced.set_state(State::Unusable("it was replaced".to_owned()));
        }
        Ok(Outcome::Done(message?))
    }

    pub(super) async fn refresh_view(&mut self, name: &str, force: Force) -> Result<Outcome, SqlError> {
        if self.shared.view(name).is_none() {
            // It runs statements, and this is one.
            Box::pin(self.restore_lost(name)).await?;
        }
        let view = self.shared.view(name).ok_or_else(|| SqlError::UnknownView { name: name.to_owned() })?;
        let planned = self.plan_anew(&view).await?;
        let (state, _turn) = match view.state() {
            State::Materialized { view: old, .. } => {
                let (state, turn) = self.rematerialize(&planned, Arc::clone(&view), old, force).await?;
                (state, Some(turn))
            }
            State::Usable { .. } | State::Unusable(_) | State::Stale(_) => {
                let state = self.state(&planned).await?;
                self.keep_pinned(name, &state).await?;
                (state, None)
            }
        };
        let mut message = self.described(&view.definition, &state);
        if let Ok(message) = &mut message {
            *message += &self.warnings(&planned, &state, Some(&view))?;
        }
        view.set_state(state);
        Ok(Outcome::Done(message?))
    }

    pub(super) fn drop_view(&self, name: &str, if_exists: bool) -> Result<Outcome, SqlError> {
        let removed = self.shared.views.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        match removed {
            Some(view) => view.set_state(State::Unusable("it was dropped".to_owned())),
            None if if_exists => return Ok(Outcome::Done(format!("there is no view {name}"))),
            None => return Err(SqlError::UnknownView { name: name.to_owned() }),
        }
        for context in [&self.shared.owner, &self.shared.analyst] {
            context.deregister_table(TableReference::bare(name))?;
        }
        Ok(Outcome::Done(format!("dropped anonymization view {name}")))
    }

    /// What is said of a view that was made.
    fn described(&self, definition: &Definition, state: &State) -> Result<String, SqlError> {
        let (State::Materialized { view, .. }, Some(data)) = (state, &self.shared.data) else {
            return Ok(described(definition, state)?);
        };
        // To count its rows is to read it all, and nobody listens while a folder is opened.
        if self.is_restoring {
            return Ok(String::new());
        }
        let snapshot = data.store.read()?;
        let standing = view.standing(&snapshot)?;
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
        if definition.changes == Changes::Paper {
            message += &format!("\nwarning: {UNSAFE}");
        }
        Ok(message)
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
            )) => Ok(State::Unusable(problem.to_string())),
            // A view that a data folder keeps is there, whatever became of its tables.
            Err(error) if self.is_restoring => Ok(State::Unusable(error.to_string())),
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

/// What is said of a view that was made. One that is unusable is there, and an error.
fn described(definition: &Definition, state: &State) -> Result<String, ViewProblem> {
    let name = &definition.name;
    let version = match state {
        State::Materialized { .. } => return Ok(format!("materialized anonymization view {name}")),
        State::Unusable(reason) => {
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
