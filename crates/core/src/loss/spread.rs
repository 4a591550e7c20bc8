//! Rank and entropy: loss that is measured by how the values of a column are spread over its rows, not by its range.

use crate::recode::Recoding;

/// What a recoding loses by rank and by entropy.
pub(super) struct SpreadLoss {
    pub(super) rank: f64,
    pub(super) entropy: f64,
}

/// Measures a recoding. Cells of rows that are left out stand for everything.
pub(super) fn measure(recoding: &Recoding<'_>) -> SpreadLoss {
    let Recoding { encoded, classes, rows, shown, .. } = *recoding;
    let n_rows_of: Vec<u64> =
        (0..shown.len()).map(|class| shown.members(class, classes, rows).count() as u64).collect();
    let n_released: u64 = n_rows_of.iter().sum();
    let (mut rank, mut entropy) = (0.0, 0.0);
    for (column, domain) in encoded.domains.iter().enumerate() {
        let before = encoded.rows_before(column);
        let n_rows = before[before.len() - 1];
        let left_out = n_rows.saturating_sub(n_released) as f64;
        let logarithm = |n: u64| (n.max(1) as f64).ln();
        let (mut shares, mut logarithms) = (left_out, left_out * logarithm(n_rows));
        for (class, &n_of_class) in n_rows_of.iter().enumerate() {
            let (lo, hi) = shown.interval(class, column);
            let (lo, hi) = domain.hull(lo, hi);
            let n_within = before[hi as usize + 1] - before[lo as usize];
            if lo < hi {
                shares += n_of_class as f64 * n_within as f64 / n_rows as f64;
            }
            logarithms += n_of_class as f64 * logarithm(n_within);
        }
        let of_values: f64 = before.windows(2).map(|pair| pair[1] - pair[0]).map(|n| n as f64 * logarithm(n)).sum();
        let most = n_rows as f64 * logarithm(n_rows) - of_values;
        rank += shares / (n_rows as f64).max(1.0);
        // If every cell is a value, nothing but rounding is left.
        entropy += if shares > 0.0 && most > 0.0 { ((logarithms - of_values) / most).max(0.0) } else { 0.0 };
    }
    let n_columns = encoded.domains.len().max(1) as f64;
    SpreadLoss { rank: rank / n_columns, entropy: entropy / n_columns }
}
