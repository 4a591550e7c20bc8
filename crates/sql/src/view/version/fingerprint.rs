//! [`Fingerprint`]: the state of the tables that a version was made from, so a change is noticed before the next row leaves.
//!
//! The state of a file is its size and its time of change, the state of a table of the engine is how often statements
//! changed it. A change that goes unnoticed is harmless, because classes leave as they were verified, or not at all. The
//! rows of other tables are fetched at every reading and never kept, and choices in such a table are read again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::MemTable;
use datafusion::datasource::listing::ListingTable;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;

use crate::store::StoredTable;

/// How often statements changed each table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Generations(Arc<RwLock<BTreeMap<String, u64>>>);

impl Generations {
    /// Notes that a statement changed a table.
    pub(crate) fn bump(&self, table: &str) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner).entry(table.to_owned()).or_default() += 1;
    }

    /// Sets how often a table was changed, from the data folder.
    pub(crate) fn set(&self, table: &str, generation: u64) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(table.to_owned(), generation);
    }

    /// How often statements changed a table.
    pub(crate) fn of(&self, table: &str) -> u64 {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(table).copied().unwrap_or_default()
    }
}

/// The state of all tables a view reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fingerprint(BTreeMap<String, TableState>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct TableState {
    generation: u64,
    files: Vec<(PathBuf, u64, Option<SystemTime>)>,
    /// Whether only statements of the engine and writes to these files can change the table.
    is_watched: bool,
    /// Whether every committed change is counted. A change of a stored table may be read a moment before it is counted.
    is_counted: bool,
}

impl Fingerprint {
    /// The state of the tables that these plans read.
    pub(crate) fn of(plans: &[&LogicalPlan], generations: &Generations) -> Result<Fingerprint> {
        let mut tables = BTreeMap::new();
        for plan in plans {
            plan.apply_with_subqueries(|node| {
                if let LogicalPlan::TableScan(scan) = node {
                    let name = scan.table_name.table().to_owned();
                    let provider = source_as_provider(&scan.source)?;
                    let listing = provider.downcast_ref::<ListingTable>();
                    let files = listing.map(files_of).unwrap_or_default();
                    let is_watched = match listing {
                        Some(listing) => listing.table_paths().iter().all(|url| url.scheme() == "file"),
                        None => provider.downcast_ref::<MemTable>().is_some(),
                    };
                    let is_counted = is_watched || provider.downcast_ref::<StoredTable>().is_some();
                    let generation = generations.of(&name);
                    tables.insert(name, TableState { generation, files, is_watched, is_counted });
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(Fingerprint(tables))
    }

    /// Whether every change of a table changes the fingerprint at once.
    pub(in crate::view) fn tells_all_changes(&self) -> bool {
        self.0.values().all(|table| table.is_watched)
    }

    /// Whether every committed change of a table changes the fingerprint, perhaps a moment later.
    pub(crate) fn counts_all_changes(&self) -> bool {
        self.0.values().all(|table| table.is_counted)
    }
}

fn files_of(table: &ListingTable) -> Vec<(PathBuf, u64, Option<SystemTime>)> {
    let mut files = Vec::new();
    for url in table.table_paths() {
        let path = url.as_str().strip_prefix("file://").map(PathBuf::from);
        if let Some(path) = path {
            note_files(&path, &mut files);
        }
    }
    files.sort_unstable();
    files
}

fn note_files(path: &Path, files: &mut Vec<(PathBuf, u64, Option<SystemTime>)>) {
    let Ok(metadata) = std::fs::metadata(path) else {
        files.push((path.to_owned(), 0, None));
        return;
    };
    if metadata.is_dir() {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.for_each(|entry| note_files(&entry.path(), files));
    } else {
        files.push((path.to_owned(), metadata.len(), metadata.modified().ok()));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::datatypes::Schema;
    use datafusion::catalog::TableProvider;
    use datafusion::catalog::default_table_source::provider_as_source;
    use datafusion::datasource::empty::EmptyTable;
    use datafusion::logical_expr::LogicalPlanBuilder;

    use super::*;

    #[test]
    fn a_table_that_is_neither_in_memory_nor_in_files_may_change_unnoticed() {
        let schema = Arc::new(Schema::empty());
        let in_memory: Arc<dyn TableProvider> = Arc::new(MemTable::try_new(Arc::clone(&schema), vec![vec![]]).unwrap());
        let elsewhere: Arc<dyn TableProvider> = Arc::new(EmptyTable::new(schema));
        for (table, tells) in [(in_memory, true), (elsewhere, false)] {
            let plan = LogicalPlanBuilder::scan("t", provider_as_source(table), None).unwrap().build().unwrap();
            let fingerprint = Fingerprint::of(&[&plan], &Generations::default()).unwrap();
            assert_eq!(fingerprint.tells_all_changes(), tells);
        }
    }
}
