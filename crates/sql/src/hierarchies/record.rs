//! DGHs as text, for storage in a data folder.

use std::sync::Arc;

use kohort_model::Hierarchy;
use kohort_model::hierarchy::{DateLevel, MaskSide, Rule};
use serde::{Deserialize, Serialize};

use super::pairs::Pairs;
use super::{Dgh, DghError, Hierarchies};

/// A DGH as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum HierarchyRecord {
    /// Child-parent pairs in the order of insertion.
    Pairs(Vec<(String, String)>),
    /// A finished tree: the path from each leaf to the root, as in a file.
    Tree(String),
    Steps(Vec<f64>),
    Mask(MaskSide),
    Dates(Vec<DateLevel>),
    Flat,
}

impl Hierarchies {
    /// A DGH as text for [`Hierarchies::restore`].
    pub(crate) fn record(&self, name: &str) -> Option<String> {
        let record = match self.by_name.get(&name.to_lowercase())? {
            Dgh::Pairs(pairs) => HierarchyRecord::Pairs(pairs.all()),
            Dgh::Tree(tree) => HierarchyRecord::Tree(paths(tree)),
            Dgh::Rule(Rule::Steps(steps)) => HierarchyRecord::Steps(steps.clone()),
            Dgh::Rule(Rule::Mask(side)) => HierarchyRecord::Mask(*side),
            Dgh::Rule(Rule::Dates(levels)) => HierarchyRecord::Dates(levels.clone()),
            Dgh::Rule(Rule::Flat) => HierarchyRecord::Flat,
        };
        Some(serde_json::to_string(&record).expect("texts and numbers are JSON"))
    }

    /// The finished tree of a DGH as text, to which no pairs can be added.
    ///
    /// # Errors
    /// If the DGH does not have exactly one root.
    pub(crate) fn finished_record(&self, name: &str) -> Result<Option<String>, DghError> {
        let key = name.to_lowercase();
        match self.by_name.get(&key) {
            Some(Dgh::Pairs(pairs)) => {
                let tree = HierarchyRecord::Tree(paths(&pairs.tree(name)?));
                Ok(Some(serde_json::to_string(&tree).expect("text is JSON")))
            }
            _ => Ok(self.record(&key)),
        }
    }

    /// The tree of a DGH that is a finished tree.
    pub(crate) fn tree(&self, name: &str) -> Option<Arc<Hierarchy>> {
        match self.by_name.get(&name.to_lowercase())? {
            Dgh::Tree(tree) => Some(Arc::clone(tree)),
            Dgh::Pairs(_) | Dgh::Rule(_) => None,
        }
    }

    /// Restores a DGH from its text; `None` if the text is not valid.
    #[must_use]
    pub(crate) fn restore(&mut self, name: &str, record: &str) -> Option<()> {
        let dgh = match serde_json::from_str(record).ok()? {
            HierarchyRecord::Pairs(pairs) => {
                let mut known = Pairs::default();
                known.insert(&pairs).ok()?;
                Dgh::Pairs(known)
            }
            HierarchyRecord::Tree(paths) => Dgh::Tree(Arc::new(Hierarchy::from_paths(&paths).ok()?)),
            HierarchyRecord::Steps(steps) => checked(Rule::Steps(steps))?,
            HierarchyRecord::Mask(side) => checked(Rule::Mask(side))?,
            HierarchyRecord::Dates(levels) => checked(Rule::Dates(levels))?,
            HierarchyRecord::Flat => checked(Rule::Flat)?,
        };
        self.by_name.insert(name.to_lowercase(), dgh);
        Some(())
    }
}

/// The rule, if it can make a tree. Only such rules are stored, so another one means that the record is damaged.
fn checked(rule: Rule) -> Option<Dgh> {
    rule.check().ok().map(|()| Dgh::Rule(rule))
}

/// The content of a paths file for a tree.
fn paths(tree: &Hierarchy) -> String {
    let quoted = |node: u32| format!("\"{}\"", tree.label(node).replace('"', "\"\""));
    let line = |leaf: &u32| tree.path(*leaf).map(quoted).collect::<Vec<_>>().join(";") + "\n";
    tree.leaves().iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use kohort_model::spec::HierarchySource;

    use super::*;

    fn is_kept(hierarchies: &Hierarchies, name: &str) {
        let record = hierarchies.record(name).unwrap();
        let mut restored = Hierarchies::default();
        restored.restore(name, &record).unwrap();
        assert_eq!(restored.record(name).unwrap(), record);
        assert_eq!(
            restored.summaries(),
            hierarchies.summaries().into_iter().filter(|dgh| dgh.name == name).collect::<Vec<_>>()
        );
    }

    #[test]
    fn every_kind_of_dgh_comes_back_as_it_was() {
        let mut hierarchies = Hierarchies::default();
        hierarchies.create("pairs", false, None).unwrap();
        let pair = |child: &str, parent: &str| (child.to_owned(), parent.to_owned());
        hierarchies.insert("pairs", &[pair("a;\"b\"", "*"), pair("c", "*"), pair("d", "c")]).unwrap();
        let rules = [
            ("steps", Rule::Steps(vec![2.5, 10.0])),
            ("mask", Rule::Mask(MaskSide::Left)),
            ("dates", Rule::Dates(vec![DateLevel::Month, DateLevel::Decade])),
            ("flat", Rule::Flat),
        ];
        for (name, rule) in rules {
            hierarchies.by_name.insert(name.to_owned(), Dgh::Rule(rule.clone()));
            is_kept(&hierarchies, name);
        }
        is_kept(&hierarchies, "pairs");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("zip.csv");
        std::fs::write(&file, "88512;885**;*\n88599;885**;*\n\"1;2\";\"1;*\";*\n").unwrap();
        hierarchies.create("file", false, Some(&HierarchySource::Paths(file))).unwrap();
        is_kept(&hierarchies, "file");
    }

    #[test]
    fn a_record_that_is_not_a_dgh_is_refused() {
        assert!(Hierarchies::default().restore("x", "{\"tree\":\"\"}").is_none());
        assert!(Hierarchies::default().restore("x", "").is_none());
        for rule in ["{\"steps\":[]}", "{\"steps\":[-1.0]}", "{\"dates\":[\"year\",\"day\"]}"] {
            assert!(Hierarchies::default().restore("x", rule).is_none(), "{rule}");
        }
    }
}
