//! [`CellsVerifier`]: whether a release that was made cell by cell is truthful and satisfies its requirements, although neither
//! the private table nor the release was ever in memory as a whole.
//!
//! # Guarantee
//! Each cell passes [`verify_release`] with the rows that were in it. The rows of all cells are exactly the rows that were read,
//! and the rows of the written file are exactly those of the verified cells, none lost, none twice. The classes of the file are
//! counted again from its cells alone, with shares over the whole file, and every one of them satisfies the requirements.
//! # Method
//! Rows are compared as sums of 128-bit hashes with random keys, because sums don't depend on the order of rows. A difference
//! goes unnoticed with a probability of about 2^-128. If persons have several rows, all rows of each are in one cell, and the
//! number that the verifier gives to the person is a part of each row.

mod against;
mod joined;
mod parts;
mod persons;
mod places;
mod sums;

use std::borrow::Cow;

use kohort_model::{Cells, Column, NULL, Release, Requirement, Role, Table};

use crate::asked::Perspectives;
use crate::count::learned::Source;
use crate::count::roll::Shares;
use crate::single::measure::measure_from;
use crate::single::written::shape;
use crate::structure::check_table;
use crate::{Asked, Findings, Suppressed, SuppressionLimit, Verified, Violation, Violations, verify_release};
pub use against::{CountedRows, PartsAgainst};
pub use joined::joined_findings;
pub use parts::PartsCounter;
use persons::{PersonsInCells, SmallestClasses, numbered};
pub use places::{OriginCut, ValueCounts};
use sums::{Keys, RowSum};

/// Verifies a release of one table cell by cell. Each row of the table is a person, or its person column names the person.
#[derive(Debug)]
pub struct CellsVerifier {
    requirements: Vec<Requirement>,
    limit: SuppressionLimit,
    keys: Keys,
    read: RowSum,
    in_cells: RowSum,
    released: RowSum,
    /// The persons of all cells, and those of them who are left out.
    n_persons: u64,
    n_left_out: u64,
    /// Persons with several rows, if the table names them.
    persons: Option<PersonsInCells>,
    /// The columns of the release, without cells, and whether they are generalized.
    columns: Vec<(Column, Kind)>,
}

/// The verified release of a cell.
#[derive(Debug)]
pub struct VerifiedCell {
    /// The release.
    pub release: Verified<Release>,
    /// The number of each released row's person, if the table names persons. It is the same in no other cell.
    pub persons: Option<Vec<u32>>,
}

/// What a released column shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Generalized,
    Copied,
}

impl CellsVerifier {
    /// A release of which nothing is known yet.
    pub fn new(requirements: &[Requirement], limit: SuppressionLimit) -> Self {
        CellsVerifier {
            requirements: requirements.to_vec(),
            limit,
            keys: Keys::random(),
            read: RowSum::default(),
            in_cells: RowSum::default(),
            released: RowSum::default(),
            n_persons: 0,
            n_left_out: 0,
            persons: None,
            columns: Vec::new(),
        }
    }

    /// Takes note of rows of the private table as they were read from its file.
    pub fn note_read(&mut self, rows: &Table) {
        self.read.add(&self.keys.sum_of_table(rows, None));
    }

    /// Takes note of rows of which the numbers of their texts are known, column by column. The text of each number stands in the row
    /// of `whole` with that number, or what the spec made of the text.
    pub fn note_read_as(&mut self, whole: &Table, rows: &[Vec<u32>]) {
        let column = |(column, numbers): (&Column, &Vec<u32>)| {
            let id = |&number: &u32| if number == NULL { NULL } else { column.ids[number as usize] };
            column.with_ids(numbers.iter().map(id).collect())
        };
        let columns = whole.columns.iter().zip(rows).map(column).collect();
        let n_rows = rows.first().map_or(0, Vec::len);
        self.note_read(&Table { name: whole.name.clone(), columns, n_rows, person: None });
    }

    /// Verifies the release of one cell against the rows of the cell. Requirements that compare a class with the whole release
    /// are counted in the file.
    ///
    /// # Errors
    /// Everything that is wrong with the release.
    pub fn verify_cell(&mut self, release: Release, cell: &Table) -> Result<VerifiedCell, Violations> {
        let within: Vec<Requirement> =
            self.requirements.iter().filter(|asked| !asked.compares_with_release()).cloned().collect();
        // All cells together decide whether too many persons are left out.
        let verified = verify_release(release, cell, &within, SuppressionLimit::share(1.0))?;
        let table = &verified.get().tables[0];
        let kind = |cells: &Cells| match cells {
            Cells::Recoded { .. } => Kind::Generalized,
            Cells::Copied | Cells::Surrogate { .. } => Kind::Copied,
        };
        let column = |column: &kohort_model::ReleasedColumn| {
            let private = Column { name: column.name.clone(), ..cell.columns[column.source].without_cells() };
            (private, kind(&column.cells))
        };
        let columns: Vec<(Column, Kind)> = table.columns.iter().map(column).collect();
        if self.columns.is_empty() {
            self.columns = columns;
        } else if let Some(position) = first_difference(&self.columns, &columns) {
            return Err(Violation::WrittenColumns { position }.into());
        }
        let persons = match cell.person_column() {
            None => None,
            Some(column) => {
                let known = self.persons.get_or_insert_default();
                Some(known.add(&self.keys, cell, column, table, &self.requirements)?)
            }
        };
        let left_out = verified.findings().suppressed.unwrap_or_default();
        self.n_persons += verified.findings().persons + left_out.persons;
        self.n_left_out += left_out.persons;
        self.in_cells.add(&self.keys.sum_of_table(cell, None));
        self.released.add(&self.keys.sum_of_release(table, cell, persons.as_deref()));
        Ok(VerifiedCell { release: verified, persons })
    }

    /// Goes on to the written file, once all cells are verified.
    ///
    /// # Errors
    /// If the cells don't hold exactly the rows that were read, or too many persons were left out.
    pub fn into_file(self) -> Result<FileVerifier, Violations> {
        let mut violations = Vec::new();
        if self.read != self.in_cells {
            violations.push(Violation::OtherRowsInCells { read: self.read.n_rows, in_cells: self.in_cells.n_rows });
        }
        violations.extend(self.persons.as_ref().and_then(PersonsInCells::in_two_cells));
        violations.extend(self.limit.exceeded(self.n_left_out, self.n_persons));
        if !violations.is_empty() {
            return Err(Violations(violations));
        }
        let counts = self.columns.iter().map(|_| Vec::new()).collect();
        let smallest = self.persons.as_ref().map(|persons| SmallestClasses::new(persons.n()));
        let (first, second) = (RowSum::default(), RowSum::default());
        Ok(FileVerifier { cells: self, counts, first, second, smallest, parts: Vec::new() })
    }
}

/// Verifies the file of a release that was made cell by cell. The file is read twice: first for the shares of sensitive values,
/// then for the classes.
#[derive(Debug)]
pub struct FileVerifier {
    cells: CellsVerifier,
    /// For each column the number of rows that hold each text, by its id, and before all others the number of nulls.
    counts: Vec<Vec<u64>>,
    first: RowSum,
    second: RowSum,
    smallest: Option<SmallestClasses>,
    parts: Vec<Findings>,
}

impl FileVerifier {
    /// Takes rows of the file in the first reading. A text must have the same id in all rows of both readings. `persons` are the
    /// numbers of [`VerifiedCell::persons`].
    ///
    /// # Errors
    /// If the columns are not those of the release, or it is not said to whom the rows belong.
    pub fn count_values(&mut self, rows: &Table, persons: Option<&[u32]>) -> Result<(), Violations> {
        let rows = self.as_released(rows, persons)?;
        for (counts, column) in self.counts.iter_mut().zip(&rows.columns) {
            counts.resize(column.texts.len() + 1, 0);
            for &id in &column.ids {
                counts[if id == NULL { 0 } else { id as usize + 1 }] += 1;
            }
        }
        self.first.add(&self.cells.keys.sum_of_table(&rows, persons));
        Ok(())
    }

    /// Takes rows of the file in the second reading. The rows of a class must come together: a class that comes in two parts
    /// is counted as two. `persons` are the numbers of [`VerifiedCell::persons`].
    ///
    /// # Errors
    /// If the columns are not those of the release, or rows can't be counted.
    pub fn count_classes(&mut self, rows: &Table, persons: Option<&[u32]>) -> Result<(), Violations> {
        let mut rows = self.as_released(rows, persons)?;
        self.second.add(&self.cells.keys.sum_of_table(&rows, persons));
        let of_kind = |wanted: Kind| {
            let columns = self.cells.columns.iter().enumerate();
            columns.filter(move |(_, (_, kind))| *kind == wanted).map(|(position, _)| position)
        };
        let quasi: Vec<usize> = of_kind(Kind::Generalized).collect();
        let is_sensitive = |&position: &usize| rows.columns[position].role == Role::Sensitive;
        let sensitive: Vec<usize> = of_kind(Kind::Copied).filter(is_sensitive).collect();
        // A person's own k is never released; it was counted in the cells.
        let asked: Vec<Requirement> =
            self.cells.requirements.iter().filter(|asked| asked.own_k_column().is_none()).cloned().collect();
        let mut violations = Vec::new();
        let names: Vec<&str> = quasi.iter().map(|&position| rows.columns[position].name.as_str()).collect();
        let perspectives = Perspectives::new(Asked::OfAll(&asked), &names, &mut violations);
        let how = (&perspectives, Source::Released, Shares::Pairs);
        let mut counts: Cow<'_, [Vec<u64>]> = Cow::Borrowed(&self.counts);
        if let (Some(known), Some(smallest), Some(persons)) = (&self.cells.persons, &mut self.smallest, persons) {
            // Shares are those of persons, whose rows can be anywhere in the file. The cells have all rows of each.
            let of_persons =
                rows.columns.iter().enumerate().map(|(position, column)| known.counts(position, &column.texts));
            counts = Cow::Owned(of_persons.collect());
            smallest.add(&quasi.iter().map(|&position| &rows.columns[position]).collect::<Vec<_>>(), persons);
            rows.person = Some(rows.columns.len());
            rows.columns.push(numbered(persons));
        }
        let part = measure_from(&rows, &quasi, &sensitive, how, Some(&counts), violations)?;
        self.parts.push(part);
        Ok(())
    }

    /// What the file holds, if it is the verified release and every class satisfies every requirement.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn finish(self) -> Result<Findings, Violations> {
        let CellsVerifier { released, in_cells, n_left_out, .. } = &self.cells;
        let (rows, rows_left_out) = (released.n_rows, in_cells.n_rows - released.n_rows);
        for sum in [&self.first, &self.second] {
            if sum.n_rows != rows {
                return Err(Violation::WrittenRows { released: rows, written: sum.n_rows }.into());
            }
            if sum != released {
                return Err(Violation::OtherRowsWritten.into());
            }
        }
        let Some(mut findings) = joined_findings(self.parts) else {
            return Err(Violation::NoRows { table: String::new() }.into());
        };
        if !findings.unmet.is_empty() {
            return Err(Violations(findings.unmet));
        }
        if let Some(smallest) = &self.smallest {
            smallest.count_in(&mut findings);
        }
        findings.suppressed = Some(Suppressed { rows: rows_left_out, persons: *n_left_out });
        Ok(findings)
    }

    /// The rows with the roles and types that the release gives to their columns.
    fn as_released(&self, rows: &Table, persons: Option<&[u32]>) -> Result<Table, Violations> {
        let known = self.cells.persons.as_ref().map(PersonsInCells::n);
        let are_known = match (known, persons) {
            (None, None) => true,
            (Some(n), Some(persons)) => {
                persons.len() == rows.n_rows && persons.iter().all(|&number| (number as usize) < n)
            }
            (None, Some(_)) | (Some(_), None) => false,
        };
        if !are_known {
            return Err(Violation::OtherRowsWritten.into());
        }
        let mut violations = check_table(rows);
        let names: Vec<kohort_model::ReleasedColumn> = self
            .cells
            .columns
            .iter()
            .map(|(column, _)| kohort_model::ReleasedColumn {
                name: column.name.clone(),
                source: 0,
                cells: Cells::Copied,
            })
            .collect();
        violations.extend(shape(rows, &names, rows.n_rows));
        if !violations.is_empty() {
            return Err(Violations(violations));
        }
        let columns = self.cells.columns.iter().zip(&rows.columns).map(|((meaning, _), read)| Column {
            texts: read.texts.clone(),
            ids: read.ids.clone(),
            ..meaning.clone()
        });
        Ok(Table { name: rows.name.clone(), columns: columns.collect(), n_rows: rows.n_rows, person: None })
    }
}

/// The first column, counted from 1, that has another name, role or kind.
fn first_difference(some: &[(Column, Kind)], others: &[(Column, Kind)]) -> Option<u64> {
    let key = |column: Option<&(Column, Kind)>| column.map(|(column, kind)| (column.name.clone(), column.role, *kind));
    (0..some.len().max(others.len())).find(|&at| key(some.get(at)) != key(others.get(at))).map(|at| at as u64 + 1)
}

#[cfg(test)]
mod tests;
