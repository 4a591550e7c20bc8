//! Numbers for rows by their own words and those of all rows below them.
//!
//! # Guarantee
//! two rows of one table have the same number exactly if their subtrees, as unordered trees of words, are equal; the
//! numbers follow the words, so neither the order of rows nor that of siblings shows
//! # Cost
//! one sort per table

use std::cmp::Ordering;
use std::collections::VecDeque;

use kohort_model::NULL;
use rayon::prelude::*;

use super::forest::Kind;
use crate::lists::Lists;

/// The words of every row of one table. All rows have the same number of words.
#[derive(Debug, Default)]
pub(super) struct Words {
    pub(super) width: usize,
    /// `width` per row.
    cells: Vec<u32>,
}

impl Words {
    /// `fill` writes the words of a row.
    pub(super) fn new(n_rows: usize, width: usize, fill: impl Fn(usize, &mut [u32]) + Sync) -> Words {
        let mut cells = vec![0; n_rows * width];
        if width > 0 {
            cells.par_chunks_mut(width).enumerate().for_each(|(row, cells)| fill(row, cells));
        }
        Words { width, cells }
    }

    /// The words of a row.
    pub(super) fn of_row(&self, row: u32) -> &[u32] {
        &self.cells[row as usize * self.width..][..self.width]
    }
}

/// The numbers of one table's rows.
#[derive(Debug)]
pub(super) struct Numbers {
    /// The number of each row; [`NULL`] for a row that takes no part.
    pub(super) of_row: Vec<u32>,
    /// The rows that take part, by number.
    pub(super) in_order: Vec<u32>,
}

/// For each row of a table, its rows in a child table. `in_order` are the rows that take part; rows of one parent keep
/// that order.
pub(super) fn hanging(n_parents: usize, parents: &[u32], in_order: &[u32]) -> Lists {
    let mut starts = vec![0u32; n_parents + 1];
    for &row in in_order {
        starts[parents[row as usize] as usize + 1] += 1;
    }
    for parent in 0..n_parents {
        starts[parent + 1] += starts[parent];
    }
    let mut next = starts.clone();
    let mut rows = vec![0; in_order.len()];
    for &row in in_order {
        let place = &mut next[parents[row as usize] as usize];
        rows[*place as usize] = row;
        *place += 1;
    }
    Lists::new(rows, starts)
}

/// Numbers the rows of all tables. `parents` gives the parent row of each row, [`NULL`] for a row that takes no part.
/// Rows below a row that takes no part must take none either.
pub(super) fn number(kinds: &[Kind], parents: &[Vec<u32>], words: &[Words]) -> Vec<Numbers> {
    // The numbers of the kinds that are done. Kinds are visited from the last one on, because children come after their
    // parents.
    let mut numbers: VecDeque<Numbers> = VecDeque::new();
    for kind in (0..kinds.len()).rev() {
        let below = |&child: &usize| {
            let of_child = &numbers[child - kind - 1];
            (hanging(parents[kind].len(), &parents[child], &of_child.in_order), of_child)
        };
        let below: Vec<(Lists, &Numbers)> = kinds[kind].children.iter().map(below).collect();
        let of_kind = number_one(&parents[kind], &words[kind], &below);
        numbers.push_front(of_kind);
    }
    numbers.into()
}

fn number_one(parents: &[u32], words: &Words, below: &[(Lists, &Numbers)]) -> Numbers {
    let word = |row: u32, position: usize| words.of_row(row).get(position).map_or(0, |&word| u64::from(word));
    // The first two words lie beside the row, so that most comparisons touch nothing else.
    let mut sorted: Vec<(u64, u32)> = (0..parents.len() as u32)
        .into_par_iter()
        .filter(|&row| parents[row as usize] != NULL)
        .map(|row| (word(row, 0) << 32 | word(row, 1), row))
        .collect();
    let rest = |row: u32| &words.of_row(row)[2.min(words.width)..];
    let compare = |a: &(u64, u32), b: &(u64, u32)| {
        let own = a.0.cmp(&b.0).then_with(|| rest(a.1).cmp(rest(b.1)));
        below.iter().fold(own, |order, (hanging, numbers)| {
            order.then_with(|| {
                let (a, b) = (hanging.get(a.1 as usize), hanging.get(b.1 as usize));
                let number = |row: &u32| numbers.of_row[*row as usize];
                a.iter().map(number).cmp(b.iter().map(number))
            })
        })
    };
    sorted.par_sort_unstable_by(|a, b| compare(a, b).then(a.1.cmp(&b.1)));
    let mut of_row = vec![NULL; parents.len()];
    let mut number = 0;
    for (position, entry) in sorted.iter().enumerate() {
        if position > 0 && compare(&sorted[position - 1], entry) != Ordering::Equal {
            number += 1;
        }
        of_row[entry.1 as usize] = number;
    }
    Numbers { of_row, in_order: sorted.into_iter().map(|(_, row)| row).collect() }
}
