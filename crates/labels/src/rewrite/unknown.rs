//! [`KeepUnknown`]: lists of values stay unknown where what is looked up in them is null.
//!
//! DataFusion 55 merges lists that are asked of the same expression, and takes what is left empty for false, or for
//! true where it is denied: `n NOT IN (1) OR n NOT IN (2)` holds of every row, also where `n` is null and SQL says
//! neither yes nor no. Later releases do it right (apache/datafusion#24258); until then this rule writes beside such a
//! list what it is of null: `n IN (1)` becomes `n IN (1) OR n IS NULL AND NULL`.
//!
//! # Guarantee
//! Whatever becomes of lists, of null an expression is what it was. Of null `x OR NULL` is unknown for an `x` that is
//! unknown or false, so to take a list for false there changes nothing; for denied ones the same with the signs turned.
//! # Deviations
//! A condition that only asks whether a row stays takes unknown for false anyway, so lists in it that can't become true
//! that way are left as they are, for the sake of whoever looks rows up by them. Equalities are taken for lists where
//! an expression has several of one column; those that meet only when projections are merged are not seen.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, lit};
use datafusion::optimizer::AnalyzerRule;

/// The analyzer rule that keeps what lists are of null. It must run after types are coerced.
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
        // Its parts have names, and itself none.
        Expr::GroupingSet(_) => expression.map_children(&mut keep),
        _ => keep(expression),
    })?;
    kept.map_data(LogicalPlan::recompute_schema)
}

/// Where a list stands.
#[derive(Clone, Copy)]
enum Place {
    /// Where it decides whether a row stays, through AND, OR and NOT.
    Condition { denied: bool, below_or: bool },
    /// Where unknown and false differ.
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

    /// What a list is asked of, and whether it is denied.
    fn looked_up<'e>(&self, expression: &'e Expr) -> Option<(&'e Expr, bool)> {
        match expression {
            Expr::InList(InList { expr, negated, .. }) => Some((expr, *negated)),
            _ => column_of_equality(expression).filter(|column| self.equalities.contains(column)).map(|it| (it, false)),
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
