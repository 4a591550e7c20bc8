//! Over which range the widths of numbers and dates are measured when classes are made.
//!
//! A register may hold values that are far from all others. Measured over the range of everybody, all cells of the column would
//! then seem to lose almost nothing, and the column would be generalized first. Reported losses are relative to the private
//! table's own range, so classes are made by that range where presence is public. Where it is hidden, the private range would
//! tell something about who is private. The range of everybody without far outliers takes its place.
//!
//! # Paper
//! far outliers are those beyond the outer fences of `[Tuk77]`

use kohort_model::JoinedRegister;

use super::previous::LookedAt;
use crate::encode::bounds;
use crate::encode::{Domain, Encoded};

/// A value is far from all others if it is more than this many times the distance of the quartiles from the nearest one.
const FENCE: f64 = 3.0;

/// For each column, the share of everybody's range over which widths are measured: all of it in columns with a tree.
pub(super) fn shares(joined: &JoinedRegister, encoded: &Encoded<'_>, looked_at: LookedAt) -> Vec<f64> {
    let share = |column: usize| match looked_at {
        LookedAt::Private => private_share(joined, encoded, column),
        LookedAt::Everybody => share_without_outliers(&encoded.domains[column], &encoded.rows_before(column)),
    };
    (0..encoded.domains.len()).map(share).collect()
}

/// How wide the private table's own range is in a column of numbers or dates; all of it elsewhere.
pub(super) fn private_share(joined: &JoinedRegister, encoded: &Encoded<'_>, column: usize) -> f64 {
    let domain = &encoded.domains[column];
    if domain.tree().is_some() {
        return 1.0;
    }
    let codes = (0..joined.n_microdata as u32).map(|row| encoded.code(column, row));
    let codes = codes.filter(|&code| Some(code) != domain.null());
    let (lo, hi) = codes.map(|code| (code, code)).fold(bounds::EMPTY, bounds::both);
    if lo > hi { 0.0 } else { domain.lm(lo, hi) }
}

/// How wide the range of a column is without far outliers. `before` has the number of rows below each code.
fn share_without_outliers(domain: &Domain, before: &[u64]) -> f64 {
    let n_values = domain.null().unwrap_or(domain.n_codes());
    if domain.tree().is_some() || n_values == 0 {
        return 1.0;
    }
    let n_rows = before[n_values as usize];
    let place = |code: u32| domain.lm(0, code);
    let quartile = |nth: u64| {
        let below = before[1..=n_values as usize].partition_point(|&n| 4 * n < nth * n_rows);
        place((below as u32).min(n_values - 1))
    };
    let (first, third) = (quartile(1), quartile(3));
    let reach = FENCE * (third - first);
    // If half of all rows have one value, nothing tells which others are far.
    if reach > 0.0 { (third + reach).min(1.0) - (first - reach).max(0.0) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use kohort_model::{Column, Role, ValueType};

    use super::*;

    fn share(values: &[u32]) -> f64 {
        let texts: Vec<String> = values.iter().map(u32::to_string).collect();
        let column = Column::from_cells("n", Role::Quasi, texts.iter().map(|text| Some(text.as_str())));
        let (domain, _) = Domain::of(&column.typed(ValueType::Integer)).unwrap();
        let before: Vec<u64> = (0..=values.len() as u64).collect();
        share_without_outliers(&domain, &before)
    }

    #[test]
    fn a_far_value_is_outside_and_evenly_spread_values_are_inside() {
        assert_eq!(share(&[1, 2, 3, 4, 5, 6, 7, 8]), 1.0);
        let far = share(&[1, 2, 3, 4, 5, 6, 7, 10_000_000]) * 9_999_999.0;
        assert!((8.0..30.0).contains(&far), "{far}");
        assert_eq!(share(&[7]), 1.0);
    }
}
