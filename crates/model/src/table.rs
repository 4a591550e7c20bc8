//! [`Table`]: a table in memory. Each column is a dictionary of distinct texts and one id per row.
//!
//! Texts are kept as they were spelled, because a release shows values in their original spelling. The column's
//! [`ValueType`] says how they are ordered. Equal ids mean equal texts, and a dictionary contains no text twice.

use std::fmt;
use std::sync::Arc;

use crate::{Hierarchy, Notation, Role, Value, ValueType};

/// The id of a null cell.
pub const NULL: u32 = u32::MAX;

/// Strings in one allocation, addressed by position. `Debug` shows how many there are, but no string.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Texts {
    bytes: String,
    ends: Vec<usize>,
}

impl Texts {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a text and returns its id.
    ///
    /// # Panics
    /// If the list already holds `u32::MAX` texts, because the last id is [`NULL`].
    #[inline]
    pub fn push(&mut self, text: &str) -> u32 {
        let id = self.ends.len();
        assert!(id < NULL as usize, "a dictionary holds at most 2^32-1 texts");
        self.bytes.push_str(text);
        self.ends.push(self.bytes.len());
        id as u32
    }

    /// The text with this id.
    #[inline]
    pub fn get(&self, id: u32) -> &str {
        let id = id as usize;
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        &self.bytes[start..self.ends[id]]
    }

    /// The number of texts.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All texts in the order of their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        (0..self.len()).map(|id| self.get(id as u32))
    }

    /// The bytes this list occupies.
    pub fn memory(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }
}

impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Texts({})", self.len())
    }
}

impl<T: AsRef<str>> FromIterator<T> for Texts {
    fn from_iter<I: IntoIterator<Item = T>>(texts: I) -> Self {
        let mut list = Texts::new();
        for text in texts {
            list.push(text.as_ref());
        }
        list
    }
}

/// One column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    /// The column's name in the file.
    pub name: String,
    /// What the column is for.
    pub role: Role,
    /// The type of the values, which decides how texts are ordered and measured.
    pub value_type: ValueType,
    /// How numbers and dates are spelled.
    pub notation: Notation,
    /// The tree in which values are generalized, if any. It has a leaf for every text of the dictionary.
    pub hierarchy: Option<Arc<Hierarchy>>,
    /// The distinct texts of the column.
    pub texts: Texts,
    /// The id of the text in each row, or [`NULL`].
    pub ids: Vec<u32>,
}

impl Column {
    /// A text column without hierarchy, from its cells.
    pub fn from_cells<'a>(name: &str, role: Role, cells: impl IntoIterator<Item = Option<&'a str>>) -> Self {
        let mut known = std::collections::BTreeMap::new();
        let mut texts = Texts::new();
        let ids = cells
            .into_iter()
            .map(|cell| match cell {
                None => NULL,
                Some(text) => *known.entry(text).or_insert_with(|| texts.push(text)),
            })
            .collect();
        Column {
            name: name.to_owned(),
            role,
            value_type: ValueType::Text,
            notation: Notation::default(),
            hierarchy: None,
            texts,
            ids,
        }
    }

    /// The same column with values of this type.
    #[must_use]
    pub fn typed(mut self, value_type: ValueType) -> Self {
        self.value_type = value_type;
        self
    }

    /// The same column with this hierarchy.
    #[must_use]
    pub fn with_hierarchy(mut self, hierarchy: Hierarchy) -> Self {
        self.hierarchy = Some(Arc::new(hierarchy));
        self
    }

    /// The same column without cells.
    #[must_use]
    pub fn without_cells(&self) -> Self {
        Column {
            name: self.name.clone(),
            role: self.role,
            value_type: self.value_type,
            notation: self.notation.clone(),
            hierarchy: self.hierarchy.clone(),
            texts: Texts::new(),
            ids: Vec::new(),
        }
    }

    /// The same column with other rows, whose ids stand for the same texts.
    #[must_use]
    pub fn with_ids(&self, ids: Vec<u32>) -> Self {
        Column { texts: self.texts.clone(), ids, ..self.without_cells() }
    }

    /// The text in this row; `None` if the cell is null.
    pub fn cell(&self, row: usize) -> Option<&str> {
        match self.ids[row] {
            NULL => None,
            id => Some(self.texts.get(id)),
        }
    }

    /// The value of the text with this id; `None` if it is not of the column's type.
    pub fn value(&self, id: u32) -> Option<Value<'_>> {
        Value::parse(self.texts.get(id), self.value_type, &self.notation)
    }

    /// Whether any cell is null.
    pub fn has_nulls(&self) -> bool {
        self.ids.contains(&NULL)
    }
}

/// A table in memory. Columns of role drop may be missing.
///
/// The library's `kohort::Table` describes a table before it is read: where its rows are, and what its columns are for.
#[derive(Clone, Debug)]
pub struct Table {
    /// The name in the spec and in the release.
    pub name: String,
    /// The columns in the order of the file, each with `n_rows` cells.
    pub columns: Vec<Column>,
    /// The number of rows.
    pub n_rows: usize,
    /// The position of the column that names the person; if absent, each row is a person.
    pub person: Option<usize>,
}

impl Table {
    /// The position of the column with this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The column with this name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Positions of the columns with this role, in order.
    pub fn with_role(&self, role: Role) -> Vec<usize> {
        (0..self.columns.len()).filter(|&column| self.columns[column].role == role).collect()
    }

    /// The column that names the person, if there is one.
    pub fn person_column(&self) -> Option<&Column> {
        self.person.map(|column| &self.columns[column])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debugging_a_table_shows_no_cell() {
        let column = Column::from_cells("ward", Role::Plain, [Some("a secret")]);
        let table = Table { name: "t".to_owned(), columns: vec![column], n_rows: 1, person: None };
        assert!(!format!("{table:?}").contains("secret"));
    }

    #[test]
    fn a_column_folds_equal_cells_to_one_text() {
        let column = Column::from_cells("ward", Role::Plain, [Some("a"), None, Some(""), Some("a")]);
        assert_eq!(column.ids, [0, NULL, 1, 0]);
        assert_eq!(column.texts.iter().collect::<Vec<_>>(), ["a", ""]);
        assert_eq!(column.cell(1), None);
        assert_eq!(column.cell(2), Some(""));
    }
}
