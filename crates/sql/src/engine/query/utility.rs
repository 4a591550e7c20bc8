//! `EXPLAIN UTILITY`: how good the answer to a query is. Only owners may ask, because the answer is compared with the rows
//! under the view.
//!
//! # Paper
//! `[EPS+12]` section 8.1: precision and recall of the answer, NCP and k-deviation of the view
//! # Deviations
//! A row of the answer matches a row of the truth with the same identifier. An identifier that occurs several times matches as
//! often as it occurs in both.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array, UInt64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::default_table_source::provider_as_source;
use datafusion::common::{Column, TableReference};
use datafusion::error::DataFusionError;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{GroupByExpr, Query, SetExpr, TableFactor};

use crate::SqlError;
use crate::engine::Session;
use crate::engine::session::{Outcome, list, rounded};
use crate::parser::spelled;
use crate::policy::Pair;
use crate::view::{State, TRACE, Traced};

/// A query of one view: the view, its alias, and the condition.
struct Selection {
    view: String,
    alias: String,
    condition: Option<String>,
}

pub(crate) async fn explain_utility(session: &Session, query: Query, pair: &Pair) -> Result<Outcome, SqlError> {
    let Selection { view: name, alias, condition } = selection(&query).ok_or(SqlError::NoUtility)?;
    let view = session.shared.known_view(&name)?;
    let context = session.scoped(pair)?;
    if matches!(view.state(), State::Materialized { .. }) {
        return Err(SqlError::NoUtility);
    }
    let traced = Traced::read(&view, &context.state()).await?;
    let State::Usable { version, plans, .. } = view.state() else { return Err(SqlError::NoUtility) };

    let shown =
        LogicalPlanBuilder::scan(TableReference::bare(alias.as_str()), provider_as_source(Arc::new(traced)), None)?
            .build()?;
    let answered = identifiers(&context, shown, condition.as_deref(), TRACE).await?;
    let under =
        LogicalPlanBuilder::from(plans.query.as_ref().clone()).alias(TableReference::bare(alias.as_str()))?.build()?;
    let identifier = &view.definition.columns[view.definition.identifier].name;
    let truth = identifiers(&context, under, condition.as_deref(), identifier).await?;

    let n_hits: u64 = truth.iter().map(|(id, n)| *n.min(answered.get(id).unwrap_or(&0))).sum();
    let (n_answered, n_true): (u64, u64) = (answered.values().sum(), truth.values().sum());
    let share = |part: u64, all: u64| (all > 0).then(|| rounded(part as f64 / all as f64));
    let number = |n: u64| Arc::new(UInt64Array::from(vec![n])) as ArrayRef;
    let figure = |figure: Option<f64>| Arc::new(Float64Array::from(vec![figure])) as ArrayRef;
    list([
        ("rows", number(n_answered)),
        ("true_rows", number(n_true)),
        ("precision", figure(share(n_hits, n_answered))),
        ("recall", figure(share(n_hits, n_true))),
        ("ncp", figure(Some(rounded(version.summary.ncp)))),
        ("k_deviation", number(version.summary.k_deviation)),
    ])
}

/// How often each identifier occurs in the rows that satisfy a condition.
async fn identifiers(
    context: &SessionContext,
    plan: LogicalPlan,
    condition: Option<&str>,
    column: &str,
) -> Result<HashMap<String, u64>, SqlError> {
    let state = context.state();
    let position = plan.schema().index_of_column_by_name(None, column).ok_or(SqlError::NoUtility)?;
    let identifier = Expr::Column(Column::from(plan.schema().qualified_field(position)));
    let mut builder = LogicalPlanBuilder::from(plan);
    if let Some(condition) = condition {
        let condition = state.create_logical_expr(condition, builder.schema())?;
        builder = builder.filter(condition)?;
    }
    let plan = builder.project([identifier])?.build()?;
    let batches = context.execute_logical_plan(plan).await?.collect().await.map_err(SqlError::while_running)?;
    let mut counts: HashMap<String, u64> = HashMap::new();
    for batch in batches {
        let texts = cast(batch.column(0), &DataType::Utf8).map_err(DataFusionError::from)?;
        for id in texts.as_string::<i32>().iter().flatten() {
            *counts.entry(id.to_owned()).or_default() += 1;
        }
    }
    Ok(counts)
}

/// The parts of `SELECT ... FROM view [AS alias] [WHERE ...]`; `None` for any other query.
fn selection(query: &Query) -> Option<Selection> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let [from] = select.from.as_slice() else { return None };
    let TableFactor::Table { name, alias, .. } = &from.relation else { return None };
    let ungrouped = matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    let is_plain = from.joins.is_empty()
        && ungrouped
        && select.having.is_none()
        && select.distinct.is_none()
        && query.with.is_none()
        && query.limit_clause.is_none();
    let view = spelled(name.0.last()?.as_ident()?);
    let alias = alias.as_ref().map_or_else(|| view.clone(), |alias| spelled(&alias.name));
    is_plain.then(|| Selection { view, alias, condition: select.selection.as_ref().map(ToString::to_string) })
}
