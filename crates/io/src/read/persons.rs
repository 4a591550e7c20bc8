//! [`KnownPersons`]: the person that a key of a register names, as two numbers per row instead of a text.
//!
//! A private person is represented by the position of their row, anybody else by a hash of their key, with a fixed seed so
//! that results don't depend on chance. Two keys may share a hash. Then two persons are taken for one, or for one about whom
//! registers contradict each other. Either way too few persons are counted, never too many.
//!
//! Keys are compared by value: `7` and `7.0` are one number, `007` is text, and text is compared in Unicode's composed form.
//! The second number comes from the verifier, whose own code decides whether two keys are the same.
//!
//! # Cost   16 bytes per register row, whatever the keys look like

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::quality::FixedState;
use kohort_model::{Column, Decimal, NULL, Notation, Value, ValueType};
use kohort_verify::key_print;
use unicode_normalization::{UnicodeNormalization, is_nfc};

use super::error::RowNumbers;

/// Persons of the private table by their key.
pub(crate) struct KnownPersons<'t> {
    rows: HashMap<Cow<'t, str>, u32>,
    hasher: FixedState,
}

/// The person of a register row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamedPerson {
    /// The position of a private row, or a hash.
    pub(crate) number: u64,
    /// The verifier's number for the key.
    pub(crate) print: u64,
}

/// Numbers from here on are hashes of keys.
const FIRST_HASH: u64 = 1 << 63;

/// The person of a row whose key is null.
pub(crate) const NOBODY: NamedPerson = NamedPerson { number: u64::MAX, print: 0 };

impl<'t> KnownPersons<'t> {
    /// The persons of a column that names each of them once.
    ///
    /// # Errors
    /// Rows whose person was named before, by a key of the same value.
    pub(crate) fn new(column: &'t Column) -> Result<Self, RowNumbers> {
        let mut persons = KnownPersons { rows: HashMap::new(), hasher: FixedState::with_seed(0) };
        let mut twice = RowNumbers::default();
        for (row, &id) in (0..).zip(&column.ids).filter(|&(_, &id)| id != NULL) {
            if persons.rows.insert(key_value(column.texts.get(id)), row).is_some() {
                twice.add(u64::from(row) + 1);
            }
        }
        if twice.total == 0 { Ok(persons) } else { Err(twice) }
    }

    /// The person that a key names.
    pub(crate) fn named(&self, key: &str) -> NamedPerson {
        let value = key_value(key);
        let number = match self.rows.get(&value) {
            Some(&row) => u64::from(row),
            None => (self.hasher.hash_one(&*value) | FIRST_HASH).min(NOBODY.number - 1),
        };
        NamedPerson { number, print: key_print(key) }
    }
}

/// The row of the private table that a number stands for.
pub(crate) fn private_row(number: u64) -> Option<usize> {
    (number < FIRST_HASH).then_some(number as usize)
}

/// A text that all keys of the same value share.
fn key_value(key: &str) -> Cow<'_, str> {
    let digits = key.strip_prefix('-').unwrap_or(key).as_bytes();
    let (is_number, is_whole) = match digits {
        [b'0', b'0'..=b'9', ..] => (false, false),
        [b'0'..=b'9', ..] => (true, digits.iter().all(u8::is_ascii_digit)),
        _ => (false, false),
    };
    if is_whole && key != "-0" {
        return Cow::Borrowed(key);
    }
    let value_as = |value_type| Value::parse(key, value_type, &Notation::default());
    if is_number {
        let decimal = match value_as(ValueType::Decimal).or_else(|| value_as(ValueType::Float)) {
            Some(Value::Decimal(decimal)) => Some(decimal),
            Some(Value::Float(float)) => Decimal::parse(&float.to_string(), false),
            _ => None,
        };
        if let Some(decimal) = decimal {
            return Cow::Owned(decimal.to_string());
        }
    }
    if let Some(Value::Timestamp(nanoseconds)) = value_as(ValueType::Timestamp) {
        return Cow::Owned(format!("{nanoseconds} ns"));
    }
    match value_as(ValueType::Boolean) {
        Some(Value::Boolean(true)) => Cow::Borrowed("true"),
        Some(Value::Boolean(false)) => Cow::Borrowed("false"),
        _ if is_nfc(key) => Cow::Borrowed(key),
        _ => Cow::Owned(key.nfc().collect()),
    }
}

#[cfg(test)]
mod tests {
    use kohort_model::Role;

    use super::*;

    fn number(persons: &KnownPersons<'_>, key: &str) -> u64 {
        persons.named(key).number
    }

    #[test]
    fn private_persons_are_rows_and_all_others_are_not() {
        let column = Column::from_cells("id", Role::Key, [Some("a"), Some("b")]);
        let persons = KnownPersons::new(&column).ok().unwrap();
        assert_eq!(private_row(number(&persons, "b")), Some(1));
        assert_eq!(private_row(number(&persons, "c")), None);
        assert_ne!(number(&persons, "c"), number(&persons, "d"));
        assert_eq!(private_row(NOBODY.number), None);
    }

    #[test]
    fn keys_of_the_same_value_name_the_same_person_and_the_verifier_agrees() {
        let keys = [
            "7",
            "7.0",
            "70",
            "7e1",
            "07",
            "-7",
            "-7.00",
            "0",
            "-0",
            "Jose\u{301}",
            "Jos\u{e9}",
            "2020-01-01",
            "2020-01-01T01:00:00+01:00",
            "true",
            "TRUE",
            "1.10",
            "1.1",
            "12345678901234567890123",
            "x",
        ];
        for a in keys {
            for b in keys {
                assert_eq!(key_value(a) == key_value(b), key_print(a) == key_print(b), "{a} {b}");
            }
        }
        let column = Column::from_cells("id", Role::Key, ["7", "07", "Jos\u{e9}"].map(Some));
        let persons = KnownPersons::new(&column).ok().unwrap();
        assert_eq!(private_row(number(&persons, "7.0")), Some(0));
        assert_eq!(private_row(number(&persons, "Jose\u{301}")), Some(2));
        let twice = Column::from_cells("id", Role::Key, ["7", "8", "7.0"].map(Some));
        assert_eq!(KnownPersons::new(&twice).err().map(|rows| rows.total), Some(1));
    }
}
