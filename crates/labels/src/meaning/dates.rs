//! Labels of dates, read as ranges.

use chrono::{Months, NaiveDate};
use kohort_model::{Value, ValueType};

use super::possible::Values;

/// The values that `1984-03-17` (for timestamps), `1984-03`, `1984-Q1`, `1984` or `1980s` can stand for; `None` for other
/// labels.
pub(super) fn range(label: &str, value_type: ValueType) -> Option<Values<'static>> {
    const NANOSECONDS: i128 = 86_400_000_000_000;
    let (first, next) = days(label, value_type)?;
    let (first, next) = (first.to_epoch_days(), next.to_epoch_days());
    let (low, high) = match value_type {
        ValueType::Date => (Value::Date(first), Value::Date(next - 1)),
        ValueType::Timestamp => {
            let start = |day: i32| i128::from(day) * NANOSECONDS;
            (Value::Timestamp(start(first)), Value::Timestamp(start(next) - 1))
        }
        _ => return None,
    };
    Some(Values::closed(low, high))
}

/// The first day of a label, and the first day after it.
fn days(label: &str, value_type: ValueType) -> Option<(NaiveDate, NaiveDate)> {
    let number =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u32>().ok()).flatten();
    let month = |year: u32, month: u32| NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, 1);
    let parts: Vec<&str> = label.split('-').collect();
    let (first, n_months) = match parts.as_slice() {
        [decade] if decade.ends_with('s') => (month(number(&decade[..decade.len() - 1])?, 1)?, 120),
        [year] => (month(number(year)?, 1)?, 12),
        [year, part] => match part.strip_prefix('Q') {
            Some(quarter) => (month(number(year)?, number(quarter)?.checked_sub(1)? * 3 + 1)?, 3),
            None => (month(number(year)?, number(part)?)?, 1),
        },
        [_, _, _] if value_type == ValueType::Timestamp => {
            let day: NaiveDate = label.parse().ok()?;
            return Some((day, day.succ_opt()?));
        }
        _ => return None,
    };
    Some((first, first.checked_add_months(Months::new(n_months))?))
}
