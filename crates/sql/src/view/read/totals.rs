//! What a view with `ANSWERS AGGREGATES` shows: labels, and the totals of classes in place of everybody's own cells.
//!
//! # Guarantee
//! All rows of a class look alike, except that a total is divided among them so that sums over whole classes are exact.
//! Therefore every answer of whatever form is computed from class labels, class sizes and class totals alone. Each class has
//! as many persons as each member asks for, and nothing smaller can be told from two answers, because every group of every
//! answer consists of whole classes.
//!
//! A class has a total of a column only if every row of it shows a number there. Otherwise the total would belong to fewer
//! persons than the class has, and the column is NULL in the whole class. Numbers that are not finite count as missing: one of
//! them would show through every sum.
//! # Cost
//! One sort of the rows by class, one pass per column.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Float64Array, RecordBatch, RecordBatchOptions, new_null_array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Float64Type, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::error::Result;
use kohort_io::{VerifiedRows, write_rows};
use kohort_model::{ALONE, Role};

use super::exec::external;
use crate::view::{Definition, ViewError};

/// The most digits of a decimal number in 128 bits. All whole numbers of 64 bits fit.
const MOST_DIGITS: u8 = 38;

/// Whether values of a type are added up.
pub(crate) fn has_totals(data_type: &DataType) -> bool {
    data_type.is_integer() || data_type.is_floating() || matches!(data_type, DataType::Decimal128(..))
}

/// The rows of a verified block, with the columns at these positions, as a view with `ANSWERS AGGREGATES` shows them.
///
/// # Errors
/// If somebody is in no class. No definition with `ANSWERS AGGREGATES` allows that.
pub(super) fn totals_of_classes(
    verified: &VerifiedRows,
    definition: &Definition,
    positions: &[usize],
    schema: SchemaRef,
) -> Result<RecordBatch> {
    let block = verified.get().block();
    if block.classes.contains(&ALONE) {
        return Err(external(ViewError::fault(&definition.name)));
    }
    let n_rows = block.rows.len();
    let classes = RowsOfClasses::of(&block.classes);
    let shown = write_rows(verified, 0..n_rows, positions, Arc::clone(&schema))?;
    let column = |(&position, own): (&usize, &ArrayRef)| match definition.columns[position].role {
        Role::Quasi => Ok(Arc::clone(own)),
        Role::Sensitive | Role::Plain if !definition.is_labelled(position) => totals(own, &classes),
        _ => Ok(new_null_array(own.data_type(), n_rows)),
    };
    let columns: Result<Vec<ArrayRef>, ArrowError> = positions.iter().zip(shown.columns()).map(column).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(n_rows));
    Ok(RecordBatch::try_new_with_options(schema, columns?, &options)?)
}

/// The rows of each class.
struct RowsOfClasses {
    /// All rows, sorted by class.
    rows: Vec<u32>,
    /// For each class, its part of the rows.
    parts: Vec<Range<usize>>,
}

impl RowsOfClasses {
    fn of(class_of_row: &[u32]) -> RowsOfClasses {
        let mut rows: Vec<u32> = (0..class_of_row.len() as u32).collect();
        rows.sort_by_key(|&row| class_of_row[row as usize]);
        let mut start = 0;
        let of_class = rows.chunk_by(|&a, &b| class_of_row[a as usize] == class_of_row[b as usize]);
        let parts = of_class.map(|part| {
            let range = start..start + part.len();
            start = range.end;
            range
        });
        RowsOfClasses { parts: parts.collect(), rows }
    }

    /// Replaces the values of each class by a division of their total, or by nothing.
    fn divided<T: Copy>(
        &self,
        value: impl Fn(usize) -> Option<T>,
        divide: impl Fn(&mut [T]) -> Option<()>,
    ) -> Vec<Option<T>> {
        let mut divided = vec![None; self.rows.len()];
        for part in &self.parts {
            let rows = &self.rows[part.clone()];
            let values: Option<Vec<T>> = rows.iter().map(|&row| value(row as usize)).collect();
            let Some(mut parts) = values else { continue };
            if divide(&mut parts).is_some() {
                rows.iter().zip(parts).for_each(|(&row, part)| divided[row as usize] = Some(part));
            }
        }
        divided
    }
}

/// A column with the totals of classes, divided among their rows.
fn totals(own: &ArrayRef, classes: &RowsOfClasses) -> Result<ArrayRef, ArrowError> {
    let data_type = own.data_type();
    let exact = match data_type {
        DataType::Decimal128(..) => Some(data_type.clone()),
        _ if data_type.is_integer() => Some(DataType::Decimal128(MOST_DIGITS, 0)),
        _ => None,
    };
    let divided: ArrayRef = match exact {
        Some(exact) => {
            let values = cast(own, &exact)?;
            let values = values.as_primitive::<Decimal128Type>();
            let value = |row: usize| values.is_valid(row).then(|| values.value(row));
            let divided: Decimal128Array = classes.divided(value, divide_exactly).into_iter().collect();
            Arc::new(divided.with_data_type(exact))
        }
        None if data_type.is_floating() => {
            let values = cast(own, &DataType::Float64)?;
            let values = values.as_primitive::<Float64Type>();
            let value = |row: usize| values.is_valid(row).then(|| values.value(row));
            Arc::new(classes.divided(value, divide).into_iter().collect::<Float64Array>())
        }
        None => return Ok(new_null_array(data_type, own.len())),
    };
    cast(&divided, data_type)
}

/// Replaces numbers by parts as equal as whole numbers can be, with the same sum. Each lies between the smallest and the largest
/// number.
fn divide_exactly(values: &mut [i128]) -> Option<()> {
    let total = values.iter().try_fold(0i128, |total, value| total.checked_add(*value))?;
    let n_values = values.len() as i128;
    let (part, rest) = (total.div_euclid(n_values), total.rem_euclid(n_values));
    (0..).zip(values).for_each(|(place, value)| *value = part + i128::from(place < rest));
    Some(())
}

/// Replaces numbers by equal parts, but for the last one, which takes what rounding lost. The numbers are added in the order of
/// their size, so the parts do not tell in which order they came.
fn divide(values: &mut [f64]) -> Option<()> {
    values.sort_unstable_by(f64::total_cmp);
    let total: f64 = values.iter().sum();
    if values.iter().any(|value| !value.is_finite()) || !total.is_finite() {
        return None;
    }
    let n_others = (values.len() - 1) as f64;
    let part = total / values.len() as f64;
    values.fill(part);
    *values.last_mut()? = (-n_others).mul_add(part, total);
    Some(())
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int8Array, UInt64Array};
    use datafusion::arrow::datatypes::{Int8Type, UInt64Type};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_have_the_sum_of_their_class_and_depend_on_nothing_else(
            rows in vec((0u32..4, any::<i8>()), 1..40), other in any::<prop::sample::Index>(),
        ) {
            let classes: Vec<u32> = rows.iter().map(|(class, _)| *class).collect();
            let values: ArrayRef = Arc::new(rows.iter().map(|(_, value)| *value).collect::<Int8Array>());
            let shown = totals(&values, &RowsOfClasses::of(&classes)).unwrap();
            let shown = shown.as_primitive::<Int8Type>();
            let sum = |class: u32, value: &dyn Fn(usize) -> i8| -> i64 {
                (0..rows.len()).filter(|&row| classes[row] == class).map(|row| i64::from(value(row))).sum()
            };
            for class in 0..4 {
                prop_assert_eq!(sum(class, &|row| shown.value(row)), sum(class, &|row| rows[row].1));
            }
            // One of two rows of a class gives 1 to the other: nothing that is shown changes.
            let (one, mut moved) = (other.index(rows.len()), rows.clone());
            if let Some(another) = (0..rows.len()).find(|&row| row != one && classes[row] == classes[one])
                && let (Some(less), Some(more)) = (rows[one].1.checked_sub(1), rows[another].1.checked_add(1))
            {
                (moved[one].1, moved[another].1) = (less, more);
                let values: ArrayRef = Arc::new(moved.iter().map(|(_, value)| *value).collect::<Int8Array>());
                let moved = totals(&values, &RowsOfClasses::of(&classes)).unwrap();
                prop_assert_eq!(moved.as_primitive::<Int8Type>(), shown);
            }
        }

        #[test]
        fn sums_of_fractions_differ_by_rounding_alone(values in vec(-1e6f64..1e6, 1..30)) {
            let mut parts = values.clone();
            divide(&mut parts).unwrap();
            let (sum, expected): (f64, f64) = (parts.iter().sum(), values.iter().sum());
            prop_assert!((sum - expected).abs() <= 1e-6, "{sum} and {expected}");
        }
    }

    #[test]
    fn a_class_with_a_missing_or_endless_number_has_no_total() {
        let classes = RowsOfClasses::of(&[7, 3, 7, 3, 5]);
        let values: ArrayRef =
            Arc::new(UInt64Array::from(vec![Some(u64::MAX), Some(1), Some(u64::MAX), None, Some(2)]));
        let shown = totals(&values, &classes).unwrap();
        let shown: Vec<Option<u64>> = shown.as_primitive::<UInt64Type>().iter().collect();
        assert_eq!(shown, [Some(u64::MAX), None, Some(u64::MAX), None, Some(2)]);
        let values: ArrayRef = Arc::new(Float64Array::from(vec![1.0, f64::NAN, 2.0, 4.0, f64::INFINITY]));
        let shown = totals(&values, &classes).unwrap();
        let shown: Vec<Option<f64>> = shown.as_primitive::<Float64Type>().iter().collect();
        assert_eq!(shown, [Some(1.5), None, Some(1.5), None, None]);
    }
}
