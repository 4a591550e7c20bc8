//! Optimal pairing: the least total cost of all pairs and of all that are left out.
//!
//! A transport of counts from the smaller side to the larger: each entry in turn sends what it has along cheapest
//! augmenting paths, found by Dijkstra's algorithm on costs reduced by potentials. With counts of one that is the
//! Hungarian method in Jonker and Volgenant's form.
//!
//! # Guarantee
//! the total cost is the least there is; above [`LARGEST`] pairs of entries, greedy pairing is used instead
//! # Cost
//! entries of the smaller side times the square of all entries, and more only where counts must be split

use super::{Match, Room as Rooms, Side, greedy};

/// Sets with more pairs of different siblings than this are paired greedily, because the time grows with the cube of
/// their number.
pub(super) const LARGEST: usize = 1 << 14;

const NONE: u32 = u32::MAX;

/// Memory that is reused.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// What each pair costs beyond leaving both out, smaller side first.
    costs: Vec<f64>,
    flow: Vec<u32>,
    left: Vec<u32>,
    row_potentials: Vec<f64>,
    column_potentials: Vec<f64>,
    row_distances: Vec<f64>,
    column_distances: Vec<f64>,
    /// The row a column was reached from, and the column a row was reached from.
    from_row: Vec<u32>,
    from_column: Vec<u32>,
    column_done: Vec<bool>,
}

pub(super) fn find(a: &Side, b: &Side, costs: &[f64], rooms: &mut Rooms, matches: &mut Vec<Match>) {
    let (n_a, n_b) = (a.firsts.len(), b.firsts.len());
    if n_a * n_b > LARGEST {
        return greedy::find(a, b, costs, &mut rooms.left, matches);
    }
    let beyond = |i: usize, j: usize| costs[i * n_b + j] - a.leave[i] - b.leave[j];
    let room = &mut rooms.optimal;
    let a_is_smaller = a.n_nodes <= b.n_nodes;
    room.costs.clear();
    if a_is_smaller {
        room.costs.extend((0..n_a).flat_map(|i| (0..n_b).map(move |j| beyond(i, j))));
        room.transport(&a.counts, &b.counts);
    } else {
        room.costs.extend((0..n_b).flat_map(|j| (0..n_a).map(move |i| beyond(i, j))));
        room.transport(&b.counts, &a.counts);
    }
    let n_columns = if a_is_smaller { n_b } else { n_a };
    for (position, &count) in room.flow.iter().enumerate().filter(|&(_, &count)| count > 0) {
        let (row, column) = ((position / n_columns) as u32, (position % n_columns) as u32);
        let (a, b) = if a_is_smaller { (row, column) } else { (column, row) };
        matches.push(Match { a, b, count });
    }
}

impl Room {
    /// Sends all of `rows` to `columns`, which have room for them.
    fn transport(&mut self, rows: &[u32], columns: &[u32]) {
        let (n_rows, n_columns) = (rows.len(), columns.len());
        reset(&mut self.flow, n_rows * n_columns, 0);
        reset(&mut self.row_potentials, n_rows, 0.0);
        reset(&mut self.column_potentials, n_columns, 0.0);
        self.left.clear();
        self.left.extend_from_slice(columns);
        for (row, &count) in rows.iter().enumerate() {
            let mut waiting = count;
            while waiting > 0 {
                let Some(end) = self.search(row, n_rows, n_columns) else { return };
                waiting -= self.send(row, end, waiting, n_columns);
            }
        }
    }

    /// The nearest column with room left; potentials are moved so that all reduced costs stay at least 0.
    fn search(&mut self, start: usize, n_rows: usize, n_columns: usize) -> Option<usize> {
        reset(&mut self.row_distances, n_rows, f64::INFINITY);
        reset(&mut self.column_distances, n_columns, f64::INFINITY);
        reset(&mut self.from_row, n_columns, NONE);
        reset(&mut self.from_column, n_rows, NONE);
        reset(&mut self.column_done, n_columns, false);
        self.row_distances[start] = 0.0;
        self.relax(start, n_columns);
        loop {
            let mut nearest: Option<usize> = None;
            for column in (0..n_columns).filter(|&column| !self.column_done[column]) {
                if nearest.is_none_or(|best| self.column_distances[column] < self.column_distances[best]) {
                    nearest = Some(column);
                }
            }
            let column = nearest?;
            self.column_done[column] = true;
            if self.left[column] > 0 {
                self.move_potentials(self.column_distances[column], n_rows, n_columns);
                return Some(column);
            }
            // Going back along what was sent costs nothing on reduced costs.
            for row in 0..n_rows {
                if self.flow[row * n_columns + column] > 0 && self.row_distances[row] == f64::INFINITY {
                    self.row_distances[row] = self.column_distances[column];
                    self.from_column[row] = column as u32;
                    self.relax(row, n_columns);
                }
            }
        }
    }

    fn relax(&mut self, row: usize, n_columns: usize) {
        let base = self.row_distances[row] - self.row_potentials[row];
        for column in 0..n_columns {
            let distance = base + self.costs[row * n_columns + column] - self.column_potentials[column];
            if distance < self.column_distances[column] && !self.column_done[column] {
                self.column_distances[column] = distance;
                self.from_row[column] = row as u32;
            }
        }
    }

    fn move_potentials(&mut self, reached: f64, n_rows: usize, n_columns: usize) {
        for row in (0..n_rows).filter(|&row| self.row_distances[row].is_finite()) {
            self.row_potentials[row] += reached - self.row_distances[row];
        }
        for column in (0..n_columns).filter(|&column| self.column_done[column]) {
            self.column_potentials[column] -= reached - self.column_distances[column];
        }
    }

    /// Sends as much as the path to `end` takes, at most `most`.
    fn send(&mut self, start: usize, end: usize, most: u32, n_columns: usize) -> u32 {
        let mut count = most.min(self.left[end]);
        let mut column = end;
        loop {
            let row = self.from_row[column] as usize;
            if row == start {
                break;
            }
            column = self.from_column[row] as usize;
            count = count.min(self.flow[row * n_columns + column]);
        }
        self.left[end] -= count;
        let mut column = end;
        loop {
            let row = self.from_row[column] as usize;
            self.flow[row * n_columns + column] += count;
            if row == start {
                return count;
            }
            column = self.from_column[row] as usize;
            self.flow[row * n_columns + column] -= count;
        }
    }
}

fn reset<T: Clone>(list: &mut Vec<T>, len: usize, value: T) {
    list.clear();
    list.resize(len, value);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn side(counts: &[u32], leave: f64) -> Side {
        let firsts = counts.iter().scan(0, |next, &count| Some(std::mem::replace(next, *next + count)));
        Side {
            firsts: firsts.collect(),
            counts: counts.to_vec(),
            leave: vec![leave; counts.len()],
            n_nodes: counts.iter().sum(),
        }
    }

    fn total(matches: &[Match], costs: &[f64], n_b: usize) -> f64 {
        matches.iter().map(|found| f64::from(found.count) * costs[found.a as usize * n_b + found.b as usize]).sum()
    }

    /// The least cost of giving everybody of the smaller side a partner, by trying all.
    fn least(rows: &[usize], free: &mut Vec<u32>, cost: &dyn Fn(usize, usize) -> f64) -> f64 {
        let Some((&row, rest)) = rows.split_first() else { return 0.0 };
        let mut least_of_all = f64::INFINITY;
        for column in 0..free.len() {
            if free[column] > 0 {
                free[column] -= 1;
                least_of_all = least_of_all.min(cost(row, column) + least(rest, free, cost));
                free[column] += 1;
            }
        }
        least_of_all
    }

    proptest! {
        #[test]
        fn no_pairing_costs_less(
            a in prop::collection::vec(1u32..3, 1..4),
            b in prop::collection::vec(1u32..3, 1..4),
            costs in prop::collection::vec(0u32..20, 9),
        ) {
            let (side_a, side_b) = (side(&a, 7.0), side(&b, 9.0));
            let costs: Vec<f64> = costs[..a.len() * b.len()].iter().map(|&cost| f64::from(cost)).collect();
            let mut matches = Vec::new();
            find(&side_a, &side_b, &costs, &mut Rooms::default(), &mut matches);
            let expand = |counts: &[u32]| -> Vec<usize> {
                counts.iter().enumerate().flat_map(|(run, &count)| std::iter::repeat_n(run, count as usize)).collect()
            };
            let expected = if side_a.n_nodes <= side_b.n_nodes {
                least(&expand(&a), &mut b.clone(), &|i, j| costs[i * b.len() + j])
            } else {
                least(&expand(&b), &mut a.clone(), &|j, i| costs[i * b.len() + j])
            };
            prop_assert_eq!(total(&matches, &costs, b.len()), expected);
            let n_pairs: u32 = matches.iter().map(|found| found.count).sum();
            prop_assert_eq!(n_pairs, side_a.n_nodes.min(side_b.n_nodes));
            for (run, &count) in a.iter().enumerate() {
                let used: u32 = matches.iter().filter(|found| found.a as usize == run).map(|found| found.count).sum();
                prop_assert!(used <= count);
            }
            let mut greedy_matches = Vec::new();
            greedy::find(&side_a, &side_b, &costs, &mut Vec::new(), &mut greedy_matches);
            prop_assert!(expected <= total(&greedy_matches, &costs, b.len()));
        }
    }
}
