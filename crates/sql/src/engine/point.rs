//! [`Session::point`]: recognizes a query that needs no plan.
//!
//! `SELECT columns FROM view WHERE ...` of a materialized view, whose condition is a conjunction of comparisons of quasi
//! columns with constants, and nothing else. Every part of a statement that this file does not name, and every value of
//! a part other than the one named, goes to the planner.
//!
//! What a comparison means is not said here: the condition is made by the planner's own reading of expressions, and
//! rewritten by the rule that rewrites plans. Only where questions about labels come of it, and nothing else, is the
//! query one of these.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use datafusion::catalog::TableProvider;
use datafusion::common::{DFSchema, TableReference};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::parser::Statement as DFStatement;
use datafusion::sql::sqlparser::ast::{
    Expr as SqlExpr, ExprWithAlias, GroupByExpr, Ident, ObjectName, Select, SelectFlavor, SelectItem, SetExpr,
    Statement as SqlStatement, TableFactor, TableWithJoins, WildcardAdditionalOptions,
};
use kohort_model::Role as ColumnRole;

use super::growth::check_expression;
use super::plain::plain_body;
use super::session::Outcome;
use super::{Role, Session, meanings_of};
use crate::meaning::CouldBe;
use crate::options::ViewOptions;
use crate::parser::{Access, spelled};
use crate::policy::UsedView;
use crate::rewrite::ProtectedColumns;
use crate::view::{AView, PlanWish, Point, State};

/// What a query of this kind says.
struct Asked<'a> {
    view: &'a Ident,
    /// `None` for all columns.
    columns: Option<Vec<&'a Ident>>,
    condition: &'a SqlExpr,
}

/// So often a view is looked at while others change it, before all of it is read.
const MOST_LOOKS: usize = 50;

/// How long whoever has committed may take to say so.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

impl Session {
    /// The answer to a query that needs no plan, `None` where it does.
    pub(super) async fn point(
        &self,
        statement: &DFStatement,
        access: &Access,
        views: &mut Vec<UsedView>,
    ) -> Option<Outcome> {
        let asked = asked(statement)?;
        let name = self.spelled(asked.view)?;
        for _ in 0..MOST_LOOKS {
            // Listens before it takes a state: whatever is published later is heard.
            let mut published = pin!(self.shared.published.notified());
            published.as_mut().enable();
            match self.look(&asked, &name, access, views).await? {
                Point::Planned => return None,
                Point::OtherState => tokio::time::timeout(LONGEST_WAIT, published).await.ok()?,
                Point::Rows(batch) => {
                    let schema = batch.schema();
                    let batches = futures::stream::iter((batch.num_rows() > 0).then_some(Ok(batch)));
                    return Some(Outcome::Rows(Box::pin(RecordBatchStreamAdapter::new(schema, batches))));
                }
            }
        }
        None
    }

    /// Looks for the answer in the view as it is now.
    async fn look(&self, asked: &Asked<'_>, name: &str, access: &Access, views: &mut Vec<UsedView>) -> Option<Point> {
        let schema = self.context.state_ref().read().schema_for_ref(TableReference::bare(name)).ok()?;
        // The state is taken before the view is looked at, as where it is planned.
        let reading = self.reading().ok()??;
        let table = schema.table(name).await.ok()??;
        let view = table.downcast_ref::<AView>()?;
        if !matches!(view.state(), State::Materialized { .. }) {
            return None;
        }
        let projection = self.projection(view, asked.columns.as_deref())?;
        let condition = self.condition(view, name, asked.condition)?;
        let questions = split_conjunction(&condition).into_iter().map(|part| question(view, part));
        let questions = questions.collect::<Option<Vec<_>>>()?;
        let Access { purpose, recipient } = self.stated(access);
        let options = ViewOptions { purpose, recipient, ..self.options() };
        // A materialized view can't be anonymized first, and the planner says so.
        if options.plan == PlanWish::AnonymizeFirst {
            return None;
        }
        let used = vec![UsedView { name: view.definition.name.clone(), version: 0 }];
        self.check_readable(&used).await.ok()?;
        let point = view.point(reading.state(), &options, &questions, &projection);
        if matches!(point, Point::Rows(_)) {
            *views = used;
        }
        // In a transaction there is no other state to wait for.
        let is_final = matches!(point, Point::OtherState) && self.transaction.is_some();
        Some(if is_final { Point::Planned } else { point })
    }

    /// A name as the planner reads it; `None` where that is not the usual way.
    fn spelled(&self, name: &Ident) -> Option<String> {
        let is_usual = self.context.state_ref().read().config_options().sql_parser.enable_ident_normalization;
        is_usual.then(|| spelled(name))
    }

    /// The positions of the columns that are asked for, each once.
    fn projection(&self, view: &AView, columns: Option<&[&Ident]>) -> Option<Vec<usize>> {
        let known = &view.definition.columns;
        let Some(columns) = columns else { return Some((0..known.len()).collect()) };
        let position = |name: &&Ident| {
            let name = self.spelled(name)?;
            known.iter().position(|column| column.name == name)
        };
        let positions = columns.iter().map(position).collect::<Option<Vec<usize>>>()?;
        let distinct: BTreeSet<usize> = positions.iter().copied().collect();
        (distinct.len() == positions.len()).then_some(positions)
    }

    /// A condition as the rule for plans rewrites it.
    fn condition(&self, view: &AView, name: &str, condition: &SqlExpr) -> Option<Expr> {
        let schema = DFSchema::try_from_qualified_schema(name, &view.schema()).ok()?;
        let condition = ExprWithAlias { expr: condition.clone(), alias: None };
        let state = self.context.state_ref();
        let predicate = state.read().create_logical_expr_from_sql_expr(condition, &schema).ok()?;
        if self.role == Role::Analyst {
            check_expression(&predicate, &schema).ok()?;
        }
        ProtectedColumns::new(meanings_of).rewritten(predicate, &Arc::new(schema), &view.meanings()).ok()
    }
}

/// The question that a part of a condition asks of a quasi column, and the column's position.
fn question<'a>(view: &AView, part: &'a Expr) -> Option<(usize, &'a CouldBe)> {
    let (question, Expr::Column(column)) = CouldBe::in_expression(part)? else { return None };
    let position = view.definition.columns.iter().position(|known| known.name == column.name)?;
    (view.definition.columns[position].role == ColumnRole::Quasi).then_some((position, question))
}

/// The parts of a statement, where it has no others.
fn asked(statement: &DFStatement) -> Option<Asked<'_>> {
    let DFStatement::Statement(statement) = statement else { return None };
    let SqlStatement::Query(query) = statement.as_ref() else { return None };
    let SetExpr::Select(select) = plain_body(query)? else { return None };
    let Select {
        select_token: _,
        optimizer_hints,
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: false,
        projection,
        exclude: None,
        into: None,
        from,
        lateral_views,
        prewhere: None,
        selection: Some(condition),
        connect_by,
        group_by: GroupByExpr::Expressions(group_by, with_rollup),
        cluster_by,
        distribute_by,
        sort_by,
        having: None,
        named_window,
        qualify: None,
        window_before_qualify: false,
        value_table_mode: None,
        flavor: SelectFlavor::Standard,
    } = select.as_ref()
    else {
        return None;
    };
    let is_plain = optimizer_hints.is_empty()
        && lateral_views.is_empty()
        && connect_by.is_empty()
        && group_by.is_empty()
        && with_rollup.is_empty()
        && cluster_by.is_empty()
        && distribute_by.is_empty()
        && sort_by.is_empty()
        && named_window.is_empty();
    let [from] = from.as_slice() else { return None };
    if !is_plain {
        return None;
    }
    Some(Asked { view: view_name(from)?, columns: columns(projection)?, condition })
}

/// The one table of a FROM, by its bare name.
fn view_name(from: &TableWithJoins) -> Option<&Ident> {
    let TableWithJoins { relation, joins } = from;
    let TableFactor::Table {
        name: ObjectName(name),
        alias: None,
        args: None,
        with_hints,
        version: None,
        with_ordinality: false,
        partitions,
        json_path: None,
        sample: None,
        index_hints,
    } = relation
    else {
        return None;
    };
    let is_plain = joins.is_empty() && with_hints.is_empty() && partitions.is_empty() && index_hints.is_empty();
    match name.as_slice() {
        [part] if is_plain => part.as_ident(),
        _ => None,
    }
}

/// The columns of a SELECT list, `Some(None)` for `*`, where it is nothing else.
fn columns(projection: &[SelectItem]) -> Option<Option<Vec<&Ident>>> {
    let plain = WildcardAdditionalOptions::default();
    if let [SelectItem::Wildcard(options)] = projection {
        return (*options == plain).then_some(None);
    }
    let names = projection.iter().map(|item| match item {
        SelectItem::UnnamedExpr(SqlExpr::Identifier(name)) => Some(name),
        _ => None,
    });
    names.collect::<Option<Vec<&Ident>>>().map(Some)
}

#[cfg(test)]
mod tests;
