//! Which siblings of two trees are paired: greedy as in the paper, or at the least total cost.
//!
//! Siblings that look the same are one entry with a count. As many are paired as the smaller side has: a pair never
//! costs more than leaving both out, since no cell can lose more than all. Greedy pairing lets each sibling of the smaller
//! side in turn take the cheapest partner that is left.
//!
//! # Paper
//! greedy: algorithms 4 and 5 of `[NCN08]`
//! # Deviations
//! siblings come in canonical order and the first of equally cheap partners is taken, so that the order of rows does not
//! show; of two sides of equal size, the first is taken as the smaller

mod optimal;
mod parts;

use kohort_model::spec::Pairing;

use super::cost::Spread;
use super::representative::Representative;

/// Sets with more pairs of different siblings than this are divided into parts, each paired by itself, because the time
/// to compare all pairs grows with the square of the number of siblings, and that of optimal pairing with its cube.
pub(super) const MOST_PAIRS: usize = 1 << 14;

/// One of two sets of siblings, run by run.
#[derive(Debug, Default)]
pub(super) struct Side {
    /// The first node of each run.
    pub(super) firsts: Vec<u32>,
    /// How many nodes each run has.
    pub(super) counts: Vec<u32>,
    /// For each run, the cost of leaving out one of its nodes.
    pub(super) leave: Vec<f64>,
    /// How many nodes all runs have.
    pub(super) n_nodes: u32,
}

/// How many nodes of a run are paired with nodes of another run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Match {
    pub(super) a: u32,
    pub(super) b: u32,
    pub(super) count: u32,
    /// The cost of each pair.
    pub(super) cost: f64,
}

/// Memory that pairing reuses.
#[derive(Debug, Default)]
pub(super) struct Room {
    left: Vec<u32>,
    optimal: optimal::Room,
}

impl Side {
    pub(super) fn fill(&mut self, of: &Representative, kind: usize, siblings: (u32, u32)) {
        self.firsts.clear();
        self.counts.clear();
        self.leave.clear();
        let layer = &of.layers[kind];
        let weight = of.weight as f64;
        self.n_nodes = siblings.1 - siblings.0;
        for (first, count) in layer.runs(siblings) {
            self.firsts.push(first);
            self.counts.push(count);
            self.leave.push(weight * (layer.worth[first as usize] - layer.total[first as usize]));
        }
    }

    /// Some runs of a side.
    pub(super) fn part(&self, runs: &parts::Runs) -> Side {
        let of = |values: &[f64]| runs.iter().map(|&(run, _)| values[run as usize]).collect();
        Side {
            firsts: runs.iter().map(|&(run, _)| self.firsts[run as usize]).collect(),
            counts: runs.iter().map(|&(_, count)| count).collect(),
            leave: of(&self.leave),
            n_nodes: runs.iter().map(|&(_, count)| count).sum(),
        }
    }

    fn runs(&self) -> parts::Runs {
        (0..).zip(self.counts.iter().copied()).collect()
    }

    /// The cost of leaving out all nodes.
    pub(super) fn leaving(&self) -> f64 {
        self.leave.iter().zip(&self.counts).map(|(leave, &count)| leave * f64::from(count)).sum()
    }
}

/// Finds matches; `costs` holds the cost of each run of `a` with each of `b`.
pub(super) fn find(pairing: Pairing, a: &Side, b: &Side, costs: &[f64], room: &mut Room, matches: &mut Vec<Match>) {
    let n_b = b.firsts.len();
    let a_is_smaller = a.n_nodes <= b.n_nodes;
    let (smaller, larger) = if a_is_smaller { (a, b) } else { (b, a) };
    let turned = |row: usize, column: usize| if a_is_smaller { (row, column) } else { (column, row) };
    let matched = |row: usize, column: usize, count: u32| {
        let (a, b) = turned(row, column);
        matches.push(Match { a: a as u32, b: b as u32, count, cost: costs[a * n_b + b] });
    };
    if pairing == Pairing::Optimal {
        let beyond_leaving = |row: usize, column: usize| {
            let (i, j) = turned(row, column);
            costs[i * n_b + j] - a.leave[i] - b.leave[j]
        };
        room.optimal.find(&smaller.counts, &larger.counts, beyond_leaving, matched);
    } else {
        let cost = |row: usize, column: usize| {
            let (i, j) = turned(row, column);
            costs[i * n_b + j]
        };
        take_turns(&smaller.counts, &larger.counts, cost, &mut room.left, matched);
    }
}

/// The parts of two large sides, each as runs of `a` and runs of `b`.
pub(super) fn divided(a: &Side, b: &Side, spread: &Spread<'_>) -> Vec<(parts::Runs, parts::Runs)> {
    if a.n_nodes <= b.n_nodes {
        return parts::parts(a.runs(), b.runs(), spread);
    }
    let parts = parts::parts(b.runs(), a.runs(), &spread.turned());
    parts.into_iter().map(|(of_b, of_a)| (of_a, of_b)).collect()
}

/// Lets each entry of the smaller side in turn take the cheapest partners that are left.
fn take_turns(
    smaller: &[u32],
    larger: &Vec<u32>,
    cost: impl Fn(usize, usize) -> f64,
    left: &mut Vec<u32>,
    mut matched: impl FnMut(usize, usize, u32),
) {
    left.clone_from(larger);
    for (row, &count) in smaller.iter().enumerate() {
        let mut waiting = count;
        while waiting > 0 {
            let mut cheapest: Option<(f64, usize)> = None;
            for (column, _) in left.iter().enumerate().filter(|&(_, &left)| left > 0) {
                let cost = cost(row, column);
                if cheapest.is_none_or(|(least, _)| cost < least) {
                    cheapest = Some((cost, column));
                }
            }
            let Some((_, column)) = cheapest else { return };
            let count = waiting.min(left[column]);
            waiting -= count;
            left[column] -= count;
            matched(row, column, count);
        }
    }
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

    fn pair(pairing: Pairing, a: &Side, b: &Side, costs: &[f64]) -> Vec<Match> {
        let mut matches = Vec::new();
        find(pairing, a, b, costs, &mut Room::default(), &mut matches);
        matches
    }

    #[test]
    fn each_of_the_smaller_side_takes_the_cheapest_that_is_left() {
        let (a, b) = (side(&[1, 2], 1.0), side(&[1, 1, 1, 1], 1.0));
        let matches = pair(Pairing::Greedy, &a, &b, &[0.1, 0.0, 0.5, 0.5, 0.3, 0.0, 0.2, 0.2]);
        let found: Vec<(u32, u32, u32)> = matches.iter().map(|found| (found.a, found.b, found.count)).collect();
        assert_eq!(found, [(0, 1, 1), (1, 2, 1), (1, 3, 1)]);
    }

    #[test]
    fn the_larger_side_waits_whichever_comes_first() {
        let (a, b) = (side(&[1, 1, 1], 1.0), side(&[2], 1.0));
        let matches = pair(Pairing::Greedy, &a, &b, &[0.3, 0.1, 0.2]);
        let found: Vec<(u32, u32, u32)> = matches.iter().map(|found| (found.a, found.b, found.count)).collect();
        assert_eq!(found, [(1, 0, 1), (2, 0, 1)]);
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
        fn no_pairing_costs_less_than_the_optimal_one(
            a in prop::collection::vec(1u32..3, 1..4),
            b in prop::collection::vec(1u32..3, 1..4),
            costs in prop::collection::vec(0u32..20, 9),
        ) {
            let (side_a, side_b) = (side(&a, 7.0), side(&b, 9.0));
            let costs: Vec<f64> = costs[..a.len() * b.len()].iter().map(|&cost| f64::from(cost)).collect();
            let matches = pair(Pairing::Optimal, &side_a, &side_b, &costs);
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
            let greedy = pair(Pairing::Greedy, &side_a, &side_b, &costs);
            prop_assert!(expected <= total(&greedy, &costs, b.len()));
        }
    }
}
