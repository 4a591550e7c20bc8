//! [`ColumnBuilder`]: collects the values of one stored column row by row, and makes an Arrow array of them.
//!
//! # Cost
//!
//! Rows are appended to plain vectors; narrowing, the order of floats, and the check of UTF-8 are done once per batch.

use std::sync::Arc;

use arrow_array::types::{
    Date32Type, Decimal128Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt8Type,
    UInt16Type, UInt32Type,
};
use arrow_array::{ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, Float64Array, PrimitiveArray, StringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use rusqlite::types::ValueRef;

use super::{StoredType, float_from_stored, has_digits, wide_decimal_from_stored};

/// A stored value does not fit the type of its column.
pub(crate) struct Malformed;

/// Values of one column.
pub(crate) struct ColumnBuilder {
    stored: StoredType,
    nulls: NullBufferBuilder,
    values: Values,
}

enum Values {
    Integers(Vec<i64>),
    /// The bytes of all values one after the other, and the end of each.
    Bytes {
        bytes: Vec<u8>,
        ends: Vec<i32>,
    },
}

impl ColumnBuilder {
    /// A column with capacity for this many rows.
    pub(crate) fn new(stored: StoredType, n_rows: usize) -> Self {
        let values = match stored.sql_type() {
            "INTEGER" => Values::Integers(Vec::with_capacity(n_rows)),
            _ => {
                let mut ends = Vec::with_capacity(n_rows + 1);
                ends.push(0);
                Values::Bytes { bytes: Vec::with_capacity(n_rows * 8), ends }
            }
        };
        Self { stored, nulls: NullBufferBuilder::new(n_rows), values }
    }

    /// Appends a value, and returns how many bytes of text or blob it has.
    #[inline]
    pub(crate) fn push(&mut self, value: ValueRef<'_>) -> Result<usize, Malformed> {
        match (&mut self.values, value) {
            (Values::Integers(integers), ValueRef::Integer(integer)) => {
                integers.push(integer);
                self.nulls.append_non_null();
                Ok(0)
            }
            (Values::Bytes { bytes, ends }, ValueRef::Text(found) | ValueRef::Blob(found)) => {
                bytes.extend_from_slice(found);
                ends.push(i32::try_from(bytes.len()).map_err(|_| Malformed)?);
                self.nulls.append_non_null();
                Ok(found.len())
            }
            (Values::Integers(integers), ValueRef::Null) => {
                integers.push(0);
                self.nulls.append_null();
                Ok(0)
            }
            (Values::Bytes { bytes, ends }, ValueRef::Null) => {
                ends.push(i32::try_from(bytes.len()).map_err(|_| Malformed)?);
                self.nulls.append_null();
                Ok(0)
            }
            _ => Err(Malformed),
        }
    }

    /// The column as an array.
    pub(crate) fn finish(mut self) -> Result<ArrayRef, Malformed> {
        let nulls = self.nulls.finish();
        match self.values {
            Values::Integers(integers) => integer_array(&self.stored, integers, nulls),
            Values::Bytes { bytes, ends } => bytes_array(&self.stored, bytes, ends, nulls),
        }
    }
}

fn integer_array(stored: &StoredType, integers: Vec<i64>, nulls: Option<NullBuffer>) -> Result<ArrayRef, Malformed> {
    Ok(match stored {
        StoredType::Boolean => {
            if integers.iter().any(|integer| !matches!(integer, 0 | 1)) {
                return Err(Malformed);
            }
            let bits = BooleanBuffer::collect_bool(integers.len(), |row| integers[row] == 1);
            Arc::new(BooleanArray::new(bits, nulls))
        }
        StoredType::Int8 => Arc::new(narrowed::<Int8Type>(&integers, nulls)?),
        StoredType::Int16 => Arc::new(narrowed::<Int16Type>(&integers, nulls)?),
        StoredType::Int32 => Arc::new(narrowed::<Int32Type>(&integers, nulls)?),
        StoredType::Int64 => Arc::new(PrimitiveArray::<Int64Type>::new(integers.into(), nulls)),
        StoredType::UInt8 => Arc::new(narrowed::<UInt8Type>(&integers, nulls)?),
        StoredType::UInt16 => Arc::new(narrowed::<UInt16Type>(&integers, nulls)?),
        StoredType::UInt32 => Arc::new(narrowed::<UInt32Type>(&integers, nulls)?),
        StoredType::Float64 => {
            let floats: Vec<f64> = integers.into_iter().map(float_from_stored).collect();
            Arc::new(Float64Array::new(floats.into(), nulls))
        }
        StoredType::Date32 => Arc::new(narrowed::<Date32Type>(&integers, nulls)?),
        StoredType::Timestamp(_) => Arc::new(
            PrimitiveArray::<TimestampMicrosecondType>::new(integers.into(), nulls).with_data_type(stored.data_type()),
        ),
        StoredType::Decimal { digits, .. } => {
            let decimals: Vec<i128> = integers.into_iter().map(i128::from).collect();
            decimal_array(stored, decimals, *digits, nulls)?
        }
        StoredType::Utf8 | StoredType::Binary => return Err(Malformed),
    })
}

fn narrowed<T: ArrowPrimitiveType<Native: TryFrom<i64>>>(
    integers: &[i64],
    nulls: Option<NullBuffer>,
) -> Result<PrimitiveArray<T>, Malformed> {
    let values: Result<Vec<T::Native>, _> = integers.iter().map(|integer| T::Native::try_from(*integer)).collect();
    let values: ScalarBuffer<T::Native> = values.map_err(|_| Malformed)?.into();
    Ok(PrimitiveArray::new(values, nulls))
}

fn bytes_array(
    stored: &StoredType,
    bytes: Vec<u8>,
    ends: Vec<i32>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, Malformed> {
    if let StoredType::Decimal { digits, .. } = stored {
        let mut decimals = Vec::with_capacity(ends.len());
        for (row, window) in ends.windows(2).enumerate() {
            let is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
            let found = &bytes[window[0] as usize..window[1] as usize];
            decimals.push(match <[u8; 16]>::try_from(found) {
                Ok(found) => wide_decimal_from_stored(found),
                Err(_) if is_null => 0,
                Err(_) => return Err(Malformed),
            });
        }
        return decimal_array(stored, decimals, *digits, nulls);
    }
    let offsets = OffsetBuffer::new(ends.into());
    let bytes = Buffer::from_vec(bytes);
    Ok(match stored {
        StoredType::Utf8 => Arc::new(StringArray::try_new(offsets, bytes, nulls).map_err(|_| Malformed)?),
        _ => Arc::new(BinaryArray::try_new(offsets, bytes, nulls).map_err(|_| Malformed)?),
    })
}

fn decimal_array(
    stored: &StoredType,
    decimals: Vec<i128>,
    digits: u8,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, Malformed> {
    if decimals.iter().any(|decimal| !has_digits(*decimal, digits)) {
        return Err(Malformed);
    }
    Ok(Arc::new(PrimitiveArray::<Decimal128Type>::new(decimals.into(), nulls).with_data_type(stored.data_type())))
}
