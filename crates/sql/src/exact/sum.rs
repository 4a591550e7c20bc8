//! `sum`, which adds whole numbers up in 128 bits and fails where their type can't hold what comes out. Of other numbers it is
//! DataFusion's.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Int64Array, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Int64Type, UInt64Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
};

use super::out_of_range;

/// The type in which sums are on their way.
const WIDE: DataType = DataType::Decimal128(38, 0);

/// `sum`.
pub(crate) fn exact_sum() -> AggregateUDF {
    AggregateUDF::from(ExactSum { given: sum_udaf() })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ExactSum {
    given: Arc<AggregateUDF>,
}

fn is_whole(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Int64 | DataType::UInt64)
}

impl AggregateUDFImpl for ExactSum {
    fn name(&self) -> &str {
        "sum"
    }

    fn signature(&self) -> &Signature {
        self.given.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.given.return_type(types)
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let data_type = arguments.return_field.data_type().clone();
        match (is_whole(&data_type), arguments.is_distinct) {
            (true, false) => Ok(Box::new(WholeSum { data_type, sum: 0, n_values: 0 })),
            (true, true) => Ok(Box::new(DistinctSum { data_type, values: self.given.accumulator(arguments)? })),
            (false, _) => self.given.accumulator(arguments),
        }
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        match is_whole(arguments.return_type()) && !arguments.is_distinct {
            true => Ok(vec![Arc::new(Field::new(format_state_name(arguments.name, "sum"), WIDE, true))]),
            false => self.given.state_fields(arguments),
        }
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs<'_>) -> bool {
        self.given.groups_accumulator_supported(arguments)
    }

    fn create_groups_accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        let data_type = arguments.return_field.data_type().clone();
        match is_whole(&data_type) {
            true => Ok(Box::new(GroupSums { data_type, sums: Vec::new() })),
            false => self.given.create_groups_accumulator(arguments),
        }
    }

    fn create_sliding_accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match is_whole(arguments.return_field.data_type()) && !arguments.is_distinct {
            true => self.accumulator(arguments),
            false => self.given.create_sliding_accumulator(arguments),
        }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// Whole numbers of an array.
fn wide(values: &ArrayRef) -> Result<Vec<Option<i128>>> {
    Ok(match values.data_type() {
        DataType::Int64 => values.as_primitive::<Int64Type>().iter().map(|value| value.map(i128::from)).collect(),
        DataType::UInt64 => values.as_primitive::<UInt64Type>().iter().map(|value| value.map(i128::from)).collect(),
        DataType::Decimal128(..) => values.as_primitive::<Decimal128Type>().iter().collect(),
        other => return internal_err!("sums of whole numbers are not made of {other}"),
    })
}

/// A sum as it leaves.
fn narrow(sum: Option<i128>, data_type: &DataType) -> Result<ScalarValue> {
    let Some(sum) = sum else { return ScalarValue::try_from(data_type) };
    match data_type {
        DataType::UInt64 => u64::try_from(sum).map(ScalarValue::from).map_err(|_| out_of_range()),
        _ => i64::try_from(sum).map(ScalarValue::from).map_err(|_| out_of_range()),
    }
}

/// One sum. Rows may leave it again, as they do a window that moves on.
#[derive(Debug)]
struct WholeSum {
    data_type: DataType,
    sum: i128,
    n_values: u64,
}

impl WholeSum {
    fn current(&self) -> Option<i128> {
        (self.n_values > 0).then_some(self.sum)
    }
}

impl Accumulator for WholeSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in wide(&values[0])?.into_iter().flatten() {
            self.sum = self.sum.checked_add(value).ok_or_else(out_of_range)?;
            self.n_values += 1;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in wide(&values[0])?.into_iter().flatten() {
            self.sum = self.sum.checked_sub(value).ok_or_else(out_of_range)?;
            self.n_values -= 1;
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Decimal128(self.current(), 38, 0)])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        narrow(self.current(), &self.data_type)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// A sum of values that count once each. DataFusion's collects them.
#[derive(Debug)]
struct DistinctSum {
    data_type: DataType,
    values: Box<dyn Accumulator>,
}

impl Accumulator for DistinctSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.update_batch(values)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.values.merge_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.values.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let state = self.values.state()?;
        let [ScalarValue::List(values)] = state.as_slice() else { return internal_err!("values are in a list") };
        let mut sum = WholeSum { data_type: self.data_type.clone(), sum: 0, n_values: 0 };
        sum.update_batch(&[Arc::clone(values.values())])?;
        sum.evaluate()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.size()
    }
}

/// A sum per group, `None` of a group without values.
struct GroupSums {
    data_type: DataType,
    sums: Vec<Option<i128>>,
}

impl GroupSums {
    fn add(
        &mut self,
        values: &ArrayRef,
        groups: &[usize],
        filter: Option<&BooleanArray>,
        n_groups: usize,
    ) -> Result<()> {
        self.sums.resize(n_groups, None);
        for (row, (value, &group)) in wide(values)?.into_iter().zip(groups).enumerate() {
            let counts = filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
            if let (Some(value), true) = (value, counts) {
                let sum = self.sums[group].unwrap_or(0).checked_add(value).ok_or_else(out_of_range)?;
                self.sums[group] = Some(sum);
            }
        }
        Ok(())
    }
}

impl GroupsAccumulator for GroupSums {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        n_groups: usize,
    ) -> Result<()> {
        self.add(&values[0], groups, filter, n_groups)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], n_groups: usize) -> Result<()> {
        self.add(&values[0], groups, None, n_groups)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let sums = emit.take_needed(&mut self.sums).into_iter();
        Ok(match self.data_type {
            DataType::UInt64 => {
                let sums = sums.map(|sum| sum.map(u64::try_from).transpose().map_err(|_| out_of_range()));
                Arc::new(sums.collect::<Result<UInt64Array>>()?)
            }
            _ => {
                let sums = sums.map(|sum| sum.map(i64::try_from).transpose().map_err(|_| out_of_range()));
                Arc::new(sums.collect::<Result<Int64Array>>()?)
            }
        })
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let sums: Decimal128Array = emit.take_needed(&mut self.sums).into_iter().collect();
        Ok(vec![Arc::new(sums.with_precision_and_scale(38, 0)?)])
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let counts = |row: usize| filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        let sums = wide(&values[0])?.into_iter().enumerate();
        let sums: Decimal128Array = sums.map(|(row, value)| value.filter(|_| counts(row))).collect();
        Ok(vec![Arc::new(sums.with_precision_and_scale(38, 0)?)])
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<Option<i128>>()
    }
}
