//! [`Pairs`]: a tree made of child-parent pairs that are added one by one.
//!
//! # Cost
//! Inserting a pair takes time proportional to the depth of the tree, not to its size.

use std::collections::HashMap;

use kohort_model::Hierarchy;

use super::error::DghError;

/// How many roots a message lists.
const NAMED_ROOTS: usize = 5;

/// The parent of each child, without cycles.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs {
    parents: HashMap<String, String>,
    /// The children in the order of insertion, which is the order of the tree's leaves.
    order: Vec<String>,
}

impl Pairs {
    pub(super) fn insert(&mut self, pairs: &[(String, String)]) -> Result<(), DghError> {
        let n_before = self.order.len();
        for (index, (child, parent)) in pairs.iter().enumerate() {
            if let Err(fault) = self.insert_one(index + 1, child, parent) {
                for child in self.order.drain(n_before..) {
                    self.parents.remove(&child);
                }
                return Err(fault);
            }
        }
        Ok(())
    }

    fn insert_one(&mut self, position: usize, child: &str, parent: &str) -> Result<(), DghError> {
        // Trees are read from lines, so labels have no line breaks. The empty text can be a value, but not a
        // generalization.
        if [child, parent].iter().any(|label| label.contains(['\n', '\r'])) {
            return Err(DghError::BadLabel { position, what: "a label contains a line break" });
        }
        if parent.is_empty() {
            return Err(DghError::BadLabel { position, what: "the parent is empty" });
        }
        if let Some(known) = self.parents.get(child) {
            let (child, parent, is_same) = (child.to_owned(), known.clone(), known == parent);
            return Err(if is_same {
                DghError::Repeated { position, child, parent }
            } else {
                DghError::SecondParent { position, child, parent }
            });
        }
        let mut above = Some(parent);
        while let Some(label) = above {
            if label == child {
                return Err(DghError::Cycle { position, child: child.to_owned() });
            }
            above = self.parents.get(label).map(String::as_str);
        }
        self.parents.insert(child.to_owned(), parent.to_owned());
        self.order.push(child.to_owned());
        Ok(())
    }

    /// All pairs in the order of insertion.
    pub(super) fn all(&self) -> Vec<(String, String)> {
        self.order.iter().map(|child| (child.clone(), self.parents[child].clone())).collect()
    }

    /// The number of children that have no children themselves.
    pub(super) fn n_leaves(&self) -> usize {
        let inner: std::collections::HashSet<&String> = self.parents.values().collect();
        self.order.iter().filter(|child| !inner.contains(child)).count()
    }

    /// The finished tree.
    pub(super) fn tree(&self, name: &str) -> Result<Hierarchy, DghError> {
        if self.order.is_empty() {
            return Err(DghError::Empty { name: name.to_owned() });
        }
        let mut roots: Vec<&String> =
            self.parents.values().filter(|label| !self.parents.contains_key(label.as_str())).collect();
        roots.sort_unstable();
        roots.dedup();
        if roots.len() > 1 {
            let some = roots.iter().take(NAMED_ROOTS).map(|label| (*label).clone()).collect();
            return Err(DghError::SeveralRoots { name: name.to_owned(), n_roots: roots.len(), some });
        }
        let quote = |label: &str| format!("\"{}\"", label.replace('"', "\"\""));
        let rows = self.order.iter().map(|child| format!("{};{}\n", quote(child), quote(&self.parents[child])));
        let tree = Hierarchy::from_edges(&rows.collect::<String>());
        Ok(tree.expect("pairs without a circle, each child with one parent, are edges of a tree"))
    }
}
