//! Results in words and as JSON.

pub(crate) mod audit;
pub(crate) mod estimated;
pub(crate) mod explored;
pub(crate) mod findings;
pub(crate) mod risks;
pub(crate) mod summary;

/// A share or measure to four places, without trailing zeros.
pub(crate) fn number(number: f64) -> String {
    let text = format!("{number:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `12 (0.2 %)`.
pub(crate) fn count_of(count: u64, all: u64) -> String {
    if count == 0 || all == 0 {
        return count.to_string();
    }
    let percent = 100.0 * count as f64 / all as f64;
    // A share above zero must not be shown as 0.0 %.
    if percent < 0.05 { format!("{count} (below 0.1 %)") } else { format!("{count} ({percent:.1} %)") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(number(1.0), "1");
        assert_eq!(number(0.25), "0.25");
        assert_eq!(number(1.0 / 3.0), "0.3333");
        assert_eq!(number(100.0), "100");
        assert_eq!(count_of(3, 12), "3 (25.0 %)");
        assert_eq!(count_of(1, 10_000), "1 (below 0.1 %)");
        assert_eq!(count_of(0, 12), "0");
        assert_eq!(count_of(0, 0), "0");
    }
}
