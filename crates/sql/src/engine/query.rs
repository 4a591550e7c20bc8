//! Runs DataFusion's statements: queries, options, and changes of rows. Statements that make or drop something are in
//! [`crate::engine::change::catalog`], and changes of stored rows in [`crate::engine::change::stored`].

pub(super) mod aggregates;
pub(super) mod plans;
pub(super) mod point;
pub(super) mod show;
pub(super) mod show_create;
pub(super) mod unplanned;
pub(super) mod utility;

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::catalog::TableProvider;
use datafusion::common::config::ExtensionOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::expr::GroupingSet;
use datafusion::logical_expr::{Expr, LogicalPlan, Statement as PlanStatement};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::DataFrame;
use datafusion::sql::parser::{ResetStatement, Statement as DFStatement};
use futures::TryStreamExt;

use crate::SqlError;
use crate::access::AccessError;
use crate::engine::Session;
use crate::engine::change::catalog;
use crate::engine::change::stored;
use crate::engine::change::transactions::{self, TransactionStep};
use crate::engine::limits::copies::check_copies;
use crate::engine::limits::growth::check_growth;
use crate::engine::session::access;
use crate::engine::session::recorded;
use crate::engine::session::{Outcome, stream_of};
use crate::options::ViewOptions;
use crate::parser::StatementText;
use crate::policy::{Pair, UsedView};
use crate::readers::{Waited, begun};
use crate::role::Role;
use crate::store::StoredTable;
use crate::view::AView;
use crate::worker::Asker;
use aggregates::check_aggregates;
use plans::{changed_table, reads_any, views_of, writes};

/// Runs a statement of DataFusion's.
pub(crate) async fn sql(
    session: &mut Session,
    statement: DFStatement,
    pair: &Pair,
    text: &StatementText,
    views: &mut Vec<UsedView>,
) -> Result<Outcome, SqlError> {
    if let Some(step) = TransactionStep::of(&statement) {
        return transactions::transaction_step(session, step).await;
    }
    session.transaction.check()?;
    if let Some(outcome) = stored::insert_literals(session, &statement).await? {
        return Ok(outcome);
    }
    if let DFStatement::Reset(ResetStatement::Variable(name)) = &statement
        && let Some(option) = name.to_string().to_lowercase().strip_prefix("kohort.")
    {
        return reset(session, option);
    }
    let asked_for = AskedFor { stated: pair, granted: access::granted(session, pair) };
    if let Ok(granted) = &asked_for.granted
        && let Some(outcome) = point::point(session, &statement, granted, views).await
    {
        return Ok(outcome);
    }
    let context = session.scoped(asked_for.pair())?;
    let plan = planned(session, &context, &statement).await?;
    *views = views_of(&plan)?;
    if !views.is_empty() {
        access::granted(session, pair)?;
        access::check_readable(session, views).await?;
    }
    if let Some(name) = changed_table(&plan).filter(|name| session.shared.view(name).is_some()) {
        return Err(SqlError::IsView { name });
    }
    match plan {
        LogicalPlan::Ddl(ddl) => catalog::define(session, &context, ddl, &text.written).await,
        LogicalPlan::Statement(PlanStatement::Execute(_)) => query(session, context, plan, asked_for, views).await,
        LogicalPlan::Statement(statement) => set(session, statement, pair).await,
        LogicalPlan::Dml(dml) => match stored::change_stored(session, &context, &dml, views).await? {
            Some(outcome) => Ok(outcome),
            None => query(session, context, LogicalPlan::Dml(dml), asked_for, views).await,
        },
        plan => query(session, context, plan, asked_for, views).await,
    }
}

/// Sets an option of the session, or prepares a statement.
async fn set(session: &Session, statement: PlanStatement, pair: &Pair) -> Result<Outcome, SqlError> {
    if *pair != Pair::default() {
        return Err(SqlError::NothingAsked);
    }
    if matches!(&statement, PlanStatement::Prepare(prepared) if matches!(*prepared.input, LogicalPlan::Ddl(_))) {
        return Err(SqlError::NotPrepared);
    }
    session.context.execute_logical_plan(LogicalPlan::Statement(statement)).await?.collect().await?;
    Ok(Outcome::Done("done".to_owned()))
}

/// The purpose and recipient of a statement.
struct AskedFor<'a> {
    /// As the statement states them.
    stated: &'a Pair,
    /// As they are granted.
    granted: Result<Pair, AccessError>,
}

impl AskedFor<'_> {
    /// The purpose and recipient to plan with. Those that are not granted are refused only if a view is read.
    fn pair(&self) -> &Pair {
        self.granted.as_ref().unwrap_or(self.stated)
    }
}

/// Runs a query, or a change of rows in a table that is not stored.
async fn query(
    session: &Session,
    mut context: SessionContext,
    plan: LogicalPlan,
    asked_for: AskedFor<'_>,
    views: &mut Vec<UsedView>,
) -> Result<Outcome, SqlError> {
    let pair = asked_for.pair().clone();
    let mut changed = changed_table(&plan);
    let is_prepared = matches!(plan, LogicalPlan::Statement(PlanStatement::Execute(_)));
    let mut turn = None;
    // A statement that changes rows waits for its turn to write instead.
    if (is_prepared || !views.is_empty()) && changed.is_none() {
        // Hold no state of the store while waiting.
        drop(context);
        turn = readers_turn(session).await;
        context = session.scoped(&pair)?;
    }
    let context = without_unread_state(session, context, &plan, &pair)?;
    let context = turn.as_ref().map_or_else(|| context.clone(), |turn| turn.scope(&context));
    let frame = context.execute_logical_plan(plan).await?;
    if is_prepared {
        if session.role == Role::Analyst {
            // Check again, now that the parameters have values.
            check_growth(frame.logical_plan())?;
            check_copies(frame.logical_plan())?;
        }
        *views = views_of(frame.logical_plan())?;
        if views.is_empty() {
            turn = None;
        } else {
            asked_for.granted?;
            access::check_readable(session, views).await?;
        }
        changed = changed_table(frame.logical_plan());
    }
    // A view may get a new version meanwhile. Plan again until all of the answer is of one version.
    let stream = loop {
        let stream = execute(session, frame.clone()).await;
        let seen = views_of(frame.logical_plan())?;
        if seen == *views {
            break said_by_kind(stream?);
        }
        *views = seen;
        access::check_readable(session, views).await?;
    };
    // Tables in memory and files change with the first row that is written, so record the statement now.
    if writes(frame.logical_plan()) {
        recorded::reads_for_change(session, views);
        session.ahead().record().map_err(SqlError::Log)?;
    }
    match (changed, turn) {
        // Rows are changed while the stream is read.
        (Some(name), _) => changed_rows(session, stream, &name).await,
        // With the first rows the statement is answered, and its turn to read views ends.
        (None, _turn) => {
            tokio::select! {
                biased;
                problem = access::until_revoked(session, views, pair) => Err(problem.into()),
                begun = begun(stream) => Ok(Outcome::Rows(begun?)),
            }
        }
    }
}

/// The rows of a plan. A worker computes them for an analyst, if the engine has workers.
async fn execute(session: &Session, frame: DataFrame) -> Result<SendableRecordBatchStream, DataFusionError> {
    match (session.role, session.shared.workers.get()) {
        (Role::Analyst, Some(workers)) => {
            let context = Arc::new(frame.task_ctx());
            let plan = frame.create_physical_plan().await?;
            let user = session.login.as_deref().unwrap_or_default().to_owned();
            let asker = Asker { user, views: session.seen_views().into_keys().collect() };
            workers.execute(plan, context, asker)
        }
        _ => frame.execute_stream().await,
    }
}

/// The session that a plan runs in: the one it was planned in, or one without a state of the store if the plan reads none. A
/// state is a connection to the store's file. As long as it is open, SQLite can't move its log into the file, and the rows of a
/// cursor may be fetched for hours.
fn without_unread_state(
    session: &Session,
    planned_in: SessionContext,
    plan: &LogicalPlan,
    pair: &Pair,
) -> Result<SessionContext, SqlError> {
    // A prepared statement is known only when it runs, and an option is set in the session itself.
    let is_known = !matches!(plan, LogicalPlan::Statement(_) | LogicalPlan::Ddl(_));
    // Plain views are planned later, and may read anything.
    let may_read_store = |table: &dyn TableProvider| {
        table.is::<StoredTable>() || table.is::<AView>() || table.get_logical_plan().is_some()
    };
    match session.transaction.changing().is_none() && is_known && !reads_any(plan, may_read_store)? {
        true => Ok(session.scoped_to(pair, None)),
        false => Ok(planned_in),
    }
}

/// Waits for a turn to read views. A transaction does not wait, because others wait for it.
async fn readers_turn(session: &Session) -> Option<Waited> {
    match session.transaction.changing() {
        None => session.shared.readers.turn(session.login.as_deref()).await,
        Some(_) => None,
    }
}

pub(crate) async fn planned(
    session: &Session,
    context: &SessionContext,
    statement: &DFStatement,
) -> Result<LogicalPlan, SqlError> {
    let state = context.state();
    match state.statement_to_plan(statement.clone()).await {
        Ok(plan) => {
            check_groupings(&plan)?;
            check_aggregates(&plan)?;
            if session.role == Role::Analyst {
                check_growth(&plan)?;
                check_copies(&plan)?;
            }
            Ok(plan)
        }
        Err(error) => {
            let is_aggregate = |name: &str| state.aggregate_functions().contains_key(name);
            // The error must not name a view that the session may not know of.
            let views = session.seen_views();
            let refusal = unplanned::refusal(statement, |name| views.get(name).cloned(), is_aggregate);
            Err(refusal.map_or_else(|| error.into(), SqlError::Refused))
        }
    }
}

async fn changed_rows(session: &Session, stream: SendableRecordBatchStream, name: &str) -> Result<Outcome, SqlError> {
    let schema = stream.schema();
    let batches: Vec<RecordBatch> = stream.try_collect().await?;
    session.shared.generations.bump(name);
    Ok(Outcome::Rows(stream_of(schema, batches)))
}

/// Sets an option of views back to its default.
fn reset(session: &Session, option: &str) -> Result<Outcome, SqlError> {
    let state = session.context.state_ref();
    let mut state = state.write();
    if let Some(options) = state.config_mut().options_mut().extensions.get_mut::<ViewOptions>() {
        options.set(option, "")?;
    }
    Ok(Outcome::Done("done".to_owned()))
}

/// Rows whose errors tell only the kind of problem, because DataFusion's messages may quote a cell.
fn said_by_kind(stream: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let by_kind = |error| SqlError::while_running(error).into();
    let schema = stream.schema();
    Box::pin(RecordBatchStreamAdapter::new(schema, stream.map_err(by_kind)))
}

/// The largest number of columns in a CUBE, which makes 4,096 groupings.
const MOST_OF_CUBE: usize = 12;

/// Refuses a CUBE with too many groupings, because DataFusion lists all of them in memory before the query runs.
fn check_groupings(plan: &LogicalPlan) -> Result<(), SqlError> {
    let mut largest = 0;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Aggregate(aggregate) = node {
            for expression in &aggregate.group_expr {
                if let Expr::GroupingSet(GroupingSet::Cube(columns)) = expression {
                    largest = largest.max(columns.len());
                }
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    if largest > MOST_OF_CUBE { Err(SqlError::TooManyGroupings { n: largest, most: MOST_OF_CUBE }) } else { Ok(()) }
}
