//! [`Embedding`]: whether a released tree can have come from a private one.
//!
//! # Guarantee
//! A released row fits a private row exactly if its cells cover or equal the private ones and, in each child table, all
//! of its children can be given private children of their own that they fit. A matching on each level decides this
//! exactly.
//! # Cost
//! Rows with the same look are folded. Each pair of looks takes one matching of their children. The recursion is as
//! deep as the schema, whatever the data.

use std::collections::HashMap;

use kohort_model::Column;

use super::forest::Forest;
use super::shape::Shape;
use crate::count::grouping::Classes;
use crate::origins::assignment::Network;
use crate::reading::coverage::Runs;

/// All released trees, or all private ones, with equal trees folded.
pub(crate) struct Trees {
    tables: Vec<Looks>,
}

/// The looks of one table.
struct Looks {
    /// A row for each look.
    rows: Vec<u32>,
    /// For each child table and look, the looks of the children, each with their number.
    children: Vec<Vec<Vec<(u32, u32)>>>,
}

impl Trees {
    /// Folds a forest by looks. `row` turns a row of the forest into a row of its table.
    pub(crate) fn fold(shape: &Shape, forest: &Forest, looks: &[Classes], row: impl Fn(usize, u32) -> u32) -> Trees {
        let of_table = |table: usize| {
            let first = |look: usize| looks[table].rows(look)[0];
            let rows = (0..looks[table].len()).map(|look| row(table, first(look))).collect();
            let below = |child: usize| {
                let look_of_row = looks[child].class_of_rows();
                // Rows that look the same have the same children, so count only the children of the first one.
                let mut look_of_first = vec![u32::MAX; forest.n_rows[table]];
                (0..looks[table].len()).for_each(|look| look_of_first[first(look) as usize] = look as u32);
                let mut lists: Vec<Vec<u32>> = vec![Vec::new(); looks[table].len()];
                for (&parent, look) in forest.parents[child].iter().zip(look_of_row) {
                    if let Some(list) = lists.get_mut(look_of_first[parent as usize] as usize) {
                        list.push(look);
                    }
                }
                lists.into_iter().map(counted).collect()
            };
            Looks { rows, children: shape.children(table).map(below).collect() }
        };
        Trees { tables: (0..shape.n_tables()).map(of_table).collect() }
    }

    /// The number of looks in a table.
    pub(crate) fn n_looks(&self, table: usize) -> usize {
        self.tables[table].rows.len()
    }

    /// The looks of all rows of a tree with their tables, the root first. A look may be listed several times.
    pub(crate) fn nodes(&self, shape: &Shape, table: usize, look: u32) -> Vec<(usize, u32)> {
        let mut nodes = vec![(table, look)];
        let mut next = 0;
        while let Some(&(table, look)) = nodes.get(next) {
            for (at, child) in shape.children(table).enumerate() {
                nodes.extend(self.tables[table].children[at][look as usize].iter().map(|&(look, _)| (child, look)));
            }
            next += 1;
        }
        nodes
    }

    /// A row that has a look.
    pub(crate) fn row(&self, table: usize, look: u32) -> usize {
        self.tables[table].rows[look as usize] as usize
    }
}

/// Each look once, with how often it occurs.
fn counted(mut looks: Vec<u32>) -> Vec<(u32, u32)> {
    looks.sort_unstable();
    let mut counts: Vec<(u32, u32)> = Vec::new();
    for look in looks {
        match counts.last_mut() {
            Some((last, n)) if *last == look => *n += 1,
            _ => counts.push((look, 1)),
        }
    }
    counts
}

/// The cells of one table that decide which released row fits which private row.
pub(crate) struct FitCells<'a> {
    /// For each quasi column, what the released labels cover, and the released and the private column.
    pub(crate) quasi: Vec<(Runs, &'a Column, &'a Column)>,
    /// A number for each released row, the same for all released and private rows with the same copied cells.
    pub(crate) released: Vec<u32>,
    /// The number of each private row.
    pub(crate) private: Vec<u32>,
}

impl FitCells<'_> {
    fn fit(&self, released: usize, private: usize) -> bool {
        self.released[released] == self.private[private]
            && self.quasi.iter().all(|(runs, public, column)| {
                let (from, to) = runs.run(public.ids[released]);
                (from..to).contains(&runs.position(column.ids[private]))
            })
    }
}

/// Which released trees fit which private ones.
pub(crate) struct Embedding<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) released: &'a Trees,
    pub(crate) private: &'a Trees,
    pub(crate) cells: &'a [FitCells<'a>],
}

/// For a table, a released and a private look: whether they fit, if that was decided already.
pub(crate) type Decided = HashMap<(u32, u32, u32), bool>;

/// The largest number of decided pairs that are remembered.
const MOST_DECIDED: usize = 1 << 20;

impl Embedding<'_> {
    /// Whether a released tree fits a private one, both given by the look of their root.
    pub(crate) fn fits(&self, table: usize, released: u32, private: u32, decided: &mut Decided) -> bool {
        if !self.cells[table].fit(self.released.row(table, released), self.private.row(table, private)) {
            return false;
        }
        let of_released = |child: usize| self.released.tables[table].children[child][released as usize].as_slice();
        let of_private = |child: usize| self.private.tables[table].children[child][private as usize].as_slice();
        let children = || self.shape.children(table).enumerate();
        let n_rows = |looks: &[(u32, u32)]| looks.iter().map(|&(_, n)| u64::from(n)).sum::<u64>();
        if children().any(|(at, _)| n_rows(of_released(at)) > n_rows(of_private(at))) {
            return false;
        }
        if children().all(|(at, _)| of_released(at).is_empty()) {
            return true;
        }
        let pair = (table as u32, released, private);
        if let Some(&fits) = decided.get(&pair) {
            return fits;
        }
        let fits = children().all(|(at, child)| self.match_children(child, of_released(at), of_private(at), decided));
        if decided.len() >= MOST_DECIDED {
            decided.clear();
        }
        decided.insert(pair, fits);
        fits
    }

    /// Whether every released child can be given a private child of its own.
    fn match_children(
        &self,
        table: usize,
        released: &[(u32, u32)],
        private: &[(u32, u32)],
        decided: &mut Decided,
    ) -> bool {
        let mut network = Network {
            starts: vec![0],
            points: Vec::new(),
            needs: released.iter().map(|&(_, n)| n).collect(),
            supplies: private.iter().map(|&(_, n)| n).collect(),
        };
        for &(look, n) in released {
            let mut supply = 0u64;
            for (point, &(other, n_private)) in (0..).zip(private) {
                if self.fits(table, look, other, decided) {
                    network.points.push(point);
                    supply += u64::from(n_private);
                }
            }
            if supply < u64::from(n) {
                return false;
            }
            network.starts.push(network.points.len());
        }
        network.assign().iter().all(|&lacking| lacking == 0)
    }
}
