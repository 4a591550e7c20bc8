//! [`Grouping`]: folded rows by the cells they show in some columns, refined column by column.
//!
//! # Cost
//! linear in rows where groups and cells are few, else a sort

use super::lattice::{Column, Level};

/// Groups and cells are looked up in a table of all their pairs where it has at most so many entries per row.
const TABLE_PER_ROW: usize = 8;

/// Which group each folded row is in.
#[derive(Clone, Debug)]
pub(super) struct Grouping {
    pub(super) of_row: Vec<u32>,
    pub(super) n_groups: usize,
}

impl Grouping {
    /// All rows in one group.
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

    /// What each group weighs.
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
