//! Arrow values as texts, and back, bit by bit.
//!
//! Numbers, dates, times and booleans get the text that a person would write, so that they can be typed, ordered and put
//! into a CSV file. No two values of one type share a text: `-0`, NaNs of any payload and dates of any year have texts of
//! their own. Values of all other types (binary, nested, intervals, ...) become the digits of their row encoding, which only
//! this module can turn back into values.

mod calendar;

use arrow_schema::{DataType, TimeUnit};
use kohort_model::ValueType;

use calendar::{date_of_days, days_of_date};

/// How cells of an Arrow type are written as text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TextForm {
    /// Every cell is null.
    Null,
    /// Text stays text.
    Text,
    /// `true`, `false`.
    Boolean,
    /// Values of fixed width, by their bits.
    Fixed(Fixed),
    /// A dictionary, whose values have this form.
    Dictionary(Box<TextForm>),
    /// Hexadecimal digits of the row encoding.
    RowEncoding,
}

/// A type whose values are a few bytes each and have a text of their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fixed {
    /// Integers of this many bits.
    Signed(u32),
    /// Integers from 0 of this many bits.
    Unsigned(u32),
    Float32,
    Float64,
    /// Decimals of this many bits.
    Decimal {
        bits: u32,
        scale: i8,
    },
    Date32,
    Date64,
    Timestamp {
        unit: TimeUnit,
        zone: Zone,
    },
}

/// Whether a timestamp is an instant or what a clock on the wall shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zone {
    /// An instant. Its text ends in `Z` whatever zone the type names, because the value counts from 1970 in UTC.
    Instant,
    Wall,
}

/// How the values of an Arrow type are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArrowOrder {
    /// By their order as values of this type.
    Typed(ValueType),
    /// By the order of the type that the texts suggest.
    ByText,
    /// The type has no order.
    Unordered,
}

impl TextForm {
    /// The form of a type.
    pub(crate) fn of(data_type: &DataType) -> Self {
        let fixed = match data_type {
            DataType::Null => return TextForm::Null,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => return TextForm::Text,
            DataType::Boolean => return TextForm::Boolean,
            DataType::Dictionary(_, values) => return TextForm::Dictionary(Box::new(TextForm::of(values))),
            DataType::Int8 => Fixed::Signed(8),
            DataType::Int16 => Fixed::Signed(16),
            DataType::Int32 => Fixed::Signed(32),
            DataType::Int64 => Fixed::Signed(64),
            DataType::UInt8 => Fixed::Unsigned(8),
            DataType::UInt16 => Fixed::Unsigned(16),
            DataType::UInt32 => Fixed::Unsigned(32),
            DataType::UInt64 => Fixed::Unsigned(64),
            DataType::Float32 => Fixed::Float32,
            DataType::Float64 => Fixed::Float64,
            DataType::Decimal32(_, scale) => Fixed::Decimal { bits: 32, scale: *scale },
            DataType::Decimal64(_, scale) => Fixed::Decimal { bits: 64, scale: *scale },
            DataType::Decimal128(_, scale) => Fixed::Decimal { bits: 128, scale: *scale },
            DataType::Date32 => Fixed::Date32,
            DataType::Date64 => Fixed::Date64,
            DataType::Timestamp(unit, None) => Fixed::Timestamp { unit: *unit, zone: Zone::Wall },
            DataType::Timestamp(unit, Some(_)) => Fixed::Timestamp { unit: *unit, zone: Zone::Instant },
            _ => return TextForm::RowEncoding,
        };
        TextForm::Fixed(fixed)
    }

    /// How values of this form are ordered.
    pub(crate) fn order(&self) -> ArrowOrder {
        match self {
            TextForm::Null | TextForm::Text => ArrowOrder::ByText,
            TextForm::Boolean => ArrowOrder::Typed(ValueType::Boolean),
            TextForm::Dictionary(values) => values.order(),
            TextForm::RowEncoding => ArrowOrder::Unordered,
            TextForm::Fixed(fixed) => match fixed {
                // An unsigned integer of 64 bits may not fit a signed one, so the texts decide.
                Fixed::Signed(_) | Fixed::Unsigned(_) => ArrowOrder::ByText,
                Fixed::Float32 | Fixed::Float64 => ArrowOrder::Typed(ValueType::Float),
                Fixed::Decimal { .. } => ArrowOrder::Typed(ValueType::Decimal),
                Fixed::Date32 | Fixed::Date64 => ArrowOrder::Typed(ValueType::Date),
                Fixed::Timestamp { .. } => ArrowOrder::Typed(ValueType::Timestamp),
            },
        }
    }

    /// Whether texts of this form mean something to a reader.
    pub(crate) fn is_readable(&self) -> bool {
        match self {
            TextForm::Dictionary(values) => values.is_readable(),
            TextForm::RowEncoding => false,
            TextForm::Null | TextForm::Text | TextForm::Boolean | TextForm::Fixed(_) => true,
        }
    }
}

impl Fixed {
    /// The number of bytes of a value.
    pub(crate) fn width(self) -> usize {
        let bits = match self {
            Fixed::Signed(bits) | Fixed::Unsigned(bits) | Fixed::Decimal { bits, .. } => bits,
            Fixed::Float32 | Fixed::Date32 => 32,
            Fixed::Float64 | Fixed::Date64 | Fixed::Timestamp { .. } => 64,
        };
        bits as usize / 8
    }

    /// The text of a value, given by its bits. Bits beyond the type's width are ignored.
    pub(crate) fn text(self, bits: i128) -> String {
        match self {
            Fixed::Signed(width) => signed(bits, width).to_string(),
            Fixed::Unsigned(width) => (bits & ((1 << width) - 1)).to_string(),
            Fixed::Float32 => {
                let number = f32::from_bits(bits as u32);
                if number.is_nan() {
                    nan_text(u64::from(bits as u32), u64::from(f32::NAN.to_bits()))
                } else {
                    shortest(&number)
                }
            }
            Fixed::Float64 => {
                let number = f64::from_bits(bits as u64);
                if number.is_nan() { nan_text(bits as u64, f64::NAN.to_bits()) } else { shortest(&number) }
            }
            Fixed::Decimal { bits: width, scale } => decimal_text(signed(bits, width), scale),
            Fixed::Date32 => date_of_days(i64::from(bits as i32)),
            Fixed::Date64 => {
                let (days, rest) = ((bits as i64).div_euclid(86_400_000), (bits as i64).rem_euclid(86_400_000));
                if rest == 0 { date_of_days(days) } else { timestamp_text(bits as i64, TimeUnit::Millisecond) }
            }
            Fixed::Timestamp { unit, zone } => {
                let mut text = timestamp_text(bits as i64, unit);
                if zone == Zone::Instant {
                    text.push('Z');
                }
                text
            }
        }
    }

    /// The bits of the value with this text; `None` for a text that [`Fixed::text`] does not make.
    pub(crate) fn bits(self, text: &str) -> Option<i128> {
        match self {
            Fixed::Signed(_) | Fixed::Unsigned(_) => text.parse().ok(),
            Fixed::Float32 => match text.strip_prefix("NaN") {
                Some(payload) => nan_bits(payload, u64::from(f32::NAN.to_bits())),
                None => text.parse::<f32>().ok().map(|number| i128::from(number.to_bits())),
            },
            Fixed::Float64 => match text.strip_prefix("NaN") {
                Some(payload) => nan_bits(payload, f64::NAN.to_bits()),
                None => text.parse::<f64>().ok().map(|number| i128::from(number.to_bits())),
            },
            Fixed::Decimal { scale, .. } => decimal_bits(text, scale),
            Fixed::Date32 => days_of_date(text).map(i128::from),
            Fixed::Date64 => match days_of_date(text) {
                Some(days) => Some(i128::from(days) * 86_400_000),
                None => timestamp_bits(text, TimeUnit::Millisecond),
            },
            Fixed::Timestamp { unit, zone: Zone::Wall } => timestamp_bits(text, unit),
            Fixed::Timestamp { unit, zone: Zone::Instant } => timestamp_bits(text.strip_suffix('Z')?, unit),
        }
    }
}

fn signed(bits: i128, width: u32) -> i128 {
    bits << (128 - width) >> (128 - width)
}

/// The shortest digits that mean this number, with an exponent if there would be many digits.
fn shortest(number: &impl std::fmt::Debug) -> String {
    let text = format!("{number:?}");
    match text.strip_suffix(".0") {
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

fn nan_text(bits: u64, usual: u64) -> String {
    if bits == usual { "NaN".to_owned() } else { format!("NaN:{bits:x}") }
}

fn nan_bits(payload: &str, usual: u64) -> Option<i128> {
    match payload.strip_prefix(':') {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(i128::from),
        None => payload.is_empty().then_some(i128::from(usual)),
    }
}

fn decimal_text(value: i128, scale: i8) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let digits = value.unsigned_abs();
    match u32::try_from(scale) {
        Ok(0) => format!("{sign}{digits}"),
        Ok(scale) => {
            let digits = format!("{digits:0>width$}", width = scale as usize + 1);
            let (whole, fraction) = digits.split_at(digits.len() - scale as usize);
            format!("{sign}{whole}.{fraction}")
        }
        Err(_) if value == 0 => "0".to_owned(),
        Err(_) => format!("{sign}{digits}{}", "0".repeat(usize::from(scale.unsigned_abs()))),
    }
}

fn decimal_bits(text: &str, scale: i8) -> Option<i128> {
    if scale >= 0 {
        return text.replacen('.', "", 1).parse().ok();
    }
    if text == "0" {
        return Some(0);
    }
    text.get(..text.len().checked_sub(usize::from(scale.unsigned_abs()))?)?.parse().ok()
}

fn per_second(unit: TimeUnit) -> (i64, usize) {
    match unit {
        TimeUnit::Second => (1, 0),
        TimeUnit::Millisecond => (1_000, 3),
        TimeUnit::Microsecond => (1_000_000, 6),
        TimeUnit::Nanosecond => (1_000_000_000, 9),
    }
}

fn timestamp_text(value: i64, unit: TimeUnit) -> String {
    let (per_second, n_digits) = per_second(unit);
    let (seconds, fraction) = (value.div_euclid(per_second), value.rem_euclid(per_second));
    let (days, second_of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let mut text = format!(
        "{}T{:02}:{:02}:{:02}",
        date_of_days(days),
        second_of_day / 3600,
        second_of_day / 60 % 60,
        second_of_day % 60
    );
    if fraction != 0 {
        let digits = format!("{fraction:0n_digits$}");
        let mut shown = digits.as_str();
        while let Some(fewer) = shown.strip_suffix("000") {
            shown = fewer;
        }
        text.push('.');
        text.push_str(shown);
    }
    text
}

fn timestamp_bits(text: &str, unit: TimeUnit) -> Option<i128> {
    let (date, time) = text.split_once('T')?;
    let (clock, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut seconds = i128::from(days_of_date(date)?);
    let mut parts = clock.split(':');
    for units in [24, 60, 60] {
        seconds = seconds * units + parts.next()?.parse::<i128>().ok()?;
    }
    let (per_second, n_digits) = per_second(unit);
    let fraction = if n_digits == 0 { 0 } else { format!("{fraction:0<n_digits$}").parse::<i128>().ok()? };
    Some(seconds * i128::from(per_second) + fraction)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(data_type: &DataType, bits: i128) -> String {
        match TextForm::of(data_type) {
            TextForm::Fixed(fixed) => fixed.text(bits),
            form => panic!("{form:?}"),
        }
    }

    #[test]
    fn values_are_written_as_a_person_would() {
        assert_eq!(text(&DataType::Int8, -5), "-5");
        assert_eq!(text(&DataType::UInt64, i128::from(u64::MAX)), "18446744073709551615");
        assert_eq!(text(&DataType::Int64, 9_007_199_254_740_993), "9007199254740993");
        assert_eq!(text(&DataType::Float64, i128::from(0.1f64.to_bits())), "0.1");
        assert_eq!(text(&DataType::Float64, i128::from(3f64.to_bits())), "3");
        assert_eq!(text(&DataType::Float64, i128::from(1e300f64.to_bits())), "1e300");
        assert_eq!(text(&DataType::Float64, i128::from((-0f64).to_bits())), "-0");
        assert_eq!(text(&DataType::Float32, i128::from(0.1f32.to_bits())), "0.1");
        assert_eq!(text(&DataType::Decimal128(10, 2), -5), "-0.05");
        assert_eq!(text(&DataType::Decimal128(10, -2), 12), "1200");
        assert_eq!(text(&DataType::Date32, -1), "1969-12-31");
        assert_eq!(text(&DataType::Date64, 86_400_000), "1970-01-02");
        let wall = |unit| DataType::Timestamp(unit, None);
        assert_eq!(text(&wall(TimeUnit::Second), -1), "1969-12-31T23:59:59");
        assert_eq!(text(&wall(TimeUnit::Nanosecond), 1_500_000_000), "1970-01-01T00:00:01.500");
        assert_eq!(text(&wall(TimeUnit::Nanosecond), 1), "1970-01-01T00:00:00.000000001");
        let berlin = DataType::Timestamp(TimeUnit::Millisecond, Some("Europe/Berlin".into()));
        assert_eq!(text(&berlin, 0), "1970-01-01T00:00:00Z");
    }

    fn any_fixed() -> impl Strategy<Value = Fixed> {
        let unit = prop_oneof![
            Just(TimeUnit::Second),
            Just(TimeUnit::Millisecond),
            Just(TimeUnit::Microsecond),
            Just(TimeUnit::Nanosecond)
        ];
        let width = prop_oneof![Just(8u32), Just(16), Just(32), Just(64)];
        prop_oneof![
            width.clone().prop_map(Fixed::Signed),
            width.prop_map(Fixed::Unsigned),
            Just(Fixed::Float32),
            Just(Fixed::Float64),
            (prop_oneof![Just(32u32), Just(64), Just(128)], -3i8..30)
                .prop_map(|(bits, scale)| Fixed::Decimal { bits, scale }),
            Just(Fixed::Date32),
            Just(Fixed::Date64),
            (unit, prop_oneof![Just(Zone::Wall), Just(Zone::Instant)])
                .prop_map(|(unit, zone)| Fixed::Timestamp { unit, zone }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn every_value_comes_back_from_its_text(
            fixed in any_fixed(),
            bits in prop_oneof![any::<i128>(), any::<i32>().prop_map(i128::from), -3i128..3, any::<i64>().prop_map(|x| i128::from(x / 86_400_000 * 86_400_000))],
        ) {
            let width = fixed.width() as u32 * 8;
            let back = fixed.bits(&fixed.text(bits)).map(|bits| signed(bits, width));
            prop_assert_eq!(back, Some(signed(bits, width)), "{}", fixed.text(bits));
        }
    }
}
