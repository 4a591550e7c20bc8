//! [`ColumnValues`]: the texts of a private column and of the columns of registers, and which of them are the same value.
//!
//! Values are compared in the type of the private column: numbers and dates by value, text in Unicode's composed form (NFC).
//! A register may write them in the notation of the private column, or with a decimal point and ISO dates as Parquet does.
//!
//! A text of a register keeps its spelling if the private column can hold it beside the others. In two cases it is replaced
//! by a text of the same value. If texts are told apart by their spelling, as in hierarchies, it is replaced by a known
//! text. If the register uses another notation, it is replaced by a text in the notation of the private column. Every
//! replaced text is kept as [`Respelled`] for the verifier.

use std::collections::HashMap;

use kohort_model::{Column, NULL, Notation, Respelled, Texts, Value, ValueType};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::is_nfc;

use crate::read::TextDictionary;

/// The texts of one joined column.
pub(super) struct ColumnValues<'c> {
    private: &'c Column,
    dictionary: TextDictionary,
    /// For each text, the first text of the same value.
    same: Vec<u32>,
    first: HashMap<ValueKey, u32>,
}

/// A value that can be looked up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum ValueKey {
    /// A mantissa without zeros at its end, and how many of its digits are behind the point.
    Number(i128, u32),
    Float(u64),
    /// Days and timestamps alike.
    Nanoseconds(i128),
    Truth(bool),
    Text(String),
}

/// The texts of a register column within the joined column.
pub(super) struct Placed {
    /// The id of each text in the joined column.
    pub(super) ids: Vec<u32>,
    pub(super) respelled: Option<Respelled>,
}

impl<'c> ColumnValues<'c> {
    /// Begins with a private column, whose texts keep their ids.
    pub(super) fn new(private: &'c Column) -> Self {
        let mut values = ColumnValues {
            private,
            dictionary: TextDictionary::default(),
            same: Vec::with_capacity(private.texts.len()),
            first: HashMap::with_capacity(private.texts.len()),
        };
        for text in private.texts.iter() {
            let key = read(text, private.value_type, &private.notation);
            values.add(text, key.unwrap_or_else(|| ValueKey::Text(text.to_owned())));
        }
        values
    }

    /// The id of a text with this value.
    fn add(&mut self, text: &str, key: ValueKey) -> u32 {
        let id = self.dictionary.id(text);
        if id as usize == self.same.len() {
            self.same.push(*self.first.entry(key).or_insert(id));
        }
        id
    }

    /// For each text, the first text of the same value.
    pub(super) fn same(&self) -> &[u32] {
        &self.same
    }

    /// The texts, the private column's first.
    pub(super) fn into_texts(self) -> Texts {
        self.dictionary.into_texts()
    }

    /// The notation of a register column: that of the private column or, if not all texts can be read in it, a decimal point
    /// and ISO dates. If both fail, the error tells for each text whether it can't be read.
    pub(super) fn notation_of(&self, texts: &Texts) -> Result<Notation, Vec<bool>> {
        let unread = |notation: &Notation| -> Vec<bool> {
            texts.iter().map(|text| read(text, self.private.value_type, notation).is_none()).collect()
        };
        let misfits = unread(&self.private.notation);
        if !misfits.contains(&true) {
            return Ok(self.private.notation.clone());
        }
        let plain = Notation::default();
        if unread(&plain).contains(&true) { Err(misfits) } else { Ok(plain) }
    }

    /// A text that the joined column can hold for this one: the text itself, or one of the same value.
    fn spelling(&self, text: &str, key: &ValueKey, is_placed: &dyn Fn(&str) -> bool) -> Option<String> {
        let Column { value_type, notation, hierarchy, .. } = self.private;
        let is_readable = Value::parse(text, *value_type, notation).is_some();
        let is_told_apart_by_spelling = hierarchy.is_some() || !value_type.is_ordered();
        let known = self.first.get(key).map(|&id| self.dictionary.get(id));
        if is_told_apart_by_spelling && let Some(known) = known {
            return Some(known.to_owned());
        }
        if is_readable && is_placed(text) {
            return Some(text.to_owned());
        }
        let spelled = known.map(str::to_owned).or_else(|| key.spell(*value_type, notation))?;
        is_placed(&spelled).then_some(spelled)
    }

    /// The texts of a register that have no place in the private column. `is_placed` tells whether a spelling has one.
    pub(super) fn without_place(
        &self,
        texts: &Texts,
        notation: &Notation,
        is_placed: &dyn Fn(&str) -> bool,
    ) -> Vec<bool> {
        let has_place = |text: &str| {
            let key = read(text, self.private.value_type, notation)?;
            self.spelling(text, &key, is_placed)
        };
        texts.iter().map(|text| has_place(text).is_none()).collect()
    }

    /// Adds the texts of a register, which all have a place.
    pub(super) fn place(
        &mut self,
        column: usize,
        texts: &Texts,
        notation: &Notation,
        is_placed: &dyn Fn(&str) -> bool,
    ) -> Placed {
        let mut respelled = Respelled { column, notation: notation.clone(), as_read: Texts::new(), texts: Vec::new() };
        let mut ids = Vec::with_capacity(texts.len());
        for text in texts.iter() {
            let key = read(text, self.private.value_type, notation).unwrap_or_else(|| ValueKey::Text(text.to_owned()));
            let spelled = self.spelling(text, &key, is_placed);
            let id = self.add(spelled.as_deref().unwrap_or(text), key);
            if spelled.is_some_and(|spelled| spelled != text) {
                respelled.as_read.push(text);
                respelled.texts.push(id);
            }
            ids.push(id);
        }
        Placed { ids, respelled: (!respelled.texts.is_empty()).then_some(respelled) }
    }
}

impl ValueKey {
    /// A text of the value in a column's notation.
    fn spell(&self, value_type: ValueType, notation: &Notation) -> Option<String> {
        let value = match (self, value_type) {
            (ValueKey::Number(mantissa, 0), ValueType::Integer) => Value::Integer(i64::try_from(*mantissa).ok()?),
            (ValueKey::Number(mantissa, scale), _) => {
                Value::Decimal(kohort_model::Decimal { mantissa: *mantissa, scale: *scale })
            }
            (ValueKey::Float(bits), _) => Value::Float(f64::from_bits(*bits)),
            (ValueKey::Nanoseconds(nanoseconds), ValueType::Date) => {
                Value::Date(i32::try_from(nanoseconds / DAY).ok()?)
            }
            (ValueKey::Nanoseconds(nanoseconds), _) => Value::Timestamp(*nanoseconds),
            (ValueKey::Truth(truth), _) => Value::Boolean(*truth),
            (ValueKey::Text(text), _) => Value::Text(text),
        };
        value.spell(notation)
    }
}

const DAY: i128 = 86_400_000_000_000;

/// The value of a text, which may be written like a value of a wider type: `12.0` in a column of integers.
fn read(text: &str, value_type: ValueType, notation: &Notation) -> Option<ValueKey> {
    let as_type = |value_type| Value::parse(text, value_type, notation);
    let value = as_type(value_type).or_else(|| match value_type {
        ValueType::Integer => as_type(ValueType::Decimal).or_else(|| as_type(ValueType::Float)),
        ValueType::Decimal => as_type(ValueType::Float),
        ValueType::Date => as_type(ValueType::Timestamp),
        ValueType::Float | ValueType::Timestamp | ValueType::Text | ValueType::Boolean => None,
    })?;
    let number = |decimal: kohort_model::Decimal| {
        let decimal = decimal.shortest();
        ValueKey::Number(decimal.mantissa, decimal.scale)
    };
    let key = match value {
        Value::Integer(whole) => ValueKey::Number(i128::from(whole), 0),
        Value::Decimal(decimal) => number(decimal),
        // The shortest digits of this number, without an exponent.
        Value::Float(float) if value_type != ValueType::Float => {
            number(kohort_model::Decimal::parse(&float.to_string(), false)?)
        }
        Value::Float(float) => ValueKey::Float((float + 0.0).to_bits()),
        Value::Date(days) => ValueKey::Nanoseconds(i128::from(days) * DAY),
        Value::Timestamp(nanoseconds) => ValueKey::Nanoseconds(nanoseconds),
        Value::Boolean(truth) => ValueKey::Truth(truth),
        Value::Text(text) if is_nfc(text) => ValueKey::Text(text.to_owned()),
        Value::Text(text) => ValueKey::Text(text.nfc().collect()),
    };
    let fits = match (&key, value_type) {
        (ValueKey::Number(mantissa, scale), ValueType::Integer) => *scale == 0 && i64::try_from(*mantissa).is_ok(),
        (ValueKey::Nanoseconds(nanoseconds), ValueType::Date) => nanoseconds % DAY == 0,
        _ => true,
    };
    fits.then_some(key)
}

/// The ids of a register's cells in the joined column.
pub(super) fn placed_ids(mut ids: Vec<u32>, placed: &[u32]) -> Vec<u32> {
    ids.iter_mut().filter(|id| **id != NULL).for_each(|id| *id = placed[*id as usize]);
    ids
}

#[cfg(test)]
mod tests {
    use kohort_model::Role;

    use super::*;

    /// Whether two texts of a column have the same value, each in its own notation.
    fn are_same(a: &str, b: &str, value_type: ValueType) -> bool {
        let read = |text| read(text, value_type, &Notation::default());
        read(a).is_some() && read(a) == read(b)
    }

    #[test]
    fn spellings_of_one_value_are_the_same() {
        let same = [
            (ValueType::Integer, "12", "12.0"),
            (ValueType::Integer, "1000", "1e3"),
            (ValueType::Decimal, "12.50", "12.5"),
            (ValueType::Decimal, "0.0000001", "1e-7"),
            (ValueType::Float, "12.50", "1.25e1"),
            (ValueType::Date, "1990-02-28", "1990-02-28T00:00:00"),
            (ValueType::Timestamp, "2020-01-01T01:00:00+01:00", "2020-01-01 00:00"),
            (ValueType::Boolean, "TRUE", "true"),
            (ValueType::Text, "Jose\u{301}", "Jos\u{e9}"),
        ];
        for (value_type, a, b) in same {
            assert!(are_same(a, b, value_type), "{a} {b}");
        }
        let different = [
            (ValueType::Integer, "12", "12.5"),
            (ValueType::Decimal, "12.50", "12.51"),
            (ValueType::Date, "1990-02-28", "1990-02-28T10:00:00"),
            (ValueType::Text, "01234", "1234"),
            (ValueType::Text, "12.50", "12.5"),
        ];
        for (value_type, a, b) in different {
            assert!(!are_same(a, b, value_type), "{a} {b}");
        }
    }

    #[test]
    fn texts_of_another_notation_are_respelled() {
        let mut private =
            Column::from_cells("weight", Role::Quasi, [Some("12,50"), Some("3")]).typed(ValueType::Decimal);
        private.notation = Notation { decimal_comma: true, date_format: None, ..Notation::default() };
        let mut values = ColumnValues::new(&private);
        let texts: Texts = ["12.5", "3", "0.25"].into_iter().collect();
        let notation = values.notation_of(&texts).unwrap();
        assert_eq!(notation, Notation::default());
        let Placed { ids, respelled } = values.place(4, &texts, &notation, &|_| true);
        let respelled = respelled.unwrap();
        assert_eq!((respelled.column, respelled.texts.as_slice()), (4, &[0, 2][..]));
        assert_eq!(respelled.as_read.iter().collect::<Vec<_>>(), ["12.5", "0.25"]);
        assert_eq!(ids, [0, 1, 2]);
        assert_eq!(values.into_texts().iter().collect::<Vec<_>>(), ["12,50", "3", "0,25"]);
    }

    #[test]
    fn numbers_keep_their_spelling_and_text_gives_way_to_a_known_one() {
        let numbers = Column::from_cells("x", Role::Quasi, [Some("12.50")]).typed(ValueType::Decimal);
        let texts: Texts = ["12.5", "12.50"].into_iter().collect();
        let mut values = ColumnValues::new(&numbers);
        let placed = values.place(0, &texts, &Notation::default(), &|_| true);
        assert_eq!((placed.ids.as_slice(), placed.respelled.is_none()), (&[1, 0][..], true));
        assert_eq!(values.same(), [0, 0]);
        let names = Column::from_cells("x", Role::Quasi, [Some("\u{e9}")]);
        let mut values = ColumnValues::new(&names);
        let placed = values.place(0, &["e\u{301}"].into_iter().collect(), &Notation::default(), &|_| true);
        assert_eq!((placed.ids.as_slice(), placed.respelled.is_some()), (&[0][..], true));
    }
}
