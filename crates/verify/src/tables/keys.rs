//! [`KeyCells`]: keys, joined by their texts as a reader of the release would join them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use kohort_model::{Cells, Column, NULL, ReleasedTable, Table, Texts};

use crate::structure::Places;

/// One key cell per row.
pub(crate) struct KeyCells<'a> {
    ids: Cow<'a, [u32]>,
    /// The texts of the ids; if absent, the ids themselves are the keys.
    texts: Option<&'a Texts>,
}

impl<'a> KeyCells<'a> {
    /// The keys of a table that was read.
    pub(crate) fn of_column(column: &'a Column) -> Self {
        KeyCells { ids: Cow::Borrowed(&column.ids), texts: Some(&column.texts) }
    }

    /// The keys of a released table, in the column that comes from `source`. `None` if that is not released as a key.
    pub(crate) fn of_release(released: &'a ReleasedTable, source: usize, original: &'a Table) -> Option<Self> {
        let column = released.columns.iter().find(|column| column.source == source)?;
        match &column.cells {
            Cells::Recoded { .. } => None,
            Cells::Surrogate { ids } => Some(KeyCells { ids: Cow::Borrowed(ids), texts: None }),
            Cells::Copied => {
                let private = &original.columns[source];
                let ids = released.rows.iter().map(|&row| private.ids[row as usize]).collect();
                Some(KeyCells { ids: Cow::Owned(ids), texts: Some(&private.texts) })
            }
        }
    }

    /// Whether a row has no key.
    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.ids[row] == NULL
    }

    /// How many keys are null or equal to an earlier key, and the first such row, numbered from 1.
    pub(crate) fn unusable(&self) -> Option<(u64, u64)> {
        let mut met = HashSet::new();
        let mut unusable = Places::default();
        for (row, key) in (1..).zip(self.keys()) {
            if !key.is_some_and(|key| met.insert(key)) {
                unusable.add(row);
            }
        }
        unusable.found()
    }

    /// For each row, the row of the parent table whose key it holds; [`NULL`] if there is none.
    pub(crate) fn join(&self, parent: &KeyCells<'_>) -> Vec<u32> {
        let mut row_of_key: HashMap<Cow<'_, str>, u32> = HashMap::new();
        for (row, key) in (0..).zip(parent.keys()) {
            if let Some(key) = key {
                row_of_key.entry(key).or_insert(row);
            }
        }
        self.keys().map(|key| key.and_then(|key| row_of_key.get(&key).copied()).unwrap_or(NULL)).collect()
    }

    /// The text of each key.
    fn keys(&self) -> impl Iterator<Item = Option<Cow<'_, str>>> {
        self.ids.iter().map(|&id| match self.texts {
            _ if id == NULL => None,
            Some(texts) => Some(Cow::Borrowed(texts.get(id))),
            None => Some(Cow::Owned(id.to_string())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_join_texts_that_spell_them() {
        let texts: Texts = ["1", "02", "2", "1"].into_iter().collect();
        let spelled = || KeyCells { ids: Cow::Owned(vec![0, 1, 2, NULL]), texts: Some(&texts) };
        let numbers = || KeyCells { ids: Cow::Owned(vec![2, 1, 3, NULL]), texts: None };
        assert_eq!(spelled().join(&numbers()), [1, NULL, 0, NULL]);
        assert_eq!(numbers().join(&spelled()), [2, 0, NULL, NULL]);
        assert_eq!(numbers().join(&numbers()), [0, 1, 2, NULL]);
    }

    #[test]
    fn keys_that_are_null_or_read_the_same_are_unusable() {
        let texts: Texts = ["1", "02", "1"].into_iter().collect();
        let keys = |ids: Vec<u32>| KeyCells { ids: Cow::Owned(ids), texts: Some(&texts) }.unusable();
        assert_eq!(keys(vec![0, 1]), None);
        assert_eq!(keys(vec![0, 1, 2]), Some((1, 3)));
        assert_eq!(keys(vec![NULL, 1, 1]), Some((2, 1)));
    }
}
