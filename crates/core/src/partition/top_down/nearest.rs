//! [`Index`]: which groups would lose least with some more rows, without looking at all of them.
//!
//! A binary tree over the groups in the order of the splits, in which neighbours in the sequence are neighbours in
//! space. A node holds the box of its groups and the extremes of what they weigh and lose, which bound from below what
//! joining any of them can cost; what can't be among the best is not visited.
//!
//! # Guarantee
//! the best groups, of at most [`MOST_VISITED`] nodes near by; there is one if there is another group
//! # Cost
//! constant beside O(log n): where many boxes overlap bounds tell little, so the search ends after so many nodes

use super::group::{Group, Space};

/// A search visits at most so many nodes.
const MOST_VISITED: usize = 1 << 10;

/// A group and how much the loss of all its rows grows, those that come counted whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Near {
    pub(super) cost: f64,
    pub(super) group: u32,
}

/// A tree over the boxes of groups.
pub(super) struct Index<'a> {
    space: Space<'a>,
    /// Nodes from the root, number 1, level by level; group `g` is node `n_leaves + g`.
    n_leaves: usize,
    /// Node by node, an interval per column.
    bounds: Vec<(u32, u32)>,
    extremes: Vec<Extremes>,
}

/// Of the groups below a node.
#[derive(Clone, Copy)]
struct Extremes {
    lightest: f64,
    narrowest: f64,
    widest: f64,
}

const NOTHING: Extremes = Extremes { lightest: f64::INFINITY, narrowest: f64::INFINITY, widest: 0.0 };

impl<'a> Index<'a> {
    pub(super) fn new(space: Space<'a>, groups: &[Group]) -> Index<'a> {
        let n_leaves = groups.len().next_power_of_two();
        let n_columns = space.domains.len();
        let mut index = Index {
            space,
            n_leaves,
            bounds: vec![(u32::MAX, 0); 2 * n_leaves * n_columns],
            extremes: vec![NOTHING; 2 * n_leaves],
        };
        for (position, group) in groups.iter().enumerate() {
            index.set_leaf(position as u32, group);
        }
        (1..n_leaves).rev().for_each(|node| index.gather(node));
        index
    }

    /// Takes notice of a group that has changed.
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
        let n_columns = self.space.domains.len();
        let bounds = &mut self.bounds[leaf * n_columns..][..n_columns];
        if group.rows.is_empty() {
            bounds.fill((u32::MAX, 0));
            self.extremes[leaf] = NOTHING;
        } else {
            bounds.copy_from_slice(&group.bounds);
            self.extremes[leaf] =
                Extremes { lightest: group.weight as f64, narrowest: group.width, widest: group.width };
        }
    }

    fn gather(&mut self, node: usize) {
        let n_columns = self.space.domains.len();
        let (upper, lower) = self.bounds.split_at_mut(2 * node * n_columns);
        let (one, other) = lower[..2 * n_columns].split_at(n_columns);
        for ((bound, one), other) in upper[node * n_columns..].iter_mut().zip(one).zip(other) {
            *bound = (one.0.min(other.0), one.1.max(other.1));
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
        let group = &groups[joining as usize];
        let mut best: Vec<Near> = Vec::with_capacity(n + 1);
        // From the joining group upwards, the other side of each split on the way: the last ones first.
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
                let near = Near { cost: self.cost(group, &groups[position as usize]), group: position };
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

    fn cost(&self, joining: &Group, group: &Group) -> f64 {
        let width = self.space.joint_width(&joining.bounds, &group.bounds);
        width * joining.weight as f64 + (width - group.width) * group.weight as f64
    }

    /// What joining any group below a node costs at least: the joint box reaches from this group to the node's box, and
    /// is as wide as the narrowest group there.
    fn least_cost(&self, joining: &Group, node: usize) -> f64 {
        let Extremes { lightest, narrowest, widest } = self.extremes[node];
        if lightest == f64::INFINITY {
            return f64::INFINITY;
        }
        let n_columns = self.space.domains.len();
        let bounds = &self.bounds[node * n_columns..][..n_columns];
        let mut width = 0.0;
        for ((&(lo, hi), &(node_lo, node_hi)), domain) in joining.bounds.iter().zip(bounds).zip(self.space.domains) {
            width += domain.width(lo.min(node_hi), hi.max(node_lo));
        }
        width.max(narrowest) * joining.weight as f64 + (width - widest).max(0.0) * lightest
    }
}
