//! [`condition`]: a filter as the store understands it.

use datafusion::arrow::datatypes::Schema;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};
use kohort_store::{Comparison, Condition, Value};

/// What the store looks up at once; longer lists are compared above it.
const MOST_VALUES: usize = 10_000;

/// A filter as a condition of the store, `None` where it says more than one column's comparison with values.
pub(super) fn condition(filter: &Expr, schema: &Schema) -> Option<Condition> {
    let known = |column: &str| schema.field_with_name(column).is_ok();
    let condition = match filter {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (column, op, value) = match (left.as_ref(), right.as_ref()) {
                (Expr::Column(column), Expr::Literal(value, _)) => (column, *op, value),
                (Expr::Literal(value, _), Expr::Column(column)) => (column, op.swap()?, value),
                _ => return None,
            };
            let comparison = match op {
                Operator::Eq => Comparison::Eq,
                Operator::Lt => Comparison::Lt,
                Operator::LtEq => Comparison::Le,
                Operator::Gt => Comparison::Gt,
                Operator::GtEq => Comparison::Ge,
                _ => return None,
            };
            Condition::Compare { column: column.name.clone(), comparison, value: value_of(value)? }
        }
        Expr::InList(list) if !list.negated && list.list.len() <= MOST_VALUES => {
            let Expr::Column(column) = list.expr.as_ref() else { return None };
            let value = |item: &Expr| match item {
                Expr::Literal(value, _) => value_of(value),
                _ => None,
            };
            Condition::In { column: column.name.clone(), values: list.list.iter().map(value).collect::<Option<_>>()? }
        }
        Expr::Between(Between { expr, negated: false, low, high }) if low == high => {
            let (Expr::Column(column), Expr::Literal(value, _)) = (expr.as_ref(), low.as_ref()) else { return None };
            Condition::Compare { column: column.name.clone(), comparison: Comparison::Eq, value: value_of(value)? }
        }
        Expr::IsNull(inner) => Condition::IsNull { column: column_of(inner)? },
        Expr::IsNotNull(inner) => Condition::IsNotNull { column: column_of(inner)? },
        _ => return None,
    };
    let column = match &condition {
        Condition::Compare { column, .. }
        | Condition::In { column, .. }
        | Condition::IsNull { column }
        | Condition::IsNotNull { column } => column,
    };
    (known(column) && column != super::ROW_NUMBER).then_some(condition)
}

fn column_of(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Column(column) => Some(column.name.clone()),
        _ => None,
    }
}

/// A literal as a value of the store. Types were made to agree with the column's when the query was planned.
pub fn value_of(value: &ScalarValue) -> Option<Value> {
    Some(match value {
        ScalarValue::Boolean(Some(value)) => Value::Boolean(*value),
        ScalarValue::Int8(Some(value)) => Value::Integer((*value).into()),
        ScalarValue::Int16(Some(value)) => Value::Integer((*value).into()),
        ScalarValue::Int32(Some(value)) => Value::Integer((*value).into()),
        ScalarValue::Int64(Some(value)) => Value::Integer(*value),
        ScalarValue::UInt8(Some(value)) => Value::Integer((*value).into()),
        ScalarValue::UInt16(Some(value)) => Value::Integer((*value).into()),
        ScalarValue::UInt32(Some(value)) => Value::Integer((*value).into()),
        ScalarValue::Float64(Some(value)) => Value::Float(*value),
        ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => Value::Text(text.clone()),
        ScalarValue::Binary(Some(bytes)) => Value::Binary(bytes.clone()),
        ScalarValue::Date32(Some(days)) => Value::Date(*days),
        ScalarValue::TimestampMicrosecond(Some(time), _) => Value::Timestamp(*time),
        ScalarValue::Decimal128(Some(digits), _, scale) => Value::Decimal { digits: *digits, scale: *scale },
        _ => return None,
    })
}
