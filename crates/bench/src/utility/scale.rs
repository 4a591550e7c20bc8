//! [`Scale`]: how much of a cell's interval a query's interval covers, if rows are spread evenly in the cell.
//!
//! Each leaf of a tree has the width 1. Numbers and dates lie at their distances: a closed range is as wide as the
//! distance of its ends plus the domain's resolution, which is the smallest distance between two values of the domain.
//! So `[20,29]` is ten whole numbers wide, a single value always has a width, and for finely measured numbers the
//! resolution hardly matters. NULL counts as one more value after the last.

use kohort_core::encode::Domain;

/// Places of a domain's codes on a line.
pub(super) struct Scale {
    /// One place per code, ascending; the place of NULL is the last.
    places: Vec<f64>,
    /// The width of a single value.
    resolution: f64,
    n_values: usize,
}

impl Scale {
    pub(super) fn new(domain: &Domain) -> Scale {
        let n_values = domain.null().unwrap_or(domain.n_codes());
        let mut places: Vec<f64> = match domain.tree() {
            Some(_) => (0..n_values).map(f64::from).collect(),
            None => (0..n_values).map(|code| domain.width(0, code)).collect(),
        };
        let distances = places.windows(2).map(|pair| pair[1] - pair[0]);
        // Values that a float can't tell apart have a distance of 0, which must not become the resolution.
        let resolution = distances.filter(|&distance| distance > 0.0).fold(f64::INFINITY, f64::min);
        let resolution = if resolution.is_finite() { resolution } else { 1.0 };
        if domain.null().is_some() {
            places.push(places.last().map_or(0.0, |last| last + resolution));
        }
        Scale { places, resolution, n_values: n_values as usize }
    }

    /// The number of values, without NULL.
    pub(super) fn n_values(&self) -> usize {
        self.n_values
    }

    /// The share of a cell that a query covers, 0 to 1.
    pub(super) fn covered_share(&self, cell: (u32, u32), query: (u32, u32)) -> f64 {
        let (lo, hi) = (cell.0.max(query.0), cell.1.min(query.1));
        if lo > hi { 0.0 } else { self.extent(lo, hi) / self.extent(cell.0, cell.1) }
    }

    fn extent(&self, lo: u32, hi: u32) -> f64 {
        self.places[hi as usize] - self.places[lo as usize] + self.resolution
    }

    /// The runs of values that are as wide as this share of the domain allows, and at least one value wide.
    pub(super) fn window(&self, share: f64) -> Window<'_> {
        let values = &self.places[..self.n_values];
        let last = values.last().copied().unwrap_or(0.0);
        // Round down to whole steps, so that a run of 1.9 steps may start at the last value, like a run of 1 step.
        let n_steps = (share * (last / self.resolution + 1.0) + 1e-6).floor().max(1.0);
        let rounding = self.resolution / 2.0;
        let reach = (n_steps - 1.0) * self.resolution + rounding;
        let n_starts = values.partition_point(|place| place + reach <= last + 2.0 * rounding);
        Window { values, reach, n_starts: n_starts.max(1) }
    }
}

/// Runs of values, each as wide as its share allows.
pub(super) struct Window<'a> {
    values: &'a [f64],
    reach: f64,
    n_starts: usize,
}

impl Window<'_> {
    /// The number of values at which a run can start without reaching past the last value. They are the first values.
    pub(super) fn n_starts(&self) -> usize {
        self.n_starts
    }

    /// The last value of the run that starts at `first`.
    pub(super) fn end(&self, first: u32) -> u32 {
        let start = self.values[first as usize];
        let end = self.values.partition_point(|place| place - start <= self.reach);
        (end as u32 - 1).max(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kohort_model::{Column, Role, ValueType};

    fn scale(cells: &[Option<&str>], value_type: ValueType) -> Scale {
        let column = Column::from_cells("c", Role::Quasi, cells.iter().copied()).typed(value_type);
        Scale::new(&Domain::of(&column).unwrap().0)
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
    }

    #[test]
    fn a_closed_range_of_whole_numbers_holds_both_its_ends() {
        let ages: Vec<String> = (20..30).map(|age| age.to_string()).collect();
        let ages: Vec<Option<&str>> = ages.iter().map(|age| Some(age.as_str())).collect();
        let scale = scale(&ages, ValueType::Integer);
        close(scale.covered_share((0, 9), (0, 4)), 0.5);
        close(scale.covered_share((0, 9), (9, 9)), 0.1);
        close(scale.covered_share((3, 3), (0, 4)), 1.0);
        close(scale.covered_share((0, 4), (5, 9)), 0.0);
    }

    #[test]
    fn numbers_count_by_their_distance_and_not_by_how_many_the_table_holds() {
        let scale = scale(&[Some("0"), Some("10"), Some("40")], ValueType::Integer);
        close(scale.covered_share((0, 2), (0, 1)), 2.0 / 5.0);
        close(scale.covered_share((0, 2), (2, 2)), 1.0 / 5.0);
    }

    #[test]
    fn null_is_one_value_more_of_what_a_cell_could_be() {
        let numbers = scale(&[Some("1"), None, Some("2"), Some("3")], ValueType::Integer);
        close(numbers.covered_share((0, 3), (0, 2)), 3.0 / 4.0);
        let words = scale(&[Some("a"), None, Some("b")], ValueType::Text);
        close(words.covered_share((0, 2), (0, 0)), 1.0 / 3.0);
        let nothing = scale(&[None], ValueType::Integer);
        assert_eq!(nothing.n_values(), 0);
        close(nothing.covered_share((0, 0), (0, 0)), 1.0);
    }

    #[test]
    fn a_window_is_the_widest_run_within_its_share() {
        let words = scale(&[Some("a"), Some("b"), Some("c"), Some("d"), None], ValueType::Text);
        let half = words.window(0.5);
        assert_eq!((half.n_starts(), half.end(0), half.end(2)), (3, 1, 3));
        let less = words.window(0.49);
        assert_eq!((less.n_starts(), less.end(0), less.end(3)), (4, 0, 3));
        let whole = words.window(1.0);
        assert_eq!((whole.n_starts(), whole.end(0)), (1, 3));
        let sparse = scale(&[Some("0"), Some("1"), Some("2"), Some("9")], ValueType::Integer);
        let part = sparse.window(0.3);
        assert_eq!((part.n_starts(), part.end(0), part.end(1), part.end(2)), (3, 2, 2, 2));
    }
}
