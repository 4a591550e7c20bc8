//! [`Shown`]: which node each row of a forest is released as, and who looks the same to a reader.

use std::collections::BTreeMap;

use kohort_model::NULL;
use rayon::prelude::*;

use super::canonical::{Words, number};
use super::forest::{Forest, Grove};
use super::representative::Representative;

/// What each row shows.
#[derive(Debug)]
pub(super) struct Shown {
    /// Per kind.
    pub(super) layers: Vec<ShownLayer>,
    /// For each row of the table of persons, the number of its tree as released, [`NULL`] for one that is left out.
    /// Equal exactly for persons that a reader can't tell apart by quasi cells.
    pub(super) class_of_person: Vec<u32>,
    /// Persons per class.
    pub(super) class_sizes: Vec<u64>,
}

/// What the rows of one table show.
#[derive(Debug)]
pub(super) struct ShownLayer {
    /// For each row of the table, its node, [`NULL`] for a row that is left out.
    pub(super) node_of_row: Vec<u32>,
    /// For each node and quasi column, an interval.
    pub(super) bounds: Vec<(u32, u32)>,
    /// For each node, how many rows it stands for.
    pub(super) n_rows: Vec<u64>,
    /// The parent row of each row; [`NULL`] for a row that is left out.
    pub(super) parents: Vec<u32>,
    /// For each row, a number that is equal for rows whose released subtrees are.
    pub(super) looks: Vec<u32>,
}

impl Shown {
    /// What the members of these classes show.
    pub(super) fn new(grove: &Grove<'_>, forest: &Forest, classes: &[Representative]) -> Shown {
        let mut layers: Vec<ShownLayer> =
            (0..grove.kinds.len()).into_par_iter().map(|kind| layer(grove, forest, classes, kind)).collect();
        let words: Vec<Words> =
            layers.iter().zip(&grove.kinds).map(|(layer, kind)| layer.words(kind.n_quasi)).collect();
        let parents: Vec<Vec<u32>> = layers.iter_mut().map(|layer| std::mem::take(&mut layer.parents)).collect();
        let numbers = number(&grove.kinds, &parents, &words);
        for ((layer, parents), numbers) in layers.iter_mut().zip(parents).zip(numbers) {
            layer.parents = parents;
            layer.looks = numbers.of_row;
        }
        let class_of_person = layers[0].looks.clone();
        let n_classes =
            class_of_person.iter().filter(|&&class| class != NULL).max().map_or(0, |&class| class as usize + 1);
        let mut class_sizes = vec![0; n_classes];
        class_of_person.iter().filter(|&&class| class != NULL).for_each(|&class| class_sizes[class as usize] += 1);
        Shown { layers, class_of_person, class_sizes }
    }

    /// Divides classes: only persons with equal numbers stay together.
    pub(super) fn part_classes(&mut self, numbers: &[u32]) {
        let mut classes: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        let key = |(&class, &number): (&u32, &u32)| (class, number);
        for (class, number) in self.class_of_person.iter().zip(numbers).map(key).filter(|key| key.0 != NULL) {
            *classes.entry((class, number)).or_default() += 1;
        }
        let position: BTreeMap<(u32, u32), u32> = classes.keys().copied().zip(0..).collect();
        for (class, &number) in self.class_of_person.iter_mut().zip(numbers).filter(|(class, _)| **class != NULL) {
            *class = position[&(*class, number)];
        }
        self.class_sizes = classes.into_values().collect();
    }
}

impl ShownLayer {
    fn words(&self, n_quasi: usize) -> Words {
        Words::new(self.node_of_row.len(), 2 * n_quasi, |row, cells| {
            let node = self.node_of_row[row];
            if node != NULL {
                let bounds = &self.bounds[node as usize * n_quasi..][..n_quasi];
                for (pair, &(lo, hi)) in cells.chunks_exact_mut(2).zip(bounds) {
                    (pair[0], pair[1]) = (lo, hi);
                }
            }
        })
    }
}

fn layer(grove: &Grove<'_>, forest: &Forest, classes: &[Representative], kind: usize) -> ShownLayer {
    let mut node_of_row = vec![NULL; grove.parents[kind].len()];
    let mut bounds = Vec::new();
    let mut n_rows = Vec::new();
    for class in classes {
        let layer = &class.layers[kind];
        let first_node = n_rows.len() as u32;
        bounds.extend_from_slice(&layer.bounds);
        n_rows.extend(std::iter::repeat_n(class.weight, layer.len()));
        for (position, &member) in class.members.iter().enumerate() {
            for rows in forest.rows_of_members(member, kind) {
                for node in 0..layer.len() {
                    let slot = layer.slots[node * class.members.len() + position];
                    node_of_row[rows[slot as usize] as usize] = first_node + node as u32;
                }
            }
        }
    }
    let parents = grove.parents[kind].iter().zip(&node_of_row);
    let parents = parents.map(|(&parent, &node)| if node == NULL { NULL } else { parent }).collect();
    ShownLayer { node_of_row, bounds, n_rows, parents, looks: Vec::new() }
}
