//! [`missing_values`]: the values that hierarchy files lack, for the publisher alone.
//!
//! Messages never show cells of a private table. A publisher who must add values to a hierarchy needs them, so they are listed here, to
//! be written to a file that the publisher names.

use kohort_model::spec::HierarchySource;
use kohort_model::{NULL, Progress, Spec};

use super::Sources;
use super::error::ReadErrors;
use super::hierarchies::Hierarchies;

/// A value that a hierarchy lacks. `Debug` does not show it.
pub struct MissingText {
    /// The table.
    pub table: String,
    /// The column.
    pub column: String,
    /// The value.
    pub value: String,
    /// The number of rows that hold it.
    pub n_rows: u64,
}

impl std::fmt::Debug for MissingText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MissingText")
            .field("table", &self.table)
            .field("column", &self.column)
            .field("n_rows", &self.n_rows)
            .finish_non_exhaustive()
    }
}

/// The values of the tables of a spec that their hierarchy files lack, column by column, in the order of their first rows. Columns
/// whose cells are changed before classes are made are left out.
///
/// # Errors
/// If a table or a hierarchy can't be read.
pub fn missing_values<'s>(
    sources: impl Into<Sources<'s>>,
    spec: &Spec,
    progress: &dyn Progress,
) -> Result<Vec<MissingText>, ReadErrors> {
    let sources = sources.into();
    let mut missing = Vec::new();
    for table in &spec.tables {
        let fail = |problems| ReadErrors { file: sources.place(&table.file), problems };
        let (open, _) = sources.open(&table.file, &table.csv, progress).map_err(|problem| fail(vec![problem]))?;
        let names = open.names().to_vec();
        let source_of = |name: &String| {
            let column = table.columns.iter().find(|column| column.name == *name && column.transform.is_nothing())?;
            column.hierarchy.as_ref().filter(|source| !matches!(source, HierarchySource::Rule(_)))
        };
        let wanted: Vec<usize> = (0..names.len()).filter(|&position| source_of(&names[position]).is_some()).collect();
        let columns = open.read(&wanted).map_err(fail)?;
        let mut hierarchies = Hierarchies::new(sources);
        for (&position, column) in wanted.iter().zip(columns) {
            let name = &names[position];
            let Some(source) = source_of(name) else { continue };
            let hierarchy = hierarchies.of_file(source, name).map_err(|problem| fail(vec![problem]))?;
            let mut n_rows = vec![0_u64; column.texts.len()];
            column.ids.iter().filter(|&&id| id != NULL).for_each(|&id| n_rows[id as usize] += 1);
            let lacking = column.texts.iter().zip(n_rows).filter(|(text, _)| hierarchy.leaf(text).is_none());
            missing.extend(lacking.map(|(value, n_rows)| MissingText {
                table: table.name.clone(),
                column: name.clone(),
                value: value.to_owned(),
                n_rows,
            }));
        }
    }
    Ok(missing)
}
