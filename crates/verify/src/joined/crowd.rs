//! [`Boxes`]: which classes hold a person of private table and register, and how many persons each class holds.
//!
//! A person of whom the register says something else than the private table counts where the cells hold both.
//!
//! # Cost
//! The index is over the classes, and persons stream by: nothing is kept per register person. A person visits the nodes
//! of the index whose boxes hold them, on all cores.

use kohort_model::{InRegister, JoinedRegister, Texts};
use rayon::prelude::*;

use super::Heads;
use crate::coverage::{Coverage, Runs};

/// What the cells of each class hold, found by person.
pub(super) struct Boxes<'a> {
    joined: &'a JoinedRegister,
    runs: Vec<Runs>,
    /// Per class and column the positions its cells hold, from the first to before the last.
    sides: Vec<(u32, u32)>,
    /// Classes in the order of the index.
    order: Vec<u32>,
    nodes: Vec<Node>,
    /// Per node and column the positions that any class of it holds.
    bounds: Vec<(u32, u32)>,
}

struct Node {
    /// Its classes in `order`.
    start: u32,
    end: u32,
    /// Its first half; the second follows it. 0 where it has none.
    halves: u32,
}

/// Nodes of at most so many classes are not halved.
const LEAF: usize = 6;

/// How many rows a thread takes at once.
const BLOCK: usize = 1 << 14;

impl<'a> Boxes<'a> {
    /// `labels` are those of each quasi column of the release, and `cells` of each class one label per column.
    pub(super) fn new(joined: &'a JoinedRegister, labels: &[&Texts], cells: &[Vec<u32>]) -> Self {
        let columns = joined.rows.columns.par_iter().zip(labels);
        let runs: Vec<Runs> = columns.map(|(column, labels)| Runs::new(&Coverage::new(column, labels))).collect();
        let side = |cells: &Vec<u32>| runs.iter().zip(cells).map(|(runs, &label)| runs.run(label)).collect::<Vec<_>>();
        let sides: Vec<(u32, u32)> = cells.iter().flat_map(side).collect();
        let order = (0..cells.len() as u32).collect();
        let mut boxes = Boxes { joined, runs, sides, order, nodes: Vec::new(), bounds: Vec::new() };
        boxes.add(0, cells.len());
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

    fn add(&mut self, start: usize, end: usize) {
        for column in 0..self.n_columns() {
            let sides = self.order[start..end].iter().map(|&class| self.sides(class as usize)[column]);
            self.bounds.push(sides.fold((u32::MAX, 0), |(from, to), side| (from.min(side.0), to.max(side.1))));
        }
        self.nodes.push(Node { start: start as u32, end: end as u32, halves: 0 });
    }

    /// Gives a node of many classes two halves, by their middles in the column in which these are farthest apart.
    fn halve(&mut self, node: usize) {
        let (start, end) = (self.nodes[node].start as usize, self.nodes[node].end as usize);
        if end - start <= LEAF {
            return;
        }
        let (sides, n_columns) = (&self.sides, self.runs.len());
        let middle = |class: u32, column: usize| {
            let (from, to) = sides[class as usize * n_columns + column];
            u64::from(from) + u64::from(to)
        };
        let classes = &mut self.order[start..end];
        let spread = |column: &usize| {
            let middles = classes.iter().map(|&class| middle(class, *column));
            let (low, high) = middles.fold((u64::MAX, 0), |(low, high), at| (low.min(at), high.max(at)));
            let (from, to) = self.bounds[*column];
            (high.saturating_sub(low)) as f64 / f64::from(to.saturating_sub(from)).max(1.0)
        };
        let Some(widest) = (0..n_columns).max_by(|a, b| spread(a).total_cmp(&spread(b))) else { return };
        let half = classes.len() / 2;
        classes.select_nth_unstable_by_key(half, |&class| (middle(class, widest), class));
        self.nodes[node].halves = self.nodes.len() as u32;
        self.add(start, start + half);
        self.add(start + half, end);
    }

    /// Calls for each class whose cells hold a joined row. `open` and `place` are working memory.
    fn each_holding(&self, row: u32, working: &mut Working, mut found: impl FnMut(u32)) {
        let Working { place, open } = working;
        place.clear();
        let columns = self.runs.iter().zip(&self.joined.rows.columns);
        place.extend(columns.map(|(runs, column)| runs.position(column.ids[row as usize])));
        let n_columns = place.len();
        let holds = |sides: &[(u32, u32)], place: &[u32]| {
            sides.iter().zip(place).all(|(&(from, to), &at)| from <= at && at < to)
        };
        open.clear();
        open.push(0u32);
        while let Some(node) = open.pop() {
            if !holds(&self.bounds[node as usize * n_columns..][..n_columns], place) {
                continue;
            }
            match self.nodes[node as usize] {
                Node { halves: 0, start, end } => {
                    let classes = &self.order[start as usize..end as usize];
                    classes
                        .iter()
                        .filter(|&&class| holds(self.sides(class as usize), place))
                        .for_each(|&class| found(class));
                }
                Node { halves, .. } => open.extend([halves, halves + 1]),
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

    /// Per class the persons its cells hold.
    pub(super) fn held(&self) -> Vec<Heads> {
        let n_rows = self.joined.n_microdata + self.joined.n_register;
        let n_classes = self.order.len();
        (0..n_rows.div_ceil(BLOCK))
            .into_par_iter()
            .fold(
                || (vec![Heads::default(); n_classes], Working::default()),
                |(mut heads, mut working), block| {
                    for row in block * BLOCK..((block + 1) * BLOCK).min(n_rows) {
                        let otherwise = said_otherwise(self.joined, row as u32);
                        self.each_holding(row as u32, &mut working, |class| {
                            if otherwise.is_none_or(|other| self.holds(class, other)) {
                                heads[class as usize].add(self.joined, row as u32);
                            }
                        });
                    }
                    (heads, working)
                },
            )
            .map(|(heads, _)| heads)
            .reduce(
                || vec![Heads::default(); n_classes],
                |mut heads, more| {
                    heads.iter_mut().zip(more).for_each(|(heads, more)| *heads += more);
                    heads
                },
            )
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

    /// Per class the rows it still lacks when each of the first `n_rows` joined rows is given to one class that holds
    /// it: to the one with the fewest to spare of those it holds, of which `held` is an estimate. All zeros prove that
    /// there are rows for all; anything else proves nothing.
    pub(super) fn lacking_by_turns(&self, n_rows: usize, needs: &[u32], held: &[u64]) -> Vec<u32> {
        let mut lacking = needs.to_vec();
        let mut n_lacking: u64 = needs.iter().map(|&need| u64::from(need)).sum();
        let mut spare: Vec<i64> = needs.iter().zip(held).map(|(&need, &held)| held as i64 - i64::from(need)).collect();
        // Blocks of rows are placed on all cores, and handed out in their order.
        let n_at_once = rayon::current_num_threads() * 4;
        let n_blocks = n_rows.div_ceil(BLOCK);
        for first in (0..n_blocks).step_by(n_at_once) {
            if n_lacking == 0 {
                break;
            }
            let blocks = (first..(first + n_at_once).min(n_blocks)).into_par_iter();
            let placed: Vec<(Vec<u32>, Vec<u32>)> = blocks
                .map(|block| {
                    let mut working = Working::default();
                    let (mut classes, mut ends) = (Vec::new(), Vec::new());
                    for row in block * BLOCK..((block + 1) * BLOCK).min(n_rows) {
                        self.each_holding(row as u32, &mut working, |class| classes.push(class));
                        ends.push(classes.len() as u32);
                    }
                    (classes, ends)
                })
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
