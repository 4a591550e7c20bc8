//! [`JoinThroughPairs`]: a join of labels that could be equal, as joins of equal texts.
//!
//! "Could be equal" is no equality, so that a join on it compares every row with every row. There are far fewer
//! distinct labels and values than rows:
//!
//! ```text
//! left JOIN right ON left.l AVLIKE right.r
//!   =>  pairs = DISTINCT l  x  DISTINCT r  WHERE l AVLIKE r
//!       left JOIN (pairs JOIN right ON pairs.r = right.r) ON left.l = pairs.l
//! ```
//!
//! # Guarantee
//! the same rows: a pair is there once, exactly where the two could be equal, and NULL is in none
//! # Paper
//! `[EPS+12]` section 6 joins on quasi and sensitive columns; how is left open
//! # Deviations
//! right and full joins, and joins that have a key beside, keep comparing row by row
//! # Cost
//! both sides are read twice; the pairs are compared one by one

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, Result};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Join, LogicalPlan, LogicalPlanBuilder, col};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::meaning::CouldMatch;

const LEFT: &str = "could be: left";
const RIGHT: &str = "could be: right";
const PAIRS: &str = "could be";
const LABEL: &str = "label";
const VALUE: &str = "value";

/// The optimizer rule.
#[derive(Debug, Default)]
pub struct JoinThroughPairs;

impl OptimizerRule for JoinThroughPairs {
    fn name(&self) -> &str {
        "join_through_pairs"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Join(join) = plan else { return Ok(Transformed::no(plan)) };
        match through_pairs(&join)? {
            Some(plan) => Ok(Transformed::yes(plan)),
            None => Ok(Transformed::no(LogicalPlan::Join(join))),
        }
    }
}

fn through_pairs(join: &Join) -> Result<Option<LogicalPlan>> {
    let served = matches!(join.join_type, JoinType::Inner | JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti);
    let Some(filter) = join.filter.as_ref().filter(|_| served && join.on.is_empty()) else { return Ok(None) };
    if is_side_of_pairs(&join.left) || is_volatile(&join.left)? || is_volatile(&join.right)? {
        return Ok(None);
    }
    let mut conditions = split_conjunction_owned(filter.clone());
    let found = conditions.iter().enumerate().find_map(|(place, condition)| Some((place, sides(join, condition)?)));
    let Some((place, Sides { label, value, function, is_swapped })) = found else { return Ok(None) };
    conditions.remove(place);

    let lefts = distinct(&join.left, &label, LABEL, LEFT)?;
    let rights = distinct(&join.right, &value, VALUE, RIGHT)?;
    let label_of_pair = Expr::Column(Column::new(Some(LEFT), LABEL));
    let value_of_pair = Expr::Column(Column::new(Some(RIGHT), VALUE));
    let cells = if is_swapped { vec![value_of_pair, label_of_pair] } else { vec![label_of_pair, value_of_pair] };
    let pairs = LogicalPlanBuilder::from(lefts)
        .join_on(rights, JoinType::Inner, [function.call(cells)])?
        .alias(PAIRS)?
        .build()?;

    let value_key = Column::new(Some(PAIRS), VALUE);
    let right = LogicalPlanBuilder::from(pairs)
        .join(join.right.as_ref().clone(), JoinType::Inner, (vec![value_key], vec![value]), None)?
        .build()?;
    let label_key = Column::new(Some(PAIRS), LABEL);
    let joined = LogicalPlanBuilder::from(join.left.as_ref().clone()).join(
        right,
        join.join_type,
        (vec![label], vec![label_key]),
        conjunction(conditions),
    )?;
    let columns: Vec<Expr> = join.schema.columns().into_iter().map(Expr::Column).collect();
    joined.project(columns)?.build().map(Some)
}

/// The two columns of a condition "could be equal", and the function that says so.
struct Sides {
    label: Column,
    value: Column,
    function: Arc<datafusion::logical_expr::ScalarUDF>,
    is_swapped: bool,
}

fn sides(join: &Join, condition: &Expr) -> Option<Sides> {
    let Expr::ScalarFunction(call) = condition else { return None };
    call.func.inner().downcast_ref::<CouldMatch>().filter(|function| function.is_equality())?;
    let [Expr::Column(first), Expr::Column(second)] = call.args.as_slice() else { return None };
    let in_left = |column: &Column| join.left.schema().has_column(column);
    let in_right = |column: &Column| join.right.schema().has_column(column);
    let function = Arc::clone(&call.func);
    if in_left(first) && in_right(second) {
        Some(Sides { label: first.clone(), value: second.clone(), function, is_swapped: false })
    } else if in_left(second) && in_right(first) {
        Some(Sides { label: second.clone(), value: first.clone(), function, is_swapped: true })
    } else {
        None
    }
}

fn distinct(plan: &LogicalPlan, column: &Column, name: &str, alias: &str) -> Result<LogicalPlan> {
    LogicalPlanBuilder::from(plan.clone())
        .project([Expr::Column(column.clone()).alias(name)])?
        .filter(col(name).is_not_null())?
        .distinct()?
        .alias(alias)?
        .build()
}

/// Whether a plan is the left side of pairs already, whatever other rules have put above it.
fn is_side_of_pairs(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::SubqueryAlias(alias) => alias.alias.table() == LEFT,
        LogicalPlan::Projection(projection) => is_side_of_pairs(&projection.input),
        _ => false,
    }
}

fn is_volatile(plan: &LogicalPlan) -> Result<bool> {
    let mut is_volatile = false;
    plan.apply(|node| {
        is_volatile |= node.expressions().iter().any(Expr::is_volatile);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(is_volatile)
}
