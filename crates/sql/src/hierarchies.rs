//! [`Hierarchies`]: the DGHs that views can use, by name.
//!
//! A DGH is a list of child-parent pairs that can still grow, a finished tree from a file, or a rule that makes the
//! tree from a column's values when a view is created. Views show the labels of a DGH anyway, so messages may contain
//! them. Values of a column that have no leaf are private, so messages only count them.
//!
//! # Guarantee
//! An insert takes effect as a whole or not at all. It fails if a pair would close a cycle, give a label a second
//! parent or repeat another pair.
//! # Paper
//! `[EPS+12]`, section 4.

mod error;
mod pairs;
mod record;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use kohort_model::hierarchy::{HierarchyErrors, Rule};
use kohort_model::spec::HierarchySource;
use kohort_model::{Hierarchy, Notation, Texts, ValueType};

pub(crate) use error::DghError;
use pairs::Pairs;

/// The DGHs by name. Names are compared without regard to case.
#[derive(Debug, Default)]
pub(crate) struct Hierarchies {
    by_name: BTreeMap<String, Dgh>,
}

/// The result of a change to a DGH that is not applied yet.
#[derive(Debug)]
pub(crate) struct Tried {
    /// The name under which the DGH is stored.
    pub key: String,
    dgh: Option<Dgh>,
    /// The changed DGH as text for [`Hierarchies::restore`]; `None` if the change removes it.
    pub record: Option<String>,
}

#[derive(Clone, Debug)]
enum Dgh {
    Pairs(Pairs),
    Tree(Arc<Hierarchy>),
    Rule(Rule),
}

/// What a DGH is made of.
pub(crate) enum Making {
    Rule(Rule),
    /// Children and their parents.
    Pairs(Vec<(String, String)>),
}

/// A DGH in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HierarchySummary {
    pub name: String,
    /// `pairs`, `file` or `rule`.
    pub kind: &'static str,
    /// The number of values. A rule has none before it is used.
    pub n_values: Option<usize>,
    /// The number of steps from the root to the deepest value.
    pub height: Option<usize>,
}

impl Hierarchies {
    /// Creates a DGH from a file, from a rule, or without any pairs yet.
    ///
    /// # Errors
    /// If the name is taken and `or_replace` is false, or the file or rule is not valid.
    pub(crate) fn create(
        &mut self,
        name: &str,
        or_replace: bool,
        source: Option<&HierarchySource>,
    ) -> Result<(), DghError> {
        let key = name.to_lowercase();
        if !or_replace && self.by_name.contains_key(&key) {
            return Err(DghError::Exists { name: name.to_owned() });
        }
        let dgh = match source {
            None => Dgh::Pairs(Pairs::default()),
            Some(HierarchySource::Paths(path)) => Dgh::Tree(read(name, path, Hierarchy::from_paths)?),
            Some(HierarchySource::Edges(path)) => Dgh::Tree(read(name, path, Hierarchy::from_edges)?),
            Some(HierarchySource::Rule(rule)) => {
                rule.check().map_err(|problem| DghError::Rule { name: name.to_owned(), problem })?;
                Dgh::Rule(rule.clone())
            }
        };
        self.by_name.insert(key, dgh);
        Ok(())
    }

    /// Adds child-parent pairs, all or none.
    ///
    /// # Errors
    /// If the DGH is not a list of pairs, or these pairs do not fit it.
    pub(crate) fn insert(&mut self, name: &str, pairs: &[(String, String)]) -> Result<(), DghError> {
        let unknown = self.unknown(name);
        match self.by_name.get_mut(&name.to_lowercase()) {
            None => Err(unknown),
            Some(Dgh::Pairs(known)) => known.insert(pairs),
            Some(Dgh::Tree(_) | Dgh::Rule(_)) => Err(DghError::Finished { name: name.to_owned() }),
        }
    }

    /// Removes a DGH, and returns whether it existed. Views that use it keep their copy.
    ///
    /// # Errors
    /// If there is none, unless `if_exists`.
    pub(crate) fn remove(&mut self, name: &str, if_exists: bool) -> Result<bool, DghError> {
        let unknown = self.unknown(name);
        match self.by_name.remove(&name.to_lowercase()) {
            None if !if_exists => Err(unknown),
            removed => Ok(removed.is_some()),
        }
    }

    /// Computes a change of one DGH without applying it.
    pub(crate) fn tried<T>(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Hierarchies) -> Result<T, DghError>,
    ) -> Result<(T, Tried), DghError> {
        let key = name.to_lowercase();
        let before = self.by_name.get(&key).cloned();
        let done = change(self)?;
        let record = self.record(&key);
        let dgh = match before {
            Some(before) => self.by_name.insert(key.clone(), before),
            None => self.by_name.remove(&key),
        };
        Ok((done, Tried { key, dgh, record }))
    }

    /// Applies a change that was computed by [`Hierarchies::tried`].
    pub(crate) fn make(&mut self, tried: Tried) {
        match tried.dgh {
            Some(dgh) => self.by_name.insert(tried.key, dgh),
            None => self.by_name.remove(&tried.key),
        };
    }

    /// The tree for a column with these distinct values, with the given root if there is one.
    ///
    /// # Errors
    /// If there is no such DGH, it does not have exactly one root, or values of the column are not in it.
    pub(crate) fn tree_for(
        &self,
        name: &str,
        root: Option<&str>,
        values: &Texts,
        value_type: ValueType,
        notation: &Notation,
    ) -> Result<Arc<Hierarchy>, DghError> {
        let tree = match self.by_name.get(&name.to_lowercase()) {
            None => return Err(self.unknown(name)),
            Some(Dgh::Rule(rule)) => {
                let made = match root {
                    Some(root) => rule.make_below(root, values, value_type, notation),
                    None => rule.make(values, value_type, notation),
                };
                return made.map(Arc::new).map_err(|problem| DghError::Rule { name: name.to_owned(), problem });
            }
            Some(Dgh::Tree(tree)) => tree.clone(),
            Some(Dgh::Pairs(pairs)) => Arc::new(pairs.tree(name)?),
        };
        let n_values = values.iter().filter(|value| tree.leaf(value).is_none()).count();
        if n_values > 0 {
            return Err(DghError::NoLeaf { name: name.to_owned(), n_values });
        }
        Ok(tree)
    }

    /// The rule of a DGH, if it has one.
    pub(crate) fn rule(&self, name: &str) -> Option<&Rule> {
        match self.by_name.get(&name.to_lowercase()) {
            Some(Dgh::Rule(rule)) => Some(rule),
            _ => None,
        }
    }

    /// What a DGH is made of.
    ///
    /// # Errors
    /// If there is no such DGH.
    pub(crate) fn making(&self, name: &str) -> Result<Making, DghError> {
        let dgh = self.by_name.get(&name.to_lowercase()).ok_or_else(|| self.unknown(name))?;
        Ok(match dgh {
            Dgh::Rule(rule) => Making::Rule(rule.clone()),
            Dgh::Pairs(pairs) => Making::Pairs(pairs.all()),
            Dgh::Tree(tree) => {
                // The first node is the root.
                let edges = tree.nodes().skip(1);
                Making::Pairs(edges.map(|(label, parent)| (label.to_owned(), tree.label(parent).to_owned())).collect())
            }
        })
    }

    /// All DGHs, sorted by name.
    pub(crate) fn summaries(&self) -> Vec<HierarchySummary> {
        let of_tree = |tree: &Hierarchy| (Some(tree.leaves().len()), Some(tree.height()));
        let summary = |(name, dgh): (&String, &Dgh)| {
            let (kind, (n_values, height)) = match dgh {
                Dgh::Rule(_) => ("rule", (None, None)),
                Dgh::Tree(tree) => ("file", of_tree(tree)),
                // Without a single root the number of values is known, but not the height.
                Dgh::Pairs(pairs) => match pairs.tree(name) {
                    Ok(tree) => ("pairs", of_tree(&tree)),
                    Err(_) => ("pairs", (Some(pairs.n_leaves()), None)),
                },
            };
            HierarchySummary { name: name.clone(), kind, n_values, height }
        };
        self.by_name.iter().map(summary).collect()
    }

    fn unknown(&self, name: &str) -> DghError {
        DghError::Unknown { name: name.to_owned(), known: self.by_name.keys().cloned().collect() }
    }
}

fn read(
    name: &str,
    path: &Path,
    reader: impl Fn(&str) -> Result<Hierarchy, HierarchyErrors>,
) -> Result<Arc<Hierarchy>, DghError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| DghError::File { path: path.to_owned(), error: Arc::new(error) })?;
    let tree = reader(&text).map_err(|problems| DghError::Content {
        name: name.to_owned(),
        path: path.to_owned(),
        problems,
    })?;
    Ok(Arc::new(tree))
}

#[cfg(test)]
mod tests;
