//! The type of the texts of a column.
//!
//! Types are inferred from all distinct texts, and only if every text is spelled in the canonical way: leading zeros, a plus
//! or `-0` make a column text, so that a code is never taken for a number. If all texts have the shape of dates and some are
//! impossible, that is an error; such a column never silently becomes text.

use std::collections::BTreeSet;

use kohort_model::{Notation, Texts, Value, ValueType};

/// The texts of a column that don't fit its type.
#[derive(Debug, PartialEq)]
pub(crate) struct Misfit {
    pub(super) why: Why,
    /// The ids of these texts.
    pub(super) ids: Vec<u32>,
}

/// Why texts don't fit the type.
#[derive(Debug, PartialEq)]
pub(super) enum Why {
    /// Some texts are not of the type that the column should have.
    NotOfType(ValueType),
    /// Some texts look like dates but are impossible, and all others are dates.
    ImpossibleDates,
}

/// The type of a column's texts; text if they have no other.
pub fn infer_type(texts: &Texts, notation: &Notation) -> ValueType {
    infer(texts, notation).map_or(ValueType::Text, |(value_type, _)| value_type)
}

/// Checks that every text is of the type.
pub(super) fn check(texts: &Texts, value_type: ValueType, notation: &Notation) -> Result<(), Misfit> {
    let ids = ids_where(texts, |text| Value::parse(text, value_type, notation).is_none());
    if ids.is_empty() { Ok(()) } else { Err(Misfit { why: Why::NotOfType(value_type), ids }) }
}

/// The type of all texts, and their notation. ISO dates are recognized even if the spec gives another date format.
pub(crate) fn infer(texts: &Texts, notation: &Notation) -> Result<(ValueType, Notation), Misfit> {
    if texts.is_empty() {
        return Ok((ValueType::Text, notation.clone()));
    }
    let numbers = [
        (ValueType::Integer, is_integer as fn(&str, &Notation) -> bool),
        (ValueType::Decimal, is_decimal),
        (ValueType::Float, is_float),
        (ValueType::Boolean, |text, notation| Value::parse(text, ValueType::Boolean, notation).is_some()),
    ];
    for (value_type, is_one) in numbers {
        if texts.iter().all(|text| is_one(text, notation)) {
            return Ok((value_type, notation.clone()));
        }
    }
    if notation.date_format.is_some()
        && let Some(value_type) = infer_formatted_dates(texts, notation)?
    {
        return Ok((value_type, notation.clone()));
    }
    let iso = Notation { date_format: None, ..notation.clone() };
    Ok(match infer_iso_dates(texts, &iso)? {
        Some(value_type) => (value_type, iso),
        None => (ValueType::Text, notation.clone()),
    })
}

fn infer_iso_dates(texts: &Texts, iso: &Notation) -> Result<Option<ValueType>, Misfit> {
    let shapes = [(ValueType::Date, has_date_shape as fn(&str) -> bool), (ValueType::Timestamp, has_timestamp_shape)];
    for (value_type, has_shape) in shapes {
        if texts.iter().all(has_shape) {
            let ids = ids_where(texts, |text| Value::parse(text, value_type, iso).is_none());
            return if ids.is_empty() { Ok(Some(value_type)) } else { Err(Misfit { why: Why::ImpossibleDates, ids }) };
        }
    }
    Ok(None)
}

/// Dates in a format that the user gave. The possible dates show which shape the impossible ones have.
fn infer_formatted_dates(texts: &Texts, notation: &Notation) -> Result<Option<ValueType>, Misfit> {
    // Timestamps are tried first, because their format would also pass as one of dates.
    for value_type in [ValueType::Timestamp, ValueType::Date] {
        let is_one = |text: &str| Value::parse(text, value_type, notation).is_some();
        let shapes: BTreeSet<String> = texts.iter().filter(|text| is_one(text)).map(shape).collect();
        if !shapes.is_empty() && texts.iter().all(|text| shapes.contains(&shape(text))) {
            let ids = ids_where(texts, |text| !is_one(text));
            return if ids.is_empty() { Ok(Some(value_type)) } else { Err(Misfit { why: Why::ImpossibleDates, ids }) };
        }
    }
    Ok(None)
}

fn ids_where(texts: &Texts, condition: impl Fn(&str) -> bool) -> Vec<u32> {
    (0..).zip(texts.iter()).filter(|(_, text)| condition(text)).map(|(id, _)| id).collect()
}

/// A text in which every run of digits is replaced by one digit.
fn shape(text: &str) -> String {
    let mut shape = String::new();
    for letter in text.chars() {
        let letter = if letter.is_ascii_digit() { '0' } else { letter };
        if letter != '0' || !shape.ends_with('0') {
            shape.push(letter);
        }
    }
    shape
}

fn has_date_shape(text: &str) -> bool {
    let digit_or_dash = |(i, byte): (usize, u8)| if i == 4 || i == 7 { byte == b'-' } else { byte.is_ascii_digit() };
    text.len() == 10 && text.bytes().enumerate().all(digit_or_dash)
}

/// Whether a text looks like a date, with or without a time of day.
fn has_timestamp_shape(text: &str) -> bool {
    match text.split_at_checked(10) {
        Some((date, "")) => has_date_shape(date),
        Some((date, time)) => {
            let mut time = time.bytes();
            has_date_shape(date)
                && matches!(time.next(), Some(b'T' | b' '))
                && time.next().is_some_and(|byte| byte.is_ascii_digit())
        }
        None => false,
    }
}

fn is_integer(text: &str, _: &Notation) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    is_whole(digits) && text != "-0" && text.parse::<i64>().is_ok()
}

fn is_decimal(text: &str, notation: &Notation) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let point = if notation.decimal_comma { ',' } else { '.' };
    let whole = digits.split_once(point).map_or(digits, |(whole, _)| whole);
    is_whole(whole) && text != "-0" && Value::parse(text, ValueType::Decimal, notation).is_some()
}

fn is_float(text: &str, notation: &Notation) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.eq_ignore_ascii_case("inf") || digits.eq_ignore_ascii_case("infinity") {
        return true;
    }
    let mantissa = digits.split_once(['e', 'E']).map_or(digits, |(mantissa, _)| mantissa);
    let point = if notation.decimal_comma { ',' } else { '.' };
    let (whole, fraction) = mantissa.split_once(point).unwrap_or((mantissa, "0"));
    is_whole(whole)
        && text != "-0"
        && !fraction.is_empty()
        && fraction.bytes().all(|byte| byte.is_ascii_digit())
        && Value::parse(text, ValueType::Float, notation).is_some()
}

/// Whether digits have no needless zeros in front.
fn is_whole(digits: &str) -> bool {
    !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> ValueType {
        infer(&texts.iter().collect(), &Notation::default()).unwrap().0
    }

    #[test]
    fn numbers_are_numbers_only_when_spelled_canonically() {
        assert_eq!(of(&["1", "-20", "0", "9007199254740993"]), ValueType::Integer);
        assert_eq!(of(&["1", "01"]), ValueType::Text);
        assert_eq!(of(&["1", "+1"]), ValueType::Text);
        assert_eq!(of(&["1", "-0"]), ValueType::Text);
        assert_eq!(of(&["1", ""]), ValueType::Text);
        assert_eq!(of(&["1", "9223372036854775808"]), ValueType::Decimal);
        assert_eq!(of(&["1", "-0.50"]), ValueType::Decimal);
        assert_eq!(of(&["1.5", "00.5"]), ValueType::Text);
        assert_eq!(of(&["1.5", "2e5", "-inf"]), ValueType::Float);
        assert_eq!(of(&["1.5", "NaN"]), ValueType::Text);
        assert_eq!(of(&["1,5"]), ValueType::Text);
        assert_eq!(of(&["true", "False"]), ValueType::Boolean);
        assert_eq!(of(&["true", "1"]), ValueType::Text);
        assert_eq!(of(&[]), ValueType::Text);
    }

    #[test]
    fn a_decimal_comma_makes_points_text() {
        let notation = Notation { decimal_comma: true, date_format: None, ..Notation::default() };
        let of = |texts: &[&str]| infer(&texts.iter().collect(), &notation).unwrap().0;
        assert_eq!(of(&["1,5", "2"]), ValueType::Decimal);
        assert_eq!(of(&["1,5", "2.5"]), ValueType::Text);
    }

    #[test]
    fn dates_and_timestamps_are_found() {
        assert_eq!(of(&["1969-12-31", "2000-02-29"]), ValueType::Date);
        assert_eq!(of(&["1969-12-31", "2000-02-29T10:00:00Z"]), ValueType::Timestamp);
        assert_eq!(of(&["1969-12-31", "unknown"]), ValueType::Text);
    }

    #[test]
    fn impossible_dates_are_an_error_and_not_text() {
        let texts = ["1990-02-28", "1990-02-30", "1990-13-01"].iter().collect();
        let misfit = infer(&texts, &Notation::default()).unwrap_err();
        assert_eq!(misfit, Misfit { why: Why::ImpossibleDates, ids: vec![1, 2] });
        assert_eq!(infer_type(&texts, &Notation::default()), ValueType::Text);
        let texts = ["1990-02-28 10:00:00", "1990-02-30 10:00:00"].iter().collect();
        assert_eq!(infer(&texts, &Notation::default()).unwrap_err().ids, [1]);
    }

    #[test]
    fn a_date_format_is_followed_where_it_fits() {
        let notation =
            Notation { decimal_comma: false, date_format: Some("%d.%m.%Y".to_owned()), ..Notation::default() };
        let of = |texts: &[&str]| infer(&texts.iter().collect(), &notation);
        assert_eq!(of(&["31.12.1999", "1.1.2000"]).unwrap(), (ValueType::Date, notation.clone()));
        assert_eq!(of(&["31.12.1999", "30.02.2000"]).unwrap_err().ids, [1]);
        assert_eq!(of(&["31.12.1999", "unknown"]).unwrap().0, ValueType::Text);
        assert_eq!(of(&["1999-12-31"]).unwrap(), (ValueType::Date, Notation::default()));
        let with_time =
            Notation { decimal_comma: false, date_format: Some("%d.%m.%Y %H:%M".to_owned()), ..Notation::default() };
        let texts = ["31.12.1999 23:59"].iter().collect();
        assert_eq!(infer(&texts, &with_time).unwrap().0, ValueType::Timestamp);
    }

    #[test]
    fn texts_that_are_not_of_a_given_type_are_listed() {
        let texts = ["1", "x", "2.5"].iter().collect();
        let misfit = check(&texts, ValueType::Integer, &Notation::default()).unwrap_err();
        assert_eq!(misfit, Misfit { why: Why::NotOfType(ValueType::Integer), ids: vec![1, 2] });
    }
}
