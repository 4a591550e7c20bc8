//! Ranks: the place of a value in an order.

use std::cmp::Ordering;
use std::ops::Range;

use kohort_model::Column;
use rayon::prelude::*;

/// A number that is compared by its total order, so that it can be sorted and kept in a heap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Total(pub(crate) f64);

impl Ord for Total {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Total {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Total {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Total {}

/// The first number of a range for which something holds that also holds for all numbers after it; the end of the range if
/// there is none.
pub(crate) fn first_that(Range { mut start, mut end }: Range<u32>, holds: impl Fn(u32) -> bool) -> u32 {
    while start < end {
        let middle = start + (end - start) / 2;
        if holds(middle) { end = middle } else { start = middle + 1 }
    }
    start
}

/// The place of each number in an order of all numbers below its length.
pub(crate) fn places(order: &[u32]) -> Vec<u32> {
    let mut places = vec![0; order.len()];
    (0..).zip(order).for_each(|(place, &number)| places[number as usize] = place);
    places
}

/// For each value, its rank among the different values, and how many of these there are.
pub(crate) fn ranks<T: Ord>(values: &[T]) -> (Vec<u32>, usize) {
    let mut order: Vec<u32> = (0..values.len() as u32).collect();
    order.sort_by(|&a, &b| values[a as usize].cmp(&values[b as usize]));
    let mut ranks = vec![0; values.len()];
    let mut n_different = 0;
    for (place, &value) in order.iter().enumerate() {
        n_different += usize::from(place == 0 || values[order[place - 1] as usize] != values[value as usize]);
        ranks[value as usize] = n_different as u32 - 1;
    }
    (ranks, n_different)
}

/// For each row, the rank of its text among those of the column, from 1; null is 0.
pub(crate) fn text_ranks(column: &Column) -> Vec<u32> {
    let mut by_text: Vec<u32> = (0..column.texts.len() as u32).collect();
    by_text.par_sort_unstable_by_key(|&id| column.texts.get(id));
    let places = places(&by_text);
    column.ids.par_iter().map(|&id| places.get(id as usize).map_or(0, |place| place + 1)).collect()
}
