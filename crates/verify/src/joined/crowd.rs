//! [`Boxes`]: which classes hold a person of private table and register, and how many persons each class holds.
//!
//! A person of whom the register says something else than the private table counts where the cells hold both.
//!
//! # Cost
//! The index is over the classes, and persons stream by: nothing is kept per register person but one bit. A person visits
//! one leaf of the index where classes don't overlap, at one or two comparisons per level, on all cores.

use kohort_model::{InRegister, JoinedRegister, Texts};
use rayon::prelude::*;

use super::Heads;
use crate::reading::coverage::{Coverage, Runs};

/// What the cells of each class hold, found by person.
pub(super) struct Boxes<'a> {
    joined: &'a JoinedRegister,
    runs: Vec<Runs>,
    /// Per class and column the positions its cells hold, from the first to before the last.
    sides: Vec<(u32, u32)>,
    /// Classes in the order of the index.
    order: Vec<u32>,
    nodes: Vec<Node>,
}

/// Classes that stand next to each other in `order`.
enum Node {
    /// Few enough to look at each of them.
    Few { start: u32, end: u32 },
    /// Two halves, told apart by one column: there all of the first end before `first_ends`, and all of the second start
    /// at `second_starts` or later. The first is the node `first`, the second follows it.
    Halves { column: u32, first_ends: u32, second_starts: u32, first: u32 },
}

/// A position in a column, by which classes are put in two halves.
struct Cut {
    column: usize,
    /// The sum of both ends of the first class of the second half; ends are summed because a middle may be no position.
    at: u64,
    /// Classes that lie across the cut, and a quarter of how far the halves are from equal.
    cost: usize,
}

impl Cut {
    /// The cut at the median of the middles of classes, or none where all middles are the same.
    fn of(column: usize, classes: &[u32], side: impl Fn(u32, usize) -> (u32, u32)) -> Option<Cut> {
        let sum = |class: u32| {
            let (from, to) = side(class, column);
            u64::from(from) + u64::from(to)
        };
        let mut sums: Vec<u64> = classes.iter().map(|&class| sum(class)).collect();
        let (lower, &mut median, upper) = sums.select_nth_unstable(classes.len() / 2);
        // Classes with the same middle stay together, so that a column of few values is cut between values.
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

/// Nodes of at most so many classes are not halved.
const LEAF: usize = 6;

/// How many rows a thread takes at once.
const BLOCK: usize = 1 << 14;

/// Rows whose bits are in one word.
const ROWS_PER_WORD: usize = u64::BITS as usize;

impl<'a> Boxes<'a> {
    /// `labels` are those of each quasi column of the release, and `cells` of each class one label per column.
    pub(super) fn new(joined: &'a JoinedRegister, labels: &[&Texts], cells: &[Vec<u32>]) -> Self {
        let columns = joined.rows.columns.par_iter().zip(labels);
        let runs: Vec<Runs> = columns.map(|(column, labels)| Runs::new(&Coverage::new(column, labels))).collect();
        let side = |cells: &Vec<u32>| runs.iter().zip(cells).map(|(runs, &label)| runs.run(label)).collect::<Vec<_>>();
        let sides: Vec<(u32, u32)> = cells.iter().flat_map(side).collect();
        let order = (0..cells.len() as u32).collect();
        let all = Node::Few { start: 0, end: cells.len() as u32 };
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

    /// What the cells of a class hold.
    pub(super) fn sides(&self, class: usize) -> &[(u32, u32)] {
        &self.sides[class * self.n_columns()..][..self.n_columns()]
    }

    /// Where a joined row stands.
    pub(super) fn place(&self, row: usize) -> Vec<u32> {
        let columns = self.runs.iter().zip(&self.joined.rows.columns);
        columns.map(|(runs, column)| runs.position(column.ids[row])).collect()
    }

    /// Gives a node of many classes two halves, by the cut that the fewest of them lie across.
    fn halve(&mut self, node: usize) {
        let Node::Few { start, end } = self.nodes[node] else { return };
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
        self.nodes[node] = Node::Halves { column, first_ends, second_starts, first };
        self.nodes.extend([Node::Few { start, end: middle }, Node::Few { start: middle, end }]);
    }

    /// Calls for each class whose cells hold a joined row. `open` and `place` are working memory.
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
                Node::Few { start, end } => {
                    let classes = &self.order[start as usize..end as usize];
                    classes.iter().filter(|&&class| holds(self.sides(class as usize))).for_each(|&class| found(class));
                }
                Node::Halves { column, first_ends, second_starts, first } => {
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

    /// Whether the cells of a class hold a joined row.
    fn holds(&self, class: u32, row: u32) -> bool {
        let columns = self.runs.iter().zip(&self.joined.rows.columns).zip(self.sides(class as usize));
        columns.into_iter().all(|((runs, column), &(from, to))| {
            let position = runs.position(column.ids[row as usize]);
            from <= position && position < to
        })
    }

    /// Looks once at every person. The first `n_origins` joined rows can be origins of released rows.
    pub(super) fn count(&self, n_origins: usize) -> Crowd {
        let n_rows = self.joined.n_microdata + self.joined.n_register;
        let n_classes = self.order.len();
        let nobody = || (vec![Heads::default(); n_classes], vec![0u32; n_classes]);
        let mut shared = vec![0u64; n_rows.div_ceil(ROWS_PER_WORD)];
        let (heads, held_alone) = shared
            .par_chunks_mut(BLOCK / ROWS_PER_WORD)
            .enumerate()
            // Each part of the work counts for all classes, so parts are few.
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

    /// Per class which of the first `n_rows` joined rows its cells hold.
    pub(super) fn held_rows(&self, n_rows: usize) -> Vec<Vec<u32>> {
        let mut rows = vec![Vec::new(); self.order.len()];
        let mut working = Working::default();
        for row in 0..n_rows as u32 {
            self.each_holding(row, &mut working, |class| rows[class as usize].push(row));
        }
        rows
    }

    /// Per class the rows it still lacks when each origin is given to one class that holds it: to its only one, or to the
    /// one with the fewest to spare of those it holds, of which `held` is an estimate. All zeros prove that there are
    /// rows for all; anything else proves nothing.
    pub(super) fn lacking_by_turns(&self, crowd: &Crowd, needs: &[u32], held: &[u64]) -> Vec<u32> {
        let mut lacking: Vec<u32> =
            needs.iter().zip(&crowd.held_alone).map(|(&need, &alone)| need.saturating_sub(alone)).collect();
        let mut n_lacking: u64 = lacking.iter().map(|&need| u64::from(need)).sum();
        let others = held.iter().zip(&crowd.held_alone).map(|(&held, &alone)| held as i64 - i64::from(alone));
        let mut spare: Vec<i64> = others.zip(&lacking).map(|(others, &lacking)| others - i64::from(lacking)).collect();
        // Blocks of rows are placed on all cores, and handed out in their order.
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

/// How many persons classes hold, and which rows more than one of them holds.
pub(super) struct Crowd {
    /// Per class the persons its cells hold.
    pub(super) heads: Vec<Heads>,
    /// Per class the origins that no other class holds.
    held_alone: Vec<u32>,
    /// A bit per joined row, set for origins that several classes hold. Mostly classes don't overlap, so few are looked
    /// at again.
    shared: Vec<u64>,
}

/// Memory that is used again for each row.
#[derive(Default)]
struct Working {
    place: Vec<u32>,
    open: Vec<u32>,
}

/// The joined row that says something else of the person of a joined row.
pub(super) fn said_otherwise(joined: &JoinedRegister, row: u32) -> Option<u32> {
    match joined.persons.get(row as usize)? {
        InRegister::Differs(other) => Some(*other),
        InRegister::Absent | InRegister::Same(_) => None,
    }
}
