//! [`Conditions`]: filters as a server understands them.
//!
//! # Guarantee
//! A row that a filter keeps is a row that its condition keeps. The other way round need not hold: filters are applied
//! again. So texts are put in order by their bytes, as here, and only by a server whose bytes they are; floating point
//! numbers, of which the two think differently, are not compared there at all.
//!
//! Values travel as parameters, as texts that the server converts; nothing of them is part of a statement. A text that
//! the server may have no bytes for is not sent: it would refuse the statement.

use std::fmt::Write as _;

use chrono::{DateTime, Datelike, NaiveDate};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;
use kohort_store::Comparison;
use tokio_postgres::types::{ToSql, Type};

use super::columns::{Column, ColumnKind, ColumnLayout, Encoding};
use crate::filter::{Filter, Test};

/// A statement takes 65,535; what has more is left to the query.
const MOST_PARAMETERS: usize = 10_000;

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
    pub(super) fn of(filters: &[Expr], layout: &ColumnLayout) -> Conditions {
        let mut conditions = Conditions::default();
        for filter in filters.iter().filter_map(Filter::of) {
            let clause = conditions.clause(&filter, layout);
            conditions.clauses.extend(clause);
        }
        conditions
    }

    /// Whether the server can make something of a filter.
    pub(super) fn understands(filter: &Expr, layout: &ColumnLayout) -> bool {
        Filter::of(filter).is_some_and(|filter| Conditions::default().clause(&filter, layout).is_some())
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

    /// A filter as a part of a statement. Of one that is not understood, no value is kept.
    fn clause(&mut self, filter: &Filter<'_>, layout: &ColumnLayout) -> Option<String> {
        let n_values = self.values.len();
        let clause = match filter {
            Filter::Column(name, test) => {
                let column = layout.columns.iter().find(|column| column.name == *name);
                column.and_then(|column| self.test(column, test, layout.encoding))
            }
            Filter::All(parts) => {
                let clauses: Vec<String> = parts.iter().filter_map(|part| self.clause(part, layout)).collect();
                (!clauses.is_empty()).then(|| format!("({})", clauses.join(" AND ")))
            }
            Filter::Any(parts) => {
                let clauses: Option<Vec<String>> = parts.iter().map(|part| self.clause(part, layout)).collect();
                clauses.map(|clauses| format!("({})", clauses.join(" OR ")))
            }
        };
        let clause = clause.filter(|_| self.values.len() <= MOST_PARAMETERS);
        if clause.is_none() {
            self.values.truncate(n_values);
        }
        clause
    }

    fn test(&mut self, column: &Column, test: &Test<'_>, encoding: Encoding) -> Option<String> {
        let compared = column.compared();
        match test {
            Test::Compare(comparison, value) => {
                let sign = match comparison {
                    Comparison::Eq => "=",
                    Comparison::Lt => "<",
                    Comparison::Le => "<=",
                    Comparison::Gt => ">",
                    Comparison::Ge => ">=",
                };
                let cast = cast_of(column.kind)?;
                let by_bytes = match (column.kind, comparison, encoding) {
                    (ColumnKind::Text, Comparison::Eq, _) => "",
                    (ColumnKind::Text, _, Encoding::Utf8) => " COLLATE \"C\"",
                    (ColumnKind::Text, _, Encoding::Other) => return None,
                    _ => "",
                };
                let place = self.note(Value::One(text_of(value, encoding)?));
                Some(format!("{compared}{by_bytes} {sign} ${place}::text::{cast}"))
            }
            Test::In(values) => {
                let cast = cast_of(column.kind)?;
                let texts = values.iter().map(|value| text_of(value, encoding)).collect::<Option<Vec<String>>>()?;
                let place = self.note(Value::Many(texts));
                Some(format!("{compared} = ANY (${place}::text[]::{cast}[])"))
            }
            Test::IsNull => Some(format!("{compared} IS NULL")),
            Test::IsNotNull => Some(format!("{compared} IS NOT NULL")),
        }
    }

    /// Takes up a value, and says its place.
    fn note(&mut self, value: Value) -> usize {
        self.values.push(value);
        self.values.len()
    }
}

/// The type in which values are compared with a column.
fn cast_of(kind: ColumnKind) -> Option<&'static str> {
    match kind {
        ColumnKind::Boolean => Some("boolean"),
        // A value may be larger than the column's own type takes.
        ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64 => Some("int8"),
        ColumnKind::Decimal { .. } => Some("numeric"),
        ColumnKind::Text => Some("text"),
        ColumnKind::Date => Some("date"),
        ColumnKind::Timestamp => Some("timestamp"),
        ColumnKind::TimestampUtc => Some("timestamptz"),
        ColumnKind::Float32 | ColumnKind::Float64 | ColumnKind::Bytes => None,
    }
}

/// A value as a text that the server converts; `None` where that is not sure to be the same.
fn text_of(value: &ScalarValue, encoding: Encoding) -> Option<String> {
    Some(match value {
        ScalarValue::Boolean(Some(value)) => value.to_string(),
        ScalarValue::Int8(Some(value)) => value.to_string(),
        ScalarValue::Int16(Some(value)) => value.to_string(),
        ScalarValue::Int32(Some(value)) => value.to_string(),
        ScalarValue::Int64(Some(value)) => value.to_string(),
        ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) | ScalarValue::LargeUtf8(Some(text)) => {
            // The server has no text with a zero in it.
            let is_sent = !text.contains('\0') && (encoding == Encoding::Utf8 || text.is_ascii());
            is_sent.then(|| text.clone())?
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
            assert_eq!(text_of(&value, Encoding::Utf8).as_deref(), text);
        }
    }

    #[test]
    fn a_server_of_another_encoding_is_asked_for_ascii_only_and_for_no_order() {
        use datafusion::logical_expr::{col, in_list, lit};
        let layout = |encoding| ColumnLayout { columns: vec![Column::text("name"), Column::text("ward")], encoding };
        let filters = [
            (col("name").eq(lit("Ann")), true),
            (col("name").eq(lit("René")), false),
            (in_list(col("name"), vec![lit("Ann"), lit("René")], false), false),
            (col("name").lt(lit("Ann")), false),
            (col("name").is_null().or(col("ward").eq(lit("north"))), true),
            (col("name").eq(lit("Ann")).or(col("ward").gt(lit("north"))), false),
            (col("name").eq(lit("Ann")).and(col("ward").gt(lit("north"))), true),
        ];
        for (filter, is_asked) in filters {
            assert!(Conditions::understands(&filter, &layout(Encoding::Utf8)), "{filter}");
            assert_eq!(Conditions::understands(&filter, &layout(Encoding::Other)), is_asked, "{filter}");
        }
    }

    #[test]
    fn values_of_what_is_not_asked_do_not_travel() {
        use datafusion::logical_expr::{col, lit};
        let layout =
            ColumnLayout { columns: vec![Column::text("name"), Column::text("ward")], encoding: Encoding::Other };
        let ann = || col("name").eq(lit("Ann"));
        let filters = [ann().or(col("ward").eq(lit("Süd"))), ann().and(col("ward").eq(lit("Süd"))), ann()];
        let conditions = Conditions::of(&filters, &layout);
        assert_eq!(conditions.to_sql(), r#" WHERE ("name" = $1::text::text) AND "name" = $2::text::text"#);
        assert_eq!(conditions.parameters().len(), 2);
    }
}
