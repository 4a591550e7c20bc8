//! One release for several audiences: k-anonymous in the columns that each of them may know, not in all at once.
//!
//! Rows of a *body* show one box in the columns that audiences share. In the columns that only one of them knows, each
//! audience's *wing* partitions the body's rows by itself, so that an audience sees classes that satisfy it, and
//! nobody pays for columns they don't know. A class in all columns is a body without wings.
//!
//! # Guarantee
//! rows that look the same in an audience's columns satisfy everything it asks, and rows that look the same in all
//! columns are of k' persons where that is asked: counted once more before anything is returned. No more loss than
//! anonymizing all columns at once by the same partitioner
//! # Paper
//! `[PTL+08]`
//! # Deviations
//! where all audiences together must not tell k' persons apart, classes of k' persons count with the persons they have;
//! the paper counts ceil(k/k') classes. Such classes are made in two ways: by cutting all columns, as in the paper, and
//! by cutting shared columns first, which leaves bodies that agree more. Requirements other than k hold for every
//! audience's classes, which the paper leaves open. Rows are left out only where they could be in no class
//! # Cost
//! a small multiple of partitioning all columns at once

mod atoms;
mod bound;
mod butterfly;
mod plan;
mod savings;
mod search;
mod settle;
mod shown;
mod tree;

pub use savings::{Losses, Savings};

use kohort_model::spec::Algorithm;
use kohort_model::{Audiences, Persons, Progress, Requirement, Spec, Table};
use rayon::prelude::*;

use crate::encode::Encoded;
use crate::loss;
use crate::partition::{KeepTree, Mondrian, Partitioner};
use crate::recode::{RecodeOptions, Shown, recode};
use crate::requirement::{Rules, UnfitColumn};
use crate::{Anonymized, AnonymizeError, partitioner, suppress};
use atoms::{Atoms, task};
use plan::{Ask, Plan, Split, shared, together, without_redundant};
use savings::loss_of_classes;
use search::{Counts, Search};
use settle::{Demand, Outcome};
use shown::ShownBoxes;
use tree::BodyTree;

/// A release for several audiences and what it saved, not yet verified.
#[derive(Debug)]
pub struct AnonymizedForAudiences {
    /// The release.
    pub anonymized: Anonymized,
    /// What it saved.
    pub saved: Savings,
}

/// How bodies are sought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// Where from.
    pub start: Start,
    /// What they look like.
    pub shape: Shape,
}

/// What the search for bodies starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Classes in all columns, as in the paper.
    Union,
    /// These, and also cuts of the columns that audiences share, whichever loses less.
    UnionAndBody,
}

/// What bodies of more than two audiences agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Every column that any two audiences share, as in the paper.
    Super,
    /// This, or what two groups of audiences share, with bodies for each group inside; whichever loses less.
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
/// Where what they ask can't be reached; nothing is half done.
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
    let asks = asks_of(table, audiences, &quasi)?;
    let partitioner = local_partitioner(spec)?;
    progress.begin("encode", 0);
    let encoded = Encoded::new(table, &quasi)?;
    let collusion: Vec<Requirement> = audiences.collusion_k.map(Requirement::K).into_iter().collect();
    let everything = [together(&asks), collusion.clone()].concat();
    let kept = suppress::rows_that_can_stand(table, &encoded, &everything, spec.max_suppressed)?;
    let compile = |requirements: &[Requirement]| Rules::compile(table, requirements, &kept);
    let rules = compile(&everything)?;
    let plan = Plan::new(&without_redundant(&asks), &encoded.domains, &compile, method.shape)?;
    let demands = demands_of(&asks, &collusion, quasi.len(), &compile)?;

    let rows = Atoms::of_rows(&encoded.domains, encoded.fold(&kept));
    let common = shared(asks.iter().map(|ask| &ask.columns));
    let n_left_out = table.n_rows - kept.len();
    let losses = |of_columns: &[f64]| Losses::of_columns(of_columns, &common, table.n_rows, n_left_out);

    progress.begin("partition", 0);
    let mut union = partitioner.partition(&task(&rows.rows, &encoded.domains, &rules))?;
    let cuts = union.tree.take();
    let union = union.to_lists();
    let all_columns: Vec<usize> = (0..quasi.len()).collect();
    let of_union = loss_of_classes(&rows, &union, &all_columns);
    progress.begin("separate", 0);
    let of_separate = loss_of_separate(&rows, &asks, &compile, partitioner.as_ref())?;

    let counts = Counts::default();
    let finder = Finder { spec, method, partitioner: partitioner.as_ref(), plan: &plan, counts: &counts, demands: &demands };
    progress.begin("unchanged", 0);
    let outcome = if demands.iter().all(|demand| demand.is_met_by(&rows)) {
        Outcome::unchanged(rows)
    } else {
        progress.begin("butterflies", 0);
        match audiences.collusion_k {
            None => finder.find(rows, Some((union, cuts))),
            Some(k) => finder.find_among(rows, union, &of_union, compile(&[Requirement::K(k)])?),
        }
    };

    progress.begin("recode", 0);
    let Outcome { atoms, shown: boxes, .. } = &outcome;
    let classes = boxes.classes();
    progress.begin("shown", 0);
    let shown = Shown::new(&classes, &encoded, &atoms.rows);
    let everybody: Vec<u32> = (0..table.n_rows as u32).collect();
    let (n_in, n_out) = (suppress::n_persons(&rules, &everybody), suppress::n_persons(&rules, &kept));
    let persons = Persons { n_in, n_out, suppressed: n_in - n_out };
    progress.begin("measure", 0);
    let loss = loss::measure(table, &encoded, &rules, &atoms.rows, &classes, &shown, persons);
    progress.begin("recode", 0);
    let options = RecodeOptions { order: spec.order, keys: spec.keys };
    let release = recode(table, &encoded, &atoms.rows, &classes, &shown, options);
    progress.begin("savings", 0);
    let (asked, let_through, taken) = counts.read();
    let saved = Savings {
        shape: outcome.shape(),
        union: losses(&of_union),
        separate: losses(&of_separate),
        release: losses(&boxes.loss_of_columns(atoms)),
        in_butterflies: outcome.share_in_butterflies(),
        asked,
        let_through,
        taken,
    };
    Ok(AnonymizedForAudiences { anonymized: Anonymized { release, loss, persons, algorithm: partitioner.name() }, saved })
}

/// The partitioner of a spec, if its classes may be regrouped.
fn local_partitioner(spec: &Spec) -> Result<Box<dyn Partitioner>, AnonymizeError> {
    match spec.algorithm {
        Algorithm::FullDomain => Err(AnonymizeError::UnavailableForAudiences(spec.algorithm)),
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

/// What each audience asks, columns by their place among the quasi columns.
fn asks_of(table: &Table, audiences: &Audiences, quasi: &[usize]) -> Result<Vec<Ask>, UnfitColumn> {
    let ask = |audience: &kohort_model::Audience| {
        let names: Vec<&str> = audience.quasi.iter().map(String::as_str).collect();
        let positions = positions_of(table, &names)?;
        let columns = positions.iter().filter_map(|position| quasi.binary_search(position).ok()).collect();
        Ok(Ask { columns, requirements: audience.requirements.clone() })
    };
    audiences.each.iter().map(ask).collect()
}

/// What is counted in the end: every audience, redundant or not, and all together where that is asked.
fn demands_of(
    asks: &[Ask],
    collusion: &[Requirement],
    n_columns: usize,
    compile: plan::Compile<'_>,
) -> Result<Vec<Demand>, UnfitColumn> {
    let of_audiences = asks.iter().map(|ask| (ask.columns.iter().copied().collect(), ask.requirements.as_slice()));
    let of_all = (!collusion.is_empty()).then_some(((0..n_columns).collect(), collusion));
    let demand = |(columns, requirements)| Ok(Demand { columns, rules: compile(requirements)? });
    of_audiences.chain(of_all).map(demand).collect()
}

/// What each column loses where every audience gets a release of its own: the mean over those that have it.
fn loss_of_separate(
    rows: &Atoms<'_>,
    asks: &[Ask],
    compile: plan::Compile<'_>,
    partitioner: &dyn Partitioner,
) -> Result<Vec<f64>, AnonymizeError> {
    let n_columns = rows.domains.len();
    let everybody: Vec<u32> = (0..rows.len() as u32).collect();
    let mut losses = vec![0.0; n_columns];
    let mut n_audiences = vec![0.0f64; n_columns];
    for ask in asks {
        let columns: Vec<usize> = ask.columns.iter().copied().collect();
        let domains: Vec<_> = columns.iter().map(|&column| rows.domains[column].clone()).collect();
        let projection = rows.project(&everybody, &columns);
        let classes = partitioner.partition(&task(&projection.rows, &domains, &compile(&ask.requirements)?))?;
        let lists: Vec<Vec<u32>> = (0..classes.len()).map(|class| projection.atoms(classes.rows(class))).collect();
        for (&column, loss) in columns.iter().zip(loss_of_classes(rows, &lists, &columns)) {
            losses[column] += loss;
            n_audiences[column] += 1.0;
        }
    }
    Ok(losses.iter().zip(&n_audiences).map(|(loss, n)| loss / n.max(1.0)).collect())
}

/// Finds what the rows show.
struct Finder<'f> {
    spec: &'f Spec,
    method: Method,
    partitioner: &'f dyn Partitioner,
    plan: &'f Plan,
    counts: &'f Counts,
    demands: &'f [Demand],
}

impl<'f> Finder<'f> {
    /// Bodies of these atoms; `classes` of all of them and the cuts that led there, if known.
    fn find<'a>(
        &self,
        atoms: Atoms<'a>,
        classes: Option<(Vec<Vec<u32>>, Option<crate::partition::CutTree>)>,
    ) -> Outcome<'a> {
        let everybody: Vec<u32> = (0..atoms.len() as u32).collect();
        let quick = Mondrian { spec: self.spec.mondrian, keep_tree: KeepTree::Yes };
        let thorough = (self.spec.algorithm != Algorithm::Mondrian).then_some(self.partitioner);
        let search = Search { atoms: &atoms, quick, thorough, start: self.method.start, counts: self.counts };
        let tree = classes.map(|(classes, cuts)| BodyTree::of_classes(&atoms, classes, cuts));
        let solution = search.solve(&everybody, self.plan, tree);
        let mut bodies = Vec::with_capacity(solution.bodies.len());
        let pieces = solution.bodies.into_iter().flat_map(|body| {
            bodies.push(body.atoms.clone());
            body.into_pieces(&atoms)
        });
        let shown = ShownBoxes::new(&atoms, pieces);
        let mut outcome = Outcome { atoms, shown, bodies };
        outcome.settle(self.demands);
        outcome
    }

    /// Bodies of classes that all audiences together can't tell apart, or the union's classes, whichever lose less.
    fn find_among<'a>(&self, rows: Atoms<'a>, union: Vec<Vec<u32>>, of_union: &[f64], rules: Rules) -> Outcome<'a> {
        let of_all_columns = self.partitioner.partition(&task(&rows.rows, rows.domains, &rules));
        let of_all_columns = of_all_columns.ok().map(|classes| classes.to_lists());
        let body_first = self.plan.split.as_ref().filter(|_| self.method.start == Start::UnionAndBody);
        let body_first = body_first.and_then(|split| self.classes_body_first(&rows, split, &rules));
        let attempts = of_all_columns.into_iter().chain(body_first);
        let mut best: Option<(f64, Outcome<'a>)> = None;
        for classes in attempts {
            let outcome = self.find(Atoms::of_classes(rows.domains, &rows.rows, &classes), None);
            let loss = outcome.shown.loss_of_columns(&outcome.atoms).iter().sum();
            if best.as_ref().is_none_or(|(least, _)| loss < *least) {
                best = Some((loss, outcome));
            }
        }
        match best {
            Some((loss, outcome)) if loss < of_union.iter().sum() => outcome,
            _ => Outcome::of_classes(rows, union, self.demands),
        }
    }

    /// Classes that agree on the columns of a body where they can.
    fn classes_body_first(&self, rows: &Atoms<'_>, split: &Split, rules: &Rules) -> Option<Vec<Vec<u32>>> {
        let everybody: Vec<u32> = (0..rows.len() as u32).collect();
        let quick = Mondrian { spec: self.spec.mondrian, keep_tree: KeepTree::No };
        let cells = rows.project(&everybody, &split.body);
        let bodies = cells.partition(&split.domains, rules, &quick)?;
        let classes_of = |body: usize| {
            let projection = rows.project(&cells.atoms(bodies.rows(body)), &self.plan.columns);
            let classes = projection.partition(&self.plan.domains, rules, self.partitioner)?;
            Some((0..classes.len()).map(|class| projection.atoms(classes.rows(class))).collect::<Vec<_>>())
        };
        let classes: Option<Vec<Vec<Vec<u32>>>> = (0..bodies.len()).into_par_iter().map(classes_of).collect();
        Some(classes?.concat())
    }
}
