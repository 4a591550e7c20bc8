//! [`Atoms`]: what bodies and wings are made of and never divide.
//!
//! Without a demand on all audiences together an atom is a folded row. Where they must not tell k' persons apart even
//! together, it is a class of such persons: it shows an interval per column already, and can only show larger ones.
//! Partitioners know codes, not intervals, so an atom stands where its interval has its middle; what a class shows and
//! loses comes from the intervals.

use crate::encode::{Domain, Rows};
use crate::partition::{Classes, Partitioner, Task};
use crate::requirement::{Rules, Tally};
use kohort_model::Silent;
use kohort_model::spec::Leftovers;

/// The indivisible parts of a table.
#[derive(Clone)]
pub(super) struct Atoms<'a> {
    /// Of all columns of all audiences.
    pub(super) domains: &'a [Domain],
    /// A row per atom with the codes where it stands.
    pub(super) rows: Rows,
    /// An interval per column, atom after atom, where they are more than a code.
    boxes: Option<Vec<(u32, u32)>>,
}

/// Some atoms seen in some columns: equal ones are one row.
pub(super) struct Projection {
    /// Each stands for rows of the table.
    pub(super) rows: Rows,
    /// The same rows, each standing for atoms.
    of_atoms: Rows,
}

impl<'a> Atoms<'a> {
    /// Every folded row by itself.
    pub(super) fn of_rows(domains: &'a [Domain], rows: Rows) -> Atoms<'a> {
        Atoms { domains, rows, boxes: None }
    }

    /// Every class by itself.
    pub(super) fn of_classes(domains: &'a [Domain], rows: &Rows, classes: &[Vec<u32>]) -> Atoms<'a> {
        let mut starts = vec![0];
        let mut boxes = Vec::with_capacity(classes.len() * domains.len());
        for class in classes {
            starts.push(starts[starts.len() - 1] + class.len() as u32);
            boxes.extend(rows.bounds(class));
        }
        let middles = boxes.iter().map(|&(lo, hi)| lo + (hi - lo) / 2).collect();
        let grouped = Rows::from_parts(domains.len(), middles, starts, classes.concat());
        Atoms { domains, rows: grouped.through(rows), boxes: Some(boxes) }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<u32> {
        (0..self.len() as u32).collect()
    }

    /// What an atom holds in a column.
    #[inline]
    pub(super) fn interval(&self, atom: u32, column: usize) -> (u32, u32) {
        match &self.boxes {
            Some(boxes) => boxes[atom as usize * self.domains.len() + column],
            None => {
                let code = self.rows.cells(atom)[column];
                (code, code)
            }
        }
    }

    /// Whether atoms hold more than a code.
    pub(super) fn have_boxes(&self) -> bool {
        self.boxes.is_some()
    }

    /// The smallest box in some columns that holds these atoms.
    pub(super) fn bounds(&self, atoms: &[u32], columns: &[usize]) -> Vec<(u32, u32)> {
        let mut bounds = vec![(u32::MAX, 0); columns.len()];
        let grow = |bound: &mut (u32, u32), lo: u32, hi: u32| *bound = (bound.0.min(lo), bound.1.max(hi));
        match &self.boxes {
            // Folded rows are the usual case, and a look at each cell is what most of the time goes to.
            None => {
                for &atom in atoms {
                    let cells = self.rows.cells(atom);
                    bounds
                        .iter_mut()
                        .zip(columns)
                        .for_each(|(bound, &column)| grow(bound, cells[column], cells[column]));
                }
            }
            Some(boxes) => {
                for &atom in atoms {
                    let shown = &boxes[atom as usize * self.domains.len()..];
                    bounds
                        .iter_mut()
                        .zip(columns)
                        .for_each(|(bound, &column)| grow(bound, shown[column].0, shown[column].1));
                }
            }
        }
        bounds
    }

    /// What a row loses that shows this box in these columns.
    pub(super) fn perimeter(&self, bounds: &[(u32, u32)], columns: &[usize]) -> f64 {
        bounds.iter().zip(columns).map(|(&(lo, hi), &column)| self.domains[column].width(lo, hi)).sum()
    }

    /// Whether these atoms may be a class; the tally is what a caller reuses from class to class.
    pub(super) fn stand(&self, tally: &mut Tally<'_>, members: &[u32], rules: &Rules) -> bool {
        if rules.weight_suffices() {
            return self.rows.weight_of(members) >= u64::from(rules.k());
        }
        tally.clear();
        members.iter().flat_map(|&atom| self.rows.members(atom)).for_each(|&row| tally.add(row));
        tally.stands()
    }

    /// Some atoms in some columns.
    pub(super) fn project(&self, atoms: &[u32], columns: &[usize]) -> Projection {
        let n_codes: Vec<u32> = columns.iter().map(|&column| self.domains[column].n_codes()).collect();
        let of_atoms = Rows::fold(&n_codes, atoms, |column, atom| self.rows.cells(atom)[columns[column]]);
        Projection { rows: of_atoms.through(&self.rows), of_atoms }
    }
}

impl Projection {
    /// The classes of these atoms, as a partitioner finds them; `None` where not even all together may be one.
    pub(super) fn partition(
        &self,
        domains: &[Domain],
        rules: &Rules,
        partitioner: &dyn Partitioner,
    ) -> Option<Classes> {
        partitioner.partition(&task(&self.rows, domains, rules)).ok()
    }

    /// The same as lists of atoms; all in one where they can't be told apart.
    pub(super) fn classes(&self, domains: &[Domain], rules: &Rules, partitioner: &dyn Partitioner) -> Vec<Vec<u32>> {
        match self.partition(domains, rules, partitioner) {
            Some(classes) => (0..classes.len()).map(|class| self.atoms(classes.rows(class))).collect(),
            None => vec![self.of_atoms.clone().into_groups().1],
        }
    }

    /// Whether every row by itself may be a class.
    pub(super) fn all_stand(&self, atoms: &Atoms<'_>, rules: &Rules) -> bool {
        let mut tally = Tally::new(rules);
        (0..self.of_atoms.len() as u32).all(|row| atoms.stand(&mut tally, self.of_atoms.members(row), rules))
    }

    /// The atoms of some rows.
    pub(super) fn atoms(&self, rows: &[u32]) -> Vec<u32> {
        rows.iter().flat_map(|&row| self.of_atoms.members(row)).copied().collect()
    }
}

/// The task of a partitioner that places everybody.
pub(super) fn task<'t>(rows: &'t Rows, domains: &'t [Domain], rules: &'t Rules) -> Task<'t> {
    Task { rows, domains, rules, allowance: 0, leftovers: Leftovers::Merge, progress: &Silent }
}
