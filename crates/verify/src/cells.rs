//! [`CellsVerifier`]: whether a release that was made cell by cell is truthful and satisfies its requirements, although neither
//! the private table nor the release was ever in memory as a whole.
//!
//! # Guarantee
//! Each cell passes [`verify_release`] with the rows that were in it. The rows of all cells are exactly the rows that were read,
//! and the rows of the written file are exactly those of the verified cells, none lost, none twice. The classes of the file are
//! counted again from its cells alone, with shares over the whole file, and every one of them satisfies the requirements.
//! # Method
//! Rows are compared as sums of 128-bit hashes with random keys, because sums don't depend on the order of rows. A difference
//! goes unnoticed with a probability of about 2^-128.

mod against;
mod joined;
mod parts;
mod places;
mod sums;

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
pub use places::{OriginCut, ValueCounts};
use sums::{Keys, RowSum};

/// Verifies a release of one table cell by cell. Each row of the table is a person.
#[derive(Debug)]
pub struct CellsVerifier {
    requirements: Vec<Requirement>,
    limit: SuppressionLimit,
    keys: Keys,
    read: RowSum,
    in_cells: RowSum,
    released: RowSum,
    /// The columns of the release, without cells, and whether they are generalized.
    columns: Vec<(Column, Kind)>,
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
            columns: Vec::new(),
        }
    }

    /// Takes note of rows of the private table as they were read from its file.
    pub fn note_read(&mut self, rows: &Table) {
        self.read.add(&self.keys.sum_of_table(rows));
    }

    /// Verifies the release of one cell against the rows of the cell. Requirements that compare a class with the whole release
    /// are counted in the file.
    ///
    /// # Errors
    /// Everything that is wrong with the release.
    pub fn verify_cell(&mut self, release: Release, cell: &Table) -> Result<Verified<Release>, Violations> {
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
        self.in_cells.add(&self.keys.sum_of_table(cell));
        self.released.add(&self.keys.sum_of_release(table, cell));
        Ok(verified)
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
        let n_left_out = self.in_cells.n_rows - self.released.n_rows;
        violations.extend(self.limit.exceeded(n_left_out, self.in_cells.n_rows));
        if !violations.is_empty() {
            return Err(Violations(violations));
        }
        let counts = self.columns.iter().map(|_| Vec::new()).collect();
        Ok(FileVerifier { cells: self, counts, first: RowSum::default(), second: RowSum::default(), parts: Vec::new() })
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
    parts: Vec<Findings>,
}

impl FileVerifier {
    /// Takes rows of the file in the first reading. A text must have the same id in all rows of both readings.
    ///
    /// # Errors
    /// If the columns are not those of the release.
    pub fn count_values(&mut self, rows: &Table) -> Result<(), Violations> {
        let rows = self.as_released(rows)?;
        for (counts, column) in self.counts.iter_mut().zip(&rows.columns) {
            counts.resize(column.texts.len() + 1, 0);
            for &id in &column.ids {
                counts[if id == NULL { 0 } else { id as usize + 1 }] += 1;
            }
        }
        self.first.add(&self.cells.keys.sum_of_table(&rows));
        Ok(())
    }

    /// Takes rows of the file in the second reading. The rows of a class must come together: a class that comes in two parts
    /// is counted as two.
    ///
    /// # Errors
    /// If the columns are not those of the release, or rows can't be counted.
    pub fn count_classes(&mut self, rows: &Table) -> Result<(), Violations> {
        let rows = self.as_released(rows)?;
        self.second.add(&self.cells.keys.sum_of_table(&rows));
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
        let part = measure_from(&rows, &quasi, &sensitive, how, Some(&self.counts), violations)?;
        self.parts.push(part);
        Ok(())
    }

    /// What the file holds, if it is the verified release and every class satisfies every requirement.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn finish(self) -> Result<Findings, Violations> {
        let CellsVerifier { released, in_cells, .. } = &self.cells;
        let (rows, n_left_out) = (released.n_rows, in_cells.n_rows - released.n_rows);
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
        findings.suppressed = Some(Suppressed { rows: n_left_out, persons: n_left_out });
        Ok(findings)
    }

    /// The rows with the roles and types that the release gives to their columns.
    fn as_released(&self, rows: &Table) -> Result<Table, Violations> {
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
