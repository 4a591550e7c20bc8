//! [`Index`]: finds private persons by the cells of all their rows.
//!
//! A released tree fits a private one only if each of its rows covers some row of the person. So only persons who have
//! a row in the boxes of the most selective released rows need to be compared with it.
//! # Cost
//! One tree of points per table. Private rows in a box are counted once per look, and listed as bits for at most
//! [`MOST_BOXES`] boxes of each released person.

use rayon::prelude::*;

use super::against::{PrivateRows, TableSides};
use super::embedding::{FitCells, Trees};
use super::shape::Shape;
use crate::count::grouping::Classes;
use crate::origins::candidates::PointTree;

/// The largest number of boxes of a released person that are searched.
const MOST_BOXES: usize = 6;

/// If there are at most this many candidates, no further box is searched.
const FEW: usize = 32;

/// The private looks that a released look may have come from.
pub(crate) enum Candidates {
    /// The looks, ascending.
    List(Vec<u32>),
    /// One bit for each look.
    Bits(Vec<u64>),
}

impl Candidates {
    /// The number of candidates.
    pub(crate) fn len(&self) -> usize {
        match self {
            Candidates::List(list) => list.len(),
            Candidates::Bits(bits) => count(bits),
        }
    }

    /// The candidates whose bit is not set, ascending.
    pub(crate) fn without<'a>(&'a self, bits: &'a [u64]) -> Box<dyn Iterator<Item = u32> + 'a> {
        match self {
            Candidates::List(list) => {
                Box::new(list.iter().copied().filter(|&look| bits[look as usize / 64] >> (look % 64) & 1 == 0))
            }
            Candidates::Bits(own) => {
                Box::new(own.iter().zip(bits).enumerate().flat_map(|(at, (own, bits))| ones(at, own & !bits)))
            }
        }
    }
}

fn count(bits: &[u64]) -> usize {
    bits.iter().map(|word| word.count_ones() as usize).sum()
}

/// The numbers of the bits that are set in the word at position `at`.
fn ones(at: usize, mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        (word != 0).then(|| {
            let bit = word.trailing_zeros();
            word &= word - 1;
            at as u32 * 64 + bit
        })
    })
}

/// An index of private persons by the cells of their rows.
pub(crate) struct Index<'a> {
    cells: &'a [FitCells<'a>],
    released: &'a Trees,
    /// For each table, its private rows by copied and quasi cells.
    trees: Vec<PointTree>,
    /// For each table and private row, the look of its person.
    looks: Vec<Vec<u32>>,
    /// For each table and released look, how many private rows are in its box.
    counts: Vec<Vec<usize>>,
    /// For each table, how many looks its persons have.
    n_looks: Vec<usize>,
}

impl<'a> Index<'a> {
    pub(crate) fn new(
        sides: &TableSides<'_>,
        cells: &'a [FitCells<'a>],
        private: &PrivateRows,
        released: &'a Trees,
        private_looks: &[Classes],
    ) -> Self {
        let shape = sides.shape;
        let persons = private.forest.persons(shape);
        let mut index = Index {
            cells,
            released,
            trees: Vec::with_capacity(shape.n_tables()),
            looks: Vec::with_capacity(shape.n_tables()),
            counts: Vec::with_capacity(shape.n_tables()),
            n_looks: (0..shape.n_tables()).map(|table| private_looks[shape.root(table)].len()).collect(),
        };
        for table in 0..shape.n_tables() {
            let rows = &private.rows[table];
            let mut coordinates = Vec::with_capacity(rows.len() * (cells[table].quasi.len() + 1));
            for &row in rows {
                coordinates.push(cells[table].private[row as usize]);
                let quasi = cells[table].quasi.iter();
                coordinates.extend(quasi.map(|(runs, _, column)| runs.position(column.ids[row as usize])));
            }
            index.trees.push(PointTree::new(cells[table].quasi.len() + 1, coordinates, rows.len()));
            let look_of_person = private_looks[shape.root(table)].class_of_rows();
            index.looks.push(persons[table].iter().map(|&person| look_of_person[person as usize]).collect());
            let count = |look: u32| index.trees[table].count(&index.sides(table, look));
            let counts = (0..released.n_looks(table) as u32).into_par_iter().map(count).collect();
            index.counts.push(counts);
        }
        index
    }

    /// The box of the row of a released look.
    fn sides(&self, table: usize, look: u32) -> Vec<(u32, u32)> {
        let row = self.released.row(table, look);
        let group = self.cells[table].released[row];
        let quasi = self.cells[table].quasi.iter().map(|(runs, public, _)| runs.run(public.ids[row]));
        std::iter::once((group, group + 1)).chain(quasi).collect()
    }

    /// For each released look of a person table, the private looks that have a row in each of its most selective boxes.
    pub(crate) fn candidates(&self, shape: &Shape, root: usize) -> Vec<Candidates> {
        let n_words = self.n_looks[root].div_ceil(64);
        let of_look = |look: u32| {
            let mut nodes = self.released.nodes(shape, root, look);
            let count = |&(table, look): &(usize, u32)| (self.counts[table][look as usize], table, look);
            nodes.sort_unstable_by_key(count);
            nodes.dedup();
            let mut sieved: Option<Vec<u64>> = None;
            for &(table, look) in nodes.iter().take(MOST_BOXES) {
                let mut bits = vec![0u64; n_words];
                self.trees[table].visit(&self.sides(table, look), |rows| {
                    for &row in rows {
                        let person = self.looks[table][row as usize];
                        bits[person as usize / 64] |= 1 << (person % 64);
                    }
                });
                if let Some(before) = &sieved {
                    bits.iter_mut().zip(before).for_each(|(word, before)| *word &= before);
                }
                let is_few = self::count(&bits) <= FEW;
                sieved = Some(bits);
                if is_few {
                    break;
                }
            }
            let bits = sieved.unwrap_or_default();
            if self::count(&bits) < n_words * 2 {
                Candidates::List(bits.iter().enumerate().flat_map(|(at, &word)| ones(at, word)).collect())
            } else {
                Candidates::Bits(bits)
            }
        };
        (0..self.released.n_looks(root) as u32).into_par_iter().map(of_look).collect()
    }
}
