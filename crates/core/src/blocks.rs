//! Rows in blocks: a spec may ask that not the whole table, but so many rows at a time are partitioned together.
//!
//! # Guarantee
//! blocks are ranges of persons in the order of the person column, whatever the order of the input; each can satisfy
//! the rules by itself; folded rows of two blocks are never one
//! # Deviations
//! persons whose names are all whole numbers stand in the order of the numbers, others in the order of the texts

use std::num::NonZeroUsize;

use kohort_model::{Column, Table};
use rayon::prelude::*;

use crate::encode::{Encoded, Rows};
use crate::partition::Block;
use crate::requirement::Rules;

/// Folded rows and where each of their blocks ends.
pub(crate) struct Blocks {
    pub(crate) rows: Rows,
    /// Empty where all rows are one block.
    pub(crate) ends: Vec<u32>,
}

/// Folds the rows that take part, block by block; `size` is how many rows make a block. A table that does not name its
/// persons is one block.
pub(crate) fn fold(
    table: &Table,
    encoded: &Encoded<'_>,
    rules: &Rules,
    kept: &[u32],
    size: Option<NonZeroUsize>,
) -> Blocks {
    let (Some(size), Some(persons)) = (size, table.person_column()) else {
        return Blocks { rows: encoded.fold(kept), ends: Vec::new() };
    };
    let rank = ranks(persons);
    let mut in_order = kept.to_vec();
    in_order.par_sort_unstable_by_key(|&row| (rank[persons.ids[row as usize] as usize], row));
    let mut blocks = Block::join(rules, Block::Size(size).cut(rules, &in_order));
    blocks.par_iter_mut().for_each(|block| block.sort_unstable());
    let folded: Vec<Rows> = blocks.par_iter().map(|block| encoded.fold(block)).collect();
    let ends = folded.iter().scan(0, |end, rows| {
        *end += rows.len() as u32;
        Some(*end)
    });
    Blocks { ends: ends.collect(), rows: Rows::in_blocks(&folded) }
}

/// Per text of the person column its place in their order.
fn ranks(persons: &Column) -> Vec<u32> {
    let numbers: Option<Vec<i128>> = persons.texts.iter().map(|text| text.parse().ok()).collect();
    let mut order: Vec<u32> = (0..persons.texts.len() as u32).collect();
    match numbers {
        // Two spellings of one number are two persons.
        Some(numbers) => order.par_sort_unstable_by_key(|&id| (numbers[id as usize], persons.texts.get(id))),
        None => order.par_sort_unstable_by_key(|&id| persons.texts.get(id)),
    }
    let mut ranks = vec![0; order.len()];
    for (rank, &id) in order.iter().enumerate() {
        ranks[id as usize] = rank as u32;
    }
    ranks
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
        let Blocks { rows, ends } = fold(&table, &encoded, &rules, &kept, NonZeroUsize::new(size));
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
