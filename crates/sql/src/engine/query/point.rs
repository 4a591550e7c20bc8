//! [`point`]: recognizes a query that needs no plan.
//!
//! Such a query is `SELECT columns FROM view WHERE ...` on a materialized view, and its condition compares quasi columns with
//! constants, joined by AND. Every other query is planned.
//!
//! This file does not say what a comparison means: the planner's own function reads the condition, and the rule that
//! rewrites plans rewrites it. Only if the result consists of questions about labels is the query answered here.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, TableReference};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::sql::parser::{DFParser, Statement as DFStatement};
use datafusion::sql::sqlparser::ast::{
    Expr as SqlExpr, ExprWithAlias, Ident, Query, SelectItem, SetExpr, Statement as SqlStatement, TableFactor,
    WildcardAdditionalOptions,
};
use kohort_labels::rewrite::ProtectedColumns;

use crate::engine::Session;
use crate::engine::context::meanings_of;
use crate::engine::session::access;
use crate::engine::session::{Outcome, stream_of};
use crate::options::ViewOptions;
use crate::parser::{Answers, spelled};
use crate::policy::{Pair, UsedView};
use crate::view::{AView, LabelComparison, PlanWish, Point, State};

/// The parts in which queries of this kind differ.
struct PointQuery {
    view: Ident,
    /// `None` for all columns.
    columns: Option<Vec<Ident>>,
    condition: SqlExpr,
}

/// How often a view is looked at while others change it, before the query is planned.
const MOST_LOOKS: usize = 50;

/// How long to wait for a committed change to be published.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// The answer to a query that needs no plan; `None` if it must be planned.
pub(crate) async fn point(
    session: &Session,
    statement: &DFStatement,
    pair: &Pair,
    views: &mut Vec<UsedView>,
) -> Option<Outcome> {
    let asked = asked(statement)?;
    let name = name_of(session, &asked.view)?;
    for _ in 0..MOST_LOOKS {
        // Listen before taking a state, so that nothing published later is missed.
        let mut published = pin!(session.shared.published.notified());
        published.as_mut().enable();
        match look(session, &asked, &name, pair, views).await? {
            Point::Planned => return None,
            Point::OtherState => tokio::time::timeout(LONGEST_WAIT, published).await.ok()?,
            Point::Rows(batch) => {
                let (schema, has_rows) = (batch.schema(), batch.num_rows() > 0);
                return Some(Outcome::Rows(stream_of(schema, has_rows.then_some(batch).into_iter().collect())));
            }
        }
    }
    None
}

/// Looks for the answer in the view as it is now.
async fn look(
    session: &Session,
    asked: &PointQuery,
    name: &str,
    pair: &Pair,
    views: &mut Vec<UsedView>,
) -> Option<Point> {
    let schema = session.context.state_ref().read().schema_for_ref(TableReference::bare(name)).ok()?;
    // Take the state of the store before the view, as planning does.
    let reading = session.reading().ok()??;
    let table = schema.table(name).await.ok()??;
    let view = table.downcast_ref::<AView>()?;
    // Rows of a view that answers only aggregates are refused by the planner.
    if !matches!(view.state(), State::Materialized { .. }) || view.definition.clauses.answers != Answers::View {
        return None;
    }
    let projection = projection(session, view, asked.columns.as_deref())?;
    let condition = condition(session, view, name, &asked.condition)?;
    let comparison = |part: &Expr| LabelComparison::of_question(&view.definition, part);
    let comparisons = split_conjunction(&condition).into_iter().map(comparison).collect::<Option<Vec<_>>>()?;
    let options = ViewOptions { pair: session.stated(pair), ..session.options() };
    // A materialized view can't be anonymized first. The planner has the message for that.
    if options.plan == PlanWish::AnonymizeFirst {
        return None;
    }
    let used = vec![UsedView { name: view.definition.name.clone(), version: 0 }];
    access::check_readable(session, &used).await.ok()?;
    let point = view.point(reading.state(), &options, &comparisons, &projection);
    if matches!(point, Point::Rows(_)) {
        *views = used;
    }
    // A transaction reads one state only, so waiting for another would be in vain.
    let is_final = matches!(point, Point::OtherState) && session.transaction.changing().is_some();
    Some(if is_final { Point::Planned } else { point })
}

/// A name as the planner reads it; `None` if the session reads names in an unusual way.
fn name_of(session: &Session, name: &Ident) -> Option<String> {
    let is_usual = session.context.state_ref().read().config_options().sql_parser.enable_ident_normalization;
    is_usual.then(|| spelled(name))
}

/// The positions of the columns that are asked for; `None` if one is unknown or asked for twice.
fn projection(session: &Session, view: &AView, columns: Option<&[Ident]>) -> Option<Vec<usize>> {
    let known = &view.definition.columns;
    let Some(columns) = columns else { return Some((0..known.len()).collect()) };
    let position = |name: &Ident| {
        let name = name_of(session, name)?;
        known.iter().position(|column| column.name == name)
    };
    let positions = columns.iter().map(position).collect::<Option<Vec<usize>>>()?;
    let distinct: BTreeSet<usize> = positions.iter().copied().collect();
    (distinct.len() == positions.len()).then_some(positions)
}

/// A condition as the rule that rewrites plans rewrites it.
fn condition(session: &Session, view: &AView, name: &str, condition: &SqlExpr) -> Option<Expr> {
    let schema = DFSchema::try_from_qualified_schema(name, &view.schema()).ok()?;
    let condition = ExprWithAlias { expr: condition.clone(), alias: None };
    let state = session.context.state_ref();
    let predicate = state.read().create_logical_expr_from_sql_expr(condition, &schema).ok()?;
    // Nothing may be computed here before its size is checked, as it is for a plan.
    if predicate.exists(|part| Ok(matches!(part, Expr::ScalarFunction(_)))).ok()? {
        return None;
    }
    ProtectedColumns::new(meanings_of).rewritten(predicate, &Arc::new(schema), &view.meanings()).ok()
}

/// The plainest query of this kind, without the parts of a [`PointQuery`].
static PLAINEST: LazyLock<Query> = LazyLock::new(|| {
    let mut statements = DFParser::parse_sql("SELECT * FROM view WHERE condition").expect("this is a query");
    let query = statements.pop_front().as_ref().and_then(query_of).cloned();
    taken_apart(query.expect("this is a query")).expect("this is a query of one table").1
});

/// The parts of a statement, if it has no others.
fn asked(statement: &DFStatement) -> Option<PointQuery> {
    let query = query_of(statement)?;
    // Most other queries end here, before they are copied.
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    if select.from.len() != 1 || select.selection.is_none() {
        return None;
    }
    let (parts, rest) = taken_apart(query.clone())?;
    // Comparing all that is left overlooks no part of a query, not even one that the parser learns later.
    (rest == *PLAINEST).then_some(parts)
}

fn query_of(statement: &DFStatement) -> Option<&Query> {
    let DFStatement::Statement(statement) = statement else { return None };
    match statement.as_ref() {
        SqlStatement::Query(query) => Some(query),
        _ => None,
    }
}

/// The parts of a [`PointQuery`], and what is left of a query without them.
fn taken_apart(mut query: Query) -> Option<(PointQuery, Query)> {
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    let columns = columns(std::mem::take(&mut select.projection))?;
    let condition = select.selection.take()?;
    let TableFactor::Table { name, .. } = &mut select.from.first_mut()?.relation else { return None };
    let view = match name.0.as_slice() {
        [part] => part.as_ident()?.clone(),
        _ => return None,
    };
    name.0.clear();
    Some((PointQuery { view, columns, condition }, query))
}

/// The columns of a SELECT list, `Some(None)` for `*`, if the list has nothing else.
fn columns(projection: Vec<SelectItem>) -> Option<Option<Vec<Ident>>> {
    if let [SelectItem::Wildcard(options)] = projection.as_slice() {
        return (*options == WildcardAdditionalOptions::default()).then_some(None);
    }
    let names = projection.into_iter().map(|item| match item {
        SelectItem::UnnamedExpr(SqlExpr::Identifier(name)) => Some(name),
        _ => None,
    });
    names.collect::<Option<Vec<Ident>>>().map(Some)
}

#[cfg(test)]
mod tests;
