//! [`RefuseRawComparisons`]: no plan runs in which a plain comparison touches a label.
//!
//! The net knows nothing of meanings. It follows marks: a column is marked if the expression that computes it contains a
//! marked column anywhere, except in a count or in a function of labels. It runs after type coercion, so it sees what other
//! rules made of a plan.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchemaRef, NullEquality, Result};
use datafusion::logical_expr::expr::{InSubquery, SetComparison};
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{Distinct, Expr, Join, JoinType, LogicalPlan, TableScan};
use datafusion::optimizer::AnalyzerRule;

use super::value::asks_labels;
use super::{ProtectedColumns, RewriteError};

/// The analyzer rule that fails a plan with a plain comparison of labels. It must run after all others.
#[derive(Debug)]
pub struct RefuseRawComparisons {
    protected: ProtectedColumns,
}

impl RefuseRawComparisons {
    /// The rule for these protected columns.
    pub fn new(protected: ProtectedColumns) -> RefuseRawComparisons {
        RefuseRawComparisons { protected }
    }
}

impl AnalyzerRule for RefuseRawComparisons {
    fn name(&self) -> &str {
        "refuse_raw_comparisons"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if self.protected.any_in(&plan)? {
            Net { protected: &self.protected, outer: Vec::new() }.marks(&plan)?;
        }
        Ok(plan)
    }
}

/// The protected column that a column is made of; `None` if there is none.
type Mark = Option<String>;

#[derive(Clone)]
struct Marked {
    schema: DFSchemaRef,
    marks: Vec<Mark>,
}

struct Net<'a> {
    protected: &'a ProtectedColumns,
    outer: Vec<Vec<Marked>>,
}

impl Net<'_> {
    /// The marks of a plan's columns, after all its comparisons were checked.
    fn marks(&mut self, plan: &LogicalPlan) -> Result<Vec<Mark>> {
        match plan {
            // The plans inside are checked when they are used.
            LogicalPlan::Ddl(_) | LogicalPlan::Statement(_) => return Ok(vec![None; plan.schema().fields().len()]),
            _ => {}
        }
        let mut inputs: Vec<Marked> = Vec::new();
        for input in plan.inputs() {
            // An input of a lateral join may refer to the inputs left of it.
            self.outer.push(inputs.clone());
            let marks = self.marks(input);
            self.outer.pop();
            inputs.push(Marked { schema: Arc::clone(input.schema()), marks: marks? });
        }
        if let LogicalPlan::Join(join) = plan {
            self.check_keys(join, &inputs)?;
        }
        plan.apply_expressions(|expression| {
            self.check(expression, &inputs)?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        self.output(plan, &inputs)
    }

    fn output(&mut self, plan: &LogicalPlan, inputs: &[Marked]) -> Result<Vec<Mark>> {
        let n_columns = plan.schema().fields().len();
        match plan {
            LogicalPlan::TableScan(scan) => Ok(self.scan(scan)),
            LogicalPlan::Projection(projection) => self.all(projection.expr.iter(), inputs),
            LogicalPlan::Distinct(Distinct::On(distinct)) => self.all(distinct.select_expr.iter(), inputs),
            LogicalPlan::Window(window) => {
                let new = self.all(window.window_expr.iter(), inputs)?;
                Ok(inputs[0].marks.iter().cloned().chain(new).collect())
            }
            LogicalPlan::Aggregate(aggregate) => {
                let mut marks = self.all(grouping_set_to_exprlist(&aggregate.group_expr)?, inputs)?;
                marks.resize(n_columns - aggregate.aggr_expr.len(), None);
                marks.extend(self.all(aggregate.aggr_expr.iter(), inputs)?);
                Ok(marks)
            }
            LogicalPlan::Join(join) => {
                let (left, right) = (inputs[0].marks.iter(), inputs[1].marks.iter());
                let mut marks: Vec<Mark> = match join.join_type {
                    JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
                        left.chain(right).cloned().collect()
                    }
                    JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => left.cloned().collect(),
                    JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => right.cloned().collect(),
                };
                marks.resize(n_columns, None);
                Ok(marks)
            }
            LogicalPlan::Union(_) => {
                let of_column = |column: usize| inputs.iter().find_map(|input| input.marks[column].clone());
                Ok((0..n_columns).map(of_column).collect())
            }
            LogicalPlan::Unnest(unnest) => {
                Ok(unnest.dependency_indices.iter().map(|&index| inputs[0].marks[index].clone()).collect())
            }
            LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) => Ok(vec![None; n_columns]),
            _ => match inputs {
                [input] if input.marks.len() == n_columns => Ok(input.marks.clone()),
                _ => {
                    let mark = inputs.iter().flat_map(|input| &input.marks).find_map(Clone::clone);
                    Ok(vec![mark; n_columns])
                }
            },
        }
    }

    fn scan(&self, scan: &TableScan) -> Vec<Mark> {
        let meanings = self.protected.of(scan);
        let mark = |index: usize| {
            let meaning = meanings.as_ref()?.get(index)?.as_ref()?;
            Some(format!("{}.{}", meaning.view(), meaning.column()))
        };
        match &scan.projection {
            Some(projection) => projection.iter().map(|&index| mark(index)).collect(),
            None => (0..scan.projected_schema.fields().len()).map(mark).collect(),
        }
    }

    fn all<'e>(&mut self, expressions: impl IntoIterator<Item = &'e Expr>, inputs: &[Marked]) -> Result<Vec<Mark>> {
        expressions.into_iter().map(|expression| self.mark(expression, inputs)).collect()
    }

    /// The mark of an expression's value.
    fn mark(&mut self, expression: &Expr, inputs: &[Marked]) -> Result<Mark> {
        match expression {
            Expr::Column(column) => Ok(find(inputs, column)),
            Expr::OuterReferenceColumn(_, column) => {
                Ok(self.outer.iter().rev().find_map(|inputs| find(inputs, column)))
            }
            Expr::ScalarFunction(call) if asks_labels(call) => Ok(None),
            Expr::AggregateFunction(call) if counts(call.func.name()) => Ok(None),
            Expr::WindowFunction(call) if counts(call.fun.name()) || call.params.args.is_empty() => Ok(None),
            Expr::ScalarSubquery(subquery) => self.subquery(&subquery.subquery, inputs),
            Expr::Exists(_) => Ok(None),
            _ => {
                let mut mark = None;
                expression.apply_children(|part| {
                    mark = self.mark(part, inputs)?;
                    Ok(if mark.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
                })?;
                Ok(mark)
            }
        }
    }

    /// The mark of a subquery's first column.
    fn subquery(&mut self, plan: &LogicalPlan, inputs: &[Marked]) -> Result<Mark> {
        self.outer.push(inputs.to_vec());
        let marks = self.marks(plan);
        self.outer.pop();
        Ok(marks?.into_iter().next().flatten())
    }

    /// Fails at a comparison of something marked, anywhere in an expression.
    fn check(&mut self, expression: &Expr, inputs: &[Marked]) -> Result<()> {
        expression.apply(|part| {
            let in_subquery = match part {
                Expr::InSubquery(InSubquery { subquery, .. }) | Expr::SetComparison(SetComparison { subquery, .. }) => {
                    self.subquery(&subquery.subquery, inputs)?
                }
                Expr::Exists(exists) => {
                    self.subquery(&exists.subquery.subquery, inputs)?;
                    None
                }
                Expr::ScalarSubquery(subquery) => {
                    self.subquery(&subquery.subquery, inputs)?;
                    None
                }
                _ => None,
            };
            let operand = if compares(part) { self.mark(part, inputs)? } else { None };
            match in_subquery.or(operand) {
                Some(column) => Err(RewriteError::RawComparison { column }.into()),
                None => Ok(TreeNodeRecursion::Continue),
            }
        })?;
        Ok(())
    }

    fn check_keys(&mut self, join: &Join, inputs: &[Marked]) -> Result<()> {
        for (left, right) in &join.on {
            let (left, right) = (self.mark(left, &inputs[..1])?, self.mark(right, &inputs[1..])?);
            let by_label = join.null_equality == NullEquality::NullEqualsNull && left == right;
            if let (false, Some(column)) = (by_label, left.or(right)) {
                return Err(RewriteError::RawComparison { column }.into());
            }
        }
        Ok(())
    }
}

fn find(inputs: &[Marked], column: &Column) -> Mark {
    inputs
        .iter()
        .find_map(|input| input.schema.maybe_index_of_column(column).map(|index| input.marks[index].clone()))?
}

fn counts(function: &str) -> bool {
    matches!(function, "count" | "approx_distinct" | "grouping")
}

fn compares(expression: &Expr) -> bool {
    match expression {
        Expr::BinaryExpr(binary) => binary.op.negate().is_some(),
        Expr::Like(_)
        | Expr::SimilarTo(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::Between(_)
        | Expr::InList(_)
        | Expr::InSubquery(_)
        | Expr::SetComparison(_)
        | Expr::Case(_) => true,
        _ => false,
    }
}
