//! Reads the quasi columns of a new table as an earlier release reads its own: with the same rules, and with the hierarchies that
//! were released beside it.
//!
//! # Guarantee
//! A label stands for the same values as in the earlier release. Values that its hierarchy does not list are below no label, so
//! their persons fit into no class, and no file of a new release lists them.
//! # Deviations
//! The root of a hierarchy file becomes a label of all listed values, because only these are known. It does not stand for null.

use std::collections::HashSet;
use std::sync::Arc;

use kohort_model::hierarchy::{MakeError, MaskSide, Rule};
use kohort_model::{Column, Hierarchy, LabelsManifest, NULL, Role, Table, TableManifest, Texts};

use super::LoadedTable;
use super::error::{ReadError, RowNumbers};
use super::hierarchies::texts_by_value;

impl LoadedTable {
    /// The same table, whose quasi columns are generalized to the labels of an earlier release. `earlier` is a table of that release
    /// as its readers read it, and `entry` is its description.
    ///
    /// # Errors
    /// If the table has a value that is a label of several values in the earlier release.
    pub fn generalized_as(mut self, earlier: &Table, entry: &TableManifest) -> Result<Self, Vec<ReadError>> {
        let mut problems = Vec::new();
        for (position, column) in self.table.columns.iter_mut().enumerate() {
            let labels = entry.columns.get(&column.name).and_then(|known| known.labels.as_ref());
            let (Some(labels), Some(shown)) = (labels, earlier.column(&column.name)) else { continue };
            if column.role != Role::Quasi || column.hierarchy.is_some() {
                continue;
            }
            let (made, rule) = match labels {
                LabelsManifest::Mask { side, width } => {
                    (masked(*side, *width, column), LabelsManifest::Mask { side: *side, width: None })
                }
                LabelsManifest::Hierarchy { root, .. } => {
                    let rule = LabelsManifest::Hierarchy { root: None, file: None, sha256: None };
                    (listed(root.is_some(), shown.hierarchy.as_deref(), column), rule)
                }
                LabelsManifest::Values
                | LabelsManifest::Ranges
                | LabelsManifest::Steps { .. }
                | LabelsManifest::Dates { .. }
                | LabelsManifest::Flat => continue,
            };
            match made {
                Ok(hierarchy) => {
                    column.hierarchy = Some(Arc::new(hierarchy));
                    self.origin.readings[position].labels = rule;
                }
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() { Ok(self) } else { Err(problems) }
    }
}

/// A hierarchy of the column's values and their masks, with labels of this width. A value that is longer has no
/// mask and stands directly below the root.
fn masked(side: MaskSide, width: Option<u32>, column: &Column) -> Result<Hierarchy, ReadError> {
    let fault = |problem: MakeError| ReadError::HierarchyRule { column: column.name.clone(), problem };
    let Some(width) = width else {
        let texts: HashSet<&str> = column.texts.iter().collect();
        return Ok(Hierarchy::flat(&unused(&texts), column.texts.iter()));
    };
    let by_value = texts_by_value(column);
    let fits = |text: &&str| text.chars().count() <= width as usize;
    let (fitting, longer): (Vec<&str>, Vec<&str>) = by_value.iter().partition(fits);
    let fitting: Texts = fitting.into_iter().collect();
    let root = "*".repeat(width as usize);
    let made = Rule::Mask(side).make_below(&root, &fitting, column.value_type, &column.notation).map_err(fault)?;
    let nodes = made.nodes().chain(longer.iter().map(|&text| (text, made.root())));
    Hierarchy::from_nodes(nodes).ok_or_else(|| clash(column, &made))
}

/// The released hierarchy, with the values that it does not list below a root of their own.
fn listed(shows_root: bool, released: Option<&Hierarchy>, column: &Column) -> Result<Hierarchy, ReadError> {
    let Some(released) = released else {
        return Err(ReadError::NeedsHierarchy { column: column.name.clone() });
    };
    if column.texts.iter().any(|text| released.node(text).is_some_and(|node| !released.is_leaf(node))) {
        return Err(clash(column, released));
    }
    let known: HashSet<&str> = released.nodes().map(|(label, _)| label).chain(column.texts.iter()).collect();
    let top = unused(&known);
    let unlisted = column.texts.iter().filter(|text| released.node(text).is_none()).map(|text| (text, 0));
    // A root that no cell shows is replaced, a shown one goes below the new one.
    let below = released.nodes().skip(usize::from(!shows_root)).enumerate().map(|(position, (label, parent))| {
        let is_root = shows_root && position == 0;
        (label, if is_root { 0 } else { parent + u32::from(shows_root) })
    });
    let nodes = std::iter::once((top.as_str(), 0)).chain(below).chain(unlisted);
    Hierarchy::from_nodes(nodes).ok_or_else(|| clash(column, released))
}

/// Stars that are none of these texts.
fn unused(texts: &HashSet<&str>) -> String {
    let mut text = "*".to_owned();
    while texts.contains(text.as_str()) {
        text.push('*');
    }
    text
}

fn clash(column: &Column, hierarchy: &Hierarchy) -> ReadError {
    let is_label = |text| hierarchy.node(text).is_some_and(|node| !hierarchy.is_leaf(node));
    let is_bad: Vec<bool> = column.texts.iter().map(is_label).collect();
    let rows = RowNumbers::with_ids(&column.ids, |id| id != NULL && is_bad[id as usize]);
    ReadError::LabelClash { column: column.name.clone(), rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(cells: &[&str]) -> Column {
        Column::from_cells("zip", Role::Quasi, cells.iter().map(|&cell| Some(cell)))
    }

    fn path(hierarchy: &Hierarchy, value: &str) -> Vec<String> {
        let leaf = hierarchy.leaf(value).unwrap();
        hierarchy.path(leaf).map(|node| hierarchy.label(node).to_owned()).collect()
    }

    #[test]
    fn masks_have_the_width_of_the_earlier_release_and_longer_values_are_below_none() {
        let made = masked(MaskSide::Right, Some(4), &column(&["885", "8812", "88123"])).unwrap();
        assert_eq!(path(&made, "885"), ["885", "88**", "8***", "****"]);
        assert_eq!(path(&made, "8812"), ["8812", "881*", "88**", "8***", "****"]);
        assert_eq!(path(&made, "88123"), ["88123", "****"]);
    }

    #[test]
    fn values_that_a_released_hierarchy_does_not_list_are_below_none_of_its_labels() {
        let released = Hierarchy::from_paths("nurse;care;any\ndentist;care;any\npoet;any").unwrap();
        let made = listed(true, Some(&released), &column(&["nurse", "smith"])).unwrap();
        assert_eq!(path(&made, "nurse"), ["nurse", "care", "any", "*"]);
        assert_eq!(path(&made, "smith"), ["smith", "*"]);
        assert!(made.leaf("dentist").is_some());
        let hidden = listed(false, Some(&released), &column(&["smith"])).unwrap();
        assert_eq!(path(&hidden, "dentist"), ["dentist", "care", "*"]);
        assert_eq!(path(&hidden, "smith"), ["smith", "*"]);
        assert!(hidden.node("any").is_none());
        let clash = listed(true, Some(&released), &column(&["poet", "care"])).unwrap_err();
        assert!(clash.to_string().ends_with("in row 2"), "{clash}");
    }
}
