//! [`Lattice`]: the levels of every column, prepared for grouping.

use super::super::{Levels, Task};

/// The levels of every column.
#[derive(Debug)]
pub(super) struct Lattice {
    pub(super) columns: Vec<Column>,
    n_rows: usize,
}

/// One column.
#[derive(Debug)]
pub(super) struct Column {
    /// The code of each folded row.
    pub(super) codes: Vec<u32>,
    /// Its levels that differ on the codes that occur, the finest first. At the last all are in one cell.
    pub(super) levels: Vec<Level>,
    all_levels: Levels,
}

/// One level of a column.
#[derive(Debug)]
pub(super) struct Level {
    /// Per code the number of its cell, among the cells that occur.
    pub(super) cell_of_code: Vec<u32>,
    /// How many cells occur.
    pub(super) n_cells: u32,
    /// Per code what its cell loses.
    pub(super) width_of_code: Vec<f64>,
    /// What the cells of all rows lose together.
    pub(super) loss: f64,
    /// Its number in the column's [`Levels`].
    number: usize,
}

impl Lattice {
    pub(super) fn new(task: &Task<'_>) -> Lattice {
        let n_rows = task.rows.len();
        let columns = (0..task.domains.len()).map(|column| Column::new(task, column)).collect();
        Lattice { columns, n_rows }
    }

    /// How many folded rows there are.
    pub(super) fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The vector of last levels.
    pub(super) fn top(&self) -> Vec<usize> {
        self.columns.iter().map(Column::top).collect()
    }

    /// What a row shows at a vector of levels, column by column.
    pub(super) fn shown<'l>(&'l self, levels: &'l [usize], row: u32) -> impl Iterator<Item = (u32, u32)> + 'l {
        self.columns.iter().zip(levels).map(move |(column, &level)| {
            column.all_levels.cell(column.levels[level].number, column.codes[row as usize])
        })
    }
}

impl Column {
    fn new(task: &Task<'_>, column: usize) -> Column {
        let domain = &task.domains[column];
        let codes: Vec<u32> = (0..task.rows.len() as u32).map(|row| task.rows.cells(row)[column]).collect();
        let mut weights = vec![0u64; domain.n_codes() as usize];
        for (row, &code) in codes.iter().enumerate() {
            weights[code as usize] += u64::from(task.rows.weight(row as u32));
        }
        let all_levels = Levels::of(domain);
        let mut levels: Vec<Level> = Vec::new();
        for number in 0..all_levels.n_levels() {
            let mut level = Level {
                cell_of_code: vec![0; weights.len()],
                n_cells: 0,
                width_of_code: vec![0.0; weights.len()],
                loss: 0.0,
                number,
            };
            let mut last = None;
            for code in (0..domain.n_codes()).filter(|&code| weights[code as usize] > 0) {
                let (lo, hi) = all_levels.cell(number, code);
                if last != Some(lo) {
                    level.n_cells += 1;
                    last = Some(lo);
                }
                let width = domain.width(lo, hi);
                level.cell_of_code[code as usize] = level.n_cells - 1;
                level.width_of_code[code as usize] = width;
                level.loss += width * weights[code as usize] as f64;
            }
            // Cells nest, so as many cells are the same cells, and a finer level shows more with them.
            if levels.last().is_none_or(|finer| level.n_cells < finer.n_cells) {
                levels.push(level);
            }
        }
        Column { codes, levels, all_levels }
    }

    /// The last level.
    pub(super) fn top(&self) -> usize {
        self.levels.len() - 1
    }
}
