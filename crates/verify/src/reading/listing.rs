//! [`Listing`]: the released part of a hierarchy file, and whether it is true.
//!
//! For each label that some cell of a column shows, a listing has every value below that label in the publisher's
//! hierarchy file, whether or not the private table contains the value.
//!
//! # Guarantee
//! A listing that passes [`Listing::check_shown`] has exactly the labels that the cells show. A listing that passes
//! [`Listing::check_hierarchy`] agrees with the hierarchy. Together they make a listing a function of the released
//! cells and the hierarchy file, so it tells nothing more about the private table than the released cells do.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use kohort_model::{Hierarchy, Texts};

use crate::reading::unused;

/// Which values the labels of a column stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The values of each label, ascending for binary search.
    labels: BTreeMap<String, Vec<String>>,
}

/// The fault of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ListingErrorKind {
    /// A cell shows a label that the listing lacks.
    #[error("lacks labels that cells show")]
    LabelMissing,
    /// The listing has a label that no cell shows.
    #[error("has labels that no cell shows")]
    LabelNotShown,
    /// Two labels overlap without being nested, or a value is also a label of other values.
    #[error("has labels that do not form a tree")]
    NoTree,
    /// A value occurs twice under the same label.
    #[error("lists a value twice under one label")]
    ValueTwice,
    /// The hierarchy has other values below a label.
    #[error("lists other values than the hierarchy")]
    OtherValues,
}

impl Listing {
    /// A listing of pairs of a label and one of its values.
    ///
    /// # Errors
    /// If a pair occurs twice.
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Result<Self, ListingErrorKind> {
        let mut labels: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (label, value) in pairs {
            labels.entry(label).or_default().push(value);
        }
        for values in labels.values_mut() {
            values.sort_unstable();
            if values.windows(2).any(|pair| pair[0] == pair[1]) {
                return Err(ListingErrorKind::ValueTwice);
            }
        }
        Ok(Listing { labels })
    }

    /// The values of a label, ascending.
    pub fn values(&self, label: &str) -> Option<&[String]> {
        self.labels.get(label).map(Vec::as_slice)
    }

    /// Every label with its values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.labels.iter().map(|(label, values)| (label.as_str(), values.as_slice()))
    }

    /// Whether the listing has exactly the labels that cells show, and these form a tree.
    ///
    /// # Errors
    /// If not.
    pub fn check_shown(&self, shown: &Texts) -> Result<(), ListingErrorKind> {
        if shown.iter().any(|label| !self.labels.contains_key(label)) {
            return Err(ListingErrorKind::LabelMissing);
        }
        if self.labels.len() > shown.iter().collect::<BTreeSet<_>>().len() {
            return Err(ListingErrorKind::LabelNotShown);
        }
        self.check_tree()
    }

    /// Whether the listing has, for each label, exactly the values below it in a hierarchy.
    ///
    /// # Errors
    /// If not.
    pub fn check_hierarchy(&self, hierarchy: &Hierarchy) -> Result<(), ListingErrorKind> {
        let mut below: BTreeMap<u32, BTreeSet<&str>> = BTreeMap::new();
        for label in self.labels.keys() {
            below.insert(hierarchy.node(label).ok_or(ListingErrorKind::OtherValues)?, BTreeSet::new());
        }
        // Going up from each leaf visits each path once. Going down from each label would visit shared leaves
        // repeatedly.
        for leaf in (0..hierarchy.n_nodes() as u32).filter(|&node| hierarchy.is_leaf(node)) {
            for node in hierarchy.path(leaf) {
                if let Some(values) = below.get_mut(&node) {
                    values.insert(hierarchy.label(leaf));
                }
            }
        }
        let is_same = |(node, values): (&u32, &BTreeSet<&str>)| {
            let listed = self.values(hierarchy.label(*node)).unwrap_or_default();
            listed.len() == values.len() && listed.iter().all(|value| values.contains(value.as_str()))
        };
        if below.iter().all(is_same) { Ok(()) } else { Err(ListingErrorKind::OtherValues) }
    }

    /// The labels in the order of how many values they have, most first.
    fn widest_first(&self) -> Vec<(&str, &[String])> {
        let mut labels: Vec<(&str, &[String])> = self.iter().collect();
        labels
            .sort_by_key(|(label, values)| (std::cmp::Reverse(values.len()), values.len() == 1 && *label == values[0]));
        labels
    }

    fn check_tree(&self) -> Result<(), ListingErrorKind> {
        // For each value, the narrowest label so far that contains it.
        let mut inside: HashMap<&str, Option<usize>> = HashMap::new();
        for (position, (label, values)) in self.widest_first().into_iter().enumerate() {
            let mut around = values.iter().map(|value| inside.get(value.as_str()).copied().flatten());
            let first = around.next().ok_or(ListingErrorKind::NoTree)?;
            if around.any(|other| other != first) {
                return Err(ListingErrorKind::NoTree);
            }
            for value in values {
                // A label that is also a value must stand for itself alone.
                let is_value_itself = value == label;
                if (is_value_itself && values.len() > 1) || (!is_value_itself && self.is_inner(value)) {
                    return Err(ListingErrorKind::NoTree);
                }
                inside.insert(value, Some(position));
            }
        }
        Ok(())
    }

    /// Whether a text is a label of other values.
    fn is_inner(&self, text: &str) -> bool {
        self.values(text).is_some_and(|values| values.iter().any(|value| value != text))
    }

    /// The labels and values as a tree. `root` is the label of the hierarchy's root, if a cell shows it. The tree is
    /// meaningful only if the listing passes [`Listing::check_shown`].
    pub fn tree(&self, root: Option<&str>) -> Hierarchy {
        let texts = || self.iter().flat_map(|(label, values)| values.iter().map(String::as_str).chain([label]));
        let texts: HashSet<&str> = texts().collect();
        let top = root.map_or_else(|| unused("*", &texts), str::to_owned);
        let mut nodes: Vec<(&str, u32)> = vec![(&top, 0)];
        let mut inside: HashMap<&str, u32> = HashMap::new();
        for (label, values) in self.widest_first() {
            let is_value_itself = values.len() == 1 && values[0] == label;
            if Some(label) == root || is_value_itself {
                continue;
            }
            let above = values.first().and_then(|value| inside.get(value.as_str())).copied().unwrap_or(0);
            nodes.push((label, above));
            let node = nodes.len() as u32 - 1;
            inside.extend(values.iter().map(|value| (value.as_str(), node)));
        }
        let mut seen = BTreeSet::new();
        for (_, values) in self.iter() {
            for value in values.iter().filter(|value| seen.insert(value.as_str())) {
                nodes.push((value, inside.get(value.as_str()).copied().unwrap_or(0)));
            }
        }
        Hierarchy::from_nodes(nodes).unwrap_or_else(|| Hierarchy::flat(&top, []))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOBS: &str =
        "nurse;care;any job\ndentist;care;any job\nfisher;land;any job\nfarmer;land;any job\npoet;any job";

    fn listing(pairs: &[(&str, &str)]) -> Listing {
        Listing::new(pairs.iter().map(|&(label, value)| (label.to_owned(), value.to_owned()))).unwrap()
    }

    fn shown(labels: &[&str]) -> Texts {
        labels.iter().collect()
    }

    #[test]
    fn a_true_listing_has_all_values_below_each_shown_label() {
        let jobs = Hierarchy::from_paths(JOBS).unwrap();
        let listed = listing(&[("care", "nurse"), ("care", "dentist"), ("poet", "poet")]);
        assert_eq!(listed.check_shown(&shown(&["care", "poet"])), Ok(()));
        assert_eq!(listed.check_hierarchy(&jobs), Ok(()));
        let pruned = listing(&[("care", "nurse"), ("poet", "poet")]);
        assert_eq!(pruned.check_hierarchy(&jobs), Err(ListingErrorKind::OtherValues));
        let foreign = listing(&[("care", "nurse"), ("care", "fisher")]);
        assert_eq!(foreign.check_hierarchy(&jobs), Err(ListingErrorKind::OtherValues));
        assert_eq!(listing(&[("craft", "smith")]).check_hierarchy(&jobs), Err(ListingErrorKind::OtherValues));
    }

    #[test]
    fn a_listing_has_the_labels_that_cells_show_and_no_others() {
        let listed = listing(&[("care", "nurse"), ("care", "dentist"), ("land", "fisher"), ("land", "farmer")]);
        assert_eq!(listed.check_shown(&shown(&["care", "land"])), Ok(()));
        assert_eq!(listed.check_shown(&shown(&["care"])), Err(ListingErrorKind::LabelNotShown));
        assert_eq!(listed.check_shown(&shown(&["care", "land", "poet"])), Err(ListingErrorKind::LabelMissing));
    }

    #[test]
    fn labels_that_overlap_are_no_tree() {
        let crossed = listing(&[("a", "1"), ("a", "2"), ("b", "2"), ("b", "3")]);
        assert_eq!(crossed.check_shown(&shown(&["a", "b"])), Err(ListingErrorKind::NoTree));
        let nested = listing(&[("a", "1"), ("a", "2"), ("b", "2"), ("2", "2")]);
        assert_eq!(nested.check_shown(&shown(&["a", "b", "2"])), Ok(()));
        let label_as_value = listing(&[("a", "b"), ("a", "1"), ("b", "2")]);
        assert_eq!(label_as_value.check_shown(&shown(&["a", "b"])), Err(ListingErrorKind::NoTree));
        let twice = Listing::new([("a", "1"), ("a", "1")].map(|(a, b)| (a.to_owned(), b.to_owned())));
        assert_eq!(twice, Err(ListingErrorKind::ValueTwice));
    }

    #[test]
    fn a_listing_is_a_tree_below_the_root_that_is_shown_or_below_one_of_another_name() {
        let listed = listing(&[("care", "nurse"), ("care", "dentist"), ("poet", "poet")]);
        let tree = listed.tree(None);
        let path = |tree: &Hierarchy, label: &str| -> Vec<String> {
            tree.path(tree.node(label).unwrap()).map(|node| tree.label(node).to_owned()).collect()
        };
        assert_eq!(path(&tree, "nurse"), ["nurse", "care", "*"]);
        assert_eq!(path(&tree, "poet"), ["poet", "*"]);
        assert_eq!(tree.children(tree.root()).len(), 2);
        assert_eq!(path(&listing(&[("*", "1"), ("*", "2")]).tree(None), "1"), ["1", "*", "**"]);
        let whole = listing(&[("any job", "nurse"), ("any job", "poet"), ("care", "nurse")]);
        assert_eq!(path(&whole.tree(Some("any job")), "nurse"), ["nurse", "care", "any job"]);
    }
}
