//! [`Butterfly`]: rows that agree on the columns of a body, with wings for every part of a split.
//!
//! # Paper
//! `[PTL+08]` section 4.2.5

use rayon::prelude::*;

use super::atoms::{Atoms, Projection};
use super::plan::{Plan, Split};
use crate::partition::{Classes, Partitioner};

/// Atoms that show one box in some columns.
#[derive(Clone, Debug)]
pub(super) struct Piece<'p> {
    pub(super) columns: &'p [usize],
    pub(super) atoms: Vec<u32>,
    pub(super) bounds: Vec<(u32, u32)>,
}

/// A body and the wings of all parts.
pub(super) struct Butterfly<'p> {
    /// The loss in the body's columns.
    body_loss: f64,
    split: &'p Split,
    /// One wing for each part of the split, in the same order.
    wings: Vec<Wing<'p>>,
}

/// How the atoms of a body look in the columns of one part.
pub(super) struct Wing<'p> {
    loss: f64,
    form: Form<'p>,
}

enum Form<'p> {
    /// Classes for one audience.
    Classes(Box<Partition<'p>>),
    /// One body for a group of audiences.
    Butterfly(Butterfly<'p>),
    /// Several bodies, each with the cells that it shows.
    Pieces(Vec<Piece<'p>>),
}

/// Classes and the rows they are made of.
struct Partition<'p> {
    columns: &'p [usize],
    projection: Projection,
    classes: Classes,
}

impl<'p> Piece<'p> {
    pub(super) fn new(atoms: &Atoms<'_>, members: &[u32], columns: &'p [usize]) -> Piece<'p> {
        Piece { columns, atoms: members.to_vec(), bounds: atoms.bounds(members, columns) }
    }
}

impl<'p> Wing<'p> {
    /// The classes that a partitioner finds for one audience. `None` if not even all atoms together may be one.
    fn partitioned(
        atoms: &Atoms<'_>,
        members: &[u32],
        plan: &'p Plan,
        partitioner: &dyn Partitioner,
    ) -> Option<Wing<'p>> {
        let projection = atoms.project(members, &plan.columns);
        let classes = projection.partition(&plan.domains, &plan.rules, partitioner)?;
        let loss = |class: usize| {
            let rows = classes.rows(class);
            let bounds = match atoms.have_boxes() {
                true => atoms.bounds(&projection.atoms(rows), &plan.columns),
                false => projection.rows.bounds(rows),
            };
            atoms.perimeter(&bounds, &plan.columns) * projection.rows.weight_of(rows) as f64
        };
        let loss = (0..classes.len()).map(loss).sum();
        Some(Wing { loss, form: Form::Classes(Box::new(Partition { columns: &plan.columns, projection, classes })) })
    }

    /// What was found for a group of audiences.
    pub(super) fn of_pieces(loss: f64, pieces: Vec<Piece<'p>>) -> Wing<'p> {
        Wing { loss, form: Form::Pieces(pieces) }
    }

    fn add_pieces(self, atoms: &Atoms<'_>, members: &[u32], pieces: &mut Vec<Piece<'p>>) {
        match self.form {
            Form::Pieces(found) => pieces.extend(found),
            Form::Butterfly(butterfly) => butterfly.add_pieces(atoms, members, pieces),
            Form::Classes(found) => {
                let Partition { columns, projection, classes } = *found;
                let of_class = |class: usize| Piece::new(atoms, &projection.atoms(classes.rows(class)), columns);
                pieces.extend((0..classes.len()).map(of_class));
            }
        }
    }
}

impl<'p> Butterfly<'p> {
    /// One body of all these atoms. `None` if the atoms can't satisfy the rules of a wing.
    pub(super) fn build(
        atoms: &Atoms<'_>,
        members: &[u32],
        split: &'p Split,
        partitioner: &dyn Partitioner,
        of_group: &(dyn Fn(&'p Plan, &'p Split) -> Option<Wing<'p>> + Sync),
    ) -> Option<Butterfly<'p>> {
        let wing = |part: &'p Plan| match &part.split {
            None => Wing::partitioned(atoms, members, part, partitioner),
            Some(inner) => of_group(part, inner),
        };
        let wings: Option<Vec<Wing<'p>>> = split.parts.par_iter().map(wing).collect();
        let width = atoms.perimeter(&atoms.bounds(members, &split.body), &split.body);
        Some(Butterfly { body_loss: width * atoms.rows.weight_of(members) as f64, split, wings: wings? })
    }

    /// A butterfly on the given split, in which every group of audiences has a super butterfly on the same body.
    pub(super) fn build_flat(
        atoms: &Atoms<'_>,
        members: &[u32],
        split: &'p Split,
        partitioner: &dyn Partitioner,
    ) -> Option<Butterfly<'p>> {
        Butterfly::build(atoms, members, split, partitioner, &|_, inner| {
            let butterfly = Butterfly::build_flat(atoms, members, inner, partitioner)?;
            Some(Wing { loss: butterfly.loss(), form: Form::Butterfly(butterfly) })
        })
    }

    pub(super) fn loss(&self) -> f64 {
        self.body_loss + self.wings.iter().map(|wing| wing.loss).sum::<f64>()
    }

    /// Replaces wings by other wings that lose less.
    pub(super) fn improve(
        &mut self,
        atoms: &Atoms<'_>,
        members: &[u32],
        thorough: Option<&dyn Partitioner>,
        of_group: impl Fn(&'p Plan) -> Wing<'p>,
    ) {
        for (wing, part) in self.wings.iter_mut().zip(&self.split.parts) {
            let other = match (&part.split, &wing.form) {
                (Some(_), Form::Pieces(_)) => None,
                (Some(_), _) => Some(of_group(part)),
                (None, _) => thorough.and_then(|thorough| Wing::partitioned(atoms, members, part, thorough)),
            };
            if let Some(other) = other.filter(|other| other.loss < wing.loss) {
                *wing = other;
            }
        }
    }

    /// Adds the boxes that its atoms show.
    pub(super) fn add_pieces(self, atoms: &Atoms<'_>, members: &[u32], pieces: &mut Vec<Piece<'p>>) {
        pieces.push(Piece::new(atoms, members, &self.split.body));
        self.wings.into_iter().for_each(|wing| wing.add_pieces(atoms, members, pieces));
    }
}
