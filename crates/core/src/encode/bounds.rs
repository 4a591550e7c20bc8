//! Boxes: one interval of codes per column.

use super::Domain;

/// One interval of codes per column: the first and the last code.
pub(crate) type Bounds = Vec<(u32, u32)>;

/// The interval of no code.
pub(crate) const EMPTY: (u32, u32) = (u32::MAX, 0);

/// Grows a box to hold a row's cells.
#[inline]
pub(crate) fn include(bounds: &mut [(u32, u32)], cells: &[u32]) {
    for (bound, &code) in bounds.iter_mut().zip(cells) {
        *bound = (bound.0.min(code), bound.1.max(code));
    }
}

/// Grows a box to hold another.
#[inline]
pub(crate) fn unite(bounds: &mut [(u32, u32)], others: &[(u32, u32)]) {
    for (bound, &other) in bounds.iter_mut().zip(others) {
        *bound = both(*bound, other);
    }
}

/// The smallest interval that holds two.
#[inline]
pub(crate) fn both(a: (u32, u32), b: (u32, u32)) -> (u32, u32) {
    (a.0.min(b.0), a.1.max(b.1))
}

/// The loss of a row in a box: the sum of the widths of the box.
#[inline]
pub(crate) fn width(domains: &[Domain], bounds: &[(u32, u32)]) -> f64 {
    bounds.iter().zip(domains).map(|(&(lo, hi), domain)| domain.width(lo, hi)).sum()
}

/// The loss of a row in the smallest box that contains two boxes.
#[inline]
pub(crate) fn width_of_both(domains: &[Domain], a: &[(u32, u32)], b: &[(u32, u32)]) -> f64 {
    let intervals = a.iter().zip(b).map(|(&a, &b)| both(a, b));
    intervals.zip(domains).map(|((lo, hi), domain)| domain.width(lo, hi)).sum()
}

/// The loss of a row in the smallest box that contains a box and a row's cells.
#[inline]
pub(crate) fn width_with(domains: &[Domain], bounds: &[(u32, u32)], cells: impl IntoIterator<Item = u32>) -> f64 {
    let intervals = bounds.iter().zip(cells).map(|(&(lo, hi), code)| (lo.min(code), hi.max(code)));
    intervals.zip(domains).map(|((lo, hi), domain)| domain.width(lo, hi)).sum()
}

/// Whether a box holds a row's cells.
pub(crate) fn holds(bounds: &[(u32, u32)], cells: &[u32]) -> bool {
    cells.iter().zip(bounds).all(|(code, &(lo, hi))| (lo..=hi).contains(code))
}

/// The codes in the middle of a box.
pub(crate) fn middle(bounds: &[(u32, u32)]) -> Vec<u32> {
    bounds.iter().map(|&(lo, hi)| lo + (hi - lo) / 2).collect()
}
