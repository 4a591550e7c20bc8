//! Blocks: a spec may ask that only a limited number of rows is partitioned together.
//!
//! Rows are cut into blocks before they are folded, because a partitioner never parts a folded row. Each block is then
//! partitioned by itself, under rules compiled for all rows. Those rules measure against all rows, so a requirement that
//! every block's classes satisfy also holds for the whole release.
//!
//! # Guarantee
//! Blocks are ranges of persons in the order of the person column, whatever the order of the input. Each has at least the
//! asked number of rows, or all rows if there are fewer, and can satisfy the rules by itself. Folded rows of two blocks
//! are never one.
//! # Paper
//! `[EPS+12]` section 5.1, steps 1 and 3
//! # Deviations
//! Persons whose names are all whole numbers are ordered as numbers, others as texts. The last rows, too few for a
//! block of their own, go to the block before them. A block that does not satisfy the rules by itself is joined to the
//! next, the last one to those before it. The paper instead hides rows that can't be in a class of their block.

use std::num::NonZeroUsize;

use kohort_model::{Column, Table};
use rayon::prelude::*;

use crate::encode::{Encoded, Rows};
use crate::ranks::places;
use crate::requirement::{Rules, Tally};

/// Folds the rows that take part, block by block. Also returns where each block of folded rows ends. `size` is how many rows
/// make a block. A table that does not name its persons is a single block, for which no end is returned.
pub(crate) fn fold(
    table: &Table,
    encoded: &Encoded<'_>,
    rules: &Rules,
    kept: &[u32],
    size: Option<NonZeroUsize>,
) -> (Rows, Vec<u32>) {
    let (Some(size), Some(persons)) = (size, table.person_column()) else {
        return (encoded.fold(kept), Vec::new());
    };
    let rank = ranks(persons);
    let mut in_order = kept.to_vec();
    in_order.par_sort_unstable_by_key(|&row| (rank[persons.ids[row as usize] as usize], row));
    let mut blocks = join(rules, cut(rules, &in_order, size));
    blocks.par_iter_mut().for_each(|block| block.sort_unstable());
    let folded: Vec<Rows> = blocks.par_iter().map(|block| encoded.fold(block)).collect();
    let ends = folded.iter().scan(0, |end, rows| {
        *end += rows.len() as u32;
        Some(*end)
    });
    (Rows::in_blocks(&folded), ends.collect())
}

/// Cuts rows, which come person after person, into blocks that break only between persons.
pub(crate) fn cut(rules: &Rules, mut rows: &[u32], size: NonZeroUsize) -> Vec<Vec<u32>> {
    let mut blocks = Vec::new();
    while rows.len() >= 2 * size.get() {
        let begins = |&at: &usize| rules.person(rows[at - 1]) != rules.person(rows[at]);
        let end = (size.get()..rows.len()).find(begins).unwrap_or(rows.len());
        if rows.len() - end < size.get() {
            break;
        }
        let (block, others) = rows.split_at(end);
        blocks.push(block.to_vec());
        rows = others;
    }
    blocks.push(rows.to_vec());
    blocks
}

/// Joins blocks that don't satisfy the rules by themselves to their neighbours. If all rows together satisfy the rules,
/// every block then does.
pub(crate) fn join(rules: &Rules, blocks: Vec<Vec<u32>>) -> Vec<Vec<u32>> {
    let mut standing: Vec<Vec<u32>> = Vec::with_capacity(blocks.len());
    let mut open: Vec<u32> = Vec::new();
    let mut tally = Tally::new(rules);
    for block in blocks {
        block.iter().for_each(|&row| tally.add(row));
        open.extend(block);
        if tally.stands() {
            standing.push(std::mem::take(&mut open));
            tally.clear();
        }
    }
    while !open.is_empty() {
        let Some(mut before) = standing.pop() else { return vec![open] };
        before.iter().for_each(|&row| tally.add(row));
        before.append(&mut open);
        if tally.stands() { standing.push(before) } else { open = before }
    }
    standing
}

/// For each text of the person column, its rank.
fn ranks(persons: &Column) -> Vec<u32> {
    let numbers: Option<Vec<i128>> = persons.texts.iter().map(|text| text.parse().ok()).collect();
    let mut order: Vec<u32> = (0..persons.texts.len() as u32).collect();
    match numbers {
        // Two spellings of one number are two persons.
        Some(numbers) => order.par_sort_unstable_by_key(|&id| (numbers[id as usize], persons.texts.get(id))),
        None => order.par_sort_unstable_by_key(|&id| persons.texts.get(id)),
    }
    places(&order)
}

#[cfg(test)]
mod tests {
    use kohort_model::{Requirement, Role};

    use super::*;

    fn members(persons: &[&str], k: u32, size: usize) -> Vec<Vec<u32>> {
        let alike = Column::from_cells("age", Role::Quasi, persons.iter().map(|_| Some("40")));
        let persons_column = Column::from_cells("id", Role::Key, persons.iter().map(|&name| Some(name)));
        let columns = vec![alike, persons_column];
        let table = Table { name: "t".to_owned(), columns, n_rows: persons.len(), person: Some(1) };
        let encoded = Encoded::new(&table, &[0]).unwrap();
        let kept: Vec<u32> = (0..persons.len() as u32).collect();
        let rules = Rules::compile(&table, &[Requirement::K(k)], &kept).unwrap();
        let (rows, ends) = fold(&table, &encoded, &rules, &kept, NonZeroUsize::new(size));
        // All rows are alike, so that each block is one folded row.
        assert_eq!(ends, (1..=rows.len() as u32).collect::<Vec<u32>>());
        (0..rows.len() as u32).map(|row| rows.members(row).to_vec()).collect()
    }

    #[test]
    fn numbers_stand_by_value_and_other_names_by_their_letters() {
        assert_eq!(members(&["10", "9", "8", "11"], 2, 2), [vec![1, 2], vec![0, 3]]);
        assert_eq!(members(&["p10", "p9", "p8", "p11"], 2, 2), [vec![0, 3], vec![1, 2]]);
    }

    #[test]
    fn a_block_breaks_only_between_persons() {
        assert_eq!(members(&["1", "2", "2", "2", "3", "4"], 1, 2), [vec![0, 1, 2, 3], vec![4, 5]]);
    }

    #[test]
    fn a_block_that_can_not_stand_joins_its_neighbour() {
        assert_eq!(members(&["1", "2", "3", "4", "5"], 3, 2), [vec![0, 1, 2, 3, 4]]);
        assert_eq!(members(&["1", "1", "2", "3"], 2, 2), [vec![0, 1, 2, 3]]);
        assert_eq!(members(&["1", "1", "2", "2", "3", "4"], 2, 2), [vec![0, 1, 2, 3], vec![4, 5]]);
    }
}
