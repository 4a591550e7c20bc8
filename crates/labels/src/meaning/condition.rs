//! [`Condition`]: one comparison of a predicate, asked of the value behind a label.
//!
//! A negated comparison is a condition of its own, because "could be not 5" differs from "could not be 5": both `x <> 5` and
//! `x = 5` can be true of one label.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{LetterCase, Pattern, Point};

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    Differ,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// The comparison that is true of two values exactly if this one is false.
    pub fn negated(self) -> Comparison {
        match self {
            Comparison::Equal => Comparison::Differ,
            Comparison::Differ => Comparison::Equal,
            Comparison::Less => Comparison::GreaterOrEqual,
            Comparison::LessOrEqual => Comparison::Greater,
            Comparison::Greater => Comparison::LessOrEqual,
            Comparison::GreaterOrEqual => Comparison::Less,
        }
    }

    /// The comparison that means the same with swapped sides.
    pub fn swapped(self) -> Comparison {
        match self {
            Comparison::Equal | Comparison::Differ => self,
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        }
    }

    /// Whether it is true of two values.
    pub fn holds<T: Ord>(self, left: &T, right: &T) -> bool {
        match self {
            Comparison::Equal => left == right,
            Comparison::Differ => left != right,
            Comparison::Less => left < right,
            Comparison::LessOrEqual => left <= right,
            Comparison::Greater => left > right,
            Comparison::GreaterOrEqual => left >= right,
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Comparison::Equal => "=",
            Comparison::Differ => "<>",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        })
    }
}

/// A condition on the value behind a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Condition {
    /// The comparison with the literal is true.
    Compare(Comparison, Point),
    /// The value is one of these.
    In(Vec<Point>),
    /// The value is none of these.
    NotIn(Vec<Point>),
    /// The value lies between two literals, both included.
    Between(Point, Point),
    /// The value does not lie between them.
    NotBetween(Point, Point),
    /// The text of the value matches.
    Like(Pattern),
    /// The text of the value does not match.
    NotLike(Pattern),
    /// There is no value.
    Null,
    /// There is a value.
    NotNull,
}

impl Condition {
    /// The values, if the condition asks for one of some values and for nothing else.
    pub fn values(&self) -> Option<&[Point]> {
        match self {
            Condition::Compare(Comparison::Equal, literal) => Some(std::slice::from_ref(literal)),
            Condition::In(list) => Some(list),
            _ => None,
        }
    }

    /// Whether it is true of one value.
    pub fn holds(&self, point: &Point) -> bool {
        let value = point.value();
        match self {
            Condition::Compare(comparison, literal) => comparison.holds(&value, &literal.value()),
            Condition::In(list) => list.iter().any(|literal| literal.value() == value),
            Condition::NotIn(list) => list.iter().all(|literal| literal.value() != value),
            Condition::Between(low, high) => low.value() <= value && value <= high.value(),
            Condition::NotBetween(low, high) => value < low.value() || high.value() < value,
            Condition::Like(pattern) => pattern.matches(point.text()),
            Condition::NotLike(pattern) => !pattern.matches(point.text()),
            Condition::Null => false,
            Condition::NotNull => true,
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let list = |points: &[Point]| points.iter().map(|point| quoted(point.text())).collect::<Vec<_>>().join(", ");
        let like = |pattern: &Pattern| match pattern.letter_case() {
            LetterCase::Matters => format!("LIKE {}", quoted(pattern.text())),
            LetterCase::Ignored => format!("ILIKE {}", quoted(pattern.text())),
        };
        match self {
            Condition::Compare(Comparison::Equal, literal) => write!(f, "AVLIKE {}", quoted(literal.text())),
            Condition::Compare(comparison, literal) => write!(f, "could be {comparison} {}", quoted(literal.text())),
            Condition::In(points) => write!(f, "could be IN ({})", list(points)),
            Condition::NotIn(points) => write!(f, "could be NOT IN ({})", list(points)),
            Condition::Between(low, high) => {
                write!(f, "could be BETWEEN {} AND {}", quoted(low.text()), quoted(high.text()))
            }
            Condition::NotBetween(low, high) => {
                write!(f, "could be NOT BETWEEN {} AND {}", quoted(low.text()), quoted(high.text()))
            }
            Condition::Like(pattern) => write!(f, "could be {}", like(pattern)),
            Condition::NotLike(pattern) => write!(f, "could be NOT {}", like(pattern)),
            Condition::Null => f.write_str("could be NULL"),
            Condition::NotNull => f.write_str("could be NOT NULL"),
        }
    }
}
