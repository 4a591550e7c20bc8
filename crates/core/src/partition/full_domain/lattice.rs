//! [`Lattice`]: the levels of every column, and [`Grouping`]: folded rows by the cells they show, refined column by column.

use super::super::{Levels, Task};

/// The levels of every column.
#[derive(Debug)]
pub(super) struct Lattice {
    pub(super) columns: Vec<Column>,
}

/// One column.
#[derive(Debug)]
pub(super) struct Column {
    /// The code of each folded row.
    pub(super) codes: Vec<u32>,
    /// The levels of the column that differ on the codes that occur, the finest first. At the last level all codes are
    /// in one cell.
    pub(super) levels: Vec<Level>,
    all_levels: Levels,
}

/// One level of a column.
#[derive(Debug)]
pub(super) struct Level {
    /// For each code, the number of its cell, among the cells that occur.
    pub(super) cell_of_code: Vec<u32>,
    /// How many cells occur.
    pub(super) n_cells: u32,
    /// For each code, what its cell loses.
    pub(super) width_of_code: Vec<f64>,
    /// What the cells of all rows lose together.
    pub(super) loss: f64,
    /// The level's number in the column's [`Levels`].
    number: usize,
}

impl Lattice {
    pub(super) fn new(task: &Task<'_>) -> Lattice {
        Lattice { columns: (0..task.domains.len()).map(|column| Column::new(task, column)).collect() }
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
            // Cells nest, so a level with as many cells as a finer one has the same cells. Keep only the finer one,
            // because its labels show more.
            if levels.last().is_none_or(|finer| level.n_cells < finer.n_cells) {
                levels.push(level);
            }
        }
        Column { codes, levels, all_levels }
    }

    pub(super) fn top(&self) -> usize {
        self.levels.len() - 1
    }
}

/// Groups and cells are looked up in a table of all their pairs, if that table has at most this many entries per row.
const TABLE_PER_ROW: usize = 8;

/// Which group each folded row is in.
#[derive(Clone, Debug)]
pub(super) struct Grouping {
    pub(super) of_row: Vec<u32>,
    pub(super) n_groups: usize,
}

impl Grouping {
    pub(super) fn one(n_rows: usize) -> Grouping {
        Grouping { of_row: vec![0; n_rows], n_groups: 1 }
    }

    /// The same groups, told apart by a further column at a level.
    pub(super) fn refined(&self, column: &Column, level: &Level) -> Grouping {
        let n_cells = level.n_cells as usize;
        let pairs = self.of_row.iter().zip(&column.codes);
        let key = |(&group, &code): (&u32, &u32)| {
            u64::from(group) * u64::from(level.n_cells) + u64::from(level.cell_of_code[code as usize])
        };
        let mut n_groups = 0;
        let mut of_row;
        if self.n_groups * n_cells <= TABLE_PER_ROW * self.of_row.len() {
            let mut group_of_key = vec![u32::MAX; self.n_groups * n_cells];
            of_row = Vec::with_capacity(self.of_row.len());
            for pair in pairs {
                let group = &mut group_of_key[key(pair) as usize];
                if *group == u32::MAX {
                    *group = n_groups;
                    n_groups += 1;
                }
                of_row.push(*group);
            }
        } else {
            let mut keys: Vec<(u64, u32)> = pairs.map(key).zip(0..).collect();
            keys.sort_unstable();
            of_row = vec![0; self.of_row.len()];
            for same in keys.chunk_by(|a, b| a.0 == b.0) {
                same.iter().for_each(|&(_, row)| of_row[row as usize] = n_groups);
                n_groups += 1;
            }
        }
        Grouping { of_row, n_groups: n_groups as usize }
    }

    pub(super) fn weights(&self, of_rows: &[u32]) -> Vec<u64> {
        let mut weights = vec![0; self.n_groups];
        for (&group, &weight) in self.of_row.iter().zip(of_rows) {
            weights[group as usize] += u64::from(weight);
        }
        weights
    }

    /// The rows of each group, ascending.
    pub(super) fn lists(&self) -> Vec<Vec<u32>> {
        let mut lists: Vec<Vec<u32>> = vec![Vec::new(); self.n_groups];
        for (row, &group) in self.of_row.iter().enumerate() {
            lists[group as usize].push(row as u32);
        }
        lists
    }
}
