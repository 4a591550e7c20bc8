//! [`Rows`]: the quasi cells of a table as codes, equal rows folded to weighted ones.
//!
//! # Guarantee
//! Folded rows are distinct and in ascending order of their codes, block by block if there are blocks. The members
//! of each are in the order of the table. So nothing that is computed from `Rows` depends on the order of the input.
//! # Cost
//! one parallel sort of rows packed to as few bits as their codes need

use rayon::prelude::*;

use super::bounds;
use super::pack::{Layout, Packed};
use crate::lists::Lists;

/// Folded rows: distinct quasi rows, and which rows of the table each stands for.
#[derive(Clone, Debug)]
pub struct Rows {
    n_columns: usize,
    /// The codes of the first row, one for each column, then those of the second row, and so on.
    cells: Vec<u32>,
    /// For each folded row, the rows of the table it stands for.
    members: Lists,
}

impl Rows {
    /// Folds the rows of a table. `code(column, row)` gives a cell, `n_codes` is the number of codes of each column, and
    /// `kept` lists the rows that take part.
    pub fn fold(n_codes: &[u32], kept: &[u32], code: impl Fn(usize, u32) -> u32 + Sync) -> Rows {
        let layout = Layout::new(n_codes);
        match layout.words() {
            0..=1 => Self::fold_packed::<1>(&layout, kept, code),
            2 => Self::fold_packed::<2>(&layout, kept, code),
            3..=4 => Self::fold_packed::<4>(&layout, kept, code),
            5..=16 => Self::fold_packed::<16>(&layout, kept, code),
            _ => Self::fold_wide(n_codes.len(), kept, code),
        }
    }

    /// Folded rows, given by their cells and members. Rows with equal cells are not folded again.
    pub(crate) fn given<C: AsRef<[u32]>, M: IntoIterator<Item = u32>>(
        n_columns: usize,
        rows: impl IntoIterator<Item = (C, M)>,
    ) -> Rows {
        let mut given = Rows { n_columns, cells: Vec::new(), members: Lists::default() };
        for (cells, members) in rows {
            debug_assert_eq!(cells.as_ref().len(), n_columns);
            given.cells.extend_from_slice(cells.as_ref());
            given.members.push(members);
        }
        given
    }

    /// The same rows, where each row whose members belong to several persons becomes one row per person.
    pub(crate) fn parted(&self, person: impl Fn(u32) -> u32) -> Rows {
        let mut parted = Vec::with_capacity(self.len());
        for row in 0..self.len() as u32 {
            let mut members = self.members(row).to_vec();
            members.sort_by_key(|&member| person(member));
            let by_person = members.chunk_by(|&a, &b| person(a) == person(b));
            parted.extend(by_person.map(|members| (self.cells(row), members.to_vec())));
        }
        Rows::given(self.n_columns, parted)
    }

    fn fold_packed<const W: usize>(layout: &Layout, kept: &[u32], code: impl Fn(usize, u32) -> u32 + Sync) -> Rows {
        let pack = |&row: &u32| Packed { words: layout.pack(|column| code(column, row)), row, weight: 1 };
        let mut packed: Vec<Packed<W>> = kept.par_iter().map(pack).collect();
        packed.par_sort_unstable_by(|a, b| a.words.cmp(&b.words));
        let n_columns = layout.n_columns();
        let starts = run_starts(packed.len(), |a, b| packed[a].words == packed[b].words);
        let mut cells = vec![0; (starts.len() - 1) * n_columns];
        if n_columns > 0 {
            cells.par_chunks_mut(n_columns).zip(starts.par_iter()).for_each(|(row, &start)| {
                for (column, cell) in row.iter_mut().enumerate() {
                    *cell = layout.code(&packed[start as usize].words, column);
                }
            });
        }
        let mut members: Vec<u32> = packed.par_iter().map(|row| row.row).collect();
        // Sorting by cells alone is faster; the few equal rows are put in order afterwards.
        for run in starts.windows(2).filter(|run| run[1] - run[0] > 1) {
            members[run[0] as usize..run[1] as usize].sort_unstable();
        }
        Rows { n_columns, cells, members: Lists::new(members, starts) }
    }

    /// Does the same for rows that are too wide to be packed.
    fn fold_wide(n_columns: usize, kept: &[u32], code: impl Fn(usize, u32) -> u32 + Sync) -> Rows {
        let mut unfolded = vec![0u32; kept.len() * n_columns];
        unfolded.par_chunks_mut(n_columns).zip(kept.par_iter()).for_each(|(cells, &row)| {
            for (column, cell) in cells.iter_mut().enumerate() {
                *cell = code(column, row);
            }
        });
        let cells_of = |position: u32| &unfolded[position as usize * n_columns..][..n_columns];
        let mut order: Vec<u32> = (0..kept.len() as u32).collect();
        order.par_sort_unstable_by(|&a, &b| cells_of(a).cmp(cells_of(b)).then(a.cmp(&b)));
        let starts = run_starts(order.len(), |a, b| cells_of(order[a]) == cells_of(order[b]));
        let members = order.iter().map(|&position| kept[position as usize]).collect();
        let firsts = starts[..starts.len() - 1].iter();
        let cells = firsts.flat_map(|&start| cells_of(order[start as usize]).iter().copied()).collect();
        Rows { n_columns, cells, members: Lists::new(members, starts) }
    }

    /// The folded rows of all blocks, one block after the other. Equal rows of different blocks are not folded together.
    pub fn in_blocks(blocks: &[Rows]) -> Rows {
        let n_columns = blocks.first().map_or(0, Rows::n_columns);
        let mut all = Rows { n_columns, cells: Vec::new(), members: Lists::default() };
        for block in blocks {
            all.cells.extend_from_slice(&block.cells);
            all.members.append(&block.members);
        }
        all
    }

    /// Folded rows with these cells and weights. Their members are numbered one after the other.
    #[cfg(test)]
    pub(crate) fn from_folded(n_columns: usize, cells: &[u32], weights: &[u32]) -> Rows {
        let mut end = 0;
        let mut next = |weight: u32| {
            end += weight;
            end - weight..end
        };
        Rows::given(n_columns, cells.chunks(n_columns).zip(weights).map(|(cells, &weight)| (cells, next(weight))))
    }

    /// Only these rows, in this order.
    pub(crate) fn part(&self, rows: &[u32]) -> Rows {
        Rows::given(self.n_columns, rows.iter().map(|&row| (self.cells(row), self.members(row).iter().copied())))
    }

    /// The same rows, with each member replaced by the members of that row of `inner`.
    pub(crate) fn through(&self, inner: &Rows) -> Rows {
        let members = self.members.iter().map(|members| members.iter().flat_map(|&row| inner.members(row)).copied());
        Rows { n_columns: self.n_columns, cells: self.cells.clone(), members: members.collect() }
    }

    /// The members of each row.
    pub(crate) fn into_members(self) -> Lists {
        self.members
    }

    /// How many quasi columns there are.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// How many folded rows there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many rows of the table all folded rows together stand for.
    pub fn n_members(&self) -> usize {
        self.members.items().len()
    }

    /// The codes of a folded row, one for each column.
    #[inline]
    pub fn cells(&self, row: u32) -> &[u32] {
        &self.cells[row as usize * self.n_columns..][..self.n_columns]
    }

    /// How many rows of the table a folded row stands for.
    #[inline]
    pub fn weight(&self, row: u32) -> u32 {
        self.members.len_of(row as usize)
    }

    /// How many rows of the table these folded rows stand for.
    pub fn weight_of(&self, rows: &[u32]) -> u64 {
        rows.iter().map(|&row| u64::from(self.weight(row))).sum()
    }

    /// The smallest box that holds these folded rows: the first and last code per column.
    pub fn bounds(&self, rows: &[u32]) -> Vec<(u32, u32)> {
        let mut bounds = vec![bounds::EMPTY; self.n_columns];
        rows.iter().for_each(|&row| bounds::include(&mut bounds, self.cells(row)));
        bounds
    }

    /// The rows of the table a folded row stands for.
    #[inline]
    pub fn members(&self, row: u32) -> &[u32] {
        self.members.get(row as usize)
    }
}

/// Where each run of equal neighbours starts, followed by the end of the last run.
fn run_starts(n: usize, equal: impl Fn(usize, usize) -> bool + Sync) -> Vec<u32> {
    let mut starts: Vec<u32> = (0..n as u32)
        .into_par_iter()
        .filter(|&position| position == 0 || !equal(position as usize - 1, position as usize))
        .collect();
    starts.push(n as u32);
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn folding_keeps_every_row_once_under_its_own_cells(
            n_codes in prop::collection::vec(1u32..2000, 1..120),
            seed in any::<u64>(),
            n_rows in 0u32..60,
        ) {
            // Few distinct cells, so that rows do repeat.
            let code = |column: usize, row: u32| {
                (seed.wrapping_mul(u64::from(row % 7) + 1).rotate_left(column as u32) % 3) as u32 % n_codes[column]
            };
            let kept: Vec<u32> = (0..n_rows).filter(|row| row % 5 != 3).collect();
            let rows = Rows::fold(&n_codes, &kept, code);
            let mut expected: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
            for &row in &kept {
                expected.entry((0..n_codes.len()).map(|column| code(column, row)).collect()).or_default().push(row);
            }
            let found: Vec<(Vec<u32>, Vec<u32>)> =
                (0..rows.len() as u32).map(|row| (rows.cells(row).to_vec(), rows.members(row).to_vec())).collect();
            prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
