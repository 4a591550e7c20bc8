//! From classes to a [`Release`]: each quasi cell becomes its class's interval, rendered.
//!
//! # Guarantee
//! every cell covers its original; rows that look alike in all quasi cells are told apart by nothing but their copied
//! cells: neither by the order of the input nor by the classes of the partitioner, which can be finer than what is
//! shown

mod order;

use kohort_model::spec::Order;
use kohort_model::{Cells, NULL, Release, ReleasedColumn, ReleasedTable, Role, Table, Texts};
use rayon::prelude::*;

use crate::encode::{Encoded, Rows};
use crate::partition::Classes;

/// The classes as a reader of the release sees them, in released order.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Per quasi column the labels, in the order of their intervals.
    labels: Vec<Vec<Label>>,
    /// Per class and quasi column the position of its label, class after class.
    labels_of_classes: Vec<u32>,
    /// The partitioner's classes, those that show the same cells side by side.
    parts: Vec<u32>,
    /// Class `c` is made of `parts[starts[c]..starts[c + 1]]`.
    starts: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Label {
    lo: u32,
    hi: u32,
}

impl Shown {
    /// What the classes show.
    pub fn new(classes: &Classes, encoded: &Encoded<'_>, rows: &Rows) -> Shown {
        let n_columns = encoded.domains.len();
        let mut hulls = vec![Label { lo: 0, hi: 0 }; classes.len() * n_columns];
        hulls.par_chunks_mut(n_columns.max(1)).enumerate().for_each(|(class, hulls)| {
            let mut show = |bounds: &[(u32, u32)]| {
                for ((hull, &(lo, hi)), domain) in hulls.iter_mut().zip(bounds).zip(&encoded.domains) {
                    let (lo, hi) = domain.hull(lo, hi);
                    *hull = Label { lo, hi };
                }
            };
            match &classes.boxes {
                Some(boxes) => show(&boxes[class * n_columns..][..n_columns]),
                None => show(&rows.bounds(classes.rows(class))),
            }
        });
        let labels: Vec<Vec<Label>> = (0..n_columns)
            .into_par_iter()
            .map(|column| {
                let mut labels: Vec<Label> = hulls.iter().skip(column).step_by(n_columns).copied().collect();
                labels.par_sort_unstable();
                labels.dedup();
                labels
            })
            .collect();
        let mut positions = vec![0; hulls.len()];
        positions.par_chunks_mut(n_columns.max(1)).zip(hulls.par_chunks(n_columns.max(1))).for_each(
            |(positions, hulls)| {
                for ((position, hull), labels) in positions.iter_mut().zip(hulls).zip(&labels) {
                    *position = labels.partition_point(|other| other < hull) as u32;
                }
            },
        );
        drop(hulls);
        let of_part = |part: u32| &positions[part as usize * n_columns..][..n_columns];
        let mut parts: Vec<u32> = (0..classes.len() as u32).collect();
        parts.par_sort_unstable_by(|&a, &b| of_part(a).cmp(of_part(b)).then(a.cmp(&b)));
        let mut starts = vec![0];
        let mut labels_of_classes = Vec::new();
        for same in parts.chunk_by(|&a, &b| of_part(a) == of_part(b)) {
            starts.push(starts[starts.len() - 1] + same.len() as u32);
            labels_of_classes.extend_from_slice(of_part(same[0]));
        }
        Shown { labels, labels_of_classes, parts, starts }
    }

    /// How many classes a reader can tell apart.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The partitioner's classes a shown class is made of.
    fn parts(&self, class: usize) -> &[u32] {
        &self.parts[self.starts[class] as usize..self.starts[class + 1] as usize]
    }

    /// The folded rows of each shown class.
    pub fn folded_rows(&self, classes: &Classes) -> Vec<Vec<u32>> {
        let rows = |class: usize| self.parts(class).iter().flat_map(|&part| classes.rows(part as usize)).copied();
        (0..self.len()).map(|class| rows(class).collect()).collect()
    }

    /// The rows of the table in a shown class.
    pub fn members<'a>(&'a self, class: usize, classes: &'a Classes, rows: &'a Rows) -> impl Iterator<Item = u32> + 'a {
        let parts = self.parts(class).iter();
        parts.flat_map(|&part| classes.rows(part as usize)).flat_map(|&row| rows.members(row)).copied()
    }

    /// The interval a shown class has in a quasi column.
    pub fn interval(&self, class: usize, column: usize) -> (u32, u32) {
        let label = self.labels[column][self.label(class, column)];
        (label.lo, label.hi)
    }

    /// The position of a shown class's label among those of a quasi column.
    fn label(&self, class: usize, column: usize) -> usize {
        self.labels_of_classes[class * self.labels.len() + column] as usize
    }
}

/// Renders the release of one table.
pub fn recode(
    table: &Table,
    encoded: &Encoded<'_>,
    rows: &Rows,
    classes: &Classes,
    shown: &Shown,
    order: Order,
) -> Release {
    let mut sequence = order::by_class(table, rows, classes, shown);
    if order == Order::Input {
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
                // A key is released only where another table points to it, and there is none.
                Role::Key | Role::Identifier | Role::PersonK | Role::Drop => return None,
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
    let id_of_class: Vec<u32> = (0..shown.len()).map(|class| ids[shown.label(class, quasi)]).collect();
    Cells::Recoded { labels: texts, ids: sequence.par_iter().map(|&(_, class)| id_of_class[class as usize]).collect() }
}
