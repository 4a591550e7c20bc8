//! [`CellStore`]: the rows of each cell of a table, on the disk until the cell is anonymized.

use kohort_model::{Column, NULL, Table};
use rayon::prelude::*;

use super::spill::{Spill, SpillFile};
use crate::{NumberedRows, WriteError};

/// Rows that are written at once, at least and at most. Every write has a cost of its own, which few rows don't repay.
const ROWS_AT_ONCE: (usize, usize) = (1 << 8, 1 << 16);

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
    /// Empty cells of rows with this many columns, of which about `n_waiting` may wait in memory, in all cells together.
    pub fn new(spill: &'s Spill, n_cells: usize, n_columns: usize, n_waiting: usize) -> Self {
        let cell = |_| StoredCell { file: spill.file(), waiting: vec![Vec::new(); n_columns] };
        let rows_at_once = (n_waiting / n_cells.max(1)).clamp(ROWS_AT_ONCE.0, ROWS_AT_ONCE.1);
        CellStore { spill, cells: (0..n_cells).map(cell).collect(), rows_at_once }
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
                self.spill.append(file, waiting.iter_mut().map(std::mem::take).collect())?;
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
                self.spill.append(file, waiting.iter_mut().map(std::mem::take).collect())?;
            }
        }
        Ok(())
    }

    /// The rows of each cell by themselves, once all are added.
    ///
    /// # Errors
    /// If rows that still wait in memory can't be written.
    pub fn into_rows(mut self) -> Result<Vec<StoredRows<'s>>, WriteError> {
        self.flush()?;
        let spill = self.spill;
        Ok(self.cells.into_iter().map(|StoredCell { file, .. }| StoredRows { spill, file }).collect())
    }

    /// The number of rows of a cell.
    pub fn n_rows(&self, cell: usize) -> u64 {
        self.cells[cell].file.n_rows
    }

    /// The rows of some cells, column by column.
    ///
    /// # Errors
    /// If the rows can't be read back from the disk.
    pub fn rows(&self, cells: &[usize], n_columns: usize) -> Result<Vec<Vec<u32>>, WriteError> {
        let n_rows: u64 = cells.iter().map(|&cell| self.n_rows(cell)).sum();
        let mut ids: Vec<Vec<u32>> = vec![Vec::with_capacity(n_rows as usize); n_columns];
        for &cell in cells {
            let mut reader = self.spill.read(&self.cells[cell].file);
            while let Some(frame) = reader.next_frame()? {
                ids.iter_mut().zip(frame).for_each(|(ids, more)| ids.extend(more));
            }
        }
        Ok(ids)
    }

    /// The rows of some cells as one table, with the columns and texts of `whole`. The column that names persons has the texts of
    /// those who are in these cells.
    ///
    /// # Errors
    /// If the rows can't be read back from the disk.
    pub fn table(&self, cells: &[usize], whole: &Table) -> Result<Table, WriteError> {
        let ids = self.rows(cells, whole.columns.len())?;
        let n_rows = ids.first().map_or(0, Vec::len);
        let column = |(position, (column, ids)): (usize, (&Column, Vec<u32>))| match whole.person == Some(position) {
            true => with_own_texts(column, &ids),
            false => column.with_ids(ids),
        };
        let columns = whole.columns.iter().zip(ids).enumerate().map(column).collect();
        Ok(Table { name: whole.name.clone(), columns, n_rows, person: whole.person })
    }

    /// Deletes the rows of cells that are released.
    ///
    /// # Errors
    /// If that fails.
    pub fn remove(&mut self, cells: &[usize]) -> Result<(), WriteError> {
        cells.iter().try_for_each(|&cell| self.spill.remove(&self.cells[cell].file))
    }
}

/// The rows of one cell, on the disk until they are dropped.
#[derive(Debug)]
pub struct StoredRows<'s> {
    spill: &'s Spill,
    file: SpillFile,
}

impl StoredRows<'_> {
    /// The number of rows.
    pub fn n_rows(&self) -> u64 {
        self.file.n_rows
    }

    /// Hands the rows to `take`, piece by piece in their order.
    ///
    /// # Errors
    /// If the rows can't be read back from the disk, and the errors of `take`.
    pub fn for_each_piece<E: From<WriteError>>(
        &self,
        mut take: impl FnMut(&NumberedRows) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut reader = self.spill.read(&self.file);
        while let Some(frame) = reader.next_frame()? {
            take(&frame)?;
        }
        Ok(())
    }

    /// All rows, of so many columns.
    ///
    /// # Errors
    /// If the rows can't be read back from the disk.
    pub fn all(&self, n_columns: usize) -> Result<Vec<Vec<u32>>, WriteError> {
        let mut ids: Vec<Vec<u32>> = vec![Vec::with_capacity(self.n_rows() as usize); n_columns];
        self.for_each_piece(|rows| {
            ids.iter_mut().zip(rows).for_each(|(ids, more)| ids.extend_from_slice(more));
            Ok::<(), WriteError>(())
        })?;
        Ok(ids)
    }
}

impl Drop for StoredRows<'_> {
    /// Makes room on the disk. A file that stays is removed with its folder.
    fn drop(&mut self) {
        let _ = self.spill.remove(&self.file);
    }
}

/// A column with these rows, and with no texts but theirs, in the same order.
fn with_own_texts(column: &Column, ids: &[u32]) -> Column {
    let mut own: Vec<u32> = ids.iter().copied().filter(|&id| id != NULL).collect();
    own.sort_unstable();
    own.dedup();
    let place = |&id: &u32| if id == NULL { NULL } else { own.partition_point(|&other| other < id) as u32 };
    let (ids, texts) = (ids.par_iter().map(place).collect(), own.iter().map(|&id| column.texts.get(id)).collect());
    Column { texts, ids, ..column.without_cells() }
}

/// A part for each row, out of so many. Rows that are equal in these columns have the same part.
pub fn parts_of(rows: &NumberedRows, columns: &[usize], n_parts: u64) -> Vec<u32> {
    let n_rows = rows.first().map_or(0, Vec::len);
    let part = |row: usize| {
        let mixed = columns.iter().fold(u64::from(NULL), |hash, &column| {
            let hash = (hash ^ u64::from(rows[column][row])).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^ hash >> 32
        });
        (mixed % n_parts.max(1)) as u32
    };
    (0..n_rows).into_par_iter().with_min_len(1 << 12).map(part).collect()
}
