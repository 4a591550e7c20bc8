//! [`Point`]: a literal, read as a value of the column it is compared with.

use std::hash::{Hash, Hasher};

use kohort_model::{Notation, Value, ValueType};
use serde::{Deserialize, Serialize};

/// A value that owns its text. Two points are equal only if they are spelled alike; to compare their values, compare
/// [`Point::value`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "(String, String)", into = "(String, String)")]
pub struct Point {
    text: Box<str>,
    /// `None` for text, whose value is the text itself.
    parsed: Option<Value<'static>>,
}

impl Point {
    /// The value that a text spells; `None` if it is not of the type.
    pub fn parse(text: &str, value_type: ValueType) -> Option<Point> {
        let value = Value::parse(text, value_type, &Notation::default())?;
        Some(Point { text: text.into(), ..Point::of(value) })
    }

    /// The point of a value. Only text has a spelling here; other values have none.
    pub(super) fn of(value: Value<'_>) -> Point {
        let parsed = match value {
            Value::Text(text) => return Point { text: text.into(), parsed: None },
            Value::Integer(number) => Value::Integer(number),
            Value::Decimal(number) => Value::Decimal(number),
            Value::Float(number) => Value::Float(number),
            Value::Date(days) => Value::Date(days),
            Value::Timestamp(nanoseconds) => Value::Timestamp(nanoseconds),
            Value::Boolean(truth) => Value::Boolean(truth),
        };
        Point { text: Box::default(), parsed: Some(parsed) }
    }

    /// The value.
    pub fn value(&self) -> Value<'_> {
        self.parsed.unwrap_or(Value::Text(&self.text))
    }

    /// The text, as it was spelled.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The text and the word of its type.
impl From<Point> for (String, String) {
    fn from(point: Point) -> (String, String) {
        let value_type = match point.value() {
            Value::Text(_) => ValueType::Text,
            Value::Integer(_) => ValueType::Integer,
            Value::Decimal(_) => ValueType::Decimal,
            Value::Float(_) => ValueType::Float,
            Value::Date(_) => ValueType::Date,
            Value::Timestamp(_) => ValueType::Timestamp,
            Value::Boolean(_) => ValueType::Boolean,
        };
        (point.text.into(), value_type.word().to_owned())
    }
}

impl TryFrom<(String, String)> for Point {
    type Error = &'static str;

    fn try_from((text, word): (String, String)) -> Result<Point, &'static str> {
        let value_type = ValueType::from_word(&word).ok_or("there is no such type")?;
        Point::parse(&text, value_type).ok_or("a text is not of its type")
    }
}

impl PartialEq for Point {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.value() == other.value()
    }
}

impl Eq for Point {}

impl Hash for Point {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}
