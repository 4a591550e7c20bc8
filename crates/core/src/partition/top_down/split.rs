//! One split: two seeds far apart, every row to the side whose loss grows least.
//!
//! # Guarantee
//! both sides have rows, at least one satisfies the rules, and one that does not weighs less than 2k
//! # Deviations
//! Where the rows' own choice breaks the rules, the undecided rows change sides: the ranking between the seeds is cut at
//! its middle or its quarters. Where that breaks them too, the rows are ranked by one column instead, the widest first.
//! None of this happens where k alone is asked.

use super::gathered::Gathered;
use super::group::{Growing, Space};
use crate::requirement::{Rules, Tally};

/// From the first row to the farthest from it, to the farthest from that, and so on: so many steps.
const SEED_STEPS: usize = 3;

/// Whether sides may be as unequal as they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Balance {
    /// They may.
    Free,
    /// Each gets about half of the rows.
    Forced,
}

/// One side of a split.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    pub(super) n_rows: usize,
    pub(super) weight: u64,
    pub(super) stands: bool,
}

/// Splits one group after the other.
pub(super) struct Splitter<'a> {
    rules: &'a Rules,
    space: Space<'a>,
    tally: Tally<'a>,
    /// The rows to be split.
    gathered: Gathered<'a>,
    /// Their positions from those surest of the first seed to those surest of the second, with how much nearer the
    /// first is.
    ranked: Vec<(f64, u32)>,
    of_first: Vec<bool>,
    /// What rows lose with a seed.
    distances: [Vec<f64>; 2],
}

impl<'a> Splitter<'a> {
    pub(super) fn new(rules: &'a Rules, space: Space<'a>) -> Splitter<'a> {
        let (ranked, of_first, distances) = (Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
        Splitter { rules, space, tally: Tally::new(rules), gathered: Gathered::new(space), ranked, of_first, distances }
    }

    /// Splits rows that weigh so much, the first side's to the front; `None` where they must stay together.
    pub(super) fn split(&mut self, rows: &mut [u32], weight: u64, balance: Balance) -> Option<[Side; 2]> {
        if rows.len() < 2 || weight < 2 * u64::from(self.rules.k()) {
            return None;
        }
        self.gathered.gather(rows);
        self.rank_by_seeds();
        if balance == Balance::Free {
            self.choose_sides();
            if let Some(sides) = self.sides() {
                self.arrange(rows);
                return Some(sides);
            }
        }
        let bounds = self.space.rows.bounds(rows);
        let widths = bounds.iter().zip(self.space.domains).map(|(&(lo, hi), domain)| domain.width(lo, hi));
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
    fn rank_by_seeds(&mut self) {
        let gathered = &mut self.gathered;
        let [from_seed, from_previous] = &mut self.distances;
        gathered.distances_from(0, from_seed);
        for _ in 0..SEED_STEPS {
            let (mut farthest, mut largest) = (0, -1.0);
            for (position, &distance) in from_seed.iter().enumerate() {
                if distance > largest {
                    (farthest, largest) = (position as u32, distance);
                }
            }
            std::mem::swap(from_seed, from_previous);
            gathered.distances_from(farthest, from_seed);
        }
        let nearer = from_seed.iter().zip(&*from_previous).map(|(seed, previous)| seed - previous);
        self.ranked.clear();
        self.ranked.extend(nearer.zip(0..));
        self.ranked
            .sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then_with(|| gathered.row(a.1).cmp(&gathered.row(b.1))));
    }

    fn rank_by_column(&mut self, column: usize) {
        let gathered = &self.gathered;
        self.ranked.sort_unstable_by_key(|&(_, position)| (gathered.cells(position)[column], gathered.row(position)));
    }

    /// Lets the rows choose, the surest first: from both ends of the ranking to its middle.
    fn choose_sides(&mut self) {
        let (space, gathered) = (self.space, &self.gathered);
        let n_rows = self.ranked.len();
        self.of_first.clear();
        self.of_first.resize(n_rows, false);
        let seed = |position| Growing::new(space, gathered.cells(position).iter().map(|&code| (code, code)), 0);
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
            let (cells, weight) = (gathered.cells(chooses), space.rows.weight(gathered.row(chooses)));
            // Of equal costs the nearer seed decides, then the lighter side.
            let one = (first.cost(space, cells, weight), nearer, first.weight);
            let other = (second.cost(space, cells, weight), 0.0, second.weight);
            self.of_first[position] = one <= other;
            if one <= other { first.add(space, cells, weight) } else { second.add(space, cells, weight) }
        }
    }

    /// Cuts the ranking at its middle or its quarters, where the sides may be.
    fn cut_ranking(&mut self) -> Option<[Side; 2]> {
        let n_rows = self.ranked.len();
        [n_rows / 2, n_rows / 4, n_rows - n_rows / 4].into_iter().find_map(|n_first| {
            self.of_first.clear();
            self.of_first.extend((0..n_rows).map(|position| position < n_first));
            self.sides()
        })
    }

    /// The two sides, where they may be.
    fn sides(&mut self) -> Option<[Side; 2]> {
        let k = u64::from(self.rules.k());
        let mut sides = [Side { n_rows: 0, weight: 0, stands: false }; 2];
        for (&(_, position), &of_first) in self.ranked.iter().zip(&self.of_first) {
            let side = &mut sides[usize::from(!of_first)];
            side.n_rows += 1;
            side.weight += u64::from(self.space.rows.weight(self.gathered.row(position)));
        }
        for (side, which) in sides.iter_mut().zip([true, false]) {
            side.stands = side.weight >= k;
            if side.stands && !self.rules.weight_suffices() {
                self.tally.clear();
                let chosen = self.ranked.iter().zip(&self.of_first).filter(|&(_, &of_first)| of_first == which);
                for (&(_, position), _) in chosen {
                    self.space
                        .rows
                        .members(self.gathered.row(position))
                        .iter()
                        .for_each(|&member| self.tally.add(member));
                }
                side.stands = self.tally.stands();
            }
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
        for (&(_, position), &of_first) in self.ranked.iter().zip(&self.of_first) {
            let place = if of_first { first.next() } else { second.next() };
            *place.expect("there is a place for each row of a side") = self.gathered.row(position);
        }
    }
}
