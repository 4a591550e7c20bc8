//! From classes to a [`Release`]: each quasi cell becomes its class's interval, rendered.
//!
//! # Guarantee
//! every cell covers its original; rows that look alike in all quasi cells are told apart by nothing but their copied
//! cells: neither by the order of the input nor by the classes of the partitioner, which can be finer than what is
//! shown

mod order;

use kohort_model::spec::{Keys, Order};
use kohort_model::{Cells, NULL, Release, ReleasedColumn, ReleasedTable, Role, Table, Texts};
use rayon::prelude::*;

use crate::encode::{Encoded, Rows};
use crate::partition::Classes;

/// The classes as a reader of the release sees them.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Per quasi column the labels, in the order of their intervals.
    labels: Vec<Vec<Label>>,
    /// Shown classes in released order; class `c` is made of the partitioner's classes `parts[c]`.
    classes: Vec<ShownClass>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Label {
    lo: u32,
    hi: u32,
}

/// Classes of the partitioner that show the same cells.
#[derive(Clone, Debug)]
struct ShownClass {
    /// Per quasi column, the position of its label.
    labels: Vec<u32>,
    parts: Vec<u32>,
}

impl Shown {
    /// What the classes show.
    pub fn new(classes: &Classes, encoded: &Encoded<'_>, rows: &Rows) -> Shown {
        let hulls: Vec<Vec<Label>> = (0..classes.len())
            .into_par_iter()
            .map(|class| {
                let bounds = match &classes.boxes {
                    Some(boxes) => boxes[class * rows.n_columns()..][..rows.n_columns()].to_vec(),
                    None => rows.bounds(classes.rows(class)),
                };
                let hulls = bounds.iter().zip(&encoded.domains).map(|(&(lo, hi), domain)| domain.hull(lo, hi));
                hulls.map(|(lo, hi)| Label { lo, hi }).collect()
            })
            .collect();
        let labels: Vec<Vec<Label>> = (0..encoded.domains.len())
            .into_par_iter()
            .map(|column| {
                let mut labels: Vec<Label> = hulls.iter().map(|hull| hull[column]).collect();
                labels.par_sort_unstable();
                labels.dedup();
                labels
            })
            .collect();
        let mut by_label: Vec<(Vec<u32>, u32)> = hulls
            .par_iter()
            .enumerate()
            .map(|(class, hull)| {
                let position =
                    |(column, label): (usize, &Label)| labels[column].partition_point(|other| other < label) as u32;
                (hull.iter().enumerate().map(position).collect(), class as u32)
            })
            .collect();
        by_label.par_sort_unstable();
        let classes = by_label
            .chunk_by(|a, b| a.0 == b.0)
            .map(|same| ShownClass { labels: same[0].0.clone(), parts: same.iter().map(|part| part.1).collect() })
            .collect();
        Shown { labels, classes }
    }

    /// How many classes a reader can tell apart.
    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// The folded rows of each shown class.
    pub fn folded_rows(&self, classes: &Classes) -> Vec<Vec<u32>> {
        let parts =
            |class: &ShownClass| class.parts.iter().flat_map(|&part| classes.rows(part as usize)).copied().collect();
        self.classes.iter().map(parts).collect()
    }

    /// The rows of the table in a shown class.
    pub fn members<'a>(&'a self, class: usize, classes: &'a Classes, rows: &'a Rows) -> impl Iterator<Item = u32> + 'a {
        let parts = self.classes[class].parts.iter();
        parts.flat_map(|&part| classes.rows(part as usize)).flat_map(|&row| rows.members(row)).copied()
    }

    /// The interval a shown class has in a quasi column.
    pub fn interval(&self, class: usize, column: usize) -> (u32, u32) {
        let label = self.labels[column][self.classes[class].labels[column] as usize];
        (label.lo, label.hi)
    }
}

/// What becomes of rows and keys.
#[derive(Clone, Copy, Debug)]
pub struct RecodeOptions {
    /// The order of released rows.
    pub order: Order,
    /// What becomes of keys.
    pub keys: Keys,
}

/// Renders the release of one table.
pub fn recode(
    table: &Table,
    encoded: &Encoded<'_>,
    rows: &Rows,
    classes: &Classes,
    shown: &Shown,
    options: RecodeOptions,
) -> Release {
    let mut sequence = order::by_class(table, rows, classes, shown, options.keys);
    if options.order == Order::Input {
        order::as_in_the_input(&mut sequence);
    }
    let columns: Vec<ReleasedColumn> = (0..table.columns.len())
        .into_par_iter()
        .filter_map(|source| {
            let cells = match table.columns[source].role {
                Role::Quasi => {
                    let quasi = encoded.columns.iter().position(|&column| column == source)?;
                    render(encoded, quasi, shown, &sequence)
                }
                Role::Sensitive | Role::Plain => Cells::Copied,
                // The person's key is released only where another table points to it.
                Role::Key if table.person == Some(source) => return None,
                Role::Key if options.keys == Keys::Keep => Cells::Copied,
                Role::Key => renumber(&table.columns[source].ids, &sequence),
                Role::Identifier | Role::PersonK | Role::Drop => return None,
            };
            Some(ReleasedColumn { name: table.columns[source].name.clone(), source, cells })
        })
        .collect();
    let rows = sequence.into_iter().map(|(row, _)| row).collect();
    Release { tables: vec![ReleasedTable { name: table.name.clone(), rows, columns }] }
}

/// The cells of a quasi column; `sequence` is the source row and shown class of each released row.
fn render(encoded: &Encoded<'_>, quasi: usize, shown: &Shown, sequence: &[(u32, u32)]) -> Cells {
    let mut texts = Texts::new();
    let ids: Vec<u32> = shown.labels[quasi]
        .iter()
        .map(|label| encoded.domains[quasi].label((label.lo, label.hi)).map_or(NULL, |text| texts.push(&text)))
        .collect();
    let id_of_class: Vec<u32> = shown.classes.iter().map(|class| ids[class.labels[quasi] as usize]).collect();
    Cells::Recoded { labels: texts, ids: sequence.par_iter().map(|&(_, class)| id_of_class[class as usize]).collect() }
}

/// Numbers keys from 1 by their first appearance in the released order.
fn renumber(ids: &[u32], sequence: &[(u32, u32)]) -> Cells {
    let mut numbers = vec![0u32; ids.iter().filter(|&&id| id != NULL).max().map_or(0, |&id| id as usize + 1)];
    let mut next = 0;
    let ids = sequence
        .iter()
        .map(|&(row, _)| match ids[row as usize] {
            NULL => NULL,
            id => {
                let number = &mut numbers[id as usize];
                if *number == 0 {
                    next += 1;
                    *number = next;
                }
                *number
            }
        })
        .collect();
    Cells::Surrogate { ids }
}
