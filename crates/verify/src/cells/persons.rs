//! [`PersonsInCells`] and [`SmallestClasses`]: persons with several rows, whom the file of a release does not name.
//!
//! # Guarantee
//! The verifier numbers persons itself, cell by cell, and a person who has rows in two cells is found by the text that names
//! them. The number of each released row's person is a part of the row in all sums, so no row of the file can be counted for
//! another person than in its cell.

use std::collections::{BTreeMap, HashMap};

use kohort_model::{Cells, Column, NULL, ReleasedTable, Requirement, Role, Table, Texts};

use super::sums::Keys;
use crate::count::cells::{CellIds, ValueIds};
use crate::count::grouping::Classes;
use crate::count::roll::sensitive_names;
use crate::{Findings, Violation};

/// All persons of the cells so far.
#[derive(Debug, Default)]
pub(super) struct PersonsInCells {
    /// The hash of the text that names each person, by number.
    names: Vec<u128>,
    /// For each released column that is measured, the number of persons who hold a value, by the text of one of their rows.
    holders: BTreeMap<usize, HashMap<Option<String>, u64>>,
}

impl PersonsInCells {
    /// Adds the persons of a cell, and gives the number of each released row's person.
    pub(super) fn add(
        &mut self,
        keys: &Keys,
        cell: &Table,
        persons: &Column,
        released: &ReleasedTable,
        asked: &[Requirement],
    ) -> Result<Vec<u32>, Violation> {
        let first = self.names.len();
        if first + persons.texts.len() >= NULL as usize {
            let n_rows = (first + persons.texts.len()) as u64;
            return Err(Violation::TooManyRows { table: cell.name.clone(), n_rows });
        }
        self.names.extend(persons.texts.iter().map(|text| keys.of_text(text)));
        let names = sensitive_names(asked);
        for (position, column) in released.columns.iter().enumerate() {
            let private = &cell.columns[column.source];
            let is_measured = private.role == Role::Sensitive || names.contains(&private.name.as_str());
            if !is_measured || !matches!(column.cells, Cells::Copied) {
                continue;
            }
            let values = ValueIds::new(&private.ids, &private.texts, private).cells;
            let held = |&row: &u32| {
                let row = row as usize;
                (persons.ids[row], values.get(row), private.ids[row])
            };
            let mut held: Vec<(u32, u32, u32)> = released.rows.iter().map(held).collect();
            held.sort_unstable();
            held.dedup_by_key(|&mut (person, value, _)| (person, value));
            let mut of_texts: BTreeMap<u32, u64> = BTreeMap::new();
            held.into_iter().for_each(|(.., id)| *of_texts.entry(id).or_default() += 1);
            let holders = self.holders.entry(position).or_default();
            for (id, n) in of_texts {
                let text = (id != NULL).then(|| private.texts.get(id).to_owned());
                *holders.entry(text).or_default() += n;
            }
        }
        Ok(released.rows.iter().map(|&row| first as u32 + persons.ids[row as usize]).collect())
    }

    /// The number of persons.
    pub(super) fn n(&self) -> usize {
        self.names.len()
    }

    /// How many persons have rows in several cells.
    pub(super) fn in_two_cells(&self) -> Option<Violation> {
        let mut names = self.names.clone();
        names.sort_unstable();
        let n = names.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64;
        (n > 0).then_some(Violation::PersonInTwoCells { n })
    }

    /// The number of persons who hold null in a column of the file, and then each of its texts.
    pub(super) fn counts(&self, position: usize, texts: &Texts) -> Vec<u64> {
        let holders = self.holders.get(&position);
        let n = |text: Option<&str>| {
            holders.and_then(|holders| holders.get(&text.map(str::to_owned))).copied().unwrap_or(0)
        };
        std::iter::once(n(None)).chain(texts.iter().map(|text| n(Some(text)))).collect()
    }
}

/// The smallest class of each person, over parts of a table that have whole classes.
#[derive(Debug)]
pub(super) struct SmallestClasses {
    /// By the number of the person; `u32::MAX` if none of their rows was counted.
    of_person: Vec<u32>,
}

impl SmallestClasses {
    pub(super) fn new(n_persons: usize) -> Self {
        SmallestClasses { of_person: vec![u32::MAX; n_persons] }
    }

    /// Counts a part. Each of its rows has the number of a person.
    pub(super) fn add(&mut self, quasi: &[&Column], persons: &[u32]) {
        let cells = quasi.iter().map(|column| CellIds::by_id(column.ids.as_slice(), column.texts.len()));
        let cells: Vec<CellIds<'_>> = cells.collect();
        let classes = Classes::group(&cells.iter().collect::<Vec<_>>(), persons.len());
        let mut members = Vec::new();
        for class in 0..classes.len() {
            members.clear();
            members.extend(classes.rows(class).iter().map(|&row| persons[row as usize]));
            members.sort_unstable();
            members.dedup();
            for &person in &members {
                let smallest = &mut self.of_person[person as usize];
                *smallest = members.len().min(*smallest as usize) as u32;
            }
        }
    }

    /// Puts the figures of persons in place of sums over parts, in which a person may have been counted several times.
    pub(super) fn count_in(&self, findings: &mut Findings) {
        let counted = || self.of_person.iter().filter(|&&size| size != u32::MAX);
        findings.persons = counted().count() as u64;
        findings.unique_persons = counted().filter(|&&size| size == 1).count() as u64;
        let sum: f64 = counted().map(|&size| 1.0 / f64::from(size)).sum();
        findings.average_risk = sum / findings.persons.max(1) as f64;
    }
}

/// A column that names the person of each row by numbers, as tables are counted.
pub(super) fn numbered(persons: &[u32]) -> Column {
    let mut distinct = persons.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let place = |person: &u32| distinct.partition_point(|other| other < person) as u32;
    let ids = persons.iter().map(place).collect();
    // Rows are told apart by ids. Nobody reads the texts.
    let texts = distinct.iter().map(|_| "").collect();
    Column { texts, ids, ..Column::from_cells("", Role::Key, []) }
}
