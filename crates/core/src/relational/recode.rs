//! From classes of trees to released tables.
//!
//! # Guarantee
//! rows that are left out show nothing; every quasi cell covers its original; keys are renumbered in the released
//! order, the same in a table and in those that hang off it. Persons stand in the order of their released trees, first
//! by quasi cells and then by the cells released as they are; a person's rows likewise. Rows that still tie are equal in
//! everything a reader sees, below them too
//! # Deviations
//! a column of role key that links no two tables is numbered by first appearance, and may tell rows apart that tie

use kohort_model::spec::{Keys, Order};
use kohort_model::{Cells, NULL, ReleasedColumn, ReleasedTable, Role, Schema, Table, Texts};
use rayon::prelude::*;

use super::canonical::{Hanging, Words, number};
use super::forest::{Grove, copied_ranks};
use super::shown::{Shown, ShownLayer};
use crate::encode::Domain;
use crate::recode::RecodeOptions;

/// The released tables of one grove, each with its position in the schema.
pub(super) fn recode(
    tables: &[Table],
    schema: &Schema,
    grove: &Grove<'_>,
    shown: &Shown,
    options: RecodeOptions,
) -> Vec<(usize, ReleasedTable)> {
    let sequences = sequences(tables, grove, shown, options);
    let numbers = key_numbers(schema, grove, shown, &sequences);
    (0..grove.kinds.len())
        .into_par_iter()
        .map(|kind| {
            (grove.kinds[kind].table, released(tables, schema, grove, shown, options, &sequences, &numbers, kind))
        })
        .collect()
}

/// Per kind its rows in the released order.
fn sequences(tables: &[Table], grove: &Grove<'_>, shown: &Shown, options: RecodeOptions) -> Vec<Vec<u32>> {
    if options.order == Order::Input {
        let released = |layer: &ShownLayer| {
            (0..).zip(&layer.node_of_row).filter(|&(_, &node)| node != NULL).map(|(row, _)| row).collect()
        };
        return shown.layers.iter().map(released).collect();
    }
    let words: Vec<Words> = grove
        .kinds
        .iter()
        .zip(&shown.layers)
        .map(|(kind, layer)| {
            let ranks = copied_ranks(&tables[kind.table], options.keys);
            let width = ranks.len() + 1;
            let mut cells = vec![0; layer.looks.len() * width];
            cells.par_chunks_mut(width).enumerate().for_each(|(row, cells)| {
                cells[0] = layer.looks[row];
                cells[1..].iter_mut().zip(&ranks).for_each(|(cell, ranks)| *cell = ranks[row]);
            });
            Words { width, cells }
        })
        .collect();
    let parents: Vec<Vec<u32>> = shown.layers.iter().map(|layer| layer.parents.clone()).collect();
    let numbers = number(&grove.kinds, &parents, &words);
    let mut sequences: Vec<Vec<u32>> = Vec::with_capacity(grove.kinds.len());
    for (kind, of_kind) in grove.kinds.iter().enumerate() {
        let sequence = match of_kind.parent {
            None => numbers[kind].in_order.clone(),
            Some(parent) => {
                let hanging = Hanging::new(parents[parent].len(), &parents[kind], &numbers[kind].in_order);
                sequences[parent].iter().flat_map(|&row| hanging.of(row)).copied().collect()
            }
        };
        sequences.push(sequence);
    }
    sequences
}

/// Per kind and row the number its key gets. A table whose key is its foreign key has its parent's numbers.
fn key_numbers(schema: &Schema, grove: &Grove<'_>, shown: &Shown, sequences: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut numbers: Vec<Vec<u32>> = Vec::with_capacity(grove.kinds.len());
    for (kind, of_kind) in grove.kinds.iter().enumerate() {
        let linked = &schema.tables[of_kind.table];
        let mut of_rows = vec![0; shown.layers[kind].node_of_row.len()];
        match (of_kind.parent, linked.parent) {
            (Some(parent), Some(link)) if linked.key == Some(link.foreign_key) => {
                for &row in &sequences[kind] {
                    of_rows[row as usize] = numbers[parent][shown.layers[kind].parents[row as usize] as usize];
                }
            }
            _ => (1..).zip(&sequences[kind]).for_each(|(number, &row)| of_rows[row as usize] = number),
        }
        numbers.push(of_rows);
    }
    numbers
}

#[allow(clippy::too_many_arguments, reason = "what a column shows depends on all of it")]
fn released(
    tables: &[Table],
    schema: &Schema,
    grove: &Grove<'_>,
    shown: &Shown,
    options: RecodeOptions,
    sequences: &[Vec<u32>],
    numbers: &[Vec<u32>],
    kind: usize,
) -> ReleasedTable {
    let of_kind = &grove.kinds[kind];
    let table = &tables[of_kind.table];
    let linked = &schema.tables[of_kind.table];
    let (sequence, layer) = (&sequences[kind], &shown.layers[kind]);
    let surrogates =
        |number: &dyn Fn(u32) -> u32| Cells::Surrogate { ids: sequence.iter().map(|&row| number(row)).collect() };
    let cells_of = |source: usize| -> Option<Cells> {
        let is_foreign_key = linked.parent.is_some_and(|parent| parent.foreign_key == source);
        let is_own_key = linked.key == Some(source);
        match table.columns[source].role {
            Role::Quasi => {
                let column = grove.encoded[kind].columns.iter().position(|&column| column == source)?;
                Some(render(&grove.encoded[kind].domains[column], layer, column, of_kind.n_quasi, sequence))
            }
            Role::Sensitive | Role::Plain => Some(Cells::Copied),
            Role::Identifier | Role::PersonK | Role::Drop => None,
            // What names a person is released only where another table points to it.
            Role::Key if of_kind.parent.is_none() && is_own_key && of_kind.children.is_empty() => None,
            Role::Key if of_kind.parent.is_none() && !is_own_key && table.person == Some(source) => None,
            Role::Key if options.keys == Keys::Keep => Some(Cells::Copied),
            Role::Key if is_foreign_key => {
                let parent = of_kind.parent?;
                Some(surrogates(&|row| numbers[parent][layer.parents[row as usize] as usize]))
            }
            Role::Key if is_own_key => Some(surrogates(&|row| numbers[kind][row as usize])),
            Role::Key => Some(by_first_appearance(&table.columns[source].ids, sequence)),
        }
    };
    let columns = (0..table.columns.len())
        .filter_map(|source| {
            Some(ReleasedColumn { name: table.columns[source].name.clone(), source, cells: cells_of(source)? })
        })
        .collect();
    ReleasedTable { name: table.name.clone(), rows: sequence.clone(), columns }
}

/// The cells of a quasi column.
fn render(domain: &Domain, layer: &ShownLayer, column: usize, n_quasi: usize, sequence: &[u32]) -> Cells {
    let interval = |node: usize| layer.bounds[node * n_quasi + column];
    let n_nodes = layer.n_rows.len();
    let mut intervals: Vec<(u32, u32)> = (0..n_nodes).map(interval).collect();
    intervals.par_sort_unstable();
    intervals.dedup();
    let mut labels = Texts::new();
    let id_of_interval: Vec<u32> =
        intervals.iter().map(|&hull| domain.label(hull).map_or(NULL, |text| labels.push(&text))).collect();
    let id_of_node: Vec<u32> = (0..n_nodes)
        .into_par_iter()
        .map(|node| id_of_interval[intervals.partition_point(|other| *other < interval(node))])
        .collect();
    let ids = sequence.par_iter().map(|&row| id_of_node[layer.node_of_row[row as usize] as usize]).collect();
    Cells::Recoded { labels, ids }
}

fn by_first_appearance(ids: &[u32], sequence: &[u32]) -> Cells {
    let mut numbers = vec![0u32; ids.iter().filter(|&&id| id != NULL).max().map_or(0, |&id| id as usize + 1)];
    let mut next = 0;
    let numbered = sequence.iter().map(|&row| match ids[row as usize] {
        NULL => NULL,
        id => {
            let number = &mut numbers[id as usize];
            if *number == 0 {
                next += 1;
                *number = next;
            }
            *number
        }
    });
    Cells::Surrogate { ids: numbered.collect() }
}
