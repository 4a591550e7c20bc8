//! [`load_tables`]: reads all tables of a spec and how they refer to each other, or reports everything that is wrong.
//!
//! # Guarantee
//! Keys tell rows apart, every row that must not be an orphan has a parent row, and every key that joins tables can be
//! renumbered.

use kohort_model::{Progress, Schema, SchemaErrors, Spec, Table};

use super::Sources;
use super::error::ReadErrors;
use super::load::{Origin, Original, load};
use super::release::ReleaseError;

/// Private tables that refer to each other, and what is needed to write their release in the form of their files.
#[derive(Clone, Debug)]
pub struct LoadedTables {
    /// The tables, in the order of the spec.
    pub tables: Vec<Table>,
    /// How the tables refer to each other.
    pub schema: Schema,
    /// The forms of the tables' files.
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
    /// A release folder that differs from its manifest.
    #[error(transparent)]
    Release(#[from] ReleaseError),
    /// Rows whose keys do not fit together.
    #[error(transparent)]
    Schema(#[from] SchemaErrors),
}

/// Reads all tables of a spec. `sources` is a folder, or a folder and tables in memory.
///
/// # Errors
/// Every problem of every file; if there is none, every row whose keys do not fit.
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

/// Progress that names the table.
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
