//! Cutting from the top: each time, the cut that gains most for what it uses up is made.
//!
//! A class of `w` rows can be halved log(w / k) times before k stops it. So cuts are a limited good, and the price of a
//! cut is the entropy of the weights of its sides. Of all cuts in all columns, the one that gains most loss per bit is
//! made. A cut separates everything up to a boundary, one value, or one child of a node from the rest; or it separates
//! all children of a node at once. The gain follows from the bounds of the sides in every column, which are unions of
//! the values' bounds and take one pass. Smaller nodes look ahead: they try their best few cuts to the end before they
//! make one.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use rayon::Scope;

use super::runs::Runs;
use crate::encode::bounds::{EMPTY, width};
use crate::partition::Task;
use crate::partition::outline::Outline;
use crate::requirement::Tally;

/// Larger nodes choose their cut by a sample of this many of their rows.
const SAMPLE: usize = 1 << 12;

/// Nodes of more rows never look ahead before they are cut: further up, later cuts mend what one cut spoils, and
/// looking ahead costs as much as all of them.
const FORESIGHT_ROWS: usize = 1 << 15;

/// The number of cuts that are tried when looking ahead. Cuts with less than the share [`WORTH_TRYING`] of the best
/// score are not tried.
const TRIED: usize = 3;
const WORTH_TRYING: f64 = 0.5;

/// Nodes with more rows than this are shared between threads.
const SHARED_NODE: usize = 1 << 10;

/// A row goes to the side whose interval contains its code in the column, and to the last side if no interval does.
#[derive(Clone, Debug)]
struct Cut {
    /// Loss gained per bit.
    score: f64,
    column: usize,
    sides: Vec<(u32, u32)>,
}

impl Cut {
    /// The rows of each side. No side is empty if the cut satisfies the rules.
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

/// Cuts classes until no cut satisfies the rules. Nodes that weigh at most `foresight` times k look ahead. The result
/// is in the order of the cuts, so neighbours are next to each other.
pub(super) fn split(task: &Task<'_>, classes: Vec<Vec<u32>>, foresight: u64) -> Vec<Vec<u32>> {
    let found = Mutex::new(Vec::new());
    let k = u64::from(task.rules.k());
    rayon::scope(|scope| {
        for (position, rows) in classes.into_iter().enumerate() {
            let node = Node { place: vec![position as u32], rows, plan: None };
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
    /// The class that the node comes from, then the side of each cut since.
    place: Vec<u32>,
    rows: Vec<u32>,
    /// How to go on without looking ahead, if that is known.
    plan: Option<Plan>,
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
        let is_cancelled = task.progress.is_cancelled();
        let Some((cut, mut plans)) = (!is_cancelled).then(|| cutter.cut_with_foresight(&node, foresight)).flatten()
        else {
            n_placed += node.rows.len() as u64;
            closed.push(node);
            continue;
        };
        for (side, rows) in cut.apply(task, &node.rows).into_iter().enumerate() {
            let place = node.place.iter().copied().chain([side as u32]).collect();
            let side = Node { place, rows, plan: plans.next() };
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

/// Finds cuts, in memory that one thread reuses from node to node.
struct Cutter<'t> {
    task: &'t Task<'t>,
    runs: Runs,
    cuts: Vec<Cut>,
    /// After [`Cutter::best_cut`]: the cuts of lower score, which may not satisfy the rules.
    runners_up: Vec<Cut>,
    tally: Tally<'t>,
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
        let (cuts, runners_up) = (Vec::new(), Vec::new());
        Cutter { task, runs: Runs::default(), cuts, runners_up, tally: Tally::new(task.rules) }
    }

    /// The best cut of which all sides satisfy the rules.
    fn best_cut(&mut self, rows: &[u32]) -> Option<Cut> {
        let k = u64::from(self.task.rules.k());
        if self.task.rows.weight_of(rows) < 2 * k {
            return None;
        }
        if rows.len() > SAMPLE {
            // Take rows at equal distances. Rows are in the order of their codes, so the sample is spread over the
            // node.
            let sample: Vec<u32> = rows.iter().copied().step_by(rows.len().div_ceil(SAMPLE)).collect();
            self.find_cuts(&sample, 1);
            if let Some(cut) = self.first_that_stands(rows) {
                return Some(cut);
            }
        }
        self.find_cuts(rows, k);
        self.first_that_stands(rows)
    }

    /// Tries the best few cuts to the end, each time going on with the best cut. Returns the cut that loses least, with
    /// the plans of its sides, if there are any.
    fn cut_with_foresight(&mut self, node: &Node, foresight: u64) -> Option<(Cut, std::vec::IntoIter<Plan>)> {
        let rows = &node.rows;
        if node.plan.as_ref().is_some_and(|plan| plan.step().sides.is_empty()) {
            return None;
        }
        let best = self.best_cut(rows)?;
        let (k, weight) = (u64::from(self.task.rules.k()), self.task.rows.weight_of(rows));
        if rows.len() > FORESIGHT_ROWS || weight > foresight * k || weight < 3 * k {
            return Some((best, Vec::new().into_iter()));
        }
        let others = std::mem::take(&mut self.runners_up);
        let least_score = best.score * WORTH_TRYING;
        let mut tried = vec![best];
        for cut in others.into_iter().filter(|cut| cut.score > least_score) {
            if tried.len() < TRIED && self.all_sides_stand(rows, &cut) {
                tried.push(cut);
            }
        }
        let mut least: Option<(f64, usize, Vec<Plan>)> = None;
        for (position, cut) in tried.iter().enumerate() {
            let plans = match &node.plan {
                Some(plan) if position == 0 => plan.sides(),
                _ => cut.apply(self.task, rows).into_iter().map(|side| self.plan(side)).collect(),
            };
            let loss = plans.iter().map(|plan| plan.step().loss).sum();
            if least.as_ref().is_none_or(|(least, ..)| loss < *least) {
                least = Some((loss, position, plans));
            }
        }
        least.map(|(_, position, plans)| (tried.swap_remove(position), plans.into_iter()))
    }

    /// Cuts rows, without looking ahead, until no cut satisfies the rules.
    fn plan(&mut self, rows: Vec<u32>) -> Plan {
        let mut steps = vec![Step { loss: 0.0, sides: 0..0 }];
        let mut open = vec![(0, rows)];
        while let Some((node, rows)) = open.pop() {
            match self.best_cut(&rows) {
                Some(cut) => {
                    let sides = cut.apply(self.task, &rows);
                    let numbers = steps.len()..steps.len() + sides.len();
                    steps.resize(numbers.end, Step { loss: 0.0, sides: 0..0 });
                    steps[node].sides = numbers.clone();
                    open.extend(numbers.zip(sides));
                }
                None => steps[node].loss = Outline::of(self.task, &rows).loss(),
            }
        }
        // Sides have higher numbers than the node they are sides of.
        for node in (0..steps.len()).rev() {
            let sides = steps[node].sides.clone();
            if !sides.is_empty() {
                steps[node].loss = steps[sides].iter().map(|side| side.loss).sum();
            }
        }
        Plan { steps: steps.into(), at: 0 }
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
        let mut weights = vec![0; cut.sides.len() + 1];
        for &row in rows {
            weights[cut.side_of(self.task.rows.cells(row)[cut.column])] += u64::from(self.task.rows.weight(row));
        }
        weights.retain(|&weight| weight > 0);
        weights.len() > 1
            && weights.iter().all(|&weight| weight >= k)
            && (self.task.rules.weight_suffices()
                || cut
                    .apply(self.task, rows)
                    .iter()
                    .all(|side| self.task.stands(&mut self.tally, side.iter().copied())))
    }

    /// Finds the best cut of each kind in each column. Each side must have at least `least` rows.
    fn find_cuts(&mut self, rows: &[u32], least: u64) {
        self.cuts.clear();
        let bounds = self.task.rows.bounds(rows);
        let whole =
            Whole { weight: self.task.rows.weight_of(rows), perimeter: width(self.task.domains, &bounds), least };
        for (column, &(lo, hi)) in bounds.iter().enumerate() {
            if lo < hi {
                self.runs.find(self.task, rows, column, (lo, hi));
                self.weigh_boundaries(column, whole);
                self.weigh_children(column, whole);
            }
        }
    }

    /// The best cut at a boundary: everything up to it against the rest.
    fn weigh_boundaries(&mut self, column: usize, whole: Whole) {
        let mut best: Option<(f64, u32)> = None;
        let mut weight = 0;
        let runs = self.runs.as_slice();
        for (position, run) in runs[..runs.len() - 1].iter().enumerate() {
            weight += run.weight;
            if weight < whole.least || whole.weight - weight < whole.least {
                continue;
            }
            let first = self.runs.perimeter_before(self.task, position + 1);
            let second = self.runs.perimeter_from(self.task, position + 1);
            let score = whole.score([(weight, first), (whole.weight - weight, second)]);
            if best.is_none_or(|(highest, _)| score > highest) {
                best = Some((score, run.code));
            }
        }
        let lo = runs[0].code;
        self.cuts.extend(best.map(|(score, hi)| Cut { score, column, sides: vec![(lo, hi)] }));
    }

    /// On a tree: the best of one value or one child of the smallest node against the rest, and all children at once.
    fn weigh_children(&mut self, column: usize, whole: Whole) {
        let children = self.runs.children(self.task, column);
        let mut best: Option<(f64, Range<usize>)> = None;
        for child in &children {
            self.weigh_against_rest(child.clone(), whole, &mut best);
            if child.len() > 1 {
                child.clone().for_each(|run| self.weigh_against_rest(run..run + 1, whole, &mut best));
            }
        }
        self.cuts.extend(best.map(|(score, side)| Cut { score, column, sides: vec![self.runs.interval(&side)] }));
        if children.len() > 2 {
            self.weigh_all_children(column, whole, &children);
        }
    }

    fn weigh_against_rest(&self, side: Range<usize>, whole: Whole, best: &mut Option<(f64, Range<usize>)>) {
        let weight = self.runs.weight_of(&side);
        if weight < whole.least || whole.weight - weight < whole.least {
            return;
        }
        let own = (weight, self.runs.perimeter_of(self.task, &side));
        let rest = (whole.weight - weight, self.runs.perimeter_without(self.task, &side));
        let score = whole.score([own, rest]);
        if best.as_ref().is_none_or(|(highest, _)| score > *highest) {
            *best = Some((score, side));
        }
    }

    /// A cut in which every child is a side. Children that are too small are one side together.
    fn weigh_all_children(&mut self, column: usize, whole: Whole, children: &[Range<usize>]) {
        let mut children: Vec<(u64, &Range<usize>)> =
            children.iter().map(|child| (self.runs.weight_of(child), child)).collect();
        children.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
        let n_large = children.partition_point(|(weight, _)| *weight >= whole.least);
        let (mut n_own, mut rest) = (n_large, children[n_large..].iter().map(|(weight, _)| weight).sum::<u64>());
        while n_own > 0 && rest > 0 && rest < whole.least {
            n_own -= 1;
            rest += children[n_own].0;
        }
        if n_own == 0 || (n_own == 1 && rest == 0) {
            return;
        }
        let (own, others) = children.split_at(n_own);
        let mut bounds = vec![EMPTY; self.task.rows.n_columns()];
        others.iter().for_each(|(_, child)| self.runs.unite_into(&mut bounds, child));
        let rest = (rest > 0).then(|| (rest, width(self.task.domains, &bounds)));
        let sides = own.iter().map(|&(weight, child)| (weight, self.runs.perimeter_of(self.task, child)));
        let score = whole.score(sides.chain(rest));
        let sides = own.iter().map(|(_, child)| self.runs.interval(child)).collect();
        self.cuts.push(Cut { score, column, sides });
    }
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

/// How rows are cut to the end and what that loses, kept so that it is found out once: a node, with everything below.
#[derive(Clone, Debug)]
struct Plan {
    /// The root is first.
    steps: Arc<[Step]>,
    at: usize,
}

/// How the rows of one node are cut.
#[derive(Clone, Debug)]
struct Step {
    loss: f64,
    /// The sides of the node's cut; empty if the node is a class.
    sides: Range<usize>,
}

impl Plan {
    fn step(&self) -> &Step {
        &self.steps[self.at]
    }

    /// The plans of the sides, in the order of the cut.
    fn sides(&self) -> Vec<Plan> {
        self.step().sides.clone().map(|at| Plan { steps: Arc::clone(&self.steps), at }).collect()
    }
}
