//! Rows and domains that the tests of several partitioners share.

use kohort_model::{Column, Role, ValueType};

use crate::encode::{Domain, Rows};

/// Codes per column.
pub(super) const N_CODES: u32 = 40;

/// Domains of this many columns, numbers and texts by turns.
pub(super) fn domains(n_columns: usize) -> Vec<Domain> {
    let texts: Vec<String> = (0..N_CODES).map(|number| format!("{number:02}")).collect();
    (0..n_columns)
        .map(|column| {
            let value_type = if column % 2 == 0 { ValueType::Integer } else { ValueType::Text };
            let cells = texts.iter().map(|text| Some(text.as_str()));
            Domain::of(&Column::from_cells("c", Role::Quasi, cells).typed(value_type)).unwrap().0
        })
        .collect()
}

/// Folds rows given as codes.
pub(super) fn fold(cells: &[Vec<u32>]) -> Rows {
    let kept: Vec<u32> = (0..cells.len() as u32).collect();
    Rows::fold(&vec![N_CODES; cells[0].len()], &kept, |column, row| cells[row as usize][column])
}
