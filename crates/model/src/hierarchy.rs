//! [`Hierarchy`]: a tree over a column's values (a DGH). Its root stands for everything.
//!
//! A label names one node. Leaves are the values, and every inner node has a leaf below it. Siblings keep the order in
//! which they first occur, so the depth-first order of leaves is the order of the file.

mod error;
mod make;
mod read;
mod rows;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher};

pub use error::{HierarchyError, HierarchyErrors};
pub use make::{DateLevel, MakeError, MaskSide, Rule};

use crate::Texts;

/// A tree over a column's values. Nodes are numbered from 0, which is the root, with parents before their children.
///
/// The library's `kohort::Hierarchy` describes a hierarchy in a spec, before values are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    labels: Texts,
    parents: Vec<u32>,
    /// Children of node `n` are `children[child_starts[n]..child_starts[n + 1]]`.
    child_starts: Vec<u32>,
    children: Vec<u32>,
    /// Finds the node of a label.
    by_label: LabelIndex,
}

impl Hierarchy {
    /// A hierarchy of a root and the given values.
    pub fn flat<'a>(root: &str, values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut labels = Texts::new();
        labels.push(root);
        for value in values {
            labels.push(value);
        }
        let parents = vec![0; labels.len()];
        Self::from_parents(labels, parents)
    }

    /// The hierarchy with the nodes that [`Hierarchy::nodes`] lists; `None` if they don't form a hierarchy.
    pub fn from_nodes<'a>(nodes: impl IntoIterator<Item = (&'a str, u32)>) -> Option<Hierarchy> {
        let (mut labels, mut parents) = (Texts::new(), Vec::new());
        let mut known = HashSet::new();
        for (node, (label, parent)) in (0..).zip(nodes) {
            let is_placed = if node == 0 { parent == 0 } else { parent < node };
            if !is_placed || !known.insert(label) {
                return None;
            }
            labels.push(label);
            parents.push(parent);
        }
        (!parents.is_empty()).then(|| Self::from_parents(labels, parents))
    }

    /// The label and the parent of each node, parents before their children. The root is its own parent.
    pub fn nodes(&self) -> impl Iterator<Item = (&str, u32)> {
        self.labels.iter().zip(self.parents.iter().copied())
    }

    /// The hierarchy of nodes with these labels and parents. Callers guarantee that node 0 is the root and its own
    /// parent, that parents have lower numbers than their children, and that no label occurs twice.
    fn from_parents(labels: Texts, parents: Vec<u32>) -> Self {
        let n_nodes = labels.len();
        debug_assert!(parents.iter().enumerate().all(|(node, &parent)| node == 0 || (parent as usize) < node));
        let mut child_starts = vec![0u32; n_nodes + 1];
        for &parent in &parents[1..] {
            child_starts[parent as usize + 1] += 1;
        }
        for node in 0..n_nodes {
            child_starts[node + 1] += child_starts[node];
        }
        let mut next = child_starts.clone();
        let mut children = vec![0u32; n_nodes - 1];
        for node in 1..n_nodes {
            let slot = &mut next[parents[node] as usize];
            children[*slot as usize] = node as u32;
            *slot += 1;
        }
        let by_label = LabelIndex::new(&labels);
        Hierarchy { labels, parents, child_starts, children, by_label }
    }

    /// The root.
    pub fn root(&self) -> u32 {
        0
    }

    /// The number of nodes, leaves and root included.
    pub fn n_nodes(&self) -> usize {
        self.parents.len()
    }

    /// The label of a node.
    pub fn label(&self, node: u32) -> &str {
        self.labels.get(node)
    }

    /// The parent of a node; `None` for the root.
    pub fn parent(&self, node: u32) -> Option<u32> {
        (node != 0).then(|| self.parents[node as usize])
    }

    /// The children of a node, in order.
    pub fn children(&self, node: u32) -> &[u32] {
        &self.children[self.child_starts[node as usize] as usize..self.child_starts[node as usize + 1] as usize]
    }

    /// Whether a node is a value. The root never is, even without children.
    pub fn is_leaf(&self, node: u32) -> bool {
        node != 0 && self.children(node).is_empty()
    }

    /// The node with this label.
    pub fn node(&self, label: &str) -> Option<u32> {
        self.by_label.find(&self.labels, label)
    }

    /// The leaf with this label.
    pub fn leaf(&self, label: &str) -> Option<u32> {
        self.node(label).filter(|&node| self.is_leaf(node))
    }

    /// The node itself and its ancestors, the root last.
    pub fn path(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(node), |&node| self.parent(node))
    }

    /// The number of steps from the root.
    pub fn depth(&self, node: u32) -> usize {
        self.path(node).count() - 1
    }

    /// The number of steps from the root to the deepest leaf.
    pub fn height(&self) -> usize {
        let mut depths = vec![0usize; self.n_nodes()];
        for node in 1..self.n_nodes() {
            depths[node] = depths[self.parents[node] as usize] + 1;
        }
        depths.into_iter().max().unwrap_or(0)
    }

    /// All leaves, depth first.
    pub fn leaves(&self) -> Vec<u32> {
        let mut leaves = Vec::new();
        let mut open = vec![0u32];
        while let Some(node) = open.pop() {
            if self.is_leaf(node) {
                leaves.push(node);
            }
            open.extend(self.children(node).iter().rev());
        }
        leaves
    }
}

/// A hash table of nodes by label, half full at most. The hash is always the same, so that equal trees have equal
/// indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LabelIndex(Vec<u32>);

impl LabelIndex {
    const EMPTY: u32 = u32::MAX;

    fn new(labels: &Texts) -> LabelIndex {
        let mut index = LabelIndex(vec![LabelIndex::EMPTY; (2 * labels.len()).next_power_of_two()]);
        for (node, label) in (0..).zip(labels.iter()) {
            let slot = index.slots(label).find(|&slot| index.0[slot] == LabelIndex::EMPTY);
            index.0[slot.expect("at least half of the slots are empty")] = node;
        }
        index
    }

    fn find(&self, labels: &Texts, label: &str) -> Option<u32> {
        let mut nodes = self.slots(label).map(|slot| self.0[slot]).take_while(|&node| node != LabelIndex::EMPTY);
        nodes.find(|&node| labels.get(node) == label)
    }

    /// The slots that may hold a label, in the order in which they are tried.
    fn slots(&self, label: &str) -> impl Iterator<Item = usize> {
        let mut hasher = DefaultHasher::new();
        hasher.write(label.as_bytes());
        let (first, mask) = (hasher.finish() as usize, self.0.len() - 1);
        (0..=mask).map(move |step| first.wrapping_add(step) & mask)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_label_is_found_and_no_other(
            values in prop::collection::btree_set("[a\u{0}é]{0,3}(zzzzzzz)?[a\u{0}]{0,3}", 0..40),
            others in prop::collection::vec("[a\u{0}é]{0,3}(zzzzzzz)?[a\u{0}]{0,3}", 0..40),
        ) {
            let tree = Hierarchy::flat("root", values.iter().map(String::as_str));
            for sought in values.iter().chain(&others) {
                let expected = (0..tree.n_nodes() as u32).find(|&node| tree.label(node) == sought);
                prop_assert_eq!(tree.node(sought), expected);
            }
            prop_assert_eq!(tree.node("root"), Some(0));
        }
    }
}
