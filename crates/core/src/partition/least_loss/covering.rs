//! [`Covering`]: which classes show a box that holds a row.
//!
//! For each part of a column there is a set of bits, one for each class whose interval reaches into the part. The classes
//! that may hold a row are those in the sets of all its cells; a column with few codes has a part for each code.

use crate::encode::bounds::holds;
use crate::partition::Task;

/// Columns have at most this many parts.
const MOST_PARTS: usize = 128;

/// Sets of classes for each part of each column.
pub(super) struct Covering<'t> {
    task: &'t Task<'t>,
    /// For each column, the number of codes in a part and the first of its sets.
    columns: Vec<(u32, usize)>,
    n_words: usize,
    bits: Vec<u64>,
    /// For each class and column, the codes that the class shows.
    shown: Vec<(u32, u32)>,
}

impl<'t> Covering<'t> {
    /// Room for this many classes.
    pub(super) fn new(task: &'t Task<'t>, n_classes: usize) -> Covering<'t> {
        let mut n_sets = 0;
        let mut column = |n_codes: u32| {
            let n_codes_in_part = n_codes.div_ceil(MOST_PARTS as u32).max(1);
            let first = n_sets;
            n_sets += n_codes.div_ceil(n_codes_in_part) as usize;
            (n_codes_in_part, first)
        };
        let columns: Vec<_> = task.domains.iter().map(|domain| column(domain.n_codes())).collect();
        let n_words = n_classes.div_ceil(64);
        let shown = vec![(0, 0); n_classes * columns.len()];
        Covering { task, columns, n_words, bits: vec![0; n_sets * n_words], shown }
    }

    /// Adds a class with the smallest box around its rows.
    pub(super) fn add(&mut self, class: u32, bounds: &[(u32, u32)]) {
        let n_columns = self.columns.len();
        for (column, (&(lo, hi), domain)) in bounds.iter().zip(self.task.domains).enumerate() {
            self.shown[class as usize * n_columns + column] = domain.hull(lo, hi);
        }
        self.flip(class);
    }

    /// Takes a class out again.
    pub(super) fn remove(&mut self, class: u32) {
        self.flip(class);
    }

    fn flip(&mut self, class: u32) {
        let (word, bit) = (class as usize / 64, 1 << (class % 64));
        let n_columns = self.columns.len();
        for (column, &(n_codes, first)) in self.columns.iter().enumerate() {
            let (lo, hi) = self.shown[class as usize * n_columns + column];
            for part in lo / n_codes..=hi / n_codes {
                self.bits[(first + part as usize) * self.n_words + word] ^= bit;
            }
        }
    }

    /// Calls `with` for each class that holds a row, in ascending order. All classes are below `n_classes`.
    #[inline]
    pub(super) fn each(&self, cells: &[u32], n_classes: usize, mut with: impl FnMut(u32)) {
        let n_words = n_classes.div_ceil(64);
        let n_columns = self.columns.len();
        let set = |column: usize| {
            let (n_codes, first) = self.columns[column];
            (first + (cells[column] / n_codes) as usize) * self.n_words
        };
        for first_word in (0..n_words).step_by(8) {
            let n = (n_words - first_word).min(8);
            let mut words = [u64::MAX; 8];
            for column in 0..n_columns {
                let bits = &self.bits[set(column) + first_word..][..n];
                words.iter_mut().zip(bits).for_each(|(word, bits)| *word &= bits);
            }
            for (word, mut bits) in words.into_iter().take(n).enumerate() {
                while bits != 0 {
                    let class = ((first_word + word) * 64) as u32 + bits.trailing_zeros();
                    bits &= bits - 1;
                    if holds(&self.shown[class as usize * n_columns..][..n_columns], cells) {
                        with(class);
                    }
                }
            }
        }
    }
}
