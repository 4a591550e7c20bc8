//! [`Audience`], [`Coalition`]: recipients who may know different columns, and groups of them who put together what they
//! know.

use toml::Value;

use super::{ColumnRequirement, texts};

/// A recipient of the release, and the columns that it may know.
#[derive(Clone, Debug, PartialEq)]
pub struct Audience {
    pub(super) settings: toml::Table,
}

impl Audience {
    /// An audience that may know these columns, which are quasi.
    pub fn knows<'c>(columns: impl IntoIterator<Item = &'c str>) -> Self {
        Audience { settings: toml::Table::from_iter([("quasi".to_owned(), texts(columns))]) }
    }

    /// Sets a k for this audience instead of the k of the release.
    #[must_use]
    pub fn k(mut self, k: u32) -> Self {
        self.settings.insert("k".to_owned(), i64::from(k).into());
        self
    }
}

/// What must hold if audiences put together what they know.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Coalition {
    pub(super) settings: toml::Table,
}

impl Coalition {
    /// Sets the k of the coalition.
    #[must_use]
    pub fn k(mut self, k: u32) -> Self {
        self.settings.insert("k".to_owned(), i64::from(k).into());
        self
    }

    /// Requires that each person's own k holds for the coalition, too.
    #[must_use]
    pub fn person_k(mut self) -> Self {
        self.settings.insert("person_k".to_owned(), true.into());
        self
    }

    /// Says what the coalition must not learn about a column.
    #[must_use]
    pub fn sensitive(mut self, column: &str, requirements: impl IntoIterator<Item = ColumnRequirement>) -> Self {
        let settings = requirements.into_iter().flat_map(|requirement| requirement.settings);
        let settings: toml::Table = settings.map(|(key, value)| (key.to_owned(), value)).collect();
        let columns = self.settings.entry("sensitive").or_insert_with(|| Value::Table(toml::Table::new()));
        if let Value::Table(columns) = columns {
            columns.insert(column.to_owned(), settings.into());
        }
        self
    }
}
