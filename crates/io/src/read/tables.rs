//! [`load_tables`]: all tables of a spec, and how they hang together, or everything that keeps them from it.
//!
//! # Guarantee
//! Keys tell rows apart, every row that may not be an orphan has a row of its parent, and a key that joins tables can be
//! renumbered.

use kohort_model::{Progress, Schema, SchemaErrors, Spec, Table};

use super::Sources;
use super::error::ReadErrors;
use super::load::{Origin, Original, load};
use super::release::ReleaseError;

/// Private tables that hang together, and how to write what they keep in the form they had.
#[derive(Clone, Debug)]
pub struct LoadedTables {
    /// The tables, in the order of the spec.
    pub tables: Vec<Table>,
    /// How they hang together.
    pub schema: Schema,
    /// What their files were like.
    pub(crate) origins: Vec<Origin>,
}

impl LoadedTables {
    pub(crate) fn originals(&self) -> impl Iterator<Item = Original<'_>> {
        self.tables.iter().zip(&self.origins).map(|(table, origin)| Original { table, origin })
    }
}

/// Why tables can't be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// Files with problems of their own.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Files(Vec<ReadErrors>),
    /// A release folder that is not as its manifest says.
    #[error(transparent)]
    Release(#[from] ReleaseError),
    /// Rows that do not hang together.
    #[error(transparent)]
    Schema(#[from] SchemaErrors),
}

/// Reads all tables of a spec. `sources` is where its files are; a folder, where none of them is in memory.
///
/// # Errors
/// Every problem of every file; where there is none, every row that does not fit in with the others.
pub fn load_tables<'s>(
    sources: impl Into<Sources<'s>>,
    spec: &Spec,
    progress: &dyn Progress,
) -> Result<LoadedTables, LoadError> {
    let sources = sources.into();
    let (mut tables, mut origins, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    for table_spec in &spec.tables {
        match load(sources, spec, table_spec, &OfTable { progress, name: &table_spec.name }) {
            Ok(loaded) => {
                tables.push(loaded.table);
                origins.push(loaded.origin);
            }
            Err(found) => problems.push(found),
        }
    }
    if !problems.is_empty() {
        return Err(LoadError::Files(problems));
    }
    progress.begin("joining", 0);
    let schema = Schema::of(spec, &tables)?;
    Ok(LoadedTables { tables, schema, origins })
}

/// Progress that says which table is meant.
pub(super) struct OfTable<'a> {
    pub(super) progress: &'a dyn Progress,
    pub(super) name: &'a str,
}

impl Progress for OfTable<'_> {
    fn begin(&self, stage: &str, total: u64) {
        self.progress.begin(&format!("{stage} {}", self.name), total);
    }

    fn advance(&self, steps: u64) {
        self.progress.advance(steps);
    }

    fn is_cancelled(&self) -> bool {
        self.progress.is_cancelled()
    }
}
