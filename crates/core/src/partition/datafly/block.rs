//! [`Block`]: the rows that are partitioned together.
//!
//! Equal rows of two blocks are in two classes, and a partitioner never parts folded rows. So blocks are cut before
//! rows are folded: each block is folded by itself and is a task of its own, under rules compiled for all rows. A
//! requirement that every block's classes satisfy holds for their union, because those rules measure against all rows.
//!
//! # Guarantee
//! [`Block::cut`]: blocks follow the order of the rows, break only between persons, and have at least the asked number of rows each
//! (all together, where there are fewer); [`Block::join`]: every block satisfies the rules, if all rows together do
//! # Paper
//! `[EPS+12]` section 5.1, steps 1 and 3
//! # Deviations
//! the last rows, too few for a block of their own, go to the block before them: the paper hides what can't stand in
//! its block, and a short one would often be that; a block that can't stand by itself is joined to the next, the last
//! to those before it, for the same reason

use std::num::NonZeroUsize;

use crate::requirement::{Rules, Tally};

/// How many rows are partitioned together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Block {
    /// All.
    #[default]
    All,
    /// So many, and those that follow of the last one's person.
    Size(NonZeroUsize),
}

impl Block {
    /// The blocks of these rows, which come in the order of their identifiers. Rows of one person that do not follow
    /// each other are taken to the person's first.
    pub fn cut(self, rules: &Rules, rows: &[u32]) -> Vec<Vec<u32>> {
        let Block::Size(size) = self else { return vec![rows.to_vec()] };
        let person = |row: u32| rules.person_of_row().map(|person_of_row| person_of_row[row as usize]);
        let rows = persons_together(rules, rows);
        let mut blocks = Vec::new();
        let mut rest = rows.as_slice();
        while rest.len() >= 2 * size.get() {
            let same_person = |&at: &usize| person(rest[at]).is_some() && person(rest[at - 1]) == person(rest[at]);
            let end = (size.get()..rest.len()).find(|at| !same_person(at)).unwrap_or(rest.len());
            if rest.len() - end < size.get() {
                break;
            }
            let (block, others) = rest.split_at(end);
            blocks.push(block.to_vec());
            rest = others;
        }
        blocks.push(rest.to_vec());
        blocks
    }

    /// Joins blocks that can't stand by themselves to their neighbours.
    pub fn join(rules: &Rules, blocks: Vec<Vec<u32>>) -> Vec<Vec<u32>> {
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
}

/// The rows, each person's together, persons in the order of their first rows.
fn persons_together(rules: &Rules, rows: &[u32]) -> Vec<u32> {
    let mut rows = rows.to_vec();
    let Some(person_of_row) = rules.person_of_row() else { return rows };
    let n_persons = person_of_row.iter().max().map_or(0, |&person| person as usize + 1);
    let mut first_position = vec![u32::MAX; n_persons];
    for (position, &row) in rows.iter().enumerate() {
        let first = &mut first_position[person_of_row[row as usize] as usize];
        *first = (position as u32).min(*first);
    }
    rows.sort_by_key(|&row| first_position[person_of_row[row as usize] as usize]);
    rows
}
