//! [`KeepUnknown`]: `n IN (...)` stays unknown if `n` is null.
//!
//! DataFusion 55 merges IN lists of the same expression. It replaces a list that becomes empty by false, and a negated one
//! by true: `n NOT IN (1) OR n NOT IN (2)` becomes true for every row, although it is unknown in SQL if `n` is null. Later
//! releases are right (apache/datafusion#24258). Until then this rule adds the case of null to such a list: `n IN (1)`
//! becomes `n IN (1) OR n IS NULL AND NULL`.
//!
//! # Guarantee
//! If `n` is null, the expression keeps its value when DataFusion replaces a list. `x OR NULL` is unknown if `x` is unknown
//! or false, so replacing the list by false changes nothing. The same holds for negated lists with AND and true.
//! # Deviations
//! A filter treats unknown as false, so lists in it that can't wrongly become true are left alone, because tables look rows
//! up by them. Several equalities of one column count as lists, because DataFusion merges them, too. Equalities that meet
//! only when projections are merged are not found.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, lit};
use datafusion::optimizer::AnalyzerRule;

/// The analyzer rule that keeps IN lists unknown for null. It must run after types are coerced.
#[derive(Debug, Default)]
pub struct KeepUnknown;

impl AnalyzerRule for KeepUnknown {
    fn name(&self) -> &str {
        "keep_unknown"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(keep_in_node).map(|kept| kept.data)
    }
}

fn keep_in_node(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut any = false;
    plan.apply_expressions(|expression| {
        any |= expression.exists(|part| Ok(is_list(part) || column_of_equality(part).is_some()))?;
        Ok(if any { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !any {
        return Ok(Transformed::no(plan));
    }
    let condition = match &plan {
        LogicalPlan::Filter(filter) => Some(filter.predicate.clone()),
        LogicalPlan::Join(join) => join.filter.clone(),
        _ => None,
    };
    let (names, schema) = (NamePreserver::new(&plan), merge_schema(&plan.inputs()));
    let mut keep = |expression: Expr| {
        let place = match condition.as_ref() == Some(&expression) {
            true => Place::Condition { denied: false, below_or: false },
            false => Place::Value,
        };
        let name = names.save(&expression);
        let keeper = Keeper { schema: &schema, equalities: compared_repeatedly(&expression)? };
        Ok(Transformed::yes(name.restore(keeper.keep(expression, place)?)))
    };
    let kept = plan.map_expressions(|expression| match expression {
        // The parts of a grouping set have names, the set itself has none.
        Expr::GroupingSet(_) => expression.map_children(&mut keep),
        _ => keep(expression),
    })?;
    kept.map_data(LogicalPlan::recompute_schema)
}

/// Where in an expression a list is.
#[derive(Clone, Copy)]
enum Place {
    /// In a filter, below nothing but AND, OR and NOT.
    Condition { denied: bool, below_or: bool },
    /// Anywhere else, where unknown and false differ.
    Value,
}

struct Keeper<'a> {
    schema: &'a DFSchema,
    /// Columns that are compared with constants more than once.
    equalities: Vec<Expr>,
}

impl Keeper<'_> {
    fn keep(&self, expression: Expr, place: Place) -> Result<Expr> {
        match (expression, place) {
            (Expr::Not(inner), Place::Condition { denied, below_or }) => {
                let inner = self.keep(*inner, Place::Condition { denied: !denied, below_or })?;
                Ok(Expr::Not(Box::new(inner)))
            }
            (
                Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }),
                Place::Condition { denied, below_or },
            ) => {
                let place = Place::Condition { denied, below_or: below_or || (op == Operator::Or) != denied };
                let (left, right) = (self.keep(*left, place)?, self.keep(*right, place)?);
                Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
            }
            (expression, place) => {
                let looked_up = self.looked_up(&expression).filter(|(looked_up, is_negated)| {
                    let is_safe = match place {
                        Place::Condition { denied, below_or } => *is_negated == denied || !below_or,
                        Place::Value => false,
                    };
                    let can_be_null = looked_up.nullable(self.schema).unwrap_or(true);
                    !is_safe && can_be_null && !looked_up.is_volatile()
                });
                let of_null = looked_up.map(|(looked_up, is_negated)| (looked_up.clone(), is_negated));
                let expression = expression.map_children(|part| self.keep(part, Place::Value).map(Transformed::yes))?;
                Ok(match of_null {
                    Some((looked_up, is_negated)) => unknown_if_null(expression.data, looked_up, is_negated),
                    None => expression.data,
                })
            }
        }
    }

    /// The expression that is looked up in a list, and whether the list is negated.
    fn looked_up<'e>(&self, expression: &'e Expr) -> Option<(&'e Expr, bool)> {
        match expression {
            Expr::InList(InList { expr, negated, .. }) => Some((expr, *negated)),
            _ => column_of_equality(expression)
                .filter(|column| self.equalities.contains(column))
                .map(|column| (column, false)),
        }
    }
}

fn unknown_if_null(list: Expr, looked_up: Expr, is_negated: bool) -> Expr {
    let unknown = || lit(ScalarValue::Boolean(None));
    if is_negated {
        list.and(looked_up.is_not_null().or(unknown()))
    } else {
        list.or(looked_up.is_null().and(unknown()))
    }
}

fn is_list(expression: &Expr) -> bool {
    matches!(expression, Expr::InList(_))
}

/// The column of `column = constant`.
fn column_of_equality(expression: &Expr) -> Option<&Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = expression else { return None };
    match (left.as_ref(), right.as_ref()) {
        (column @ Expr::Column(_), Expr::Literal(..)) | (Expr::Literal(..), column @ Expr::Column(_)) => Some(column),
        _ => None,
    }
}

fn compared_repeatedly(expression: &Expr) -> Result<Vec<Expr>> {
    let (mut once, mut repeatedly) = (Vec::new(), Vec::new());
    expression.apply(|part| {
        if let Some(column) = column_of_equality(part) {
            let seen = if once.contains(column) { &mut repeatedly } else { &mut once };
            seen.push(column.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(repeatedly)
}
