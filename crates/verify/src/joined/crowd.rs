//! [`Crowd`]: how many persons of private table and register the cells of a class hold.
//!
//! A person of whom the register says something else than the private table counts where the cells hold both.

use std::collections::HashMap;

use kohort_model::{Column, InRegister, JoinedRegister, Texts};
use rayon::prelude::*;

use crate::candidates::PointTree;
use crate::cells::CellIds;
use crate::coverage::{Coverage, Runs};
use crate::grouping::Classes;

/// Everybody of the join, found by what cells hold.
pub(super) struct Crowd<'a> {
    joined: &'a JoinedRegister,
    runs: Vec<Runs>,
    tree: PointTree,
    /// Per point the persons that are there and nowhere else.
    n_persons: Vec<u32>,
    /// Per point persons that are also elsewhere, by the joined row that says where.
    elsewhere: HashMap<u32, Vec<u32>>,
}

impl<'a> Crowd<'a> {
    /// `labels` are those of each quasi column of the release.
    pub(super) fn new(joined: &'a JoinedRegister, labels: &[&Texts]) -> Self {
        let columns = &joined.rows.columns;
        let runs: Vec<Runs> =
            columns.par_iter().zip(labels).map(|(column, labels)| Runs::new(&Coverage::new(column, labels))).collect();
        let n_rows = joined.n_microdata + joined.n_register;
        let cells: Vec<CellIds<'_>> =
            columns.iter().map(|column| CellIds::by_id(&column.ids[..n_rows], column.texts.len())).collect();
        let points = Classes::group(&cells.iter().collect::<Vec<_>>(), n_rows);
        let mut coordinates = Vec::with_capacity(points.len() * columns.len());
        let (mut n_persons, mut elsewhere) = (Vec::with_capacity(points.len()), HashMap::new());
        for point in 0..points.len() {
            let rows = points.rows(point);
            let position = |(runs, column): (&Runs, &Column)| runs.position(column.ids[rows[0] as usize]);
            coordinates.extend(runs.iter().zip(columns).map(position));
            let others: Vec<u32> = rows.iter().filter_map(|&row| said_otherwise(joined, row)).collect();
            n_persons.push((rows.len() - others.len()) as u32);
            if !others.is_empty() {
                elsewhere.insert(point as u32, others);
            }
        }
        let tree = PointTree::new(columns.len(), coordinates, points.len());
        Crowd { joined, runs, tree, n_persons, elsewhere }
    }

    /// How many persons cells hold, one label per column.
    pub(super) fn held(&self, labels: &[u32]) -> u64 {
        let sides: Vec<(u32, u32)> = self.runs.iter().zip(labels).map(|(runs, &label)| runs.run(label)).collect();
        let holds = |row: u32| {
            let columns = self.runs.iter().zip(&self.joined.rows.columns).zip(&sides);
            columns.into_iter().all(|((runs, column), &(from, to))| {
                let position = runs.position(column.ids[row as usize]);
                from <= position && position < to
            })
        };
        let at = |point: u32| {
            let others = self.elsewhere.get(&point).map_or(&[][..], Vec::as_slice);
            u64::from(self.n_persons[point as usize]) + others.iter().filter(|&&row| holds(row)).count() as u64
        };
        self.tree.within(&sides).into_iter().map(at).sum()
    }
}

/// The joined row that says something else of the person of a joined row.
pub(super) fn said_otherwise(joined: &JoinedRegister, row: u32) -> Option<u32> {
    match joined.persons.get(row as usize)? {
        InRegister::Differs(other) => Some(*other),
        InRegister::Absent | InRegister::Same => None,
    }
}
