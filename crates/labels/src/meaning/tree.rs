//! [`Tree`]: a hierarchy whose leaves are read as values.
//!
//! Leaves are numbered depth first, so the leaves below a node are a run of numbers. A condition is true at a node if it is
//! true of a leaf below, so it is true if it is true at one of the node's children. One pass over the nodes therefore
//! answers for all labels.

use std::sync::Arc;

use kohort_model::{Hierarchy, Value, ValueType};

use super::{ANYTHING, Point};

pub(super) struct Tree {
    hierarchy: Arc<Hierarchy>,
    /// Depth first.
    leaves: Vec<Point>,
    /// For each node, where its leaves start and end.
    runs: Vec<(u32, u32)>,
    /// For each node, the leaves of the least and the greatest value.
    extremes: Vec<(u32, u32)>,
    /// Leaves by value, to find one.
    by_value: Vec<u32>,
    /// Whether no two leaves have the same value, as `1` and `01` do.
    has_distinct_values: bool,
}

impl Tree {
    /// The hierarchy over values of this type.
    ///
    /// # Errors
    /// The number of leaves that are not of the type.
    pub(super) fn new(hierarchy: Arc<Hierarchy>, value_type: ValueType) -> Result<Tree, usize> {
        let order = hierarchy.leaves();
        let leaves: Vec<Point> =
            order.iter().filter_map(|&leaf| Point::parse(hierarchy.label(leaf), value_type)).collect();
        if leaves.len() < order.len() {
            return Err(order.len() - leaves.len());
        }
        let mut runs = vec![(u32::MAX, 0); hierarchy.n_nodes()];
        let mut extremes = vec![(0, 0); hierarchy.n_nodes()];
        for (number, &leaf) in (0..).zip(&order) {
            runs[leaf as usize] = (number, number + 1);
            extremes[leaf as usize] = (number, number);
        }
        for node in (1..hierarchy.n_nodes()).rev() {
            let parent = hierarchy.parent(node as u32).expect("only node 0 is the root") as usize;
            let (run, extreme) = (runs[node], extremes[node]);
            if runs[parent].0 == u32::MAX {
                (runs[parent], extremes[parent]) = (run, extreme);
                continue;
            }
            runs[parent] = (runs[parent].0.min(run.0), runs[parent].1.max(run.1));
            let value = |leaf: u32| leaves[leaf as usize].value();
            if value(extreme.0) < value(extremes[parent].0) {
                extremes[parent].0 = extreme.0;
            }
            if value(extreme.1) > value(extremes[parent].1) {
                extremes[parent].1 = extreme.1;
            }
        }
        if order.is_empty() {
            runs[0] = (0, 0);
        }
        let mut by_value: Vec<u32> = (0..leaves.len() as u32).collect();
        by_value.sort_by(|&a, &b| leaves[a as usize].value().cmp(&leaves[b as usize].value()));
        let value = |leaf: u32| leaves[leaf as usize].value();
        let has_distinct_values = by_value.windows(2).all(|pair| value(pair[0]) != value(pair[1]));
        Ok(Tree { hierarchy, leaves, runs, extremes, by_value, has_distinct_values })
    }

    /// The node of a label. `*` is the root, whatever the root's label is.
    pub(super) fn node(&self, label: &str) -> Option<u32> {
        self.hierarchy.node(label).or_else(|| (label == ANYTHING).then(|| self.hierarchy.root()))
    }

    /// The hierarchy.
    pub(super) fn hierarchy(&self) -> &Arc<Hierarchy> {
        &self.hierarchy
    }

    /// The leaves below a node.
    pub(super) fn leaves(&self, node: u32) -> &[Point] {
        let (start, end) = self.runs[node as usize];
        &self.leaves[start as usize..end as usize]
    }

    /// The least and the greatest value below a node; `None` for a root without leaves.
    pub(super) fn extremes(&self, node: u32) -> Option<(Value<'_>, Value<'_>)> {
        let (least, greatest) = self.extremes[node as usize];
        Some((self.leaves.get(least as usize)?.value(), self.leaves.get(greatest as usize)?.value()))
    }

    /// Whether a value is among the leaves below a node.
    pub(super) fn holds(&self, node: u32, value: &Value<'_>) -> bool {
        let (start, end) = self.runs[node as usize];
        let first = self.by_value.partition_point(|&leaf| self.leaves[leaf as usize].value() < *value);
        self.by_value[first..]
            .iter()
            .take_while(|&&leaf| self.leaves[leaf as usize].value() == *value)
            .any(|&leaf| (start..end).contains(&leaf))
    }

    /// Whether two nodes have a value in common; `None` if that does not follow from their places in one hierarchy.
    pub(super) fn share_a_value(&self, other: &Tree, node: u32, other_node: u32) -> Option<bool> {
        let ((start, end), (other_start, other_end)) = (self.runs[node as usize], other.runs[other_node as usize]);
        let is_told = self.has_distinct_values && Arc::ptr_eq(&self.hierarchy, &other.hierarchy);
        is_told.then(|| start.max(other_start) < end.min(other_end))
    }

    /// For each node, whether a leaf below it satisfies `holds`.
    pub(super) fn per_node(&self, holds: impl Fn(&Point) -> bool) -> Vec<bool> {
        let per_leaf: Vec<bool> = self.leaves.iter().map(holds).collect();
        let mut truths = vec![false; self.hierarchy.n_nodes()];
        for node in (0..self.hierarchy.n_nodes()).rev() {
            let children = self.hierarchy.children(node as u32);
            truths[node] = if children.is_empty() {
                let (start, end) = self.runs[node];
                per_leaf[start as usize..end as usize].iter().any(|&truth| truth)
            } else {
                children.iter().any(|&child| truths[child as usize])
            };
        }
        truths
    }
}

impl PartialEq for Tree {
    fn eq(&self, other: &Self) -> bool {
        // The rest follows from the hierarchy and the column's type.
        Arc::ptr_eq(&self.hierarchy, &other.hierarchy) || self.hierarchy == other.hierarchy
    }
}
