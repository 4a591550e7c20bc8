//! [`Plan`]: how rows are cut to the end, and what that loses, so that nobody needs to find it out twice.

use std::ops::Range;
use std::sync::Arc;

/// A node of a plan, with everything below.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    steps: Arc<[Step]>,
    at: usize,
}

/// What becomes of the rows of one node.
#[derive(Clone, Debug)]
struct Step {
    loss: f64,
    /// The sides of its cut, none where it is a class.
    sides: Range<usize>,
}

/// A plan in the making; nodes are numbered from 0, the root.
pub(super) struct Draft {
    steps: Vec<Step>,
}

impl Draft {
    pub(super) fn new() -> Draft {
        Draft { steps: vec![Step { loss: 0.0, sides: 0..0 }] }
    }

    /// Cuts a node; the numbers of its sides.
    pub(super) fn cut(&mut self, node: usize, n_sides: usize) -> Range<usize> {
        let sides = self.steps.len()..self.steps.len() + n_sides;
        self.steps.resize(sides.end, Step { loss: 0.0, sides: 0..0 });
        self.steps[node].sides = sides.clone();
        sides
    }

    /// Makes a node a class.
    pub(super) fn close(&mut self, node: usize, loss: f64) {
        self.steps[node].loss = loss;
    }

    pub(super) fn finish(mut self) -> Plan {
        // Sides come after what they are sides of.
        for node in (0..self.steps.len()).rev() {
            let sides = self.steps[node].sides.clone();
            if !sides.is_empty() {
                self.steps[node].loss = self.steps[sides].iter().map(|side| side.loss).sum();
            }
        }
        Plan { steps: self.steps.into(), at: 0 }
    }
}

impl Plan {
    pub(super) fn loss(&self) -> f64 {
        self.steps[self.at].loss
    }

    /// Whether no cut stands.
    pub(super) fn is_class(&self) -> bool {
        self.steps[self.at].sides.is_empty()
    }

    /// The plans of the sides, in the order of the cut.
    pub(super) fn sides(&self) -> Vec<Plan> {
        self.steps[self.at].sides.clone().map(|at| Plan { steps: Arc::clone(&self.steps), at }).collect()
    }
}
