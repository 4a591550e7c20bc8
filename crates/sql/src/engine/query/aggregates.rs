//! Which questions a view with `ANSWERS AGGREGATES` answers: counts, sums and averages, for groups of labels.
//!
//! The check follows each column of such a view from its scan up to an aggregate. Below the aggregate, labels may be compared,
//! joined and renamed, and columns of numbers only handed on. Above it everything is allowed, because nothing of single rows is left.
//! Whatever else would give rows, or would compute with a number of one person, is refused with the name of the column.
//!
//! # Guarantee
//! None about persons: that no answer tells less than a class does not depend on this check, because the view itself shows
//! totals of classes alone (`view/read/totals.rs`). The check keeps rows of totals from being taken for rows of persons, and
//! conditions on a total from being taken for conditions on a value.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchemaRef};
use datafusion::logical_expr::expr::{AggregateFunction, InSubquery, SetComparison};
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{Distinct, Expr, Join, JoinType, LogicalPlan, Subquery, TableScan};
use kohort_model::Role;

use super::plans::reads_any;
use crate::SqlError;
use crate::parser::Answers;
use crate::view::{AView, Definition, has_totals};

/// Refuses a plan that asks a view with `ANSWERS AGGREGATES` for something else.
pub(crate) fn check_aggregates(plan: &LogicalPlan) -> Result<(), SqlError> {
    let answers_aggregates =
        |table: &dyn TableProvider| table.downcast_ref::<AView>().is_some_and(|view| only_aggregates(&view.definition));
    if !reads_any(plan, answers_aggregates)? {
        return Ok(());
    }
    Check::default().root(plan)
}

fn only_aggregates(definition: &Definition) -> bool {
    definition.clauses.answers == Answers::Aggregates
}

/// What a column holds.
#[derive(Clone, Debug, PartialEq)]
enum Cells {
    /// Nothing of such a view, or something that was made of aggregates.
    Free,
    /// Labels.
    Labels,
    /// Numbers, which may be added up.
    Numbers,
    /// Anything else, which is not shown at all.
    Hidden,
}

/// What a node hands on.
#[derive(Clone)]
struct Shape {
    /// The view whose rows are not aggregated yet.
    rows_of: Option<RowsOf>,
    schema: DFSchemaRef,
    cells: Vec<Cells>,
}

/// A view, and what may be asked of it.
#[derive(Clone)]
struct RowsOf {
    view: String,
    labels: Vec<String>,
}

impl RowsOf {
    fn refuse(&self, what: impl Into<String>) -> SqlError {
        SqlError::OnlyAggregates { view: self.view.clone(), what: what.into(), labels: self.labels.clone() }
    }
}

#[derive(Default)]
struct Check {
    /// The inputs of the expressions of enclosing queries, the nearest last.
    outer: Vec<Vec<Shape>>,
}

impl Check {
    /// Checks a whole statement.
    fn root(&mut self, plan: &LogicalPlan) -> Result<(), SqlError> {
        match plan {
            LogicalPlan::Explain(_)
            | LogicalPlan::Analyze(_)
            | LogicalPlan::Statement(_)
            | LogicalPlan::Ddl(_)
            | LogicalPlan::Dml(_)
            | LogicalPlan::Copy(_) => plan.inputs().into_iter().try_for_each(|input| self.root(input)),
            _ => aggregated(&self.shape(plan)?),
        }
    }

    fn shape(&mut self, plan: &LogicalPlan) -> Result<Shape, SqlError> {
        let schema = Arc::clone(plan.schema());
        if let LogicalPlan::TableScan(scan) = plan {
            return self.scan(scan, schema);
        }
        let inputs = self.inputs(plan)?;
        let rows_of = inputs.iter().find_map(|input| input.rows_of.clone());
        let Some(of) = &rows_of else {
            // Expressions may still refer to an enclosing query, or hold one of their own.
            plan.expressions().iter().try_for_each(|expression| self.uses_no_cells(expression, &inputs))?;
            let cells = vec![Cells::Free; schema.fields().len()];
            return Ok(Shape { rows_of: None, schema, cells });
        };
        let handed_on = |cells: Vec<Cells>, schema| Ok(Shape { rows_of: rows_of.clone(), schema, cells });
        match plan {
            LogicalPlan::Projection(projection) => {
                let cells = projection.expr.iter().map(|expression| self.cells(expression, &inputs));
                let cells = cells.collect::<Result<Vec<Cells>, _>>()?;
                handed_on(cells, schema)
            }
            LogicalPlan::Filter(_) | LogicalPlan::Sort(_) => {
                if matches!(plan, LogicalPlan::Sort(sort) if sort.fetch.is_some()) {
                    return Err(of.refuse("LIMIT stands below the aggregate"));
                }
                plan.expressions().iter().try_for_each(|expression| self.uses_no_cells(expression, &inputs))?;
                handed_on(inputs[0].cells.clone(), schema)
            }
            LogicalPlan::SubqueryAlias(_) | LogicalPlan::Subquery(_) => handed_on(inputs[0].cells.clone(), schema),
            LogicalPlan::Join(join) => self.join(join, &inputs, schema),
            LogicalPlan::Distinct(Distinct::All(_)) => {
                let columns = schema.columns();
                let shown = columns.iter().zip(&inputs[0].cells).find(|(_, cells)| !is_open(cells));
                match shown {
                    Some((column, _)) => {
                        Err(of.refuse(format!("DISTINCT shows the values of column '{}'", column.name)))
                    }
                    None => Ok(Shape { rows_of: None, cells: vec![Cells::Free; columns.len()], schema }),
                }
            }
            LogicalPlan::Aggregate(aggregate) => {
                for key in grouping_set_to_exprlist(&aggregate.group_expr)? {
                    self.uses_no_cells(key, &inputs)?;
                }
                aggregate.aggr_expr.iter().try_for_each(|expression| self.aggregate(expression, &inputs))?;
                let cells = vec![Cells::Free; schema.fields().len()];
                Ok(Shape { rows_of: None, schema, cells })
            }
            LogicalPlan::Window(_) => Err(of.refuse("a window function answers row by row")),
            LogicalPlan::Union(_) => Err(of.refuse("UNION stands below the aggregate")),
            LogicalPlan::Limit(_) => Err(of.refuse("LIMIT stands below the aggregate")),
            _ => Err(of.refuse("the query shows rows")),
        }
    }

    fn inputs(&mut self, plan: &LogicalPlan) -> Result<Vec<Shape>, SqlError> {
        let LogicalPlan::Join(join) = plan else {
            return plan.inputs().into_iter().map(|input| self.shape(input)).collect();
        };
        let left = self.shape(&join.left)?;
        // A lateral right side refers to the left one as to an enclosing query.
        self.outer.push(vec![left.clone()]);
        let right = self.shape(&join.right);
        self.outer.pop();
        Ok(vec![left, right?])
    }

    fn scan(&mut self, scan: &TableScan, schema: DFSchemaRef) -> Result<Shape, SqlError> {
        if let Some(inner) = scan.source.get_logical_plan() {
            let Shape { rows_of, cells, .. } = self.shape(&inner)?;
            let cells = match &scan.projection {
                Some(projection) => projection.iter().map(|&column| cells[column].clone()).collect(),
                None => cells,
            };
            return Ok(Shape { rows_of, schema, cells });
        }
        let provider = source_as_provider(&scan.source)?;
        let view = provider.downcast_ref::<AView>().filter(|view| only_aggregates(&view.definition));
        let Some(definition) = view.map(|view| &view.definition) else {
            let cells = vec![Cells::Free; schema.fields().len()];
            return Ok(Shape { rows_of: None, schema, cells });
        };
        let cells = |position: usize| match definition.columns[position].role {
            Role::Quasi => Cells::Labels,
            Role::Sensitive | Role::Plain
                if !definition.is_labelled(position) && has_totals(&definition.columns[position].data_type) =>
            {
                Cells::Numbers
            }
            _ => Cells::Hidden,
        };
        let positions = scan.projection.clone().unwrap_or_else(|| (0..definition.columns.len()).collect());
        let cells: Vec<Cells> = positions.into_iter().map(cells).collect();
        let labels = definition.with_role(Role::Quasi).into_iter();
        let labels = labels.map(|position| definition.columns[position].name.clone()).collect();
        let shape = Shape { rows_of: Some(RowsOf { view: definition.name.clone(), labels }), schema, cells };
        let inputs = [shape];
        scan.filters.iter().try_for_each(|filter| self.uses_no_cells(filter, &inputs))?;
        let [shape] = inputs;
        Ok(shape)
    }

    fn join(&mut self, join: &Join, inputs: &[Shape], schema: DFSchemaRef) -> Result<Shape, SqlError> {
        let keys = join.on.iter().flat_map(|(left, right)| [left, right]);
        keys.chain(&join.filter).try_for_each(|expression| self.uses_no_cells(expression, inputs))?;
        let (left, right) = (&inputs[0], &inputs[1]);
        let both = || [left.cells.clone(), right.cells.clone()].concat();
        let (of, mut cells) = match join.join_type {
            JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
                (left.rows_of.clone().or_else(|| right.rows_of.clone()), both())
            }
            JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => (left.rows_of.clone(), left.cells.clone()),
            JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
                (right.rows_of.clone(), right.cells.clone())
            }
        };
        cells.resize(schema.fields().len(), Cells::Free);
        Ok(Shape { rows_of: of, schema, cells })
    }

    /// Checks one aggregate over rows.
    fn aggregate(&mut self, expression: &Expr, inputs: &[Shape]) -> Result<(), SqlError> {
        let call = match expression.clone().unalias() {
            Expr::AggregateFunction(call) => call,
            other => return self.uses_no_cells(&other, inputs),
        };
        let AggregateFunction { func, params } = &call;
        let of = inputs.iter().find_map(|input| input.rows_of.clone()).expect("an aggregate over rows has rows");
        let adds = match func.name() {
            "count" | "grouping" => false,
            "sum" | "avg" => true,
            other => return Err(of.refuse(format!("{other} is none of them"))),
        };
        params.filter.iter().try_for_each(|filter| self.uses_no_cells(filter, inputs))?;
        params.order_by.iter().try_for_each(|sort| self.uses_no_cells(&sort.expr, inputs))?;
        for argument in &params.args {
            let Expr::Column(column) = argument else {
                self.uses_no_cells(argument, inputs)?;
                continue;
            };
            match find(inputs, column) {
                Some(Cells::Numbers) if params.distinct => {
                    return Err(of.refuse(format!("DISTINCT tells the values of column '{}' apart", column.name)));
                }
                Some(Cells::Hidden) if adds => {
                    return Err(of.refuse(format!("column '{}' can't be added up", column.name)));
                }
                Some(Cells::Hidden) => {
                    return Err(of.refuse(format!("the values of column '{}' can't be counted", column.name)));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// What an expression over rows holds.
    fn cells(&mut self, expression: &Expr, inputs: &[Shape]) -> Result<Cells, SqlError> {
        let mut plain = expression;
        while let Expr::Alias(alias) = plain {
            plain = &alias.expr;
        }
        if let Expr::Column(column) = plain {
            return Ok(find(inputs, column).unwrap_or(Cells::Hidden));
        }
        self.uses_no_cells(expression, inputs)?;
        let is_of_rows = !expression.column_refs().is_empty();
        Ok(if is_of_rows { Cells::Labels } else { Cells::Free })
    }

    /// Refuses an expression that uses a number or a hidden column of a row, in it or in its subqueries.
    fn uses_no_cells(&mut self, expression: &Expr, inputs: &[Shape]) -> Result<(), SqlError> {
        let mut refusal = None;
        expression.apply(|part| {
            let checked = match part {
                Expr::Column(column) => check_open(inputs, column),
                Expr::OuterReferenceColumn(_, column) => self.check_outer(column),
                Expr::ScalarSubquery(subquery) => self.subquery(subquery, inputs, aggregated),
                Expr::Exists(exists) => self.subquery(&exists.subquery, inputs, |_| Ok(())),
                Expr::InSubquery(InSubquery { subquery, .. }) | Expr::SetComparison(SetComparison { subquery, .. }) => {
                    self.subquery(subquery, inputs, |shape| match shape.cells.iter().all(is_open) {
                        true => Ok(()),
                        false => aggregated(shape),
                    })
                }
                _ => Ok(()),
            };
            refusal = checked.err();
            Ok(if refusal.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        refusal.map_or(Ok(()), Err)
    }

    fn subquery(
        &mut self,
        subquery: &Subquery,
        inputs: &[Shape],
        check: impl FnOnce(&Shape) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        self.outer.push(inputs.to_vec());
        let shape = self.shape(&subquery.subquery);
        self.outer.pop();
        check(&shape?)
    }

    fn check_outer(&self, column: &Column) -> Result<(), SqlError> {
        let inputs = self.outer.iter().rev().find(|inputs| find(inputs, column).is_some());
        inputs.map_or(Ok(()), |inputs| check_open(inputs, column))
    }
}

/// Refuses rows as an answer.
fn aggregated(shape: &Shape) -> Result<(), SqlError> {
    shape.rows_of.as_ref().map_or(Ok(()), |of| Err(of.refuse("the query shows rows")))
}

fn check_open(inputs: &[Shape], column: &Column) -> Result<(), SqlError> {
    let of = inputs.iter().find_map(|input| input.rows_of.as_ref());
    match (find(inputs, column), of) {
        (Some(Cells::Numbers), Some(of)) => {
            Err(of.refuse(format!("column '{}' can only be added up as it is", column.name)))
        }
        (Some(Cells::Hidden), Some(of)) => {
            Err(of.refuse(format!("column '{}' can't be compared, grouped or computed with", column.name)))
        }
        (Some(Cells::Free | Cells::Labels) | None, _) | (_, None) => Ok(()),
    }
}

/// Whether cells may be compared, grouped and computed with.
fn is_open(cells: &Cells) -> bool {
    match cells {
        Cells::Free | Cells::Labels => true,
        Cells::Numbers | Cells::Hidden => false,
    }
}

fn find(inputs: &[Shape], column: &Column) -> Option<Cells> {
    inputs.iter().find_map(|input| input.cells.get(input.schema.maybe_index_of_column(column)?).cloned())
}
