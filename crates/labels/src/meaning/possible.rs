//! [`Possible`]: the set of values that one label can stand for, and which conditions one of them satisfies.
//!
//! A set is the leaves below a node, all values of the type in a range, or the texts of a mask. A range of whole numbers,
//! days, nanoseconds or truth values has a number of values; a range of decimals or floats counts as infinite.

use kohort_model::{Value, ValueType};

use super::mask::{Mask, TextBounds};
use super::tree::Tree;
use super::{Comparison, Condition, Point};

/// The values that a label can stand for.
#[derive(Clone, Copy)]
pub struct Possible<'a> {
    pub(super) values: Values<'a>,
    pub(super) null: bool,
}

#[derive(Clone, Copy)]
pub(super) enum Values<'a> {
    Leaves {
        tree: &'a Tree,
        node: u32,
    },
    /// The lower bound is included. `None` means that there is no bound.
    Range {
        low: Option<Value<'a>>,
        high: Option<Value<'a>>,
        end: End,
    },
    Masked(Mask<'a>),
}

/// Whether the upper bound of a range is in it. Only ranges of infinitely many values exclude it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Included,
    Excluded,
}

impl<'a> Possible<'a> {
    /// One value that is known.
    pub fn known(value: Value<'a>) -> Possible<'a> {
        Possible { values: Values::one(value), null: false }
    }

    /// Whether a condition is true of one of the values.
    pub fn could(&self, condition: &Condition) -> bool {
        match (condition, &self.values) {
            (Condition::Null, _) => self.null,
            (condition, Values::Leaves { tree, node }) => tree.leaves(*node).iter().any(|leaf| condition.holds(leaf)),
            (condition, Values::Range { .. } | Values::Masked(_)) => self.could_in_set(condition),
        }
    }

    /// Whether the comparison is true of one of these values and one of the values of `other`.
    pub fn could_compare(&self, comparison: Comparison, other: &Possible<'_>) -> bool {
        if comparison == Comparison::Equal {
            return self.values.intersects(&other.values);
        }
        let (mine, others) = (self.values.masked_texts(), other.values.masked_texts());
        let (Some((low, high, end)), Some((other_low, other_high, other_end))) =
            (self.values.bounds(mine.as_ref()), other.values.bounds(others.as_ref()))
        else {
            return false;
        };
        // A side without a bound has values beyond any value of the other side.
        let below = |low: Option<Value<'_>>, (high, end): (Option<Value<'_>>, End), comparison| match (low, high) {
            (Some(low), Some(high)) if end == End::Excluded => low < high,
            (Some(low), Some(high)) => Comparison::holds(comparison, &low, &high),
            _ => true,
        };
        match comparison {
            Comparison::Equal | Comparison::Differ => {
                let single = |low: Option<Value<'_>>, high: Option<Value<'_>>| low.is_some() && low == high;
                !(single(low, high) && single(other_low, other_high) && low == other_low)
            }
            Comparison::Less | Comparison::LessOrEqual => below(low, (other_high, other_end), comparison),
            Comparison::Greater | Comparison::GreaterOrEqual => below(other_low, (high, end), comparison.swapped()),
        }
    }

    /// Calls a function with the least and the greatest value, of which a missing bound is `None`. Returns `None` if there
    /// is no value at all.
    pub(super) fn bounds<T>(&self, make: impl FnOnce(Option<Value<'_>>, Option<Value<'_>>) -> T) -> Option<T> {
        let masked = self.values.masked_texts();
        self.values.bounds(masked.as_ref()).map(|(low, high, _)| make(low, high))
    }

    fn could_in_set(&self, condition: &Condition) -> bool {
        let within = |point: &Point| self.values.contains(&point.value());
        let compare = |comparison, point: &Point| self.could_compare(comparison, &Possible::known(point.value()));
        match condition {
            Condition::Compare(comparison, literal) => compare(*comparison, literal),
            Condition::In(list) => list.iter().any(within),
            Condition::NotIn(list) => {
                let mut inside: Vec<Value<'_>> = list.iter().filter(|point| within(point)).map(Point::value).collect();
                inside.sort();
                inside.dedup();
                self.values.n_values().is_none_or(|n_values| n_values > inside.len() as u128)
            }
            Condition::Between(low, high) => {
                let between = Values::closed(low.value(), high.value());
                low.value() <= high.value() && self.values.intersects(&between)
            }
            Condition::NotBetween(low, high) => compare(Comparison::Less, low) || compare(Comparison::Greater, high),
            Condition::Like(pattern) => match self.values {
                Values::Masked(mask) => mask.could_match(pattern),
                _ => self.text_or(true, |text| pattern.matches(text)),
            },
            Condition::NotLike(pattern) => match self.values {
                Values::Masked(mask) => mask.could_miss(pattern),
                _ => self.text_or(!pattern.matches_everything(), |text| !pattern.matches(text)),
            },
            Condition::Null => self.null,
            Condition::NotNull => true,
        }
    }

    /// For a single text the result of `holds`, for the set of all texts `of_all`.
    fn text_or(&self, of_all: bool, holds: impl Fn(&str) -> bool) -> bool {
        match self.values {
            Values::Range { low: Some(Value::Text(text)), high: Some(Value::Text(_)), .. } => holds(text),
            _ => of_all,
        }
    }
}

impl<'a> Values<'a> {
    pub(super) fn one(value: Value<'a>) -> Values<'a> {
        Values::closed(value, value)
    }

    /// All values from one to another.
    pub(super) fn closed(low: Value<'a>, high: Value<'a>) -> Values<'a> {
        Values::Range { low: Some(low), high: Some(high), end: End::Included }
    }

    /// All values of a type.
    pub(super) fn everything(value_type: ValueType) -> Values<'a> {
        let (low, high) = match value_type {
            ValueType::Integer => (Some(Value::Integer(i64::MIN)), Some(Value::Integer(i64::MAX))),
            ValueType::Date => (Some(Value::Date(i32::MIN)), Some(Value::Date(i32::MAX))),
            ValueType::Float => (Some(Value::Float(f64::NEG_INFINITY)), Some(Value::Float(f64::INFINITY))),
            ValueType::Boolean => (Some(Value::Boolean(false)), Some(Value::Boolean(true))),
            ValueType::Text => (Some(Value::Text("")), None),
            ValueType::Decimal | ValueType::Timestamp => (None, None),
        };
        Values::Range { low, high, end: End::Included }
    }

    /// The least and the greatest value; `None` if there is no value at all.
    fn bounds<'b>(&self, masked: Option<&'b TextBounds>) -> Option<(Option<Value<'b>>, Option<Value<'b>>, End)>
    where
        'a: 'b,
    {
        match self {
            Values::Leaves { tree, node } => {
                tree.extremes(*node).map(|(least, greatest)| (Some(least), Some(greatest), End::Included))
            }
            Values::Range { low, high, end } => Some((*low, *high, *end)),
            Values::Masked(_) => {
                let text = |text: &'b String| Value::Text(text);
                Some(masked.map_or((None, None, End::Included), |masked| {
                    (Some(text(&masked.low)), masked.high.as_ref().map(text), masked.end)
                }))
            }
        }
    }

    /// The bounds of the texts of a mask.
    fn masked_texts(&self) -> Option<TextBounds> {
        match self {
            Values::Masked(mask) => mask.bounds(),
            Values::Leaves { .. } | Values::Range { .. } => None,
        }
    }

    fn contains(&self, value: &Value<'_>) -> bool {
        match self {
            Values::Leaves { tree, node } => tree.holds(*node, value),
            Values::Range { low, high, end } => {
                let is_below = |high: Value<'_>| *value < high || *end == End::Included && *value == high;
                low.is_none_or(|low| low <= *value) && high.is_none_or(is_below)
            }
            Values::Masked(mask) => mask.holds(value),
        }
    }

    fn intersects(&self, other: &Values<'_>) -> bool {
        match (self, other) {
            (Values::Leaves { tree, node }, other @ (Values::Range { .. } | Values::Masked(_)))
            | (other @ (Values::Range { .. } | Values::Masked(_)), Values::Leaves { tree, node }) => {
                tree.leaves(*node).iter().any(|leaf| other.contains(&leaf.value()))
            }
            (Values::Leaves { tree: a, node: x }, Values::Leaves { tree: b, node: y }) => {
                if let Some(share) = a.share_a_value(b, *x, *y) {
                    return share;
                }
                let (few, many) = (a.leaves(*x), b.leaves(*y));
                if few.len() <= many.len() {
                    few.iter().any(|leaf| b.holds(*y, &leaf.value()))
                } else {
                    many.iter().any(|leaf| a.holds(*x, &leaf.value()))
                }
            }
            (Values::Masked(mask), Values::Range { low, high, .. })
            | (Values::Range { low, high, .. }, Values::Masked(mask)) => match (low, high) {
                (Some(low), Some(high)) if low == high => mask.holds(low),
                _ => mask.reaches(low.as_ref(), high.as_ref()),
            },
            (Values::Masked(a), Values::Masked(b)) => a.intersects(b),
            (Values::Range { low: a, high: b, end: b_end }, Values::Range { low: c, high: d, end: d_end }) => {
                let ordered = |low: &Option<Value<'_>>, high: &Option<Value<'_>>, end: &End| match (low, high) {
                    (Some(low), Some(high)) => low < high || *end == End::Included && low == high,
                    _ => true,
                };
                ordered(a, d, d_end) && ordered(c, b, b_end)
            }
        }
    }

    /// How many values a range has; `None` if they are infinitely many or not counted.
    fn n_values(&self) -> Option<u128> {
        let Values::Range { low: Some(low), high: Some(high), end: End::Included } = self else { return None };
        match (low, high) {
            (Value::Integer(low), Value::Integer(high)) => Some((i128::from(*high) - i128::from(*low)) as u128 + 1),
            (Value::Date(low), Value::Date(high)) => Some((i64::from(*high) - i64::from(*low)) as u128 + 1),
            (Value::Timestamp(low), Value::Timestamp(high)) => Some(high.abs_diff(*low) + 1),
            (Value::Boolean(low), Value::Boolean(high)) => Some(u128::from(low != high) + 1),
            (low, high) => (low == high).then_some(1),
        }
    }
}
