//! `EXPLAIN UTILITY`: how good the answer to a query is. Only owners may ask, because the answer is compared with the rows
//! under the views.
//!
//! The query is planned twice, in catalogs of its own: once with the views, each with the identifiers under its rows, and once with
//! the queries of the views in their place. So joins, conditions and ANSWERS MATCHING mean what they mean in the query itself.
//!
//! # Paper
//! `[EPS+12]` section 8.1: precision and recall of the answer, NCP and k-deviation of the view
//! # Deviations
//! A row of the answer matches a row of the truth with the same identifiers. Identifiers that occur several times match as often as
//! they occur in both. Of a join, the NCP is the mean over its views, and the k-deviation the sum.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, UInt64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::{MemorySchemaProvider, SchemaProvider, TableProvider};
use datafusion::datasource::ViewTable;
use datafusion::error::DataFusionError;
use datafusion::execution::context::SessionContext;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::sql::parser::Statement as DFStatement;
use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, Query, SelectItem, SetExpr, Statement as SqlStatement, TableFactor,
};
use kohort_store::Store;

use crate::SqlError;
use crate::engine::Session;
use crate::engine::context::catalogs_of;
use crate::engine::session::{Outcome, list, rounded};
use crate::parser::{Answers, spelled};
use crate::policy::Pair;
use crate::view::{AView, State, TRACE, Traced};

/// A query that only selects and joins rows of views.
struct Selection {
    query: Query,
    /// The views in the order in which the query names them, each with its alias.
    views: Vec<(Ident, Arc<AView>)>,
}

pub(crate) async fn explain_utility(session: &Session, query: Query, pair: &Pair) -> Result<Outcome, SqlError> {
    let selection = selection(session, query)?;
    let context = session.scoped(pair)?;
    let (mut shown, mut under) = (BTreeMap::new(), BTreeMap::new());
    for (_, view) in &selection.views {
        let plans = match view.state() {
            State::Usable { plans, .. } | State::Materialized { plans, .. } => plans,
            // Reading it tells why it can't be read.
            State::Unusable { .. } | State::Stale(_) => return Err(unread(&context, view).await),
        };
        let name = view.definition.name.clone();
        let table = ViewTable::new(plans.query.as_ref().clone(), None);
        under.insert(name.clone(), Arc::new(table) as Arc<dyn TableProvider>);
        shown.insert(name, Arc::new(Traced::new(Arc::clone(view))) as Arc<dyn TableProvider>);
    }
    let answered = identifiers(&context, shown, &selection, |_| TRACE.to_owned()).await?;
    let identifier = |view: &AView| view.definition.columns[view.definition.identifier].name.clone();
    let truth = identifiers(&context, under, &selection, identifier).await?;
    let (ncp, k_deviation) = figures(session, &selection)?;

    let n_hits: u64 = truth.iter().map(|(ids, n)| *n.min(answered.get(ids).unwrap_or(&0))).sum();
    let (n_answered, n_true): (u64, u64) = (answered.values().sum(), truth.values().sum());
    let share = |part: u64, all: u64| (all > 0).then(|| rounded(part as f64 / all as f64));
    let number = |n: Option<u64>| Arc::new(UInt64Array::from(vec![n])) as ArrayRef;
    let figure = |figure: Option<f64>| Arc::new(Float64Array::from(vec![figure])) as ArrayRef;
    list([
        ("rows", number(Some(n_answered))),
        ("true_rows", number(Some(n_true))),
        ("precision", figure(share(n_hits, n_answered))),
        ("recall", figure(share(n_hits, n_true))),
        ("ncp", figure(ncp.map(rounded))),
        ("k_deviation", number(k_deviation)),
    ])
}

/// The mean NCP of the views, and the sum of their k-deviations, which nobody counts for materialized views.
fn figures(session: &Session, selection: &Selection) -> Result<(Option<f64>, Option<u64>), SqlError> {
    let snapshot = session.shared.store.as_ref().map(Store::read).transpose()?;
    let (mut ncp, mut k_deviation) = (0.0, Some(0));
    for (_, view) in &selection.views {
        match (view.state(), &snapshot) {
            (State::Usable { version, .. }, _) => {
                ncp += version.summary.ncp;
                k_deviation = k_deviation.map(|sum| sum + version.summary.k_deviation);
            }
            (State::Materialized { view, .. }, Some(snapshot)) => {
                ncp += view.standing(snapshot)?.ncp;
                k_deviation = None;
            }
            _ => return Ok((None, None)),
        }
    }
    Ok((Some(ncp / selection.views.len() as f64), k_deviation))
}

/// Why a view can't be read.
async fn unread(context: &SessionContext, view: &AView) -> SqlError {
    view.scan(&context.state(), None, &[], None).await.map_or_else(SqlError::from, |_| SqlError::NoUtility)
}

/// How often each combination of identifiers occurs in the answer to a query, with these tables in place of the views.
async fn identifiers(
    context: &SessionContext,
    tables: BTreeMap<String, Arc<dyn TableProvider>>,
    selection: &Selection,
    identifier: impl Fn(&AView) -> String,
) -> Result<HashMap<Vec<Option<String>>, u64>, SqlError> {
    let schema = MemorySchemaProvider::new();
    for (name, table) in tables {
        schema.register_table(name, table)?;
    }
    let state = SessionStateBuilder::new_from_existing(context.state());
    let context = SessionContext::new_with_state(state.with_catalog_list(catalogs_of(Arc::new(schema))).build());
    let columns = selection.views.iter().enumerate().map(|(place, (alias, view))| SelectItem::ExprWithAlias {
        expr: Expr::CompoundIdentifier(vec![alias.clone(), Ident::with_quote('"', identifier(view))]),
        alias: Ident::with_quote('"', format!("identifier {place}")),
    });
    let mut query = selection.query.clone();
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = columns.collect();
    }
    query.order_by = None;
    let statement = DFStatement::Statement(Box::new(SqlStatement::Query(Box::new(query))));
    let plan = context.state().statement_to_plan(statement).await?;
    let batches = context.execute_logical_plan(plan).await?.collect().await.map_err(SqlError::while_running)?;
    let mut counts = HashMap::new();
    for batch in batches {
        let texts: Result<Vec<ArrayRef>, _> =
            batch.columns().iter().map(|column| cast(column, &DataType::Utf8)).collect();
        let texts = texts.map_err(DataFusionError::from)?;
        for row in 0..batch.num_rows() {
            let id = |texts: &ArrayRef| texts.is_valid(row).then(|| texts.as_string::<i32>().value(row).to_owned());
            *counts.entry(texts.iter().map(id).collect()).or_default() += 1;
        }
    }
    Ok(counts)
}

/// Reads `SELECT ... FROM view [JOIN view ...] [WHERE ...]`.
fn selection(session: &Session, query: Query) -> Result<Selection, SqlError> {
    let SetExpr::Select(select) = query.body.as_ref() else { return Err(SqlError::NoUtility) };
    let ungrouped = matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    let is_plain = ungrouped
        && select.having.is_none()
        && select.distinct.is_none()
        && query.with.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none();
    if !is_plain {
        return Err(SqlError::NoUtility);
    }
    let tables = select
        .from
        .iter()
        .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)));
    let mut views: Vec<(Ident, Arc<AView>)> = Vec::new();
    for table in tables {
        let TableFactor::Table { name, alias, args: None, .. } = table else { return Err(SqlError::NoUtility) };
        let name = name.0.last().and_then(|part| part.as_ident()).ok_or(SqlError::NoUtility)?;
        let view = session.shared.known_view(&spelled(name))?;
        let alias = alias.as_ref().map_or_else(|| name.clone(), |alias| alias.name.clone());
        views.push((alias, view));
    }
    let matching = views.iter().find(|(_, view)| view.definition.clauses.answers == Answers::Matching);
    match (matching, views.len()) {
        (_, 0) => Err(SqlError::NoUtility),
        (Some((_, view)), 2..) => Err(SqlError::MatchingJoined { name: view.definition.name.clone() }),
        _ => Ok(Selection { query, views }),
    }
}
