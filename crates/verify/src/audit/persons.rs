//! [`Persons`]: to whom the rows of several releases belong.

use std::collections::HashMap;

use kohort_model::{NULL, Table};

use crate::structure::place;
use crate::{Violation, Violations};

/// The persons of several releases, numbered in the order in which they first occur.
pub(super) struct Persons {
    /// The person of each row of each release.
    of_rows: Vec<Vec<u32>>,
    /// The first release and row of each person.
    first_rows: Vec<(u32, u32)>,
    n_in_all: usize,
}

impl Persons {
    /// Matches persons by the person columns, or by the order of rows if no release has one.
    pub(super) fn match_up(releases: &[&Table]) -> Result<Self, Violations> {
        if releases.iter().all(|release| release.person.is_none()) {
            return Self::by_order(releases).map_err(Violations::from);
        }
        let mut violations = Vec::new();
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let mut first_rows = Vec::new();
        let mut n_releases: Vec<u32> = Vec::new();
        let mut of_rows = Vec::with_capacity(releases.len());
        for (release, table) in (0..).zip(releases) {
            let Some(column) = table.person_column() else {
                violations.push(Violation::PersonsUnnamed { release: table.name.clone() });
                continue;
            };
            if let Some((n, first_row)) = place(table.n_rows, |row| column.ids[row] == NULL) {
                let missing = Violation::PersonMissing { column: column.name.clone(), n, first_row };
                violations.push(missing.in_release(&table.name));
                continue;
            }
            // A dictionary may hold a text twice, so persons are numbered by text and not by id.
            let of_texts: Vec<u32> = column
                .texts
                .iter()
                .map(|text| {
                    let next = numbers.len() as u32;
                    *numbers.entry(text).or_insert(next)
                })
                .collect();
            first_rows.resize(numbers.len(), (u32::MAX, 0));
            n_releases.resize(numbers.len(), 0);
            let of_release: Vec<u32> = column.ids.iter().map(|&id| of_texts[id as usize]).collect();
            let mut seen = vec![false; numbers.len()];
            let is_repeated: Vec<bool> =
                of_release.iter().map(|&person| std::mem::replace(&mut seen[person as usize], true)).collect();
            if let Some((n, first_row)) = place(table.n_rows, |row| is_repeated[row]) {
                let twice = Violation::PersonTwice { column: column.name.clone(), n, first_row };
                violations.push(twice.in_release(&table.name));
                continue;
            }
            for (row, &person) in (0..).zip(&of_release) {
                let first = &mut first_rows[person as usize];
                *first = (*first).min((release, row));
                n_releases[person as usize] += 1;
            }
            of_rows.push(of_release);
        }
        if !violations.is_empty() {
            return Err(Violations(violations));
        }
        if releases.len() > 1 && n_releases.iter().all(|&n| n < 2) {
            let column = releases[0].person_column().map_or_else(String::new, |column| column.name.clone());
            return Err(Violation::NobodyInCommon { column }.into());
        }
        let n_in_all = n_releases.iter().filter(|&&n| n as usize == releases.len()).count();
        Ok(Persons { of_rows, first_rows, n_in_all })
    }

    fn by_order(releases: &[&Table]) -> Result<Self, Violation> {
        let n_rows = releases.first().map_or(0, |release| release.n_rows);
        if let Some(other) = releases.iter().find(|release| release.n_rows != n_rows) {
            return Err(Violation::RowsUnmatched {
                release: other.name.clone(),
                n_rows: other.n_rows as u64,
                first: releases[0].name.clone(),
                n_first: n_rows as u64,
            });
        }
        let rows: Vec<u32> = (0..n_rows as u32).collect();
        let first_rows = rows.iter().map(|&row| (0, row)).collect();
        Ok(Persons { of_rows: vec![rows; releases.len()], first_rows, n_in_all: n_rows })
    }

    pub(super) fn n_persons(&self) -> usize {
        self.first_rows.len()
    }

    /// The number of persons who are in every release.
    pub(super) fn n_in_all(&self) -> usize {
        self.n_in_all
    }

    pub(super) fn n_releases(&self) -> usize {
        self.of_rows.len()
    }

    pub(super) fn n_rows(&self, release: usize) -> usize {
        self.of_rows[release].len()
    }

    pub(super) fn of_row(&self, release: usize, row: usize) -> usize {
        self.of_rows[release][row] as usize
    }

    /// The first release and row of a person.
    pub(super) fn first_row(&self, person: usize) -> (usize, usize) {
        let (release, row) = self.first_rows[person];
        (release as usize, row as usize)
    }
}
