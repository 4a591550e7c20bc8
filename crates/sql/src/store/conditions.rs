//! [`conditions`]: translates a filter into conditions of the store.
//!
//! The store compares floating point numbers in total order, in which -0.0 is below 0.0. In a query the two are equal,
//! so a comparison with one of them is widened to both.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;
use kohort_store::{Comparison, Condition, TableDescription, Value};

use crate::filter::{Filter, Test};

/// Conditions that every row satisfies that the filter keeps; empty if the filter can't be translated.
pub(super) fn conditions(filter: &Expr, table: &TableDescription) -> Vec<Condition> {
    let mut conditions = Vec::new();
    let mut open: Vec<Filter<'_>> = Filter::of(filter).into_iter().collect();
    while let Some(next) = open.pop() {
        match next {
            Filter::Column(column, test) => conditions.extend(condition(column, &test, table)),
            Filter::All(parts) => open.extend(parts),
            Filter::Any(_) => {}
        }
    }
    conditions
}

fn condition(column: &str, test: &Test<'_>, table: &TableDescription) -> Option<Condition> {
    let data_type = &table.columns.iter().find(|known| known.name == column)?.data_type;
    let value = |value: &ScalarValue| value_of(value).filter(|value_of| is_of(value, value_of, data_type));
    let column = column.to_owned();
    Some(match test {
        Test::Compare(comparison, with) => match (value(with)?, *comparison) {
            (Value::Float(0.0), Comparison::Eq) => Condition::In { column, values: zeros().to_vec() },
            (with, comparison) => Condition::Compare { column, comparison, value: beyond_zeros(with, comparison) },
        },
        Test::In(values) => {
            let mut found = values.iter().map(|listed| value(listed)).collect::<Option<Vec<Value>>>()?;
            if found.iter().any(|value| matches!(value, Value::Float(0.0))) {
                found.extend(zeros());
            }
            Condition::In { column, values: found }
        }
        Test::IsNull => Condition::IsNull { column },
        Test::IsNotNull => Condition::IsNotNull { column },
    })
}

fn zeros() -> [Value; 2] {
    [Value::Float(-0.0), Value::Float(0.0)]
}

/// The value to compare with instead of a zero, so that both zeros are on the same side.
fn beyond_zeros(value: Value, comparison: Comparison) -> Value {
    match (&value, comparison) {
        (Value::Float(0.0), Comparison::Lt | Comparison::Ge) => Value::Float(-0.0),
        (Value::Float(0.0), Comparison::Le | Comparison::Gt) => Value::Float(0.0),
        _ => value,
    }
}

/// Whether a literal has the column's type. Planning makes the types agree, or wraps the column in a cast.
fn is_of(literal: &ScalarValue, value: &Value, data_type: &DataType) -> bool {
    match (value, data_type) {
        (Value::Text(_), DataType::Utf8) => true,
        (Value::Decimal { digits, .. }, DataType::Decimal128(precision, _)) => {
            literal.data_type() == *data_type && digits.unsigned_abs() < 10_u128.pow((*precision).into())
        }
        _ => literal.data_type() == *data_type,
    }
}

/// A literal as a value of the store.
pub(crate) fn value_of(value: &ScalarValue) -> Option<Value> {
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

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, in_list, lit};
    use kohort_store::{ColumnDescription, TableKind};

    use super::*;

    fn table() -> TableDescription {
        let column = |(name, data_type): (&str, DataType)| ColumnDescription {
            name: name.to_owned(),
            data_type,
            nullable: true,
        };
        let columns = [("n", DataType::Int64), ("x", DataType::Float64), ("price", DataType::Decimal128(4, 2))];
        TableDescription {
            name: "t".to_owned(),
            columns: columns.into_iter().map(column).collect(),
            primary_key: Vec::new(),
            indexes: Vec::new(),
            kind: TableKind::Base,
        }
    }

    /// The bits of the floats in a filter's conditions, which tell the two zeros apart.
    fn floats(filter: &Expr) -> Vec<u64> {
        let bits = |value: &Value| match value {
            Value::Float(value) => value.to_bits(),
            other => panic!("{other:?}"),
        };
        match conditions(filter, &table()).as_slice() {
            [Condition::Compare { value, .. }] => vec![bits(value)],
            [Condition::In { values, .. }] => values.iter().map(bits).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_zeros_are_asked_for_where_one_is_named() {
        let [below, above] = [-0.0_f64, 0.0].map(f64::to_bits);
        for zero in [0.0, -0.0] {
            assert_eq!(floats(&col("x").eq(lit(zero))), [below, above]);
            assert_eq!(floats(&col("x").gt_eq(lit(zero))), [below]);
            assert_eq!(floats(&col("x").lt(lit(zero))), [below]);
            assert_eq!(floats(&col("x").lt_eq(lit(zero))), [above]);
            assert_eq!(floats(&col("x").gt(lit(zero))), [above]);
            let listed = floats(&in_list(col("x"), vec![lit(1.0), lit(zero)], false));
            assert!(listed.contains(&below) && listed.contains(&above));
        }
    }

    #[test]
    fn a_value_of_another_type_is_left_to_the_query() {
        let decimal = |digits, precision, scale| lit(ScalarValue::Decimal128(Some(digits), precision, scale));
        for filter in [
            col("n").eq(lit(1_i32)),
            col("n").eq(lit("1")),
            col("x").lt(lit(1_i64)),
            col("price").eq(decimal(150, 4, 1)),
            col("price").eq(decimal(15_000, 4, 2)),
            col("other").eq(lit(1_i64)),
            col(kohort_store::ROW_NUMBER).eq(lit(1_i64)),
        ] {
            assert_eq!(conditions(&filter, &table()), [], "{filter}");
        }
        assert_eq!(conditions(&col("price").eq(decimal(150, 4, 2)), &table()).len(), 1);
        let both = col("n").gt(lit(1_i64)).and(col("n").eq(lit(1_i32)));
        assert_eq!(conditions(&both, &table()).len(), 1);
    }
}
