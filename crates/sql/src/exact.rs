//! Numbers and dates that are what they should be, or an error: DataFusion's wrap around and lose parts without a word.
//!
//! `9223372036854775807 + 1` is -9223372036854775808 there, and so is a sum that gets too large. Here [`CheckIntegers`] writes
//! sums, differences, products and signs of whole numbers as functions that fail instead, and [`exact_sum`] is `sum`. The same
//! rule lets a cast to a whole number round, as PostgreSQL's does, and refuses hours that would be added to a date and
//! dropped, and comparisons of intervals, of which `1 month` would be more than `40 days`.
//!
//! # Guarantee
//! `+`, `-`, `*`, `-x` and `sum` of whole numbers give the number, or `22003` where its type can't hold it. What is added up on
//! the way may be larger. Errors hold no number.
//! # Deviations
//! PostgreSQL gives sums of `bigint` as `numeric`; here they are `bigint`. Its 4-byte literals are 8 bytes here. A half is
//! rounded away from zero, as PostgreSQL does with `numeric`; of `double precision` it rounds halves to even.

mod sum;

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::numeric::{add, mul, sub};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float32Type, Float64Type, TimeUnit};
use datafusion::arrow::error::ArrowError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err, not_impl_err, plan_err};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::{Between, Cast, ScalarFunction, TryCast};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr_common::datum::apply;

use crate::SqlError;
pub(crate) use sum::exact_sum;

/// The operators that wrap around.
const CHECKED: [Operator; 3] = [Operator::Plus, Operator::Minus, Operator::Multiply];

/// The operators that compare by size.
const COMPARED: [Operator; 8] = [
    Operator::Eq,
    Operator::NotEq,
    Operator::Lt,
    Operator::LtEq,
    Operator::Gt,
    Operator::GtEq,
    Operator::IsDistinctFrom,
    Operator::IsNotDistinctFrom,
];

/// The functions that stand for operators, for sessions that run plans.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    CHECKED.into_iter().map(|op| ScalarUDF::from(Checked::new(op))).chain([ScalarUDF::from(Rounded::new())])
}

/// A number that its type can't hold, as Arrow says it but for the number.
fn out_of_range() -> DataFusionError {
    ArrowError::ArithmeticOverflow(SqlError::OutOfRange.to_string()).into()
}

/// The analyzer rule that lets no operator wrap around. It must run after types are coerced.
#[derive(Debug, Default)]
pub(crate) struct CheckIntegers;

impl AnalyzerRule for CheckIntegers {
    fn name(&self) -> &str {
        "check_integers"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(check_node).map(|checked| checked.data)
    }
}

fn check_node(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut any = false;
    plan.apply_expressions(|expression| {
        any |= expression.exists(|part| Ok(is_arithmetic(part)))?;
        Ok(if any { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !any {
        return Ok(Transformed::no(plan));
    }
    let (names, schema) = (NamePreserver::new(&plan), merge_schema(&plan.inputs()));
    let mut check = |expression: Expr| {
        let name = names.save(&expression);
        let checked = expression.transform_up(|part| checked(part, &schema))?;
        Ok(checked.update_data(|expression| name.restore(expression)))
    };
    let checked = plan.map_expressions(|expression| match expression {
        // Its parts have names, and itself none.
        Expr::GroupingSet(_) => expression.map_children(&mut check),
        _ => check(expression),
    })?;
    checked.map_data(LogicalPlan::recompute_schema)
}

fn is_arithmetic(expression: &Expr) -> bool {
    match expression {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => CHECKED.contains(op) || COMPARED.contains(op),
        Expr::Negative(_) | Expr::Cast(_) | Expr::TryCast(_) | Expr::Between(_) => true,
        _ => false,
    }
}

fn checked(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expression {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if CHECKED.contains(&op) => {
            let (of_left, of_right) = (left.get_type(schema), right.get_type(schema));
            match (of_left, of_right) {
                (Ok(of_left), Ok(of_right)) if of_left.is_integer() && of_left == of_right => {
                    Ok(Transformed::yes(call(op, *left, *right)))
                }
                (Ok(DataType::Date32 | DataType::Date64), Ok(DataType::Interval(_))) if !is_of_days(&right, schema) => {
                    not_impl_err!("{HOURS}")
                }
                (Ok(DataType::Interval(_)), Ok(DataType::Date32 | DataType::Date64)) if !is_of_days(&left, schema) => {
                    not_impl_err!("{HOURS}")
                }
                _ => Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))),
            }
        }
        Expr::BinaryExpr(BinaryExpr { left, op, .. }) if COMPARED.contains(&op) && is_interval(&left, schema) => {
            not_impl_err!("{INTERVALS}")
        }
        Expr::Between(Between { expr, .. }) if is_interval(&expr, schema) => not_impl_err!("{INTERVALS}"),
        Expr::Cast(Cast { expr, field }) if rounds(&expr, field.data_type(), schema) => {
            let expr = Box::new(rounded(*expr));
            Ok(Transformed::yes(Expr::Cast(Cast { expr, field })))
        }
        Expr::TryCast(TryCast { expr, field }) if rounds(&expr, field.data_type(), schema) => {
            let expr = Box::new(rounded(*expr));
            Ok(Transformed::yes(Expr::TryCast(TryCast { expr, field })))
        }
        // The sign of a number that is written out is part of it.
        Expr::Negative(inner) if !matches!(*inner, Expr::Literal(..)) => match inner.get_type(schema) {
            Ok(data_type) if data_type.is_signed_integer() => {
                let zero = lit(ScalarValue::new_zero(&data_type)?);
                Ok(Transformed::yes(call(Operator::Minus, zero, *inner)))
            }
            _ => Ok(Transformed::no(Expr::Negative(inner))),
        },
        other => Ok(Transformed::no(other)),
    }
}

const HOURS: &str = "a date can't take hours: write CAST(day AS TIMESTAMP) + INTERVAL '5 hours'";
const INTERVALS: &str = "intervals can't be compared: add them to a timestamp, and compare that";

fn is_interval(expression: &Expr, schema: &DFSchema) -> bool {
    matches!(expression.get_type(schema), Ok(DataType::Interval(_)))
}

/// Whether a cast to a type loses what stands behind the point. DataFusion's cuts it off.
fn rounds(expression: &Expr, to: &DataType, schema: &DFSchema) -> bool {
    let has_fraction =
        |data_type: DataType| matches!(data_type, DataType::Float32 | DataType::Float64 | DataType::Decimal128(..));
    let is_rounded = matches!(expression, Expr::ScalarFunction(call) if call.name() == ROUNDED);
    to.is_integer() && !is_rounded && expression.get_type(schema).is_ok_and(has_fraction)
}

/// Whether an interval is a number of days, or is written out and of whole days and months.
fn is_of_days(interval: &Expr, schema: &DFSchema) -> bool {
    let written = match interval {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Cast(Cast { expr, field }) => match expr.as_ref() {
            // A number that is added to a date becomes seconds of whole days before it becomes an interval.
            inner if inner.get_type(schema).is_ok_and(|of| of == DataType::Duration(TimeUnit::Second)) => return true,
            Expr::Literal(value, _) => value.cast_to(field.data_type()).ok(),
            _ => None,
        },
        _ => None,
    };
    match written {
        Some(ScalarValue::IntervalYearMonth(_)) => true,
        Some(ScalarValue::IntervalDayTime(interval)) => interval.is_none_or(|interval| interval.milliseconds == 0),
        Some(ScalarValue::IntervalMonthDayNano(interval)) => interval.is_none_or(|interval| interval.nanoseconds == 0),
        _ => false,
    }
}

fn call(op: Operator, left: Expr, right: Expr) -> Expr {
    let function = Arc::new(ScalarUDF::from(Checked::new(op)));
    Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![left, right]))
}

fn rounded(expression: Expr) -> Expr {
    let function = Arc::new(ScalarUDF::from(Rounded::new()));
    Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![expression]))
}

/// A result is null where an argument is, as of the operator it stands for: nodes above keep what they know of that.
fn field(name: &str, data_type: DataType, arguments: &ReturnFieldArgs<'_>) -> FieldRef {
    let is_nullable = arguments.arg_fields.iter().any(|argument| argument.is_nullable());
    Arc::new(Field::new(name, data_type, is_nullable))
}

/// An operator of two whole numbers of one type, as a function that fails where the result has no room in it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    op: Operator,
    signature: Signature,
}

impl Checked {
    fn new(op: Operator) -> Checked {
        Checked { op, signature: Signature::any(2, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        match self.op {
            Operator::Plus => "checked_add",
            Operator::Minus => "checked_subtract",
            _ => "checked_multiply",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [left, right] if left.is_integer() && left == right => Ok(left.clone()),
            _ => plan_err!("{} takes two whole numbers of the same type", self.name()),
        }
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> = arguments.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        Ok(field(self.name(), self.return_type(&types)?, &arguments))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = arguments.args.as_slice() else { return internal_err!("{} takes two", self.name()) };
        let computed = match self.op {
            Operator::Plus => apply(left, right, add),
            Operator::Minus => apply(left, right, sub),
            _ => apply(left, right, mul),
        };
        computed.map_err(|error| match error {
            DataFusionError::ArrowError(problem, _) if matches!(*problem, ArrowError::ArithmeticOverflow(_)) => {
                out_of_range()
            }
            other => other,
        })
    }
}

const ROUNDED: &str = "rounded";

/// A number without what stands behind its point, halves away from zero.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Rounded {
    signature: Signature,
}

impl Rounded {
    fn new() -> Rounded {
        Rounded { signature: Signature::any(1, Volatility::Immutable) }
    }

    fn of(values: &ArrayRef) -> Result<ArrayRef> {
        Ok(match values.data_type() {
            DataType::Float64 => Arc::new(values.as_primitive::<Float64Type>().unary::<_, Float64Type>(f64::round)),
            DataType::Float32 => Arc::new(values.as_primitive::<Float32Type>().unary::<_, Float32Type>(f32::round)),
            // Casts of decimals round.
            _ => cast(values, &DataType::Decimal128(38, 0))?,
        })
    }
}

impl ScalarUDFImpl for Rounded {
    fn name(&self) -> &str {
        ROUNDED
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [data_type @ (DataType::Float32 | DataType::Float64)] => Ok(data_type.clone()),
            [DataType::Decimal128(..)] => Ok(DataType::Decimal128(38, 0)),
            _ => plan_err!("{ROUNDED} takes a number"),
        }
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> = arguments.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        Ok(field(ROUNDED, self.return_type(&types)?, &arguments))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match arguments.args.as_slice() {
            [ColumnarValue::Array(values)] => Ok(ColumnarValue::Array(Rounded::of(values)?)),
            [ColumnarValue::Scalar(value)] => {
                let rounded = Rounded::of(&value.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&rounded, 0)?))
            }
            _ => internal_err!("{ROUNDED} takes one number"),
        }
    }
}
