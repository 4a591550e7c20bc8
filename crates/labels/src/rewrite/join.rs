//! [`JoinThroughPairs`]: a join on labels that could be equal becomes joins on equal texts.
//!
//! "Could be equal" is not an equality, so a join on it would compare every row with every row. There are far fewer
//! distinct labels and values than rows, so the rule first finds the pairs of them that could be equal:
//!
//! ```text
//! left LEFT JOIN right ON left.l AVLIKE right.r
//!   =>  pairs = DISTINCT l  x  DISTINCT r  WHERE l AVLIKE r
//!       left LEFT JOIN (pairs JOIN right ON pairs.r = right.r) ON pairs.l = left.l
//! ```
//!
//! The labels that a view shows are known without its rows. So the view is read after the pairs, and builds only the
//! classes whose labels are in a pair: DataFusion passes the labels to it as a dynamic filter.
//!
//! | join | through pairs |
//! | --- | --- |
//! | inner | itself, with the rows of each view that the pairs leave; [`super::FindPairs`] compares what rows show |
//! | left, left anti | `left LEFT [ANTI] JOIN (pairs JOIN right)` |
//! | left semi | `(pairs JOIN right) RIGHT SEMI JOIN left` |
//! | left mark (EXISTS within OR) | `left LEFT MARK JOIN (pairs JOIN right)` |
//! | right ones | as the left ones, with sides swapped |
//! | full | the left join, and the rows of its right anti join |
//!
//! # Guarantee
//! The same rows. Each pair that could be equal is there once, no other pair is there, and NULL is in no pair.
//! # Paper
//! `[EPS+12]` section 6 joins on quasi and sensitive columns, with a semi-join before anonymizing, and does not say how.
//! # Deviations
//! A join that also has a plain key is made by the key, and labels are compared among the rows that share it.
//! # Cost
//! A side whose labels are not known beforehand, or that shows few of them, is read twice, and four times in a full join.
//! [`super::FindPairs`] finds the pairs.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, Result, ScalarValue};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Distinct, Expr, Join, LogicalPlan, LogicalPlanBuilder, ScalarUDF, TableScan, TableSource, col, lit,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::meaning::CouldMatch;

const LEFT: &str = "could be: left";
const RIGHT: &str = "could be: right";
const PAIRS: &str = "could be";
const MET: &str = "could be: met";
const LABEL: &str = "label";
const VALUE: &str = "value";

type OfColumn = dyn Fn(&TableScan, usize) -> Option<Arc<dyn TableSource>> + Send + Sync;

/// The optimizer rule.
pub struct JoinThroughPairs {
    labels: Arc<OfColumn>,
}

impl JoinThroughPairs {
    /// The rule. The function returns a table whose only column lists all labels that a scanned table can show in a column,
    /// which is given by its place in the table's full schema.
    pub fn new(
        labels: impl Fn(&TableScan, usize) -> Option<Arc<dyn TableSource>> + Send + Sync + 'static,
    ) -> JoinThroughPairs {
        JoinThroughPairs { labels: Arc::new(labels) }
    }
}

impl fmt::Debug for JoinThroughPairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JoinThroughPairs")
    }
}

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
        match self.through_pairs(&join)? {
            Some(plan) => Ok(Transformed::yes(plan)),
            None => Ok(Transformed::no(LogicalPlan::Join(join))),
        }
    }
}

impl JoinThroughPairs {
    fn through_pairs(&self, join: &Join) -> Result<Option<LogicalPlan>> {
        let Some(filter) = join.filter.as_ref().filter(|_| join.on.is_empty()) else { return Ok(None) };
        if is_side_of_pairs(&join.left) || is_volatile(&join.left)? || is_volatile(&join.right)? {
            return Ok(None);
        }
        let mut conditions = split_conjunction_owned(filter.clone());
        let found = conditions.iter().enumerate().find_map(|(place, condition)| Some((place, sides(join, condition)?)));
        let Some((place, sides)) = found else { return Ok(None) };
        conditions.remove(place);
        let condition = conjunction(conditions);
        let columns = join.schema.columns();
        let kept = |plan: LogicalPlanBuilder| plan.project(columns.iter().cloned().map(Expr::Column))?.build();
        let joined = match join.join_type {
            JoinType::Inner => return self.reduced(join, sides, filter),
            JoinType::LeftSemi => kept(self.last(&sides, condition)?)?,
            JoinType::RightSemi => kept(self.last(&sides.swapped(), condition)?)?,
            JoinType::Left | JoinType::LeftAnti => kept(self.first(&sides, join.join_type, condition)?)?,
            JoinType::Right => kept(self.first(&sides.swapped(), JoinType::Left, condition)?)?,
            JoinType::RightAnti => kept(self.first(&sides.swapped(), JoinType::LeftAnti, condition)?)?,
            JoinType::Full => self.full(join, sides, condition)?,
            JoinType::LeftMark => self.marked(join, &sides, condition)?,
            JoinType::RightMark => self.marked(join, &sides.swapped(), condition)?,
        };
        Ok(Some(joined))
    }

    /// An inner join whose views show only rows with a label that meets something; `None` if there is nothing to leave
    /// out. A view is the right side then, whose rows need not stay in memory.
    fn reduced(&self, join: &Join, sides: Sides, filter: &Expr) -> Result<Option<LogicalPlan>> {
        let is_known = |side: &JoinSide| self.labels_of(&side.plan, &side.column).is_some();
        let leaves_out = |side: &JoinSide| is_known(side) && !is_met(&side.plan);
        let (left_leaves, right_leaves) = (leaves_out(&sides.left), leaves_out(&sides.right));
        if !left_leaves && !right_leaves {
            return Ok(None);
        }
        let is_turned = is_known(&sides.left) && !is_known(&sides.right);
        let right_shows_few = shows_few(&sides.right.plan);
        let left_shows_few = shows_few(&sides.left.plan) && !right_shows_few;
        let left = match left_leaves {
            true => self.met(&sides, right_shows_few)?,
            false => sides.left.plan.clone(),
        };
        let sides = sides.swapped();
        let right = match right_leaves {
            true => self.met(&sides, left_shows_few)?,
            false => sides.left.plan,
        };
        let (first, second) = if is_turned { (right, left) } else { (left, right) };
        let joined = LogicalPlanBuilder::from(first).join_on(second, JoinType::Inner, [filter.clone()])?;
        let columns = join.schema.columns().into_iter().map(Expr::Column);
        joined.project(columns)?.build().map(Some)
    }

    /// The rows of the left side whose label could be equal to a cell of the right side. If the right side shows few of
    /// the labels that it has, its rows say which.
    fn met(&self, sides: &Sides, right_shows_few: bool) -> Result<LogicalPlan> {
        let Sides { left, right, .. } = sides;
        let mut pairs = self.pairs(sides)?;
        if right_shows_few && self.labels_of(&right.plan, &right.column).is_some() {
            let keys = (vec![Column::new(Some(PAIRS), VALUE)], vec![right.column.clone()]);
            pairs = pairs.join(right.plan.clone(), JoinType::LeftSemi, keys, None)?;
        }
        let keys = (vec![Column::new(Some(MET), LABEL)], vec![left.column.clone()]);
        pairs.alias(MET)?.join(left.plan.clone(), JoinType::RightSemi, keys, None)?.build()
    }

    /// The rows of the left side that meet one of the right side. The left side is read last.
    fn last(&self, sides: &Sides, condition: Option<Expr>) -> Result<LogicalPlanBuilder> {
        let keys = (vec![Column::new(Some(PAIRS), LABEL)], vec![sides.left.column.clone()]);
        let reached = LogicalPlanBuilder::from(self.reached(sides)?);
        reached.join(sides.left.plan.clone(), JoinType::RightSemi, keys, condition)
    }

    /// A join that reads the left side first.
    fn first(&self, sides: &Sides, join_type: JoinType, condition: Option<Expr>) -> Result<LogicalPlanBuilder> {
        let keys = (vec![sides.left.column.clone()], vec![Column::new(Some(PAIRS), LABEL)]);
        LogicalPlanBuilder::from(sides.left.plan.clone()).join(self.reached(sides)?, join_type, keys, condition)
    }

    /// The rows of the left side, each with a mark that says whether it met a row.
    fn marked(&self, join: &Join, sides: &Sides, condition: Option<Expr>) -> Result<LogicalPlan> {
        let marked = self.first(sides, JoinType::LeftMark, condition)?;
        let made = marked.schema().columns().into_iter();
        // The mark has the name of the table that was met, which is now the table of pairs.
        let named = made.zip(join.schema.columns()).map(|(made, column)| match made == column {
            true => Expr::Column(column),
            false => Expr::Column(made).alias_qualified(column.relation, column.name),
        });
        let named: Vec<Expr> = named.collect();
        marked.project(named)?.build()
    }

    /// The rows of a left join, and the rows of the right side that met none. Columns get numbers as names on their way
    /// through the union, because a union drops the tables they belong to.
    fn full(&self, join: &Join, sides: Sides, condition: Option<Expr>) -> Result<LogicalPlan> {
        let columns = join.schema.columns();
        let number = |place: usize| format!("{PAIRS} {place}");
        let matched = self.first(&sides, JoinType::Left, condition.clone())?;
        let numbered =
            columns.iter().enumerate().map(|(place, column)| Expr::Column(column.clone()).alias(number(place)));
        let matched = matched.project(numbered)?.build()?;
        let lonely = self.first(&sides.swapped(), JoinType::LeftAnti, condition)?;
        let n_left = join.left.schema().fields().len();
        let mut numbered = Vec::with_capacity(columns.len());
        for (place, column) in columns.iter().enumerate() {
            let cell = match place < n_left {
                true => lit(ScalarValue::try_from(join.schema.field(place).data_type())?),
                false => Expr::Column(column.clone()),
            };
            numbered.push(cell.alias(number(place)));
        }
        let lonely = lonely.project(numbered)?.build()?;
        let named = columns.iter().enumerate().map(|(place, column)| {
            Expr::Column(Column::new_unqualified(number(place))).alias_qualified(column.relation.clone(), &column.name)
        });
        LogicalPlanBuilder::from(matched).union(lonely)?.project(named)?.build()
    }

    /// The rows of the right side, once for each label of the left side that they could be equal to.
    fn reached(&self, sides: &Sides) -> Result<LogicalPlan> {
        let keys = (vec![Column::new(Some(PAIRS), VALUE)], vec![sides.right.column.clone()]);
        self.pairs(sides)?.join(sides.right.plan.clone(), JoinType::Inner, keys, None)?.build()
    }

    /// The pairs of labels of the left side and cells of the right side that could be equal.
    fn pairs(&self, sides: &Sides) -> Result<LogicalPlanBuilder> {
        let Sides { left, right, function, is_swapped } = sides;
        let lefts = self.distinct(left, LABEL, LEFT)?;
        let rights = self.distinct(right, VALUE, RIGHT)?;
        let mut cells =
            vec![Expr::Column(Column::new(Some(LEFT), LABEL)), Expr::Column(Column::new(Some(RIGHT), VALUE))];
        if *is_swapped {
            cells.reverse();
        }
        let pairs = LogicalPlanBuilder::from(lefts).join_on(rights, JoinType::Inner, [function.call(cells)])?;
        pairs.alias(PAIRS)
    }

    /// The distinct cells of a side's column, and perhaps labels that it does not hold.
    fn distinct(&self, side: &JoinSide, name: &str, alias: &str) -> Result<LogicalPlan> {
        let distinct = match self.labels_of(&side.plan, &side.column) {
            Some((table, labels)) => {
                let scan = LogicalPlanBuilder::scan(table, labels, None)?;
                let label = scan.schema().columns().swap_remove(0);
                scan.project([Expr::Column(label).alias(name)])?
            }
            None => LogicalPlanBuilder::from(side.plan.clone())
                .project([Expr::Column(side.column.clone()).alias(name)])?
                .filter(col(name).is_not_null())?
                .distinct()?,
        };
        distinct.alias(alias)?.build()
    }

    /// The labels that a column can hold, and a name for their table; `None` if the column does not come from a scan
    /// unchanged.
    fn labels_of(&self, plan: &LogicalPlan, column: &Column) -> Option<(String, Arc<dyn TableSource>)> {
        let place = plan.schema().maybe_index_of_column(column)?;
        let below = |input: &LogicalPlan, column: &Column| self.labels_of(input, column);
        match plan {
            LogicalPlan::TableScan(scan) => {
                let place = scan.projection.as_ref().map_or(place, |projection| projection[place]);
                let labels = (self.labels)(scan, place)?;
                Some((format!("labels of {}.{}", scan.table_name.table(), column.name), labels))
            }
            LogicalPlan::SubqueryAlias(alias) => below(&alias.input, alias.input.schema().columns().get(place)?),
            LogicalPlan::Projection(projection) => match projection.expr[place].clone().unalias() {
                Expr::Column(column) => below(&projection.input, &column),
                _ => None,
            },
            LogicalPlan::Filter(filter) => below(&filter.input, column),
            LogicalPlan::Sort(sort) => below(&sort.input, column),
            LogicalPlan::Limit(limit) => below(&limit.input, column),
            LogicalPlan::Distinct(Distinct::All(input)) => below(input, column),
            LogicalPlan::Join(join) => below(&join.left, column).or_else(|| below(&join.right, column)),
            _ => None,
        }
    }
}

/// One side of a join, and the column of it that is compared.
struct JoinSide {
    plan: LogicalPlan,
    column: Column,
}

/// The two sides of a condition "could be equal", and the function that decides it.
struct Sides {
    left: JoinSide,
    right: JoinSide,
    function: Arc<ScalarUDF>,
    /// Whether the function's first argument is of the right side.
    is_swapped: bool,
}

impl Sides {
    fn swapped(self) -> Sides {
        Sides { left: self.right, right: self.left, function: self.function, is_swapped: !self.is_swapped }
    }
}

fn sides(join: &Join, condition: &Expr) -> Option<Sides> {
    let Expr::ScalarFunction(call) = condition else { return None };
    call.func.inner().downcast_ref::<CouldMatch>().filter(|function| function.is_equality())?;
    let [Expr::Column(first), Expr::Column(second)] = call.args.as_slice() else { return None };
    let of = |plan: &Arc<LogicalPlan>, column: &Column| {
        plan.schema().has_column(column).then(|| JoinSide { plan: plan.as_ref().clone(), column: column.clone() })
    };
    let function = Arc::clone(&call.func);
    if let (Some(left), Some(right)) = (of(&join.left, first), of(&join.right, second)) {
        return Some(Sides { left, right, function, is_swapped: false });
    }
    let (left, right) = (of(&join.left, second)?, of(&join.right, first)?);
    Some(Sides { left, right, function, is_swapped: true })
}

/// Whether a plan is the left side of a join that finds pairs, below anything that other rules have put above it.
fn is_side_of_pairs(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::SubqueryAlias(alias) => alias.alias.table() == LEFT,
        LogicalPlan::Projection(projection) => is_side_of_pairs(&projection.input),
        LogicalPlan::Filter(filter) => is_side_of_pairs(&filter.input),
        _ => false,
    }
}

/// Whether a plan was already left only the rows that meet something.
fn is_met(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Join(join) => join.join_type == JoinType::RightSemi && is_alias_of_met(&join.left),
        LogicalPlan::SubqueryAlias(alias) => is_met(&alias.input),
        LogicalPlan::Projection(projection) => is_met(&projection.input),
        LogicalPlan::Filter(filter) => is_met(&filter.input),
        _ => false,
    }
}

fn is_alias_of_met(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::SubqueryAlias(alias) => alias.alias.table() == MET,
        LogicalPlan::Projection(projection) => is_alias_of_met(&projection.input),
        LogicalPlan::Filter(filter) => is_alias_of_met(&filter.input),
        _ => false,
    }
}

/// Whether a plan may show only some of the rows of its table.
fn shows_few(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(scan) => !scan.filters.is_empty() || scan.fetch.is_some(),
        LogicalPlan::SubqueryAlias(alias) => shows_few(&alias.input),
        LogicalPlan::Projection(projection) => shows_few(&projection.input),
        LogicalPlan::Sort(sort) => sort.fetch.is_some() || shows_few(&sort.input),
        _ => true,
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
