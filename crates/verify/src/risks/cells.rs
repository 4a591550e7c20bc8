//! [`RisksInCells`]: the same risks where neither the private table nor the release is in memory as a whole.
//!
//! # Guarantee
//! The limits are those of [`super::find_risks`], and they are compared with counts of the whole table, not of a cell.
//! # Deviations
//! A person is taken for unique if nobody of the same cell looks the same. Whether a column names persons is judged by some of
//! its values, each with all its rows.

use kohort_model::{Column, NULL, ReleasedTable, Requirement, Role, Table, Texts};

use super::{
    BlatantRisk, FEWEST_PERSONS, Followers, Holder, NEARLY_UNIQUE, Persons, Unique, diversity_risk, identifier_shown,
    is_nearly_unique, names_persons, only_counts_values, plain_columns, unique_by_plain,
};

/// A table without its rows: its distinct texts and their counts.
#[derive(Clone, Copy, Debug)]
struct Counted<'a> {
    table: &'a Table,
    /// For each column, the number of rows that hold each text, by its id, and at the end the number of nulls.
    counts: &'a [Vec<u64>],
    n_rows: u64,
}

/// Looks for blatant risks of releasing a table of which only some rows are in memory at a time.
#[derive(Clone, Debug)]
pub struct RisksInCells<'a> {
    of: Counted<'a>,
    unique: Unique,
    plain: Vec<String>,
    /// The column that seems to name persons.
    told_by: Option<usize>,
    /// The column that names persons with several rows, if the spec says so.
    named_by: Option<usize>,
    /// For each column and text who holds it, where persons have several rows.
    holders: Vec<Vec<Holder>>,
    /// The persons of the cells so far.
    n_before: u32,
}

impl<'a> RisksInCells<'a> {
    /// No cell was looked at yet. `table` has every distinct text of the whole table, and `counts` has, for each column, the
    /// number of rows that hold each text, by its id, and at the end the number of nulls.
    pub fn new(table: &'a Table, counts: &'a [Vec<u64>], n_rows: u64) -> Self {
        let of = Counted { table, counts, n_rows };
        let named_by = table.person.filter(|&person| (table.columns[person].texts.len() as u64) < n_rows);
        let holders = |column: &Column| match column.role {
            Role::Quasi if named_by.is_some() => vec![Holder::Nobody; column.texts.len()],
            _ => Vec::new(),
        };
        let holders = table.columns.iter().map(holders).collect();
        RisksInCells { of, unique: Unique::default(), plain: Vec::new(), told_by: None, named_by, holders, n_before: 0 }
    }

    /// The columns that may name persons with several rows, by the number of their values.
    pub fn may_name_persons(&self) -> Vec<usize> {
        if self.named_by.is_some() {
            return Vec::new();
        }
        let Counted { table, counts, n_rows } = self.of;
        let n_distinct = |column: usize| counts[column].iter().take(table.columns[column].texts.len());
        let n_distinct = |column: usize| n_distinct(column).filter(|&&count| count > 0).count() as u64;
        let n_null = |column: usize| counts[column].last().copied().unwrap_or(0);
        let may = |&column: &usize| super::persons::may_name_persons(n_distinct(column), n_null(column), n_rows);
        (0..table.columns.len()).filter(may).collect()
    }

    /// Risks that the private table shows by itself. `groups` has for some columns a table of all rows of some of their values.
    pub fn before(&mut self, groups: &[(usize, Table)], requirements: &[Requirement]) -> Vec<BlatantRisk> {
        let Counted { table, counts, n_rows } = self.of;
        if n_rows < FEWEST_PERSONS as u64 {
            return Vec::new();
        }
        let is_quasi = |column: &Column| column.role == Role::Quasi;
        let named = groups.iter().find(|(column, rows)| names_persons(rows, *column, is_quasi, Followers::MOST));
        self.told_by = named.map(|(column, _)| *column);
        let mut risks: Vec<BlatantRisk> = Vec::new();
        risks.extend(self.told_by.map(|column| BlatantRisk::RowsAreNotPersons {
            column: table.columns[column].name.clone(),
            n_persons: self.n_persons(),
            n_rows,
        }));
        let sensitive = table.columns.iter().zip(counts).filter(|(column, _)| column.role == Role::Sensitive);
        let counted = sensitive.filter(|(column, _)| only_counts_values(column, requirements));
        risks.extend(
            counted.filter_map(|(column, counts)| diversity_risk(column, &counts[..column.texts.len()], n_rows)),
        );
        risks
    }

    /// Takes note of a cell and its release.
    pub fn add(&mut self, cell: &Table, released: &ReleasedTable) {
        self.plain = plain_columns(cell, released).map(|column| column.name.clone()).collect();
        let of_row = self.told_by.or(self.named_by).map(|column| cell.columns[column].ids.clone());
        let persons = Persons { of_row, n: cell.n_rows, told_by: None };
        for (holders, column) in self.holders.iter_mut().zip(&cell.columns).filter(|(holders, _)| !holders.is_empty()) {
            for (row, &id) in (0..).zip(&column.ids).filter(|&(_, &id)| id != NULL) {
                holders[id as usize].add(self.n_before + persons.of_row(row));
            }
        }
        self.n_before += cell.person_column().map_or(0, |persons| persons.texts.len()) as u32;
        let Unique { by_quasi, by_quasi_and_plain } = unique_by_plain(cell, released, &persons);
        self.unique.by_quasi += by_quasi;
        self.unique.by_quasi_and_plain += by_quasi_and_plain;
    }

    /// All risks, worst first: those that were found before, and those that the release shows. For each column, `shown` has the
    /// labels of the release if the column is generalized.
    pub fn after(&self, before: Vec<BlatantRisk>, shown: &[Option<&Texts>]) -> Vec<BlatantRisk> {
        let Counted { table, counts, n_rows } = self.of;
        let mut risks = Vec::new();
        let is_checked = self.n_persons() >= FEWEST_PERSONS as u64;
        let columns = table.columns.iter().zip(counts).zip(&self.holders).zip(shown);
        for (((column, counts), holders), labels) in columns.filter(|_| is_checked) {
            let Some(labels) = labels.filter(|_| column.role == Role::Quasi) else { continue };
            let (is_of_one, is_nearly_unique) = if self.named_by.is_some() {
                let is_of_one = holders.iter().map(|holder| matches!(holder, Holder::One(_))).collect();
                (is_of_one, is_nearly_unique(holders, self.n_persons() as usize))
            } else {
                let is_of_one: Vec<bool> = counts.iter().map(|&count| count == 1).take(column.texts.len()).collect();
                let n_known = is_of_one.iter().filter(|&&is_of_one| is_of_one).count() as f64;
                (is_of_one, n_known >= NEARLY_UNIQUE * n_rows as f64)
            };
            risks.extend(identifier_shown(column, labels.iter(), &is_of_one, is_nearly_unique));
        }
        let (of_persons, of_values): (Vec<_>, Vec<_>) =
            before.into_iter().partition(|risk| matches!(risk, BlatantRisk::RowsAreNotPersons { .. }));
        risks.extend(of_persons);
        risks.extend(self.unique.risk(self.plain.clone(), self.n_persons()).filter(|_| is_checked));
        risks.extend(of_values);
        risks
    }

    fn n_persons(&self) -> u64 {
        self.told_by.or(self.named_by).map_or(self.of.n_rows, |column| self.of.table.columns[column].texts.len() as u64)
    }
}
