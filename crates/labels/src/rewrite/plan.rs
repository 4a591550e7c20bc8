//! Plans, node by node: each node is rewritten, and returns one origin per column.
//!
//! The match names every kind of node, so a kind that is new in DataFusion does not compile until somebody has decided
//! whether labels may pass through it.

use std::sync::Arc;

use datafusion::common::{DFSchema, NullEquality, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, grouping_set_to_exprlist};
use datafusion::logical_expr::{
    Aggregate, DdlStatement, Distinct, DistinctOn, Expr, Filter, Join, JoinConstraint, JoinType, LogicalPlan,
    Projection, RecursiveQuery, Sort, Statement, TableScan, Union, Unnest, Values, Window,
};

use super::RewriteError;
use super::lineage::{Origin, Rewriter, Scope};
use super::predicate::Polarity;
use crate::meaning::Comparison;

impl Rewriter<'_> {
    /// A plan with its comparisons rewritten, and the origins of its columns.
    pub(super) fn plan(&mut self, plan: LogicalPlan) -> Result<(LogicalPlan, Vec<Origin>)> {
        match plan {
            LogicalPlan::TableScan(scan) => self.scan(scan),
            LogicalPlan::Projection(projection) => {
                let (input, scope, _) = self.input(&projection.input)?;
                let (expressions, origins) = self.named(projection.expr, &scope)?;
                let projection = Projection::try_new(expressions, input)?;
                Ok((LogicalPlan::Projection(projection), origins))
            }
            LogicalPlan::Filter(filter) => {
                let (input, scope, origins) = self.input(&filter.input)?;
                let predicate = self.predicate(filter.predicate, Polarity::Asserted, &scope)?;
                Ok((LogicalPlan::Filter(Filter::try_new(predicate, input)?), origins))
            }
            LogicalPlan::Join(join) => self.join(join),
            LogicalPlan::Aggregate(aggregate) => self.group(aggregate),
            LogicalPlan::Window(window) => {
                let (input, scope, mut origins) = self.input(&window.input)?;
                let (expressions, new) = self.named(window.window_expr, &scope)?;
                origins.extend(new);
                Ok((LogicalPlan::Window(Window::try_new(expressions, input)?), origins))
            }
            LogicalPlan::Sort(sort) => {
                let (input, scope, origins) = self.input(&sort.input)?;
                let expr = self.sorted(sort.expr, &scope)?;
                Ok((LogicalPlan::Sort(Sort { expr, input, fetch: sort.fetch }), origins))
            }
            LogicalPlan::Distinct(Distinct::On(distinct)) => self.distinct_on(distinct),
            LogicalPlan::Union(union) => self.union(union),
            LogicalPlan::Values(values) => self.constants(values),
            LogicalPlan::RecursiveQuery(query) => self.recursive(query),
            LogicalPlan::Unnest(unnest) => self.unnest(unnest),
            LogicalPlan::Subquery(subquery) => {
                let (plan, origins) = self.plan(subquery.subquery.as_ref().clone())?;
                Ok((LogicalPlan::Subquery(subquery.with_plan(Arc::new(plan))), origins))
            }
            LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Limit(_)
            | LogicalPlan::Repartition(_)
            | LogicalPlan::Distinct(Distinct::All(_)) => self.rebuilt(&plan),
            // The plans inside are analyzed when they are used.
            LogicalPlan::Ddl(DdlStatement::CreateView(_)) | LogicalPlan::Statement(Statement::Prepare(_)) => {
                Ok((plan, Vec::new()))
            }
            LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) => {
                let (plan, _) = self.rebuilt(&plan)?;
                Ok(all_raw(plan))
            }
            LogicalPlan::EmptyRelation(_)
            | LogicalPlan::DescribeTable(_)
            | LogicalPlan::Statement(_)
            | LogicalPlan::Extension(_)
            | LogicalPlan::Dml(_)
            | LogicalPlan::Ddl(_)
            | LogicalPlan::Copy(_) => {
                if plan.inputs().is_empty() && plan.expressions().is_empty() {
                    return Ok(all_raw(plan));
                }
                let node = match &plan {
                    LogicalPlan::Dml(_) => "INSERT, UPDATE or DELETE".to_owned(),
                    LogicalPlan::Ddl(_) => "CREATE".to_owned(),
                    LogicalPlan::Copy(_) => "COPY".to_owned(),
                    LogicalPlan::Extension(extension) => extension.node.name().to_owned(),
                    _ => "this statement".to_owned(),
                };
                let (plan, origins) = self.rebuilt(&plan)?;
                refuse_labels(&origins, &node)?;
                Ok(all_raw(plan))
            }
        }
    }

    fn input(&mut self, input: &Arc<LogicalPlan>) -> Result<(Arc<LogicalPlan>, Scope, Vec<Origin>)> {
        let (input, origins) = self.plan(input.as_ref().clone())?;
        let scope = Scope::of(input.schema(), &origins);
        Ok((Arc::new(input), scope, origins))
    }

    /// A node that hands on the columns of its inputs. The origins of several inputs follow each other.
    fn rebuilt(&mut self, plan: &LogicalPlan) -> Result<(LogicalPlan, Vec<Origin>)> {
        let mut inputs = Vec::new();
        let mut scope = Scope::default();
        let mut all_origins = Vec::new();
        for input in plan.inputs() {
            let (input, origins) = self.plan(input.clone())?;
            scope = scope.beside(&Scope::of(input.schema(), &origins));
            inputs.push(input);
            all_origins.extend(origins);
        }
        let (expressions, _) = self.values(plan.expressions(), &scope)?;
        Ok((plan.with_new_exprs(expressions, inputs)?, all_origins))
    }

    /// Expressions that define columns. They keep their names, even if a FILTER inside was rewritten.
    fn named(&mut self, expressions: Vec<Expr>, scope: &Scope) -> Result<(Vec<Expr>, Vec<Origin>)> {
        let names = NamePreserver::new_for_projection();
        let saved: Vec<_> = expressions.iter().map(|expression| names.save(expression)).collect();
        let (expressions, origins) = self.values(expressions, scope)?;
        let expressions = expressions.into_iter().zip(saved).map(|(expression, name)| name.restore(expression));
        Ok((expressions.collect(), origins))
    }

    fn scan(&mut self, mut scan: TableScan) -> Result<(LogicalPlan, Vec<Origin>)> {
        let Some(meanings) = self.protected.of(&scan) else { return Ok(all_raw(LogicalPlan::TableScan(scan))) };
        let full: Vec<Origin> = meanings
            .iter()
            .map(|meaning| meaning.as_ref().map_or(Origin::Raw, |meaning| Origin::Protected(Arc::clone(meaning))))
            .collect();
        if !scan.filters.is_empty() {
            let schema = DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?;
            let scope = Scope::of(&Arc::new(schema), &full);
            let filters = std::mem::take(&mut scan.filters).into_iter();
            let filters: Result<_> = filters.map(|filter| self.predicate(filter, Polarity::Asserted, &scope)).collect();
            scan.filters = filters?;
        }
        let origin = |index: usize| full.get(index).cloned().unwrap_or(Origin::Raw);
        let origins = match &scan.projection {
            Some(projection) => projection.iter().map(|&index| origin(index)).collect(),
            None => (0..scan.projected_schema.fields().len()).map(origin).collect(),
        };
        Ok((LogicalPlan::TableScan(scan), origins))
    }

    fn join(&mut self, join: Join) -> Result<(LogicalPlan, Vec<Origin>)> {
        let (left, left_scope, left_origins) = self.input(&join.left)?;
        // A lateral right side refers to the left one as to an enclosing query.
        self.outer.push(left_scope.clone());
        let right = self.input(&join.right);
        self.outer.pop();
        let (right, right_scope, right_origins) = right?;
        let scope = left_scope.beside(&right_scope);

        let mut on = Vec::new();
        let mut conditions = Vec::new();
        let mut constraint = join.join_constraint;
        for (left_key, right_key) in join.on {
            let (left_key, left_origin) = self.value(left_key, &left_scope)?;
            let (right_key, right_origin) = self.value(right_key, &right_scope)?;
            let by_label = join.null_equality == NullEquality::NullEqualsNull;
            match left_origin.or(&right_origin).column() {
                None => on.push((left_key, right_key)),
                // INTERSECT and EXCEPT are joins in which NULL equals NULL. Like DISTINCT, they compare labels as texts.
                Some(_) if by_label && left_origin == right_origin => on.push((left_key, right_key)),
                Some(column) if by_label => return Err(RewriteError::SetOperation { column }.into()),
                Some(_) => {
                    let (left, right) = ((left_key, left_origin), (right_key, right_origin));
                    conditions.push(self.compare(left, Comparison::Equal, right, &scope)?);
                    constraint = JoinConstraint::On;
                }
            }
        }
        if let Some(filter) = join.filter {
            conditions.push(self.predicate(filter, Polarity::Asserted, &scope)?);
        }
        let origins = match join.join_type {
            JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
                [left_origins, right_origins].concat()
            }
            JoinType::LeftSemi | JoinType::LeftAnti => left_origins,
            JoinType::RightSemi | JoinType::RightAnti => right_origins,
            JoinType::LeftMark => [left_origins, vec![Origin::Raw]].concat(),
            JoinType::RightMark => [right_origins, vec![Origin::Raw]].concat(),
        };
        let filter = conjunction(conditions);
        let join =
            Join::try_new(left, right, on, filter, join.join_type, constraint, join.null_equality, join.null_aware)?;
        Ok((LogicalPlan::Join(join), origins))
    }

    fn group(&mut self, aggregate: Aggregate) -> Result<(LogicalPlan, Vec<Origin>)> {
        let (input, scope, _) = self.input(&aggregate.input)?;
        let keys: Vec<Expr> = grouping_set_to_exprlist(&aggregate.group_expr)?.into_iter().cloned().collect();
        let (_, mut origins) = self.values(keys, &scope)?;
        let (group_expr, _) = self.named(aggregate.group_expr, &scope)?;
        let (aggr_expr, new) = self.named(aggregate.aggr_expr, &scope)?;
        let aggregate = Aggregate::try_new(input, group_expr, aggr_expr)?;
        // Grouping sets add a column with their number between keys and results.
        origins.resize(aggregate.schema.fields().len() - new.len(), Origin::Raw);
        origins.extend(new);
        Ok((LogicalPlan::Aggregate(aggregate), origins))
    }

    fn distinct_on(&mut self, distinct: DistinctOn) -> Result<(LogicalPlan, Vec<Origin>)> {
        let (input, scope, _) = self.input(&distinct.input)?;
        let (on, _) = self.values(distinct.on_expr, &scope)?;
        let (select, origins) = self.named(distinct.select_expr, &scope)?;
        let sort = distinct.sort_expr.map(|keys| self.sorted(keys, &scope)).transpose()?;
        let distinct = DistinctOn::try_new(on, select, sort, input)?;
        Ok((LogicalPlan::Distinct(Distinct::On(distinct)), origins))
    }

    fn union(&mut self, union: Union) -> Result<(LogicalPlan, Vec<Origin>)> {
        let mut inputs = Vec::new();
        let mut origins: Option<Vec<Origin>> = None;
        for input in union.inputs {
            let (input, of_input) = self.plan(input.as_ref().clone())?;
            inputs.push(Arc::new(input));
            origins = Some(match origins {
                None => of_input,
                Some(origins) => origins.into_iter().zip(of_input).map(|(a, b)| a.or(&b)).collect(),
            });
        }
        Ok((LogicalPlan::Union(Union { inputs, schema: union.schema }), origins.unwrap_or_default()))
    }

    fn constants(&mut self, values: Values) -> Result<(LogicalPlan, Vec<Origin>)> {
        let mut origins = vec![None; values.schema.fields().len()];
        let mut rows = Vec::new();
        for row in values.values {
            let (row, of_row) = self.values(row, &Scope::default())?;
            for (origin, of_cell) in origins.iter_mut().zip(of_row) {
                *origin = Some(match origin.take() {
                    None => of_cell,
                    Some(origin) => Origin::or(&origin, &of_cell),
                });
            }
            rows.push(row);
        }
        let origins = origins.into_iter().map(|origin| origin.unwrap_or(Origin::Raw)).collect();
        Ok((LogicalPlan::Values(Values { schema: values.schema, values: rows }), origins))
    }

    /// The recursive term reads the query itself as a plain table, so labels must not enter it.
    fn recursive(&mut self, query: RecursiveQuery) -> Result<(LogicalPlan, Vec<Origin>)> {
        let (static_term, static_origins) = self.plan(query.static_term.as_ref().clone())?;
        let (recursive_term, recursive_origins) = self.plan(query.recursive_term.as_ref().clone())?;
        refuse_labels(&static_origins, "WITH RECURSIVE")?;
        refuse_labels(&recursive_origins, "WITH RECURSIVE")?;
        let query = RecursiveQuery { static_term: static_term.into(), recursive_term: recursive_term.into(), ..query };
        Ok(all_raw(LogicalPlan::RecursiveQuery(query)))
    }

    fn unnest(&mut self, unnest: Unnest) -> Result<(LogicalPlan, Vec<Origin>)> {
        let (input, scope, of_input) = self.input(&unnest.input)?;
        for column in &unnest.exec_columns {
            refuse_labels(&[self.origin(column, &scope)?], "unnest")?;
        }
        let origins = unnest.dependency_indices.iter().map(|&index| of_input[index].clone()).collect();
        Ok((LogicalPlan::Unnest(Unnest { input, ..unnest }), origins))
    }
}

fn all_raw(plan: LogicalPlan) -> (LogicalPlan, Vec<Origin>) {
    let origins = vec![Origin::Raw; plan.schema().fields().len()];
    (plan, origins)
}

fn refuse_labels(origins: &[Origin], node: &str) -> Result<()> {
    match origins.iter().find_map(Origin::column) {
        Some(column) => Err(RewriteError::Node { column, node: node.to_owned() }.into()),
        None => Ok(()),
    }
}
