//! [`Transform`]: what is done to the cells of a column before classes are made.
//!
//! | key | definition |
//! | --- | --- |
//! | `round` | the nearest multiple of the base; a value in the middle between two goes to the one farther from 0 |
//! | `truncate` | the first day of the month, quarter, year or decade |
//! | `top`, `bottom` | a value at the bound or beyond it reads `>= bound`, or `<= bound` |
//! | `key_file` | the first 80 bits of HMAC-SHA-256 of the text in UTF-8 under the key in the file, in letters of 5 bits |
//!
//! Rounding and truncating come first, so bounds are compared with what they leave. A bound by quantile `q` is one of these
//! values: for `top` the largest, for `bottom` the smallest, that at least k persons hold each and that is not beyond the
//! quantile, which is the smallest value such that at least a share `q` of the cells is not above it. Nulls stay null.

use std::path::PathBuf;

use crate::hierarchy::DateLevel;
use crate::{Decimal, Notation, Value, ValueType};

/// What is done to the cells of a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transform {
    /// The base of rounding, as the spec spells it.
    pub round: Option<String>,
    /// The period to whose first day dates are moved.
    pub truncate: Option<DateLevel>,
    /// The bound from which values are coded, as in `>= 120`.
    pub top: Option<Bound>,
    /// The bound up to which values are coded, as in `<= 5`.
    pub bottom: Option<Bound>,
    /// The file of the key for pseudonyms, relative to the spec. With it, the column has no other change.
    pub pseudonym_key: Option<PathBuf>,
}

/// The letters of pseudonyms, the first one for 0. None of them is easily taken for another.
pub const PSEUDONYM_ALPHABET: &str = "abcdefghijkmnpqrstuvwxyz23456789";

/// The number of letters of a pseudonym.
pub const PSEUDONYM_LENGTH: usize = 16;

/// A bound of top or bottom coding.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// This value, as the spec spells it: numbers with a point.
    At(String),
    /// The bound of an earlier release, which the values need not reach.
    OfEarlier(String),
    /// A value near this quantile of the column, 0 to 1.
    Quantile(f64),
}

impl Transform {
    /// Whether every cell stays as it is.
    pub fn is_nothing(&self) -> bool {
        *self == Transform::default()
    }

    /// Whether the change depends on the type of the column.
    pub fn needs_type(&self) -> bool {
        self.pseudonym_key.is_none() && !self.is_nothing()
    }
}

/// The codes of a column whose outer values are coded, as its cells spell the bounds.
///
/// The values of such a column are those between the bounds, and one value for each code, which counts as its bound. A text
/// that spells a value at a bound or beyond it is no value of the column, so a release can't show more than its code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Codes {
    /// Cells of this bound or more read `>= bound`.
    pub top: Option<String>,
    /// Cells of this bound or less read `<= bound`.
    pub bottom: Option<String>,
}

impl Codes {
    const TOP: &'static str = ">= ";
    const BOTTOM: &'static str = "<= ";

    /// Whether no value is coded.
    pub fn are_none(&self) -> bool {
        self.top.is_none() && self.bottom.is_none()
    }

    /// The text of a cell at this bound or above it.
    pub fn at_least(bound: &str) -> String {
        format!("{}{bound}", Codes::TOP)
    }

    /// The text of a cell at this bound or below it.
    pub fn at_most(bound: &str) -> String {
        format!("{}{bound}", Codes::BOTTOM)
    }

    /// The value of a text in a column with these codes; `None` if it is no value of the column.
    pub(crate) fn read<'t>(
        &self,
        text: &'t str,
        parse: impl Fn(&str) -> Option<Value<'_>>,
        parse_text: impl FnOnce(&'t str) -> Option<Value<'t>>,
    ) -> Option<Value<'t>> {
        for (sign, bound) in [(Codes::TOP, &self.top), (Codes::BOTTOM, &self.bottom)] {
            if let Some(rest) = text.strip_prefix(sign) {
                return if bound.as_deref() == Some(rest) { parse_text(rest) } else { None };
            }
        }
        let value = parse_text(text)?;
        let is_below = |bound: &String| parse(bound).is_some_and(|bound| value < bound);
        let is_above = |bound: &String| parse(bound).is_some_and(|bound| value > bound);
        (self.top.as_ref().is_none_or(is_below) && self.bottom.as_ref().is_none_or(is_above)).then_some(value)
    }
}

/// A number of a spec, which is spelled with a point, as a column of this type and notation spells it; and a date of a spec.
/// `None` if it is no value of the type.
pub fn spelled_as(text: &str, value_type: ValueType, notation: &Notation) -> Option<String> {
    let notation = &Notation { codes: Codes::default(), ..notation.clone() };
    match value_type {
        ValueType::Integer => {
            let number = Decimal::parse(text, false)?.shortest();
            let whole = (number.scale == 0).then(|| i64::try_from(number.mantissa).ok()).flatten();
            whole.and_then(|whole| Value::Integer(whole).spell(notation))
        }
        ValueType::Decimal | ValueType::Float => {
            Decimal::parse(text, false).and_then(|number| Value::Decimal(number.shortest()).spell(notation))
        }
        ValueType::Date | ValueType::Timestamp => {
            Value::parse(text, value_type, notation).is_some().then(|| text.to_owned())
        }
        ValueType::Text | ValueType::Boolean => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coded(top: Option<&str>, bottom: Option<&str>) -> Notation {
        let codes = Codes { top: top.map(str::to_owned), bottom: bottom.map(str::to_owned) };
        Notation { codes, ..Notation::default() }
    }

    #[test]
    fn a_coded_column_has_no_value_at_its_bounds_or_beyond_but_the_codes() {
        let notation = coded(Some("120"), Some("5"));
        let read = |text| Value::parse(text, ValueType::Integer, &notation);
        assert_eq!(read(">= 120"), Some(Value::Integer(120)));
        assert_eq!(read("<= 5"), Some(Value::Integer(5)));
        assert_eq!((read("6"), read("119")), (Some(Value::Integer(6)), Some(Value::Integer(119))));
        for text in ["120", "121", "5", "-1", ">= 119", "<= 6", ">= 5", ">=120", ">= ", ">= >= 120", "x", ""] {
            assert_eq!(read(text), None, "{text}");
        }
        let below = coded(Some("2.5"), None);
        assert_eq!(Value::parse("2.50", ValueType::Decimal, &below), None);
        assert!(Value::parse("2.49", ValueType::Decimal, &below).is_some());
        assert!(Value::parse("<= 2.5", ValueType::Decimal, &below).is_none());
    }

    #[test]
    fn bounds_are_spelled_like_the_column() {
        assert_eq!(spelled_as("90.0", ValueType::Integer, &Notation::default()).as_deref(), Some("90"));
        let german = Notation { decimal_comma: true, ..Notation::default() };
        assert_eq!(spelled_as("2.50", ValueType::Decimal, &german).as_deref(), Some("2,5"));
        assert_eq!(spelled_as("120", ValueType::Integer, &german).as_deref(), Some("120"));
        assert_eq!(spelled_as("2000-01-31", ValueType::Date, &german).as_deref(), Some("2000-01-31"));
        for (text, value_type) in [
            ("2.5", ValueType::Integer),
            ("x", ValueType::Float),
            ("2000-13-01", ValueType::Date),
            ("1", ValueType::Text),
        ] {
            assert_eq!(spelled_as(text, value_type, &german), None, "{text}");
        }
    }
}
