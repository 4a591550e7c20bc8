//! [`CellStore`]: the rows of each cell of a table, on the disk until the cell is anonymized.

use kohort_model::Table;

use super::spill::{Spill, SpillFile};
use crate::{NumberedRows, WriteError};

/// Rows of all cells that may wait in memory, together.
const ROWS_IN_MEMORY: usize = 1 << 21;

/// The rows of each cell of a table.
#[derive(Debug)]
pub struct CellStore<'s> {
    spill: &'s Spill,
    cells: Vec<StoredCell>,
    rows_at_once: usize,
}

#[derive(Debug)]
struct StoredCell {
    file: SpillFile,
    /// Rows that are not on the disk yet.
    waiting: Vec<Vec<u32>>,
}

impl<'s> CellStore<'s> {
    /// Empty cells of rows with this many columns.
    pub fn new(spill: &'s Spill, n_cells: usize, n_columns: usize) -> Self {
        let cell = |number| StoredCell { file: spill.file(number), waiting: vec![Vec::new(); n_columns] };
        let rows_at_once = (ROWS_IN_MEMORY / n_cells.max(1)).clamp(1 << 9, 1 << 16);
        CellStore { spill, cells: (0..n_cells as u32).map(cell).collect(), rows_at_once }
    }

    /// Adds rows, each to its cell.
    ///
    /// # Errors
    /// If they can't be written.
    pub fn add(&mut self, rows: &NumberedRows, cell_of_row: &[u32]) -> Result<(), WriteError> {
        for (row, &cell) in cell_of_row.iter().enumerate() {
            let StoredCell { file, waiting } = &mut self.cells[cell as usize];
            for (waiting, ids) in waiting.iter_mut().zip(rows) {
                waiting.push(ids[row]);
            }
            if waiting[0].len() >= self.rows_at_once {
                self.spill.append(file, waiting)?;
                waiting.iter_mut().for_each(Vec::clear);
            }
        }
        Ok(())
    }

    /// Writes the rows that still wait in memory. To be called after the last row.
    ///
    /// # Errors
    /// If they can't be written.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        for StoredCell { file, waiting } in &mut self.cells {
            if !waiting[0].is_empty() {
                self.spill.append(file, waiting)?;
            }
            *waiting = vec![Vec::new(); waiting.len()];
        }
        Ok(())
    }

    /// The number of rows of a cell.
    pub fn n_rows(&self, cell: usize) -> u64 {
        self.cells[cell].file.n_rows
    }

    /// The rows of some cells as one table, with the columns and texts of `whole`.
    ///
    /// # Errors
    /// If they can't be read back.
    pub fn table(&self, cells: &[usize], whole: &Table) -> Result<Table, WriteError> {
        let n_rows: u64 = cells.iter().map(|&cell| self.n_rows(cell)).sum();
        let mut ids: Vec<Vec<u32>> = vec![Vec::with_capacity(n_rows as usize); whole.columns.len()];
        for &cell in cells {
            let mut reader = self.spill.read(&self.cells[cell].file)?;
            while let Some(frame) = reader.next_frame()? {
                ids.iter_mut().zip(frame).for_each(|(ids, more)| ids.extend(more));
            }
        }
        let columns = whole.columns.iter().zip(ids).map(|(column, ids)| column.with_ids(ids)).collect();
        Ok(Table { name: whole.name.clone(), columns, n_rows: n_rows as usize, person: None })
    }

    /// Deletes the rows of cells that are released.
    ///
    /// # Errors
    /// If that fails.
    pub fn remove(&mut self, cells: &[usize]) -> Result<(), WriteError> {
        cells.iter().try_for_each(|&cell| self.spill.remove(&self.cells[cell].file))
    }
}
