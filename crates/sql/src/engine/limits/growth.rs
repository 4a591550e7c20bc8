//! [`check_growth`]: an analyst's query makes no values so large that the process runs out of memory, and computes none for
//! so long that it can't be stopped.
//!
//! What sorts, joins and groupings take is bounded while they run. Functions take what they need, and some are told by a
//! number how much that is: `repeat('a', 2000000000)`. What the system does not give ends the process, for everybody. So
//! how large values can become is counted before anything is computed, from the largest that columns are taken to hold.
//! A function that makes texts or lists is known with how it makes them grow ([`calls`]), or refused.
//!
//! `string_agg` and `array_agg` gather as much as their rows hold, within what the query may take. What is gathered may
//! leave as it is and be looked at; whatever would put it beside each of many rows is refused.
//!
//! # Guarantee
//! Where texts of tables are no longer than is assumed, what a plan computes and copies per row is bounded in bytes and in
//! steps, over all of its nodes. A statement can be stopped between two batches of rows, so that is a bound on how long it
//! can't. It is no bound on time: statements run apart from each other for that.

mod calls;
mod pattern;

use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::logical_expr::expr::{AggregateFunction, Like, ScalarFunction, WindowFunction};
use datafusion::logical_expr::logical_plan::{Distinct, RecursiveQuery, TableScan, Unnest};
use datafusion::logical_expr::{Expr, ExprSchemable, JoinType, LogicalPlan, Operator};

use crate::SqlError;
use calls::{Call, constant, grown, steps_of};
use pattern::states;

/// Bytes that the expressions of a query may compute per row.
pub(in crate::engine) const MOST_BYTES: u64 = 32 << 10;

/// Steps that they may take per row: with 8,192 rows in a batch, a billion until the next.
const MOST_STEPS: u64 = 1 << 17;

/// Bytes that are read or written in the time of a step.
const BYTES_PER_STEP: u64 = 8;

/// Bytes that a cell of a table is taken to hold.
const OF_CELL: u64 = 256;

/// Bytes that a cell of PostgreSQL's catalog is taken to hold.
const OF_CATALOG: u64 = 64;

/// Bytes of a number, a date, a truth.
const OF_NUMBER: u64 = 16;

/// Bytes of one that is written as a text.
const OF_WRITTEN: u64 = 128;

/// How exact an approximation may be.
const MOST_EXACT: u64 = 10_000;

/// How often what was gathered from rows may be copied.
const MOST_GATHERED: u64 = 2;

/// How often the columns of a recursive query are looked at until their sizes stay.
const MOST_ROUNDS: usize = 3;

/// Refuses plans that could make too large values, or take too many steps.
///
/// # Errors
/// Where one could, or where it can't be known.
pub(in crate::engine) fn check_growth(plan: &LogicalPlan) -> Result<(), SqlError> {
    Growth::default().of_plan(plan).map(drop)
}

/// Refuses an expression over cells of a table that could.
///
/// # Errors
/// As [`check_growth`].
pub(in crate::engine) fn check_expression(expression: &Expr, schema: &DFSchema) -> Result<(), SqlError> {
    let sizes = vec![Size::of(OF_CELL); schema.fields().len()];
    let size = Growth::default().of_expression(&RowSizes { schema, sizes: &sizes }, expression)?;
    within_bounds(size.bytes).map(drop)
}

/// How large a value can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    /// Its bytes; those of an element where it was gathered.
    bytes: u64,
    /// Whether it is as large as all rows together.
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

    /// What a copy takes beyond what rows of tables take anyway.
    fn excess(self) -> u64 {
        if self.is_gathered { 0 } else { self.bytes.saturating_sub(OF_CELL) }
    }
}

/// What expressions are computed from.
#[derive(Clone, Copy)]
struct RowSizes<'a> {
    schema: &'a DFSchema,
    sizes: &'a [Size],
}

impl RowSizes<'_> {
    fn column(&self, column: &Column) -> Option<Size> {
        self.schema.maybe_index_of_column(column).and_then(|at| self.sizes.get(at)).copied()
    }

    fn is_small(&self, expression: &Expr) -> bool {
        expression.get_type(self.schema).is_ok_and(|data_type| is_small(&data_type))
    }
}

/// What was counted of a plan so far.
#[derive(Default)]
struct Growth {
    /// Bytes per row beyond those of cells.
    bytes: u64,
    /// Steps per row.
    steps: u64,
    /// Copies of what was gathered.
    n_gathered: u64,
    /// Columns of recursive queries that are being looked at.
    work_tables: Vec<(String, Vec<Size>)>,
    /// Rows around the subquery that is being looked at.
    outer: Vec<(DFSchema, Vec<Size>)>,
}

impl Growth {
    /// How large the cells of each column can be.
    fn of_plan(&mut self, plan: &LogicalPlan) -> Result<Vec<Size>, SqlError> {
        match plan {
            LogicalPlan::RecursiveQuery(query) => return self.of_recursive(query),
            LogicalPlan::TableScan(scan) => return self.of_scan(scan),
            _ => {}
        }
        let inputs = self.of_inputs(plan)?;
        let schemas: Vec<&DFSchema> = plan.inputs().iter().map(|input| input.schema().as_ref()).collect();
        let (schema, sizes) = joined(&schemas, &inputs)?;
        let row = RowSizes { schema: &schema, sizes: &sizes };
        let expressions = plan.expressions();
        let found = expressions.iter().map(|one| self.of_expression(&row, one)).collect::<Result<Vec<_>, _>>()?;
        let computed = || expressions.iter().zip(&found).filter(|(one, _)| !is_passed_on(one)).map(|(_, size)| *size);
        within_bounds(computed().fold(0, |all, size| all.saturating_add(size.bytes)))?;
        self.make(computed().map(Size::excess))?;
        if copies_rows(plan) {
            self.make(sizes.iter().copied().map(Size::excess))?;
        }
        let n_columns = plan.schema().fields().len();
        let all = || sizes.iter().chain(&found).fold(Size::NUMBER, |all, size| all.or(*size));
        let columns = match plan {
            LogicalPlan::Projection(_) => found,
            LogicalPlan::Aggregate(aggregate)
                if found.len() == aggregate.group_expr.len() + aggregate.aggr_expr.len()
                    && !aggregate.group_expr.iter().any(|group| matches!(group, Expr::GroupingSet(_))) =>
            {
                found
            }
            LogicalPlan::Window(_) => [sizes, found].concat(),
            LogicalPlan::Values(_) | LogicalPlan::EmptyRelation(_) => vec![all(); n_columns],
            LogicalPlan::Union(_) => {
                let of_column = |column: usize| inputs.iter().filter_map(move |sizes| sizes.get(column)).copied();
                (0..n_columns).map(|column| of_column(column).fold(Size::NUMBER, Size::or)).collect()
            }
            LogicalPlan::Join(join) => {
                // A row of one side stands beside many of the other.
                if sizes.iter().any(|size| size.is_gathered) {
                    return Err(SqlError::Gathered);
                }
                match join.join_type {
                    JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
                        inputs.into_iter().next_back().unwrap_or_default()
                    }
                    _ => sizes,
                }
            }
            LogicalPlan::Unnest(unnest) => unnested(unnest, inputs.first().map_or(&[], Vec::as_slice))?,
            LogicalPlan::Distinct(Distinct::On(_)) => vec![all(); n_columns],
            _ if sizes.len() == n_columns => sizes,
            _ => vec![all(); n_columns],
        };
        let mut columns = columns;
        columns.resize(n_columns, Size::of(OF_CELL));
        Ok(columns)
    }

    fn of_inputs(&mut self, plan: &LogicalPlan) -> Result<Vec<Vec<Size>>, SqlError> {
        let n_outer = self.outer.len();
        let mut inputs = Vec::new();
        for input in plan.inputs() {
            let sizes = self.of_plan(input)?;
            // With LATERAL the second reads columns of the first.
            if matches!(plan, LogicalPlan::Join(_)) {
                self.outer.push((input.schema().as_ref().clone(), sizes.clone()));
            }
            inputs.push(sizes);
        }
        self.outer.truncate(n_outer);
        Ok(inputs)
    }

    fn of_scan(&self, scan: &TableScan) -> Result<Vec<Size>, SqlError> {
        let n_columns = scan.projected_schema.fields().len();
        if let Some(table) = source_as_provider(&scan.source)?.downcast_ref::<CteWorkTable>() {
            let known = self.work_tables.iter().rev().find(|(name, _)| name == table.name()).map(|(_, sizes)| sizes);
            let known = known.ok_or_else(too_large)?;
            return match &scan.projection {
                None => Ok(known.clone()),
                Some(columns) => {
                    columns.iter().map(|column| known.get(*column).copied().ok_or_else(too_large)).collect()
                }
            };
        }
        let of_cell = if scan.table_name.schema() == Some("pg_catalog") { OF_CATALOG } else { OF_CELL };
        Ok(vec![Size::of(of_cell); n_columns])
    }

    /// A recursive query whose columns do not grow from one round to the next.
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

    fn of_subquery(&mut self, row: &RowSizes<'_>, plan: &LogicalPlan) -> Result<Size, SqlError> {
        self.outer.push((row.schema.clone(), row.sizes.to_vec()));
        let sizes = self.of_plan(plan);
        self.outer.pop();
        Ok(sizes?.into_iter().fold(Size::NUMBER, Size::or))
    }

    fn of_expression(&mut self, row: &RowSizes<'_>, expression: &Expr) -> Result<Size, SqlError> {
        Ok(match expression {
            Expr::Column(column) => {
                // What can't be found is as large as any.
                row.column(column)
                    .unwrap_or_else(|| row.sizes.iter().fold(Size::of(OF_CELL), |all, size| all.or(*size)))
            }
            Expr::OuterReferenceColumn(field, column) => {
                let outer = self.outer.iter().rev();
                let known = outer.map(|(schema, sizes)| RowSizes { schema, sizes }.column(column));
                match known.flatten().next() {
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
                    | Operator::RegexNotIMatch => {
                        self.step(left.bytes.saturating_mul(states(&binary.right).ok_or_else(too_large)?))?;
                        Size::NUMBER
                    }
                    _ if left.is_gathered || right.is_gathered || row.is_small(expression) => Size::NUMBER,
                    _ => return Err(SqlError::UnknownGrowth { function: binary.op.to_string() }),
                }
            }
            Expr::Like(like) => self.of_like(row, like)?,
            Expr::SimilarTo(like) => {
                let text = self.of_expression(row, &like.expr)?;
                self.step(text.bytes.saturating_mul(states(&like.pattern).ok_or_else(too_large)?))?;
                Size::NUMBER
            }
            Expr::Cast(cast) => self.of_cast(row, &cast.expr, expression)?,
            Expr::TryCast(cast) => self.of_cast(row, &cast.expr, expression)?,
            Expr::ScalarFunction(call) => self.of_call(row, call, expression)?,
            Expr::HigherOrderFunction(call) => {
                return Err(SqlError::UnknownGrowth { function: call.func.name().to_owned() });
            }
            Expr::AggregateFunction(call) => self.of_aggregate(row, call, expression)?,
            Expr::WindowFunction(call) => self.of_window(row, call, expression)?,
            Expr::ScalarSubquery(query) => match self.of_subquery(row, &query.subquery)? {
                // It stands beside every row.
                size if size.is_gathered => return Err(SqlError::Gathered),
                size => size,
            },
            Expr::Exists(exists) => {
                self.of_subquery(row, &exists.subquery.subquery)?;
                Size::NUMBER
            }
            Expr::InSubquery(query) => {
                self.of_subquery(row, &query.subquery.subquery)?;
                self.of_expression(row, &query.expr)?;
                Size::NUMBER
            }
            Expr::SetComparison(query) => {
                self.of_subquery(row, &query.subquery.subquery)?;
                self.of_expression(row, &query.expr)?;
                Size::NUMBER
            }
            other => self.of_parts(row, other)?,
        })
    }

    /// The largest of what an expression is made of.
    fn of_parts(&mut self, row: &RowSizes<'_>, expression: &Expr) -> Result<Size, SqlError> {
        let mut most = Ok(Size::NUMBER);
        expression.apply_children(|part| {
            let so_far = *most.as_ref().unwrap_or(&Size::NUMBER);
            most = self.of_expression(row, part).map(|size| size.or(so_far));
            Ok(if most.is_ok() { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
        })?;
        most
    }

    fn of_like(&mut self, row: &RowSizes<'_>, like: &Like) -> Result<Size, SqlError> {
        let text = self.of_expression(row, &like.expr)?;
        let pattern = self.of_expression(row, &like.pattern)?;
        // Each `%` may begin anywhere.
        let n_parts = match like.pattern.as_ref() {
            Expr::Literal(value, _) => value.try_as_str().flatten().map(|text| text.matches(['%', '_']).count() as u64),
            _ => None,
        };
        self.step(text.bytes.saturating_mul(n_parts.unwrap_or(pattern.bytes).max(1)))?;
        Ok(Size::NUMBER)
    }

    fn of_cast(&mut self, row: &RowSizes<'_>, from: &Expr, expression: &Expr) -> Result<Size, SqlError> {
        let size = self.of_expression(row, from)?;
        if row.is_small(expression) {
            return Ok(Size::NUMBER);
        }
        let is_nested = from.get_type(row.schema).is_ok_and(|data_type| data_type.is_nested());
        let becomes_nested = expression.get_type(row.schema).is_ok_and(|data_type| data_type.is_nested());
        if size.is_gathered {
            return self.put_together([size]);
        }
        // A list is written with signs between its elements.
        let factor = if is_nested && !becomes_nested { 8 } else { 1 };
        let written = size.bytes.saturating_mul(factor).max(OF_WRITTEN);
        Ok(Size::of(within_bounds(written)?))
    }

    fn of_call(&mut self, row: &RowSizes<'_>, call: &ScalarFunction, expression: &Expr) -> Result<Size, SqlError> {
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

    /// Values put after each other.
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

    fn of_aggregate(&mut self, row: &RowSizes<'_>, call: &AggregateFunction, whole: &Expr) -> Result<Size, SqlError> {
        // Also what it is ordered and filtered by.
        self.of_parts(row, whole)?;
        let AggregateFunction { func, params } = call;
        if func.name().starts_with("approx_percentile") {
            // The last number that may be there says how much is kept.
            let is_exact =
                |part: &Expr| !matches!(part, Expr::Column(_)) && constant(part).is_none_or(|n| n > MOST_EXACT);
            if params.args.iter().skip(1).any(is_exact) {
                return Err(too_large());
            }
        }
        let arguments = self.largest(row, &params.args)?;
        match func.name() {
            "string_agg" | "array_agg" if arguments.is_gathered => Err(SqlError::Gathered),
            "string_agg" | "array_agg" => Ok(Size { is_gathered: true, ..arguments }),
            _ if row.is_small(whole) => Ok(Size::NUMBER),
            "min" | "max" | "first_value" | "last_value" | "nth_value" | "any_value" => Ok(arguments),
            name => Err(SqlError::UnknownGrowth { function: name.to_owned() }),
        }
    }

    fn of_window(&mut self, row: &RowSizes<'_>, call: &WindowFunction, whole: &Expr) -> Result<Size, SqlError> {
        self.of_parts(row, whole)?;
        let arguments = self.largest(row, &call.params.args)?;
        match call.fun.name() {
            // For every row anew.
            "string_agg" | "array_agg" => Err(SqlError::Gathered),
            _ if row.is_small(whole) => Ok(Size::NUMBER),
            _ if arguments.is_gathered => Err(SqlError::Gathered),
            "min" | "max" | "first_value" | "last_value" | "nth_value" | "any_value" | "lag" | "lead" => Ok(arguments),
            name => Err(SqlError::UnknownGrowth { function: name.to_owned() }),
        }
    }

    fn largest(&mut self, row: &RowSizes<'_>, parts: &[Expr]) -> Result<Size, SqlError> {
        parts.iter().try_fold(Size::NUMBER, |most, part| Ok(self.of_expression(row, part)?.or(most)))
    }

    fn step(&mut self, steps: u64) -> Result<(), SqlError> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > MOST_STEPS { Err(SqlError::TooSlow) } else { Ok(()) }
    }

    fn make(&mut self, bytes: impl Iterator<Item = u64>) -> Result<(), SqlError> {
        self.bytes = bytes.fold(self.bytes, u64::saturating_add);
        within_bounds(self.bytes).map(drop)
    }
}

/// Whether a node makes new rows of those it reads, also where it computes nothing.
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

/// Whether an expression is a value that is there already.
fn is_passed_on(expression: &Expr) -> bool {
    match expression {
        Expr::Column(_) | Expr::OuterReferenceColumn(..) => true,
        Expr::Alias(alias) => is_passed_on(&alias.expr),
        _ => false,
    }
}

/// Columns of rows whose lists become rows.
fn unnested(unnest: &Unnest, sizes: &[Size]) -> Result<Vec<Size>, SqlError> {
    let lists = &unnest.list_type_columns;
    // Of lists in lists all elements are there at once.
    if lists.iter().any(|(_, list)| list.depth > 1) {
        return Err(SqlError::UnknownGrowth { function: "unnest".to_owned() });
    }
    let of_column = |position: &usize| {
        let size = sizes.get(*position).copied().unwrap_or(Size::of(OF_CELL));
        match lists.iter().any(|(list, _)| list == position) {
            true => Ok(Size::of(size.bytes)),
            // It stands beside every element.
            false if size.is_gathered => Err(SqlError::Gathered),
            false => Ok(size),
        }
    };
    unnest.dependency_indices.iter().map(of_column).collect()
}

/// The columns of all inputs after each other.
fn joined(schemas: &[&DFSchema], inputs: &[Vec<Size>]) -> Result<(DFSchema, Vec<Size>), SqlError> {
    let mut all = DFSchema::empty();
    let mut sizes: Vec<Size> = Vec::new();
    for (schema, of_input) in schemas.iter().zip(inputs) {
        // The same column twice, as below a UNION, is one of both.
        for (position, (qualifier, field)) in schema.iter().enumerate() {
            let column = Column::new(qualifier.cloned(), field.name());
            match all.maybe_index_of_column(&column) {
                Some(known) => sizes[known] = sizes[known].or(of_input[position]),
                None => {
                    let one =
                        DFSchema::new_with_metadata(vec![(qualifier.cloned(), field.clone())], Default::default())?;
                    all.merge(&one);
                    sizes.push(of_input[position]);
                }
            }
        }
    }
    sizes.resize(all.fields().len(), Size::of(OF_CELL));
    Ok((all, sizes))
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
