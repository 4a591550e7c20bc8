//! [`GroupTree`]: which groups would lose least with some more rows, without looking at all of them.
//!
//! A binary tree over the groups in the order of the splits, in which neighbours in the sequence are neighbours in
//! space. A node holds the box of its groups and the extremes of their weights and widths, which bound from below what
//! joining any of them can cost. Nodes that can't hold one of the best are not visited.
//!
//! # Guarantee
//! the best groups among at most [`MOST_VISITED`] nodes near by; at least one is found if there is another group
//! # Cost
//! O(log n) plus at most [`MOST_VISITED`] nodes: where many boxes overlap, bounds tell little, so the search ends there

use super::group::Group;
use crate::encode::bounds::{EMPTY, both, width_of_both};
use crate::partition::Task;
use crate::partition::outline::Outline;

/// The largest number of nodes that a search visits.
const MOST_VISITED: usize = 1 << 10;

/// A group, and by how much the total loss grows when others join it. The loss of those others counts in full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Near {
    pub(super) cost: f64,
    pub(super) group: u32,
}

/// A tree over the boxes of groups.
pub(super) struct GroupTree<'a> {
    task: &'a Task<'a>,
    /// Nodes from the root, number 1, level by level; group `g` is node `n_leaves + g`.
    n_leaves: usize,
    /// Node by node, an interval per column.
    bounds: Vec<(u32, u32)>,
    extremes: Vec<Extremes>,
}

/// Extremes of the groups below a node.
#[derive(Clone, Copy)]
struct Extremes {
    lightest: f64,
    narrowest: f64,
    widest: f64,
}

const NOTHING: Extremes = Extremes { lightest: f64::INFINITY, narrowest: f64::INFINITY, widest: 0.0 };

impl<'a> GroupTree<'a> {
    pub(super) fn new(task: &'a Task<'a>, groups: &[Group]) -> GroupTree<'a> {
        let n_leaves = groups.len().next_power_of_two();
        let n_columns = task.domains.len();
        let mut index = GroupTree {
            task,
            n_leaves,
            bounds: vec![EMPTY; 2 * n_leaves * n_columns],
            extremes: vec![NOTHING; 2 * n_leaves],
        };
        for (position, group) in groups.iter().enumerate() {
            index.set_leaf(position as u32, group);
        }
        (1..n_leaves).rev().for_each(|node| index.gather(node));
        index
    }

    /// Follows a group that has changed.
    pub(super) fn update(&mut self, position: u32, group: &Group) {
        self.set_leaf(position, group);
        let mut node = (self.n_leaves + position as usize) / 2;
        while node > 0 {
            self.gather(node);
            node /= 2;
        }
    }

    fn set_leaf(&mut self, position: u32, group: &Group) {
        let leaf = self.n_leaves + position as usize;
        let n_columns = self.task.domains.len();
        let bounds = &mut self.bounds[leaf * n_columns..][..n_columns];
        if group.rows.is_empty() {
            bounds.fill(EMPTY);
            self.extremes[leaf] = NOTHING;
        } else {
            let Outline { bounds: of_group, weight, perimeter } = &group.outline;
            bounds.copy_from_slice(of_group);
            self.extremes[leaf] = Extremes { lightest: *weight as f64, narrowest: *perimeter, widest: *perimeter };
        }
    }

    fn gather(&mut self, node: usize) {
        let n_columns = self.task.domains.len();
        let (upper, lower) = self.bounds.split_at_mut(2 * node * n_columns);
        let (one, other) = lower[..2 * n_columns].split_at(n_columns);
        for ((bound, &one), &other) in upper[node * n_columns..].iter_mut().zip(one).zip(other) {
            *bound = both(one, other);
        }
        let (one, other) = (self.extremes[2 * node], self.extremes[2 * node + 1]);
        self.extremes[node] = Extremes {
            lightest: one.lightest.min(other.lightest),
            narrowest: one.narrowest.min(other.narrowest),
            widest: one.widest.max(other.widest),
        };
    }

    /// The groups other than `joining` that it could join at least cost, at most `n`, the cheapest first; of equals
    /// the first.
    pub(super) fn nearest(&self, groups: &[Group], joining: u32, n: usize) -> Vec<Near> {
        let group = &groups[joining as usize].outline;
        let mut best: Vec<Near> = Vec::with_capacity(n + 1);
        // Start with the other side of each split between the joining group and the root. The last splits are the
        // nearest.
        let leaf = self.n_leaves + joining as usize;
        let siblings = (0..self.n_leaves.ilog2()).rev().map(|level| (leaf >> level) ^ 1);
        let mut open: Vec<(f64, usize)> = siblings.map(|node| (self.least_cost(group, node), node)).collect();
        let mut n_visited = 0;
        while let Some((least, node)) = open.pop() {
            if least == f64::INFINITY || best.len() == n && least > best[n - 1].cost {
                continue;
            }
            if n_visited == MOST_VISITED {
                break;
            }
            n_visited += 1;
            if node >= self.n_leaves {
                let position = (node - self.n_leaves) as u32;
                let near = Near { cost: self.cost(group, &groups[position as usize].outline), group: position };
                let place = best.partition_point(|other| (other.cost, other.group) < (near.cost, near.group));
                best.insert(place, near);
                best.truncate(n);
                continue;
            }
            let [one, other] = [2 * node, 2 * node + 1].map(|child| (self.least_cost(group, child), child));
            // The more promising one is visited first.
            open.extend(if one.0 <= other.0 { [other, one] } else { [one, other] });
        }
        best
    }

    fn cost(&self, joining: &Outline, group: &Outline) -> f64 {
        let width = width_of_both(self.task.domains, &joining.bounds, &group.bounds);
        width * joining.weight as f64 + (width - group.perimeter) * group.weight as f64
    }

    /// What joining any group below a node costs at least: the joint box reaches from this group to the node's box, and
    /// is as wide as the narrowest group there.
    fn least_cost(&self, joining: &Outline, node: usize) -> f64 {
        let Extremes { lightest, narrowest, widest } = self.extremes[node];
        if lightest == f64::INFINITY {
            return f64::INFINITY;
        }
        let n_columns = self.task.domains.len();
        let bounds = &self.bounds[node * n_columns..][..n_columns];
        let mut width = 0.0;
        for ((&(lo, hi), &(node_lo, node_hi)), domain) in joining.bounds.iter().zip(bounds).zip(self.task.domains) {
            width += domain.width(lo.min(node_hi), hi.max(node_lo));
        }
        width.max(narrowest) * joining.weight as f64 + (width - widest).max(0.0) * lightest
    }
}
