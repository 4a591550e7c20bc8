//! [`CellIds`]: what each cell of a released column shows, row by row, wherever it is kept.

use std::ops::Range;

use kohort_model::{Cells, NULL, ReleasedColumn, ReleasedTable, Table};

/// The ids of a released column's cells.
#[derive(Clone, Copy)]
pub(super) enum CellIds<'a> {
    /// Per released row.
    Released(&'a [u32]),
    /// Per private row, and which private row each released one is.
    Private { ids: &'a [u32], rows: &'a [u32] },
}

impl<'a> CellIds<'a> {
    pub(super) fn of(column: &'a ReleasedColumn, released: &'a ReleasedTable, original: &'a Table) -> Self {
        match &column.cells {
            Cells::Recoded { ids, .. } | Cells::Surrogate { ids } => CellIds::Released(ids),
            Cells::Copied => CellIds::Private { ids: &original.columns[column.source].ids, rows: &released.rows },
        }
    }

    /// The id in a released row, [`NULL`] for a null.
    pub(super) fn id(self, row: usize) -> u32 {
        match self {
            CellIds::Released(ids) => ids[row],
            CellIds::Private { ids, rows } => ids[rows[row] as usize],
        }
    }

    /// The ids of a range of released rows.
    pub(super) fn of_rows(self, rows: Range<usize>) -> Vec<u32> {
        rows.map(|row| self.id(row)).collect()
    }
}

/// Whether an id stands for a value.
pub(super) fn is_value(id: &u32) -> bool {
    *id != NULL
}
