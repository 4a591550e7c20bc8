//! [`Boxes`]: which classes cover a person of the private table or the register, and the crowd of each class: how many
//! persons it covers.
//!
//! If the register and the private table give a person different values, the person counts only in classes that cover
//! both.
//!
//! # Cost
//! The index is over the classes, and persons are looked up one after another on all cores. Only one bit is kept per
//! register person. If classes don't overlap, a person visits one leaf of the index, with one or two comparisons per
//! level.

use kohort_model::{InRegister, JoinedRegister, Texts};
use rayon::prelude::*;

use super::Heads;
use crate::reading::coverage::{Coverage, Runs};

/// An index of classes by the values that their cells cover.
pub(super) struct Boxes<'a> {
    joined: &'a JoinedRegister,
    runs: Vec<Runs>,
    /// For each class and column, the positions that its cells cover (the end excluded).
    sides: Vec<(u32, u32)>,
    /// Classes in the order of the index.
    order: Vec<u32>,
    nodes: Vec<BoxNode>,
}

/// A range of classes in `order`.
enum BoxNode {
    /// So few classes that each is compared.
    Few { start: u32, end: u32 },
    /// Two halves. In one column, all classes of the first half end before `first_ends`, and all classes of the second
    /// half start at `second_starts` or later. The first half is the node `first`, and the second one follows it.
    Halves { column: u32, first_ends: u32, second_starts: u32, first: u32 },
}

/// A position in a column that divides classes into two halves.
struct Cut {
    column: usize,
    /// The sum of both ends of a class, at which the second half begins. Sums are used because the middle of a class
    /// may lie between two positions.
    at: u64,
    /// The number of classes that lie across the cut, plus a quarter of the imbalance of the halves.
    cost: usize,
}

impl Cut {
    /// The cut at the median of the middles of classes; `None` if all middles are the same.
    fn of(column: usize, classes: &[u32], side: impl Fn(u32, usize) -> (u32, u32)) -> Option<Cut> {
        let sum = |class: u32| {
            let (from, to) = side(class, column);
            u64::from(from) + u64::from(to)
        };
        let mut sums: Vec<u64> = classes.iter().map(|&class| sum(class)).collect();
        let (lower, &mut median, upper) = sums.select_nth_unstable(classes.len() / 2);
        // Classes with the same middle stay together, so that a column with few values is cut between values.
        let at = if lower.iter().any(|&sum| sum < median) {
            median
        } else {
            upper.iter().copied().filter(|&sum| sum > median).min()?
        };
        let n_first = classes.iter().filter(|&&class| sum(class) < at).count();
        let lies_across = |&&class: &&u32| {
            let (from, to) = side(class, column);
            u64::from(from) * 2 < at && at < u64::from(to) * 2
        };
        let n_across = classes.iter().filter(lies_across).count();
        Some(Cut { column, at, cost: n_across + n_first.abs_diff(classes.len() / 2) / 4 })
    }

    fn is_first(&self, (from, to): (u32, u32)) -> bool {
        u64::from(from) + u64::from(to) < self.at
    }
}

/// Nodes with at most this many classes are not halved.
const LEAF: usize = 6;

/// The number of rows that a thread takes at once.
const BLOCK: usize = 1 << 14;

/// The number of rows whose bits are in one word.
const ROWS_PER_WORD: usize = u64::BITS as usize;

impl<'a> Boxes<'a> {
    /// An index of classes. `labels` are the labels of each quasi column of the release, and `cells` holds one label
    /// per column for each class.
    pub(super) fn new(joined: &'a JoinedRegister, labels: &[&Texts], cells: &[Vec<u32>]) -> Self {
        let columns = joined.rows.columns.par_iter().zip(labels);
        let runs: Vec<Runs> = columns.map(|(column, labels)| Runs::new(&Coverage::new(column, labels))).collect();
        let side = |cells: &Vec<u32>| runs.iter().zip(cells).map(|(runs, &label)| runs.run(label)).collect::<Vec<_>>();
        let sides: Vec<(u32, u32)> = cells.iter().flat_map(side).collect();
        let order = (0..cells.len() as u32).collect();
        let all = BoxNode::Few { start: 0, end: cells.len() as u32 };
        let mut boxes = Boxes { joined, runs, sides, order, nodes: vec![all] };
        let mut next = 0;
        while next < boxes.nodes.len() {
            boxes.halve(next);
            next += 1;
        }
        boxes
    }

    fn n_columns(&self) -> usize {
        self.runs.len()
    }

    /// The positions that the cells of a class cover, column by column.
    pub(super) fn sides(&self, class: usize) -> &[(u32, u32)] {
        &self.sides[class * self.n_columns()..][..self.n_columns()]
    }

    /// The positions of the cells of a row of the join.
    pub(super) fn place(&self, row: usize) -> Vec<u32> {
        let columns = self.runs.iter().zip(&self.joined.rows.columns);
        columns.map(|(runs, column)| runs.position(column.ids[row])).collect()
    }

    /// Divides a node with many classes into two halves, by the cut with the least cost.
    fn halve(&mut self, node: usize) {
        let BoxNode::Few { start, end } = self.nodes[node] else { return };
        if (end - start) as usize <= LEAF {
            return;
        }
        let (sides, n_columns) = (&self.sides, self.runs.len());
        let side = |class: u32, column: usize| sides[class as usize * n_columns + column];
        let classes = &mut self.order[start as usize..end as usize];
        let Some(cut) = (0..n_columns).filter_map(|column| Cut::of(column, classes, side)).min_by_key(|cut| cut.cost)
        else {
            return;
        };
        classes.sort_unstable_by_key(|&class| (!cut.is_first(side(class, cut.column)), class));
        let half = classes.partition_point(|&class| cut.is_first(side(class, cut.column)));
        let (first, second) = classes.split_at(half);
        let first_ends = first.iter().map(|&class| side(class, cut.column).1).max().unwrap_or(0);
        let second_starts = second.iter().map(|&class| side(class, cut.column).0).min().unwrap_or(u32::MAX);
        let middle = start + half as u32;
        let (column, first) = (cut.column as u32, self.nodes.len() as u32);
        self.nodes[node] = BoxNode::Halves { column, first_ends, second_starts, first };
        self.nodes.extend([BoxNode::Few { start, end: middle }, BoxNode::Few { start: middle, end }]);
    }

    /// Calls `found` for each class whose cells cover a row of the join.
    fn each_holding(&self, row: u32, working: &mut Working, mut found: impl FnMut(u32)) {
        let Working { place, open } = working;
        place.clear();
        let columns = self.runs.iter().zip(&self.joined.rows.columns);
        place.extend(columns.map(|(runs, column)| runs.position(column.ids[row as usize])));
        let holds = |sides: &[(u32, u32)]| sides.iter().zip(&*place).all(|(&(from, to), &at)| from <= at && at < to);
        open.clear();
        open.push(0u32);
        while let Some(node) = open.pop() {
            match self.nodes[node as usize] {
                BoxNode::Few { start, end } => {
                    let classes = &self.order[start as usize..end as usize];
                    classes.iter().filter(|&&class| holds(self.sides(class as usize))).for_each(|&class| found(class));
                }
                BoxNode::Halves { column, first_ends, second_starts, first } => {
                    let at = place[column as usize];
                    if at < first_ends {
                        open.push(first);
                    }
                    if at >= second_starts {
                        open.push(first + 1);
                    }
                }
            }
        }
    }

    /// Whether the cells of a class cover a row of the join.
    fn holds(&self, class: u32, row: u32) -> bool {
        let columns = self.runs.iter().zip(&self.joined.rows.columns).zip(self.sides(class as usize));
        columns.into_iter().all(|((runs, column), &(from, to))| {
            let position = runs.position(column.ids[row as usize]);
            from <= position && position < to
        })
    }

    /// Counts the crowd of each class. Only the first `n_origins` rows of the join can be origins of released rows.
    pub(super) fn count(&self, n_origins: usize) -> Crowd {
        let n_rows = self.joined.n_microdata + self.joined.n_register;
        let n_classes = self.order.len();
        let nobody = || (vec![Heads::default(); n_classes], vec![0u32; n_classes]);
        let mut shared = vec![0u64; n_rows.div_ceil(ROWS_PER_WORD)];
        let (heads, held_alone) = shared
            .par_chunks_mut(BLOCK / ROWS_PER_WORD)
            .enumerate()
            // Each part of the work has counters for all classes, so there should be few parts.
            .with_min_len(n_rows.div_ceil(BLOCK).div_ceil(4 * rayon::current_num_threads()))
            .fold(
                || (nobody(), Working::default()),
                |((mut heads, mut held_alone), mut working), (block, shared)| {
                    for row in block * BLOCK..((block + 1) * BLOCK).min(n_rows) {
                        let otherwise = said_otherwise(self.joined, row as u32);
                        let (mut n_holding, mut last) = (0, 0);
                        self.each_holding(row as u32, &mut working, |class| {
                            (n_holding, last) = (n_holding + 1, class as usize);
                            if otherwise.is_none_or(|other| self.holds(class, other)) {
                                heads[class as usize].add(self.joined, row as u32);
                            }
                        });
                        match n_holding {
                            _ if row >= n_origins => {}
                            0 => {}
                            1 => held_alone[last] += 1,
                            _ => {
                                let at = row % BLOCK;
                                shared[at / ROWS_PER_WORD] |= 1 << (at % ROWS_PER_WORD);
                            }
                        }
                    }
                    ((heads, held_alone), working)
                },
            )
            .map(|(counts, _)| counts)
            .reduce(nobody, |(mut heads, mut held_alone), (more_heads, more_alone)| {
                heads.iter_mut().zip(more_heads).for_each(|(heads, more)| *heads += more);
                held_alone.iter_mut().zip(more_alone).for_each(|(alone, more)| *alone += more);
                (heads, held_alone)
            });
        Crowd { heads, held_alone, shared }
    }

    /// For each class, which of the first `n_rows` rows of the join its cells cover.
    pub(super) fn held_rows(&self, n_rows: usize) -> Vec<Vec<u32>> {
        let mut rows = vec![Vec::new(); self.order.len()];
        let mut working = Working::default();
        for row in 0..n_rows as u32 {
            self.each_holding(row, &mut working, |class| rows[class as usize].push(row));
        }
        rows
    }

    /// How many origins each class lacks after a quick assignment: each origin goes to a class that covers it, and of
    /// several to the one that has the fewest to spare. `held` estimates how many each class covers. If no class lacks
    /// any, there are origins for all rows. Otherwise the result proves nothing.
    pub(super) fn lacking_by_turns(&self, crowd: &Crowd, needs: &[u32], held: &[u64]) -> Vec<u32> {
        let mut lacking: Vec<u32> =
            needs.iter().zip(&crowd.held_alone).map(|(&need, &alone)| need.saturating_sub(alone)).collect();
        let mut n_lacking: u64 = lacking.iter().map(|&need| u64::from(need)).sum();
        let others = held.iter().zip(&crowd.held_alone).map(|(&held, &alone)| held as i64 - i64::from(alone));
        let mut spare: Vec<i64> = others.zip(&lacking).map(|(others, &lacking)| others - i64::from(lacking)).collect();
        // Blocks of rows are looked up on all cores, and assigned in their order.
        let words_at_once = BLOCK / ROWS_PER_WORD * rayon::current_num_threads();
        for (part, words) in crowd.shared.chunks(words_at_once).enumerate() {
            if n_lacking == 0 {
                break;
            }
            let first = part * words_at_once;
            let placed: Vec<(Vec<u32>, Vec<u32>)> = words
                .par_iter()
                .enumerate()
                .with_min_len(1 << 5)
                .fold(
                    || (Vec::new(), Vec::new(), Working::default()),
                    |(mut classes, mut ends, mut working), (at, &word)| {
                        let mut rows = word;
                        while rows != 0 {
                            let row = (first + at) * ROWS_PER_WORD + rows.trailing_zeros() as usize;
                            self.each_holding(row as u32, &mut working, |class| classes.push(class));
                            ends.push(classes.len() as u32);
                            rows &= rows - 1;
                        }
                        (classes, ends, working)
                    },
                )
                .map(|(classes, ends, _)| (classes, ends))
                .collect();
            for (classes, ends) in placed {
                let mut start = 0;
                for end in ends {
                    let holding = &classes[start..end as usize];
                    start = end as usize;
                    let lacks = holding.iter().copied().filter(|&class| lacking[class as usize] > 0);
                    if let Some(taker) = lacks.min_by_key(|&class| spare[class as usize]) {
                        lacking[taker as usize] -= 1;
                        spare[taker as usize] += 1;
                        n_lacking -= 1;
                    }
                    holding.iter().for_each(|&class| spare[class as usize] -= 1);
                }
            }
        }
        lacking
    }
}

/// The crowds of all classes, and the rows that several classes cover.
pub(super) struct Crowd {
    /// The persons whom the cells of each class cover.
    pub(super) heads: Vec<Heads>,
    /// For each class, the number of origins that no other class covers.
    held_alone: Vec<u32>,
    /// One bit per row of the join, set for origins that several classes cover. There are few, because classes seldom
    /// overlap.
    shared: Vec<u64>,
}

/// Buffers that are reused for each row.
#[derive(Default)]
struct Working {
    place: Vec<u32>,
    open: Vec<u32>,
}

/// The row of the join with the values that the register gives to a private person, if they differ from the private
/// ones.
pub(super) fn said_otherwise(joined: &JoinedRegister, row: u32) -> Option<u32> {
    match joined.persons.get(row as usize)? {
        InRegister::Differs(other) => Some(*other),
        InRegister::Absent | InRegister::Same(_) => None,
    }
}
