//! [`Classes`]: rows grouped by equal cells.
//!
//! # Cost
//! Each row becomes one word: the numbers of its cells in the high bits, its position in the low ones. The words are
//! sorted on all cores. That takes 8 bytes per row if a word fits 64 bits, otherwise 16, plus 4 for the result. If the
//! columns need more than 128 bits, they are grouped in stages.

use rayon::prelude::*;

use crate::count::cells::CellIds;

/// Rows grouped by equal cells.
pub(crate) struct Classes {
    /// Rows class by class, ascending within each.
    rows: Vec<u32>,
    /// Where each class begins in `rows`, and finally the end of the last class.
    starts: Vec<u32>,
}

impl Classes {
    /// Groups rows by their cells in all of these columns.
    pub(crate) fn group(columns: &[&CellIds<'_>], n_rows: usize) -> Self {
        let row_bits = bits(n_rows);
        let mut stage: Option<CellIds<'_>> = None;
        let mut pending: Vec<&CellIds<'_>> = Vec::new();
        let mut width = row_bits;
        for &column in columns {
            let column_bits = bits(column.n_numbers());
            if width + column_bits > u128::BITS {
                let done = Self::sort(&stage.iter().chain(pending.drain(..)).collect::<Vec<_>>(), n_rows, width);
                let numbers = CellIds::by_id(done.class_of_rows(), done.len());
                width = row_bits + bits(numbers.n_numbers());
                stage = Some(numbers);
            }
            pending.push(column);
            width += column_bits;
        }
        Self::sort(&stage.iter().chain(pending).collect::<Vec<_>>(), n_rows, width)
    }

    fn sort(columns: &[&CellIds<'_>], n_rows: usize, width: u32) -> Self {
        if width <= u64::BITS { sort_words::<u64>(columns, n_rows) } else { sort_words::<u128>(columns, n_rows) }
    }

    /// The number of classes.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The rows of a class, ascending.
    pub(crate) fn rows(&self, class: usize) -> &[u32] {
        &self.rows[self.starts[class] as usize..self.starts[class + 1] as usize]
    }

    /// The class of each row.
    pub(crate) fn class_of_rows(&self) -> Vec<u32> {
        let mut class_of_rows = vec![0; self.rows.len()];
        for class in 0..self.len() {
            for &row in self.rows(class) {
                class_of_rows[row as usize] = class as u32;
            }
        }
        class_of_rows
    }
}

/// An unsigned word that holds the numbers and the position of a row.
trait Word: Copy + Ord + Send + Sync {
    fn append(self, number: u32, bits: u32) -> Self;
    fn low(self, bits: u32) -> u32;
    fn high(self, bits: u32) -> Self;
    const ZERO: Self;
}

macro_rules! word {
    ($word:ty) => {
        impl Word for $word {
            const ZERO: Self = 0;
            fn append(self, number: u32, bits: u32) -> Self {
                (self << bits) | <$word>::from(number)
            }
            fn low(self, bits: u32) -> u32 {
                (self & ((1 << bits) - 1)) as u32
            }
            fn high(self, bits: u32) -> Self {
                self >> bits
            }
        }
    };
}
word!(u64);
word!(u128);

fn sort_words<W: Word>(columns: &[&CellIds<'_>], n_rows: usize) -> Classes {
    const BLOCK: usize = 4096;
    let row_bits = bits(n_rows);
    let mut words = vec![W::ZERO; n_rows];
    words.par_chunks_mut(BLOCK).enumerate().for_each(|(block, words)| {
        let first = block * BLOCK;
        for column in columns {
            let column_bits = bits(column.n_numbers());
            for (row, word) in words.iter_mut().enumerate() {
                *word = word.append(column.get(first + row), column_bits);
            }
        }
        for (row, word) in words.iter_mut().enumerate() {
            *word = word.append((first + row) as u32, row_bits);
        }
    });
    words.par_sort_unstable();
    let begins = |&at: &usize| at == 0 || words[at - 1].high(row_bits) != words[at].high(row_bits);
    let mut starts: Vec<u32> =
        (0..n_rows).into_par_iter().with_min_len(BLOCK).filter(begins).map(|at| at as u32).collect();
    starts.push(n_rows as u32);
    let rows = words.par_iter().with_min_len(BLOCK).map(|word| word.low(row_bits)).collect();
    Classes { rows, starts }
}

/// The number of bits that hold every number below `n`.
fn bits(n: usize) -> u32 {
    usize::BITS - n.saturating_sub(1).leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(columns: &[Vec<u32>], n_numbers: usize, n_rows: usize) -> Vec<Vec<u32>> {
        let columns: Vec<_> = columns.iter().map(|ids| CellIds::by_id(ids.as_slice(), n_numbers)).collect();
        let classes = Classes::group(&columns.iter().collect::<Vec<_>>(), n_rows);
        let mut groups: Vec<_> = (0..classes.len()).map(|class| classes.rows(class).to_vec()).collect();
        groups.sort();
        groups
    }

    #[test]
    fn equal_rows_share_a_class_whatever_the_width() {
        let columns = vec![vec![1, 2, 1, 2, 1], vec![0, 0, 0, 3, 4]];
        let expected = vec![vec![0, 2], vec![1], vec![3], vec![4]];
        for n_numbers in [5, 1 << 20, u32::MAX as usize - 1] {
            assert_eq!(groups(&columns, n_numbers, 5), expected);
        }
        let wide: Vec<Vec<u32>> = columns.iter().cycle().take(12).cloned().collect();
        assert_eq!(groups(&wide, u32::MAX as usize - 1, 5), expected);
    }

    #[test]
    fn without_columns_all_rows_look_the_same() {
        assert_eq!(groups(&[], 0, 3), vec![vec![0, 1, 2]]);
        assert_eq!(groups(&[vec![0]], 1, 1), vec![vec![0]]);
    }
}
