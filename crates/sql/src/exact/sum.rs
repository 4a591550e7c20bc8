//! `sum`, which adds up whole numbers in 128 bits and fails if the result does not fit into their type. For other numbers it is
//! DataFusion's `sum`.
//!
//! Whole numbers are cast to decimals of 38 digits, which DataFusion's `sum` adds up. [`Narrowed`] casts the result back.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
};

use super::out_of_range;

/// The type in which whole numbers are added up. It holds the sum of more rows than any table has.
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

fn wide_field(name: &str) -> FieldRef {
    Arc::new(Field::new(name, WIDE, true))
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
        if !is_whole(arguments.return_field.data_type()) {
            return self.given.accumulator(arguments);
        }
        let data_type = arguments.return_field.data_type().clone();
        let arguments = AccumulatorArgs { return_field: wide_field(arguments.name), ..arguments };
        Ok(Box::new(Narrowed { sums: self.given.accumulator(arguments)?, data_type }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if !is_whole(arguments.return_type()) {
            return self.given.state_fields(arguments);
        }
        self.given.state_fields(StateFieldsArgs { return_field: wide_field(arguments.name), ..arguments })
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs<'_>) -> bool {
        self.given.groups_accumulator_supported(arguments)
    }

    fn create_groups_accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        if !is_whole(arguments.return_field.data_type()) {
            return self.given.create_groups_accumulator(arguments);
        }
        let data_type = arguments.return_field.data_type().clone();
        let arguments = AccumulatorArgs { return_field: wide_field(arguments.name), ..arguments };
        Ok(Box::new(Narrowed { sums: self.given.create_groups_accumulator(arguments)?, data_type }))
    }

    fn create_sliding_accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if !is_whole(arguments.return_field.data_type()) || arguments.is_distinct {
            return self.given.create_sliding_accumulator(arguments);
        }
        let data_type = arguments.return_field.data_type().clone();
        let arguments = AccumulatorArgs { return_field: wide_field(arguments.name), ..arguments };
        Ok(Box::new(Narrowed { sums: self.given.create_sliding_accumulator(arguments)?, data_type }))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// Sums of whole numbers, added up in [`WIDE`] and given in their own type.
#[derive(Debug)]
struct Narrowed<S> {
    sums: S,
    data_type: DataType,
}

impl<S> Narrowed<S> {
    /// Sums in their own type.
    fn narrow(&self, sums: &ArrayRef) -> Result<ArrayRef> {
        let narrow = cast(sums, &self.data_type)?;
        // A cast makes NULL of a number that does not fit.
        if narrow.null_count() > sums.null_count() { Err(out_of_range()) } else { Ok(narrow) }
    }
}

fn wide(values: &[ArrayRef]) -> Result<[ArrayRef; 1]> {
    Ok([cast(&values[0], &WIDE)?])
}

impl Accumulator for Narrowed<Box<dyn Accumulator>> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.sums.update_batch(&wide(values)?)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.sums.retract_batch(&wide(values)?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.sums.supports_retract_batch()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.sums.merge_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.sums.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = self.sums.evaluate()?.to_array()?;
        ScalarValue::try_from_array(&self.narrow(&sum)?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.sums.size()
    }
}

impl GroupsAccumulator for Narrowed<Box<dyn GroupsAccumulator>> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        n_groups: usize,
    ) -> Result<()> {
        self.sums.update_batch(&wide(values)?, groups, filter, n_groups)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], n_groups: usize) -> Result<()> {
        self.sums.merge_batch(values, groups, n_groups)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let sums = self.sums.evaluate(emit)?;
        self.narrow(&sums)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        self.sums.state(emit)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.sums.convert_to_state(&wide(values)?, filter)
    }

    fn size(&self) -> usize {
        self.sums.size()
    }
}
