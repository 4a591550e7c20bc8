//! [`PostgresCells`]: collects the values that a server sends for a column into an Arrow array.
//!
//! Values come in the server's binary form: numbers big-endian, days and microseconds since the first of January 2000.

use std::error::Error;

use datafusion::arrow::array::{
    ArrayBuilder, ArrayRef, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float32Builder,
    Float64Builder, Int16Builder, Int32Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder, make_builder,
};
use datafusion::arrow::datatypes::DataType;
use tokio_postgres::types::{FromSql, Type};

use super::PostgresError;
use super::columns::Column;

/// Days from 1970-01-01 to 2000-01-01.
const DAYS_TO_2000: i32 = 10_957;
const MICROSECONDS_TO_2000: i64 = DAYS_TO_2000 as i64 * 86_400_000_000;

const MISSENT: &str = "a value in an unexpected format";

/// A value in the server's binary form.
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
pub(super) struct PostgresCells<'c> {
    pub(super) column: &'c Column,
    builder: Box<dyn ArrayBuilder>,
}

impl<'c> PostgresCells<'c> {
    /// A column without values.
    pub(super) fn new(column: &'c Column) -> PostgresCells<'c> {
        PostgresCells { column, builder: make_builder(&column.data_type, 0) }
    }

    /// Adds a value.
    pub(super) fn push(&mut self, sent: Option<SentCell<'_>>) -> Result<(), PostgresError> {
        let raw = sent.map(|SentCell(raw)| raw);
        self.append(raw).map_err(|what| PostgresError::Value { column: self.column.name.clone(), what })
    }

    fn append(&mut self, raw: Option<&[u8]>) -> Result<(), &'static str> {
        match self.column.data_type {
            DataType::Boolean => {
                self.cells::<BooleanBuilder>().append_option(number(raw)?.map(|[byte]: [u8; 1]| byte != 0));
            }
            DataType::Int16 => self.cells::<Int16Builder>().append_option(number(raw)?.map(i16::from_be_bytes)),
            DataType::Int32 => self.cells::<Int32Builder>().append_option(number(raw)?.map(i32::from_be_bytes)),
            DataType::Int64 => self.cells::<Int64Builder>().append_option(number(raw)?.map(i64::from_be_bytes)),
            DataType::Float32 => self.cells::<Float32Builder>().append_option(number(raw)?.map(f32::from_be_bytes)),
            DataType::Float64 => self.cells::<Float64Builder>().append_option(number(raw)?.map(f64::from_be_bytes)),
            DataType::Decimal128(_, scale) => {
                let digits = text(raw)?.map(|text| decimal(text, scale)).transpose()?;
                self.cells::<Decimal128Builder>().append_option(digits);
            }
            DataType::Utf8 => self.cells::<StringBuilder>().append_option(text(raw)?),
            DataType::Binary => self.cells::<BinaryBuilder>().append_option(raw),
            DataType::Date32 => {
                let days = number(raw)?.map(|raw| days_since_1970(i32::from_be_bytes(raw))).transpose()?;
                self.cells::<Date32Builder>().append_option(days);
            }
            DataType::Timestamp(..) => {
                let time = number(raw)?.map(|raw| microseconds_since_1970(i64::from_be_bytes(raw))).transpose()?;
                self.cells::<TimestampMicrosecondBuilder>().append_option(time);
            }
            _ => return Err(MISSENT),
        }
        Ok(())
    }

    fn cells<B: ArrayBuilder>(&mut self) -> &mut B {
        self.builder.as_any_mut().downcast_mut().expect("the builder was made for the column's type")
    }

    /// Takes the values collected so far.
    pub(super) fn finish(&mut self) -> ArrayRef {
        self.builder.finish()
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
        i32::MIN | i32::MAX => Err("an infinite date"),
        days => days.checked_add(DAYS_TO_2000).ok_or("a date that is out of range"),
    }
}

fn microseconds_since_1970(since_2000: i64) -> Result<i64, &'static str> {
    match since_2000 {
        i64::MIN | i64::MAX => Err("an infinite timestamp"),
        time => time.checked_add(MICROSECONDS_TO_2000).ok_or("a timestamp that is out of range"),
    }
}

/// The digits of a decimal with this many digits after the point.
fn decimal(text: &str, scale: i8) -> Result<i128, &'static str> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() != usize::from(scale.unsigned_abs()) {
        return Err(if text.contains('N') || text.contains('I') { "NaN or infinity" } else { MISSENT });
    }
    format!("{whole}{fraction}").parse().map_err(|_| MISSENT)
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
