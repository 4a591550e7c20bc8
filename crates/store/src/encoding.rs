//! [`StoredType`]: how the values of each Arrow type are stored in SQLite, so that SQLite compares them as Arrow does.
//!
//! | Arrow | SQLite | order |
//! | --- | --- | --- |
//! | `Boolean` | INTEGER 0, 1 | false first |
//! | `Int8` to `Int64`, `UInt8` to `UInt32` | INTEGER | by value |
//! | `Float64` | INTEGER: the bits; of a negative number, all but the sign inverted | IEEE total order |
//! | `Utf8` | TEXT, collation BINARY | by bytes |
//! | `Binary` | BLOB | by bytes |
//! | `Date32` | INTEGER days from 1970 | by value |
//! | `Timestamp(Microsecond)` | INTEGER microseconds from 1970 | by value |
//! | `Decimal128` of up to 18 digits | INTEGER, scaled | by value |
//! | `Decimal128` of more digits | BLOB of 16 bytes, most significant first, sign bit inverted | by value |
//!
//! # Deviations
//!
//! Floats are not stored as REAL, because SQLite turns NaN into a missing value and -0.0 into 0.0. As integers they
//! keep every bit and have Arrow's order: -0.0 is below 0.0, and NaN equals itself and is above infinity (below
//! everything if its sign is set).

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    UInt8Type, UInt16Type, UInt32Type,
};
use arrow_array::{Array, BinaryArray, BooleanArray, StringArray};
use arrow_array::{ArrowPrimitiveType, PrimitiveArray};
use arrow_schema::{DataType, TimeUnit};
use rusqlite::types::ValueRef;

use crate::{ColumnDescription, StoreError};

mod columns;

pub(crate) use columns::ColumnBuilder;

/// Decimals of up to this many digits are stored as integers of 64 bits.
const INTEGER_DIGITS: u8 = 18;

/// The largest number of digits of a decimal.
const MOST_DIGITS: u8 = 38;

/// A type that the store supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoredType {
    Boolean,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    Float64,
    Utf8,
    Binary,
    Date32,
    Timestamp(Option<String>),
    Decimal { digits: u8, scale: i8 },
}

impl StoredType {
    /// The stored type of a column.
    pub(crate) fn of(column: &ColumnDescription) -> Result<Self, StoreError> {
        let unsupported =
            || StoreError::UnsupportedType { column: column.name.clone(), data_type: column.data_type.clone() };
        Ok(match &column.data_type {
            DataType::Boolean => Self::Boolean,
            DataType::Int8 => Self::Int8,
            DataType::Int16 => Self::Int16,
            DataType::Int32 => Self::Int32,
            DataType::Int64 => Self::Int64,
            DataType::UInt8 => Self::UInt8,
            DataType::UInt16 => Self::UInt16,
            DataType::UInt32 => Self::UInt32,
            DataType::Float64 => Self::Float64,
            DataType::Utf8 => Self::Utf8,
            DataType::Binary => Self::Binary,
            DataType::Date32 => Self::Date32,
            DataType::Timestamp(TimeUnit::Microsecond, zone) => Self::Timestamp(zone.as_deref().map(str::to_owned)),
            DataType::Decimal128(digits, scale) => Self::decimal(*digits, *scale).ok_or_else(unsupported)?,
            _ => return Err(unsupported()),
        })
    }

    /// The type in Arrow.
    pub(crate) fn data_type(&self) -> DataType {
        match self {
            Self::Boolean => DataType::Boolean,
            Self::Int8 => DataType::Int8,
            Self::Int16 => DataType::Int16,
            Self::Int32 => DataType::Int32,
            Self::Int64 => DataType::Int64,
            Self::UInt8 => DataType::UInt8,
            Self::UInt16 => DataType::UInt16,
            Self::UInt32 => DataType::UInt32,
            Self::Float64 => DataType::Float64,
            Self::Utf8 => DataType::Utf8,
            Self::Binary => DataType::Binary,
            Self::Date32 => DataType::Date32,
            Self::Timestamp(zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.as_deref().map(Into::into)),
            Self::Decimal { digits, scale } => DataType::Decimal128(*digits, *scale),
        }
    }

    /// The type of the column in SQLite.
    pub(crate) fn sql_type(&self) -> &'static str {
        match self {
            Self::Utf8 => "TEXT",
            Self::Binary => "BLOB",
            Self::Decimal { digits, .. } if *digits > INTEGER_DIGITS => "BLOB",
            _ => "INTEGER",
        }
    }

    /// The type's name in the catalog of the file. The names are part of the file format.
    pub(crate) fn catalog_name(&self) -> String {
        match self {
            Self::Boolean => "boolean".to_owned(),
            Self::Int8 => "int8".to_owned(),
            Self::Int16 => "int16".to_owned(),
            Self::Int32 => "int32".to_owned(),
            Self::Int64 => "int64".to_owned(),
            Self::UInt8 => "uint8".to_owned(),
            Self::UInt16 => "uint16".to_owned(),
            Self::UInt32 => "uint32".to_owned(),
            Self::Float64 => "float64".to_owned(),
            Self::Utf8 => "text".to_owned(),
            Self::Binary => "binary".to_owned(),
            Self::Date32 => "date".to_owned(),
            Self::Timestamp(None) => "timestamp".to_owned(),
            Self::Timestamp(Some(zone)) => format!("timestamp {zone}"),
            Self::Decimal { digits, scale } => format!("decimal {digits} {scale}"),
        }
    }

    /// The type with this name in the catalog.
    pub(crate) fn from_catalog_name(name: &str) -> Option<Self> {
        Some(match name {
            "boolean" => Self::Boolean,
            "int8" => Self::Int8,
            "int16" => Self::Int16,
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "uint8" => Self::UInt8,
            "uint16" => Self::UInt16,
            "uint32" => Self::UInt32,
            "float64" => Self::Float64,
            "text" => Self::Utf8,
            "binary" => Self::Binary,
            "date" => Self::Date32,
            "timestamp" => Self::Timestamp(None),
            _ => {
                if let Some(zone) = name.strip_prefix("timestamp ") {
                    return Some(Self::Timestamp(Some(zone.to_owned())));
                }
                let (digits, scale) = name.strip_prefix("decimal ")?.split_once(' ')?;
                Self::decimal(digits.parse().ok()?, scale.parse().ok()?)?
            }
        })
    }

    /// Decimals of this many digits; `None` if they do not fit into 128 bits.
    fn decimal(digits: u8, scale: i8) -> Option<Self> {
        (1..=MOST_DIGITS).contains(&digits).then_some(Self::Decimal { digits, scale })
    }
}

/// The integer as which a float is stored.
pub(crate) fn float_to_stored(value: f64) -> i64 {
    let bits = value.to_bits().cast_signed();
    // Invert all bits of a negative number except the sign: the larger its magnitude, the smaller the integer.
    bits ^ ((bits >> 63) & i64::MAX)
}

/// The float that is stored as this integer.
pub(crate) fn float_from_stored(stored: i64) -> f64 {
    f64::from_bits((stored ^ ((stored >> 63) & i64::MAX)).cast_unsigned())
}

/// The bytes as which a decimal of many digits is stored.
pub(crate) fn wide_decimal_to_stored(value: i128) -> [u8; 16] {
    (value ^ i128::MIN).to_be_bytes()
}

/// Reads back a decimal that has too many digits for a 64-bit integer, so it is stored as bytes.
pub(crate) fn wide_decimal_from_stored(stored: [u8; 16]) -> i128 {
    i128::from_be_bytes(stored) ^ i128::MIN
}

/// Whether a decimal has at most this many digits.
pub(crate) fn has_digits(value: i128, digits: u8) -> bool {
    value.unsigned_abs() < 10_u128.pow(u32::from(digits))
}

/// A value as it is bound to a statement.
pub(crate) enum Bound<'a> {
    Null,
    Integer(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
    Wide([u8; 16]),
}

impl Bound<'_> {
    pub(crate) fn as_value(&self) -> ValueRef<'_> {
        match self {
            Self::Null => ValueRef::Null,
            Self::Integer(value) => ValueRef::Integer(*value),
            Self::Text(value) => ValueRef::Text(value.as_bytes()),
            Self::Bytes(value) => ValueRef::Blob(value),
            Self::Wide(value) => ValueRef::Blob(value),
        }
    }
}

/// The cells of one column of a batch, ready to be bound.
pub(crate) enum Cells<'a> {
    Boolean(&'a BooleanArray),
    Int8(&'a PrimitiveArray<Int8Type>),
    Int16(&'a PrimitiveArray<Int16Type>),
    Int32(&'a PrimitiveArray<Int32Type>),
    Int64(&'a PrimitiveArray<Int64Type>),
    UInt8(&'a PrimitiveArray<UInt8Type>),
    UInt16(&'a PrimitiveArray<UInt16Type>),
    UInt32(&'a PrimitiveArray<UInt32Type>),
    Float64(&'a PrimitiveArray<Float64Type>),
    Utf8(&'a StringArray),
    Binary(&'a BinaryArray),
    Date32(&'a PrimitiveArray<Date32Type>),
    Timestamp(&'a PrimitiveArray<TimestampMicrosecondType>),
    Decimal(&'a PrimitiveArray<Decimal128Type>, u8),
}

impl<'a> Cells<'a> {
    /// The cells of an array, whose type is that of `stored`.
    pub(crate) fn of(array: &'a dyn Array, stored: &StoredType) -> Self {
        match stored {
            StoredType::Boolean => Self::Boolean(array.as_boolean()),
            StoredType::Int8 => Self::Int8(array.as_primitive()),
            StoredType::Int16 => Self::Int16(array.as_primitive()),
            StoredType::Int32 => Self::Int32(array.as_primitive()),
            StoredType::Int64 => Self::Int64(array.as_primitive()),
            StoredType::UInt8 => Self::UInt8(array.as_primitive()),
            StoredType::UInt16 => Self::UInt16(array.as_primitive()),
            StoredType::UInt32 => Self::UInt32(array.as_primitive()),
            StoredType::Float64 => Self::Float64(array.as_primitive()),
            StoredType::Utf8 => Self::Utf8(array.as_string()),
            StoredType::Binary => Self::Binary(array.as_binary()),
            StoredType::Date32 => Self::Date32(array.as_primitive()),
            StoredType::Timestamp(_) => Self::Timestamp(array.as_primitive()),
            StoredType::Decimal { digits, .. } => Self::Decimal(array.as_primitive(), *digits),
        }
    }

    /// The cell of a row; `None` if it does not fit its type.
    pub(crate) fn bound(&self, row: usize) -> Option<Bound<'a>> {
        Some(match self {
            Self::Boolean(array) if array.is_null(row) => Bound::Null,
            Self::Boolean(array) => Bound::Integer(array.value(row).into()),
            Self::Int8(array) => integer(array, row),
            Self::Int16(array) => integer(array, row),
            Self::Int32(array) => integer(array, row),
            Self::Int64(array) => integer(array, row),
            Self::UInt8(array) => integer(array, row),
            Self::UInt16(array) => integer(array, row),
            Self::UInt32(array) => integer(array, row),
            Self::Float64(array) if array.is_null(row) => Bound::Null,
            Self::Float64(array) => Bound::Integer(float_to_stored(array.value(row))),
            Self::Utf8(array) if array.is_null(row) => Bound::Null,
            Self::Utf8(array) => Bound::Text(array.value(row)),
            Self::Binary(array) if array.is_null(row) => Bound::Null,
            Self::Binary(array) => Bound::Bytes(array.value(row)),
            Self::Date32(array) => integer(array, row),
            Self::Timestamp(array) => integer(array, row),
            Self::Decimal(array, _) if array.is_null(row) => Bound::Null,
            Self::Decimal(array, digits) => return decimal(array.value(row), *digits),
        })
    }
}

fn integer<'a, T: ArrowPrimitiveType<Native: Into<i64>>>(array: &PrimitiveArray<T>, row: usize) -> Bound<'a> {
    if array.is_null(row) { Bound::Null } else { Bound::Integer(array.value(row).into()) }
}

/// A value of a decimal column with this many digits; `None` if the value has more.
pub(crate) fn decimal<'a>(value: i128, digits: u8) -> Option<Bound<'a>> {
    if !has_digits(value, digits) {
        return None;
    }
    match i64::try_from(value) {
        Ok(value) if digits <= INTEGER_DIGITS => Some(Bound::Integer(value)),
        _ => Some(Bound::Wide(wide_decimal_to_stored(value))),
    }
}
