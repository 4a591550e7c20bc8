//! [`KeyCells`]: keys as a reader of the release would join them, by their texts.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use kohort_model::{Cells, Column, NULL, ReleasedTable, Table, Texts};

/// One key cell per row.
pub(crate) struct KeyCells<'a> {
    ids: Cow<'a, [u32]>,
    /// What the ids stand for; without it they are numbers.
    texts: Option<&'a Texts>,
}

impl<'a> KeyCells<'a> {
    /// Of a table as it was read.
    pub(crate) fn of_column(column: &'a Column) -> Self {
        KeyCells { ids: Cow::Borrowed(&column.ids), texts: Some(&column.texts) }
    }

    /// Of a released table, the column that comes from a private one. `None` where that is not released as a key.
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

    /// How many keys are null or those of an earlier row, and the first such row, numbered from 1.
    pub(crate) fn unusable(&self) -> Option<(u64, u64)> {
        match self.texts {
            None => unusable(self.numbers()),
            Some(texts) => unusable(self.labels(texts)),
        }
    }

    /// Per row the row of the parent whose key it holds, [`NULL`] where there is none.
    pub(crate) fn join(&self, parent: &KeyCells<'_>) -> Vec<u32> {
        match (self.texts, parent.texts) {
            (None, None) => rows_met(parent.numbers(), self.numbers()),
            (Some(texts), Some(others)) => rows_met(parent.labels(others), self.labels(texts)),
            (None, Some(others)) => {
                let labels: Vec<Option<String>> = self.numbers().map(|key| key.map(|key| key.to_string())).collect();
                rows_met(parent.labels(others), labels.iter().map(Option::as_deref))
            }
            (Some(texts), None) => {
                let labels: Vec<Option<String>> = parent.numbers().map(|key| key.map(|key| key.to_string())).collect();
                rows_met(labels.iter().map(Option::as_deref), self.labels(texts))
            }
        }
    }

    fn numbers(&self) -> impl Iterator<Item = Option<u32>> + '_ {
        self.ids.iter().map(|&id| (id != NULL).then_some(id))
    }

    fn labels<'b>(&'b self, texts: &'b Texts) -> impl Iterator<Item = Option<&'b str>> + 'b {
        self.numbers().map(|id| id.map(|id| texts.get(id)))
    }
}

fn unusable<K: Hash + Eq>(keys: impl Iterator<Item = Option<K>>) -> Option<(u64, u64)> {
    let mut met = HashSet::new();
    let (mut n, mut first_row) = (0, 0);
    for (row, key) in (1..).zip(keys) {
        if !key.is_some_and(|key| met.insert(key)) {
            n += 1;
            first_row = if first_row == 0 { row } else { first_row };
        }
    }
    (n > 0).then_some((n, first_row))
}

fn rows_met<K: Hash + Eq>(
    parents: impl Iterator<Item = Option<K>>,
    children: impl Iterator<Item = Option<K>>,
) -> Vec<u32> {
    let mut row_of_key: HashMap<K, u32> = HashMap::new();
    for (row, key) in (0..).zip(parents) {
        if let Some(key) = key {
            row_of_key.entry(key).or_insert(row);
        }
    }
    children.map(|key| key.and_then(|key| row_of_key.get(&key).copied()).unwrap_or(NULL)).collect()
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
