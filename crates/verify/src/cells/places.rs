//! [`Places`]: where rows of a release and of its private table can be parted so that no released row is parted from a private
//! row it may come from.
//!
//! # Guarantee
//! A released row may come from a private row only if in each column the place of the private value is among those that the
//! released cell covers. A cut is made only at a place that no released cell reaches over, so both rows are on the same side.

use kohort_model::{Column, NULL};

use crate::reading::coverage::Runs;
use crate::single::against::concatenated;

/// No cut makes more groups at once, because each group is a file.
const MOST_GROUPS: u64 = 1 << 8;

/// The values of a column in an order in which each released cell covers values that stand together.
pub(super) struct Places {
    /// The place of each private value by its id, and then of null.
    of_private: Vec<u32>,
    /// The places that each released cell covers by its id (the end excluded), and then those that null covers.
    of_released: Vec<(u32, u32)>,
}

/// How many rows hold each value of some columns: by the id of its text, and then nulls.
type Counts = Vec<Vec<u64>>;

/// How many rows hold each value, in some rows of a release and of its private table.
#[derive(Clone, Debug)]
pub struct ValueCounts {
    pub(super) released: Counts,
    pub(super) private: Counts,
}

/// A way to part rows of a release and of its private table.
#[derive(Clone, Debug)]
pub struct OriginCut {
    column: usize,
    /// The first place of each group but the first one.
    bounds: Vec<u32>,
}

impl OriginCut {
    /// The number of groups.
    pub fn n_groups(&self) -> usize {
        self.bounds.len() + 1
    }

    /// The column that decides.
    pub(super) fn column(&self) -> usize {
        self.column
    }

    fn group(&self, place: u32) -> u32 {
        self.bounds.partition_point(|&bound| bound <= place) as u32
    }
}

impl Places {
    /// Of a generalized column.
    pub(super) fn of_labels(runs: &Runs, released: &Column, private: &Column) -> Places {
        let ids = |column: &Column| (0..column.texts.len() as u32).chain([NULL]);
        Places {
            of_private: ids(private).map(|id| runs.position(id)).collect(),
            of_released: ids(released).map(|id| runs.run(id)).collect(),
        }
    }

    /// Of a column that is released unchanged: each value is a place of its own.
    pub(super) fn of_values(released: &Column, private: &Column) -> Places {
        let each_once = |column: &Column| column.with_ids((0..column.texts.len() as u32).chain([NULL]).collect());
        let (released, private) = (each_once(released), each_once(private));
        let numbers = concatenated(&released, &private);
        let n_released = released.ids.len();
        Places {
            of_private: (n_released..n_released + private.ids.len()).map(|at| numbers.get(at)).collect(),
            of_released: (0..n_released).map(|at| (numbers.get(at), numbers.get(at) + 1)).collect(),
        }
    }

    /// The groups of released rows, given by their ids in this column.
    pub(super) fn groups_of_released(&self, cut: &OriginCut, ids: &[u32]) -> Vec<u32> {
        ids.iter().map(|&id| cut.group(self.of_released[at(id, self.of_released.len())].0)).collect()
    }

    /// The groups of private rows, given by their ids in this column.
    pub(super) fn groups_of_private(&self, cut: &OriginCut, ids: &[u32]) -> Vec<u32> {
        ids.iter().map(|&id| cut.group(self.of_private[at(id, self.of_private.len())])).collect()
    }

    /// The bounds of groups of at most `most_rows` rows where possible, and the rows of the largest group.
    fn bounds(&self, released: &[u64], private: &[u64], most_rows: u64) -> (Vec<u32>, u64) {
        let runs = self.of_released.iter().zip(released).filter(|(_, n_rows)| **n_rows > 0);
        let mut runs: Vec<(u32, u32, u64)> = runs.map(|(&(lo, hi), &n_rows)| (lo, hi, n_rows)).collect();
        runs.sort_unstable();
        let values = self.of_private.iter().zip(private).filter(|(_, n_rows)| **n_rows > 0);
        let mut values: Vec<(u32, u64)> = values.map(|(&place, &n_rows)| (place, n_rows)).collect();
        values.sort_unstable();
        // For each place that no released cell reaches over, the rows from there to the next such place.
        let mut free: Vec<(u32, u64)> = Vec::new();
        let mut reached = 0;
        for (lo, hi, n_rows) in runs {
            match free.last_mut() {
                // A label that covers no value stands at the first place.
                Some((first, sum)) if lo < reached || lo == *first => *sum += n_rows,
                _ => free.push((lo, n_rows)),
            }
            reached = reached.max(hi);
        }
        // Values before all released cells are in the first group.
        let mut next = values.into_iter().peekable();
        for place in 0..free.len() {
            let end = free.get(place + 1).map_or(u32::MAX, |&(first, _)| first);
            while let Some((_, n_rows)) = next.next_if(|&(value, _)| value < end) {
                free[place].1 += n_rows;
            }
        }
        let (mut bounds, mut in_group, mut largest) = (Vec::new(), 0, 0);
        for (first, n_rows) in free {
            if in_group > 0 && in_group + n_rows > most_rows {
                bounds.push(first);
                in_group = 0;
            }
            in_group += n_rows;
            largest = largest.max(in_group);
        }
        (bounds, largest)
    }
}

impl ValueCounts {
    pub(super) fn none(places: &[Places]) -> ValueCounts {
        ValueCounts {
            released: places.iter().map(|places| vec![0; places.of_released.len()]).collect(),
            private: places.iter().map(|places| vec![0; places.of_private.len()]).collect(),
        }
    }

    /// Adds released rows, given column by column as ids. More columns than are compared do no harm.
    pub fn add_released(&mut self, rows: &[Vec<u32>]) {
        add(&mut self.released, rows);
    }

    /// Adds private rows in the same way.
    pub fn add_private(&mut self, rows: &[Vec<u32>]) {
        add(&mut self.private, rows);
    }

    fn n_rows(&self) -> u64 {
        let of = |counts: &Counts| counts.first().map_or(0, |counts| counts.iter().sum());
        of(&self.released) + of(&self.private)
    }
}

fn add(counts: &mut [Vec<u64>], rows: &[Vec<u32>]) {
    for (counts, ids) in counts.iter_mut().zip(rows) {
        let n = counts.len();
        ids.iter().for_each(|&id| counts[at(id, n)] += 1);
    }
}

/// Where an id stands in a list of `n`, of which null is the last.
fn at(id: u32, n: usize) -> usize {
    if id == NULL { n - 1 } else { id as usize }
}

/// The cut whose largest group is the smallest. `None` if rows can't be parted in any column.
pub(super) fn best_cut(places: &[Places], counts: &ValueCounts, most_rows: u64) -> Option<OriginCut> {
    let most_rows = most_rows.max(counts.n_rows() / MOST_GROUPS * 2).max(1);
    let of_column = |(column, places): (usize, &Places)| {
        let (bounds, largest) = places.bounds(&counts.released[column], &counts.private[column], most_rows);
        (!bounds.is_empty()).then_some((largest, OriginCut { column, bounds }))
    };
    let cuts = places.iter().enumerate().filter_map(of_column);
    cuts.min_by_key(|(largest, _)| *largest).map(|(_, cut)| cut)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_released_cell_is_parted_from_a_value_that_it_covers(
            cells in prop::collection::vec((0u32..40, 0u32..6, 0u64..5), 1..12),
            values in prop::collection::vec((0u32..45, 0u64..5), 1..30),
            most_rows in 1u64..12,
        ) {
            let places = Places {
                of_private: values.iter().map(|value| value.0).collect(),
                of_released: cells.iter().map(|cell| (cell.0, cell.0 + cell.1)).collect(),
            };
            let counts = ValueCounts {
                released: vec![cells.iter().map(|cell| cell.2).collect()],
                private: vec![values.iter().map(|value| value.1).collect()],
            };
            let all = [places];
            let Some(cut) = best_cut(&all, &counts, most_rows) else { return Ok(()) };
            let [places] = &all;
            prop_assert!(cut.bounds.is_sorted_by(|a, b| a < b));
            for (cell, &(lo, hi)) in places.of_released.iter().enumerate().filter(|(cell, _)| cells[*cell].2 > 0) {
                for &place in places.of_private.iter().filter(|&&place| lo <= place && place < hi) {
                    prop_assert_eq!(cut.group(lo), cut.group(place), "cell {} of {}..{}, {}", cell, lo, hi, place);
                }
            }
        }
    }
}
