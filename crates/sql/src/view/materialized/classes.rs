//! [`ClassTable`]: the labels of a materialized view's classes in memory, so that a query finds those that could match.

use std::collections::HashMap;

use kohort_model::{NULL, Texts};

use crate::view::choose::ClassLabels;

/// Classes by their labels, as of an epoch.
#[derive(Default)]
pub(in crate::view) struct ClassTable {
    pub(super) epoch: u64,
    /// Positions of the quasi columns in the view.
    quasi: Vec<usize>,
    labels: Vec<Texts>,
    label_ids: Vec<HashMap<String, u32>>,
    /// Per quasi column and place a label's id, or [`NULL`].
    label_of_class: Vec<Vec<u32>>,
    /// Per place the class's number in the store.
    numbers: Vec<i64>,
    /// Per place whether somebody in it may refuse something.
    is_restricted: Vec<bool>,
    places: HashMap<i64, u32>,
}

impl ClassTable {
    pub(super) fn new(quasi: Vec<usize>) -> ClassTable {
        let n_columns = quasi.len();
        ClassTable {
            quasi,
            labels: vec![Texts::new(); n_columns],
            label_ids: vec![HashMap::new(); n_columns],
            label_of_class: vec![Vec::new(); n_columns],
            ..ClassTable::default()
        }
    }

    /// Adds a class, or gives it other labels.
    pub(super) fn put(&mut self, number: i64, labels: &[Option<&str>]) {
        let place = *self.places.entry(number).or_insert_with(|| {
            self.numbers.push(number);
            self.is_restricted.push(false);
            self.label_of_class.iter_mut().for_each(|of_class| of_class.push(NULL));
            self.numbers.len() as u32 - 1
        });
        for (column, label) in labels.iter().enumerate() {
            let id = match label {
                None => NULL,
                Some(label) => match self.label_ids[column].get(*label) {
                    Some(&id) => id,
                    None => {
                        let id = self.labels[column].push(label);
                        self.label_ids[column].insert((*label).to_owned(), id);
                        id
                    }
                },
            };
            self.label_of_class[column][place as usize] = id;
        }
    }

    /// Notes that somebody in a class may refuse something.
    pub(super) fn restrict(&mut self, number: i64) {
        if let Some(&place) = self.places.get(&number) {
            self.is_restricted[place as usize] = true;
        }
    }

    /// The numbers of the classes at these places, and of those in which somebody may refuse what is compared.
    pub(super) fn numbers(&self, is_wanted: &[bool]) -> Vec<i64> {
        let wanted = self.numbers.iter().zip(is_wanted.iter().zip(&self.is_restricted));
        wanted.filter(|(_, (wanted, restricted))| **wanted || **restricted).map(|(&number, _)| number).collect()
    }
}

impl ClassLabels for ClassTable {
    fn quasi(&self) -> &[usize] {
        &self.quasi
    }

    fn labels(&self, quasi: usize) -> &Texts {
        &self.labels[quasi]
    }

    fn label_ids(&self, quasi: usize) -> &[u32] {
        &self.label_of_class[quasi]
    }
}
