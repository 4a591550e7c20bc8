//! [`CouldBe`] and [`CouldMatch`]: conditions on labels, as functions a plan can hold.
//!
//! The condition and the meaning are inside the function, and only the label is an argument. So no rule that rearranges
//! plans can mistake a literal or a cast for something else, and a scan can ask a function about the labels it knows.
//! The result is never NULL: a label could satisfy the condition, or could not.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, exec_err, internal_err};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use kohort_model::{Notation, Value, ValueType};

use super::possible::Values;
use super::{Comparison, Condition, Meaning, MeaningError, Possible};

/// The methods of functions whose result is true or false, never NULL, and that have a field `signature`.
macro_rules! methods_of_truth {
    () => {
        fn signature(&self) -> &Signature {
            &self.signature
        }

        fn return_type(&self, _: &[DataType]) -> Result<DataType> {
            Ok(DataType::Boolean)
        }

        fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
            Ok(Arc::new(Field::new(self.name(), DataType::Boolean, false)))
        }
    };
}

/// Whether the value behind a label could satisfy a condition. The argument is the label.
#[derive(Debug)]
pub struct CouldBe {
    meaning: Arc<Meaning>,
    condition: Condition,
    name: String,
    signature: Signature,
    /// For each node of the hierarchy, whether its label could; computed at first use.
    truths: OnceLock<Vec<bool>>,
}

impl CouldBe {
    /// The function for labels of this meaning.
    pub fn new(meaning: Arc<Meaning>, condition: Condition) -> CouldBe {
        let name = condition.to_string();
        CouldBe {
            meaning,
            condition,
            name,
            signature: Signature::any(1, Volatility::Immutable),
            truths: OnceLock::new(),
        }
    }

    /// The function that an expression calls, and the expression of its label; `None` for any other expression.
    pub fn in_expression(expression: &Expr) -> Option<(&CouldBe, &Expr)> {
        let Expr::ScalarFunction(call) = expression else { return None };
        Some((call.func.inner().downcast_ref::<CouldBe>()?, call.args.first()?))
    }

    /// The meaning of the labels.
    pub fn meaning(&self) -> &Arc<Meaning> {
        &self.meaning
    }

    /// The condition.
    pub fn condition(&self) -> &Condition {
        &self.condition
    }

    /// Whether a label could satisfy the condition; `None` is a cell that is NULL.
    pub fn matches(&self, label: Option<&str>) -> Result<bool, MeaningError> {
        let Some(label) = label else { return Ok(self.condition == Condition::Null) };
        let possible = self.meaning.possible(label)?;
        Ok(match (&self.condition, possible.values) {
            (Condition::Null, _) => possible.null,
            (condition, Values::Leaves { tree, node }) => match condition.values() {
                Some(values) => values.iter().any(|value| tree.holds(node, &value.value())),
                None => self.truths.get_or_init(|| tree.per_node(|leaf| condition.holds(leaf)))[node as usize],
            },
            _ => possible.could(&self.condition),
        })
    }
}

impl PartialEq for CouldBe {
    fn eq(&self, other: &Self) -> bool {
        self.condition == other.condition && self.meaning == other.meaning
    }
}

impl Eq for CouldBe {}

impl Hash for CouldBe {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.meaning, &self.condition).hash(state);
    }
}

impl ScalarUDFImpl for CouldBe {
    fn name(&self) -> &str {
        &self.name
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        let [label] = args else { return internal_err!("could be takes one label") };
        Ok(format!("{label} {}", self.condition))
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let [label] = args else { return internal_err!("could be takes one label") };
        Ok(format!("{} {}", label.schema_name(), self.condition))
    }

    methods_of_truth!();

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [label] = args.args.as_slice() else { return internal_err!("could be takes one label") };
        let labels = Texts::of(label)?;
        let mut known: HashMap<&str, bool> = HashMap::new();
        let mut truths = Vec::with_capacity(args.number_rows);
        for row in 0..args.number_rows {
            truths.push(match labels.get(row) {
                None => self.matches(None).map_err(external)?,
                Some(text) => match known.get(text) {
                    Some(&truth) => truth,
                    None => {
                        let truth = self.matches(Some(text)).map_err(external)?;
                        known.insert(text, truth);
                        truth
                    }
                },
            });
        }
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::from(truths))))
    }
}

/// One side of a [`CouldMatch`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Labels.
    Protected(Arc<Meaning>),
    /// Plain values, read as this type.
    Raw(ValueType),
}

impl Side {
    /// What a cell can stand for; `None` if it is not of the type.
    pub(super) fn possible<'a>(&'a self, text: &'a str) -> Result<Option<Possible<'a>>, MeaningError> {
        match self {
            Side::Protected(meaning) => meaning.possible(text).map(Some),
            Side::Raw(value_type) => Ok(Value::parse(text, *value_type, &Notation::default()).map(Possible::known)),
        }
    }
}

/// Whether a comparison could be true of the values behind two cells, at least one of which is a label.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct CouldMatch {
    left: Side,
    comparison: Comparison,
    right: Side,
    name: String,
    signature: Signature,
}

impl CouldMatch {
    /// The function for these two kinds of cells.
    pub fn new(left: Side, comparison: Comparison, right: Side) -> CouldMatch {
        let name = match comparison {
            Comparison::Equal => "AVLIKE".to_owned(),
            other => format!("could be {other}"),
        };
        CouldMatch { left, comparison, right, name, signature: Signature::any(2, Volatility::Immutable) }
    }

    /// Whether it asks if two cells could be equal.
    pub fn is_equality(&self) -> bool {
        self.comparison == Comparison::Equal
    }

    /// The comparison.
    pub fn comparison(&self) -> Comparison {
        self.comparison
    }

    /// The kinds of the two arguments.
    pub fn sides(&self) -> (&Side, &Side) {
        (&self.left, &self.right)
    }

    /// Whether the comparison could be true of two cells; `None` is NULL and matches nothing.
    pub fn matches(&self, left: Option<&str>, right: Option<&str>) -> Result<bool, MeaningError> {
        let (Some(left), Some(right)) = (left, right) else { return Ok(false) };
        let (left, right) = (self.left.possible(left)?, self.right.possible(right)?);
        Ok(left.zip(right).is_some_and(|(left, right)| left.could_compare(self.comparison, &right)))
    }
}

impl ScalarUDFImpl for CouldMatch {
    fn name(&self) -> &str {
        &self.name
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        let [left, right] = args else { return internal_err!("could match takes two cells") };
        Ok(format!("{left} {} {right}", self.name))
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let [left, right] = args else { return internal_err!("could match takes two cells") };
        Ok(format!("{} {} {}", left.schema_name(), self.name, right.schema_name()))
    }

    methods_of_truth!();

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else { return internal_err!("could match takes two cells") };
        let (lefts, rights) = (Texts::of(left)?, Texts::of(right)?);
        let mut known_lefts = HashMap::new();
        let mut known_rights = HashMap::new();
        let mut truths = Vec::with_capacity(args.number_rows);
        for row in 0..args.number_rows {
            let (Some(left), Some(right)) = (lefts.get(row), rights.get(row)) else {
                truths.push(false);
                continue;
            };
            let left = read(&self.left, left, &mut known_lefts)?;
            let right = read(&self.right, right, &mut known_rights)?;
            truths.push(left.zip(right).is_some_and(|(left, right)| left.could_compare(self.comparison, &right)));
        }
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::from(truths))))
    }
}

fn read<'a>(
    side: &'a Side,
    text: &'a str,
    known: &mut HashMap<&'a str, Option<Possible<'a>>>,
) -> Result<Option<Possible<'a>>> {
    if let Some(possible) = known.get(text) {
        return Ok(*possible);
    }
    let possible = side.possible(text).map_err(external)?;
    known.insert(text, possible);
    Ok(possible)
}

/// One text per row; a scalar is the same text in all rows.
struct Texts {
    array: StringArray,
    is_scalar: bool,
}

impl Texts {
    fn of(cells: &ColumnarValue) -> Result<Texts> {
        let (array, is_scalar): (ArrayRef, bool) = match cells {
            ColumnarValue::Array(array) => (Arc::clone(array), false),
            ColumnarValue::Scalar(scalar) => (scalar.to_array()?, true),
        };
        let array = cast(&array, &DataType::Utf8)?;
        Ok(Texts { array: array.as_string::<i32>().clone(), is_scalar })
    }

    fn get(&self, row: usize) -> Option<&str> {
        let row = if self.is_scalar { 0 } else { row };
        self.array.is_valid(row).then(|| self.array.value(row))
    }
}

fn external(problem: MeaningError) -> DataFusionError {
    DataFusionError::External(Box::new(problem))
}

const AVLIKE: &str = "avlike";

/// `avlike(column, literal)`, the paper's operator as a function. It means the same as `column = literal`.
pub fn avlike() -> ScalarUDF {
    ScalarUDF::from(AvLike { signature: Signature::any(2, Volatility::Immutable) })
}

/// Whether a function is [`avlike`].
pub fn is_avlike(function: &ScalarUDF) -> bool {
    function.inner().downcast_ref::<AvLike>().is_some()
}

/// A name that the rewrite replaces before anything runs.
#[derive(Debug, PartialEq, Eq, Hash)]
struct AvLike {
    signature: Signature,
}

impl ScalarUDFImpl for AvLike {
    fn name(&self) -> &str {
        AVLIKE
    }

    methods_of_truth!();

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        exec_err!("avlike can stand in WHERE, HAVING and ON only")
    }
}
