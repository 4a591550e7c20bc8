//! Hierarchies of the columns of a table: read from files, or made from the values of the columns.
//!
//! Rules get the values in their natural order, so a hierarchy does not depend on the order of rows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kohort_model::spec::HierarchySource;
use kohort_model::{Column, Hierarchy, NULL, Texts};

use super::Sources;
use super::error::{MissingValue, ReadError};

/// The hierarchies of one table. A file that several columns name is read only once.
pub(super) struct Hierarchies<'a> {
    sources: Sources<'a>,
    read: BTreeMap<PathBuf, Arc<Hierarchy>>,
}

impl<'a> Hierarchies<'a> {
    pub(super) fn new(sources: impl Into<Sources<'a>>) -> Self {
        Hierarchies { sources: sources.into(), read: BTreeMap::new() }
    }

    /// The hierarchy of a typed column, which has a leaf for each of its texts.
    pub(super) fn of_column(&mut self, source: &HierarchySource, column: &Column) -> Result<Arc<Hierarchy>, ReadError> {
        let hierarchy = match source {
            HierarchySource::Paths(path) | HierarchySource::Edges(path) => {
                self.read_file(source, path, &column.name)?
            }
            HierarchySource::Rule(rule) => rule
                .make(&texts_by_value(column), column.value_type, &column.notation)
                .map(Arc::new)
                .map_err(|problem| ReadError::HierarchyRule { column: column.name.clone(), problem })?,
        };
        let missing = missing_values(column, &hierarchy);
        if !missing.is_empty() {
            return Err(ReadError::NotInHierarchy { column: column.name.clone(), values: missing });
        }
        Ok(hierarchy)
    }

    /// The hierarchy in a file. It is not compared with the values of a column.
    pub(super) fn of_file(&mut self, source: &HierarchySource, column: &str) -> Result<Arc<Hierarchy>, ReadError> {
        match source {
            HierarchySource::Paths(path) | HierarchySource::Edges(path) => self.read_file(source, path, column),
            HierarchySource::Rule(_) => Err(ReadError::RuleWithoutValues { column: column.to_owned() }),
        }
    }

    fn read_file(&mut self, source: &HierarchySource, path: &Path, column: &str) -> Result<Arc<Hierarchy>, ReadError> {
        let file = path;
        let path = self.sources.place(file);
        if let Some(hierarchy) = self.read.get(&path) {
            return Ok(Arc::clone(hierarchy));
        }
        let text = self.sources.text(file).map_err(|source| ReadError::HierarchyIo {
            column: column.to_owned(),
            path: path.clone(),
            source,
        })?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let parsed = match source {
            HierarchySource::Edges(_) => Hierarchy::from_edges(text),
            HierarchySource::Paths(_) | HierarchySource::Rule(_) => Hierarchy::from_paths(text),
        };
        let hierarchy = parsed.map(Arc::new).map_err(|problems| ReadError::Hierarchy {
            column: column.to_owned(),
            path: path.clone(),
            problems,
        })?;
        self.read.insert(path, Arc::clone(&hierarchy));
        Ok(hierarchy)
    }
}

/// The values of a column that are no leaf of its hierarchy, by their first row.
fn missing_values(column: &Column, hierarchy: &Hierarchy) -> Vec<MissingValue> {
    let mut by_id: Vec<Option<MissingValue>> = column
        .texts
        .iter()
        .map(|text| hierarchy.leaf(text).is_none().then_some(MissingValue { first_row: 0, n_rows: 0 }))
        .collect();
    if by_id.iter().all(Option::is_none) {
        return Vec::new();
    }
    for (row, &id) in column.ids.iter().enumerate().filter(|&(_, &id)| id != NULL) {
        if let Some(value) = &mut by_id[id as usize] {
            value.first_row = if value.n_rows == 0 { row as u64 + 1 } else { value.first_row };
            value.n_rows += 1;
        }
    }
    let mut missing: Vec<MissingValue> = by_id.into_iter().flatten().collect();
    missing.sort_unstable_by_key(|value| value.first_row);
    missing
}

/// The texts of a column in the order of their values; texts of equal value in the order of texts.
pub fn texts_by_value(column: &Column) -> Texts {
    let mut ids: Vec<u32> = (0..column.texts.len() as u32).collect();
    ids.sort_by_cached_key(|&id| (column.value(id), column.texts.get(id)));
    ids.iter().map(|&id| column.texts.get(id)).collect()
}

#[cfg(test)]
mod tests {
    use kohort_model::hierarchy::Rule;
    use kohort_model::{Role, ValueType};

    use super::*;

    #[test]
    fn rules_see_texts_in_the_order_of_their_values() {
        let cells = [Some("10"), Some("9"), None, Some("-3"), Some("9")];
        let column = Column::from_cells("age", Role::Quasi, cells).typed(ValueType::Integer);
        assert_eq!(texts_by_value(&column).iter().collect::<Vec<_>>(), ["-3", "9", "10"]);
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let column = Column::from_cells("zip", Role::Quasi, [Some("1")]);
        let source = HierarchySource::Paths("zip.csv".into());
        let problem = Hierarchies::new(folder.path()).of_column(&source, &column).unwrap_err();
        let place = format!("column 'zip': hierarchy {}: can't be read: ", folder.path().join("zip.csv").display());
        assert!(problem.to_string().starts_with(&place));
    }

    #[test]
    fn missing_values_are_counted_and_placed_but_not_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("zip.csv"), "\u{feff}1;*\n2;*\n9;*\n").unwrap();
        let cells = [Some("1"), Some("secret"), None, Some("2"), Some("hidden"), Some("secret")];
        let column = Column::from_cells("zip", Role::Quasi, cells);
        let source = HierarchySource::Paths("zip.csv".into());
        let problem = Hierarchies::new(folder.path()).of_column(&source, &column).unwrap_err();
        assert_eq!(problem.to_string(), "column 'zip': 2 values are missing from the hierarchy: row 2 (2 rows), row 5");
    }

    #[test]
    fn a_rule_covers_every_value() {
        let column = Column::from_cells("sex", Role::Quasi, [Some("f"), None, Some("m")]);
        let source = HierarchySource::Rule(Rule::Flat);
        let hierarchy = Hierarchies::new(Path::new("")).of_column(&source, &column).unwrap();
        assert!(hierarchy.leaf("f").is_some() && hierarchy.leaf("m").is_some());
    }
}
