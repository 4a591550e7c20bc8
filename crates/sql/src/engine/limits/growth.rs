//! [`check_growth`]: refuses an analyst's query that could make values so large that the process runs out of memory, or that
//! could compute one value for so long that nobody can stop it.
//!
//! Sorts, joins and groupings ask DataFusion's memory pool while they run. Functions do not: `repeat('a', 2000000000)` takes
//! as much as its number says, and a process that gets no memory ends, for everybody. Plans run in worker processes where
//! there are workers, but the optimizer computes constants in the server's own process, and an engine without workers computes
//! everything there. So the size of every value is bounded before anything is computed. A cell of a table is assumed to have
//! [`OF_CELL`] bytes, and [`calls`] lists the functions whose growth is known.
//!
//! `string_agg` and `array_agg` gather the values of many rows, within the memory pool. A gathered value may be shown and
//! measured, but a query that would copy it beside each of many rows is refused.
//!
//! # Guarantee
//! If no cell is longer than assumed, the bytes and the steps that all nodes of a plan together compute per row are bounded. A
//! statement can be stopped between two batches of rows, so this also bounds how long it can't be stopped. The time of the whole
//! statement is not bounded.

mod calls;
mod pattern;

use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DFSchemaRef, ScalarValue};
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::logical_expr::expr::{Cast, InSubquery, Like, ScalarFunction, SetComparison, TryCast};
use datafusion::logical_expr::logical_plan::{Distinct, RecursiveQuery, TableScan, Unnest};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, JoinType, LogicalPlan, Operator};

use crate::SqlError;
use calls::{Call, constant, grown, steps_of};
use pattern::states;

/// Bytes that the expressions of a query may compute per row.
const MOST_BYTES: u64 = 32 << 10;

/// Steps that expressions may take per row. A batch has 8,192 rows, so a billion steps until the next batch.
const MOST_STEPS: u64 = 1 << 17;

/// Bytes that are read or written in the time of one step.
const BYTES_PER_STEP: u64 = 8;

/// Bytes that a cell of a table is assumed to have.
const OF_CELL: u64 = 256;

/// Bytes that a cell of PostgreSQL's catalog is assumed to have.
const OF_CATALOG: u64 = 64;

/// Bytes of a number, a date or a boolean.
const OF_NUMBER: u64 = 16;

/// Bytes of a number or a date that is written as a text.
const OF_WRITTEN: u64 = 128;

/// The largest number of centroids that an approximate percentile may keep.
const MOST_EXACT: u64 = 10_000;

/// How often gathered values may be copied.
const MOST_GATHERED: u64 = 2;

/// Rounds after which the columns of a recursive query must have stopped growing.
const MOST_ROUNDS: usize = 3;

/// Refuses a plan that could make too large values or take too many steps, or whose size nobody can tell beforehand.
pub(crate) fn check_growth(plan: &LogicalPlan) -> Result<(), SqlError> {
    Growth::default().of_plan(plan).map(drop)
}

/// How large a value can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    /// Bytes of the value, or of one element if the value was gathered.
    bytes: u64,
    /// Whether the value was gathered from many rows, so that it can be as large as all of them together.
    is_gathered: bool,
}

impl Size {
    const NUMBER: Size = Size::of(OF_NUMBER);

    const fn of(bytes: u64) -> Size {
        Size { bytes, is_gathered: false }
    }

    fn or(self, other: Size) -> Size {
        Size { bytes: self.bytes.max(other.bytes), is_gathered: self.is_gathered || other.is_gathered }
    }

    /// Bytes of a copy beyond those of a cell, which every row of a table takes anyway.
    fn excess(self) -> u64 {
        if self.is_gathered { 0 } else { self.bytes.saturating_sub(OF_CELL) }
    }
}

/// The columns that a node of a plan gives, with their sizes.
#[derive(Clone)]
struct SizedColumns {
    schema: DFSchemaRef,
    sizes: Vec<Size>,
}

impl SizedColumns {
    fn size(&self, column: &Column) -> Option<Size> {
        self.schema.maybe_index_of_column(column).and_then(|at| self.sizes.get(at)).copied()
    }
}

/// The row that an expression is computed from: the columns of all inputs of a node.
struct SizedRow {
    schema: DFSchema,
    inputs: Vec<SizedColumns>,
}

impl SizedRow {
    fn sizes(&self) -> Vec<Size> {
        self.inputs.iter().flat_map(|input| &input.sizes).copied().collect()
    }

    fn is_small(&self, expression: &Expr) -> bool {
        expression.get_type(&self.schema).is_ok_and(|data_type| is_small(&data_type))
    }

    fn is_nested(&self, expression: &Expr) -> bool {
        expression.get_type(&self.schema).is_ok_and(|data_type| data_type.is_nested())
    }
}

/// The counts of a plan so far.
#[derive(Default)]
struct Growth {
    /// Bytes per row beyond those of cells.
    bytes: u64,
    /// Steps per row.
    steps: u64,
    /// Copies of gathered values.
    n_gathered: u64,
    /// Names and columns of the recursive queries around the current node.
    work_tables: Vec<(String, Vec<Size>)>,
    /// Rows around the current subquery.
    outer: Vec<SizedColumns>,
}

impl Growth {
    /// How large the cells of each column of a plan can be.
    fn of_plan(&mut self, plan: &LogicalPlan) -> Result<Vec<Size>, SqlError> {
        match plan {
            LogicalPlan::RecursiveQuery(query) => return self.of_recursive(query),
            LogicalPlan::TableScan(scan) => return self.of_scan(scan),
            _ => {}
        }
        let row = SizedRow { schema: merge_schema(&plan.inputs()), inputs: self.of_inputs(plan)? };
        let expressions = plan.expressions();
        let found = expressions.iter().map(|one| self.of_expression(&row, one)).collect::<Result<Vec<_>, _>>()?;
        let computed = || expressions.iter().zip(&found).filter(|(one, _)| !is_passed_on(one)).map(|(_, size)| *size);
        within_bounds(computed().fold(0, |all, size| all.saturating_add(size.bytes)))?;
        self.make(computed())?;
        let sizes = row.sizes();
        if copies_rows(plan) {
            self.make(sizes.iter().copied())?;
        }
        let n_columns = plan.schema().fields().len();
        let all = || sizes.iter().chain(&found).fold(Size::NUMBER, |all, size| all.or(*size));
        let mut columns = match plan {
            LogicalPlan::Projection(_) => found,
            LogicalPlan::Aggregate(aggregate)
                if found.len() == aggregate.group_expr.len() + aggregate.aggr_expr.len()
                    && !aggregate.group_expr.iter().any(|group| matches!(group, Expr::GroupingSet(_))) =>
            {
                found
            }
            LogicalPlan::Window(_) => [sizes, found].concat(),
            LogicalPlan::Union(_) => {
                let of_column = |at: usize| row.inputs.iter().filter_map(move |input| input.sizes.get(at)).copied();
                (0..n_columns).map(|at| of_column(at).fold(Size::NUMBER, Size::or)).collect()
            }
            // A row of one side is copied beside many rows of the other.
            LogicalPlan::Join(_) if sizes.iter().any(|size| size.is_gathered) => return Err(SqlError::Gathered),
            LogicalPlan::Join(join) => match join.join_type {
                JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
                    row.inputs.last().map(|right| right.sizes.clone()).unwrap_or_default()
                }
                _ => sizes,
            },
            LogicalPlan::Unnest(unnest) => unnested(unnest, &sizes)?,
            LogicalPlan::Values(_) | LogicalPlan::EmptyRelation(_) | LogicalPlan::Distinct(Distinct::On(_)) => {
                vec![all(); n_columns]
            }
            _ if sizes.len() == n_columns => sizes,
            _ => vec![all(); n_columns],
        };
        columns.resize(n_columns, Size::of(OF_CELL));
        Ok(columns)
    }

    fn of_inputs(&mut self, plan: &LogicalPlan) -> Result<Vec<SizedColumns>, SqlError> {
        let n_outer = self.outer.len();
        let mut inputs = Vec::new();
        for input in plan.inputs() {
            let columns = SizedColumns { schema: input.schema().clone(), sizes: self.of_plan(input)? };
            // With LATERAL the second input reads columns of the first.
            if matches!(plan, LogicalPlan::Join(_)) {
                self.outer.push(columns.clone());
            }
            inputs.push(columns);
        }
        self.outer.truncate(n_outer);
        Ok(inputs)
    }

    fn of_scan(&self, scan: &TableScan) -> Result<Vec<Size>, SqlError> {
        if let Some(table) = source_as_provider(&scan.source)?.downcast_ref::<CteWorkTable>() {
            let known = self.work_tables.iter().rev().find(|(name, _)| name == table.name()).map(|(_, sizes)| sizes);
            let known = known.ok_or_else(too_large)?;
            let Some(columns) = &scan.projection else { return Ok(known.clone()) };
            return columns.iter().map(|column| known.get(*column).copied().ok_or_else(too_large)).collect();
        }
        let of_cell = if scan.table_name.schema() == Some("pg_catalog") { OF_CATALOG } else { OF_CELL };
        Ok(vec![Size::of(of_cell); scan.projected_schema.fields().len()])
    }

    /// The columns of a recursive query. They must not grow from one round to the next.
    fn of_recursive(&mut self, query: &RecursiveQuery) -> Result<Vec<Size>, SqlError> {
        let mut sizes = self.of_plan(&query.static_term)?;
        for _ in 0..MOST_ROUNDS {
            self.work_tables.push((query.name.clone(), sizes.clone()));
            let next = self.of_plan(&query.recursive_term);
            self.work_tables.pop();
            let next: Vec<Size> = sizes.iter().zip(next?).map(|(size, next)| size.or(next)).collect();
            if next.iter().any(|size| size.is_gathered) {
                return Err(SqlError::Gathered);
            }
            if next == sizes {
                return Ok(sizes);
            }
            sizes = next;
        }
        Err(too_large())
    }

    fn of_subquery(&mut self, row: &SizedRow, plan: &LogicalPlan) -> Result<Size, SqlError> {
        let n_outer = self.outer.len();
        self.outer.extend_from_slice(&row.inputs);
        let sizes = self.of_plan(plan);
        self.outer.truncate(n_outer);
        Ok(sizes?.into_iter().fold(Size::NUMBER, Size::or))
    }

    fn of_expression(&mut self, row: &SizedRow, expression: &Expr) -> Result<Size, SqlError> {
        Ok(match expression {
            Expr::Column(column) => {
                let known = row.inputs.iter().filter_map(|input| input.size(column)).reduce(Size::or);
                // A column that can't be found may be any of them.
                known.unwrap_or_else(|| row.sizes().into_iter().fold(Size::of(OF_CELL), Size::or))
            }
            Expr::OuterReferenceColumn(field, column) => {
                match self.outer.iter().rev().find_map(|outer| outer.size(column)) {
                    Some(size) => size,
                    None if is_small(field.data_type()) => Size::NUMBER,
                    None => return Err(too_large()),
                }
            }
            Expr::Literal(value, _) => Size::of(of_literal(value)),
            Expr::BinaryExpr(binary) => {
                let (left, right) = (self.of_expression(row, &binary.left)?, self.of_expression(row, &binary.right)?);
                match binary.op {
                    Operator::StringConcat => self.put_together([left, right])?,
                    Operator::RegexMatch
                    | Operator::RegexIMatch
                    | Operator::RegexNotMatch
                    | Operator::RegexNotIMatch => self.of_match(left, &binary.right)?,
                    _ if left.is_gathered || right.is_gathered || row.is_small(expression) => Size::NUMBER,
                    _ => return Err(SqlError::UnknownGrowth { function: binary.op.to_string() }),
                }
            }
            Expr::Like(like) => self.of_like(row, like)?,
            Expr::SimilarTo(like) => {
                let text = self.of_expression(row, &like.expr)?;
                self.of_match(text, &like.pattern)?
            }
            Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => {
                self.of_cast(row, expr, expression)?
            }
            Expr::ScalarFunction(call) => self.of_call(row, call, expression)?,
            Expr::HigherOrderFunction(call) => {
                return Err(SqlError::UnknownGrowth { function: call.func.name().to_owned() });
            }
            Expr::AggregateFunction(call) => self.of_aggregate(row, call.func.name(), &call.params.args, expression)?,
            Expr::WindowFunction(call) => self.of_aggregate(row, call.fun.name(), &call.params.args, expression)?,
            Expr::ScalarSubquery(query) => match self.of_subquery(row, &query.subquery)? {
                // The value is copied beside every row.
                size if size.is_gathered => return Err(SqlError::Gathered),
                size => size,
            },
            Expr::Exists(exists) => {
                self.of_subquery(row, &exists.subquery.subquery)?;
                Size::NUMBER
            }
            Expr::InSubquery(InSubquery { expr, subquery, .. })
            | Expr::SetComparison(SetComparison { expr, subquery, .. }) => {
                self.of_subquery(row, &subquery.subquery)?;
                self.of_expression(row, expr)?;
                Size::NUMBER
            }
            other => self.of_parts(row, other)?,
        })
    }

    /// The largest of the parts of an expression.
    fn of_parts(&mut self, row: &SizedRow, expression: &Expr) -> Result<Size, SqlError> {
        let mut most = Ok(Size::NUMBER);
        expression.apply_children(|part| {
            let so_far = *most.as_ref().unwrap_or(&Size::NUMBER);
            most = self.of_expression(row, part).map(|size| size.or(so_far));
            Ok(if most.is_ok() { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
        })?;
        most
    }

    /// A text that is matched with a regular expression.
    fn of_match(&mut self, text: Size, pattern: &Expr) -> Result<Size, SqlError> {
        self.step(text.bytes.saturating_mul(states(pattern).ok_or_else(too_large)?))?;
        Ok(Size::NUMBER)
    }

    fn of_like(&mut self, row: &SizedRow, like: &Like) -> Result<Size, SqlError> {
        let text = self.of_expression(row, &like.expr)?;
        let pattern = self.of_expression(row, &like.pattern)?;
        // What follows a `%` may begin at any letter.
        let n_parts = match like.pattern.as_ref() {
            Expr::Literal(value, _) => value.try_as_str().flatten().map(|text| text.matches(['%', '_']).count() as u64),
            _ => None,
        };
        self.step(text.bytes.saturating_mul(n_parts.unwrap_or(pattern.bytes).max(1)))?;
        Ok(Size::NUMBER)
    }

    fn of_cast(&mut self, row: &SizedRow, from: &Expr, expression: &Expr) -> Result<Size, SqlError> {
        let size = self.of_expression(row, from)?;
        if row.is_small(expression) {
            return Ok(Size::NUMBER);
        }
        if size.is_gathered {
            return self.put_together([size]);
        }
        // A list is written with brackets and commas around its elements.
        let factor = if row.is_nested(from) && !row.is_nested(expression) { 8 } else { 1 };
        let written = size.bytes.saturating_mul(factor).max(OF_WRITTEN);
        Ok(Size::of(within_bounds(written)?))
    }

    fn of_call(&mut self, row: &SizedRow, call: &ScalarFunction, expression: &Expr) -> Result<Size, SqlError> {
        let sizes = call.args.iter().map(|part| self.of_expression(row, part)).collect::<Result<Vec<_>, _>>()?;
        let bytes: Vec<u64> = sizes.iter().map(|size| size.bytes).collect();
        let called = Call { name: call.func.name(), arguments: &call.args, sizes: &bytes };
        let steps = steps_of(&called)?;
        let is_gathered = sizes.iter().any(|size| size.is_gathered);
        if is_gathered && steps > 0 {
            return Err(SqlError::Gathered);
        }
        self.step(steps)?;
        if row.is_small(expression) {
            self.step(called.all() / BYTES_PER_STEP)?;
            return Ok(Size::NUMBER);
        }
        if is_gathered {
            return match called.keeps_gathered() {
                true => self.put_together(sizes),
                false => Err(SqlError::Gathered),
            };
        }
        let size = within_bounds(grown(&called)?)?;
        self.step(called.all().saturating_add(size) / BYTES_PER_STEP)?;
        Ok(Size::of(size))
    }

    /// A value that holds all of these values, one after the other.
    fn put_together(&mut self, sizes: impl IntoIterator<Item = Size>) -> Result<Size, SqlError> {
        let (mut bytes, mut is_gathered) = (0u64, false);
        for size in sizes {
            bytes = bytes.saturating_add(size.bytes);
            is_gathered |= size.is_gathered;
        }
        if is_gathered {
            self.n_gathered += 1;
            if self.n_gathered > MOST_GATHERED {
                return Err(SqlError::Gathered);
            }
        }
        self.step(bytes / BYTES_PER_STEP)?;
        Ok(Size { bytes: within_bounds(bytes)?, is_gathered })
    }

    /// An aggregate or window function. `whole` also holds the expressions it orders, filters and partitions by.
    fn of_aggregate(&mut self, row: &SizedRow, name: &str, arguments: &[Expr], whole: &Expr) -> Result<Size, SqlError> {
        self.of_parts(row, whole)?;
        let is_window = matches!(whole, Expr::WindowFunction(_));
        if name.starts_with("approx_percentile") {
            // The last argument, which may be absent, is the number of centroids to keep.
            let is_exact =
                |part: &Expr| !matches!(part, Expr::Column(_)) && constant(part).is_none_or(|n| n > MOST_EXACT);
            if arguments.iter().skip(1).any(is_exact) {
                return Err(too_large());
            }
        }
        let largest = |most: Size, part| Ok::<_, SqlError>(self.of_expression(row, part)?.or(most));
        let arguments = arguments.iter().try_fold(Size::NUMBER, largest)?;
        match name {
            // A window function gathers all values again for every row.
            "string_agg" | "array_agg" if is_window || arguments.is_gathered => Err(SqlError::Gathered),
            "string_agg" | "array_agg" => Ok(Size { is_gathered: true, ..arguments }),
            _ if row.is_small(whole) => Ok(Size::NUMBER),
            _ if is_window && arguments.is_gathered => Err(SqlError::Gathered),
            "min" | "max" | "first_value" | "last_value" | "nth_value" | "any_value" | "lag" | "lead" => Ok(arguments),
            name => Err(SqlError::UnknownGrowth { function: name.to_owned() }),
        }
    }

    fn step(&mut self, steps: u64) -> Result<(), SqlError> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > MOST_STEPS { Err(SqlError::TooSlow) } else { Ok(()) }
    }

    fn make(&mut self, sizes: impl Iterator<Item = Size>) -> Result<(), SqlError> {
        self.bytes = sizes.map(Size::excess).fold(self.bytes, u64::saturating_add);
        within_bounds(self.bytes).map(drop)
    }
}

/// Whether a node copies the rows it reads, even if it computes nothing.
fn copies_rows(plan: &LogicalPlan) -> bool {
    matches!(
        plan,
        LogicalPlan::Join(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Distinct(_)
            | LogicalPlan::Unnest(_)
    )
}

/// Whether an expression is a column as it is.
fn is_passed_on(expression: &Expr) -> bool {
    match expression {
        Expr::Column(_) | Expr::OuterReferenceColumn(..) => true,
        Expr::Alias(alias) => is_passed_on(&alias.expr),
        _ => false,
    }
}

/// The columns of rows whose lists become rows.
fn unnested(unnest: &Unnest, sizes: &[Size]) -> Result<Vec<Size>, SqlError> {
    let lists = &unnest.list_type_columns;
    // All elements of lists in lists are in memory at once.
    if lists.iter().any(|(_, list)| list.depth > 1) {
        return Err(SqlError::UnknownGrowth { function: "unnest".to_owned() });
    }
    let of_column = |position: &usize| {
        let size = sizes.get(*position).copied().unwrap_or(Size::of(OF_CELL));
        match lists.iter().any(|(list, _)| list == position) {
            true => Ok(Size::of(size.bytes)),
            // The value is copied beside every element of the list.
            false if size.is_gathered => Err(SqlError::Gathered),
            false => Ok(size),
        }
    };
    unnest.dependency_indices.iter().map(of_column).collect()
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

fn is_small(data_type: &DataType) -> bool {
    data_type.is_primitive() || matches!(data_type, DataType::Boolean | DataType::Null)
}

#[cfg(test)]
mod tests;
