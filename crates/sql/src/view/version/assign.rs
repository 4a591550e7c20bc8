//! [`Assigner`]: numbers for classes, by what they show. Classes that show the same are one to a reader.

use std::collections::HashMap;

use kohort_model::{Cells, NULL, Release, Table, Texts};

use super::directory::{Assigned, PolicyKey};
use crate::view::consent::Wishes;

/// Numbers classes by what they show.
pub(in crate::view) struct Assigner<'a> {
    table: &'a Table,
    quasi: &'a [usize],
    labels: Vec<LabelIds>,
    by_labels: HashMap<(bool, Vec<u32>), u32>,
    label_of_class: Vec<Vec<u32>>,
    is_alone: Vec<bool>,
    class_of_row: Vec<u32>,
}

#[derive(Default)]
struct LabelIds {
    texts: Texts,
    by_text: HashMap<String, u32>,
}

impl LabelIds {
    fn id(&mut self, label: &str) -> u32 {
        if let Some(&id) = self.by_text.get(label) {
            return id;
        }
        let id = self.texts.push(label);
        self.by_text.insert(label.to_owned(), id);
        id
    }
}

impl<'a> Assigner<'a> {
    pub(in crate::view) fn new(table: &'a Table, quasi: &'a [usize]) -> Self {
        Assigner {
            table,
            quasi,
            labels: quasi.iter().map(|_| LabelIds::default()).collect(),
            by_labels: HashMap::new(),
            label_of_class: vec![Vec::new(); quasi.len()],
            is_alone: Vec::new(),
            class_of_row: vec![Assigned::NONE; table.n_rows],
        }
    }

    /// Notes the classes of a release of these rows.
    pub(in crate::view) fn classes(&mut self, release: &Release, rows: &[u32]) {
        let released = &release.tables[0];
        let mut recoded = Vec::with_capacity(self.quasi.len());
        for (labels, column) in
            self.labels.iter_mut().zip(released.columns.iter().filter_map(|column| match &column.cells {
                Cells::Recoded { labels, ids } => Some((labels, ids)),
                Cells::Copied | Cells::Surrogate { .. } => None,
            }))
        {
            let (texts, ids) = column;
            let of_label: Vec<u32> = texts.iter().map(|label| labels.id(label)).collect();
            recoded.push((of_label, ids));
        }
        for (place, &source) in released.rows.iter().enumerate() {
            let key: Vec<u32> = recoded
                .iter()
                .map(|(of_label, ids)| if ids[place] == NULL { NULL } else { of_label[ids[place] as usize] })
                .collect();
            let class = self.class(false, key);
            self.class_of_row[rows[source as usize] as usize] = class;
        }
    }

    /// Notes a row that is shown as it is.
    pub(in crate::view) fn alone(&mut self, row: u32) {
        let key: Vec<u32> = self
            .quasi
            .iter()
            .zip(&mut self.labels)
            .map(|(&position, labels)| match self.table.columns[position].cell(row as usize) {
                None => NULL,
                Some(text) => labels.id(text),
            })
            .collect();
        self.class_of_row[row as usize] = self.class(true, key);
    }

    fn class(&mut self, is_alone: bool, key: Vec<u32>) -> u32 {
        let (n_classes, label_of_class) = (self.is_alone.len() as u32, &mut self.label_of_class);
        let class = *self.by_labels.entry((is_alone, key)).or_insert_with_key(|(_, key)| {
            label_of_class.iter_mut().zip(key).for_each(|(labels, &label)| labels.push(label));
            n_classes
        });
        if class == n_classes {
            self.is_alone.push(is_alone);
        }
        class
    }

    pub(in crate::view) fn finish(self, wishes: &Wishes, policy_key: PolicyKey, k: &[Option<u32>]) -> Assigned {
        Assigned {
            labels: self.labels.into_iter().map(|labels| labels.texts).collect(),
            label_of_class: self.label_of_class,
            is_alone: self.is_alone,
            class_of_row: self.class_of_row,
            policy_of_row: wishes.policy_of_row.clone(),
            policy_key,
            k_of_row: k.iter().map(|k| k.unwrap_or(0)).collect(),
        }
    }
}
