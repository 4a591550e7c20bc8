//! [`Widths`]: the widths of a column's intervals, looked up instead of computed.

use super::Domain;

/// The widths of a column's intervals. If the column has few codes, all widths are kept in a table of 32-bit numbers, which
/// fits into a cache.
#[derive(Debug)]
pub(crate) struct Widths<'d> {
    pub(crate) domain: &'d Domain,
    n_codes: usize,
    /// The width of `lo..=hi` is at `lo * n_codes + hi`; empty if there are too many codes.
    table: Vec<f32>,
}

impl<'d> Widths<'d> {
    /// Columns with more than `most_codes` codes have no table.
    pub(crate) fn new(domain: &'d Domain, most_codes: u32) -> Widths<'d> {
        let n_codes = if domain.n_codes() <= most_codes { domain.n_codes() } else { 0 };
        let width = |lo: u32, hi: u32| if lo <= hi { domain.width(lo, hi) as f32 } else { 0.0 };
        let table = (0..n_codes).flat_map(|lo| (0..n_codes).map(move |hi| width(lo, hi))).collect();
        Widths { domain, n_codes: n_codes as usize, table }
    }

    #[inline]
    pub(crate) fn of(&self, lo: u32, hi: u32) -> f64 {
        match self.table.get(lo as usize * self.n_codes + hi as usize) {
            Some(&width) => f64::from(width),
            None => self.domain.width(lo, hi),
        }
    }
}
