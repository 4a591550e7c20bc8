//! Arithmetic of whole numbers and dates that is right or fails. DataFusion's wraps around and drops parts silently.
//!
//! In DataFusion `9223372036854775807 + 1` is -9223372036854775808, and sums wrap around, too. Here [`CheckIntegers`] replaces
//! `+`, `-`, `*` and the sign of whole numbers by functions that fail instead, and [`exact_sum`] replaces `sum`. The same rule
//! makes a cast to a whole number round, as PostgreSQL's does. It refuses to add hours to a date, because DataFusion would drop
//! them, and to compare intervals, because DataFusion finds `1 month` longer than `40 days`.
//!
//! # Guarantee
//! `+`, `-`, `*`, `-x` and `sum` of whole numbers give the exact number, or SQLSTATE 22003 if it does not fit into the type.
//! Intermediate sums may be larger than the type. Errors hold no number.
//! # Deviations
//! In PostgreSQL a sum of `bigint` is `numeric`; here it is `bigint`. PostgreSQL's literals have 4 bytes; here they have 8.
//! Halves are rounded away from zero, as PostgreSQL does with `numeric`; PostgreSQL rounds halves of `double precision` to even.

mod sum;

use std::sync::Arc;

use datafusion::arrow::compute::kernels::numeric::{add, mul, sub};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::arrow::error::ArrowError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err, not_impl_err, plan_err};
use datafusion::error::DataFusionError;
use datafusion::functions::math::round;
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

/// The operators that wrap around in DataFusion.
const CHECKED: [Operator; 3] = [Operator::Plus, Operator::Minus, Operator::Multiply];

/// The operators that compare.
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

/// The functions that replace operators, for worker processes, which run plans that hold them.
pub(crate) fn functions() -> impl Iterator<Item = ScalarUDF> {
    CHECKED.into_iter().map(|op| ScalarUDF::from(Checked::new(op)))
}

/// Arrow's error for a number that does not fit into its type, but without the number.
fn out_of_range() -> DataFusionError {
    ArrowError::ArithmeticOverflow(SqlError::OutOfRange.to_string()).into()
}

/// The analyzer rule that replaces operators which wrap around. It must run after type coercion.
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
        // A grouping set has no name, but its parts have.
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
        // The sign of a literal is part of the literal.
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

/// Whether a cast drops the digits after the point. DataFusion's cast cuts them off.
fn rounds(expression: &Expr, to: &DataType, schema: &DFSchema) -> bool {
    let has_fraction =
        |data_type: DataType| matches!(data_type, DataType::Float32 | DataType::Float64 | DataType::Decimal128(..));
    let is_rounded = matches!(expression, Expr::ScalarFunction(call) if call.name() == "round" && call.args.len() == 1);
    to.is_integer() && !is_rounded && expression.get_type(schema).is_ok_and(has_fraction)
}

/// Whether an interval consists of whole days and months. Only literals and numbers of days are known to.
fn is_of_days(interval: &Expr, schema: &DFSchema) -> bool {
    let written = match interval {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Cast(Cast { expr, field }) => match expr.as_ref() {
            // The planner turns a number that is added to a date into seconds of whole days, and these into an interval.
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

/// The nearest whole number. Halves are rounded away from zero.
fn rounded(expression: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(round(), vec![expression]))
}

/// An operator of two whole numbers of one type, as a function that fails if the result does not fit into the type.
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

    /// The result is NULL if an argument is, as for the operator. So nodes above may keep what they know about NULLs.
    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> = arguments.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let is_nullable = arguments.arg_fields.iter().any(|argument| argument.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, is_nullable)))
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
