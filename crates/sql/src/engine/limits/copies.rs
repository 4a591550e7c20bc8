//! [`check_copies`]: refuses an analyst's query whose columns are computed from columns that are computed from columns, each time
//! several of them.
//!
//! The optimizer moves a condition below the projections that compute its columns, and puts the expressions in their places. If
//! each of 20 nested queries computes `x + x AS x`, a condition on `x` grows to a million parts, and planning takes longer than any
//! timeout, in the server's own process. So the parts that an expression would have are counted before anything is optimized.
//!
//! # Guarantee
//! No expression of a plan grows by more than [`MOST_COPIES`] parts if every column is replaced by what computes it. Long
//! conditions on columns of tables don't grow at all, so they are not concerned.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchemaRef};
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::SqlError;

/// Parts by which an expression may grow.
const MOST_COPIES: u64 = 1 << 12;

/// The columns of a plan, and how many parts the expression of each has if all columns in it are replaced.
struct Computed {
    schema: DFSchemaRef,
    parts: Vec<u64>,
}

impl Computed {
    /// The parts of a column, if this plan has it.
    fn parts(&self, column: &Column) -> Option<u64> {
        self.schema.maybe_index_of_column(column).and_then(|place| self.parts.get(place)).copied()
    }
}

/// The plans whose columns an expression can name.
struct Scope<'a> {
    inputs: Vec<Computed>,
    /// Those around the subquery that the expression is in.
    outer: Option<&'a Scope<'a>>,
}

impl Scope<'_> {
    /// The parts of a column of the inputs; 1 if it is unknown.
    fn parts(&self, column: &Column) -> u64 {
        self.inputs.iter().filter_map(|input| input.parts(column)).max().unwrap_or(1)
    }

    /// The parts of a column of any plan around a subquery.
    fn outer_parts(&self, column: &Column) -> u64 {
        self.outer.map_or(1, |outer| outer.parts(column).max(outer.outer_parts(column)))
    }
}

/// Refuses a plan whose expressions would grow too much.
pub(crate) fn check_copies(plan: &LogicalPlan) -> Result<(), SqlError> {
    parts_of(plan, None).map(drop)
}

fn parts_of(plan: &LogicalPlan, outer: Option<&Scope<'_>>) -> Result<Vec<u64>, SqlError> {
    let computed =
        |input: &&LogicalPlan| Ok(Computed { schema: input.schema().clone(), parts: parts_of(input, outer)? });
    let inputs: Vec<Computed> = plan.inputs().iter().map(computed).collect::<Result<_, SqlError>>()?;
    let scope = Scope { inputs, outer };
    let found = plan.expressions().iter().map(|one| expanded(one, &scope)).collect::<Result<Vec<u64>, _>>()?;
    let inputs = scope.inputs;
    let below: Vec<u64> = inputs.iter().flat_map(|input| input.parts.iter().copied()).collect();
    let n_columns = plan.schema().fields().len();
    let columns = match plan {
        LogicalPlan::Projection(_) => found,
        LogicalPlan::Aggregate(_) if found.len() == n_columns => found,
        LogicalPlan::Window(_) => [below, found].concat(),
        _ if below.len() == n_columns => below,
        // Columns that can't be told apart may be any of those below.
        _ => vec![below.into_iter().max().unwrap_or(1); n_columns],
    };
    Ok(columns)
}

/// The parts of an expression whose columns are replaced by what computes them.
fn expanded(expression: &Expr, scope: &Scope<'_>) -> Result<u64, SqlError> {
    let (mut written, mut all, mut below) = (0u64, 0u64, Ok(()));
    expression.apply(|part| {
        written += 1;
        all = all.saturating_add(match part {
            Expr::Column(column) => scope.parts(column),
            Expr::OuterReferenceColumn(_, column) => scope.outer_parts(column),
            _ => 1,
        });
        let subquery = match part {
            Expr::ScalarSubquery(query) => Some(&query.subquery),
            Expr::Exists(exists) => Some(&exists.subquery.subquery),
            Expr::InSubquery(query) => Some(&query.subquery.subquery),
            Expr::SetComparison(query) => Some(&query.subquery.subquery),
            _ => None,
        };
        if let Some(Err(error)) = subquery.map(|plan| parts_of(plan, Some(scope))) {
            below = Err(error);
        }
        Ok(if below.is_ok() { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    below?;
    if all.saturating_sub(written) > MOST_COPIES { Err(SqlError::TooManyCopies) } else { Ok(all) }
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionContext;

    use super::*;

    /// Planned on a large stack, because the planner recurses into every nested query.
    fn is_refused(sql: &str) -> bool {
        let sql = sql.to_owned();
        let plan = async move {
            let context = SessionContext::new();
            context.sql("CREATE TABLE t (x BIGINT, y BIGINT) AS VALUES (1, 2)").await.unwrap();
            let plan = context.state().create_logical_plan(&sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
            check_copies(&plan).is_err()
        };
        let run = move || tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(plan);
        std::thread::Builder::new().stack_size(64 << 20).spawn(run).unwrap().join().unwrap()
    }

    fn doubled(n: usize, condition: &str) -> String {
        let inner = (0..n).fold("SELECT x, y FROM t".to_owned(), |inner, _| {
            format!("SELECT x + x AS x, y FROM ({inner}) AS inner_one")
        });
        format!("SELECT x FROM ({inner}) AS doubled {condition}")
    }

    #[test]
    fn columns_that_double_with_every_query_are_refused() {
        assert!(is_refused(&doubled(16, "WHERE x > 1")));
        let chain: Vec<String> = (0..20).map(|n| format!("t{} AS (SELECT x + x AS x FROM t{n})", n + 1)).collect();
        let with = format!("WITH t0 AS (SELECT x FROM t), {} SELECT x FROM t20 WHERE x > 1", chain.join(", "));
        assert!(is_refused(&with));
        assert!(is_refused(&doubled(16, "ORDER BY x")));
        let below = doubled(16, "WHERE x > 1");
        assert!(is_refused(&format!("SELECT y FROM t WHERE EXISTS ({below})")));
        let around = |condition: &str| doubled(10, &format!("WHERE EXISTS (SELECT 1 FROM t WHERE {condition})"));
        let ten: Vec<String> = (0..10).map(|n| format!("doubled.x = {n}")).collect();
        assert!(is_refused(&around(&ten.join(" OR "))), "columns of the query around a subquery are replaced, too");
        assert!(is_refused(&around(&format!("EXISTS (SELECT 1 FROM t AS u WHERE {})", ten.join(" OR ")))));
        assert!(!is_refused(&around("x = 1")));
        assert!(is_refused(&format!("SELECT y FROM t UNION SELECT x FROM ({below}) AS u")));
    }

    #[test]
    fn ordinary_and_long_queries_are_not() {
        assert!(!is_refused(&doubled(8, "WHERE x > 1")));
        let long: Vec<String> = (0..200).map(|n| format!("x = {n} AND y <> {n}")).collect();
        assert!(!is_refused(&format!("SELECT x FROM t WHERE {}", long.join(" OR "))));
    }
}
