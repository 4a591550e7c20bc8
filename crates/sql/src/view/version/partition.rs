//! [`Partition`]: the rows of a view in classes, verified whole, as a directory.

use std::collections::HashMap;

use kohort_core::anonymize;
use kohort_model::{Column, NULL, Notation, Progress, Requirement, Role, Table, Texts, ValueType};
use kohort_verify::{SuppressionLimit, verify_release};

use super::assign::Assigner;
use super::directory::{Assigned, Directory, Found, PolicyKey, Seed};
use crate::view::consent::Wishes;
use crate::view::{Definition, Summary, ViewError};

/// The name of the column with each person's own k, in tables that leave this module only to be verified.
const OWN_K: &str = "k of the person";

/// One partition of the rows of a view.
pub(in crate::view) struct Partition<'a> {
    pub(in crate::view) definition: &'a Definition,
    pub(in crate::view) table: &'a Table,
    pub(in crate::view) wishes: &'a Wishes,
    /// Per row its person's k, `None` where nobody allowed anything.
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
        let mut assigned = Assigner::new(self.table, &quasi);
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
                    assigned.alone(row);
                    summary.n_alone += 1;
                }
                Some(_) => {}
            }
        }
        let policy_key = match self.definition.policy_key {
            Some(position) if position == self.definition.identifier => PolicyKey::Identifier,
            _ => PolicyKey::Other,
        };
        let compared = [sensitive, self.definition.with_role(Role::Plain)].concat();
        let directory = Directory::new(
            self.table,
            quasi.clone(),
            &compared,
            assigned.finish(self.wishes, policy_key, self.k),
            self.seed.clone(),
        );
        summary.n_rows = directory.n_rows();
        summary.k_deviation = self.k_deviation(&directory);
        Ok((directory, summary))
    }

    /// The rows that are in classes, with what a partitioner looks at.
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
        let Ok(Found { class_of_row: classes, .. }) = directory.find(self.table) else { return 0 };
        let mut n_persons: HashMap<u32, u64> = HashMap::new();
        for &class in classes.iter().filter(|&&class| class != Assigned::NONE) {
            n_persons.entry(class).or_insert_with(|| directory.members(&[class]).len() as u64);
        }
        let in_class = classes.iter().zip(self.k).filter(|&(&class, _)| class != Assigned::NONE);
        in_class
            .filter_map(|(class, k)| k.filter(|&k| k >= 2).map(|k| n_persons[class].saturating_sub(u64::from(k))))
            .sum()
    }
}

/// Some rows of a column, its dictionary without texts that no longer occur.
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
