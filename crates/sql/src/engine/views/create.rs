//! Making, refreshing and dropping views.
//!
//! If the definition of a view is wrong, there is an error and no view. If only the data do not reach what the view asks for,
//! the view is made but unusable: it tells everybody who reads it why, until a REFRESH succeeds. An unusable view never replaces
//! a usable one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::TableReference;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::DataFusionError;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use datafusion::sql::parser::Statement as DFStatement;
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;

use super::materialize;
use super::warnings::{self, told_of_refresh};
use crate::SqlError;
use crate::engine::change::catalog::{self, CatalogChange};
use crate::engine::change::transactions::Transaction;
use crate::engine::folder::pinned::Pinned;
use crate::engine::folder::{self, Makes, kept};
use crate::engine::session::access;
use crate::engine::session::{Outcome, counted};
use crate::engine::{Session, Shared};
use crate::parser::{Refresh, Statement, ViewStatement, parse};
use crate::policy::Policies;
use crate::view::{
    AView, Definition, Digest, Owner, Sources, Standing, State, Trees, Version, ViewError, ViewPlans, build,
};

/// The definition of a view, and the plans that read its rows and its choices.
pub(crate) struct Planned {
    pub(crate) definition: Arc<Definition>,
    pub(crate) plans: ViewPlans,
}

/// A version, and the rows it was made from.
pub(crate) struct Built {
    pub(crate) version: Version,
    pub(crate) rows: RecordBatch,
    /// The digest of what it shows, if that must be compared later.
    digest: Option<Digest>,
}

pub(crate) async fn create_view(session: &Session, statement: ViewStatement, text: &str) -> Result<Outcome, SqlError> {
    replaced_by(session, &statement)?;
    let query = DFStatement::Statement(Box::new(SqlStatement::Query(statement.query.clone())));
    let planned = plan_view(session, &statement, query).await?;
    let (mut change, mut state) = match statement.clauses.is_materialized {
        true => materialize::materialize(session, &planned).await?,
        false => {
            let state = state(session, &planned).await?;
            (catalog::change_catalog(session).await?, state)
        }
    };
    // Check again, because the name may have been taken before this turn.
    let replaced = replaced_by(session, &statement)?;
    if let (Some(replaced), State::Unusable { reason, was_shown }) = (&replaced, &mut state) {
        let before = replaced.state();
        *was_shown = before.was_shown();
        if !matches!(before, State::Unusable { .. }) {
            let (view, reason) = (statement.name, reason.clone());
            return Err(ViewError::NotReplaced { view, reason }.into());
        }
    }
    if let Some(transaction) = change.transaction().filter(|_| !session.is_restoring) {
        transaction.check_lost(&statement)?;
        transaction.keep_statement(&statement.name, text, Pinned::of(&state))?;
    }
    let said = said(session, &planned, &state, replaced.as_ref(), &mut change, "")?;
    let view = Arc::new(AView::new(planned.definition, state, owner(session)));
    catalog::publish(session, change, move |shared| shared.put_view(view, replaced)).await?;
    Ok(Outcome::Done(said?))
}

/// The view that a new one replaces. Refuses a name that is taken, and a view that can't be replaced.
fn replaced_by(session: &Session, statement: &ViewStatement) -> Result<Option<Arc<AView>>, SqlError> {
    let name = statement.name.clone();
    let Some(known) = session.shared.view(&name) else {
        let is_lost = session.shared.unfollowed.lock().contains_key(&name) && !session.is_restoring;
        let is_taken = is_lost || session.shared.owner.table_exist(TableReference::bare(name.as_str()))?;
        return if is_taken { Err(SqlError::Taken { name }) } else { Ok(None) };
    };
    if !statement.or_replace {
        return Err(SqlError::Exists { name });
    }
    // A reader would hold two partitions of the same persons, which can be intersected.
    match (known.definition.clauses.is_materialized, statement.clauses.is_materialized) {
        (true, _) => Err(SqlError::Kept { name }),
        (false, true) => Err(SqlError::Computed { name }),
        (false, false) => Ok(Some(known)),
    }
}

pub(crate) async fn refresh_view(session: &Session, name: &str, how: Refresh) -> Result<Outcome, SqlError> {
    if session.shared.view(name).is_none() {
        // Boxed, because this runs kept statements, and running one can lead here again.
        Box::pin(folder::restore_lost(session, name)).await?;
    }
    let view = session.shared.known_view(name)?;
    let planned = plan_anew(session, &view).await?;
    let mut told = String::new();
    let (mut change, state) = match view.state() {
        State::Materialized { view: old, .. } => {
            let (change, state, of_refresh) = materialize::rematerialize(session, &planned, old, how).await?;
            told = told_of_refresh(of_refresh);
            (change, state)
        }
        State::Usable { .. } | State::Unusable { .. } | State::Stale(_) if how != Refresh::Whole => {
            return Err(SqlError::NotMaterialized { name: name.to_owned() });
        }
        State::Usable { .. } | State::Unusable { .. } | State::Stale(_) => {
            let mut state = state(session, &planned).await?;
            if let State::Unusable { was_shown, .. } = &mut state {
                *was_shown = view.state().was_shown();
            }
            (catalog::change_catalog(session).await?, state)
        }
    };
    // The view may have been dropped or replaced before this turn.
    if !Arc::ptr_eq(&session.shared.known_view(name)?, &view) {
        return Err(SqlError::UnknownView { name: name.to_owned() });
    }
    if let Some(transaction) = change.transaction().filter(|_| !view.definition.clauses.is_materialized) {
        transaction.keep_pinned(name, &state)?;
    }
    let said = said(session, &planned, &state, Some(&view), &mut change, &told)?;
    // Replace the state right after the commit, because the old view must not follow any more.
    catalog::publish(session, change, move |_| view.set_state(state)).await?;
    Ok(Outcome::Done(said?))
}

/// Drops a view, even if the data folder keeps it and could not make it again.
pub(crate) async fn drop_view(session: &Session, name: &str, if_exists: bool) -> Result<Outcome, SqlError> {
    // No grant meanwhile: it would later count for another view of this name.
    let _granting = session.shared.granting.lock().await;
    let (unknown, is_there) = (SqlError::UnknownView { name: name.to_owned() }, is_view(session, name)?);
    if !is_there && session.shared.owner.table_exist(TableReference::bare(name))? {
        return Err(unknown);
    }
    // Revoke before dropping: after a crash in between, a new view of this name must not inherit the old grants. Do so even
    // if the view is gone, because somebody may still hold it.
    access::revoke_from_all(session, name).await?;
    if !is_there {
        return if if_exists { Ok(Outcome::Done(format!("there is no view {name}"))) } else { Err(unknown) };
    }
    let mut change = catalog::change_catalog(session).await?;
    if let Some(transaction) = change.transaction() {
        transaction.forget_statement(name)?;
        materialize::unmaterialize(name, transaction).await?;
    }
    let dropped = name.to_owned();
    catalog::publish(session, change, move |shared| shared.take_view(&dropped)).await?;
    Ok(Outcome::Done(format!("dropped anonymization view {name}")))
}

/// Whether there is an anonymization view of this name, including one that could not be made again.
fn is_view(session: &Session, name: &str) -> Result<bool, SqlError> {
    let (None, Some(store)) = (session.shared.view(name), &session.shared.store) else {
        return Ok(session.shared.view(name).is_some());
    };
    let snapshot = store.read()?;
    Ok(matches!(kept(&snapshot, name)?, Some(Makes::AnonymizationView(_))))
}

/// The message about a view once it is committed. For an unusable view, which is committed too, it is an error.
fn said(
    session: &Session,
    planned: &Planned,
    state: &State,
    before: Option<&Arc<AView>>,
    change: &mut CatalogChange,
    told: &str,
) -> Result<Result<String, ViewError>, SqlError> {
    // Nobody reads the message while a folder is opened, and counting the rows of a materialized view reads all of it.
    if session.is_restoring {
        return Ok(described(&planned.definition, state, None));
    }
    let standing = match (state, change.transaction()) {
        (State::Materialized { view, .. }, Some(transaction)) => Some(view.standing(&transaction.change)?),
        _ => None,
    };
    let described = described(&planned.definition, state, standing.as_ref());
    let warnings = warnings::warnings(session, planned, state, before)?;
    Ok(described.map(|described| described + told + &warnings))
}

/// Plans a view anew, over the tables as they are now.
pub(crate) async fn plan_anew(session: &Session, view: &AView) -> Result<Planned, SqlError> {
    let definition = &view.definition;
    let query = parse(&definition.query)?.into_iter().next().map(|parsed| parsed.statement);
    let Some(Statement::Sql(query)) = query else {
        return Err(SqlError::UnknownView { name: definition.name.clone() });
    };
    let query = Arc::new(plan_query(session, *query).await?);
    let policies = plan_policies(session, definition).await?;
    Ok(Planned { definition: Arc::clone(definition), plans: ViewPlans { query, policies } })
}

async fn plan_view(session: &Session, statement: &ViewStatement, query: DFStatement) -> Result<Planned, SqlError> {
    let plan = plan_query(session, query).await?;
    let definition = Definition::resolve(statement, plan.schema().as_arrow());
    let definition = Arc::new(definition.map_err(ViewError::Definition)?);
    let policies = plan_policies(session, &definition).await?;
    Ok(Planned { definition, plans: ViewPlans { query: Arc::new(plan), policies } })
}

/// The plan of a view's query, which must read only tables and always give the same rows.
async fn plan_query(session: &Session, query: DFStatement) -> Result<LogicalPlan, SqlError> {
    let plan = session.shared.owner.state().statement_to_plan(query).await?;
    check_sources(&plan)?;
    Ok(plan)
}

async fn plan_policies(session: &Session, definition: &Definition) -> Result<Option<Arc<LogicalPlan>>, SqlError> {
    let Some(policy) = &definition.clauses.policy else { return Ok(None) };
    let plan = session.shared.owner.table(policy.table.clone()).await?.into_unoptimized_plan();
    check_sources(&plan)?;
    Ok(Some(Arc::new(plan)))
}

fn owner(session: &Session) -> Owner {
    let calendar = Arc::clone(&session.shared.calendar);
    Owner {
        session: session.shared.owner.state(),
        generations: session.shared.generations.clone(),
        today: Arc::new(move || calendar.today()),
    }
}

/// Builds a version. If the data do not reach what the view asks for, the view is unusable.
async fn state(session: &Session, planned: &Planned) -> Result<State, SqlError> {
    match version(session, &session.shared.owner, planned).await {
        Ok(Built { version, digest, .. }) => {
            Ok(State::Usable { version: Arc::new(version), plans: planned.plans.clone(), digest })
        }
        Err(SqlError::View(
            problem @ (ViewError::Unreachable(_)
            | ViewError::NullIdentifiers { .. }
            | ViewError::Unverified(_)
            | ViewError::Stale),
        )) => Ok(State::unusable(problem.to_string())),
        // A view that a data folder keeps is never missing, whatever is wrong with its tables.
        Err(error) if session.is_restoring => Ok(State::unusable(error.to_string())),
        Err(error) => Err(error),
    }
}

/// A version of the rows that this session of the owner reads.
pub(crate) async fn version(session: &Session, owner: &SessionContext, planned: &Planned) -> Result<Built, SqlError> {
    let Planned { definition, plans } = planned;
    let fingerprint = plans.fingerprint(&session.shared.generations)?;
    let mut choices = Vec::new();
    let read_policies = match (&plans.policies, &definition.clauses.policy) {
        (Some(plan), Some(reference)) => {
            let frame = owner.execute_logical_plan(plan.as_ref().clone()).await?;
            choices = frame.collect().await.map_err(SqlError::while_running)?;
            let columns: Vec<String> = definition.columns.iter().map(|column| column.name.clone()).collect();
            let read = Policies::read(&choices, reference, &columns).map_err(ViewError::Policy)?;
            Some(Arc::new(read))
        }
        _ => None,
    };
    let rows = all_rows(owner, plans.query.as_ref().clone()).await;
    let rows = rows.map_err(|error| ViewError::of_query(&definition.name, &error))?;
    // The store keeps the rows of a materialized view.
    let most_kept_bytes = if definition.clauses.is_materialized { 0 } else { session.options().most_kept_bytes() };
    let number = session.shared.next_version.fetch_add(1, Ordering::Relaxed);
    let (definition, shared, progress) =
        (Arc::clone(definition), Arc::clone(&session.shared), Arc::clone(&session.progress));
    let is_compared =
        session.shared.store.is_some() && !definition.clauses.is_materialized || !fingerprint.counts_all_changes();
    let built = tokio::task::spawn_blocking(move || {
        let hierarchies = shared.hierarchies.read();
        let trees = Trees::Catalog(&hierarchies);
        let policies = read_policies.as_ref();
        let sources = Sources { definition: &definition, policies, trees, fingerprint, most_kept_bytes, number };
        let version = build(sources, &rows, progress.as_ref())?;
        let digest = is_compared.then(|| Digest::of(&version, &rows, &choices, &hierarchies)).flatten();
        Ok(Built { version, rows, digest })
    });
    built
        .await
        .map_err(|_| ViewError::Query { view: planned.definition.name.clone(), kind: "a fault of kohort stopped it" })?
}

/// The rows of a plan as one batch.
pub(crate) async fn all_rows(context: &SessionContext, plan: LogicalPlan) -> Result<RecordBatch, DataFusionError> {
    let frame = context.execute_logical_plan(plan).await?;
    let schema = Arc::new(frame.schema().as_arrow().clone());
    let batches = frame.collect().await?;
    // Batches may know better than the plan which columns have no NULL.
    let schema = batches.first().map_or(schema, RecordBatch::schema);
    Ok(concat_batches(&schema, &batches)?)
}

/// Refuses a plan that reads another anonymization view, or that does not always give the same rows.
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
            // A function such as now() gives the same within a statement, but something else in the next.
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
    /// Puts a view into the catalogs, in place of another one.
    fn put_view(&self, view: Arc<AView>, replaced: Option<Arc<AView>>) {
        let name = view.definition.name.clone();
        self.register(&TableReference::bare(name.as_str()), Arc::clone(&view) as _);
        // This can't fail: nobody else changes the catalog in this turn.
        let _ = self.analyst.deregister_table(TableReference::bare(name.as_str()));
        let _ = self.analyst.register_table(TableReference::bare(name.as_str()), Arc::clone(&view) as _);
        self.unfollowed.lock().remove(&name);
        self.views.write().insert(name, view);
        // Prepared statements still hold the old view.
        if let Some(replaced) = replaced {
            replaced.set_state(State::unusable("it was replaced"));
        }
    }

    /// Takes a view out of the catalogs.
    fn take_view(&self, name: &str) {
        self.unfollowed.lock().remove(name);
        let Some(view) = self.views.write().remove(name) else { return };
        view.set_state(State::unusable("it was dropped"));
        self.forget_table(name);
    }
}

impl Transaction {
    /// Refuses a view if the data folder keeps another one of its name that could not be made again, and only one of both is
    /// materialized.
    fn check_lost(&self, statement: &ViewStatement) -> Result<(), SqlError> {
        let name = statement.name.clone();
        match self.kept(&name)? {
            Some(Makes::AnonymizationView(lost))
                if lost.clauses.is_materialized != statement.clauses.is_materialized =>
            {
                Err(SqlError::Taken { name })
            }
            _ => Ok(()),
        }
    }
}

/// The message about a view that was made, with figures of a materialized one if they are known; an error if the view is
/// unusable.
fn described(definition: &Definition, state: &State, standing: Option<&Standing>) -> Result<String, ViewError> {
    let name = &definition.name;
    let classes = |n: u64| if n == 1 { "1 class".to_owned() } else { format!("{n} classes") };
    let rows = |n: u64| counted(n as usize, "row");
    let also = |n: u64, what: &str| if n > 0 { format!("; {} {what}", rows(n)) } else { String::new() };
    match (state, standing) {
        (State::Unusable { reason, .. }, _) => Err(ViewError::Unusable { view: name.clone(), reason: reason.clone() }),
        (State::Stale(_), _) => Err(ViewError::Stale),
        (State::Materialized { .. }, None) => Ok(format!("materialized anonymization view {name}")),
        (State::Materialized { .. }, Some(Standing { n_shown, n_classes, ncp, n_hidden, .. })) => Ok(format!(
            "materialized anonymization view {name}: {} in {}, loss {ncp:.4}{}",
            rows(*n_shown),
            classes(*n_classes),
            also(*n_hidden, "hidden"),
        )),
        (State::Usable { version, .. }, _) => {
            let summary = &version.summary;
            Ok(format!(
                "anonymization view {name}: {} in {}, k = {}, loss {:.4}{}{}",
                rows(summary.n_rows),
                classes(summary.n_classes),
                summary.k,
                summary.ncp,
                also(summary.n_denied, "left out, because no choice is about them"),
                also(summary.n_left_over, "left over"),
            ))
        }
    }
}
