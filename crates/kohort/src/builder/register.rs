//! [`Register`]: a public list of people among whom those of the private table hide.

use std::path::PathBuf;

use kohort_io::{Batches, InMemory};
use toml::Value;

/// A public register: where it is, and how its persons are found in the private table.
#[derive(Clone, Debug)]
pub struct Register {
    settings: toml::Table,
    batches: Option<Batches>,
}

impl Register {
    /// A file: CSV (also `.gz`, `.zst`), Parquet or Arrow, told by its name.
    pub fn from_file(path: impl Into<PathBuf>) -> Self {
        let file = Value::from(path.into().to_string_lossy().into_owned());
        Register { settings: toml::Table::from_iter([("file".to_owned(), file)]), batches: None }
    }

    /// Rows in memory. The manifest records a digest of their cells.
    pub fn of(batches: Batches) -> Self {
        Register { settings: toml::Table::new(), batches: Some(batches) }
    }

    /// The column that equals the private table's person column. Without one, persons are found by their values.
    #[must_use]
    pub fn key(self, column: &str) -> Self {
        self.set("key", column)
    }

    /// What the register calls a quasi column of the private table.
    #[must_use]
    pub fn column(mut self, name: &str, in_register: &str) -> Self {
        let columns = self.settings.entry("columns").or_insert_with(|| Value::Table(toml::Table::new()));
        if let Value::Table(columns) = columns {
            columns.insert(name.to_owned(), in_register.into());
        }
        self
    }

    /// The day it describes, such as `2026-01-01`.
    #[must_use]
    pub fn date(self, day: &str) -> Self {
        self.set("date", day)
    }

    /// The digest that its file must have.
    #[must_use]
    pub fn sha256(self, digest: &str) -> Self {
        self.set("sha256", digest)
    }

    /// Sets any key of a register in a spec.
    #[must_use]
    pub fn set(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.settings.insert(key.to_owned(), value.into());
        self
    }

    /// The settings of the register under this name, and what is in memory.
    pub(super) fn named(self, name: &str) -> (toml::Table, InMemory) {
        let Register { mut settings, batches } = self;
        let mut in_memory = InMemory::default();
        if let Some(batches) = batches {
            let file = format!("register {name}");
            in_memory.add_table(&file, batches);
            settings.insert("file".to_owned(), file.into());
        }
        (settings, in_memory)
    }
}
