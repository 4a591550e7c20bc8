//! One release for several audiences: k-anonymous in the columns that each of them may know, not in all at once.
//!
//! Rows of a *body* show one box in the columns that audiences share. In the columns that only one of them knows, each
//! audience's *wing* partitions the body's rows by itself, so that an audience sees classes that satisfy it, and
//! nobody pays for columns they don't know. A class in all columns is a body without wings.
//!
//! Rows are also placed one by one where everybody who looks at them is satisfied, and bodies are made of the rest
//! (`repair.rs`). Of all that was found, the release that loses least is taken.
//!
//! # Guarantee
//! rows that look the same in the columns of an audience, or of a coalition of them, satisfy everything it asks: counted
//! once more before anything is returned. The order of the table's columns changes nothing. No more loss than anonymizing
//! all columns at once by the same partitioner, unless persons have several rows and bodies must be joined, or a column must be kept from those who don't know it
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
//! a multiple of partitioning all columns at once, bounded by visits of rows

mod atoms;
mod blind_search;
mod bound;
mod butterfly;
mod finder;
mod hidden;
mod layers;
mod least;
mod looks;
mod plan;
mod repair;
mod savings;
mod search;
mod settle;
mod shown;
mod tree;
mod views;

pub use savings::{Losses, Savings, SteerCost};

use std::collections::BTreeSet;

use kohort_model::spec::Algorithm;
use kohort_model::{Audiences, Coalition, Note, Persons, Progress, Quiet, Requirement, Spec, Steer, Table};

use crate::encode::Encoded;
use crate::loss;
use crate::partition::{KeepTree, Mondrian, Partitioner, Task};
use crate::recode::{Recoding, Shown};
use crate::requirement::{Rules, UnfitColumn};
use crate::{AnonymizeError, Anonymized, partitioner, suppress};
use atoms::{Atoms, task};
use blind_search::BlindSearch;
use finder::{Finder, Union};
use hidden::HiddenDemand;
use least::least_loss;
use plan::{Ask, Plan, columns_of, domains_of, shared, together, without_redundant};
use savings::loss_of_classes;
use search::BoundCounts;
use settle::{Demand, Demands, Outcome};

/// Tables of at most this many distinct rows are also anonymized as if all audiences together asked for a k of 2.
const MOST_COMPARED: usize = 1 << 12;

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
    /// Whether rows are also placed one by one.
    pub narrow: Narrow,
}

/// Whether rows are also placed one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Narrow {
    /// There are only bodies, as in the paper.
    No,
    /// Rows are placed where everybody who looks at them stays satisfied, and bodies are made of the rest; bodies are
    /// narrowed where that is possible. The result that loses least is taken.
    Yes,
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
        Method { start: Start::UnionAndBody, shape: Shape::Nested, narrow: Narrow::Yes }
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
    // By name, so that their order in the table, which decides between columns that are equally good, changes nothing.
    let mut quasi = positions_of(table, &audiences.union())?;
    quasi.sort_by_key(|&position| &table.columns[position].name);
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
    let rows = Atoms::of_rows(&encoded.domains, encoded.fold(&kept));
    let common = shared(asks.iter().map(|ask| &ask.columns));
    let n_left_out = table.n_rows - kept.len();
    let losses = |of_columns: &[f64]| Losses::of_columns(of_columns, &common, table.n_rows, n_left_out);

    progress.begin("partition", 0);
    let quiet = Quiet(progress);
    let classes = partitioner.partition(&Task { progress: &quiet, ..task(&rows.rows, &encoded.domains, &rules) });
    crate::stop_if_cancelled(progress)?;
    let union = Union::of(&rows, classes?);
    let of_union = losses(&union.losses);
    let least = least_loss(&rows, &asks.iter().chain(&coalitions).collect::<Vec<&Ask>>());
    let of_separate = losses(&loss_of_separate(&rows, &asks, &compile, partitioner.as_ref())?);

    progress.begin("butterflies", 0);
    let counts = BoundCounts::default();
    let find = |coalitions: &[Ask]| -> Result<Option<Outcome<'_>>, UnfitColumn> {
        let visible = asks.iter().chain(coalitions).map(|ask| Demand::new(ask, &compile)).collect::<Result<_, _>>()?;
        let demands = Demands { visible, hidden: &hidden };
        if demands.are_met_by(&rows) {
            return Ok(None);
        }
        let plan = |asks: &[Ask]| Plan::new(&without_redundant(asks), &encoded.domains, &compile, method.shape);
        let merged = merge_colluding(&asks, coalitions).map(|merged| plan(&merged)).transpose()?;
        let finder = Finder {
            spec,
            method,
            partitioner: partitioner.as_ref(),
            rules: &rules,
            of_coalitions: &compile(&together(coalitions))?,
            plan: &plan(&asks)?,
            merged: merged.as_ref(),
            counts: &counts,
            demands: &demands,
            progress,
        };
        Ok(Some(finder.find(&rows, &union)))
    };
    let mut steer_cost = None;
    let outcome = if let Some(mut found) = find(&coalitions)? {
        // Whoever asks for more must not get more: a release for two persons whom all audiences together can't tell
        // apart is one without that, too.
        let compares = method.narrow == Narrow::Yes && collusion.is_empty() && rules.k() > 1;
        if compares && rows.len() <= MOST_COMPARED {
            let pairs = Ask { columns: (0..quasi.len()).collect(), requirements: vec![Requirement::K(2)] };
            found = find(&[pairs])?.filter(|pairs| pairs.loses_less_than(&found)).unwrap_or(found);
        }
        if audiences.steer == Steer::Common {
            let members = |coalition: &Coalition| {
                let is_member = |name: &String| audiences.each.iter().position(|audience| audience.name == *name);
                coalition.members.iter().filter_map(is_member).collect()
            };
            let asked = audiences.coalitions.iter().map(members).zip(coalitions.iter());
            let search = BlindSearch {
                quick: Mondrian { spec: spec.mondrian, keep_tree: KeepTree::Yes },
                partitioner: partitioner.as_ref(),
                compile: &compile,
                coalitions: asked.map(|(members, ask)| (members, ask.requirements.clone())).collect(),
            };
            let mut closed = search.find(rows.clone(), &asks)?;
            let visible =
                asks.iter().chain(&coalitions).map(|ask| Demand::new(ask, &compile)).collect::<Result<_, _>>()?;
            closed.settle(&Demands { visible, hidden: &hidden });
            steer_cost = Some(SteerCost { steered: closed.loss(), free: found.loss() });
            found = closed;
        }
        found
    } else {
        Outcome::unchanged(rows.clone())
    };

    crate::stop_if_cancelled(progress)?;
    progress.begin("recode", 0);
    let Outcome { atoms, shown: boxes, .. } = &outcome;
    // The release has the columns, and the order of its rows, as the table has them.
    let in_order = positions_of(table, &audiences.union())?;
    let columns: Vec<usize> =
        in_order.iter().filter_map(|position| quasi.iter().position(|other| other == position)).collect();
    let encoded = Encoded::new(table, &in_order)?;
    let classes = boxes.classes(&columns);
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
        least: least + (n_left_out * quasi.len()) as f64,
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
            let place = |position: usize| encoded.columns.iter().position(|&other| other == position);
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

#[cfg(test)]
mod tests;
