//! [`Atoms`]: what bodies and wings are made of and never divide.
//!
//! If nothing is asked of all audiences together, an atom is a folded row. If even all audiences together must not tell
//! k' persons apart, an atom is a class of such persons: it already shows an interval in each column, and can only show
//! larger ones. Partitioners know codes, not intervals, so an atom's row has the codes in the middle of its intervals.
//! What a class shows and loses is computed from the intervals.

use kohort_model::Silent;

use crate::encode::bounds::{self, Bounds};
use crate::encode::{Domain, Rows};
use crate::partition::{Classes, Partitioner, Task};
use crate::requirement::{Rules, Tally};

/// The indivisible parts of a table.
#[derive(Clone)]
pub(super) struct Atoms<'a> {
    /// The domains of all columns of all audiences.
    pub(super) domains: &'a [Domain],
    /// One row per atom; its codes are the middles of the atom's intervals.
    pub(super) rows: Rows,
    /// One interval per column, atom after atom; `None` if every atom is a single code in every column.
    boxes: Option<Vec<(u32, u32)>>,
}

/// Some atoms, reduced to some columns. Atoms that are equal in these columns are one row.
pub(super) struct Projection {
    /// The members of each row are rows of the table.
    pub(super) rows: Rows,
    /// The same rows, but the members of each row are atoms.
    of_atoms: Rows,
}

impl<'a> Atoms<'a> {
    pub(super) fn of_rows(domains: &'a [Domain], rows: Rows) -> Atoms<'a> {
        Atoms { domains, rows, boxes: None }
    }

    /// Every class by itself.
    pub(super) fn of_classes(domains: &'a [Domain], rows: &Rows, classes: &[Vec<u32>]) -> Atoms<'a> {
        let boxes: Vec<Bounds> = classes.iter().map(|class| rows.bounds(class)).collect();
        let middles = boxes.iter().map(|bounds| bounds::middle(bounds));
        let grouped = Rows::given(domains.len(), middles.zip(classes.iter().map(|class| class.iter().copied())));
        Atoms { domains, rows: grouped.through(rows), boxes: Some(boxes.concat()) }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

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

    /// Whether some atom covers more than one code in a column.
    pub(super) fn have_boxes(&self) -> bool {
        self.boxes.is_some()
    }

    /// The smallest box in some columns that holds these atoms.
    pub(super) fn bounds(&self, atoms: &[u32], columns: &[usize]) -> Bounds {
        let mut bounds = vec![bounds::EMPTY; columns.len()];
        for &atom in atoms {
            for (bound, &column) in bounds.iter_mut().zip(columns) {
                *bound = bounds::both(*bound, self.interval(atom, column));
            }
        }
        bounds
    }

    /// The loss of a row that shows this box in these columns.
    pub(super) fn perimeter(&self, bounds: &[(u32, u32)], columns: &[usize]) -> f64 {
        bounds.iter().zip(columns).map(|(&(lo, hi), &column)| self.domains[column].width(lo, hi)).sum()
    }

    /// What all rows lose if every atom shows no more than it holds.
    pub(super) fn loss(&self) -> f64 {
        let columns: Vec<usize> = (0..self.domains.len()).collect();
        let loss =
            |atom: u32| self.perimeter(&self.bounds(&[atom], &columns), &columns) * f64::from(self.rows.weight(atom));
        (0..self.len() as u32).map(loss).sum()
    }

    /// Whether these atoms may be a class. The tally is scratch memory, which the caller reuses from class to class.
    pub(super) fn stand(&self, tally: &mut Tally<'_>, members: &[u32], rules: &Rules) -> bool {
        task(&self.rows, self.domains, rules).stands(tally, members.iter().copied())
    }

    pub(super) fn project(&self, atoms: &[u32], columns: &[usize]) -> Projection {
        let n_codes: Vec<u32> = columns.iter().map(|&column| self.domains[column].n_codes()).collect();
        let of_atoms = Rows::fold(&n_codes, atoms, |column, atom| self.rows.cells(atom)[columns[column]]);
        Projection { rows: of_atoms.through(&self.rows), of_atoms }
    }
}

impl Projection {
    /// The classes of these atoms, as a partitioner finds them; `None` if not even all together may be one.
    pub(super) fn partition(
        &self,
        domains: &[Domain],
        rules: &Rules,
        partitioner: &dyn Partitioner,
    ) -> Option<Classes> {
        partitioner.partition(&task(&self.rows, domains, rules)).ok()
    }

    /// The same, as lists of atoms. If the atoms can't be divided into classes, all of them are one list.
    pub(super) fn classes(&self, domains: &[Domain], rules: &Rules, partitioner: &dyn Partitioner) -> Vec<Vec<u32>> {
        match self.partition(domains, rules, partitioner) {
            Some(classes) => classes.iter().map(|class| self.atoms(class)).collect(),
            None => vec![self.of_atoms.clone().into_members().items().to_vec()],
        }
    }

    /// Whether every row by itself may be a class.
    pub(super) fn all_stand(&self, atoms: &Atoms<'_>, rules: &Rules) -> bool {
        let mut tally = Tally::new(rules);
        (0..self.of_atoms.len() as u32).all(|row| atoms.stand(&mut tally, self.of_atoms.members(row), rules))
    }

    pub(super) fn atoms(&self, rows: &[u32]) -> Vec<u32> {
        rows.iter().flat_map(|&row| self.of_atoms.members(row)).copied().collect()
    }
}

/// The task of a partitioner that places everybody.
pub(super) fn task<'t>(rows: &'t Rows, domains: &'t [Domain], rules: &'t Rules) -> Task<'t> {
    Task::of_everybody(rows, domains, rules, &Silent)
}
