//! Numbers and settings in words.

use kohort_model::Setting;

/// A share as a percentage with at most three digits that count. A share that is not 0 never reads as 0 %, and one below 1 never as
/// 100 %.
pub(super) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let text = match percent {
        p if p <= 0.0 => "0".to_owned(),
        p if p < 0.01 => return "under 0.01 %".to_owned(),
        p if (99.95..100.0).contains(&p) => return "over 99.9 %".to_owned(),
        p if p < 1.0 => trimmed(format!("{p:.2}")),
        p => trimmed(format!("{p:.1}")),
    };
    format!("{text} %")
}

/// A number without zeros at its end.
pub(super) fn number(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e15 {
        let whole = count(value.abs() as u64);
        return if value < 0.0 { format!("-{whole}") } else { whole };
    }
    match value.abs() {
        size if size >= 1000.0 => count(value.round() as u64),
        size if size >= 0.001 => trimmed(format!("{value:.4}")),
        _ => format!("{value:.1e}"),
    }
}

/// A whole number in groups of three digits.
pub(super) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things.
pub(super) fn counted(value: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(value), if value == 1 { one } else { many })
}

/// Words joined by commas and a last `and`.
pub(super) fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Names in quotes.
pub(super) fn quoted<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    listed(&names.into_iter().map(|name| format!("'{name}'")).collect::<Vec<_>>())
}

/// The value of a setting.
pub(super) fn setting(setting: &Setting) -> String {
    match setting {
        Setting::Whole(value) => count(*value),
        Setting::Number(value) => number(*value),
        Setting::Word(word) => word.clone(),
        Setting::Numbers(numbers) => numbers.iter().map(|value| number(*value)).collect::<Vec<_>>().join(", "),
    }
}

fn trimmed(text: String) -> String {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_never_read_as_none_or_all_unless_they_are() {
        let shown = [0.0, 0.000_01, 0.0042, 0.2, 1.0 / 3.0, 0.9999, 1.0].map(percent);
        assert_eq!(shown, ["0 %", "under 0.01 %", "0.42 %", "20 %", "33.3 %", "over 99.9 %", "100 %"]);
    }

    #[test]
    fn numbers_have_groups_of_digits_and_no_zeros_at_the_end() {
        assert_eq!([0, 999, 1000, 2_500_000].map(count), ["0", "999", "1,000", "2,500,000"]);
        assert_eq!([0.5, 3.0, 1234.5, 0.0001, -2.0].map(number), ["0.5", "3", "1,235", "1.0e-4", "-2"]);
    }

    #[test]
    fn lists_end_with_and() {
        let words = ["a", "b", "c"].map(str::to_owned);
        assert_eq!([0, 1, 2, 3].map(|n| listed(&words[..n])), ["", "a", "a and b", "a, b and c"]);
    }
}
