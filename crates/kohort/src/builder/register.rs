//! [`Register`]: a public list of people, among whom the persons of the private table hide.

use std::path::PathBuf;

use kohort_io::Batches;
use toml::Value;

use super::Beside;

/// A public register: where it is, and how persons of the private table are found in it.
#[derive(Clone, Debug)]
pub struct Register {
    settings: toml::Table,
    rows: Rows,
}

#[derive(Clone, Debug)]
enum Rows {
    File(PathBuf),
    InMemory(Batches),
}

impl Register {
    /// A file: CSV (also `.gz`, `.zst`), Parquet or Arrow, told by its name.
    pub fn from_file(path: impl Into<PathBuf>) -> Self {
        Register { settings: toml::Table::new(), rows: Rows::File(path.into()) }
    }

    /// Rows in memory. The manifest records a digest of their cells.
    pub fn of(batches: Batches) -> Self {
        Register { settings: toml::Table::new(), rows: Rows::InMemory(batches) }
    }

    /// The column with the keys that are also in the person column of the private table. Without it, persons are found by
    /// their values.
    #[must_use]
    pub fn key(self, column: &str) -> Self {
        self.set("key", column)
    }

    /// The name that the register has for a quasi column of the private table.
    #[must_use]
    pub fn column(mut self, name: &str, in_register: &str) -> Self {
        let columns = self.settings.entry("columns").or_insert_with(|| Value::Table(toml::Table::new()));
        if let Value::Table(columns) = columns {
            columns.insert(name.to_owned(), in_register.into());
        }
        self
    }

    /// The day that the register describes, such as `2026-01-01`.
    #[must_use]
    pub fn date(self, day: &str) -> Self {
        self.set("date", day)
    }

    /// The SHA-256 digest that the register's file must have.
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

    /// The settings of the register under this name. Everything else goes to `beside`.
    pub(super) fn named(self, name: &str, beside: &mut Beside) -> toml::Table {
        let Register { mut settings, rows } = self;
        let file = match rows {
            Rows::File(path) => beside.name_path(&path),
            Rows::InMemory(batches) => {
                let file = format!("register {name}");
                beside.in_memory.add_table(&file, batches);
                file.into()
            }
        };
        settings.insert("file".to_owned(), file);
        settings
    }
}
