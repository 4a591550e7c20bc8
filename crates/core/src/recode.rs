//! From classes to a [`Release`]: each quasi cell becomes its class's interval, rendered.
//!
//! # Guarantee
//! Every cell covers its original. Rows that look alike in all quasi cells differ in nothing but their copied cells, not
//! in their order: neither the order of the input shows, nor the classes of the partitioner, which can be finer than what
//! is shown.

use kohort_model::spec::Order;
use kohort_model::{Cells, Column, NULL, Release, ReleasedColumn, ReleasedTable, Role, Table, Texts};
use rayon::prelude::*;

use crate::encode::{Domain, Encoded, Rows};
use crate::lists::Lists;
use crate::partition::Classes;
use crate::ranks::text_ranks;

/// A thread is given this many classes at a time, because some releases have nearly as many classes as rows.
const CLASSES_AT_ONCE: usize = 64;

/// The classes as a reader of the release sees them, in released order.
#[derive(Clone, Debug)]
pub struct Shown {
    n_columns: usize,
    /// One interval per quasi column, class after class.
    boxes: Vec<(u32, u32)>,
    /// The partitioner's classes that each class is made of: those that show the same cells.
    parts: Lists,
}

impl Shown {
    /// The cells that the classes show.
    pub fn new(classes: &Classes, encoded: &Encoded<'_>, rows: &Rows) -> Shown {
        let n_columns = encoded.domains.len();
        let mut hulls = vec![(0, 0); classes.len() * n_columns];
        hulls.par_chunks_mut(n_columns.max(1)).enumerate().for_each(|(class, hulls)| {
            let mut show = |bounds: &[(u32, u32)]| {
                for ((hull, &(lo, hi)), domain) in hulls.iter_mut().zip(bounds).zip(&encoded.domains) {
                    *hull = domain.hull(lo, hi);
                }
            };
            match &classes.boxes {
                Some(boxes) => show(&boxes[class * n_columns..][..n_columns]),
                None => show(&rows.bounds(classes.rows(class))),
            }
        });
        let of_part = |part: u32| &hulls[part as usize * n_columns..][..n_columns];
        let mut order: Vec<u32> = (0..classes.len() as u32).collect();
        order.par_sort_unstable_by(|&a, &b| of_part(a).cmp(of_part(b)).then(a.cmp(&b)));
        let (mut boxes, mut parts) = (Vec::new(), Lists::default());
        for same in order.chunk_by(|&a, &b| of_part(a) == of_part(b)) {
            boxes.extend_from_slice(of_part(same[0]));
            parts.push(same.iter().copied());
        }
        Shown { n_columns, boxes, parts }
    }

    /// How many classes a reader can tell apart.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The folded rows of each shown class.
    pub fn folded_rows(&self, classes: &Classes) -> Vec<Vec<u32>> {
        let rows = |parts: &[u32]| parts.iter().flat_map(|&part| classes.rows(part as usize)).copied().collect();
        self.parts.iter().map(rows).collect()
    }

    /// The rows of the table in a shown class.
    pub fn members<'a>(&'a self, class: usize, classes: &'a Classes, rows: &'a Rows) -> impl Iterator<Item = u32> + 'a {
        let parts = self.parts.get(class).iter();
        parts.flat_map(|&part| classes.rows(part as usize)).flat_map(|&row| rows.members(row)).copied()
    }

    /// The interval a shown class has in a quasi column.
    pub fn interval(&self, class: usize, column: usize) -> (u32, u32) {
        self.boxes[class * self.n_columns + column]
    }
}

/// A table, its classes, and what they show.
#[derive(Clone, Copy, Debug)]
pub struct Recoding<'a> {
    /// The private table.
    pub table: &'a Table,
    /// Its quasi columns.
    pub encoded: &'a Encoded<'a>,
    /// The folded rows that were partitioned.
    pub rows: &'a Rows,
    /// Their classes.
    pub classes: &'a Classes,
    /// The cells that the classes show.
    pub shown: &'a Shown,
}

impl<'a> Recoding<'a> {
    /// The rows of the table in a shown class.
    pub(crate) fn members(&self, class: usize) -> impl Iterator<Item = u32> + 'a {
        self.shown.members(class, self.classes, self.rows)
    }

    /// Source row and shown class of each released row. Rows are sorted by their released cells, so that their order tells
    /// nothing more: first by class, in the order of its intervals, then by the copied cells, in the order of their texts.
    /// Rows that tie are equal in all that is released, so swapping them leaves no trace.
    fn by_cells(&self) -> Vec<(u32, u32)> {
        let copied: Vec<Vec<u32>> =
            self.table.columns.par_iter().filter(|column| is_copied(column)).map(text_ranks).collect();
        let cells = |row: u32| copied.iter().map(move |ranks| ranks[row as usize]);
        let all: Vec<u32> = (0..self.shown.len() as u32).collect();
        let sorted: Vec<Vec<(u32, u32)>> = all
            .par_chunks(CLASSES_AT_ONCE)
            .map(|some| {
                let mut sequence = Vec::new();
                for &class in some {
                    let first = sequence.len();
                    sequence.extend(self.members(class as usize).map(|row| (row, class)));
                    sequence[first..].sort_unstable_by(|&(a, _), &(b, _)| cells(a).cmp(cells(b)).then(a.cmp(&b)));
                }
                sequence
            })
            .collect();
        sorted.concat()
    }

    /// Renders the release.
    pub fn release(&self, order: Order) -> Release {
        let Recoding { table, encoded, shown, .. } = *self;
        let mut sequence = self.by_cells();
        if order == Order::Input {
            sequence.par_sort_unstable();
        }
        let columns: Vec<ReleasedColumn> = (0..table.columns.len())
            .into_par_iter()
            .filter_map(|source| {
                let cells = match table.columns[source].role {
                    Role::Quasi => {
                        let quasi = encoded.columns.iter().position(|&column| column == source)?;
                        let intervals: Vec<(u32, u32)> =
                            (0..shown.len()).map(|class| shown.interval(class, quasi)).collect();
                        let (labels, ids) = label(&encoded.domains[quasi], &intervals);
                        let ids = sequence.par_iter().map(|&(_, class)| ids[class as usize]).collect();
                        Cells::Recoded { labels, ids }
                    }
                    Role::Sensitive | Role::Plain => Cells::Copied,
                    // A key is released only if another table points to it. There is only one table here.
                    Role::Key | Role::Identifier | Role::PersonK | Role::Drop => return None,
                };
                Some(ReleasedColumn { name: table.columns[source].name.clone(), source, cells })
            })
            .collect();
        let rows = sequence.into_iter().map(|(row, _)| row).collect();
        Release { tables: vec![ReleasedTable { name: table.name.clone(), rows, columns }] }
    }
}

/// Whether the cells of a column are released as they are.
pub(crate) fn is_copied(column: &Column) -> bool {
    match column.role {
        Role::Sensitive | Role::Plain => true,
        Role::Identifier | Role::Quasi | Role::Key | Role::PersonK | Role::Drop => false,
    }
}

/// The labels of some intervals of a column, in the order of the intervals, and per interval the number of its label.
pub(crate) fn label(domain: &Domain, intervals: &[(u32, u32)]) -> (Texts, Vec<u32>) {
    let mut different = intervals.to_vec();
    different.par_sort_unstable();
    different.dedup();
    let mut labels = Texts::new();
    let number = |&interval: &(u32, u32)| domain.label(interval).map_or(NULL, |text| labels.push(&text));
    let numbers: Vec<u32> = different.iter().map(number).collect();
    let of_intervals =
        intervals.par_iter().map(|interval| numbers[different.partition_point(|other| other < interval)]);
    let of_intervals = of_intervals.collect();
    (labels, of_intervals)
}
