//! [`PersonCells`] and [`RiskBefore`]: tables in which persons may have several rows.
//!
//! A person goes to one cell with all rows: the cell of the row with the smallest hash. This choice does not depend on the order of
//! rows, and on average a cell gets as many rows as are in it.

use kohort_core::cells::CellPlan;
use kohort_core::encode::Encoded;
use kohort_io::{CellStore, NumberedRows, Piece, RowsAgain, Sources, Spill, WriteError, parts_of};
use kohort_model::spec::TableSpec;
use kohort_model::{Progress, Requirement, Role, Table};
use kohort_verify::{Findings, PartsCounter, Violation, Violations};

use crate::error::Error;
use crate::memory::{Memory, Together};

/// The cell of each person.
pub(super) struct PersonCells {
    /// The column that names persons.
    column: usize,
    cell_of_person: Vec<u32>,
    /// The persons and the rows of each cell.
    n_persons: Vec<u64>,
    n_rows: Vec<u64>,
}

impl PersonCells {
    /// Reads the table to find out in which cell each person is.
    pub(super) fn find(
        column: usize,
        (plan, encoded): (&CellPlan, &Encoded<'_>),
        rows: &mut RowsAgain,
        (sources, table_spec): (Sources<'_>, &TableSpec),
        progress: &dyn Progress,
    ) -> Result<PersonCells, Error> {
        let n_persons = rows.hashes_of(column).len();
        let mut first = vec![(u64::MAX, u32::MAX); n_persons];
        let mut rows_of_person = vec![0u32; n_persons];
        rows.for_each_piece_as_read(sources, table_spec, progress, |piece: Piece<'_>| -> Result<(), Error> {
            let cells = plan.cells_of(encoded, piece.rows);
            for ((&person, &hash), cell) in piece.rows[column].iter().zip(piece.hashes).zip(cells) {
                let known = &mut first[person as usize];
                *known = (hash, cell).min(*known);
                rows_of_person[person as usize] += 1;
            }
            Ok(())
        })?;
        let mut found = PersonCells {
            column,
            cell_of_person: first.iter().map(|&(_, cell)| cell).collect(),
            n_persons: vec![0; plan.n_cells()],
            n_rows: vec![0; plan.n_cells()],
        };
        for (&cell, &n_rows) in found.cell_of_person.iter().zip(&rows_of_person) {
            found.n_persons[cell as usize] += 1;
            found.n_rows[cell as usize] += u64::from(n_rows);
        }
        Ok(found)
    }

    /// The cell of each row.
    pub(super) fn cells_of(&self, rows: &NumberedRows) -> Vec<u32> {
        rows[self.column].iter().map(|&person| self.cell_of_person[person as usize]).collect()
    }

    /// The persons of a cell.
    pub(super) fn n_persons(&self, cell: usize) -> u64 {
        self.n_persons[cell]
    }

    /// The rows of the largest cell.
    pub(super) fn largest_cell(&self) -> u64 {
        self.n_rows.iter().copied().max().unwrap_or(0)
    }

    /// Refuses cells that don't fit. A cell may be a little larger than planned.
    pub(super) fn check(&self, memory: Memory, n_columns: usize) -> Result<(), Error> {
        let n_rows = self.largest_cell();
        memory.check(&[Together { n_rows: n_rows / 3 * 2, why: "persons of one cell" }], n_rows, n_columns)
    }
}

/// Counts the private table as if its quasi columns were released unchanged. Rows with the same quasi cells can be in several cells,
/// so they are sent to parts of their own.
pub(super) struct RiskBefore<'s> {
    store: CellStore<'s>,
    quasi: Vec<usize>,
    person: usize,
    n_parts: u64,
}

impl<'s> RiskBefore<'s> {
    pub(super) fn new(spill: &'s Spill, whole: &Table, person: usize, n_rows: u64, memory: Memory) -> Self {
        let quasi = whole.with_role(Role::Quasi);
        let n_columns = quasi.len() + 1;
        let n_parts = n_rows.div_ceil(memory.rows_of_part(n_columns)).max(1);
        let store = CellStore::new(spill, n_parts as usize, n_columns, memory.waiting_rows(2 * n_columns));
        RiskBefore { store, quasi, person, n_parts }
    }

    pub(super) fn add(&mut self, rows: &NumberedRows) -> Result<(), WriteError> {
        let columns = self.quasi.iter().chain([&self.person]);
        let columns: Vec<Vec<u32>> = columns.map(|&column| rows[column].clone()).collect();
        let all: Vec<usize> = (0..self.quasi.len()).collect();
        let parts = parts_of(&columns, &all, self.n_parts);
        self.store.add(&columns, &parts)
    }

    pub(super) fn count(self, whole: &Table, memory: Memory) -> Result<Findings, Error> {
        let columns = self.quasi.iter().chain([&self.person]).map(|&position| whole.columns[position].clone());
        let columns: Vec<_> = columns.collect();
        let all: Vec<usize> = (0..self.quasi.len()).collect();
        let table = Table { name: whole.name.clone(), columns, n_rows: 0, person: Some(all.len()) };
        let asked: &[Requirement] = &[];
        let fault = |violations: Violations| Error::unverified(&violations);
        let mut counter = PartsCounter::of_table(&table, &all, &[], asked).map_err(fault)?;
        for part in self.store.into_rows()?.into_iter().filter(|part| part.n_rows() > 0) {
            memory.check_part(part.n_rows(), all.len() + 1)?;
            let ids = part.all(all.len() + 1)?;
            let n_rows = part.n_rows() as usize;
            let columns = table.columns.iter().zip(ids).map(|(column, ids)| column.with_ids(ids)).collect();
            let rows = Table { name: table.name.clone(), columns, n_rows, person: table.person };
            let row_numbers: Vec<u32> = (0..n_rows as u32).collect();
            counter.count(&rows, &row_numbers, &[]).map_err(fault)?;
        }
        counter.finish().ok_or_else(|| fault(Violation::NoRows { table: whole.name.clone() }.into()))
    }
}
