//! [`Table`]: one private table, where it is, and the role of each column.

use std::path::PathBuf;

use arrow_array::RecordBatch;
use kohort_io::Batches;
use toml::Value;

use super::{Beside, ColumnRequirement, Hierarchy, JobBuilder, texts};
use crate::error::Error;

/// A private table: where its rows are, and the role of each column.
///
/// Every column needs a role, and none is guessed. See the [crate's example](crate#from-arrow-to-arrow).
///
/// A spec describes a table of this type. [`kohort_model::Table`] is the same table after it was read.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Rows,
    settings: toml::Table,
    columns: toml::Table,
    hierarchies: Vec<(String, Hierarchy)>,
}

#[derive(Clone, Debug)]
enum Rows {
    File(PathBuf),
    InMemory(Batches),
}

impl Table {
    /// A file: CSV (also `.gz`, `.zst`), Parquet or Arrow, told by its name.
    pub fn from_file(path: impl Into<PathBuf>) -> Self {
        Table::new(Rows::File(path.into()))
    }

    /// Rows in memory.
    ///
    /// # Errors
    /// [`Error::Input`] if there is no batch, or batches differ in their columns.
    pub fn from_batches(batches: impl IntoIterator<Item = RecordBatch>) -> Result<Self, Error> {
        let batches: Vec<RecordBatch> = batches.into_iter().collect();
        let Some(schema) = batches.first().map(RecordBatch::schema) else {
            return Err(Error::input("there is no batch", "give at least one batch, which may be empty"));
        };
        let batches = Batches::new(schema, batches).map_err(|position| {
            let message = format!("batch {} has other columns than batch 1", position + 1);
            Error::input(message, "give batches of one schema")
        })?;
        Ok(Table::of(batches))
    }

    /// Rows in memory. There may be no rows, because the batches know their columns.
    pub fn of(batches: Batches) -> Self {
        Table::new(Rows::InMemory(batches))
    }

    fn new(rows: Rows) -> Self {
        Table { rows, settings: toml::Table::new(), columns: toml::Table::new(), hierarchies: Vec::new() }
    }

    /// Sets any key of a table in a spec: `set("separator", ";")`, `set("decimal", ",")`.
    #[must_use]
    pub fn set(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.settings.insert(key.to_owned(), value.into());
        self
    }

    /// Sets any key of a column in a spec: `set_in("zip", "type", "text")`.
    #[must_use]
    pub fn set_in(mut self, column: &str, key: &str, value: impl Into<Value>) -> Self {
        let settings = self.columns.entry(column).or_insert_with(|| Value::Table(toml::Table::new()));
        if let Value::Table(settings) = settings {
            settings.insert(key.to_owned(), value.into());
        }
        self
    }

    fn role(self, column: &str, role: &str) -> Self {
        self.set_in(column, "role", role)
    }

    /// The column that names the person. Without it each row is a person. A person may have several rows and counts once.
    #[must_use]
    pub fn person(self, column: &str) -> Self {
        self.set("person", column)
    }

    /// A column that names a person outright. It is never released.
    #[must_use]
    pub fn identifier(self, column: &str) -> Self {
        self.role(column, "identifier")
    }

    /// A column that others could know. It is generalized until at least k persons look the same.
    #[must_use]
    pub fn quasi(mut self, column: &str, hierarchy: Hierarchy) -> Self {
        self.hierarchies.push((column.to_owned(), hierarchy));
        self.role(column, "quasi")
    }

    /// Sets how much the loss of a quasi column counts, compared with others, which count 1.
    #[must_use]
    pub fn weight(self, column: &str, weight: f64) -> Self {
        self.set_in(column, "weight", weight)
    }

    /// A column that nobody should learn. It is released as it is, under these requirements.
    #[must_use]
    pub fn sensitive(mut self, column: &str, requirements: impl IntoIterator<Item = ColumnRequirement>) -> Self {
        for (key, value) in requirements.into_iter().flat_map(|requirement| requirement.settings) {
            self = self.set_in(column, key, value);
        }
        self.role(column, "sensitive")
    }

    /// A quasi column that these audiences must not learn, although others know it.
    #[must_use]
    pub fn sensitive_to<'n>(
        mut self,
        column: &str,
        audiences: impl IntoIterator<Item = &'n str>,
        requirements: impl IntoIterator<Item = ColumnRequirement>,
    ) -> Self {
        for (key, value) in requirements.into_iter().flat_map(|requirement| requirement.settings) {
            self = self.set_in(column, key, value);
        }
        self.set_in(column, "sensitive_to", texts(audiences)).role(column, "quasi")
    }

    /// A column that helps nobody to find a person. It is released as it is.
    #[must_use]
    pub fn plain(self, column: &str) -> Self {
        self.role(column, "plain")
    }

    /// Rounds the numbers of a column to the nearest multiple of a base, before classes are made.
    #[must_use]
    pub fn round(self, column: &str, base: impl Into<Value>) -> Self {
        self.set_in(column, "round", base)
    }

    /// Moves the dates of a column to the first day of their `month`, `quarter`, `year` or `decade`, before classes are made.
    #[must_use]
    pub fn truncate(self, column: &str, period: &str) -> Self {
        self.set_in(column, "truncate", period)
    }

    /// Codes values of this bound or more as `>= bound`, before classes are made.
    #[must_use]
    pub fn top(self, column: &str, bound: impl Into<Value>) -> Self {
        self.set_in(column, "top", bound)
    }

    /// Codes values of this bound or less as `<= bound`, before classes are made.
    #[must_use]
    pub fn bottom(self, column: &str, bound: impl Into<Value>) -> Self {
        self.set_in(column, "bottom", bound)
    }

    /// A column that is released as pseudonyms, made with the key in this file. Nobody but its owner may be able to read the file.
    #[must_use]
    pub fn pseudonym(self, column: &str, key_file: &str) -> Self {
        self.role(column, "pseudonym").set_in(column, "key_file", key_file)
    }

    /// A column that is not released.
    #[must_use]
    pub fn drop(self, column: &str) -> Self {
        self.role(column, "drop")
    }

    /// A column that holds each person's own k, which counts if it is larger than k. It is never released.
    #[must_use]
    pub fn person_k(self, column: &str) -> Self {
        self.role(column, "person_k")
    }

    /// The column whose values tell the rows of this table apart. Needed if other tables refer to them.
    #[must_use]
    pub fn key(self, column: &str) -> Self {
        self.set("key", column)
    }

    /// The parent table, and the column of this table that names the row of the parent.
    #[must_use]
    pub fn parent(self, table: &str, foreign_key: &str) -> Self {
        let entries = [("table", table), ("foreign_key", foreign_key)];
        let parent: toml::Table =
            entries.map(|(key, value)| (key.to_owned(), Value::from(value))).into_iter().collect();
        self.set("parent", parent)
    }

    /// A second foreign key: a column that names rows of another table, which is not the parent.
    #[must_use]
    pub fn references(self, column: &str, table: &str) -> Self {
        self.role(column, "key").set_in(column, "references", table)
    }

    /// Makes a job that releases this table alone, so that nobody can be told apart from k-1 others.
    pub fn k(self, k: u32) -> JobBuilder {
        let name = match &self.rows {
            Rows::File(path) => stem(path),
            Rows::InMemory(_) => "table".to_owned(),
        };
        JobBuilder::new(k).table(&name, self)
    }

    /// The settings of the table under this name. Everything else goes to `beside`.
    pub(super) fn named(mut self, name: &str, beside: &mut Beside) -> toml::Table {
        for (column, hierarchy) in std::mem::take(&mut self.hierarchies) {
            // Columns of different tables may share a name and have different hierarchies.
            let file = PathBuf::from(format!("hierarchy of {name}.{column}"));
            if let Some(value) = hierarchy.setting(&file, beside) {
                self = self.set_in(&column, "hierarchy", value);
            }
        }
        let Table { rows, mut settings, columns, .. } = self;
        let file = match rows {
            Rows::File(path) => beside.name_path(&path),
            Rows::InMemory(batches) => {
                beside.in_memory.add_table(name, batches);
                name.into()
            }
        };
        settings.insert("file".to_owned(), file);
        settings.insert("columns".to_owned(), columns.into());
        settings
    }
}

/// The name of a file up to its first dot.
fn stem(path: &std::path::Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').find(|part| !part.is_empty()).unwrap_or("table").to_owned()
}
