//! Changes to the rows and columns of a released file.

use super::{Cell, Sheet};

/// A way to change rows or columns.
pub struct RowChange {
    /// The name of the change.
    pub name: &'static str,
    /// Makes every changed sheet that this way gives from one sheet.
    pub instead: fn(&Sheet) -> Vec<Sheet>,
}

/// Every way to change rows and columns.
pub const ROW_CHANGES: &[RowChange] = &[
    RowChange { name: "a row dropped", instead: |sheet| each_row(sheet, |rows, row| drop(rows.remove(row))) },
    RowChange {
        name: "a row twice",
        instead: |sheet| each_row(sheet, |rows, row| rows.insert(row, rows[row].clone())),
    },
    RowChange {
        name: "a row moved to the end",
        instead: |sheet| {
            each_row(sheet, |rows, row| {
                let moved = rows.remove(row);
                rows.push(moved);
            })
        },
    },
    RowChange { name: "rows in reverse", instead: |sheet| edited(sheet, |sheet| sheet.rows.reverse()) },
    RowChange { name: "a row of another", instead: |sheet| each_pair(sheet, |rows, a, b| rows[a] = rows[b].clone()) },
    RowChange { name: "two cells exchanged", instead: exchanged_cells },
    RowChange { name: "no rows", instead: |sheet| edited(sheet, |sheet| sheet.rows.clear()) },
    RowChange {
        name: "a column dropped",
        instead: |sheet| {
            each_column(sheet, |sheet, column| {
                sheet.columns.remove(column);
                sheet.rows.iter_mut().for_each(|row| drop(row.remove(column)));
            })
        },
    },
    RowChange {
        name: "a column renamed",
        instead: |sheet| {
            each_column(sheet, |sheet, column| {
                sheet.columns[column].push('2');
            })
        },
    },
    RowChange {
        name: "a column added",
        instead: |sheet| {
            edited(sheet, |sheet| {
                sheet.columns.push("row".to_owned());
                (1..).zip(&mut sheet.rows).for_each(|(number, row): (usize, _)| row.push(Some(number.to_string())));
            })
        },
    },
    RowChange {
        name: "the first column last",
        instead: |sheet| {
            edited(sheet, |sheet| {
                sheet.columns.rotate_left(1);
                sheet.rows.iter_mut().for_each(|row| row.rotate_left(1));
            })
        },
    },
];

fn edited(sheet: &Sheet, edit: impl FnOnce(&mut Sheet)) -> Vec<Sheet> {
    let mut copy = sheet.clone();
    edit(&mut copy);
    vec![copy]
}

fn each_row(sheet: &Sheet, edit: impl Fn(&mut Vec<Vec<Cell>>, usize)) -> Vec<Sheet> {
    (0..sheet.rows.len()).flat_map(|row| edited(sheet, |sheet| edit(&mut sheet.rows, row))).collect()
}

fn each_pair(sheet: &Sheet, edit: impl Fn(&mut Vec<Vec<Cell>>, usize, usize)) -> Vec<Sheet> {
    let pairs = (0..sheet.rows.len()).flat_map(|a| (0..sheet.rows.len()).map(move |b| (a, b)));
    pairs.filter(|(a, b)| a != b).flat_map(|(a, b)| edited(sheet, |sheet| edit(&mut sheet.rows, a, b))).collect()
}

fn each_column(sheet: &Sheet, edit: impl Fn(&mut Sheet, usize)) -> Vec<Sheet> {
    (0..sheet.columns.len()).flat_map(|column| edited(sheet, |sheet| edit(sheet, column))).collect()
}

fn exchanged_cells(sheet: &Sheet) -> Vec<Sheet> {
    let exchange = |column: usize| {
        each_pair(sheet, move |rows, a, b| {
            let cell = rows[a][column].clone();
            rows[a][column] = rows[b][column].clone();
            rows[b][column] = cell;
        })
    };
    (0..sheet.columns.len()).flat_map(exchange).collect()
}

/// Every sheet that differs from this one by one change of rows or columns, with the name of the change.
pub fn changed_rows(sheet: &Sheet) -> Vec<(String, Sheet)> {
    let of_change = |change: &RowChange| -> Vec<(String, Sheet)> {
        (change.instead)(sheet).into_iter().map(|changed| (format!("rows: {}", change.name), changed)).collect()
    };
    ROW_CHANGES.iter().flat_map(of_change).filter(|(_, changed)| changed != sheet).collect()
}
