//! [`Point`]: a literal, read as a value of the column it is compared with.

use std::hash::{Hash, Hasher};

use kohort_model::{Notation, Value, ValueType};

/// A value that owns its text. Equal points are spelled alike; whether two *values* are equal, [`Point::value`] tells.
#[derive(Clone, Debug)]
pub struct Point {
    text: Box<str>,
    /// `None` for text, whose value is the text itself.
    parsed: Option<Value<'static>>,
}

impl Point {
    /// The value a text stands for, `None` where it is not of the type.
    pub fn parse(text: &str, value_type: ValueType) -> Option<Point> {
        let parsed = match Value::parse(text, value_type, &Notation::default())? {
            Value::Text(_) => None,
            Value::Integer(number) => Some(Value::Integer(number)),
            Value::Decimal(number) => Some(Value::Decimal(number)),
            Value::Float(number) => Some(Value::Float(number)),
            Value::Date(days) => Some(Value::Date(days)),
            Value::Timestamp(nanoseconds) => Some(Value::Timestamp(nanoseconds)),
            Value::Boolean(truth) => Some(Value::Boolean(truth)),
        };
        Some(Point { text: text.into(), parsed })
    }

    /// The value.
    pub fn value(&self) -> Value<'_> {
        self.parsed.unwrap_or(Value::Text(&self.text))
    }

    /// Its text, as it was spelled.
    pub fn text(&self) -> &str {
        &self.text
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
