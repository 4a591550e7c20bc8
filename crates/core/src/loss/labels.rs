//! [`NcpOfLabels`]: NCP of classes that are kept with their labels, over trees that grow.

use crate::changing::GrowingTree;

/// The mean over quasi cells of the leaves of their labels over all leaves, 0 for a value and 1 for a cell that is not
/// shown: [`measure`](super::measure) says the same of a table that was recoded at once.
pub struct NcpOfLabels {
    /// Per column and node.
    of_node: Vec<Vec<f64>>,
    sum: f64,
    n_rows: u64,
}

impl NcpOfLabels {
    /// Starts without rows. The leaves are the values that the trees hold.
    pub fn new(trees: &[GrowingTree]) -> NcpOfLabels {
        NcpOfLabels { of_node: trees.iter().map(share_of_leaves).collect(), sum: 0.0, n_rows: 0 }
    }

    /// Adds rows that are shown at these nodes, one per tree.
    ///
    /// # Panics
    /// If a node is none of its tree.
    pub fn add(&mut self, nodes: &[u32], n_rows: u64) {
        let loss: f64 = self.of_node.iter().zip(nodes).map(|(loss, &node)| loss[node as usize]).sum();
        self.sum += loss / self.of_node.len().max(1) as f64 * n_rows as f64;
        self.n_rows += n_rows;
    }

    /// Adds rows of which nothing is shown.
    pub fn add_suppressed(&mut self, n_rows: u64) {
        self.sum += n_rows as f64;
        self.n_rows += n_rows;
    }

    /// The NCP of all rows that were added, 0 of none.
    pub fn mean(&self) -> f64 {
        self.sum / self.n_rows.max(1) as f64
    }
}

/// For each node, what a cell loses that shows it.
fn share_of_leaves(tree: &GrowingTree) -> Vec<f64> {
    let n_nodes = tree.n_nodes();
    let mut n_leaves = vec![0u64; n_nodes];
    let mut is_value = vec![true; n_nodes];
    // Parents have lower numbers than their children.
    for node in (0..n_nodes as u32).rev() {
        n_leaves[node as usize] += u64::from(is_value[node as usize]);
        if let Some(parent) = tree.parent(node) {
            is_value[parent as usize] = false;
            n_leaves[parent as usize] += n_leaves[node as usize];
        }
    }
    let all = n_leaves[0] as f64;
    n_leaves.into_iter().zip(is_value).map(|(n, is_value)| if is_value { 0.0 } else { n as f64 / all }).collect()
}

#[cfg(test)]
mod tests {
    use kohort_model::Hierarchy;

    use super::*;

    fn tree() -> GrowingTree {
        GrowingTree::of(&Hierarchy::from_paths("1;a;*\n2;a;*\n3;b;*\n4;*\n").unwrap())
    }

    fn ncp(tree: &GrowingTree, label: &str) -> f64 {
        let mut ncp = NcpOfLabels::new(std::slice::from_ref(tree));
        ncp.add(&[tree.node(label).unwrap()], 4);
        ncp.mean()
    }

    #[test]
    fn a_value_loses_nothing_a_node_its_share_of_leaves_and_the_root_everything() {
        let found = ["1", "4", "a", "b", "*"].map(|label| ncp(&tree(), label));
        assert_eq!(found, [0.0, 0.0, 0.5, 0.25, 1.0]);
    }

    #[test]
    fn a_value_that_comes_makes_the_share_of_others_smaller() {
        let mut tree = tree();
        tree.add_path(&["5", "b", "*"]).unwrap();
        assert_eq!([ncp(&tree, "a"), ncp(&tree, "b")], [0.4, 0.4]);
    }

    #[test]
    fn rows_that_are_not_shown_lose_everything() {
        let tree = tree();
        let mut ncp = NcpOfLabels::new(&[tree.clone(), tree.clone()]);
        ncp.add(&[tree.node("a").unwrap(), tree.node("1").unwrap()], 3);
        ncp.add_suppressed(1);
        assert_eq!(ncp.mean(), (3.0 * 0.25 + 1.0) / 4.0);
        assert_eq!(NcpOfLabels::new(&[]).mean(), 0.0);
    }
}
