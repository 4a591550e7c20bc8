//! One release for several audiences: k-anonymous in the columns that each of them may know, not in all at once.
//!
//! Rows of a *body* show one box in the columns that audiences share. In the columns that only one of them knows, each
//! audience's *wing* partitions the body's rows by itself, so that an audience sees classes that satisfy it, and
//! nobody pays for columns they don't know. A class in all columns is a body without wings.
//!
//! # Guarantee
//! rows that look the same in the columns of an audience, or of a coalition of them, satisfy everything it asks: counted
//! once more before anything is returned. No more loss than anonymizing all columns at once by the same partitioner,
//! unless persons have several rows and bodies must be joined, or a column must be kept from those who don't know it
//! # Paper
//! `[PTL+08]`
//! # Deviations
//! If coalitions ask for something, rows are first put into classes, in all columns, that satisfy it. Such a class
//! counts with its number of persons; the paper knows only k' and counts ceil(k/k') classes. If a coalition is not of
//! all audiences, its members are also tried as one audience, and the result that loses less is taken. The classes are
//! made by cutting shared columns first, because bodies then agree in more columns. If that gains little, they are also
//! made by cutting all columns, as in the paper, and inside of the union's classes. Requirements other than k hold for
//! every audience's classes, which the paper leaves open. Rows are left out only if they can be in no class. The blocks
//! of a spec are ignored, because bodies reach across them. Full-domain recoding is refused: it shows a column at one
//! level everywhere, and wings need some rows finer.
//! # Minimality
//! The columns of all audiences decide where bodies and classes end, so a reader who knows the algorithm can rule out
//! tables that would have been cut differently. With [`Steer::Common`] nobody can, see `blind_search.rs`. Its cost is
//! measured against the release that would have been made otherwise.
//! # Cost
//! a small multiple of partitioning all columns at once

mod atoms;
mod blind_search;
mod bound;
mod butterfly;
mod hidden;
mod plan;
mod savings;
mod search;
mod settle;
mod shown;
mod tree;

pub use savings::{Losses, Savings, SteerCost};

use std::collections::BTreeSet;

use kohort_model::spec::Algorithm;
use kohort_model::{Audiences, Coalition, Note, Persons, Progress, Quiet, Requirement, Spec, Steer, Table};
use rayon::prelude::*;

use crate::encode::Encoded;
use crate::loss;
use crate::partition::{CutTree, KeepTree, Mondrian, Partitioner, Task};
use crate::recode::{Recoding, Shown};
use crate::requirement::{Rules, UnfitColumn};
use crate::{AnonymizeError, Anonymized, partitioner, suppress};
use atoms::{Atoms, task};
use blind_search::BlindSearch;
use butterfly::Piece;
use hidden::HiddenDemand;
use plan::{Ask, Plan, columns_of, domains_of, shared, together, without_redundant};
use savings::loss_of_classes;
use search::{BoundCounts, GOOD_ENOUGH, Search, Trees};
use settle::{Demand, Demands, Outcome};
use shown::ShownBoxes;
use tree::BodyTree;

/// A release for several audiences and what it saved, not yet verified.
#[derive(Debug)]
pub struct AnonymizedForAudiences {
    /// The release.
    pub anonymized: Anonymized,
    /// What the release saved.
    pub saved: Savings,
}

/// How bodies are sought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// Where from.
    pub start: Start,
    /// The shape of bodies.
    pub shape: Shape,
}

/// What the search for bodies starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Classes in all columns, as in the paper.
    Union,
    /// The trees of [`Start::Union`], and also cuts of the columns that audiences share; the result that loses less is
    /// taken.
    UnionAndBody,
}

/// The columns in which a body of more than two audiences shows one box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Every column that any two audiences share, as in the paper.
    Super,
    /// Either the columns of [`Shape::Super`], or the columns that two groups of audiences share, with bodies for each
    /// group inside; the result that loses less is taken.
    Nested,
}

impl Default for Method {
    fn default() -> Self {
        Method { start: Start::UnionAndBody, shape: Shape::Nested }
    }
}

/// Anonymizes one table for several audiences.
///
/// # Errors
/// If the audiences' requirements can't be reached. There is then no release at all.
pub fn anonymize_audiences(
    table: &Table,
    spec: &Spec,
    audiences: &Audiences,
    progress: &dyn Progress,
) -> Result<AnonymizedForAudiences, AnonymizeError> {
    anonymize_audiences_by(table, spec, audiences, Method::default(), progress)
}

/// The same by a method of the caller's choice, for comparisons.
///
/// # Errors
/// As [`anonymize_audiences`].
pub fn anonymize_audiences_by(
    table: &Table,
    spec: &Spec,
    audiences: &Audiences,
    method: Method,
    progress: &dyn Progress,
) -> Result<AnonymizedForAudiences, AnonymizeError> {
    let quasi = positions_of(table, &audiences.union())?;
    if quasi.is_empty() {
        return Err(AnonymizeError::NoQuasiColumn);
    }
    let partitioner = local_partitioner(spec)?;
    progress.begin("encode", 0);
    let encoded = Encoded::new(table, &quasi)?;
    let AsksOfAudiences { asks, coalitions, hidden } = AsksOfAudiences::new(table, audiences, &encoded)?;
    let collusion = together(&coalitions);
    let everything = [together(&asks), collusion.clone()].concat();
    let kept = suppress::rows_that_can_stand(table, &encoded, &everything, spec.max_suppressed, &[])?;
    let compile = |requirements: &[Requirement]| Rules::compile(table, requirements, &kept);
    let rules = compile(&everything)?;
    let plan = Plan::new(&without_redundant(&asks), &encoded.domains, &compile, method.shape)?;
    let visible = asks.iter().chain(&coalitions).map(|ask| Demand::new(ask, &compile)).collect::<Result<_, _>>()?;
    let demands = Demands { visible, hidden };

    let kept_rows = || Atoms::of_rows(&encoded.domains, encoded.fold(&kept));
    let rows = kept_rows();
    let common = shared(asks.iter().map(|ask| &ask.columns));
    let n_left_out = table.n_rows - kept.len();
    let losses = |of_columns: &[f64]| Losses::of_columns(of_columns, &common, table.n_rows, n_left_out);

    progress.begin("partition", 0);
    let quiet = Quiet(progress);
    let classes = partitioner.partition(&Task { progress: &quiet, ..task(&rows.rows, &encoded.domains, &rules) });
    crate::stop_if_cancelled(progress)?;
    let mut classes = classes?;
    let (cuts, classes) = (classes.tree.take(), classes.to_lists());
    let all_columns: Vec<usize> = (0..quasi.len()).collect();
    let union = Union { losses: loss_of_classes(&rows, &classes, &all_columns), classes, cuts };
    let of_union = losses(&union.losses);
    let of_separate = losses(&loss_of_separate(&rows, &asks, &compile, partitioner.as_ref())?);

    progress.begin("butterflies", 0);
    let counts = BoundCounts::default();
    let finder = Finder {
        spec,
        method,
        partitioner: partitioner.as_ref(),
        plan: &plan,
        counts: &counts,
        demands: &demands,
        progress,
    };
    let mut steer_cost = None;
    let outcome = if demands.are_met_by(&rows) {
        Outcome::unchanged(rows)
    } else {
        let of_coalitions = compile(&collusion)?;
        let mut found = match of_coalitions.asks_anything() {
            false => finder.find_among_rows(rows.clone(), &union),
            true => finder.find_among_classes(&rows, &union, &of_coalitions),
        };
        // The members of a coalition can also be served as one audience that knows the columns of all of them. Try that
        // too.
        if let Some(merged) = merge_colluding(&asks, &coalitions) {
            let plan = Plan::new(&without_redundant(&merged), &encoded.domains, &compile, method.shape)?;
            let merged = Finder { plan: &plan, ..finder }.find_among_rows(rows, &union);
            if merged.loss() < found.loss() {
                found = merged;
            }
        }
        if audiences.steer == Steer::Common {
            let members = |coalition: &Coalition| {
                let is_member = |name: &String| audiences.each.iter().position(|audience| audience.name == *name);
                coalition.members.iter().filter_map(is_member).collect()
            };
            let asked = audiences.coalitions.iter().map(members).zip(coalitions.iter());
            let search = BlindSearch {
                quick: finder.quick(),
                partitioner: partitioner.as_ref(),
                compile: &compile,
                coalitions: asked.map(|(members, ask)| (members, ask.requirements.clone())).collect(),
            };
            let mut closed = search.find(kept_rows(), &asks)?;
            closed.settle(&demands);
            steer_cost = Some(SteerCost { steered: closed.loss(), free: found.loss() });
            found = closed;
        }
        found
    };

    crate::stop_if_cancelled(progress)?;
    progress.begin("recode", 0);
    let Outcome { atoms, shown: boxes, .. } = &outcome;
    let classes = boxes.classes();
    let shown = Shown::new(&classes, &encoded, &atoms.rows);
    let everybody: Vec<u32> = (0..table.n_rows as u32).collect();
    let (n_in, n_out) = (suppress::n_persons(&rules, &everybody), suppress::n_persons(&rules, &kept));
    let persons = Persons { n_in, n_out, suppressed: n_in - n_out };
    // Only `collusion` asks something of classes in all columns.
    let of_all = compile(&collusion)?;
    let recoding = Recoding { table, encoded: &encoded, rows: &atoms.rows, classes: &classes, shown: &shown };
    let (loss, release) = (loss::measure(&recoding, &of_all, persons), recoding.release(spec.order));
    let (asked, let_through, taken) = counts.read();
    let saved = Savings {
        shape: outcome.shape(),
        union: of_union,
        separate: of_separate,
        release: losses(&boxes.loss_of_columns(atoms)),
        in_butterflies: outcome.share_in_butterflies(),
        asked,
        let_through,
        taken,
        steer_cost,
    };
    Ok(AnonymizedForAudiences {
        anonymized: Anonymized { release, loss, persons, algorithm: partitioner.name(), notes: Note::unused(spec) },
        saved,
    })
}

/// The partitioner of a spec, if its classes may be regrouped.
fn local_partitioner(spec: &Spec) -> Result<Box<dyn Partitioner>, AnonymizeError> {
    match spec.algorithm {
        // Full-domain recoding shows a whole column at one level, but audiences need some rows finer.
        algorithm @ Algorithm::FullDomain => {
            Err(AnonymizeError::Unavailable { algorithm, kind: "for several audiences" })
        }
        Algorithm::Mondrian => Ok(Box::new(Mondrian { spec: spec.mondrian, keep_tree: KeepTree::Yes })),
        _ => partitioner(spec, Vec::new()),
    }
}

/// Positions of columns in the table, ascending.
fn positions_of(table: &Table, names: &[&str]) -> Result<Vec<usize>, UnfitColumn> {
    let position = |name: &&str| {
        let position = table.columns.iter().position(|column| column.name == **name);
        position.ok_or_else(|| UnfitColumn { column: (**name).to_owned() })
    };
    let mut positions = names.iter().map(position).collect::<Result<Vec<usize>, _>>()?;
    positions.sort_unstable();
    Ok(positions)
}

/// All requirements. Columns are positions among the quasi columns.
struct AsksOfAudiences {
    /// The requirements of each audience.
    asks: Vec<Ask>,
    /// The requirements of audiences that put together what they know.
    coalitions: Vec<Ask>,
    /// The requirements on quasi columns that an audience or coalition does not know.
    hidden: Vec<HiddenDemand>,
}

impl AsksOfAudiences {
    fn new(table: &Table, audiences: &Audiences, encoded: &Encoded<'_>) -> Result<AsksOfAudiences, AnonymizeError> {
        let mut hidden = Vec::new();
        let mut ask = |names: &[&str], requirements: &[Requirement]| -> Result<Ask, AnonymizeError> {
            let positions = positions_of(table, names)?;
            let place = |position: usize| encoded.columns.binary_search(&position).ok();
            let columns: BTreeSet<usize> = positions.into_iter().filter_map(place).collect();
            let mut visible = Vec::new();
            for requirement in requirements {
                let named = requirement.column().and_then(|name| table.position(name)).and_then(place);
                match named {
                    Some(column) => hidden.push(HiddenDemand::new(table, encoded, &columns, column, requirement)?),
                    None => visible.push(requirement.clone()),
                }
            }
            Ok(Ask { columns, requirements: visible })
        };
        let of_audience = audiences.each.iter().map(|audience| {
            let names: Vec<&str> = audience.quasi.iter().map(String::as_str).collect();
            ask(&names, &audience.requirements)
        });
        let asks = of_audience.collect::<Result<_, _>>()?;
        let of_coalition =
            audiences.coalitions.iter().map(|coalition| ask(&audiences.known_to(coalition), &coalition.requirements));
        let coalitions = of_coalition.collect::<Result<_, _>>()?;
        Ok(AsksOfAudiences { asks, coalitions, hidden })
    }
}

/// The audiences, with those that may collude merged into one, which asks everything that its members and their
/// coalition ask. `None` if a single audience would remain.
fn merge_colluding(asks: &[Ask], coalitions: &[Ask]) -> Option<Vec<Ask>> {
    let mut merged = asks.to_vec();
    for coalition in coalitions {
        let (inside, mut others): (Vec<Ask>, Vec<Ask>) =
            merged.into_iter().partition(|ask| ask.columns.is_subset(&coalition.columns));
        let members = [inside, vec![coalition.clone()]].concat();
        others.push(Ask { columns: columns_of(&members), requirements: together(&members) });
        merged = others;
    }
    (merged.len() > 1 && !coalitions.is_empty()).then_some(merged)
}

/// The loss of each column if every audience gets a release of its own. A column of several audiences counts with their
/// mean.
fn loss_of_separate(
    rows: &Atoms<'_>,
    asks: &[Ask],
    compile: plan::Compile<'_>,
    partitioner: &dyn Partitioner,
) -> Result<Vec<f64>, UnfitColumn> {
    let n_columns = rows.domains.len();
    let mut losses = vec![0.0; n_columns];
    let mut n_audiences = vec![0.0f64; n_columns];
    for ask in asks {
        let columns: Vec<usize> = ask.columns.iter().copied().collect();
        let domains = domains_of(rows.domains, &columns);
        let projection = rows.project(&rows.all(), &columns);
        let classes = projection.classes(&domains, &compile(&ask.requirements)?, partitioner);
        for (&column, loss) in columns.iter().zip(loss_of_classes(rows, &classes, &columns)) {
            losses[column] += loss;
            n_audiences[column] += 1.0;
        }
    }
    Ok(losses.iter().zip(&n_audiences).map(|(loss, n)| loss / n.max(1.0)).collect())
}

/// The classes that the partitioner finds in the columns of all audiences.
struct Union {
    classes: Vec<Vec<u32>>,
    cuts: Option<CutTree>,
    /// Per column.
    losses: Vec<f64>,
}

/// Finds the cells that rows show.
struct Finder<'f> {
    spec: &'f Spec,
    method: Method,
    partitioner: &'f dyn Partitioner,
    plan: &'f Plan,
    counts: &'f BoundCounts,
    demands: &'f Demands,
    progress: &'f dyn Progress,
}

impl Finder<'_> {
    /// Bodies of these atoms; `tree` is that of their classes in all columns, if known.
    fn find<'a>(&self, atoms: Atoms<'a>, tree: Option<BodyTree>, trees: Trees) -> Outcome<'a> {
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

    fn quick(&self) -> Mondrian {
        Mondrian { spec: self.spec.mondrian, keep_tree: KeepTree::Yes }
    }

    fn trees(&self, good_enough: f64) -> Trees {
        match self.method.start {
            Start::Union => Trees::OfClasses,
            Start::UnionAndBody => Trees::Both { good_enough },
        }
    }

    /// Bodies of the rows themselves.
    fn find_among_rows<'a>(&self, rows: Atoms<'a>, union: &Union) -> Outcome<'a> {
        let tree = BodyTree::of_classes(&rows, &union.classes, union.cuts.as_ref());
        self.find(rows, Some(tree), self.trees(GOOD_ENOUGH))
    }

    /// Bodies of classes that satisfy `rules` in the columns of all audiences. Such classes are made in up to three ways,
    /// and the result that loses least is taken. If the first result is good enough, the other ways are not tried.
    fn find_among_classes<'a>(&self, rows: &Atoms<'a>, union: &Union, rules: &Rules) -> Outcome<'a> {
        let loss_of_union: f64 = union.losses.iter().sum();
        let inside = |sets: &[Vec<u32>]| self.classes_inside(rows, sets, rules);
        let atoms_of = |classes: &[Vec<u32>]| Atoms::of_classes(rows.domains, &rows.rows, classes);
        let mut best: Option<Outcome<'a>> = None;
        if let (Start::UnionAndBody, Some(split)) = (self.method.start, &self.plan.split) {
            let bodies = rows.project(&rows.all(), &split.body).classes(&split.domains, rules, &self.quick());
            let body_first = self.find(atoms_of(&inside(&bodies).concat()), None, Trees::BodyFirst);
            if body_first.loss() < GOOD_ENOUGH * loss_of_union {
                return body_first;
            }
            best = Some(body_first);
        }
        // The atoms are classes of k', so the loss of classes of k is no measure of what is good enough: search both trees.
        let of_all = self.find(atoms_of(&inside(&[rows.all()]).concat()), None, self.trees(0.0));
        // Parts of the union's classes can show the same cells as the union's classes, so they need not lose more.
        let parts = inside(&union.classes);
        let atoms = atoms_of(&parts.concat());
        let tree = BodyTree::of_classes(&atoms, &numbers_of(&parts), union.cuts.as_ref());
        let of_union = self.find(atoms, Some(tree), self.trees(0.0));
        let less = |one: Outcome<'a>, other: Outcome<'a>| if other.loss() < one.loss() { other } else { one };
        [Some(of_all), best].into_iter().flatten().fold(of_union, less)
    }

    /// The classes inside of each of some sets of rows.
    fn classes_inside(&self, rows: &Atoms<'_>, sets: &[Vec<u32>], rules: &Rules) -> Vec<Vec<Vec<u32>>> {
        let inside =
            |set: &Vec<u32>| rows.project(set, &self.plan.columns).classes(&self.plan.domains, rules, self.partitioner);
        sets.par_iter().map(inside).collect()
    }
}

/// The numbers of the parts of each set, counted through.
fn numbers_of(sets: &[Vec<Vec<u32>>]) -> Vec<Vec<u32>> {
    let mut numbers = 0..;
    sets.iter().map(|set| numbers.by_ref().take(set.len()).collect()).collect()
}

#[cfg(test)]
mod tests;
