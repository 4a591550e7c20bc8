//! [`meaning`]: one spelling for all texts that mean the same value.
//!
//! By this spelling, the verifier decides which rows of a private table and of a register can belong to the same
//! person. The code is independent of the reader, whose join it checks: numbers are compared digit by digit and never
//! as binary integers, days are counted by another formula, and Unicode is composed by another library.
//!
//! # Deviations
//! A date format with a conversion that `date_by_format` does not know is read by [`Value::parse`].

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hasher};

use icu_normalizer::ComposingNormalizerBorrowed;
use kohort_model::{Notation, Value, ValueType};

/// The spelling of the value that a text stands for; `None` if the text is not of the type.
pub(crate) fn meaning<'t>(text: &'t str, value_type: ValueType, notation: &Notation) -> Option<Cow<'t, str>> {
    match value_type {
        ValueType::Text => Some(composed(text)),
        ValueType::Boolean => truth(text).map(Cow::Borrowed),
        ValueType::Integer | ValueType::Decimal => digits(&pointed(text, notation)).map(Cow::Owned),
        ValueType::Float => {
            let number: f64 = pointed(text, notation).parse().ok()?;
            // Adding 0.0 makes -0.0 and 0.0 the same number.
            (!number.is_nan()).then(|| Cow::Owned(format!("{:x}", (number + 0.0).to_bits())))
        }
        ValueType::Date | ValueType::Timestamp => {
            let nanoseconds = match &notation.date_format {
                None => instant(text)?,
                Some(format) => match date_by_format(text, format) {
                    Ok(nanoseconds) => nanoseconds?,
                    Err(UnknownConversion) => match Value::parse(text, value_type, notation)? {
                        Value::Date(days) => i128::from(days) * DAY,
                        Value::Timestamp(nanoseconds) => nanoseconds,
                        _ => return None,
                    },
                },
            };
            Some(Cow::Owned(nanoseconds.to_string()))
        }
    }
}

/// A hash of a person's key that is the same for all spellings of one value. Keys are read as numbers (unless they have
/// leading zeros), dates and timestamps, truth values, or else as text. Two different keys share a hash once in 2^64.
pub fn key_print(key: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    let is_plain_number = key.len() < 19
        && key.bytes().all(|byte| byte.is_ascii_digit())
        && (!key.ends_with('0') || key == "0")
        && (!key.starts_with('0') || key == "0");
    if is_plain_number {
        // A short cut for the most common keys: `digits` would return them unchanged.
        hasher.write(key.as_bytes());
    } else {
        let meaning = if has_leading_zero(key) { None } else { digits(key).map(Cow::Owned) };
        let meaning = meaning
            .or_else(|| instant(key).map(|nanoseconds| Cow::Owned(format!("{nanoseconds} ns"))))
            .or_else(|| truth(key).map(Cow::Borrowed))
            .unwrap_or_else(|| composed(key));
        hasher.write(meaning.as_bytes());
    }
    hasher.finish()
}

pub(crate) const DAY: i128 = 86_400_000_000_000;

fn composed(text: &str) -> Cow<'_, str> {
    if text.is_ascii() { Cow::Borrowed(text) } else { ComposingNormalizerBorrowed::new_nfc().normalize(text) }
}

fn truth(text: &str) -> Option<&'static str> {
    match text {
        "true" | "True" | "TRUE" => Some("true"),
        "false" | "False" | "FALSE" => Some("false"),
        _ => None,
    }
}

fn pointed<'t>(text: &'t str, notation: &Notation) -> Cow<'t, str> {
    if !notation.decimal_comma {
        return Cow::Borrowed(text);
    }
    // With a decimal comma, a point is not a decimal sign, so it must not become one.
    Cow::Owned(text.replace('.', "?").replace(',', "."))
}

fn has_leading_zero(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    digits.len() > 1 && digits[0] == b'0' && digits[1].is_ascii_digit()
}

/// A decimal number as its digits, without zeros at either end, and a power of ten: `12.50` is `125e-1`.
fn digits(text: &str) -> Option<String> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        None => (unsigned, 0),
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        None => (mantissa, ""),
        Some((_, "")) => return None,
        Some(parts) => parts,
    };
    if whole.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let all = [whole, fraction].concat();
    let significant = all.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return Some("0".to_owned());
    }
    let trailing = all.len() - all.trim_end_matches('0').len();
    let power = exponent.checked_add(trailing as i32)?.checked_sub(fraction.len() as i32)?;
    let sign = if unsigned.len() < text.len() { "-" } else { "" };
    Some(if power == 0 { format!("{sign}{significant}") } else { format!("{sign}{significant}e{power}") })
}

/// Nanoseconds since 1970 of an ISO date, with or without a time of day and an offset from UTC.
fn instant(text: &str) -> Option<i128> {
    let bytes = text.as_bytes();
    let (date, rest) = text.split_at_checked(10)?;
    if bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let midnight = i128::from(day(number(&date[..4])?, number(&date[5..7])?, number(&date[8..])?)?) * DAY;
    if rest.is_empty() {
        return Some(midnight);
    }
    let time = rest.strip_prefix(['T', 't', ' '])?;
    let (clock, offset) = match time.find(['Z', 'z', '+', '-']) {
        None => (time, 0),
        Some(at) => (&time[..at], offset_minutes(&time[at..])?),
    };
    Some(midnight + time_of_day(clock)? - i128::from(offset) * 60_000_000_000)
}

/// `hh:mm`, `hh:mm:ss` or `hh:mm:ss.f` in nanoseconds.
fn time_of_day(clock: &str) -> Option<i128> {
    let (clock, fraction) = clock.split_once('.').map_or((clock, None), |(clock, fraction)| (clock, Some(fraction)));
    let parts: Vec<&str> = clock.split(':').collect();
    if !matches!(parts.len(), 2 | 3)
        || parts.iter().any(|part| part.len() != 2)
        || (fraction.is_some() && parts.len() < 3)
    {
        return None;
    }
    let (hours, minutes) = (number(parts[0])?, number(parts[1])?);
    let seconds = parts.get(2).map_or(Some(0), |seconds| number(seconds))?;
    if hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    let nanoseconds = match fraction {
        None => 0,
        Some(fraction) => {
            let digits = fraction.get(..fraction.len().min(9))?;
            i128::from(number(fraction).map(|_| number(digits))??) * 10_i128.pow(9 - digits.len() as u32)
        }
    };
    Some(i128::from((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000 + nanoseconds)
}

/// The minutes of `Z`, `+01`, `+0100` or `+01:00`.
fn offset_minutes(text: &str) -> Option<i64> {
    if matches!(text, "Z" | "z") {
        return Some(0);
    }
    let (sign, digits) = text.split_at_checked(1)?;
    let digits = digits.replacen(':', "", 1);
    let minutes = match digits.len() {
        2 => number(&digits)? * 60,
        4 => number(&digits[..2])? * 60 + number(&digits[2..])?,
        _ => return None,
    };
    match sign {
        "+" => Some(minutes),
        "-" => Some(-minutes),
        _ => None,
    }
}

/// The format has a conversion that `date_by_format` does not know.
struct UnknownConversion;

/// Nanoseconds since 1970 of a text in a `strftime` format of digits: `%d.%m.%Y %H:%M` and the like.
fn date_by_format(text: &str, format: &str) -> Result<Option<i128>, UnknownConversion> {
    let (mut year, mut month, mut day_of_month) = (None, None, None);
    let mut clock = [0; 3];
    let (mut rest, mut pattern) = (text, format.chars());
    let mut fits = true;
    while let Some(expected) = pattern.next() {
        if expected != '%' {
            match rest.strip_prefix(expected) {
                Some(behind) => rest = behind,
                None => fits = false,
            }
            continue;
        }
        let conversion = match pattern.next() {
            Some('-') => pattern.next(),
            conversion => conversion,
        };
        let most = match conversion {
            Some('Y') => 4,
            Some('m' | 'd' | 'e' | 'H' | 'M' | 'S') => 2,
            _ => return Err(UnknownConversion),
        };
        rest = if conversion == Some('e') { rest.trim_start_matches(' ') } else { rest };
        let n_digits = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let value = number(&rest[..n_digits]);
        fits &= value.is_some();
        rest = &rest[n_digits..];
        match conversion {
            Some('Y') => year = value,
            Some('m') => month = value,
            Some('H') => clock[0] = value.unwrap_or(0),
            Some('M') => clock[1] = value.unwrap_or(0),
            Some('S') => clock[2] = value.unwrap_or(0),
            _ => day_of_month = value,
        }
    }
    let (Some(year), Some(month), Some(day_of_month)) = (year, month, day_of_month) else { return Ok(None) };
    let [hours, minutes, seconds] = clock;
    if !fits || !rest.is_empty() || hours > 23 || minutes > 59 || seconds > 60 {
        return Ok(None);
    }
    let of_day = i128::from((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000;
    Ok(day(year, month, day_of_month).map(|days| i128::from(days) * DAY + of_day))
}

/// The whole number that a text of digits spells.
pub(crate) fn number(text: &str) -> Option<i64> {
    let is_number = !text.is_empty() && text.len() <= 18 && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// Days since 1970-01-01 in the Gregorian calendar, counted in years that begin in March.
pub(crate) fn day(year: i64, month: i64, day_of_month: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if day_of_month < 1 || day_of_month > last {
        return None;
    }
    let year = year - i64::from(month < 3);
    let since_march = (153 * ((month + 9) % 12) + 2) / 5 + day_of_month - 1;
    Some(year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + since_march - 719_468)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str, value_type: ValueType) -> Option<String> {
        meaning(text, value_type, &Notation::default()).map(Cow::into_owned)
    }

    #[test]
    fn numbers_mean_the_same_whatever_their_zeros_and_exponents() {
        for same in ["12.50", "12.5", "1.25e1", "0012.500", "125e-1"] {
            assert_eq!(of(same, ValueType::Decimal), of("12.5", ValueType::Decimal), "{same}");
        }
        for other in ["12.51", "-12.5", "125", "1.25"] {
            assert_ne!(of(other, ValueType::Decimal), of("12.5", ValueType::Decimal), "{other}");
        }
        assert_eq!(of("-0.0", ValueType::Decimal), of("0", ValueType::Integer));
        assert_eq!(of("9007199254740993", ValueType::Integer).as_deref(), Some("9007199254740993"));
        assert_eq!(of("0.1", ValueType::Float), of("1e-1", ValueType::Float));
        for bad in ["", "-", "1.", ".5", "1,5", "x", "1e", "--1"] {
            assert_eq!(of(bad, ValueType::Decimal), None, "{bad}");
        }
        let comma = Notation { decimal_comma: true, date_format: None, ..Notation::default() };
        assert_eq!(meaning("12,50", ValueType::Decimal, &comma).as_deref(), Some("125e-1"));
        assert_eq!(meaning("12.50", ValueType::Decimal, &comma), None);
    }

    #[test]
    fn instants_mean_the_same_in_every_zone_and_format() {
        let midnight = of("1984-03-17", ValueType::Date);
        for same in ["1984-03-17T00:00:00Z", "1984-03-17 01:00+01", "1984-03-16T22:30:00.000-0130", "1984-03-17 00:00"]
        {
            assert_eq!(of(same, ValueType::Timestamp), midnight, "{same}");
        }
        let german = Notation { decimal_comma: false, date_format: Some("%d.%m.%Y".to_owned()), ..Notation::default() };
        assert_eq!(meaning("17.3.1984", ValueType::Date, &german).map(Cow::into_owned), midnight);
        let named = Notation { decimal_comma: false, date_format: Some("%d %b %Y".to_owned()), ..Notation::default() };
        assert_eq!(meaning("17 Mar 1984", ValueType::Date, &named).map(Cow::into_owned), midnight);
        for bad in ["1984-02-30", "1984-13-01", "1984-03-17T24:00:00", "1984-03-17T10", "1984-03-17T10:00:00+1"] {
            assert_eq!(of(bad, ValueType::Timestamp), None, "{bad}");
        }
    }

    #[test]
    fn text_means_the_same_in_every_composition_and_keeps_its_zeros() {
        assert_eq!(of("e\u{301}", ValueType::Text), of("\u{e9}", ValueType::Text));
        assert_ne!(of("e", ValueType::Text), of("\u{e9}", ValueType::Text));
        assert_ne!(of("01234", ValueType::Text), of("1234", ValueType::Text));
    }

    #[test]
    fn keys_are_the_same_person_whatever_they_are_spelled_like() {
        for (a, b) in
            [("7", "7.0"), ("70", "7e1"), ("Andre\u{301}", "Andr\u{e9}"), ("2020-01-01", "2020-01-01T00:00:00Z")]
        {
            assert_eq!(key_print(a), key_print(b), "{a} {b}");
        }
        for (a, b) in [("7", "07"), ("7", "8"), ("7", "-7"), ("70", "7"), ("a7", "A7"), ("7.1", "7")] {
            assert_ne!(key_print(a), key_print(b), "{a} {b}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn days_and_decimals_mean_what_the_model_says(
            days in -700_000i32..2_900_000,
            (a, b) in ("-?[0-9]{1,3}(\\.[0-9]{1,3})?", "-?[0-9]{1,3}(\\.[0-9]{1,3})?"),
        ) {
            if let Some(text) = Value::Date(days).spell(&Notation::default()).filter(|text| text.len() == 10) {
                let expected = (i128::from(days) * DAY).to_string();
                prop_assert_eq!(of(&text, ValueType::Date), Some(expected));
            }
            let parse = |text| Value::parse(text, ValueType::Decimal, &Notation::default());
            prop_assert_eq!(of(&a, ValueType::Decimal) == of(&b, ValueType::Decimal), parse(&a) == parse(&b));
        }
    }
}
