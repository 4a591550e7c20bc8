//! [`PostgresCells`]: what a server sends of a column, as an Arrow array.
//!
//! Values come in the server's binary form: numbers big-endian, days and microseconds since the first of January 2000.

use std::error::Error;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float32Builder, Float64Builder,
    Int16Builder, Int32Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder,
};
use datafusion::arrow::datatypes::DataType;
use tokio_postgres::types::{FromSql, Type};

use super::PostgresError;
use super::columns::{Column, ColumnKind};

/// Days from 1970-01-01 to 2000-01-01.
const DAYS_TO_2000: i32 = 10_957;
const MICROSECONDS_TO_2000: i64 = DAYS_TO_2000 as i64 * 86_400_000_000;

const MISSENT: &str = "a value that was sent in another form than its type has";

/// A value as it is sent.
pub(super) struct SentCell<'a>(&'a [u8]);

impl<'a> FromSql<'a> for SentCell<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(SentCell(raw))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// The values of a column so far.
pub(super) enum PostgresCells {
    Boolean(BooleanBuilder),
    Int16(Int16Builder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Float32(Float32Builder),
    Float64(Float64Builder),
    Decimal(Decimal128Builder, i8),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
    Date(Date32Builder),
    Timestamp(TimestampMicrosecondBuilder),
}

impl PostgresCells {
    /// No value yet.
    pub(super) fn new(column: &Column) -> PostgresCells {
        match column.kind {
            ColumnKind::Boolean => PostgresCells::Boolean(BooleanBuilder::new()),
            ColumnKind::Int16 => PostgresCells::Int16(Int16Builder::new()),
            ColumnKind::Int32 => PostgresCells::Int32(Int32Builder::new()),
            ColumnKind::Int64 => PostgresCells::Int64(Int64Builder::new()),
            ColumnKind::Float32 => PostgresCells::Float32(Float32Builder::new()),
            ColumnKind::Float64 => PostgresCells::Float64(Float64Builder::new()),
            ColumnKind::Decimal { precision, scale } => {
                let builder = Decimal128Builder::new().with_data_type(DataType::Decimal128(precision, scale));
                PostgresCells::Decimal(builder, scale)
            }
            ColumnKind::Text => PostgresCells::Text(StringBuilder::new()),
            ColumnKind::Bytes => PostgresCells::Bytes(BinaryBuilder::new()),
            ColumnKind::Date => PostgresCells::Date(Date32Builder::new()),
            ColumnKind::Timestamp => PostgresCells::Timestamp(TimestampMicrosecondBuilder::new()),
            ColumnKind::TimestampUtc => {
                PostgresCells::Timestamp(TimestampMicrosecondBuilder::new().with_timezone("UTC"))
            }
        }
    }

    /// Adds a value of a column.
    ///
    /// # Errors
    /// Where it has no place here.
    pub(super) fn push(&mut self, sent: Option<SentCell<'_>>, column: &Column) -> Result<(), PostgresError> {
        let raw = sent.map(|SentCell(raw)| raw);
        self.append(raw).map_err(|what| PostgresError::Value { column: column.name.clone(), what })
    }

    fn append(&mut self, raw: Option<&[u8]>) -> Result<(), &'static str> {
        match self {
            PostgresCells::Boolean(cells) => cells.append_option(number(raw)?.map(|[byte]: [u8; 1]| byte != 0)),
            PostgresCells::Int16(cells) => cells.append_option(number(raw)?.map(i16::from_be_bytes)),
            PostgresCells::Int32(cells) => cells.append_option(number(raw)?.map(i32::from_be_bytes)),
            PostgresCells::Int64(cells) => cells.append_option(number(raw)?.map(i64::from_be_bytes)),
            PostgresCells::Float32(cells) => cells.append_option(number(raw)?.map(f32::from_be_bytes)),
            PostgresCells::Float64(cells) => cells.append_option(number(raw)?.map(f64::from_be_bytes)),
            PostgresCells::Decimal(cells, scale) => {
                let digits = text(raw)?.map(|text| decimal(text, *scale));
                cells.append_option(digits.transpose()?);
            }
            PostgresCells::Text(cells) => cells.append_option(text(raw)?),
            PostgresCells::Bytes(cells) => cells.append_option(raw),
            PostgresCells::Date(cells) => {
                let since_2000 = number(raw)?.map(i32::from_be_bytes);
                cells.append_option(since_2000.map(days_since_1970).transpose()?);
            }
            PostgresCells::Timestamp(cells) => {
                let since_2000 = number(raw)?.map(i64::from_be_bytes);
                cells.append_option(since_2000.map(microseconds_since_1970).transpose()?);
            }
        }
        Ok(())
    }

    /// The values, and none from here on.
    pub(super) fn finish(&mut self) -> ArrayRef {
        match self {
            PostgresCells::Boolean(cells) => Arc::new(cells.finish()),
            PostgresCells::Int16(cells) => Arc::new(cells.finish()),
            PostgresCells::Int32(cells) => Arc::new(cells.finish()),
            PostgresCells::Int64(cells) => Arc::new(cells.finish()),
            PostgresCells::Float32(cells) => Arc::new(cells.finish()),
            PostgresCells::Float64(cells) => Arc::new(cells.finish()),
            PostgresCells::Decimal(cells, _) => Arc::new(cells.finish()),
            PostgresCells::Text(cells) => Arc::new(cells.finish()),
            PostgresCells::Bytes(cells) => Arc::new(cells.finish()),
            PostgresCells::Date(cells) => Arc::new(cells.finish()),
            PostgresCells::Timestamp(cells) => Arc::new(cells.finish()),
        }
    }
}

fn number<const N: usize>(raw: Option<&[u8]>) -> Result<Option<[u8; N]>, &'static str> {
    raw.map(|raw| raw.try_into().map_err(|_| MISSENT)).transpose()
}

fn text(raw: Option<&[u8]>) -> Result<Option<&str>, &'static str> {
    raw.map(|raw| std::str::from_utf8(raw).map_err(|_| "text that is not UTF-8")).transpose()
}

fn days_since_1970(since_2000: i32) -> Result<i32, &'static str> {
    match since_2000 {
        i32::MIN | i32::MAX => Err("a day that is infinite"),
        days => days.checked_add(DAYS_TO_2000).ok_or("a day beyond all calendars"),
    }
}

fn microseconds_since_1970(since_2000: i64) -> Result<i64, &'static str> {
    match since_2000 {
        i64::MIN | i64::MAX => Err("a time that is infinite"),
        time => time.checked_add(MICROSECONDS_TO_2000).ok_or("a time beyond all calendars"),
    }
}

/// The digits of a decimal with so many behind the point.
fn decimal(text: &str, scale: i8) -> Result<i128, &'static str> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() != usize::from(scale.unsigned_abs()) {
        return Err(if text.contains('N') || text.contains('I') { "a number that is none" } else { MISSENT });
    }
    format!("{whole}{fraction}").parse().map_err(|_| "a number that is none")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_keep_every_digit() {
        assert_eq!(decimal("-12.50", 2), Ok(-1250));
        assert_eq!(decimal("0.05", 2), Ok(5));
        assert_eq!(decimal("-0.05", 2), Ok(-5));
        assert_eq!(decimal("7", 0), Ok(7));
        let longest = "9".repeat(38);
        assert_eq!(decimal(&longest, 0), Ok(longest.parse().unwrap()));
        for none in ["NaN", "Infinity", "1.5"] {
            assert!(decimal(none, 2).is_err(), "{none}");
        }
        assert!(decimal("NaN", 0).is_err());
    }

    #[test]
    fn days_and_times_are_counted_from_1970() {
        assert_eq!(days_since_1970(0), Ok(10_957));
        assert_eq!(microseconds_since_1970(-MICROSECONDS_TO_2000), Ok(0));
        assert!(days_since_1970(i32::MAX).is_err());
        assert!(microseconds_since_1970(i64::MAX).is_err());
        assert!(microseconds_since_1970(i64::MAX - 1).is_err());
    }
}
