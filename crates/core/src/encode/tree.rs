//! [`Tree`]: a hierarchy on codes. Leaves are numbered depth first, so every node is one interval of codes.
//!
//! # Cost
//! The lowest common ancestor of two leaves is found in constant time. Parents have smaller node numbers than their
//! children, so the common ancestor of a run of leaves is the smallest among the common ancestors of neighbouring leaves.
//! That is the minimum of four look-ups, or of one scan within a block.

use kohort_model::{Column, Hierarchy, NULL, Texts};
use rayon::prelude::*;

use crate::lists::Lists;

/// How many neighbours one entry of the look-up table covers. More would make the table smaller and the scans longer.
const BLOCK: usize = 16;

/// A hierarchy on codes. If the column has nulls, NULL is a leaf of its own below the root.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Per node of the hierarchy.
    nodes: Vec<Node>,
    /// For each code, the node of its leaf; the null leaf has none.
    leaf_nodes: Vec<u32>,
    /// For each node, the first codes of its children.
    child_firsts: Lists,
    /// For each code but the last, the lowest common ancestor with the next code.
    joints: Vec<u32>,
    /// For each joint, the smallest of its block up to it, and from it on.
    ends: Vec<(u32, u32)>,
    /// `minima[j][b]` is the smallest of the `joints` in blocks `b .. b + 2^j`.
    minima: Vec<Vec<u32>>,
    n_codes: u32,
}

/// A node: the first and last code below it, and its steps from the root.
#[derive(Clone, Copy, Debug)]
struct Node {
    first: u32,
    last: u32,
    depth: u32,
}

impl Tree {
    /// Numbers the leaves of a hierarchy; `with_null` adds a last code for NULL.
    pub fn new(hierarchy: &Hierarchy, with_null: WithNull) -> Self {
        let n_nodes = hierarchy.n_nodes();
        let leaf_nodes = hierarchy.leaves();
        let n_codes = leaf_nodes.len() as u32 + u32::from(with_null == WithNull::Yes);
        let mut intervals = vec![(u32::MAX, 0); n_nodes];
        for (code, &leaf) in leaf_nodes.iter().enumerate() {
            intervals[leaf as usize] = (code as u32, code as u32);
        }
        for node in (1..n_nodes).rev() {
            let (lo, hi) = intervals[node];
            let parent = hierarchy.parent(node as u32).unwrap_or(0) as usize;
            intervals[parent] = (intervals[parent].0.min(lo), intervals[parent].1.max(hi));
        }
        intervals[0] = (0, n_codes.saturating_sub(1));
        let mut depths = vec![0; n_nodes];
        for node in 1..n_nodes {
            depths[node] = depths[hierarchy.parent(node as u32).unwrap_or(0) as usize] + 1;
        }

        let mut child_firsts = Lists::default();
        let mut joints = vec![0; n_codes.saturating_sub(1) as usize];
        for node in 0..n_nodes as u32 {
            let null = (node == 0 && with_null == WithNull::Yes).then(|| n_codes - 1);
            child_firsts.push(hierarchy.children(node).iter().map(|&child| intervals[child as usize].0).chain(null));
            for &first in child_firsts.get(node as usize).iter().skip(1) {
                joints[first as usize - 1] = node;
            }
        }
        let (ends, minima) = (block_ends(&joints), block_minima(&joints));
        let node = |((first, last), depth): ((u32, u32), u32)| Node { first, last, depth };
        let nodes = intervals.into_iter().zip(depths).map(node).collect();
        Tree { nodes, leaf_nodes, child_firsts, joints, ends, minima, n_codes }
    }

    /// How many codes there are, NULL included.
    pub fn n_codes(&self) -> u32 {
        self.n_codes
    }

    /// The node of a leaf, `None` for NULL.
    pub fn leaf_node(&self, code: u32) -> Option<u32> {
        self.leaf_nodes.get(code as usize).copied()
    }

    /// The code of each text; [`NULL`] for one that is no leaf of the hierarchy.
    pub(crate) fn codes_of(&self, hierarchy: &Hierarchy, texts: &Texts) -> Vec<u32> {
        let mut code_of_node = vec![NULL; self.nodes.len()];
        (0..).zip(&self.leaf_nodes).for_each(|(code, &leaf)| code_of_node[leaf as usize] = code);
        let code = |id: u32| hierarchy.leaf(texts.get(id)).map_or(NULL, |leaf| code_of_node[leaf as usize]);
        (0..texts.len() as u32).into_par_iter().map(code).collect()
    }

    /// For each node of the hierarchy, its first code and its steps from the root.
    pub(crate) fn firsts_and_depths(&self) -> impl Iterator<Item = (u32, u32)> {
        self.nodes.iter().map(|node| (node.first, node.depth))
    }

    /// How many steps a leaf is from the root, `None` for NULL.
    pub(crate) fn leaf_depth(&self, code: u32) -> Option<u32> {
        self.leaf_node(code).map(|leaf| self.nodes[leaf as usize].depth)
    }

    /// The interval of codes below a node.
    pub fn interval(&self, node: u32) -> (u32, u32) {
        let Node { first, last, .. } = self.nodes[node as usize];
        (first, last)
    }

    /// The lowest common ancestor of two different codes.
    pub fn common_ancestor(&self, lo: u32, hi: u32) -> u32 {
        debug_assert!(lo < hi);
        let (lo, hi) = (lo as usize, hi as usize);
        let (first_block, last_block) = (lo / BLOCK, (hi - 1) / BLOCK);
        if first_block == last_block {
            return self.joints[lo..hi].iter().copied().min().unwrap_or(u32::MAX);
        }
        let ends = self.ends[lo].1.min(self.ends[hi - 1].0);
        let between = last_block - first_block - 1;
        if between == 0 {
            return ends;
        }
        let level = between.ilog2() as usize;
        let row = &self.minima[level];
        ends.min(row[first_block + 1]).min(row[last_block - (1 << level)])
    }

    /// The smallest node's interval that holds both codes: the code itself, or the common ancestor's interval.
    pub fn hull(&self, lo: u32, hi: u32) -> (u32, u32) {
        if lo == hi { (lo, hi) } else { self.interval(self.common_ancestor(lo, hi)) }
    }

    /// The first codes of a node's children, ascending. Each child reaches to the next one's first code.
    pub fn child_firsts(&self, node: u32) -> &[u32] {
        self.child_firsts.get(node as usize)
    }
}

/// Whether a column holds nulls, so that NULL needs a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithNull {
    /// The column holds nulls.
    Yes,
    /// The column holds none.
    No,
}

impl WithNull {
    pub(crate) fn of(column: &Column) -> WithNull {
        if column.has_nulls() { WithNull::Yes } else { WithNull::No }
    }
}

fn block_ends(joints: &[u32]) -> Vec<(u32, u32)> {
    let mut ends: Vec<(u32, u32)> = joints.iter().map(|&joint| (joint, joint)).collect();
    for block in ends.chunks_mut(BLOCK) {
        for position in 1..block.len() {
            block[position].0 = block[position].0.min(block[position - 1].0);
        }
        for position in (1..block.len()).rev() {
            block[position - 1].1 = block[position - 1].1.min(block[position].1);
        }
    }
    ends
}

fn block_minima(joints: &[u32]) -> Vec<Vec<u32>> {
    let mut rows: Vec<Vec<u32>> =
        vec![joints.chunks(BLOCK).map(|block| block.iter().copied().min().unwrap_or(u32::MAX)).collect()];
    let mut span = 1;
    while span * 2 <= rows[0].len() {
        let previous = &rows[rows.len() - 1];
        let row = (0..=rows[0].len() - span * 2).map(|block| previous[block].min(previous[block + span])).collect();
        rows.push(row);
        span *= 2;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A random hierarchy as paths of small labels, deeper levels refining upper ones.
    fn random_tree(shape: &[u8]) -> Hierarchy {
        let mut lines = String::new();
        for (leaf, &byte) in shape.iter().enumerate() {
            let (a, b) = (byte % 5, (byte / 5) % 7);
            match byte % 3 {
                0 => lines.push_str(&format!("v{leaf};a{a};*\n")),
                1 => lines.push_str(&format!("v{leaf};a{a}b{b};a{a};*\n")),
                _ => lines.push_str(&format!("v{leaf};*\n")),
            }
        }
        Hierarchy::from_paths(&lines).unwrap()
    }

    proptest! {
        #[test]
        fn the_common_ancestor_is_the_first_shared_node_of_the_two_paths(shape in prop::collection::vec(any::<u8>(), 2..400), a in any::<prop::sample::Index>(), b in any::<prop::sample::Index>()) {
            let hierarchy = random_tree(&shape);
            for with_null in [WithNull::No, WithNull::Yes] {
                let tree = Tree::new(&hierarchy, with_null);
                let (a, b) = (a.index(tree.n_codes() as usize) as u32, b.index(tree.n_codes() as usize) as u32);
                prop_assume!(a != b);
                let (lo, hi) = (a.min(b), a.max(b));
                let expected = match (tree.leaf_node(lo), tree.leaf_node(hi)) {
                    (Some(x), Some(y)) => {
                        let path: Vec<u32> = hierarchy.path(x).collect();
                        hierarchy.path(y).find(|node| path.contains(node)).unwrap()
                    }
                    _ => 0,
                };
                prop_assert_eq!(tree.common_ancestor(lo, hi), expected);
                let (first, last) = tree.interval(expected);
                prop_assert!(first <= lo && hi <= last);
            }
        }

        #[test]
        fn every_node_covers_exactly_the_codes_of_its_leaves(shape in prop::collection::vec(any::<u8>(), 1..60)) {
            let hierarchy = random_tree(&shape);
            let tree = Tree::new(&hierarchy, WithNull::No);
            for node in 0..hierarchy.n_nodes() as u32 {
                let (lo, hi) = tree.interval(node);
                for code in 0..tree.n_codes() {
                    let below = hierarchy.path(tree.leaf_node(code).unwrap()).any(|ancestor| ancestor == node);
                    prop_assert_eq!(below, (lo..=hi).contains(&code));
                }
            }
        }
    }
}
