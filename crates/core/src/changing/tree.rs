//! [`GrowingTree`]: a DGH whose nodes keep their numbers while values are added.
//!
//! A [`Hierarchy`] is made whole, and its numbers follow the order of its values. What is kept from day to day needs
//! numbers that stay: here a new node gets the next one. A tree made from a hierarchy begins with the hierarchy's own.

use std::collections::BTreeMap;
use std::fmt;

use kohort_model::Hierarchy;

/// A DGH that grows. Node 0 is the root; parents have lower numbers than their children.
#[derive(Clone, PartialEq, Eq)]
pub struct GrowingTree {
    labels: Vec<Box<str>>,
    by_label: BTreeMap<Box<str>, u32>,
    parents: Vec<u32>,
    depths: Vec<u32>,
    /// The most steps between any two nodes, and two that are so far apart.
    diameter: u32,
    ends: [u32; 2],
}

/// Why a path can't be added. The error does not contain labels, which may be values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// The path does not end in the root.
    #[error("the path does not end in the hierarchy's root")]
    OtherRoot,
    /// A label of the path is already in the tree, below another node.
    #[error("step {step} of the path is already below another node")]
    SecondParent {
        /// The position of the label in the path. The value itself is position 1.
        step: usize,
    },
}

impl GrowingTree {
    /// A root alone.
    pub fn new(root: &str) -> GrowingTree {
        let by_label = BTreeMap::from([(Box::from(root), 0)]);
        let (labels, parents) = (vec![Box::from(root)], vec![0]);
        GrowingTree { labels, by_label, parents, depths: vec![0], diameter: 0, ends: [0, 0] }
    }

    /// The hierarchy's nodes with their numbers.
    pub fn of(hierarchy: &Hierarchy) -> GrowingTree {
        let mut tree = GrowingTree::new(hierarchy.label(hierarchy.root()));
        for node in 1..hierarchy.n_nodes() as u32 {
            tree.add(hierarchy.label(node), hierarchy.parent(node).unwrap_or(0));
        }
        tree
    }

    /// Adds a value with its ancestors, the value first and the root last, as far as they are new. Gives its node.
    ///
    /// # Errors
    /// If the path contradicts the tree; the tree then stays as it was.
    pub fn add_path(&mut self, path: &[&str]) -> Result<u32, PathError> {
        if path.last().and_then(|root| self.node(root)) != Some(0) {
            return Err(PathError::OtherRoot);
        }
        let first_known = path.iter().position(|label| self.node(label).is_some()).unwrap_or(path.len() - 1);
        if let Some(step) = (1..first_known).find(|&step| path[..step].contains(&path[step])) {
            return Err(PathError::SecondParent { step: step + 1 });
        }
        let mut node = self.node(path[first_known]).unwrap_or(0);
        let mut above = self.parent(node);
        for (step, label) in path.iter().enumerate().skip(first_known + 1) {
            if above.is_none() || self.node(label) != above {
                return Err(PathError::SecondParent { step: step + 1 });
            }
            above = above.and_then(|above| self.parent(above));
        }
        for label in path[..first_known].iter().rev() {
            node = self.add(label, node);
        }
        Ok(node)
    }

    fn add(&mut self, label: &str, parent: u32) -> u32 {
        let node = self.labels.len() as u32;
        self.labels.push(label.into());
        self.by_label.insert(label.into(), node);
        self.parents.push(parent);
        self.depths.push(self.depths[parent as usize] + 1);
        // If a new longest way exists, it starts at the new node and ends at an end of the longest way so far.
        for end in self.ends {
            let distance = self.distance(node, end);
            if distance > self.diameter {
                (self.diameter, self.ends) = (distance, [node, end]);
            }
        }
        node
    }

    /// Steps between two nodes.
    pub fn distance(&self, a: u32, b: u32) -> u32 {
        self.depth(a) + self.depth(b) - 2 * self.depth(self.join(a, b))
    }

    /// How many nodes there are.
    pub fn n_nodes(&self) -> usize {
        self.parents.len()
    }

    /// A node's label.
    pub fn label(&self, node: u32) -> &str {
        &self.labels[node as usize]
    }

    /// The node with this label.
    pub fn node(&self, label: &str) -> Option<u32> {
        self.by_label.get(label).copied()
    }

    /// A node's parent, `None` for the root.
    pub fn parent(&self, node: u32) -> Option<u32> {
        (node != 0).then(|| self.parents[node as usize])
    }

    /// Steps from the root.
    pub fn depth(&self, node: u32) -> u32 {
        self.depths[node as usize]
    }

    /// The most steps between any two nodes, by which distances are normalized.
    pub fn diameter(&self) -> u32 {
        self.diameter
    }

    /// The lowest common ancestor.
    pub fn join(&self, mut a: u32, mut b: u32) -> u32 {
        while a != b {
            // The one with the larger number can't be an ancestor of the other.
            if a > b {
                a = self.parents[a as usize];
            } else {
                b = self.parents[b as usize];
            }
        }
        a
    }

    /// The child of `above` on the way to `below`, `None` if `below` is not under it.
    pub(super) fn child_towards(&self, above: u32, mut below: u32) -> Option<u32> {
        while below > above {
            let parent = self.parents[below as usize];
            if parent == above {
                return Some(below);
            }
            below = parent;
        }
        None
    }
}

/// Shows only the number of nodes, because labels may be values.
impl fmt::Debug for GrowingTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrowingTree").field("n_nodes", &self.n_nodes()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_stay_while_values_are_added() {
        let hierarchy = Hierarchy::from_paths("a;x;*\nb;x;*\nc;y;*\n").unwrap();
        let mut tree = GrowingTree::of(&hierarchy);
        for node in 0..hierarchy.n_nodes() as u32 {
            assert_eq!((tree.label(node), tree.parent(node)), (hierarchy.label(node), hierarchy.parent(node)));
        }
        let before = tree.clone();
        let new = tree.add_path(&["d", "z", "*"]).unwrap();
        assert_eq!(new as usize, before.n_nodes() + 1);
        assert_eq!(tree.add_path(&["d", "z", "*"]), Ok(new));
        assert!((0..before.n_nodes() as u32).all(|node| tree.label(node) == before.label(node)));
        assert_eq!(tree.join(new, before.node("a").unwrap()), 0);
    }

    #[test]
    fn a_path_that_contradicts_the_tree_changes_nothing() {
        let mut tree = GrowingTree::of(&Hierarchy::from_paths("a;x;*\nc;y;*\n").unwrap());
        let before = tree.clone();
        assert_eq!(tree.add_path(&["a", "y", "*"]), Err(PathError::SecondParent { step: 2 }));
        assert_eq!(tree.add_path(&["b", "x", "y", "*"]), Err(PathError::SecondParent { step: 3 }));
        assert_eq!(tree.add_path(&["b", "x"]), Err(PathError::OtherRoot));
        assert_eq!(tree.add_path(&["b", "b", "*"]), Err(PathError::SecondParent { step: 2 }));
        assert_eq!(tree.add_path(&["b", "x", "x", "*"]), Err(PathError::SecondParent { step: 3 }));
        assert_eq!(tree.add_path(&["*", "*"]), Err(PathError::SecondParent { step: 2 }));
        assert!(tree == before);
        assert!(!format!("{tree:?}").contains('x'));
    }

    proptest! {
        #[test]
        fn the_diameter_is_the_largest_distance_of_two_nodes(parents in prop::collection::vec(any::<prop::sample::Index>(), 1..40)) {
            let mut tree = GrowingTree::new("0");
            for (place, parent) in parents.iter().enumerate() {
                tree.add(&(place + 1).to_string(), parent.index(place + 1) as u32);
            }
            let nodes = 0..tree.n_nodes() as u32;
            let largest = nodes.clone().flat_map(|a| nodes.clone().map(move |b| (a, b))).map(|(a, b)| tree.distance(a, b)).max();
            prop_assert_eq!(Some(tree.diameter()), largest);
        }
    }
}
