//! [`common_looks`]: the largest groups of released rows that look the same, for reports.

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
        assert_eq!(common_looks(&table, &[0], 9).len(), 3);
        assert!(common_looks(&table, &[], 9).is_empty());
    }
}
