//! From classes of trees to released tables.
//!
//! # Guarantee
//! Rows that are left out show nothing, and every quasi cell covers its original. Keys are renumbered in the released
//! order, in the same way in a table and in those that point to it. Persons are in the order of their released trees,
//! first by quasi cells and then by the cells released as they are, and so are the rows of a person. Rows that still
//! tie are equal in everything a reader sees, below them too. A key that joins no tables is not released, and a
//! reference that is not kept is null.

use kohort_model::spec::{Keys, Order};
use kohort_model::{Cells, NULL, ReleasedColumn, ReleasedTable, Role, Schema, Spec, Table};
use rayon::prelude::*;

use super::arrange::RowPlaces;
use super::canonical::{Numbers, Words, hanging, number};
use super::forest::{Grove, copied_ranks};
use super::references::{Kept, Planned};
use super::shown::{Shown, ShownLayer};
use crate::recode::label;

/// The released tables of all plans, each with its position in the schema.
pub(super) fn recode(
    tables: &[Table],
    schema: &Schema,
    planned: &[Planned<'_>],
    kept: &Kept,
    spec: &Spec,
) -> Vec<(usize, ReleasedTable)> {
    let sequences = match spec.order {
        Order::Input => planned.iter().map(|plan| as_in_the_input(&plan.shown)).collect(),
        Order::Sorted => by_content(tables, schema, planned, kept, spec.keys),
    };
    let mut numbers: Vec<Vec<u32>> = vec![Vec::new(); tables.len()];
    for (plan, sequences) in planned.iter().zip(&sequences) {
        number_keys(schema, &plan.grove, &plan.shown, sequences, &mut numbers);
    }
    let recoding = Recoding { tables, schema, kept, keys: spec.keys, numbers };
    let mut released = Vec::with_capacity(tables.len());
    for (plan, sequences) in planned.iter().zip(&sequences) {
        let of_plan: Vec<(usize, ReleasedTable)> = sequences
            .par_iter()
            .enumerate()
            .map(|(kind, sequence)| (plan.grove.kinds[kind].table, recoding.released(plan, kind, sequence)))
            .collect();
        released.extend(of_plan);
    }
    released
}

/// For each kind, its rows in the order of the input.
fn as_in_the_input(shown: &Shown) -> Vec<Vec<u32>> {
    let released = |layer: &ShownLayer| {
        (0..).zip(&layer.node_of_row).filter(|&(_, &node)| node != NULL).map(|(row, _)| row).collect()
    };
    shown.layers.iter().map(released).collect()
}

/// For each plan and kind, its rows by what they show.
fn by_content(
    tables: &[Table],
    schema: &Schema,
    planned: &[Planned<'_>],
    kept: &Kept,
    keys: Keys,
) -> Vec<Vec<Vec<u32>>> {
    let contents = |plan: &Planned<'_>| {
        let words = plan.grove.kinds.iter().zip(&plan.shown.layers).map(|(kind, layer)| {
            let ranks = copied_ranks(&tables[kind.table], keys);
            Words::new(layer.looks.len(), ranks.len() + 1, |row, cells| {
                cells[0] = layer.looks[row];
                cells[1..].iter_mut().zip(&ranks).for_each(|(cell, ranks)| *cell = ranks[row]);
            })
        });
        let words: Vec<Words> = words.collect();
        let parents: Vec<Vec<u32>> = plan.shown.layers.iter().map(|layer| layer.parents.clone()).collect();
        number(&plan.grove.kinds, &parents, &words)
    };
    let mut numbers: Vec<Vec<Numbers>> = planned.iter().map(contents).collect();
    if schema.has_references() {
        let places = RowPlaces::of(schema, planned, &numbers, kept);
        for (plan, numbers) in planned.iter().zip(&mut numbers) {
            for (kind, Numbers { of_row, in_order }) in plan.grove.kinds.iter().zip(numbers) {
                in_order.par_sort_by_key(|&row| (of_row[row as usize], places.of_row(kind.table, row)));
            }
        }
    }
    let in_sequence = |(plan, numbers): (&Planned<'_>, &Vec<Numbers>)| {
        let mut sequences: Vec<Vec<u32>> = Vec::with_capacity(numbers.len());
        for (kind, of_kind) in plan.grove.kinds.iter().enumerate() {
            let in_order = &numbers[kind].in_order;
            let sequence = match of_kind.parent {
                None => in_order.clone(),
                Some(parent) => {
                    let layers = &plan.shown.layers;
                    let hanging = hanging(layers[parent].parents.len(), &layers[kind].parents, in_order);
                    sequences[parent].iter().flat_map(|&row| hanging.get(row as usize)).copied().collect()
                }
            };
            sequences.push(sequence);
        }
        sequences
    };
    planned.iter().zip(&numbers).map(in_sequence).collect()
}

/// Notes per table and row the number its key gets. A table whose key is its foreign key has its parent's numbers.
fn number_keys(schema: &Schema, grove: &Grove<'_>, shown: &Shown, sequences: &[Vec<u32>], numbers: &mut [Vec<u32>]) {
    for (kind, of_kind) in grove.kinds.iter().enumerate() {
        let linked = &schema.tables[of_kind.table];
        let mut of_rows = vec![0; shown.layers[kind].node_of_row.len()];
        match (of_kind.parent, linked.parent) {
            (Some(_), Some(link)) if linked.key == Some(link.foreign_key) => {
                for &row in &sequences[kind] {
                    of_rows[row as usize] = numbers[link.table][shown.layers[kind].parents[row as usize] as usize];
                }
            }
            _ => (1..).zip(&sequences[kind]).for_each(|(number, &row)| of_rows[row as usize] = number),
        }
        numbers[of_kind.table] = of_rows;
    }
}

/// Everything that the cells of released tables depend on.
struct Recoding<'r> {
    tables: &'r [Table],
    schema: &'r Schema,
    kept: &'r Kept,
    keys: Keys,
    /// For each table and row, the number of its key.
    numbers: Vec<Vec<u32>>,
}

impl Recoding<'_> {
    /// One table of a plan, with its rows in this order.
    fn released(&self, plan: &Planned<'_>, kind: usize, sequence: &[u32]) -> ReleasedTable {
        let (grove, layer) = (&plan.grove, &plan.shown.layers[kind]);
        let of_kind = &grove.kinds[kind];
        let table = &self.tables[of_kind.table];
        let linked = &self.schema.tables[of_kind.table];
        let surrogates =
            |number: &dyn Fn(u32) -> u32| Cells::Surrogate { ids: sequence.iter().map(|&row| number(row)).collect() };
        let cells_of = |source: usize| -> Option<Cells> {
            let is_foreign_key = linked.parent.is_some_and(|parent| parent.foreign_key == source);
            match table.columns[source].role {
                Role::Quasi => {
                    let column = grove.encoded[kind].columns.iter().position(|&column| column == source)?;
                    let intervals: Vec<(u32, u32)> =
                        layer.bounds.iter().skip(column).step_by(of_kind.n_quasi).copied().collect();
                    let (labels, of_nodes) = label(&grove.encoded[kind].domains[column], &intervals);
                    let id = |&row: &u32| of_nodes[layer.node_of_row[row as usize] as usize];
                    Some(Cells::Recoded { labels, ids: sequence.par_iter().map(id).collect() })
                }
                Role::Sensitive | Role::Plain => Some(Cells::Copied),
                Role::Identifier | Role::PersonK | Role::Drop => None,
                // A key is released only if another table points to it.
                Role::Key if !self.schema.joins_by(of_kind.table, source) => None,
                Role::Key if self.keys == Keys::Keep => Some(Cells::Copied),
                Role::Key if is_foreign_key => {
                    let parent = linked.parent?.table;
                    Some(surrogates(&|row| self.numbers[parent][layer.parents[row as usize] as usize]))
                }
                Role::Key => match linked.references.iter().position(|reference| reference.column == source) {
                    None => Some(surrogates(&|row| self.numbers[of_kind.table][row as usize])),
                    Some(position) => {
                        let numbers = &self.numbers[linked.references[position].table];
                        let targets = &self.kept[of_kind.table][position];
                        let number = |target: u32| if target == NULL { NULL } else { numbers[target as usize] };
                        Some(surrogates(&|row| number(targets[row as usize])))
                    }
                },
            }
        };
        let columns = (0..table.columns.len())
            .filter_map(|source| {
                Some(ReleasedColumn { name: table.columns[source].name.clone(), source, cells: cells_of(source)? })
            })
            .collect();
        ReleasedTable { name: table.name.clone(), rows: sequence.to_vec(), columns }
    }
}
