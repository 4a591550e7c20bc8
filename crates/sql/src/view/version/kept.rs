//! [`KeptRows`]: the rows that a version was verified for, packed in memory, so classes are read without their tables.
//!
//! A column with few distinct values takes a byte or two per row, other columns are kept unchanged: a million persons with
//! four such columns take about 13 MB. The rows of a class are found by their numbers in the directory. From a Parquet file,
//! reading a hundred persons scattered over a million rows would cost nearly as much as reading all.
//!
//! Kept rows become outdated with the version, and the version's fingerprint tells when. So rows are kept only if the
//! fingerprint notices every change of the tables, and if the owner grants the memory (`kohort.keep_mb`). Otherwise, and
//! with the plan "anonymize first", the tables are read.
//!
//! # Cost
//! One pass over the rows when the version is made. Reading some rows costs no more than those rows.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{cast, take_record_batch};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::error::ArrowError;
use rayon::prelude::*;

use crate::view::Definition;

/// The rows of a view's query.
pub(in crate::view) struct KeptRows(RecordBatch);

impl KeptRows {
    /// Packs rows; `None` if they take more bytes than allowed.
    pub(in crate::view) fn pack(rows: &RecordBatch, most_bytes: usize) -> Option<KeptRows> {
        let packed: Vec<ArrayRef> =
            if most_bytes == 0 { return None } else { rows.columns().par_iter().map(pack).collect() };
        let n_bytes: usize = packed.iter().map(Array::get_array_memory_size).sum();
        let rows = with_types_as_they_are(rows, packed).ok()?;
        (n_bytes <= most_bytes).then_some(KeptRows(rows))
    }

    /// All rows, or the rows with these numbers. Columns that leave as labels stay packed.
    pub(in crate::view) fn rows(
        &self,
        wanted: Option<Vec<u32>>,
        definition: &Definition,
    ) -> Result<RecordBatch, ArrowError> {
        let rows = match wanted {
            None => self.0.clone(),
            Some(wanted) => take_record_batch(&self.0, &UInt32Array::from(wanted))?,
        };
        let unpack = |(position, column): (usize, &ArrayRef)| match definition.is_labelled(position) {
            true => Ok(Arc::clone(column)),
            false => cast(column, &definition.columns[position].data_type),
        };
        let columns = rows.columns().iter().enumerate().map(unpack).collect::<Result<Vec<ArrayRef>, ArrowError>>()?;
        with_types_as_they_are(&rows, columns)
    }
}

/// A column as numbers of its distinct values, if that makes it smaller.
pub(in crate::view) fn pack(column: &ArrayRef) -> ArrayRef {
    let own = column.data_type();
    if let DataType::Utf8View = own {
        // Texts that were read from a file keep whole pages of it in memory.
        return smaller(&(Arc::new(column.as_string_view().gc()) as ArrayRef));
    }
    if own.is_nested() || matches!(own, DataType::Dictionary(..)) { Arc::clone(column) } else { smaller(column) }
}

fn smaller(column: &ArrayRef) -> ArrayRef {
    let numbered = |key: DataType| {
        let numbered = DataType::Dictionary(Box::new(key), Box::new(column.data_type().clone()));
        let mut packed = cast(column, &numbered).ok()?;
        // The cast reserved room for as many values as there are rows.
        packed.shrink_to_fit();
        let back = packed.as_any_dictionary_opt()?.values().data_type() == column.data_type();
        (back && packed.get_array_memory_size() < column.get_array_memory_size()).then_some(packed)
    };
    // The cast fails if there are more distinct values than numbers of this type.
    let packed = [DataType::UInt8, DataType::UInt16, DataType::UInt32].into_iter().find_map(numbered);
    packed.unwrap_or_else(|| Arc::clone(column))
}

fn with_types_as_they_are(rows: &RecordBatch, columns: Vec<ArrayRef>) -> Result<RecordBatch, ArrowError> {
    let field =
        |(field, column): (&Arc<Field>, &ArrayRef)| field.as_ref().clone().with_data_type(column.data_type().clone());
    let fields: Vec<Field> = rows.schema_ref().fields().iter().zip(&columns).map(field).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int64Array, StringViewArray};

    use super::*;

    fn rows() -> RecordBatch {
        let cities = ["a city with a name longer than a view", "another of those with long names"];
        let city: StringViewArray = (0..3000).map(|row| (row % 7 != 0).then_some(cities[row % 2])).collect();
        let number: Int64Array = (0..3000).map(|row| Some(row % 300)).collect();
        let own: Int64Array = (0..3000).map(Some).collect();
        let columns: [(&str, ArrayRef); 3] =
            [("city", Arc::new(city)), ("number", Arc::new(number)), ("own", Arc::new(own))];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
    }

    #[test]
    fn columns_of_few_values_take_a_byte_or_two_per_row() {
        let kept = KeptRows::pack(&rows(), usize::MAX).unwrap();
        let types: Vec<DataType> = kept.0.columns().iter().map(|column| column.data_type().clone()).collect();
        let numbered = |key: DataType, value: DataType| DataType::Dictionary(Box::new(key), Box::new(value));
        let expected = [
            numbered(DataType::UInt8, DataType::Utf8View),
            numbered(DataType::UInt16, DataType::Int64),
            DataType::Int64,
        ];
        assert_eq!(types, expected);
    }

    #[test]
    fn rows_that_take_more_than_is_granted_are_not_kept() {
        assert!(KeptRows::pack(&rows(), 1000).is_none());
        assert!(KeptRows::pack(&rows(), 0).is_none());
    }
}
