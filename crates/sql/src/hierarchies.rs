//! [`Hierarchies`]: the DGHs that views can use, by name.
//!
//! A DGH is pairs of a child and its parent under construction, a finished tree from a file, or a rule that makes the
//! tree from a column's values when a view is created. Labels of a DGH are what a view shows anyway, so messages may
//! name them; values of a column that have no leaf are private, so they are counted.
//!
//! # Guarantee
//! An insert is done whole or not at all: a pair that would close a circle, give a label a second parent or repeat
//! another leaves the DGH as it was.
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

pub use error::DghError;
use pairs::Pairs;

/// The DGHs by name. Names are found in any case.
#[derive(Debug, Default)]
pub struct Hierarchies {
    by_name: BTreeMap<String, Dgh>,
}

/// What a DGH becomes by a change that is not made yet.
#[derive(Debug)]
pub struct Tried {
    key: String,
    dgh: Option<Dgh>,
    /// What it becomes as text that [`Hierarchies::restore`] takes; `None` where it is no more.
    pub record: Option<String>,
}

#[derive(Clone, Debug)]
enum Dgh {
    Pairs(Pairs),
    Tree(Arc<Hierarchy>),
    Rule(Rule),
}

/// What is known of a DGH, for lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HierarchySummary {
    /// Its name.
    pub name: String,
    /// `pairs`, `file` or `rule`.
    pub kind: &'static str,
    /// How many values it has; a rule has none before it is used.
    pub n_values: Option<usize>,
    /// Steps from the root to the deepest value.
    pub height: Option<usize>,
}

impl Tried {
    /// The name under which it is kept.
    pub fn name(&self) -> &str {
        &self.key
    }
}

impl Hierarchies {
    /// No DGH.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a DGH: from a file, by rule, or without any pair yet.
    ///
    /// # Errors
    /// Where there is one of this name that may not be replaced, or the file or rule is none.
    pub fn create(&mut self, name: &str, or_replace: bool, source: Option<&HierarchySource>) -> Result<(), DghError> {
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

    /// Adds children with their parents, all or none.
    ///
    /// # Errors
    /// Where the DGH is no list of pairs, or these pairs do not fit it.
    pub fn insert(&mut self, name: &str, pairs: &[(String, String)]) -> Result<(), DghError> {
        let unknown = self.unknown(name);
        match self.by_name.get_mut(&name.to_lowercase()) {
            None => Err(unknown),
            Some(Dgh::Pairs(known)) => known.insert(pairs),
            Some(Dgh::Tree(_) | Dgh::Rule(_)) => Err(DghError::Finished { name: name.to_owned() }),
        }
    }

    /// Forgets a DGH, and says whether it was there. Views that use it keep theirs.
    ///
    /// # Errors
    /// Where there is none, unless `if_exists`.
    pub fn remove(&mut self, name: &str, if_exists: bool) -> Result<bool, DghError> {
        let unknown = self.unknown(name);
        match self.by_name.remove(&name.to_lowercase()) {
            None if !if_exists => Err(unknown),
            removed => Ok(removed.is_some()),
        }
    }

    /// Tries a change of one DGH, and leaves that as it was.
    ///
    /// # Errors
    /// Where the change fails.
    pub fn tried<T>(
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

    /// Makes a change that was tried.
    pub fn make(&mut self, tried: Tried) {
        match tried.dgh {
            Some(dgh) => self.by_name.insert(tried.key, dgh),
            None => self.by_name.remove(&tried.key),
        };
    }

    /// The tree of a column with these distinct values, below a root where that is known already.
    ///
    /// # Errors
    /// Where there is no such DGH, it has not one root, or values of the column are not in it.
    pub fn tree_for(
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

    /// The rule by which a DGH makes its tree, where it is made by one.
    pub fn rule(&self, name: &str) -> Option<&Rule> {
        match self.by_name.get(&name.to_lowercase()) {
            Some(Dgh::Rule(rule)) => Some(rule),
            _ => None,
        }
    }

    /// All DGHs, by name.
    pub fn summaries(&self) -> Vec<HierarchySummary> {
        let of_tree = |tree: &Hierarchy| (Some(tree.leaves().len()), Some(tree.height()));
        let summary = |(name, dgh): (&String, &Dgh)| {
            let (kind, (n_values, height)) = match dgh {
                Dgh::Rule(_) => ("rule", (None, None)),
                Dgh::Tree(tree) => ("file", of_tree(tree)),
                // Without one root there is a number of values, but no height yet.
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
