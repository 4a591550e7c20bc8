//! [`ShownBoxes`]: what each atom shows, and whether every audience is satisfied by it.
//!
//! # Guarantee
//! counted anew from what is shown, not from how it was found
//! # Cost
//! one fold of the atoms per audience

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::atoms::Atoms;
use super::butterfly::Piece;
use crate::encode::Rows;
use crate::partition::Classes;
use crate::ranks::places;
use crate::requirement::{Rules, Tally};

/// An interval per atom and column, as a cell shows it.
pub(super) struct ShownBoxes {
    columns: Vec<ShownColumn>,
}

/// The intervals of one column.
struct ShownColumn {
    intervals: Vec<(u32, u32)>,
    numbers: BTreeMap<(u32, u32), u32>,
    /// For each atom, the number of its interval.
    of_atom: Vec<u32>,
}

impl ShownColumn {
    fn number(&mut self, interval: (u32, u32)) -> u32 {
        *self.numbers.entry(interval).or_insert_with(|| {
            self.intervals.push(interval);
            self.intervals.len() as u32 - 1
        })
    }

    /// The place of each number in the order of intervals.
    fn ranks(&self) -> Vec<u32> {
        places(&self.numbers.values().copied().collect::<Vec<u32>>())
    }
}

impl ShownBoxes {
    /// What these pieces show; every atom is in a piece of every column.
    pub(super) fn new<'p>(atoms: &Atoms<'_>, pieces: impl Iterator<Item = Piece<'p>>) -> ShownBoxes {
        let nothing = || ShownColumn { intervals: Vec::new(), numbers: BTreeMap::new(), of_atom: vec![0; atoms.len()] };
        let mut boxes = ShownBoxes { columns: atoms.domains.iter().map(|_| nothing()).collect() };
        pieces.for_each(|piece| boxes.show(atoms, &piece));
        boxes
    }

    /// Every atom as it is.
    pub(super) fn unchanged(atoms: &Atoms<'_>) -> ShownBoxes {
        let columns: Vec<usize> = (0..atoms.domains.len()).collect();
        ShownBoxes::new(atoms, (0..atoms.len() as u32).map(|atom| Piece::new(atoms, &[atom], &columns)))
    }

    /// What each atom shows, one interval per column, atom after atom.
    pub(super) fn of_intervals(atoms: &Atoms<'_>, shown: &[(u32, u32)]) -> ShownBoxes {
        let n_columns = atoms.domains.len();
        let mut boxes = ShownBoxes::new(atoms, std::iter::empty());
        for (column, of_column) in boxes.columns.iter_mut().enumerate() {
            of_column.of_atom =
                (0..atoms.len()).map(|atom| of_column.number(shown[atom * n_columns + column])).collect();
        }
        boxes
    }

    /// What an atom shows in a column.
    pub(super) fn interval(&self, atom: u32, column: usize) -> (u32, u32) {
        let shown = &self.columns[column];
        shown.intervals[shown.of_atom[atom as usize] as usize]
    }

    pub(super) fn loss_of(&self, atoms: &Atoms<'_>, members: &[u32], columns: &[usize]) -> f64 {
        let width = |atom: u32, column: usize| {
            let (lo, hi) = self.interval(atom, column);
            atoms.domains[column].width(lo, hi)
        };
        let of_atom = |&atom: &u32| {
            let widths: f64 = columns.iter().map(|&column| width(atom, column)).sum();
            widths * f64::from(atoms.rows.weight(atom))
        };
        members.iter().map(of_atom).sum()
    }

    /// Lets atoms show another box.
    pub(super) fn show(&mut self, atoms: &Atoms<'_>, piece: &Piece<'_>) {
        for (&column, &(lo, hi)) in piece.columns.iter().zip(&piece.bounds) {
            let shown = &mut self.columns[column];
            let number = shown.number(atoms.domains[column].hull(lo, hi));
            piece.atoms.iter().for_each(|&atom| shown.of_atom[atom as usize] = number);
        }
    }

    /// Whether two atoms look the same in some columns.
    pub(super) fn alike(&self, a: u32, b: u32, columns: impl IntoIterator<Item = usize>) -> bool {
        let mut known = columns.into_iter().map(|column| &self.columns[column].of_atom);
        known.all(|of_atom| of_atom[a as usize] == of_atom[b as usize])
    }

    /// Atoms that look the same in some columns, as members of folded rows, in the order of their intervals.
    pub(super) fn groups(&self, columns: &[usize]) -> Rows {
        let ranks: Vec<Vec<u32>> = columns.iter().map(|&column| self.columns[column].ranks()).collect();
        let n_codes: Vec<u32> = ranks.iter().map(|ranks| ranks.len() as u32).collect();
        let n_atoms = self.columns.first().map_or(0, |column| column.of_atom.len());
        let all: Vec<u32> = (0..n_atoms as u32).collect();
        Rows::fold(&n_codes, &all, |position, atom| {
            ranks[position][self.columns[columns[position]].of_atom[atom as usize] as usize]
        })
    }

    /// The atoms whose class in these columns does not satisfy the rules.
    pub(super) fn unmet(&self, atoms: &Atoms<'_>, columns: &[usize], rules: &Rules) -> Vec<u32> {
        let groups = self.groups(columns);
        let mut tally = Tally::new(rules);
        let all = 0..groups.len() as u32;
        let unmet = all.filter(|&group| !atoms.stand(&mut tally, groups.members(group), rules));
        unmet.flat_map(|group| groups.members(group)).copied().collect()
    }

    /// Classes of atoms that look the same in all columns, which are given in the order of their boxes.
    pub(super) fn classes(&self, columns: &[usize]) -> Classes {
        let groups = self.groups(columns);
        let mut boxes = vec![(0, 0); groups.len() * self.columns.len()];
        boxes.par_chunks_mut(self.columns.len().max(1)).enumerate().for_each(|(group, shown)| {
            let first = groups.members(group as u32)[0] as usize;
            for (interval, &column) in shown.iter_mut().zip(columns) {
                let column = &self.columns[column];
                *interval = column.intervals[column.of_atom[first] as usize];
            }
        });
        Classes { boxes: Some(boxes), ..Classes::new(groups.into_members()) }
    }

    /// What each column loses, over all rows.
    pub(super) fn loss_of_columns(&self, atoms: &Atoms<'_>) -> Vec<f64> {
        let loss = |(column, shown): (usize, &ShownColumn)| {
            let mut weights = vec![0; shown.intervals.len()];
            for (atom, &number) in shown.of_atom.iter().enumerate() {
                weights[number as usize] += u64::from(atoms.rows.weight(atom as u32));
            }
            let width = |&(lo, hi): &(u32, u32)| atoms.domains[column].width(lo, hi);
            weights.iter().zip(&shown.intervals).map(|(&weight, interval)| weight as f64 * width(interval)).sum()
        };
        self.columns.par_iter().enumerate().map(loss).collect()
    }
}
