//! Pairs of bounds as one column of their midpoints, for models that want a number per cell.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, Float64Array, PrimitiveArray, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, TimeUnit};
use kohort::model::{ColumnManifest, TableManifest};
use kohort::{Batches, Error, Report};

/// The same rows, with `age` in place of `age_lo` and `age_hi`. A cell that could be anything is null. Bounds of
/// other types, such as decimals that a CSV file spells with a comma, stay as they are.
pub(crate) fn midpoints(rows: &Batches, table: &TableManifest) -> Result<Batches, Error> {
    let failed = |error: ArrowError| Error::Fault(vec![Report::new(format!("midpoints can't be made: {error}"))]);
    let is_bound = |name: &str, role: &str| table.columns.get(name).is_some_and(|column| column.role == role);
    let schema = rows.schema();
    let mut plan: Vec<(Field, usize, Option<usize>)> = Vec::new();
    for (position, field) in schema.fields().iter().enumerate() {
        let base = |ending: &str| field.name().strip_suffix(ending).map(str::to_owned);
        let is_number = has_midpoint(field.data_type());
        let partner = |name: &str| schema.index_of(name).ok().filter(|_| is_number);
        if let Some(base) = base("_lo").filter(|_| is_bound(field.name(), ColumnManifest::LOWER_BOUND))
            && let Some(high) = partner(&format!("{base}_hi"))
        {
            plan.push((Field::new(base, midpoint_type(field.data_type()), true), position, Some(high)));
        } else if is_number && is_bound(field.name(), ColumnManifest::UPPER_BOUND) {
            // Leave the upper bound out: the midpoint, which replaces the lower bound, already contains it.
        } else {
            plan.push((field.as_ref().clone(), position, None));
        }
    }
    let fields: Vec<Field> = plan.iter().map(|(field, ..)| field.clone()).collect();
    let midpoint_schema = Arc::new(Schema::new(fields));
    let batch = |batch: &RecordBatch| {
        let column = |(field, low, high): &(Field, usize, Option<usize>)| match high {
            None => Ok(Arc::clone(batch.column(*low))),
            Some(high) => midpoint(batch.column(*low), batch.column(*high), field.data_type()),
        };
        let columns = plan.iter().map(column).collect::<Result<Vec<ArrayRef>, ArrowError>>()?;
        RecordBatch::try_new(Arc::clone(&midpoint_schema), columns)
    };
    let batches = rows.batches().iter().map(batch).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    Batches::new(Arc::clone(&midpoint_schema), batches)
        .map_err(|_| Error::Fault(vec![Report::new("midpoints of batches differ in their columns")]))
}

fn has_midpoint(data_type: &DataType) -> bool {
    data_type.is_integer()
        || matches!(data_type, DataType::Float32 | DataType::Float64 | DataType::Decimal128(..))
        || is_time(data_type)
}

fn is_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..))
}

fn midpoint_type(bounds: &DataType) -> DataType {
    if is_time(bounds) { bounds.clone() } else { DataType::Float64 }
}

/// The midpoint of two bounds. A time keeps its type, and anything else becomes a float.
fn midpoint(low: &ArrayRef, high: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    macro_rules! of {
        ($bound:ty, float) => {{
            let pairs = low.as_primitive::<$bound>().iter().zip(high.as_primitive::<$bound>());
            let number = |value: <$bound as ArrowPrimitiveType>::Native| value as f64;
            let middle: Float64Array =
                pairs.map(|(low, high)| Some(number(low?) + (number(high?) - number(low?)) / 2.0)).collect();
            Ok(Arc::new(middle) as ArrayRef)
        }};
        ($bound:ty, time) => {{
            let pairs = low.as_primitive::<$bound>().iter().zip(high.as_primitive::<$bound>());
            let middle: PrimitiveArray<$bound> = pairs.map(|(low, high)| Some(low? + (high? - low?) / 2)).collect();
            Ok(Arc::new(middle.with_data_type(to.clone())) as ArrayRef)
        }};
    }
    match low.data_type() {
        DataType::Int8 => of!(Int8Type, float),
        DataType::Int16 => of!(Int16Type, float),
        DataType::Int32 => of!(Int32Type, float),
        DataType::Int64 => of!(Int64Type, float),
        DataType::UInt8 => of!(UInt8Type, float),
        DataType::UInt16 => of!(UInt16Type, float),
        DataType::UInt32 => of!(UInt32Type, float),
        DataType::UInt64 => of!(UInt64Type, float),
        DataType::Float32 => of!(Float32Type, float),
        DataType::Float64 => of!(Float64Type, float),
        DataType::Decimal128(_, scale) => {
            let unit = 10f64.powi(i32::from(*scale));
            let pairs = low.as_primitive::<Decimal128Type>().iter().zip(high.as_primitive::<Decimal128Type>());
            let middle: Float64Array =
                pairs.map(|(low, high)| Some((low? as f64 + (high? as f64 - low? as f64) / 2.0) / unit)).collect();
            Ok(Arc::new(middle))
        }
        DataType::Date32 => of!(Date32Type, time),
        DataType::Date64 => of!(Date64Type, time),
        DataType::Timestamp(TimeUnit::Second, _) => of!(TimestampSecondType, time),
        DataType::Timestamp(TimeUnit::Millisecond, _) => of!(TimestampMillisecondType, time),
        DataType::Timestamp(TimeUnit::Microsecond, _) => of!(TimestampMicrosecondType, time),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => of!(TimestampNanosecondType, time),
        other => Err(ArrowError::NotYetImplemented(format!("midpoints of {other}"))),
    }
}
