//! [`Conditions`]: filters as a server understands them.
//!
//! # Guarantee
//! A row that a filter keeps is a row that its condition keeps. The other way round need not hold: filters are applied
//! again. So texts are put in order by their bytes, as here; floating point numbers, of which the two think differently,
//! are not compared there at all.
//!
//! Values travel as parameters, as texts that the server converts; nothing of them is part of a statement.

use std::fmt::Write as _;

use chrono::{DateTime, Datelike, NaiveDate};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};
use tokio_postgres::types::{ToSql, Type};

use super::columns::{Column, Kind};

/// What a server looks up at once; longer lists are compared here.
const MOST_VALUES: usize = 10_000;

/// A parameter of a statement and its type.
pub(super) type Parameter = (Box<dyn ToSql + Sync + Send>, Type);

/// Values that a statement compares with.
#[derive(Clone)]
enum Value {
    One(String),
    Many(Vec<String>),
}

/// What rows have to satisfy.
#[derive(Clone, Default)]
pub(super) struct Conditions {
    clauses: Vec<String>,
    values: Vec<Value>,
}

impl Conditions {
    /// What the server can make of these filters.
    pub(super) fn of(filters: &[Expr], columns: &[Column]) -> Conditions {
        let mut conditions = Conditions::default();
        for filter in filters {
            let n_values = conditions.values.len();
            match conditions.clause(filter, columns) {
                Some(clause) => conditions.clauses.push(clause),
                None => conditions.values.truncate(n_values),
            }
        }
        conditions
    }

    /// Whether the server can make something of a filter.
    pub(super) fn understands(filter: &Expr, columns: &[Column]) -> bool {
        Conditions::default().clause(filter, columns).is_some()
    }

    /// How many filters they stand for.
    pub(super) fn len(&self) -> usize {
        self.clauses.len()
    }

    /// As the end of a statement.
    pub(super) fn to_sql(&self) -> String {
        let mut sql = String::new();
        for (place, clause) in self.clauses.iter().enumerate() {
            let word = if place == 0 { "WHERE" } else { "AND" };
            write!(sql, " {word} {clause}").expect("a String takes every text");
        }
        sql
    }

    /// The values of the statement.
    pub(super) fn parameters(&self) -> Vec<Parameter> {
        let parameter = |value: &Value| -> Parameter {
            match value {
                Value::One(text) => (Box::new(text.clone()), Type::TEXT),
                Value::Many(texts) => (Box::new(texts.clone()), Type::TEXT_ARRAY),
            }
        };
        self.values.iter().map(parameter).collect()
    }

    fn clause(&mut self, filter: &Expr, columns: &[Column]) -> Option<String> {
        match filter {
            Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
                let (left, right) = (self.clause(left, columns)?, self.clause(right, columns)?);
                let word = if *op == Operator::And { "AND" } else { "OR" };
                Some(format!("({left} {word} {right})"))
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (left.as_ref(), right.as_ref()) {
                (column, Expr::Literal(value, _)) => self.comparison(column_of(column, columns)?, *op, value),
                (Expr::Literal(value, _), column) => self.comparison(column_of(column, columns)?, op.swap()?, value),
                _ => None,
            },
            Expr::Between(Between { expr, negated: false, low, high }) => {
                let column = column_of(expr, columns)?;
                let (Expr::Literal(low, _), Expr::Literal(high, _)) = (low.as_ref(), high.as_ref()) else {
                    return None;
                };
                let low = self.comparison(column, Operator::GtEq, low)?;
                let high = self.comparison(column, Operator::LtEq, high)?;
                Some(format!("({low} AND {high})"))
            }
            Expr::InList(InList { expr, list, negated: false }) if list.len() <= MOST_VALUES => {
                let column = column_of(expr, columns)?;
                let cast = cast_of(column.kind)?;
                let text = |item: &Expr| match item {
                    Expr::Literal(value, _) => text_of(value),
                    _ => None,
                };
                let texts = list.iter().map(text).collect::<Option<Vec<String>>>()?;
                let place = self.note(Value::Many(texts));
                Some(format!("{} = ANY (${place}::text[]::{cast}[])", column.compared()))
            }
            Expr::IsNull(inner) => Some(format!("{} IS NULL", column_of(inner, columns)?.compared())),
            Expr::IsNotNull(inner) => Some(format!("{} IS NOT NULL", column_of(inner, columns)?.compared())),
            _ => None,
        }
    }

    fn comparison(&mut self, column: &Column, op: Operator, value: &ScalarValue) -> Option<String> {
        let sign = match op {
            Operator::Eq => "=",
            Operator::Lt => "<",
            Operator::LtEq => "<=",
            Operator::Gt => ">",
            Operator::GtEq => ">=",
            _ => return None,
        };
        let cast = cast_of(column.kind)?;
        let by_bytes = if column.kind == Kind::Text && op != Operator::Eq { " COLLATE \"C\"" } else { "" };
        let place = self.note(Value::One(text_of(value)?));
        Some(format!("{}{by_bytes} {sign} ${place}::text::{cast}", column.compared()))
    }

    /// Takes up a value, and says its place.
    fn note(&mut self, value: Value) -> usize {
        self.values.push(value);
        self.values.len()
    }
}

fn column_of<'c>(expression: &Expr, columns: &'c [Column]) -> Option<&'c Column> {
    let Expr::Column(named) = expression else { return None };
    columns.iter().find(|column| column.name == named.name)
}

/// The type in which values are compared with a column.
fn cast_of(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Boolean => Some("boolean"),
        // A value may be larger than the column's own type takes.
        Kind::Int16 | Kind::Int32 | Kind::Int64 => Some("int8"),
        Kind::Decimal { .. } => Some("numeric"),
        Kind::Text => Some("text"),
        Kind::Date => Some("date"),
        Kind::Timestamp => Some("timestamp"),
        Kind::TimestampUtc => Some("timestamptz"),
        Kind::Float32 | Kind::Float64 | Kind::Bytes => None,
    }
}

/// A value as a text that the server converts; `None` where that is not sure to be the same.
fn text_of(value: &ScalarValue) -> Option<String> {
    Some(match value {
        ScalarValue::Boolean(Some(value)) => value.to_string(),
        ScalarValue::Int8(Some(value)) => value.to_string(),
        ScalarValue::Int16(Some(value)) => value.to_string(),
        ScalarValue::Int32(Some(value)) => value.to_string(),
        ScalarValue::Int64(Some(value)) => value.to_string(),
        ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) | ScalarValue::LargeUtf8(Some(text)) => {
            // The server has no text with a zero in it.
            (!text.contains('\0')).then(|| text.clone())?
        }
        ScalarValue::Date32(Some(days)) => {
            let day = NaiveDate::from_epoch_days(*days).filter(|day| has_four_digits(day.year()))?;
            day.to_string()
        }
        ScalarValue::TimestampMicrosecond(Some(time), zone) => {
            let time = DateTime::from_timestamp_micros(*time).filter(|time| has_four_digits(time.year()))?;
            let offset = if zone.is_some() { "+00" } else { "" };
            format!("{}{offset}", time.naive_utc().format("%Y-%m-%d %H:%M:%S%.6f"))
        }
        ScalarValue::Decimal128(Some(digits), _, scale) => {
            let n_behind = usize::try_from(*scale).ok()?;
            let sign = if *digits < 0 { "-" } else { "" };
            let digits = format!("{:0>width$}", digits.unsigned_abs(), width = n_behind + 1);
            let (whole, behind) = digits.split_at(digits.len() - n_behind);
            format!("{sign}{whole}.{behind}0")
        }
        _ => return None,
    })
}

fn has_four_digits(year: i32) -> bool {
    (1..=9999).contains(&year)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_texts_that_the_server_reads_as_the_same() {
        let cases = [
            (ScalarValue::Decimal128(Some(-5), 10, 2), Some("-0.050")),
            (ScalarValue::Decimal128(Some(1250), 10, 2), Some("12.500")),
            (ScalarValue::Decimal128(Some(7), 10, 0), Some("7.0")),
            (ScalarValue::Date32(Some(0)), Some("1970-01-01")),
            (ScalarValue::Date32(Some(i32::MAX)), None),
            (ScalarValue::TimestampMicrosecond(Some(1), None), Some("1970-01-01 00:00:00.000001")),
            (ScalarValue::TimestampMicrosecond(Some(0), Some("UTC".into())), Some("1970-01-01 00:00:00.000000+00")),
            (ScalarValue::Utf8(Some("a\0b".to_owned())), None),
            (ScalarValue::Int32(None), None),
        ];
        for (value, text) in cases {
            assert_eq!(text_of(&value).as_deref(), text);
        }
    }
}
