//! Over which range the widths of numbers and dates are measured when classes are made.
//!
//! A register may hold values that are far from all others. Measured over the range of everybody, all cells of the column would
//! then seem to lose almost nothing, and the column would be generalized first. Reported losses are relative to the private
//! table's own range, so classes are made by that range where presence is public. Where it is hidden, the range of everybody counts:
//! the private range, and even how many of all persons lie where, would tell something about who is private.

use kohort_model::JoinedRegister;

use crate::encode::{Encoded, bounds};

/// For each column, the share of everybody's range that the private table has.
pub(super) fn private_shares(joined: &JoinedRegister, encoded: &Encoded<'_>) -> Vec<f64> {
    (0..encoded.domains.len()).map(|column| private_share(joined, encoded, column)).collect()
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
