//! Cutting from the top, each time where most is gained for what a cut uses up.
//!
//! A class of `w` rows can be cut into halves log(w / k) times before k stops it: cuts are a limited good, and their
//! price is the entropy of the weights of their sides. Of all cuts in all columns the one is made that gains most loss
//! per bit: everything up to a boundary, one value or one child of a node against the rest, or all children of a node
//! at once. Sides are weighed by their bounds in every column, which unions of the values' bounds give in one pass.
//! Smaller nodes look ahead: they try their best few cuts to the end before they make one.

use std::sync::Mutex;

use rayon::Scope;

use super::{EMPTY, include, perimeter, unite};
use crate::partition::Task;
use crate::requirement::Tally;

/// Larger nodes choose their cut by so many of their rows.
const SAMPLE: usize = 1 << 12;

/// Nodes of more rows never look ahead before they are cut: further up, what one cut spoils the cuts below mend, and
/// looking ahead costs as much as all of them.
const FORESIGHT_ROWS: usize = 1 << 15;

/// So many cuts are tried when looking ahead, none with less than this share of the best one's score.
const TRIED: usize = 3;
const WORTH_TRYING: f64 = 0.5;

/// Nodes with more rows than this are shared between threads.
const SHARED_NODE: usize = 1 << 10;

/// Rows go to the side whose interval holds their code in the column, and to the last side where none does.
#[derive(Clone, Debug)]
struct Cut {
    /// Loss gained per bit.
    score: f64,
    column: usize,
    sides: Vec<(u32, u32)>,
}

impl Cut {
    /// The rows of each side; none is empty in a cut that stands.
    fn apply(&self, task: &Task<'_>, rows: &[u32]) -> Vec<Vec<u32>> {
        let mut sides = vec![Vec::new(); self.sides.len() + 1];
        for &row in rows {
            sides[self.side_of(task.rows.cells(row)[self.column])].push(row);
        }
        sides.retain(|side| !side.is_empty());
        sides
    }

    fn side_of(&self, code: u32) -> usize {
        let holds = |&(lo, hi): &(u32, u32)| (lo..=hi).contains(&code);
        self.sides.iter().position(holds).unwrap_or(self.sides.len())
    }
}

/// Cuts classes until no cut stands; nodes of at most `foresight` times k look ahead. The order of the result is that
/// of the cuts, neighbours next to each other.
pub(super) fn split(task: &Task<'_>, classes: Vec<Vec<u32>>, foresight: u64) -> Vec<Vec<u32>> {
    let found = Mutex::new(Vec::new());
    let k = u64::from(task.rules.k());
    rayon::scope(|scope| {
        for (position, rows) in classes.into_iter().enumerate() {
            let node = Node { place: vec![position as u32], rows };
            if task.rows.weight_of(&node.rows) >= 2 * k && node.rows.len() > 1 {
                let found = &found;
                scope.spawn(move |scope| work(scope, task, node, foresight, found));
            } else {
                push(&found, vec![node]);
            }
        }
    });
    let mut found = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    // Threads finish in any order; the path of cuts puts classes back into one.
    found.sort_unstable_by(|a: &Node, b: &Node| a.place.cmp(&b.place));
    found.into_iter().map(|node| node.rows).collect()
}

struct Node {
    /// The class it comes from, then the side of each cut since.
    place: Vec<u32>,
    rows: Vec<u32>,
}

fn push(found: &Mutex<Vec<Node>>, mut nodes: Vec<Node>) {
    found.lock().unwrap_or_else(std::sync::PoisonError::into_inner).append(&mut nodes);
}

fn work<'s>(scope: &Scope<'s>, task: &'s Task<'s>, node: Node, foresight: u64, found: &'s Mutex<Vec<Node>>) {
    let mut cutter = Cutter::new(task);
    let mut closed = Vec::new();
    let mut n_placed = 0;
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        let Some(cut) = cutter.cut_with_foresight(&node.rows, foresight) else {
            n_placed += node.rows.len() as u64;
            closed.push(node);
            continue;
        };
        for (side, rows) in cut.apply(task, &node.rows).into_iter().enumerate() {
            let place = node.place.iter().copied().chain([side as u32]).collect();
            let side = Node { place, rows };
            if side.rows.len() > SHARED_NODE {
                scope.spawn(move |scope| work(scope, task, side, foresight, found));
            } else {
                open.push(side);
            }
        }
    }
    task.progress.advance(n_placed);
    push(found, closed);
}

/// Finds cuts; what one thread reuses from node to node.
struct Cutter<'t> {
    task: &'t Task<'t>,
    n_columns: usize,
    keys: Vec<u64>,
    runs: Vec<Run>,
    /// Bounds of each run, of all runs before it, and of all runs from it on; a stride of `n_columns` each.
    of_run: Vec<(u32, u32)>,
    before: Vec<(u32, u32)>,
    from: Vec<(u32, u32)>,
    cuts: Vec<Cut>,
    /// After [`Cutter::best_cut`]: the cuts of lower score, which may not stand.
    runners_up: Vec<Cut>,
    tally: Tally<'t>,
}

/// Rows of a node that share a code in the column looked at.
#[derive(Clone, Copy)]
struct Run {
    code: u32,
    weight: u64,
}

/// The node whose cuts are weighed.
#[derive(Clone, Copy)]
struct Whole {
    weight: u64,
    perimeter: f64,
    /// What a side must weigh.
    least: u64,
}

impl<'t> Cutter<'t> {
    fn new(task: &'t Task<'t>) -> Self {
        Cutter {
            task,
            n_columns: task.rows.n_columns(),
            keys: Vec::new(),
            runs: Vec::new(),
            of_run: Vec::new(),
            before: Vec::new(),
            from: Vec::new(),
            cuts: Vec::new(),
            runners_up: Vec::new(),
            tally: Tally::new(task.rules),
        }
    }

    /// The best cut all sides of which stand.
    fn best_cut(&mut self, rows: &[u32]) -> Option<Cut> {
        let k = u64::from(self.task.rules.k());
        if self.task.rows.weight_of(rows) < 2 * k {
            return None;
        }
        if rows.len() > SAMPLE {
            // Every so many-th row: rows keep the order of their codes, so the sample is spread over the node.
            let sample: Vec<u32> = rows.iter().copied().step_by(rows.len().div_ceil(SAMPLE)).collect();
            self.find_cuts(&sample, 1);
            if let Some(cut) = self.first_that_stands(rows) {
                return Some(cut);
            }
        }
        self.find_cuts(rows, k);
        self.first_that_stands(rows)
    }

    /// Of the best few cuts the one after which going on with the best cut each time loses least.
    fn cut_with_foresight(&mut self, rows: &[u32], foresight: u64) -> Option<Cut> {
        let best = self.best_cut(rows)?;
        let (k, weight) = (u64::from(self.task.rules.k()), self.task.rows.weight_of(rows));
        if rows.len() > FORESIGHT_ROWS || weight > foresight * k || weight < 3 * k {
            return Some(best);
        }
        let others = std::mem::take(&mut self.runners_up);
        let least_score = best.score * WORTH_TRYING;
        let mut tried = vec![best];
        for cut in others.into_iter().filter(|cut| cut.score > least_score) {
            if tried.len() < TRIED && self.all_sides_stand(rows, &cut) {
                tried.push(cut);
            }
        }
        if tried.len() == 1 {
            return tried.pop();
        }
        let losses: Vec<f64> = tried
            .iter()
            .map(|cut| cut.apply(self.task, rows).into_iter().map(|side| self.loss_of_going_on(side)).sum())
            .collect();
        let least = (0..tried.len()).min_by(|&a, &b| losses[a].total_cmp(&losses[b])).unwrap_or(0);
        Some(tried.swap_remove(least))
    }

    /// What rows lose when they are cut, without looking ahead, until no cut stands.
    fn loss_of_going_on(&mut self, rows: Vec<u32>) -> f64 {
        let mut loss = 0.0;
        let mut open = vec![rows];
        while let Some(rows) = open.pop() {
            match self.best_cut(&rows) {
                Some(cut) => open.extend(cut.apply(self.task, &rows)),
                None => {
                    let bounds = self.task.rows.bounds(&rows);
                    loss += perimeter(self.task, &bounds) * self.task.rows.weight_of(&rows) as f64;
                }
            }
        }
        loss
    }

    fn first_that_stands(&mut self, rows: &[u32]) -> Option<Cut> {
        let mut cuts = std::mem::take(&mut self.cuts);
        cuts.sort_unstable_by(|a, b| {
            b.score.total_cmp(&a.score).then(a.column.cmp(&b.column)).then_with(|| a.sides.cmp(&b.sides))
        });
        let found = cuts.iter().position(|cut| self.all_sides_stand(rows, cut))?;
        self.runners_up = cuts.split_off(found + 1);
        cuts.pop()
    }

    fn all_sides_stand(&mut self, rows: &[u32], cut: &Cut) -> bool {
        let k = u64::from(self.task.rules.k());
        let sides = cut.apply(self.task, rows);
        sides.len() > 1
            && sides.iter().all(|side| self.task.rows.weight_of(side) >= k)
            && (self.task.rules.weight_suffices() || sides.iter().all(|side| self.stands(side)))
    }

    fn stands(&mut self, rows: &[u32]) -> bool {
        self.tally.clear();
        rows.iter().flat_map(|&row| self.task.rows.members(row)).for_each(|&member| self.tally.add(member));
        self.tally.stands()
    }

    /// The best cut of each kind in each column, sides of at least `least` rows.
    fn find_cuts(&mut self, rows: &[u32], least: u64) {
        self.cuts.clear();
        let bounds = self.task.rows.bounds(rows);
        let whole = Whole { weight: self.task.rows.weight_of(rows), perimeter: perimeter(self.task, &bounds), least };
        for (column, &(lo, hi)) in bounds.iter().enumerate() {
            if lo < hi {
                self.find_runs(rows, column, (lo, hi));
                self.weigh_boundaries(column, whole);
                self.weigh_children(column, whole);
            }
        }
    }

    /// Runs of equal codes with their bounds, and the unions of all before and all from each on: by counting where
    /// codes are dense, by sorting where they are sparse.
    fn find_runs(&mut self, rows: &[u32], column: usize, (lo, hi): (u32, u32)) {
        let Self { task, n_columns, keys, runs, of_run, before, from, .. } = self;
        let n_columns = *n_columns;
        let span = (hi - lo) as usize + 1;
        runs.clear();
        of_run.clear();
        if span <= rows.len() + 16 {
            runs.extend((lo..=hi).map(|code| Run { code, weight: 0 }));
            of_run.resize(span * n_columns, EMPTY);
            for &row in rows {
                let cells = task.rows.cells(row);
                let run = (cells[column] - lo) as usize;
                runs[run].weight += u64::from(task.rows.weight(row));
                include(&mut of_run[run * n_columns..], cells);
            }
            let mut n_kept = 0;
            for run in 0..span {
                if runs[run].weight > 0 {
                    runs[n_kept] = runs[run];
                    of_run.copy_within(run * n_columns..(run + 1) * n_columns, n_kept * n_columns);
                    n_kept += 1;
                }
            }
            runs.truncate(n_kept);
        } else {
            keys.clear();
            keys.extend(rows.iter().map(|&row| u64::from(task.rows.cells(row)[column]) << 32 | u64::from(row)));
            keys.sort_unstable();
            for &key in keys.iter() {
                let (code, row) = ((key >> 32) as u32, key as u32);
                if runs.last().is_none_or(|run| run.code != code) {
                    runs.push(Run { code, weight: 0 });
                    of_run.resize(runs.len() * n_columns, EMPTY);
                }
                let last = runs.len() - 1;
                runs[last].weight += u64::from(task.rows.weight(row));
                include(&mut of_run[last * n_columns..], task.rows.cells(row));
            }
        }
        let n_runs = runs.len();
        before.clear();
        before.resize((n_runs + 1) * n_columns, EMPTY);
        from.clear();
        from.resize((n_runs + 1) * n_columns, EMPTY);
        for run in 0..n_runs {
            let (done, next) = before.split_at_mut((run + 1) * n_columns);
            next[..n_columns].copy_from_slice(&done[run * n_columns..]);
            unite(&mut next[..n_columns], &of_run[run * n_columns..]);
        }
        for run in (0..n_runs).rev() {
            let (next, done) = from.split_at_mut((run + 1) * n_columns);
            let here = &mut next[run * n_columns..];
            here.copy_from_slice(&done[..n_columns]);
            unite(here, &of_run[run * n_columns..]);
        }
    }

    fn stride<'a>(&self, bounds: &'a [(u32, u32)], run: usize) -> &'a [(u32, u32)] {
        &bounds[run * self.n_columns..][..self.n_columns]
    }

    /// The best of: everything up to a boundary against the rest.
    fn weigh_boundaries(&mut self, column: usize, whole: Whole) {
        let mut best: Option<(f64, u32)> = None;
        let mut weight = 0;
        for run in 0..self.runs.len() - 1 {
            weight += self.runs[run].weight;
            if weight < whole.least || whole.weight - weight < whole.least {
                continue;
            }
            let first = perimeter(self.task, self.stride(&self.before, run + 1));
            let second = perimeter(self.task, self.stride(&self.from, run + 1));
            let score = whole.score([(weight, first), (whole.weight - weight, second)]);
            if best.is_none_or(|(highest, _)| score > highest) {
                best = Some((score, self.runs[run].code));
            }
        }
        let lo = self.runs[0].code;
        self.cuts.extend(best.map(|(score, hi)| Cut { score, column, sides: vec![(lo, hi)] }));
    }

    /// On a tree: the best of one value or one child of the smallest node against the rest, and all children at once.
    fn weigh_children(&mut self, column: usize, whole: Whole) {
        let Some(tree) = self.task.domains[column].tree() else { return };
        let n_runs = self.runs.len();
        let node = tree.common_ancestor(self.runs[0].code, self.runs[n_runs - 1].code);
        let firsts = tree.child_firsts(node);
        let mut children: Vec<Side> = Vec::new();
        let mut best: Option<(f64, Side)> = None;
        let mut start = 0;
        while start < n_runs {
            let next = firsts.partition_point(|&first| first <= self.runs[start].code);
            let next_first = firsts.get(next).copied().unwrap_or(u32::MAX);
            let end = start + self.runs[start..].partition_point(|run| run.code < next_first);
            let child = self.side(start..end);
            self.weigh_against_rest(child, whole, &mut best);
            if end - start > 1 {
                (start..end).for_each(|run| self.weigh_against_rest(self.side(run..run + 1), whole, &mut best));
            }
            children.push(child);
            start = end;
        }
        self.cuts.extend(best.map(|(score, side)| Cut { score, column, sides: vec![self.interval(side)] }));
        if children.len() > 2 {
            self.weigh_all_children(column, whole, children);
        }
    }

    /// Every child its own side, those too small together.
    fn weigh_all_children(&mut self, column: usize, whole: Whole, mut children: Vec<Side>) {
        children.sort_by_key(|child| std::cmp::Reverse(child.weight));
        let n_large = children.partition_point(|child| child.weight >= whole.least);
        let (mut n_own, mut rest) = (n_large, children[n_large..].iter().map(|child| child.weight).sum::<u64>());
        while n_own > 0 && rest > 0 && rest < whole.least {
            n_own -= 1;
            rest += children[n_own].weight;
        }
        if n_own == 0 || (n_own == 1 && rest == 0) {
            return;
        }
        let mut rest_bounds = vec![EMPTY; self.n_columns];
        for child in &children[n_own..] {
            (child.start..child.end).for_each(|run| unite(&mut rest_bounds, self.stride(&self.of_run, run)));
        }
        let rest = (rest > 0).then(|| (rest, perimeter(self.task, &rest_bounds)));
        let own = children[..n_own].iter().map(|child| (child.weight, child.perimeter));
        let score = whole.score(own.chain(rest));
        let sides = children[..n_own].iter().map(|&child| self.interval(child)).collect();
        self.cuts.push(Cut { score, column, sides });
    }

    fn weigh_against_rest(&self, side: Side, whole: Whole, best: &mut Option<(f64, Side)>) {
        if side.weight < whole.least || whole.weight - side.weight < whole.least {
            return;
        }
        let mut rest = self.stride(&self.before, side.start).to_vec();
        unite(&mut rest, self.stride(&self.from, side.end));
        let rest = (whole.weight - side.weight, perimeter(self.task, &rest));
        let score = whole.score([(side.weight, side.perimeter), rest]);
        if best.is_none_or(|(highest, _)| score > highest) {
            *best = Some((score, side));
        }
    }

    fn side(&self, runs: std::ops::Range<usize>) -> Side {
        let mut bounds = vec![EMPTY; self.n_columns];
        runs.clone().for_each(|run| unite(&mut bounds, self.stride(&self.of_run, run)));
        let weight = self.runs[runs.clone()].iter().map(|run| run.weight).sum();
        Side { start: runs.start, end: runs.end, weight, perimeter: perimeter(self.task, &bounds) }
    }

    fn interval(&self, side: Side) -> (u32, u32) {
        (self.runs[side.start].code, self.runs[side.end - 1].code)
    }
}

/// Runs `start..end` on one side.
#[derive(Clone, Copy)]
struct Side {
    start: usize,
    end: usize,
    weight: u64,
    perimeter: f64,
}

impl Whole {
    /// The loss gained per bit by sides of these weights and perimeters.
    fn score(&self, sides: impl IntoIterator<Item = (u64, f64)>) -> f64 {
        let (mut gained, mut bits) = (0.0, 0.0);
        for (weight, perimeter) in sides {
            let share = weight as f64 / self.weight as f64;
            gained += share * (self.perimeter - perimeter);
            bits -= share * share.log2();
        }
        gained / bits
    }
}
