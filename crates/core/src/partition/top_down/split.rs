//! One split: two seeds far apart, every row to the side whose loss grows least.
//!
//! # Guarantee
//! both sides have rows, at least one satisfies the rules, and one that does not weighs less than 2k
//! # Deviations
//! If the rows' own choice breaks the rules, the undecided rows change sides: the ranking between the seeds is cut at
//! its middle or its quarters. If that breaks them too, the rows are ranked by one column instead, the widest first.
//! None of this happens if k alone is asked.

use super::group::Growing;
use crate::encode::bounds;
use crate::partition::Task;
use crate::requirement::Tally;

/// Seeds are found in this many steps: from the first row to the row farthest from it, then to the row farthest from
/// that, and so on.
const SEED_STEPS: usize = 3;

/// Whether the sides of a split may differ in size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Balance {
    /// The sides may differ in size.
    Free,
    /// Each side gets about half of the rows.
    Forced,
}

/// One side of a split.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    pub(super) n_rows: usize,
    pub(super) weight: u64,
    pub(super) stands: bool,
}

pub(super) struct Splitter<'a> {
    task: &'a Task<'a>,
    tally: Tally<'a>,
    /// The rows, from the one that most prefers the first seed to the one that most prefers the second, with how much
    /// nearer the first seed is.
    ranked: Vec<(f64, u32)>,
    of_first: Vec<bool>,
    /// The loss of each row in a box with each seed.
    distances: [Vec<f64>; 2],
}

impl<'a> Splitter<'a> {
    pub(super) fn new(task: &'a Task<'a>) -> Splitter<'a> {
        let (ranked, of_first, distances) = (Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
        Splitter { task, tally: Tally::new(task.rules), ranked, of_first, distances }
    }

    /// Splits rows of this total weight, and moves those of the first side to the front. `None` if they must stay
    /// together.
    pub(super) fn split(&mut self, rows: &mut [u32], weight: u64, balance: Balance) -> Option<[Side; 2]> {
        if rows.len() < 2 || weight < 2 * u64::from(self.task.rules.k()) {
            return None;
        }
        self.rank_by_seeds(rows);
        if balance == Balance::Free {
            self.choose_sides();
            if let Some(sides) = self.sides() {
                self.arrange(rows);
                return Some(sides);
            }
        }
        let bounds = self.task.rows.bounds(rows);
        let widths = bounds.iter().zip(self.task.domains).map(|(&(lo, hi), domain)| domain.width(lo, hi));
        let mut columns: Vec<(f64, usize)> = widths.zip(0..).filter(|&(width, _)| width > 0.0).collect();
        columns.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut columns = columns.into_iter();
        loop {
            if let Some(sides) = self.cut_ranking() {
                self.arrange(rows);
                return Some(sides);
            }
            self.rank_by_column(columns.next()?.1);
        }
    }

    /// Finds the seeds and ranks the rows between them.
    fn rank_by_seeds(&mut self, rows: &[u32]) {
        let [from_seed, from_previous] = &mut self.distances;
        distances_from(self.task, rows[0], rows, from_seed);
        for _ in 0..SEED_STEPS {
            let (mut farthest, mut largest) = (rows[0], -1.0);
            for (&row, &distance) in rows.iter().zip(&*from_seed) {
                if distance > largest {
                    (farthest, largest) = (row, distance);
                }
            }
            std::mem::swap(from_seed, from_previous);
            distances_from(self.task, farthest, rows, from_seed);
        }
        let nearer = from_seed.iter().zip(&*from_previous).map(|(seed, previous)| seed - previous);
        self.ranked.clear();
        self.ranked.extend(nearer.zip(rows.iter().copied()));
        self.ranked.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    }

    fn rank_by_column(&mut self, column: usize) {
        let rows = self.task.rows;
        self.ranked.sort_unstable_by_key(|&(_, row)| (rows.cells(row)[column], row));
    }

    /// Lets the rows choose, the surest first: from both ends of the ranking to its middle.
    fn choose_sides(&mut self) {
        let (task, rows) = (self.task, self.task.rows);
        let n_rows = self.ranked.len();
        self.of_first.clear();
        self.of_first.resize(n_rows, false);
        let seed = |row| Growing::new(task, rows.cells(row).iter().map(|&code| (code, code)), 0);
        let (mut first, mut second) = (seed(self.ranked[0].1), seed(self.ranked[n_rows - 1].1));
        let (mut low, mut high) = (0, n_rows);
        while low < high {
            let position = if -self.ranked[low].0 >= self.ranked[high - 1].0 {
                low += 1;
                low - 1
            } else {
                high -= 1;
                high
            };
            let (nearer, chooses) = self.ranked[position];
            let (cells, weight) = (rows.cells(chooses), rows.weight(chooses));
            // At equal cost the nearer seed decides, then the lighter side.
            let one = (first.cost(task, cells, weight), nearer, first.weight);
            let other = (second.cost(task, cells, weight), 0.0, second.weight);
            self.of_first[position] = one <= other;
            if one <= other { first.add(task, cells, weight) } else { second.add(task, cells, weight) }
        }
    }

    /// Cuts the ranking at its middle or its quarters, if the sides satisfy the rules.
    fn cut_ranking(&mut self) -> Option<[Side; 2]> {
        let n_rows = self.ranked.len();
        [n_rows / 2, n_rows / 4, n_rows - n_rows / 4].into_iter().find_map(|n_first| {
            self.of_first.clear();
            self.of_first.extend((0..n_rows).map(|position| position < n_first));
            self.sides()
        })
    }

    /// The two sides, if the rules allow them.
    fn sides(&mut self) -> Option<[Side; 2]> {
        let k = u64::from(self.task.rules.k());
        let mut sides = [Side { n_rows: 0, weight: 0, stands: false }; 2];
        for (&(_, row), &of_first) in self.ranked.iter().zip(&self.of_first) {
            let side = &mut sides[usize::from(!of_first)];
            side.n_rows += 1;
            side.weight += u64::from(self.task.rows.weight(row));
        }
        for (side, which) in sides.iter_mut().zip([true, false]) {
            let chosen = self.ranked.iter().zip(&self.of_first).filter(|&(_, &of_first)| of_first == which);
            side.stands = self.task.stands(&mut self.tally, chosen.map(|(&(_, row), _)| row));
        }
        let [first, second] = sides;
        let may_be = |one: Side, other: Side| one.stands && (other.stands || other.weight < 2 * k);
        let both_have_rows = first.n_rows > 0 && second.n_rows > 0;
        (both_have_rows && (may_be(first, second) || may_be(second, first))).then_some(sides)
    }

    /// Puts the rows of the first side before the others.
    fn arrange(&mut self, rows: &mut [u32]) {
        let n_first = self.of_first.iter().filter(|&&of_first| of_first).count();
        let (first, second) = rows.split_at_mut(n_first);
        let (mut first, mut second) = (first.iter_mut(), second.iter_mut());
        for (&(_, row), &of_first) in self.ranked.iter().zip(&self.of_first) {
            let place = if of_first { first.next() } else { second.next() };
            *place.expect("there is a place for each row of a side") = row;
        }
    }
}

/// The loss of each of some rows in the smallest box that contains it and another row.
fn distances_from(task: &Task<'_>, from: u32, rows: &[u32], distances: &mut Vec<f64>) {
    let point: Vec<(u32, u32)> = task.rows.cells(from).iter().map(|&code| (code, code)).collect();
    distances.clear();
    let distance = |&row: &u32| bounds::width_with(task.domains, &point, task.rows.cells(row).iter().copied());
    distances.extend(rows.iter().map(distance));
}
