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
    AView, Definition, Digest, Fingerprint, Owner, Sources, Standing, State, Trees, Version, ViewError, build,
};

/// A definition and the plans it reads by.
pub(in crate::engine) struct Planned {
    pub(in crate::engine) definition: Arc<Definition>,
    pub(in crate::engine) query: Arc<LogicalPlan>,
    pub(in crate::engine) policies: Option<Arc<LogicalPlan>>,
}

/// A version, and what it was made from.
pub(in crate::engine) struct Built {
    pub(in crate::engine) version: Version,
    pub(in crate::engine) rows: RecordBatch,
    /// What it shows, where that has to be compared later.
    digest: Option<Digest>,
}

pub(in crate::engine) async fn create_view(
    session: &Session,
    statement: ViewStatement,
    text: &str,
) -> Result<Outcome, SqlError> {
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
    // The name may have been taken while this waited for its turn.
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

/// The view that a new one replaces, where it may.
fn replaced_by(session: &Session, statement: &ViewStatement) -> Result<Option<Arc<AView>>, SqlError> {
    let name = statement.name.clone();
    let Some(known) = session.shared.view(&name) else {
        let is_lost = session.shared.unfollowed().contains_key(&name) && !session.is_restoring;
        let is_taken = is_lost || session.shared.owner.table_exist(TableReference::bare(name.as_str()))?;
        return if is_taken { Err(SqlError::Taken { name }) } else { Ok(None) };
    };
    if !statement.or_replace {
        return Err(SqlError::Exists { name });
    }
    // Whoever reads it would hold two partitions of the same persons.
    match (known.definition.clauses.is_materialized, statement.clauses.is_materialized) {
        (true, _) => Err(SqlError::Kept { name }),
        (false, true) => Err(SqlError::Computed { name }),
        (false, false) => Ok(Some(known)),
    }
}

pub(in crate::engine) async fn refresh_view(session: &Session, name: &str, how: Refresh) -> Result<Outcome, SqlError> {
    if session.shared.view(name).is_none() {
        // It runs statements, and this is one.
        Box::pin(folder::restore_lost(session, name)).await?;
    }
    let unknown = || SqlError::UnknownView { name: name.to_owned() };
    let view = session.shared.view(name).ok_or_else(unknown)?;
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
    // It may have been dropped or replaced while this waited for its turn.
    if !session.shared.view(name).is_some_and(|known| Arc::ptr_eq(&known, &view)) {
        return Err(unknown());
    }
    if let Some(transaction) = change.transaction().filter(|_| !view.definition.clauses.is_materialized) {
        transaction.keep_pinned(name, &state)?;
    }
    let said = said(session, &planned, &state, Some(&view), &mut change, &told)?;
    // The old one must not follow once the new one is kept.
    catalog::publish(session, change, move |_| view.set_state(state)).await?;
    Ok(Outcome::Done(said?))
}

/// Drops a view, also one that a data folder keeps and could not make again.
pub(in crate::engine) async fn drop_view(session: &Session, name: &str, if_exists: bool) -> Result<Outcome, SqlError> {
    // Whom it were granted meanwhile, another view of this name would be granted.
    let _granting = session.shared.granting.lock().await;
    let (unknown, is_there) = (SqlError::UnknownView { name: name.to_owned() }, is_view(session, name)?);
    if !is_there && session.shared.owner.table_exist(TableReference::bare(name))? {
        return Err(unknown);
    }
    // First: were it to end in between, another view of this name must not be theirs who read this one. Some may hold
    // one that is gone.
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

/// Whether there is an anonymization view of this name, or one that is kept and could not be made again.
fn is_view(session: &Session, name: &str) -> Result<bool, SqlError> {
    let (None, Some(data)) = (session.shared.view(name), &session.shared.data) else {
        return Ok(session.shared.view(name).is_some());
    };
    let snapshot = data.store.read()?;
    Ok(matches!(kept(&snapshot, name)?, Some(Makes::AnonymizationView(_))))
}

/// What is said of a view once it is kept. One that is unusable is kept too, and an error.
fn said(
    session: &Session,
    planned: &Planned,
    state: &State,
    before: Option<&Arc<AView>>,
    change: &mut CatalogChange,
    told: &str,
) -> Result<Result<String, ViewError>, SqlError> {
    // Nobody listens while a folder is opened, and to count the rows of a materialized view is to read it all.
    if session.is_restoring {
        return Ok(described(&planned.definition, state));
    }
    let described = match (state, change.transaction()) {
        (State::Materialized { view, .. }, Some(transaction)) => {
            Ok(described_materialized(&planned.definition, &view.standing(&transaction.change)?))
        }
        _ => described(&planned.definition, state),
    };
    let warnings = warnings::warnings(session, planned, state, before)?;
    Ok(described.map(|described| described + told + &warnings))
}

/// The plans of a view, over tables as they are now.
pub(in crate::engine) async fn plan_anew(session: &Session, view: &AView) -> Result<Planned, SqlError> {
    let definition = &view.definition;
    let query = parse(&definition.query)?.into_iter().next().map(|parsed| parsed.statement);
    let Some(Statement::Sql(query)) = query else {
        return Err(SqlError::UnknownView { name: definition.name.clone() });
    };
    let query = Arc::new(plan_query(session, *query).await?);
    let policies = plan_policies(session, definition).await?;
    Ok(Planned { definition: Arc::clone(definition), query, policies })
}

async fn plan_view(session: &Session, statement: &ViewStatement, query: DFStatement) -> Result<Planned, SqlError> {
    let plan = plan_query(session, query).await?;
    let definition = Definition::resolve(statement, plan.schema().as_arrow());
    let definition = Arc::new(definition.map_err(ViewError::Definition)?);
    let policies = plan_policies(session, &definition).await?;
    Ok(Planned { definition, query: Arc::new(plan), policies })
}

/// The plan of a view's query, which must read tables alone and always give the same.
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

/// Builds a version. What the data do not allow makes the view unusable.
async fn state(session: &Session, planned: &Planned) -> Result<State, SqlError> {
    match version(session, planned).await {
        Ok(Built { version, digest, .. }) => {
            let (query, policies) = (Arc::clone(&planned.query), planned.policies.clone());
            Ok(State::Usable { version: Arc::new(version), query, policies, digest })
        }
        Err(SqlError::View(
            problem @ (ViewError::Unreachable(_)
            | ViewError::NullIdentifiers { .. }
            | ViewError::Unverified(_)
            | ViewError::Stale),
        )) => Ok(State::unusable(problem.to_string())),
        // A view that a data folder keeps is there, whatever became of its tables.
        Err(error) if session.is_restoring => Ok(State::unusable(error.to_string())),
        Err(error) => Err(error),
    }
}

pub(in crate::engine) async fn version(session: &Session, planned: &Planned) -> Result<Built, SqlError> {
    version_in(session, &session.shared.owner, planned).await
}

/// A version of what a session of the owner reads.
pub(in crate::engine) async fn version_in(
    session: &Session,
    owner: &SessionContext,
    planned: &Planned,
) -> Result<Built, SqlError> {
    let Planned { definition, query, policies } = planned;
    let plans: Vec<&LogicalPlan> = std::iter::once(query.as_ref()).chain(policies.as_deref()).collect();
    let fingerprint = Fingerprint::of(&plans, &session.shared.generations)?;
    let mut choices = Vec::new();
    let read_policies = match (policies, &definition.clauses.policy) {
        (Some(plan), Some(reference)) => {
            let frame = owner.execute_logical_plan(plan.as_ref().clone()).await?;
            choices = frame.collect().await.map_err(SqlError::while_running)?;
            let columns: Vec<String> = definition.columns.iter().map(|column| column.name.clone()).collect();
            let read = Policies::read(&choices, reference, &columns).map_err(ViewError::Policy)?;
            Some(Arc::new(read))
        }
        _ => None,
    };
    let failed = |error| ViewError::of_query(&definition.name, &error);
    let frame = owner.execute_logical_plan(query.as_ref().clone()).await.map_err(failed)?;
    let schema = Arc::new(frame.schema().as_arrow().clone());
    let batches = frame.collect().await.map_err(failed)?;
    let schema = batches.first().map_or(schema, RecordBatch::schema);
    let rows = concat_batches(&schema, &batches).map_err(|error| failed(error.into()))?;
    // The rows of a materialized view are the store's.
    let most_kept_bytes = if definition.clauses.is_materialized { 0 } else { session.options().most_kept_bytes() };
    let number = session.shared.next_version.fetch_add(1, Ordering::Relaxed);
    let (definition, shared, progress) =
        (Arc::clone(definition), Arc::clone(&session.shared), Arc::clone(&session.progress));
    let is_compared =
        session.shared.data.is_some() && !definition.clauses.is_materialized || !fingerprint.counts_all_changes();
    let built = tokio::task::spawn_blocking(move || {
        let hierarchies = shared.hierarchies.read().unwrap_or_else(PoisonError::into_inner);
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
            Some(Makes::AnonymizationView(lost))
                if lost.clauses.is_materialized != statement.clauses.is_materialized =>
            {
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
fn described(definition: &Definition, state: &State) -> Result<String, ViewError> {
    let name = &definition.name;
    let version = match state {
        State::Materialized { .. } => return Ok(format!("materialized anonymization view {name}")),
        State::Unusable { reason, .. } => {
            return Err(ViewError::Unusable { view: name.clone(), reason: reason.clone() });
        }
        State::Stale(_) => return Err(ViewError::Stale),
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
