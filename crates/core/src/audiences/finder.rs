//! [`Finder`]: the ways to find what rows show, of which the one that loses least is taken.
//!
//! Bodies are made of all rows, as in the paper. Beside that, rows are placed one by one where everybody who looks at
//! them stays satisfied (`repair.rs`).
//!
//! # Guarantee
//! never more loss than bodies of all rows, nor than leaving every row untouched that can stay so and making bodies of
//! the others

use kohort_model::Progress;
use kohort_model::Spec;
use kohort_model::spec::Algorithm;
use rayon::prelude::*;

use super::atoms::{Atoms, task};
use super::butterfly::Piece;
use super::layers::Layers;
use super::plan::Plan;
use super::repair::{Placed, Repair};
use super::savings::loss_of_classes;
use super::search::{BoundCounts, GOOD_ENOUGH, Search, Trees};
use super::settle::{Demands, Outcome};
use super::shown::ShownBoxes;
use super::tree::BodyTree;
use super::{Method, Narrow, Start};
use crate::partition::{Classes, CutTree, KeepTree, Mondrian, Partitioner};
use crate::requirement::Rules;

/// How often each row may be visited while rows are placed and narrowed. A visit costs as much as a few cuts of the row,
/// and Mondrian cuts each row only a few times.
const VISITS: u64 = 300;
const VISITS_BESIDE_MONDRIAN: u64 = 40;

/// The classes that the partitioner finds in the columns of all audiences.
pub(super) struct Union {
    classes: Vec<Vec<u32>>,
    cuts: Option<CutTree>,
    /// Per column.
    pub(super) losses: Vec<f64>,
}

impl Union {
    pub(super) fn of(rows: &Atoms<'_>, mut classes: Classes) -> Union {
        let all_columns: Vec<usize> = (0..rows.domains.len()).collect();
        let (cuts, classes) = (classes.tree.take(), classes.to_lists());
        Union { losses: loss_of_classes(rows, &classes, &all_columns), classes, cuts }
    }
}

/// Finds the cells that rows show.
#[derive(Clone, Copy)]
pub(super) struct Finder<'f> {
    pub(super) spec: &'f Spec,
    pub(super) method: Method,
    pub(super) partitioner: &'f dyn Partitioner,
    /// Everything that anybody asks.
    pub(super) rules: &'f Rules,
    /// Everything that coalitions ask.
    pub(super) of_coalitions: &'f Rules,
    pub(super) plan: &'f Plan,
    /// The plan if the members of each coalition are one audience, where some coalition has not all audiences.
    pub(super) merged: Option<&'f Plan>,
    pub(super) counts: &'f BoundCounts,
    pub(super) demands: &'f Demands<'f>,
    pub(super) progress: &'f dyn Progress,
}

impl Finder<'_> {
    /// The cells of these rows that lose least of all that were found.
    pub(super) fn find<'a>(&self, rows: &Atoms<'a>, union: &Union) -> Outcome<'a> {
        if self.method.narrow == Narrow::No {
            return self.bodies(rows, union, f64::INFINITY).unwrap_or_else(|| Outcome::one_class(rows));
        }
        let layers = Layers::new(rows);
        let visits = if self.spec.algorithm == Algorithm::Mondrian { VISITS_BESIDE_MONDRIAN } else { VISITS };
        let repair = Repair { rows, layers: &layers, finder: self, most_visits: visits * rows.len() as u64 };
        let by_layers = repair.around(Placed::ByLayers, f64::INFINITY);
        let limit = by_layers.as_ref().map_or(f64::INFINITY, Outcome::loss);
        let untouched = repair.around(Placed::Untouched, limit);
        let limit = untouched.as_ref().map_or(limit, |found| limit.min(found.loss()));
        let bodies = self.bodies(rows, union, limit);
        let narrowed = bodies.as_ref().map(|bodies| repair.after(bodies));
        let found = [bodies, narrowed, untouched, by_layers].into_iter().flatten();
        // Of those that lose the same, the first one.
        let least = found.reduce(|best, other| if other.loses_less_than(&best) { other } else { best });
        least.unwrap_or_else(|| Outcome::one_class(rows))
    }

    /// Bodies of these rows; `None` if they can't lose less than the limit.
    fn bodies<'a>(&self, rows: &Atoms<'a>, union: &Union, limit: f64) -> Option<Outcome<'a>> {
        let found = match self.of_coalitions.asks_anything() {
            false => Some(self.among_rows(rows.clone(), union)),
            true => self.among_classes(rows, union, limit),
        };
        // The members of a coalition can also be served as one audience that knows the columns of all of them.
        let merged = self.merged.map(|plan| Finder { plan, ..*self }.among_rows(rows.clone(), union));
        match (found, merged) {
            (Some(found), Some(merged)) if found.loss() <= merged.loss() => Some(found),
            (found, None) => found,
            (_, merged) => merged,
        }
    }

    /// Bodies of rows whose union is not known yet; `None` if they can't lose less than the limit, or are too few.
    pub(super) fn bodies_of_some<'a>(&self, rows: &Atoms<'a>, limit: f64) -> Option<Outcome<'a>> {
        let classes = self.partitioner.partition(&task(&rows.rows, rows.domains, self.rules)).ok()?;
        self.bodies(rows, &Union::of(rows, classes), limit)
    }

    /// Bodies of these atoms; `tree` is that of their classes in all columns, if known.
    fn of_atoms<'a>(&self, atoms: Atoms<'a>, tree: Option<BodyTree>, trees: Trees) -> Outcome<'a> {
        let thorough = (self.spec.algorithm != Algorithm::Mondrian).then_some(self.partitioner);
        let Finder { counts, progress, .. } = *self;
        let search = Search { atoms: &atoms, quick: self.quick(), thorough, trees, counts, progress };
        let solution = search.solve(&atoms.all(), self.plan, tree);
        let (bodies, pieces): (Vec<Vec<u32>>, Vec<Vec<Piece<'_>>>) =
            solution.bodies.into_par_iter().map(|body| (body.atoms.clone(), body.into_pieces(&atoms))).unzip();
        let shown = ShownBoxes::new(&atoms, pieces.into_iter().flatten());
        let mut outcome = Outcome { atoms, shown, bodies };
        outcome.settle(self.demands);
        outcome
    }

    pub(super) fn quick(&self) -> Mondrian {
        Mondrian { spec: self.spec.mondrian, keep_tree: KeepTree::Yes }
    }

    fn trees(&self, good_enough: f64) -> Trees {
        match self.method.start {
            Start::Union => Trees::OfClasses,
            Start::UnionAndBody => Trees::Both { good_enough },
        }
    }

    /// Bodies of the rows themselves.
    fn among_rows<'a>(&self, rows: Atoms<'a>, union: &Union) -> Outcome<'a> {
        let tree = BodyTree::of_classes(&rows, &union.classes, union.cuts.as_ref());
        self.of_atoms(rows, Some(tree), self.trees(GOOD_ENOUGH))
    }

    /// Bodies of classes that satisfy all coalitions in the columns of all audiences. Such classes are made in up to three
    /// ways, and the result that loses least is taken. If the first result is good enough, the other ways are not tried,
    /// nor is any way whose classes lose as much as the limit before they are bodies.
    fn among_classes<'a>(&self, rows: &Atoms<'a>, union: &Union, limit: f64) -> Option<Outcome<'a>> {
        let loss_of_union: f64 = union.losses.iter().sum();
        let inside = |sets: &[Vec<u32>]| self.classes_inside(rows, sets);
        let atoms_of = |classes: &[Vec<u32>]| Atoms::of_classes(rows.domains, &rows.rows, classes);
        let mut best: Option<Outcome<'a>> = None;
        let limit_of = |best: &Option<Outcome<'a>>| best.as_ref().map_or(limit, |best| limit.min(best.loss()));
        if let (Start::UnionAndBody, Some(split)) = (self.method.start, &self.plan.split) {
            let bodies = rows.project(&rows.all(), &split.body);
            let bodies = bodies.classes(&split.domains, self.of_coalitions, &self.quick());
            let atoms = atoms_of(&inside(&bodies).concat());
            if atoms.loss() < limit {
                let body_first = self.of_atoms(atoms, None, Trees::BodyFirst);
                if body_first.loss() < GOOD_ENOUGH * loss_of_union {
                    return Some(body_first);
                }
                best = Some(body_first);
            }
        }
        // Parts of the union's classes can show the same cells as the union's classes, so they need not lose more.
        let parts = inside(&union.classes);
        let atoms = atoms_of(&parts.concat());
        // The atoms are classes of k', so the loss of classes of k is no measure of what is good enough: search both trees.
        if atoms.loss() < limit_of(&best) {
            let tree = BodyTree::of_classes(&atoms, &numbers_of(&parts), union.cuts.as_ref());
            best = less(best, self.of_atoms(atoms, Some(tree), self.trees(0.0)));
        }
        let atoms = atoms_of(&inside(&[rows.all()]).concat());
        if atoms.loss() < limit_of(&best) {
            best = less(best, self.of_atoms(atoms, None, self.trees(0.0)));
        }
        best
    }

    /// The classes that satisfy all coalitions inside of each of some sets of rows.
    fn classes_inside(&self, rows: &Atoms<'_>, sets: &[Vec<u32>]) -> Vec<Vec<Vec<u32>>> {
        let inside = |set: &Vec<u32>| {
            let projection = rows.project(set, &self.plan.columns);
            projection.classes(&self.plan.domains, self.of_coalitions, self.partitioner)
        };
        sets.par_iter().map(inside).collect()
    }
}

fn less<'a>(best: Option<Outcome<'a>>, other: Outcome<'a>) -> Option<Outcome<'a>> {
    match best {
        Some(best) if best.loss() <= other.loss() => Some(best),
        _ => Some(other),
    }
}

/// The numbers of the parts of each set, counted through.
fn numbers_of(sets: &[Vec<Vec<u32>>]) -> Vec<Vec<u32>> {
    let mut numbers = 0..;
    sets.iter().map(|set| numbers.by_ref().take(set.len()).collect()).collect()
}
