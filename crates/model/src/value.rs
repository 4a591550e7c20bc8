//! [`Value`]: the value that a text spells, for everything that needs order or distance.
//!
//! Values are exact: integers of 64 bits, decimals of up to 38 digits, dates as days and timestamps as nanoseconds
//! since 1970-01-01. The time zone of the machine does not matter. Parsing never rounds. A release shows original
//! texts, never texts made from values.

use std::cmp::Ordering;
use std::fmt::{self, Write as _};

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime};

use crate::Codes;

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueType {
    /// Whole numbers of 64 bits.
    Integer,
    /// Decimal fractions of up to 38 digits.
    Decimal,
    /// Floating-point numbers.
    Float,
    /// Calendar dates.
    Date,
    /// Dates with a time of day, with or without an offset from UTC.
    Timestamp,
    /// Text, ordered by its bytes.
    Text,
    /// `true` and `false`.
    Boolean,
}

impl ValueType {
    /// Every type.
    pub const ALL: [ValueType; 7] = [
        ValueType::Integer,
        ValueType::Decimal,
        ValueType::Float,
        ValueType::Date,
        ValueType::Timestamp,
        ValueType::Text,
        ValueType::Boolean,
    ];

    /// The word a spec and a manifest use.
    pub fn word(self) -> &'static str {
        match self {
            ValueType::Integer => "integer",
            ValueType::Decimal => "decimal",
            ValueType::Float => "float",
            ValueType::Date => "date",
            ValueType::Timestamp => "timestamp",
            ValueType::Text => "text",
            ValueType::Boolean => "boolean",
        }
    }

    /// The type with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        ValueType::ALL.into_iter().find(|value_type| value_type.word() == word)
    }

    /// Whether ranges of values mean something: all but text and booleans.
    pub fn is_ordered(self) -> bool {
        match self {
            ValueType::Integer | ValueType::Decimal | ValueType::Float | ValueType::Date | ValueType::Timestamp => true,
            ValueType::Text | ValueType::Boolean => false,
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// How numbers and dates of a column are spelled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notation {
    /// Whether decimals are written with a comma, as in `3,14`.
    pub decimal_comma: bool,
    /// The `strftime` format of dates and timestamps; ISO 8601 without it.
    pub date_format: Option<String>,
    /// How cells at the ends of the column are coded, if they are.
    pub codes: Codes,
}

impl Notation {
    /// The separator between the two bounds of a range of this type: a comma, or a semicolon if numbers contain commas.
    pub fn range_separator(&self, value_type: ValueType) -> char {
        if self.decimal_comma && matches!(value_type, ValueType::Decimal | ValueType::Float) { ';' } else { ',' }
    }
}

/// An exact decimal fraction, `mantissa / 10^scale`.
#[derive(Clone, Copy, Debug)]
pub struct Decimal {
    /// All digits, as one whole number.
    pub mantissa: i128,
    /// The number of digits after the point, at most 38.
    pub scale: u32,
}

/// A value, ordered as its type says. Only values of the same type are compared.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// A whole number.
    Integer(i64),
    /// A decimal fraction.
    Decimal(Decimal),
    /// A floating-point number, never NaN.
    Float(f64),
    /// Days since 1970-01-01.
    Date(i32),
    /// Nanoseconds since 1970-01-01T00:00:00, in UTC if the text has an offset.
    Timestamp(i128),
    /// Text.
    Text(&'a str),
    /// A truth value.
    Boolean(bool),
}

impl<'a> Value<'a> {
    /// The value that a text spells; `None` if it is not of this type.
    pub fn parse(text: &'a str, value_type: ValueType, notation: &Notation) -> Option<Value<'a>> {
        if notation.codes.are_none() {
            return Value::parse_uncoded(text, value_type, notation);
        }
        let parse = |text| Value::parse_uncoded(text, value_type, notation);
        notation.codes.read(text, |bound| Value::parse_uncoded(bound, value_type, notation), parse)
    }

    fn parse_uncoded(text: &'a str, value_type: ValueType, notation: &Notation) -> Option<Value<'a>> {
        match value_type {
            ValueType::Integer => text.parse().ok().map(Value::Integer),
            ValueType::Decimal => Decimal::parse(text, notation.decimal_comma).map(Value::Decimal),
            ValueType::Float => parse_float(text, notation.decimal_comma).map(Value::Float),
            ValueType::Date => parse_date(text, notation.date_format.as_deref()).map(Value::Date),
            ValueType::Timestamp => parse_timestamp(text, notation.date_format.as_deref()).map(Value::Timestamp),
            ValueType::Text => Some(Value::Text(text)),
            ValueType::Boolean => match text {
                "true" | "True" | "TRUE" => Some(Value::Boolean(true)),
                "false" | "False" | "FALSE" => Some(Value::Boolean(false)),
                _ => None,
            },
        }
    }

    /// How far `self` is above `other`. For values without a distance, only their order counts: -1, 0 or 1.
    pub fn distance_from(&self, other: &Value<'_>) -> f64 {
        match (self, other) {
            (Value::Integer(a), Value::Integer(b)) => (i128::from(*a) - i128::from(*b)) as f64,
            (Value::Decimal(a), Value::Decimal(b)) => a.minus(b),
            (Value::Float(a), Value::Float(b)) => a - b,
            (Value::Date(a), Value::Date(b)) => (i64::from(*a) - i64::from(*b)) as f64,
            (Value::Timestamp(a), Value::Timestamp(b)) => (a - b) as f64,
            _ => match self.cmp(other) {
                Ordering::Equal => 0.0,
                Ordering::Less => -1.0,
                Ordering::Greater => 1.0,
            },
        }
    }

    /// A text that spells the value in this notation; `None` if the notation can't spell it.
    pub fn spell(&self, notation: &Notation) -> Option<String> {
        let pointed = |text: String| if notation.decimal_comma { text.replace('.', ",") } else { text };
        let formatted = |time: NaiveDateTime, format: &str| {
            let mut text = String::new();
            write!(text, "{}", time.format(format)).ok().map(|()| text)
        };
        let text = match self {
            Value::Integer(number) => number.to_string(),
            Value::Decimal(number) => pointed(number.to_string()),
            Value::Float(number) => pointed(number.to_string()),
            Value::Date(days) => {
                let date = NaiveDate::from_epoch_days(*days)?.and_time(NaiveTime::MIN);
                formatted(date, notation.date_format.as_deref().unwrap_or("%Y-%m-%d"))?
            }
            Value::Timestamp(nanoseconds) => {
                let (seconds, rest) = (nanoseconds.div_euclid(1_000_000_000), nanoseconds.rem_euclid(1_000_000_000));
                let time = DateTime::from_timestamp(i64::try_from(seconds).ok()?, rest as u32)?.naive_utc();
                formatted(time, notation.date_format.as_deref().unwrap_or("%Y-%m-%dT%H:%M:%S%.fZ"))?
            }
            Value::Text(text) => (*text).to_owned(),
            Value::Boolean(truth) => truth.to_string(),
        };
        Some(text)
    }

    fn rank_of_type(&self) -> u8 {
        match self {
            Value::Integer(_) => 0,
            Value::Decimal(_) => 1,
            Value::Float(_) => 2,
            Value::Date(_) => 3,
            Value::Timestamp(_) => 4,
            Value::Text(_) => 5,
            Value::Boolean(_) => 6,
        }
    }
}

impl Ord for Value<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Value::Integer(a), Value::Integer(b)) => a.cmp(b),
            (Value::Decimal(a), Value::Decimal(b)) => a.cmp(b),
            // -0.0 and 0.0 are one value, and NaN is never parsed.
            (Value::Float(a), Value::Float(b)) => (a + 0.0).total_cmp(&(b + 0.0)),
            (Value::Date(a), Value::Date(b)) => a.cmp(b),
            (Value::Timestamp(a), Value::Timestamp(b)) => a.cmp(b),
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            (Value::Boolean(a), Value::Boolean(b)) => a.cmp(b),
            _ => self.rank_of_type().cmp(&other.rank_of_type()),
        }
    }
}

impl PartialOrd for Value<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value<'_> {}

impl Decimal {
    /// Reads `-12.50`; no exponent, no leading plus, at most 38 digits.
    pub fn parse(text: &str, decimal_comma: bool) -> Option<Decimal> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let point = if decimal_comma { ',' } else { '.' };
        let (whole, fraction) = digits.split_once(point).unwrap_or((digits, ""));
        let has_point = whole.len() < digits.len();
        let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !all_digits(whole) || (has_point && !all_digits(fraction)) || whole.len() + fraction.len() > 38 {
            return None;
        }
        let mut mantissa: i128 = 0;
        for digit in whole.bytes().chain(fraction.bytes()) {
            mantissa = mantissa * 10 + i128::from(digit - b'0');
        }
        Some(Decimal { mantissa: if negative { -mantissa } else { mantissa }, scale: fraction.len() as u32 })
    }

    /// The same number with as few digits after the point as possible, so that equal numbers become identical.
    pub fn shortest(self) -> Decimal {
        let Decimal { mut mantissa, mut scale } = self;
        while scale > 0 && mantissa % 10 == 0 {
            (mantissa, scale) = (mantissa / 10, scale - 1);
        }
        Decimal { mantissa, scale }
    }

    fn whole_and_fraction(&self) -> (i128, i128) {
        let unit = 10_i128.pow(self.scale);
        (self.mantissa.div_euclid(unit), self.mantissa.rem_euclid(unit))
    }

    fn minus(&self, other: &Decimal) -> f64 {
        let (whole, fraction) = self.whole_and_fraction();
        let (other_whole, other_fraction) = other.whole_and_fraction();
        (whole - other_whole) as f64 + fraction as f64 / 10_f64.powi(self.scale as i32)
            - other_fraction as f64 / 10_f64.powi(other.scale as i32)
    }
}

impl fmt::Display for Decimal {
    /// Writes the number with a point, and without zeros at its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Decimal { mantissa, scale } = self.shortest();
        let sign = if mantissa < 0 { "-" } else { "" };
        let digits = format!("{:0>width$}", mantissa.unsigned_abs(), width = scale as usize + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale as usize);
        if fraction.is_empty() { write!(f, "{sign}{whole}") } else { write!(f, "{sign}{whole}.{fraction}") }
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let (whole, fraction) = self.whole_and_fraction();
        let (other_whole, other_fraction) = other.whole_and_fraction();
        // Fractions are below 10^scale <= 10^38, so they stay below 10^38 when they are aligned.
        let scale = self.scale.max(other.scale);
        whole.cmp(&other_whole).then_with(|| {
            (fraction * 10_i128.pow(scale - self.scale)).cmp(&(other_fraction * 10_i128.pow(scale - other.scale)))
        })
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

fn parse_float(text: &str, decimal_comma: bool) -> Option<f64> {
    let number = match decimal_comma {
        false => text.parse::<f64>(),
        // With a decimal comma, a point is not a decimal sign, so it must not become one.
        true if text.contains('.') => return None,
        true => text.replace(',', ".").parse(),
    };
    number.ok().filter(|number| !number.is_nan())
}

fn days(date: NaiveDate) -> i32 {
    date.to_epoch_days()
}

fn parse_date(text: &str, format: Option<&str>) -> Option<i32> {
    match format {
        Some(format) => NaiveDate::parse_from_str(text, format).ok().map(days),
        None => {
            let bytes = text.as_bytes();
            let shape = bytes.len() == 10
                && bytes
                    .iter()
                    .enumerate()
                    .all(|(i, byte)| if i == 4 || i == 7 { *byte == b'-' } else { byte.is_ascii_digit() });
            let number = |range: std::ops::Range<usize>| text[range].parse::<u32>().ok();
            if !shape {
                return None;
            }
            NaiveDate::from_ymd_opt(number(0..4)? as i32, number(5..7)?, number(8..10)?).map(days)
        }
    }
}

fn parse_timestamp(text: &str, format: Option<&str>) -> Option<i128> {
    let nanoseconds = |time: NaiveDateTime| {
        i128::from(time.and_utc().timestamp()) * 1_000_000_000 + i128::from(time.and_utc().timestamp_subsec_nanos())
    };
    if let Some(format) = format {
        return NaiveDateTime::parse_from_str(text, format)
            .ok()
            .or_else(|| DateTime::parse_from_str(text, format).ok().map(|time| time.naive_utc()))
            .map(nanoseconds);
    }
    // A date without a time means midnight, so that a column may mix the two.
    if let Some(date) = parse_date(text, None) {
        return Some(i128::from(date) * 86_400_000_000_000);
    }
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(nanoseconds(time.naive_utc()));
    }
    // PostgreSQL writes `+01`, and other programs write `+0100`.
    let with_offset = ["%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%d %H:%M:%S%.f%#z", "%Y-%m-%dT%H:%M%#z", "%Y-%m-%d %H:%M%#z"];
    if let Some(time) = with_offset.iter().find_map(|format| DateTime::parse_from_str(text, format).ok()) {
        return Some(nanoseconds(time.naive_utc()));
    }
    ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"]
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())
        .map(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, value_type: ValueType) -> Option<Value<'_>> {
        Value::parse(text, value_type, &Notation::default())
    }

    #[test]
    fn integers_beyond_the_mantissa_of_a_float_stay_apart() {
        let a = parse("9007199254740993", ValueType::Integer).unwrap();
        let b = parse("9007199254740992", ValueType::Integer).unwrap();
        assert!(a > b);
        assert_eq!(a.distance_from(&b), 1.0);
    }

    #[test]
    fn decimals_compare_by_value_whatever_their_scale() {
        let decimal = |text| parse(text, ValueType::Decimal).unwrap();
        assert_eq!(decimal("1.50"), decimal("1.5"));
        assert!(decimal("-1.25") < decimal("-1.2"));
        assert!(decimal("-0.5") < decimal("0"));
        assert!(
            decimal("99999999999999999999999999999999999999")
                > decimal("0.99999999999999999999999999999999999999"[..39].trim_end())
        );
        assert_eq!(decimal("2.5").distance_from(&decimal("-1")), 3.5);
        for bad in ["", "-", "1.", ".5", "+1", "1e5", "1,5", "123456789012345678901234567890123456789"] {
            assert!(parse(bad, ValueType::Decimal).is_none(), "{bad}");
        }
    }

    #[test]
    fn dates_before_1970_and_out_of_range() {
        assert_eq!(parse("1969-12-31", ValueType::Date), Some(Value::Date(-1)));
        assert_eq!(parse("1600-02-29", ValueType::Date), Some(Value::Date(-135_081)));
        for bad in ["1970-02-30", "1970-13-01", "1970-1-1", "19700101", "0000-00-00"] {
            assert!(parse(bad, ValueType::Date).is_none(), "{bad}");
        }
    }

    #[test]
    fn timestamps_keep_their_offset_and_no_local_zone_enters() {
        let timestamp = |text| parse(text, ValueType::Timestamp).unwrap();
        assert_eq!(timestamp("1970-01-01T01:00:00+01:00"), timestamp("1970-01-01T00:00:00Z"));
        assert_eq!(timestamp("1970-01-01 00:00:00.000000001"), Value::Timestamp(1));
        assert_eq!(timestamp("1969-12-31"), Value::Timestamp(-86_400_000_000_000));
        for same in ["1970-01-01 02:00:00+02", "1970-01-01 02:00+0200", "1969-12-31T22:30:00.000-01:30"] {
            assert_eq!(timestamp(same), Value::Timestamp(0), "{same}");
        }
    }

    #[test]
    fn a_value_is_spelled_so_that_it_is_read_again() {
        let german = Notation { decimal_comma: true, date_format: Some("%d.%m.%Y".to_owned()), ..Notation::default() };
        let spelled = |text, value_type, notation: &Notation| parse(text, value_type).unwrap().spell(notation).unwrap();
        assert_eq!(spelled("1990-02-28", ValueType::Date, &german), "28.02.1990");
        assert_eq!(spelled("-12.50", ValueType::Decimal, &german), "-12,5");
        assert_eq!(spelled("-0.05", ValueType::Decimal, &Notation::default()), "-0.05");
        assert_eq!(spelled("100", ValueType::Decimal, &german), "100");
        let time = "1969-12-31 23:59:59.25";
        let again = spelled(time, ValueType::Timestamp, &Notation::default());
        assert_eq!(parse(&again, ValueType::Timestamp), parse(time, ValueType::Timestamp));
        let with_zone = Notation { date_format: Some("%d.%m.%Y %H:%M %z".to_owned()), ..Notation::default() };
        assert_eq!(parse(time, ValueType::Timestamp).unwrap().spell(&with_zone), None);
    }
}
