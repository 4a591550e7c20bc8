//! Expressions whose value is shown, grouped, sorted or counted. An expression made of labels holds labels, may be shown
//! but not compared, or is refused.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::{
    AggregateFunction, Exists, InSubquery, ScalarFunction, SetComparison, Sort, WindowFunction,
};
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, Subquery};

use super::RewriteError;
use super::lineage::{Origin, Rewriter, Scope};
use super::predicate::Polarity;
use crate::meaning::{CouldBe, CouldMatch};

impl Rewriter<'_> {
    /// An expression with its subqueries rewritten, and the origin of its value.
    pub(super) fn value(&mut self, expression: Expr, scope: &Scope) -> Result<(Expr, Origin)> {
        match expression {
            Expr::Column(ref column) => {
                let origin = self.origin(column, scope)?;
                Ok((expression, origin))
            }
            Expr::OuterReferenceColumn(_, ref column) => {
                let origin = self.outer_origin(column)?;
                Ok((expression, origin))
            }
            Expr::Alias(mut alias) => {
                let (inner, origin) = self.value(*alias.expr, scope)?;
                alias.expr = Box::new(inner);
                Ok((Expr::Alias(alias), origin))
            }
            Expr::Cast(mut cast) => {
                let (inner, origin) = self.value(*cast.expr, scope)?;
                cast.expr = Box::new(inner);
                let origin = cast_to(cast.field.data_type().is_string(), origin)?;
                Ok((Expr::Cast(cast), origin))
            }
            Expr::TryCast(mut cast) => {
                let (inner, origin) = self.value(*cast.expr, scope)?;
                cast.expr = Box::new(inner);
                let origin = cast_to(cast.field.data_type().is_string(), origin)?;
                Ok((Expr::TryCast(cast), origin))
            }
            Expr::ScalarSubquery(subquery) => {
                let (subquery, origin) = self.subquery(&subquery, scope)?;
                if let Some(column) = label_from_outside(&subquery.subquery)? {
                    return Err(RewriteError::CorrelatedScalar { column }.into());
                }
                Ok((Expr::ScalarSubquery(subquery), origin))
            }
            Expr::Exists(exists) => {
                let (subquery, _) = self.subquery(&exists.subquery, scope)?;
                Ok((Expr::Exists(Exists::new(subquery, exists.negated)), Origin::Raw))
            }
            Expr::InSubquery(membership) => {
                let (subquery, origin) = self.subquery(&membership.subquery, scope)?;
                let (operand, operand_origin) = self.value(*membership.expr, scope)?;
                refuse_truth(&operand_origin.or(&origin), "IN (SELECT ...)")?;
                let membership = InSubquery::new(Box::new(operand), subquery, membership.negated);
                Ok((Expr::InSubquery(membership), Origin::Raw))
            }
            Expr::SetComparison(comparison) => {
                let SetComparison { expr, subquery, op, quantifier } = comparison;
                let (subquery, origin) = self.subquery(&subquery, scope)?;
                let (operand, operand_origin) = self.value(*expr, scope)?;
                refuse_truth(&operand_origin.or(&origin), "a comparison with ANY or ALL")?;
                let comparison = SetComparison::new(Box::new(operand), subquery, op, quantifier);
                Ok((Expr::SetComparison(comparison), Origin::Raw))
            }
            Expr::AggregateFunction(call) => self.aggregate(call, scope),
            Expr::WindowFunction(call) => self.window(*call, scope),
            Expr::ScalarFunction(ref call) if asks_labels(call) => Ok((expression, Origin::Raw)),
            Expr::GroupingSet(_) => {
                let grouping =
                    expression.map_children(|part| self.value(part, scope).map(|(part, _)| Transformed::yes(part)))?;
                Ok((grouping.data, Origin::Raw))
            }
            other => {
                let what = kind(&other);
                let is_truth = is_truth(&other);
                let raw = other.map_children(|part| {
                    let (part, origin) = self.value(part, scope)?;
                    match origin.column() {
                        None => Ok(Transformed::yes(part)),
                        Some(column) if is_truth => Err(RewriteError::TruthValue { column, what: what.clone() }.into()),
                        Some(column) => Err(RewriteError::Expression { column, what: what.clone() }.into()),
                    }
                })?;
                Ok((raw.data, Origin::Raw))
            }
        }
    }

    /// A subquery of an expression, rewritten, and the origin of its first column.
    pub(super) fn subquery(&mut self, subquery: &Subquery, scope: &Scope) -> Result<(Subquery, Origin)> {
        self.outer.push(scope.clone());
        let rewritten = self.plan(subquery.subquery.as_ref().clone());
        self.outer.pop();
        let (plan, origins) = rewritten?;
        let origin = origins.into_iter().next().unwrap_or(Origin::Raw);
        Ok((subquery.with_plan(plan.into()), origin))
    }

    fn aggregate(&mut self, mut call: AggregateFunction, scope: &Scope) -> Result<(Expr, Origin)> {
        let (args, origins) = self.values(std::mem::take(&mut call.params.args), scope)?;
        call.params.args = args;
        call.params.order_by = self.sorted(std::mem::take(&mut call.params.order_by), scope)?;
        call.params.filter = self.filtered(call.params.filter.take(), scope)?;
        let origin = origin_of_call(call.func.name(), &origins)?;
        Ok((Expr::AggregateFunction(call), origin))
    }

    fn window(&mut self, mut call: WindowFunction, scope: &Scope) -> Result<(Expr, Origin)> {
        let (args, origins) = self.values(std::mem::take(&mut call.params.args), scope)?;
        call.params.args = args;
        call.params.partition_by = self.values(std::mem::take(&mut call.params.partition_by), scope)?.0;
        call.params.order_by = self.sorted(std::mem::take(&mut call.params.order_by), scope)?;
        call.params.filter = self.filtered(call.params.filter.take(), scope)?;
        let origin = match (call.fun.name(), &origins[..]) {
            ("lag" | "lead", [origin]) | ("lag" | "lead", [origin, Origin::Raw]) => origin.clone(),
            (name, origins) => origin_of_call(name, origins)?,
        };
        Ok((Expr::WindowFunction(Box::new(call)), origin))
    }

    pub(super) fn values(&mut self, expressions: Vec<Expr>, scope: &Scope) -> Result<(Vec<Expr>, Vec<Origin>)> {
        let values: Result<Vec<(Expr, Origin)>> =
            expressions.into_iter().map(|expression| self.value(expression, scope)).collect();
        Ok(values?.into_iter().unzip())
    }

    pub(super) fn sorted(&mut self, keys: Vec<Sort>, scope: &Scope) -> Result<Vec<Sort>> {
        keys.into_iter().map(|key| Ok(Sort::new(self.value(key.expr, scope)?.0, key.asc, key.nulls_first))).collect()
    }

    fn filtered(&mut self, filter: Option<Box<Expr>>, scope: &Scope) -> Result<Option<Box<Expr>>> {
        filter.map(|filter| self.predicate(*filter, Polarity::Asserted, scope).map(Box::new)).transpose()
    }
}

/// Whether a call asks labels: a [`CouldBe`] or a [`CouldMatch`].
pub(super) fn asks_labels(call: &ScalarFunction) -> bool {
    call.func.inner().is::<CouldBe>() || call.func.inner().is::<CouldMatch>()
}

/// A column of an enclosing query that a function of labels in this plan takes as an argument. DataFusion can turn a
/// scalar subquery that depends on the outer row into a join only if a plain equality connects them.
fn label_from_outside(plan: &LogicalPlan) -> Result<Option<String>> {
    let mut found = None;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            expression.apply(|part| {
                if let Expr::ScalarFunction(call) = part
                    && asks_labels(call)
                {
                    let outside = call.args.iter().find_map(|argument| match argument {
                        Expr::OuterReferenceColumn(_, column) => Some(column.flat_name()),
                        _ => None,
                    });
                    found = found.take().or(outside);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(found)
}

fn cast_to(text: bool, origin: Origin) -> Result<Origin> {
    match origin.column() {
        Some(column) if !text => {
            Err(RewriteError::Expression { column, what: "a CAST to anything but text".to_owned() }.into())
        }
        _ => Ok(origin),
    }
}

fn refuse_truth(origin: &Origin, what: &str) -> Result<()> {
    match origin.column() {
        Some(column) => Err(RewriteError::TruthValue { column, what: what.to_owned() }.into()),
        None => Ok(()),
    }
}

fn origin_of_call(function: &str, arguments: &[Origin]) -> Result<Origin, DataFusionError> {
    let Some(column) = arguments.iter().find_map(Origin::column) else { return Ok(Origin::Raw) };
    match (function, arguments) {
        ("count" | "approx_distinct" | "grouping", _) => Ok(Origin::Raw),
        ("array_agg" | "string_agg", [_] | [_, Origin::Raw]) => Ok(Origin::Shown(column)),
        ("first_value" | "last_value" | "any_value", [origin]) | ("nth_value", [origin, Origin::Raw]) => {
            Ok(origin.clone())
        }
        _ => Err(RewriteError::Aggregate { column, function: function.to_owned() }.into()),
    }
}

fn is_truth(expression: &Expr) -> bool {
    match expression {
        Expr::BinaryExpr(binary) => {
            matches!(binary.op, Operator::And | Operator::Or)
                || binary.op.negate().is_some_and(|_| !is_regex(binary.op))
        }
        Expr::Like(_)
        | Expr::Not(_)
        | Expr::IsNotNull(_)
        | Expr::IsNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::IsNotUnknown(_)
        | Expr::Between(_)
        | Expr::InList(_) => true,
        _ => false,
    }
}

fn is_regex(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::RegexMatch | Operator::RegexIMatch | Operator::RegexNotMatch | Operator::RegexNotIMatch
    )
}

/// The name of an expression in messages.
pub(super) fn kind(expression: &Expr) -> String {
    match expression {
        Expr::BinaryExpr(binary) => format!("the operator {}", binary.op),
        Expr::ScalarFunction(call) => format!("the function {}", call.name()),
        Expr::HigherOrderFunction(call) => format!("the function {}", call.name()),
        Expr::Like(_) => "LIKE".to_owned(),
        Expr::SimilarTo(_) => "SIMILAR TO".to_owned(),
        Expr::Not(_) => "NOT".to_owned(),
        Expr::IsNull(_) | Expr::IsNotNull(_) => "IS NULL".to_owned(),
        Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::IsNotUnknown(_) => "IS TRUE, FALSE or UNKNOWN".to_owned(),
        Expr::Negative(_) => "a minus sign".to_owned(),
        Expr::Between(_) => "BETWEEN".to_owned(),
        Expr::Case(_) => "CASE".to_owned(),
        Expr::InList(_) => "IN".to_owned(),
        Expr::Unnest(_) => "unnest".to_owned(),
        other => format!("an expression of kind {}", other.variant_name()),
    }
}
