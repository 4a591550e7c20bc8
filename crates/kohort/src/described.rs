//! Compares what a manifest says about cells with the private tables, and finds released parts of hierarchy files that the
//! publisher should know about.

use std::path::Path;

use kohort_io::{ColumnManifests, InputFormat, read_listing};
use kohort_model::register::SENSITIVE_GROUP;
use kohort_model::spec::{HierarchySource, ReleasedHierarchies};
use kohort_model::{
    Cells, Column, ColumnManifest, CsvManifest, LabelsManifest, Manifest, NULL, ReleasedTable, Role, Spec, Table,
    TableManifest, ValueType,
};
use kohort_verify::Reading;

use crate::error::{Error, Report};

/// A release that was read, and the description of its cells that its manifest should have.
pub(crate) struct Described<'a> {
    /// The folder of the release.
    pub(crate) folder: &'a Path,
    pub(crate) manifest: &'a Manifest,
    /// The tables of the release.
    pub(crate) tables: &'a [Table],
    /// For each table, how its cells should be read according to the private table.
    pub(crate) expected: Vec<ColumnManifests>,
    /// For each table, the private table with all values that its labels stand for.
    pub(crate) private: Vec<&'a Table>,
    pub(crate) spec: &'a Spec,
}

impl Described<'_> {
    /// Whether the manifest says how cells are read. Manifests of earlier versions don't.
    fn is_said(&self) -> bool {
        let says_rules = |table: &TableManifest| table.columns.values().any(|column| column.labels.is_some());
        self.manifest.tables.iter().any(says_rules)
    }

    /// Keys of the manifest that [`Described::misdescribed`] does not compare.
    pub(crate) fn not_compared(&self) -> Vec<String> {
        let tables = &self.manifest.tables;
        if !self.is_said() {
            let mut keys = vec!["tables.*.columns.*.type".to_owned(), "tables.*.columns.*.labels".to_owned()];
            keys.extend(tables.iter().any(is_csv).then(|| "tables.*.csv".to_owned()));
            return keys;
        }
        // The spec and the tables don't tell here whether keys were renumbered.
        let is_open = |(name, column): &(&String, &ColumnManifest)| {
            column.role == Role::Key.word() && name.as_str() != SENSITIVE_GROUP
        };
        let columns = tables.iter().flat_map(|table| table.columns.iter().filter(is_open));
        let mut keys: Vec<String> = columns.map(|(name, _)| format!("tables.*.columns.{name}.type")).collect();
        // A file of one column can be read with a wrong separator, so its separator is not confirmed.
        let reads_anyhow = |table: &TableManifest| is_csv(table) && table.columns.len() == 1;
        keys.extend(tables.iter().any(reads_anyhow).then(|| "tables.*.csv.separator".to_owned()));
        keys
    }

    /// Reports for tables and columns that the manifest describes wrongly. Manifests of earlier versions describe nothing.
    pub(crate) fn misdescribed(&self) -> Result<Vec<Report>, Error> {
        if !self.is_said() {
            return Ok(Vec::new());
        }
        let hint = "the manifest does not belong to this release: don't trust it";
        let mut wrong = Vec::new();
        for entry in &self.manifest.tables {
            let written = entry.csv.as_ref().map(|csv| CsvManifest::new(csv.separator));
            if entry.csv != written || entry.csv.is_some() != is_csv(entry) {
                let message = format!(
                    "table '{}': manifest.json describes its file wrongly, so a reader would not get the cells that were written",
                    entry.name
                );
                wrong.push(Report::new(message).hint(hint));
            }
            let group = entry.columns.get(SENSITIVE_GROUP).filter(|_| self.manifest.register.is_some());
            if group.is_some_and(|group| *group != ColumnManifest::new(Role::Key.word(), ValueType::Integer.word())) {
                wrong.push(otherwise(entry, SENSITIVE_GROUP).hint(hint));
            }
        }
        let of_tables = self.manifest.tables.iter().zip(self.tables).zip(&self.expected).zip(&self.private);
        for (((entry, table), expected), private) in of_tables {
            for (name, expected) in expected {
                let (Some(released), Some(private)) = (table.column(name), private.column(name)) else { continue };
                if !self.is_described(entry, released, expected, private)? {
                    wrong.push(otherwise(entry, name).hint(hint));
                }
            }
        }
        Ok(wrong)
    }

    fn is_described(
        &self,
        entry: &TableManifest,
        released: &Column,
        expected: &ColumnManifest,
        private: &Column,
    ) -> Result<bool, Error> {
        let Some(claimed) = entry.columns.get(&released.name) else {
            let bounds = [("_lo", ColumnManifest::LOWER_BOUND), ("_hi", ColumnManifest::UPPER_BOUND)];
            return Ok(bounds.into_iter().all(|(ending, role)| {
                let claimed = entry.columns.get(&format!("{}{ending}", released.name));
                claimed == Some(&ColumnManifest { role: role.to_owned(), ..expected.clone() })
            }));
        };
        if without_file(claimed) != *expected {
            return Ok(false);
        }
        let Some(labels) = &claimed.labels else { return Ok(true) };
        let listing = read_listing(self.folder, entry, &released.name)?;
        let is_of_file = matches!(labels, LabelsManifest::Hierarchy { .. });
        let is_due = is_of_file && self.spec.hierarchies == ReleasedHierarchies::Shown;
        let is_true = match (&listing, private.hierarchy.as_deref()) {
            (None, _) => !is_due,
            (Some(listing), Some(hierarchy)) => is_due && listing.check_hierarchy(hierarchy).is_ok(),
            (Some(_), None) => false,
        };
        Ok(is_true && Reading::new(released, labels, listing.as_ref()).n_misread(private, &released.texts) == 0)
    }
}

fn otherwise(entry: &TableManifest, column: &str) -> Report {
    let table = &entry.name;
    Report::new(format!(
        "table '{table}': manifest.json describes the cells of '{column}' wrongly, so a reader would misunderstand them"
    ))
}

/// Whether the file of a table is separated text.
fn is_csv(entry: &TableManifest) -> bool {
    matches!(InputFormat::of_path(Path::new(&entry.file)), Some(InputFormat::Csv(_)))
}

/// A column without the name and the digest of its hierarchy file. The content of the file is compared instead.
fn without_file(column: &ColumnManifest) -> ColumnManifest {
    let mut column = column.clone();
    if let Some(LabelsManifest::Hierarchy { file, sha256, .. }) = &mut column.labels {
        (*file, *sha256) = (None, None);
    }
    column
}

/// Columns whose released part of the hierarchy file lists only values that the table holds. Such a file may have been made
/// from the table, and then its released part tells which values the table holds. Only the publisher is told, because the
/// warning itself would tell readers that the table holds all listed values.
pub(crate) fn own_values_listed(spec: &Spec, released: &[ReleasedTable], private: &[&Table]) -> Vec<String> {
    if spec.hierarchies == ReleasedHierarchies::Withhold {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (table_spec, (released, private)) in spec.tables.iter().zip(released.iter().zip(private)) {
        for column in &released.columns {
            let column_spec = table_spec.columns.iter().find(|spec| spec.name == column.name);
            let source = column_spec.and_then(|spec| spec.hierarchy.as_ref());
            let is_file = matches!(source, Some(HierarchySource::Paths(_) | HierarchySource::Edges(_)));
            let (Some(own), Cells::Recoded { labels, ids }) = (private.column(&column.name), &column.cells) else {
                continue;
            };
            let Some(hierarchy) = own.hierarchy.as_deref().filter(|_| is_file) else { continue };
            let mut is_shown = vec![false; hierarchy.n_nodes()];
            for &id in ids.iter().filter(|&&id| id != NULL) {
                if let Some(node) = hierarchy.node(labels.get(id)) {
                    is_shown[node as usize] = true;
                }
            }
            let mut is_held = vec![false; hierarchy.n_nodes()];
            own.texts.iter().filter_map(|text| hierarchy.leaf(text)).for_each(|leaf| is_held[leaf as usize] = true);
            let nodes = 0..hierarchy.n_nodes() as u32;
            let is_listed = |leaf: u32| hierarchy.path(leaf).any(|node| node != leaf && is_shown[node as usize]);
            let mut listed = nodes.filter(|&leaf| hierarchy.is_leaf(leaf) && is_listed(leaf)).peekable();
            if listed.peek().is_some() && listed.all(|leaf| is_held[leaf as usize]) {
                found.push(column.name.clone());
            }
        }
    }
    found
}
