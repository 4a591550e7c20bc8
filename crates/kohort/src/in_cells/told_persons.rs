//! [`Group`]: some values of a column with all their rows, by which it is judged whether the column names persons.

use kohort_io::{NumberedRows, RowsAgain};

/// Rows by which it is judged whether a column names persons.
const ROWS_OF_GROUPS: u64 = 1 << 16;

/// All rows of some values of a column.
pub(super) struct Group {
    pub(super) column: usize,
    is_chosen: Vec<bool>,
    pub(super) rows: Vec<Vec<u32>>,
}

impl Group {
    /// The values with the smallest hashes, so that the choice does not depend on the order of rows.
    pub(super) fn new(column: usize, rows: &RowsAgain, counts: &[Vec<u64>], n_columns: usize) -> Group {
        let mut by_hash: Vec<(u64, usize)> = rows.hashes_of(column).iter().copied().zip(0..).collect();
        by_hash.sort_unstable();
        let mut is_chosen = vec![false; by_hash.len()];
        let mut n_rows = 0;
        for (_, id) in by_hash {
            if n_rows >= ROWS_OF_GROUPS {
                break;
            }
            is_chosen[id] = true;
            n_rows += counts[column][id];
        }
        Group { column, is_chosen, rows: vec![Vec::new(); n_columns] }
    }

    pub(super) fn add(&mut self, rows: &NumberedRows) {
        let of_column = rows[self.column].iter().enumerate();
        for (row, _) in of_column.filter(|(_, id)| self.is_chosen.get(**id as usize).copied().unwrap_or(false)) {
            self.rows.iter_mut().zip(rows).for_each(|(group, ids)| group.push(ids[row]));
        }
    }
}
