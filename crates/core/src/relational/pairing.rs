//! Which siblings of two trees are paired: greedy as in the paper, or at the least total cost.
//!
//! Siblings that look the same are one entry with a count. As many are paired as the smaller side has: a pair never
//! costs more than leaving both out, since no cell can lose more than all.

mod greedy;
mod optimal;

use kohort_model::spec::Pairing;

use super::representative::Representative;

/// The most pairs of different siblings for which the least total cost is found.
pub(super) const MOST_OPTIMAL_PAIRS: usize = optimal::LARGEST;

/// One of two sets of siblings, run by run.
#[derive(Debug, Default)]
pub(super) struct Side {
    /// The first node of each run.
    pub(super) firsts: Vec<u32>,
    /// How many nodes each run has.
    pub(super) counts: Vec<u32>,
    /// What leaving out one node of each run costs.
    pub(super) leave: Vec<f64>,
    /// How many nodes all runs have.
    pub(super) n_nodes: u32,
}

/// So many of a run are paired with so many of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) a: u32,
    pub(super) b: u32,
    pub(super) count: u32,
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
            let kept = f64::from(layer.cells[first as usize]) - layer.total[first as usize];
            self.leave.push(weight * kept);
        }
    }

    /// What leaving everybody out costs.
    pub(super) fn leaving(&self) -> f64 {
        self.leave.iter().zip(&self.counts).map(|(leave, &count)| leave * f64::from(count)).sum()
    }
}

/// Finds matches; `costs` holds the cost of each run of `a` with each of `b`.
pub(super) fn find(pairing: Pairing, a: &Side, b: &Side, costs: &[f64], room: &mut Room, matches: &mut Vec<Match>) {
    match pairing {
        Pairing::Greedy => greedy::find(a, b, costs, &mut room.left, matches),
        Pairing::Optimal => optimal::find(a, b, costs, room, matches),
    }
}
