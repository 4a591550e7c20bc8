//! [`check_growth`]: an analyst's query makes no values so large that the process runs out of memory.
//!
//! What sorts, joins and groupings take is bounded while they run. Functions take what they need, and some are told by a
//! number how much that is: `repeat('a', 2000000000)`. What the system does not give ends the process, for everybody. So
//! how large values can become is counted before anything is computed, from the largest that columns are taken to hold.
//!
//! # Guarantee
//! Where texts of tables are no longer than is assumed, what a plan's node computes per row is bounded. It is no bound on
//! time: statements run apart from each other for that.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, ScalarFunction};
use datafusion::logical_expr::{Expr, ExprSchemable, JoinType, LogicalPlan, Operator};

use crate::SqlError;

/// Bytes that the expressions of a query may compute per row, in each of its steps.
pub(super) const MOST_BYTES: u64 = 32 << 10;

/// Bytes that a cell of a table is taken to hold.
const OF_CELL: u64 = 256;

/// Bytes of a list or text that is gathered from rows, which is bounded where it is gathered.
const OF_GATHERED: u64 = 8 << 10;

/// Bytes of a number, a date, a truth.
const OF_NUMBER: u64 = 16;

/// Steps that a comparison of texts may take per row.
const MOST_STEPS: u64 = 1 << 21;

/// How exact an approximation may be.
const MOST_EXACT: u64 = 10_000;

/// Refuses plans that could make too large values.
///
/// # Errors
/// Where one could, or where it can't be known.
pub(super) fn check_growth(plan: &LogicalPlan) -> Result<(), SqlError> {
    sizes_of(plan).map(drop)
}

/// Refuses an expression over cells of a table that could.
///
/// # Errors
/// As [`check_growth`].
pub(super) fn check_expression(expression: &Expr, schema: &DFSchema) -> Result<(), SqlError> {
    let sizes = vec![OF_CELL; schema.fields().len()];
    within_bounds(Row { schema, sizes: &sizes }.size(expression)?).map(drop)
}

/// How large the cells of each column can be.
fn sizes_of(plan: &LogicalPlan) -> Result<Vec<u64>, SqlError> {
    let inputs = plan.inputs().into_iter().map(sizes_of).collect::<Result<Vec<_>, SqlError>>()?;
    let n_columns = plan.schema().fields().len();
    let schemas: Vec<&DFSchema> = plan.inputs().iter().map(|input| input.schema().as_ref()).collect();
    let (schema, sizes) = joined(&schemas, &inputs)?;
    let row = Row { schema: &schema, sizes: &sizes };
    let of_expressions =
        plan.expressions().iter().map(|expression| row.size(expression)).collect::<Result<Vec<_>, _>>()?;
    within_bounds(of_expressions.iter().fold(0, |all, size| u64::saturating_add(all, *size)))?;
    let found = match plan {
        LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) => of_expressions,
        LogicalPlan::Window(_) => [sizes, of_expressions].concat(),
        LogicalPlan::Values(_) => vec![of_expressions.into_iter().max().unwrap_or(OF_CELL); n_columns],
        LogicalPlan::Union(_) => {
            let largest = |column: usize| inputs.iter().filter_map(|sizes| sizes.get(column)).copied().max();
            (0..n_columns).map(|column| largest(column).unwrap_or(OF_CELL)).collect()
        }
        LogicalPlan::Join(join) => match join.join_type {
            JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
                inputs.into_iter().next_back().unwrap_or_default()
            }
            _ => sizes,
        },
        LogicalPlan::RecursiveQuery(_) | LogicalPlan::Unnest(_) => vec![OF_GATHERED; n_columns],
        LogicalPlan::TableScan(_) | LogicalPlan::EmptyRelation(_) => vec![OF_CELL; n_columns],
        _ => sizes,
    };
    let mut found = found;
    found.resize(n_columns, OF_CELL);
    Ok(found)
}

/// The columns of all inputs after each other.
fn joined(schemas: &[&DFSchema], inputs: &[Vec<u64>]) -> Result<(DFSchema, Vec<u64>), SqlError> {
    let mut all = DFSchema::empty();
    let mut sizes = Vec::new();
    for (schema, of_input) in schemas.iter().zip(inputs) {
        // The same column twice, as below a UNION, is one of both.
        for (position, (qualifier, field)) in schema.iter().enumerate() {
            let column = Column::new(qualifier.cloned(), field.name());
            match all.maybe_index_of_column(&column) {
                Some(known) => sizes[known] = u64::max(sizes[known], of_input[position]),
                None => {
                    let one =
                        DFSchema::new_with_metadata(vec![(qualifier.cloned(), field.clone())], Default::default())?;
                    all.merge(&one);
                    sizes.push(of_input[position]);
                }
            }
        }
    }
    sizes.resize(all.fields().len(), OF_CELL);
    Ok((all, sizes))
}

/// What expressions are computed from.
struct Row<'a> {
    schema: &'a DFSchema,
    sizes: &'a [u64],
}

impl Row<'_> {
    fn size(&self, expression: &Expr) -> Result<u64, SqlError> {
        Ok(match expression {
            Expr::Column(column) => {
                self.schema.maybe_index_of_column(column).and_then(|at| self.sizes.get(at)).copied().unwrap_or(OF_CELL)
            }
            Expr::Literal(value, _) => of_literal(value),
            Expr::BinaryExpr(binary) => {
                let (left, right) = (self.size(&binary.left)?, self.size(&binary.right)?);
                match binary.op {
                    Operator::StringConcat => within_bounds(left.saturating_add(right))?,
                    _ => OF_NUMBER,
                }
            }
            Expr::ScalarFunction(call) => within_bounds(self.of_call(call, expression)?)?,
            Expr::AggregateFunction(call) => self.of_aggregate(call)?,
            Expr::WindowFunction(call) => self.largest(&call.params.args)?.min(OF_GATHERED),
            Expr::ScalarSubquery(query) => sizes_of(&query.subquery)?.into_iter().max().unwrap_or(OF_CELL),
            Expr::Exists(exists) => {
                sizes_of(&exists.subquery.subquery)?;
                OF_NUMBER
            }
            Expr::InSubquery(query) => {
                sizes_of(&query.subquery.subquery)?;
                self.size(&query.expr)?;
                OF_NUMBER
            }
            other => {
                let mut most = Ok(OF_NUMBER);
                other.apply_children(|part| {
                    let so_far = *most.as_ref().unwrap_or(&OF_NUMBER);
                    most = self.size(part).map(|size| size.max(so_far));
                    Ok(if most.is_ok() { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
                })?;
                most?
            }
        })
    }

    fn largest<'e>(&self, parts: impl IntoIterator<Item = &'e Expr>) -> Result<u64, SqlError> {
        parts.into_iter().try_fold(OF_NUMBER, |most, part| Ok(self.size(part)?.max(most)))
    }

    fn of_call(&self, call: &ScalarFunction, expression: &Expr) -> Result<u64, SqlError> {
        let sizes = call.args.iter().map(|part| self.size(part)).collect::<Result<Vec<u64>, SqlError>>()?;
        let size = |position: usize| sizes.get(position).copied().unwrap_or(OF_NUMBER);
        let all = || sizes.iter().fold(OF_NUMBER, |all, size| all.saturating_add(*size));
        let times = |position: usize| match call.args.get(position) {
            Some(number) => constant(number).ok_or_else(too_large),
            None => Ok(1),
        };
        Ok(match call.func.name() {
            "repeat" | "array_repeat" => size(0).saturating_mul(times(1)?),
            "lpad" | "rpad" => size(0).max(times(1)?.saturating_mul(4)),
            "array_resize" => size(0).saturating_add(times(1)?.saturating_mul(size(2).max(OF_NUMBER))),
            "space" => times(0)?,
            "range" | "generate_series" => {
                let ends =
                    call.args.iter().map(|end| constant(end).ok_or_else(too_large)).collect::<Result<Vec<u64>, _>>()?;
                ends.into_iter().max().unwrap_or(0).saturating_mul(2 * OF_NUMBER)
            }
            "replace" | "regexp_replace" | "translate" => (size(0) + 1).saturating_mul(size(2) + 1).max(size(0)),
            "array_to_string" => size(0).saturating_mul(size(1) + 1),
            "encode" => all().saturating_mul(2),
            // Its second argument names a type, which may have any length.
            "arrow_cast" | "arrow_try_cast" if !is_plain_type(call.args.get(1)) => return Err(too_large()),
            "levenshtein" => match size(0).saturating_mul(size(1)) {
                steps if steps > MOST_STEPS => return Err(too_large()),
                _ => OF_NUMBER,
            },
            _ if expression.get_type(self.schema).is_ok_and(|data_type| is_small(&data_type)) => OF_NUMBER,
            _ => all(),
        })
    }

    fn of_aggregate(&self, call: &AggregateFunction) -> Result<u64, SqlError> {
        let AggregateFunction { func, params } = call;
        let sizes = params.args.iter().map(|part| self.size(part)).collect::<Result<Vec<u64>, SqlError>>()?;
        if func.name().starts_with("approx_percentile") {
            // The last number that may be there says how much is kept.
            let is_exact =
                |part: &Expr| !matches!(part, Expr::Column(_)) && constant(part).is_none_or(|n| n > MOST_EXACT);
            if params.args.iter().skip(1).any(is_exact) {
                return Err(too_large());
            }
        }
        Ok(match func.name() {
            "string_agg" | "array_agg" => OF_GATHERED,
            _ => sizes.into_iter().max().unwrap_or(OF_NUMBER).max(OF_NUMBER),
        })
    }
}

fn too_large() -> SqlError {
    SqlError::TooLarge { most: MOST_BYTES }
}

fn within_bounds(size: u64) -> Result<u64, SqlError> {
    if size > MOST_BYTES { Err(too_large()) } else { Ok(size) }
}

fn of_literal(value: &ScalarValue) -> u64 {
    match value {
        ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) | ScalarValue::Utf8View(text) => {
            text.as_ref().map_or(0, |text| text.len() as u64).max(1)
        }
        value if is_small(&value.data_type()) => OF_NUMBER,
        value => value.size() as u64,
    }
}

/// A number that is written as one, without its sign.
fn constant(expression: &Expr) -> Option<u64> {
    match expression {
        Expr::Literal(value, _) => match value.cast_to(&DataType::Float64).ok()? {
            ScalarValue::Float64(Some(number)) => Some(number.abs().ceil() as u64),
            ScalarValue::Float64(None) => Some(0),
            _ => None,
        },
        Expr::Negative(inner) => constant(inner),
        Expr::Cast(cast) => constant(&cast.expr),
        Expr::Alias(alias) => constant(&alias.expr),
        _ => None,
    }
}

fn is_plain_type(name: Option<&Expr>) -> bool {
    matches!(name, Some(Expr::Literal(ScalarValue::Utf8(Some(name)), _)) if !name.contains("Fixed") && !name.contains("List"))
}

fn is_small(data_type: &DataType) -> bool {
    data_type.is_primitive() || matches!(data_type, DataType::Boolean | DataType::Null)
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionContext;

    use super::*;

    async fn is_refused(sql: &str) -> bool {
        let context = SessionContext::new();
        context.sql("CREATE TABLE t (a TEXT, n BIGINT) AS VALUES ('x', 1)").await.unwrap();
        let plan = context.state().create_logical_plan(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        check_growth(&plan).is_err()
    }

    #[tokio::test]
    async fn what_could_become_too_large_is_refused() {
        let mut doubled = "SELECT a FROM t".to_owned();
        for _ in 0..12 {
            doubled = format!("SELECT a || a AS a FROM ({doubled})");
        }
        for sql in [
            "SELECT length(repeat('a', 2000000000))",
            "SELECT repeat('a', n) FROM t",
            "SELECT repeat(repeat(repeat('a', 1000), 1000), 1000)",
            "SELECT lpad('a', 2000000000, 'b')",
            "SELECT array_length(array_repeat('abc', 2000000000))",
            "SELECT array_resize(make_array(1), 2000000000)",
            "SELECT range(1, 2000000000)",
            "SELECT arrow_cast(make_array(1), 'FixedSizeList(2147483647, Int64)')",
            "SELECT approx_percentile_cont(n, 0.5, 1000000000000000) FROM t",
            "SELECT n FROM t WHERE length(repeat(a, 100000)) = 1",
            "SELECT n FROM t ORDER BY repeat('a', 1000000)",
            "SELECT count(*) FROM t GROUP BY repeat('a', 1000000)",
            "SELECT n FROM t WHERE EXISTS (SELECT repeat('a', 1000000) FROM t)",
            "SELECT (SELECT repeat('a', 1000000))",
            "SELECT levenshtein(repeat('a', 30000), repeat('b', 30000))",
            "SELECT replace(repeat('a', 10000), 'a', repeat('b', 10000))",
            &doubled,
        ] {
            assert!(is_refused(sql).await, "{sql}");
        }
    }

    #[tokio::test]
    async fn what_people_ask_is_not() {
        for sql in [
            "SELECT a || ' ' || a || '-' || n AS b FROM t WHERE upper(lower(trim(a))) LIKE 'x%' ORDER BY length(a)",
            "SELECT repeat('-', 20), lpad(a, 10, '0'), rpad(a, 10), replace(a, 'x', 'y') FROM t",
            "SELECT a, count(*), avg(n), string_agg(a, ', ') FROM t GROUP BY a HAVING count(*) > 1",
            "SELECT u.a || v.a FROM t AS u JOIN t AS v ON u.n = v.n LEFT JOIN t AS w ON w.a = v.a",
            "SELECT approx_percentile_cont(n, 0.5), approx_percentile_cont(n, 0.5, 200) FROM t",
            "SELECT a FROM t UNION ALL SELECT a || 'x' FROM t",
            "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 10) SELECT * FROM r",
            "SELECT CASE WHEN n > 1 THEN a ELSE 'none' END, row_number() OVER (ORDER BY n), lag(a) OVER (ORDER BY n) FROM t",
            "SELECT levenshtein(a, 'abc'), array_to_string(array_agg(a), ',') FROM t GROUP BY a",
            "SELECT * FROM generate_series(1, 1000000) AS s (x) WHERE x % 7 = 3",
        ] {
            assert!(!is_refused(sql).await, "{sql}");
        }
    }
}
