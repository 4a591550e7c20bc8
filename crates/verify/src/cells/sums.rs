//! [`RowSum`]: rows as a sum of keyed hashes, which does not depend on their order.

use std::hash::{BuildHasher, RandomState};

use kohort_model::{Cells, NULL, ReleasedTable, Table, Texts};
use rayon::prelude::*;

/// Random keys, so that no input can be made whose rows look like others.
#[derive(Debug)]
pub(super) struct Keys(RandomState, RandomState);

/// The number of rows, and the sum of their hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RowSum {
    pub(super) n_rows: u64,
    sum: u128,
}

impl RowSum {
    pub(super) fn add(&mut self, other: &RowSum) {
        self.n_rows += other.n_rows;
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

/// The hashes of a column's texts, and of null.
struct HashedColumn<'a> {
    of_texts: Vec<u128>,
    of_null: u128,
    ids: &'a [u32],
    /// The place of each row's id, if the rows are a selection.
    rows: Option<&'a [u32]>,
}

impl HashedColumn<'_> {
    fn get(&self, row: usize) -> u128 {
        let place = self.rows.map_or(row, |rows| rows[row] as usize);
        match self.ids[place] {
            NULL => self.of_null,
            id => self.of_texts[id as usize],
        }
    }
}

impl Keys {
    pub(super) fn random() -> Keys {
        Keys(RandomState::new(), RandomState::new())
    }

    /// The sum of a table's rows. If they belong to persons of these numbers, the numbers are parts of the rows.
    pub(super) fn sum_of_table(&self, table: &Table, persons: Option<&[u32]>) -> RowSum {
        let columns = table.columns.iter().map(|column| self.column(&column.texts, &column.ids, None));
        self.sum(table.n_rows, &columns.collect::<Vec<_>>(), persons)
    }

    /// The sum of released rows, as readers see them, each with the number of its person.
    pub(super) fn sum_of_release(&self, released: &ReleasedTable, private: &Table, persons: Option<&[u32]>) -> RowSum {
        let columns = released.columns.iter().map(|column| match &column.cells {
            Cells::Recoded { labels, ids } => self.column(labels, ids, None),
            Cells::Copied => {
                let source = &private.columns[column.source];
                self.column(&source.texts, &source.ids, Some(&released.rows))
            }
            // Numbers have no texts. A release of one table has none, because no other table points to it.
            Cells::Surrogate { ids } => self.column(&Texts::new(), ids, None),
        });
        self.sum(released.rows.len(), &columns.collect::<Vec<_>>(), persons)
    }

    /// The hash of a text.
    pub(super) fn of_text(&self, text: &str) -> u128 {
        u128::from(self.0.hash_one(text)) << 64 | u128::from(self.1.hash_one(text))
    }

    fn column<'a>(&self, texts: &Texts, ids: &'a [u32], rows: Option<&'a [u32]>) -> HashedColumn<'a> {
        let hash = |text: Option<&str>| u128::from(self.0.hash_one(text)) << 64 | u128::from(self.1.hash_one(text));
        let of_texts = (0..texts.len() as u32).into_par_iter().with_min_len(1 << 10);
        HashedColumn {
            of_texts: of_texts.map(|id| hash(Some(texts.get(id)))).collect(),
            of_null: hash(None),
            ids,
            rows,
        }
    }
    fn sum(&self, n_rows: usize, columns: &[HashedColumn<'_>], persons: Option<&[u32]>) -> RowSum {
        /// An odd number whose bits are those of the golden ratio.
        const SPREAD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
        let of_person = |number: u32| u128::from(self.0.hash_one(number)) << 64 | u128::from(self.1.hash_one(number));
        let of_row = |row: usize| {
            let cells = columns.iter().map(|column| column.get(row));
            let cells = cells.chain(persons.map(|persons| of_person(persons[row])));
            let mixed = cells.fold(SPREAD, |hash, cell| (hash ^ cell).wrapping_mul(SPREAD).rotate_left(53));
            (mixed ^ mixed >> 64).wrapping_mul(SPREAD)
        };
        let rows = (0..n_rows).into_par_iter().with_min_len(1 << 12);
        RowSum { n_rows: n_rows as u64, sum: rows.map(of_row).reduce(|| 0, u128::wrapping_add) }
    }
}
