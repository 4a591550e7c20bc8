//! [`Conditions`]: filters as SQL for the server.
//!
//! # Guarantee
//! A condition keeps every row that its filter keeps. It may keep more rows, because filters are applied
//! again. So texts are compared by their bytes, and only if the server stores them in the same encoding. Floating point
//! numbers are not compared on the server, because its rules differ from ours.
//!
//! Values are sent as text parameters that the server converts, and never as part of a statement. A text that the
//! server may not be able to encode is not sent, because the server would refuse the statement.

use chrono::{DateTime, Datelike, NaiveDate};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;
use kohort_store::Comparison;
use tokio_postgres::types::{ToSql, Type};

use super::columns::{Column, ColumnLayout, Encoding};
use crate::filter::{Filter, Test};

/// PostgreSQL allows 65,535 parameters. Filters with more values are not sent.
const MOST_PARAMETERS: usize = 10_000;

/// A parameter of a statement and its type.
pub(super) type Parameter = (Box<dyn ToSql + Sync + Send>, Type);

/// The values of a statement's comparisons.
#[derive(Clone)]
enum SentValue {
    One(String),
    Many(Vec<String>),
}

/// The conditions on rows.
#[derive(Clone, Default)]
pub(super) struct Conditions {
    clauses: Vec<String>,
    values: Vec<SentValue>,
}

impl Conditions {
    /// Translates the filters that the server can apply.
    pub(super) fn of(filters: &[Expr], layout: &ColumnLayout) -> Conditions {
        let mut conditions = Conditions::default();
        for filter in filters.iter().filter_map(Filter::of) {
            let clause = conditions.clause(&filter, layout);
            conditions.clauses.extend(clause);
        }
        conditions
    }

    /// Whether the server can apply a filter.
    pub(super) fn understands(filter: &Expr, layout: &ColumnLayout) -> bool {
        Filter::of(filter).is_some_and(|filter| Conditions::default().clause(&filter, layout).is_some())
    }

    /// The number of translated filters.
    pub(super) fn len(&self) -> usize {
        self.clauses.len()
    }

    /// The conditions as the end of a statement.
    pub(super) fn to_sql(&self) -> String {
        if self.clauses.is_empty() { String::new() } else { format!(" WHERE {}", self.clauses.join(" AND ")) }
    }

    /// The values of the statement.
    pub(super) fn parameters(&self) -> Vec<Parameter> {
        let parameter = |value: &SentValue| -> Parameter {
            match value {
                SentValue::One(text) => (Box::new(text.clone()), Type::TEXT),
                SentValue::Many(texts) => (Box::new(texts.clone()), Type::TEXT_ARRAY),
            }
        };
        self.values.iter().map(parameter).collect()
    }

    /// Translates a filter. If that fails, none of its values is kept.
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
                let cast = cast_of(&column.data_type)?;
                let by_bytes = match (&column.data_type, comparison, encoding) {
                    (DataType::Utf8, Comparison::Eq, _) => "",
                    (DataType::Utf8, _, Encoding::Utf8) => " COLLATE \"C\"",
                    (DataType::Utf8, _, Encoding::Other) => return None,
                    _ => "",
                };
                let place = self.note(SentValue::One(text_of(value, encoding)?));
                Some(format!("{compared}{by_bytes} {sign} ${place}::text::{cast}"))
            }
            Test::In(values) => {
                let cast = cast_of(&column.data_type)?;
                let texts = values.iter().map(|value| text_of(value, encoding)).collect::<Option<Vec<String>>>()?;
                let place = self.note(SentValue::Many(texts));
                Some(format!("{compared} = ANY (${place}::text[]::{cast}[])"))
            }
            Test::IsNull => Some(format!("{compared} IS NULL")),
            Test::IsNotNull => Some(format!("{compared} IS NOT NULL")),
        }
    }

    /// Adds a value, and returns the number of its parameter.
    fn note(&mut self, value: SentValue) -> usize {
        self.values.push(value);
        self.values.len()
    }
}

/// The type in which values are compared with a column; `None` if they are not compared on the server.
fn cast_of(data_type: &DataType) -> Option<&'static str> {
    match data_type {
        DataType::Boolean => Some("boolean"),
        // A value may be too large for the column's own type.
        DataType::Int16 | DataType::Int32 | DataType::Int64 => Some("int8"),
        DataType::Decimal128(..) => Some("numeric"),
        DataType::Utf8 => Some("text"),
        DataType::Date32 => Some("date"),
        DataType::Timestamp(_, None) => Some("timestamp"),
        DataType::Timestamp(_, Some(_)) => Some("timestamptz"),
        _ => None,
    }
}

/// A value as text for the server; `None` if the server might read it as another value.
fn text_of(value: &ScalarValue, encoding: Encoding) -> Option<String> {
    let is_sent = match value {
        ScalarValue::Boolean(_)
        | ScalarValue::Int8(_)
        | ScalarValue::Int16(_)
        | ScalarValue::Int32(_)
        | ScalarValue::Int64(_)
        | ScalarValue::Decimal128(..) => true,
        ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) | ScalarValue::LargeUtf8(Some(text)) => {
            // A text of the server can't contain a zero byte.
            !text.contains('\0') && (encoding == Encoding::Utf8 || text.is_ascii())
        }
        ScalarValue::Date32(Some(days)) => {
            NaiveDate::from_epoch_days(*days).is_some_and(|day| has_four_digits(day.year()))
        }
        ScalarValue::TimestampMicrosecond(Some(time), _) => {
            DateTime::from_timestamp_micros(*time).is_some_and(|time| has_four_digits(time.year()))
        }
        _ => false,
    };
    let text = value.cast_to(&DataType::Utf8).ok().filter(|_| is_sent)?;
    text.try_as_str().flatten().map(str::to_owned)
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
            (ScalarValue::Decimal128(Some(-5), 10, 2), Some("-0.05")),
            (ScalarValue::Decimal128(Some(1250), 10, 2), Some("12.50")),
            (ScalarValue::Decimal128(Some(7), 10, 0), Some("7")),
            (ScalarValue::Date32(Some(0)), Some("1970-01-01")),
            (ScalarValue::Date32(Some(i32::MAX)), None),
            (ScalarValue::TimestampMicrosecond(Some(1), None), Some("1970-01-01T00:00:00.000001")),
            (ScalarValue::TimestampMicrosecond(Some(0), Some("UTC".into())), Some("1970-01-01T00:00:00Z")),
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
