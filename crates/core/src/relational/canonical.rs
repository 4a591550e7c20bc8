//! Numbers for rows by what stands in them and below them.
//!
//! # Guarantee
//! two rows of one table have the same number exactly if their subtrees, as unordered trees of words, are equal; the
//! numbers follow the words, so neither the order of rows nor that of siblings shows
//! # Cost
//! one sort per table

use std::cmp::Ordering;

use kohort_model::NULL;
use rayon::prelude::*;

use super::forest::Kind;

/// The words of every row of one table, all of the same number.
#[derive(Debug, Default)]
pub(super) struct Words {
    pub(super) width: usize,
    /// `width` per row.
    pub(super) cells: Vec<u32>,
}

/// The numbers of one table's rows.
#[derive(Debug)]
pub(super) struct Numbers {
    /// Per row, [`NULL`] for one that takes no part.
    pub(super) of_row: Vec<u32>,
    /// The rows that take part, by number.
    pub(super) in_order: Vec<u32>,
}

/// Rows of a child table by the row they hang off.
#[derive(Debug)]
pub(super) struct Hanging {
    pub(super) starts: Vec<u32>,
    pub(super) rows: Vec<u32>,
}

impl Hanging {
    /// `in_order` are the rows that take part; those of one parent keep that order.
    pub(super) fn new(n_parents: usize, parents: &[u32], in_order: &[u32]) -> Hanging {
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
        Hanging { starts, rows }
    }

    pub(super) fn of(&self, parent: u32) -> &[u32] {
        &self.rows[self.starts[parent as usize] as usize..self.starts[parent as usize + 1] as usize]
    }
}

/// Numbers the rows of all tables. `parents` says per row what it hangs off, [`NULL`] for a row that takes no part;
/// rows below one that takes no part must take none either.
pub(super) fn number(kinds: &[Kind], parents: &[Vec<u32>], words: &[Words]) -> Vec<Numbers> {
    let mut numbers: Vec<Option<Numbers>> = kinds.iter().map(|_| None).collect();
    for kind in (0..kinds.len()).rev() {
        let n_rows = parents[kind].len();
        let below: Vec<(Hanging, &Numbers)> = kinds[kind]
            .children
            .iter()
            .filter_map(|&child| {
                let of_child = numbers[child].as_ref()?;
                Some((Hanging::new(n_rows, &parents[child], &of_child.in_order), of_child))
            })
            .collect();
        numbers[kind] = Some(number_one(&parents[kind], &words[kind], &below));
    }
    numbers.into_iter().flatten().collect()
}

fn number_one(parents: &[u32], words: &Words, below: &[(Hanging, &Numbers)]) -> Numbers {
    let width = words.width;
    let word = |row: u32, position: usize| match position < width {
        true => u64::from(words.cells[row as usize * width + position]),
        false => 0,
    };
    // The first two words lie beside the row, so that most comparisons touch nothing else.
    let mut sorted: Vec<(u64, u32)> = (0..parents.len() as u32)
        .into_par_iter()
        .filter(|&row| parents[row as usize] != NULL)
        .map(|row| (word(row, 0) << 32 | word(row, 1), row))
        .collect();
    let rest = |row: u32| &words.cells[row as usize * width..][2.min(width)..width];
    let compare = |a: &(u64, u32), b: &(u64, u32)| {
        let own = a.0.cmp(&b.0).then_with(|| rest(a.1).cmp(rest(b.1)));
        below.iter().fold(own, |order, (hanging, numbers)| {
            order.then_with(|| {
                let (a, b) = (hanging.of(a.1), hanging.of(b.1));
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
