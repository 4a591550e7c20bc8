//! [`common_looks`]: the largest groups of released rows that look the same, for reports; [`Look`]: one of them, where the rows are
//! not in memory.

use kohort_model::Table;

use crate::count::cells::CellIds;
use crate::count::grouping::Classes;

/// The largest groups of rows with the same cells in these columns, at most `n` of them, each with its rows. Equally large
/// groups are in the order of their first rows.
pub fn common_looks(table: &Table, columns: &[usize], n: usize) -> Vec<Vec<u32>> {
    if table.n_rows == 0 || columns.is_empty() {
        return Vec::new();
    }
    let cells = columns.iter().map(|&column| &table.columns[column]);
    let cells: Vec<CellIds<'_>> = cells.map(|column| CellIds::by_text(&column.ids, &column.texts)).collect();
    let classes = Classes::group(&cells.iter().collect::<Vec<_>>(), table.n_rows);
    let mut order: Vec<usize> = (0..classes.len()).collect();
    order.sort_unstable_by_key(|&class| (std::cmp::Reverse(classes.rows(class).len()), classes.rows(class)[0]));
    order.iter().take(n).map(|&class| classes.rows(class).to_vec()).collect()
}

/// A group of released rows that look the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Their cells in the columns by which they were grouped.
    pub cells: Vec<Option<String>>,
    /// How many they are.
    pub n_rows: u64,
    /// The place of the first of them in the table, from 0.
    pub first_row: u32,
}

/// The largest groups of a table whose rows come in parts, each of which has whole groups.
#[derive(Clone, Debug)]
pub(crate) struct LargestLooks {
    most: usize,
    looks: Vec<Look>,
}

impl LargestLooks {
    pub(crate) fn new(most: usize) -> Self {
        LargestLooks { most, looks: Vec::new() }
    }

    /// Adds a part. `row_numbers` has the place of each of its rows in the table, ascending.
    pub(crate) fn add(&mut self, part: &Table, columns: &[usize], row_numbers: &[u32]) {
        for rows in common_looks(part, columns, self.most) {
            let cells = columns.iter().map(|&column| part.columns[column].cell(rows[0] as usize).map(str::to_owned));
            let (n_rows, first_row) = (rows.len() as u64, row_numbers[rows[0] as usize]);
            self.looks.push(Look { cells: cells.collect(), n_rows, first_row });
        }
        self.looks.sort_by_key(|look| (std::cmp::Reverse(look.n_rows), look.first_row));
        self.looks.truncate(self.most);
    }

    pub(crate) fn take(&mut self) -> Vec<Look> {
        std::mem::take(&mut self.looks)
    }
}

#[cfg(test)]
mod tests {
    use kohort_model::{Column, Role};

    use super::*;

    #[test]
    fn the_largest_groups_come_first_and_equal_ones_by_their_first_row() {
        let cells = |cells: &[&str]| Column::from_cells("x", Role::Quasi, cells.iter().map(|&cell| Some(cell)));
        let table = Table {
            name: "t".into(),
            columns: vec![cells(&["b", "a", "a", "c", "b", "c", "c"])],
            n_rows: 7,
            person: None,
        };
        assert_eq!(common_looks(&table, &[0], 2), [vec![3, 5, 6], vec![0, 4]]);
        // The same in two parts of whole groups.
        let part = |rows: &[u32]| {
            let ids = rows.iter().map(|&row| table.columns[0].ids[row as usize]).collect();
            Table { columns: vec![table.columns[0].with_ids(ids)], n_rows: rows.len(), ..table.clone() }
        };
        let mut largest = LargestLooks::new(2);
        [&[1, 2][..], &[0, 3, 4, 5, 6]].iter().for_each(|rows| largest.add(&part(rows), &[0], rows));
        let found: Vec<(u64, u32)> = largest.take().into_iter().map(|look| (look.n_rows, look.first_row)).collect();
        assert_eq!(found, [(3, 3), (2, 0)]);
        assert_eq!(common_looks(&table, &[0], 9).len(), 3);
        assert!(common_looks(&table, &[], 9).is_empty());
    }
}
