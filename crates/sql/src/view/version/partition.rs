//! [`Partition`]: puts the rows of a view into classes, verifies all of them, and makes a directory of them.

use std::collections::HashMap;

use kohort_core::anonymize;
use kohort_model::{Column, NULL, Notation, Progress, Requirement, Role, Table, Texts, ValueType};
use kohort_verify::{SuppressionLimit, verify_release};

use super::directory::{Assigned, Directory, Seed};
use crate::view::class_labels::ClassLabels;
use crate::view::consent::Wishes;
use crate::view::{Definition, Summary, ViewError};

/// The name of the column with each person's own k, in the table that is partitioned and verified.
const OWN_K: &str = "k of the person";

/// One partition of the rows of a view.
pub(in crate::view) struct Partition<'a> {
    pub(in crate::view) definition: &'a Definition,
    pub(in crate::view) table: &'a Table,
    pub(in crate::view) wishes: &'a Wishes,
    /// For each row, its person's k; `None` if the person has no policy.
    pub(in crate::view) k: &'a [Option<u32>],
    pub(in crate::view) raised: &'a [(Column, Vec<Requirement>)],
    pub(in crate::view) seed: Seed,
}

impl Partition<'_> {
    pub(in crate::view) fn directory(&self, progress: &dyn Progress) -> Result<(Directory, Summary), ViewError> {
        let quasi = self.definition.with_role(Role::Quasi);
        let sensitive = self.definition.with_role(Role::Sensitive);
        let in_classes: Vec<u32> =
            (0..).zip(self.k).filter(|(_, k)| k.is_some_and(|k| k >= 2)).map(|(row, _)| row).collect();
        let mut assigned = Assigned {
            labels: ClassLabels::new(quasi.clone()),
            class_of_row: vec![Assigned::NONE; self.table.n_rows],
            policy_of_row: self.wishes.policy_of_row.clone(),
            k_of_row: self.k.iter().map(|k| k.unwrap_or(0)).collect(),
            ..Assigned::default()
        };
        let mut summary = Summary::default();
        if !in_classes.is_empty() {
            let part = self.part(&in_classes, &quasi, &sensitive);
            let mut requirements = self.definition.requirements();
            requirements.push(Requirement::PersonK { column: OWN_K.to_owned() });
            requirements.extend(self.raised.iter().flat_map(|(_, requirements)| requirements.clone()));
            let spec = self.definition.spec();
            let made = anonymize(&part, &spec, &requirements, progress).map_err(ViewError::Unreachable)?;
            let loss = made.loss.ncp;
            let limit = SuppressionLimit::share(spec.max_suppressed);
            let release = verify_release(made.release, &part, &requirements, limit).map_err(ViewError::Unverified)?;
            let findings = release.findings();
            (summary.k, summary.n_classes, summary.ncp) = (findings.k, findings.classes, loss);
            assigned.classes(release.get(), &in_classes);
            summary.n_left_over = (part.n_rows - release.get().tables[0].rows.len()) as u64;
        }
        for (row, k) in (0..).zip(self.k) {
            match k {
                None => summary.n_denied += 1,
                Some(0 | 1) => {
                    assigned.alone(self.table, row);
                    summary.n_alone += 1;
                }
                Some(_) => {}
            }
        }
        let compared = [sensitive, self.definition.with_role(Role::Plain)].concat();
        let directory = Directory::new(self.table, &compared, assigned, self.seed.clone());
        summary.n_rows = directory.n_rows();
        summary.k_deviation = self.k_deviation(&directory);
        Ok((directory, summary))
    }

    /// The rows that go into classes, with the columns that the partitioner needs.
    fn part(&self, rows: &[u32], quasi: &[usize], sensitive: &[usize]) -> Table {
        let mut columns = Vec::new();
        let identifier = self.table.person.expect("a view has an identifier");
        let mut person = chosen(&self.table.columns[identifier], rows);
        person.role = Role::Key;
        columns.push(person);
        columns.extend(quasi.iter().chain(sensitive).map(|&position| chosen(&self.table.columns[position], rows)));
        columns.extend(self.raised.iter().map(|(column, _)| chosen(column, rows)));
        let mut texts = Texts::new();
        let mut known: HashMap<u32, u32> = HashMap::new();
        let ids = rows.iter().map(|&row| {
            let k = self.k[row as usize].unwrap_or(0);
            *known.entry(k).or_insert_with(|| texts.push(&k.to_string()))
        });
        let ids = ids.collect();
        let (name, value_type, notation) = (OWN_K.to_owned(), ValueType::Integer, Notation::default());
        columns.push(Column { name, role: Role::PersonK, value_type, notation, hierarchy: None, texts, ids });
        Table { name: self.definition.name.clone(), columns, n_rows: rows.len(), person: Some(0) }
    }

    fn k_deviation(&self, directory: &Directory) -> u64 {
        let n_persons = |class| directory.members(&[class]).len() as u64;
        let n_persons: Vec<u64> = (0..directory.n_classes() as u32).map(n_persons).collect();
        let beyond = |(class, k): (Option<u32>, &Option<u32>)| {
            let k = k.filter(|&k| k >= 2)?;
            Some(n_persons[class? as usize].saturating_sub(u64::from(k)))
        };
        directory.class_of_rows(self.table.n_rows).into_iter().zip(self.k).filter_map(beyond).sum()
    }
}

/// Some rows of a column. Its dictionary has only the texts that occur in them.
fn chosen(column: &Column, rows: &[u32]) -> Column {
    let mut new_id = vec![NULL; column.texts.len()];
    let mut texts = Texts::new();
    let ids = rows.iter().map(|&row| match column.ids[row as usize] {
        NULL => NULL,
        id => {
            let new_id = &mut new_id[id as usize];
            if *new_id == NULL {
                *new_id = texts.push(column.texts.get(id));
            }
            *new_id
        }
    });
    let ids = ids.collect();
    Column { texts, ids, ..column.without_cells() }
}
