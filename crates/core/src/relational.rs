//! Persons whose rows are spread over several tables: a person is a tree of rows, and a class is persons whose released
//! trees are equal.
//!
//! | module | what it does |
//! | --- | --- |
//! | `canonical`, `forest` | rows to trees, equal persons folded to one |
//! | `representative` | what all members of a cluster look like, and which row went to which node |
//! | `cost`, `pairing` | what joining two of them loses, and which of their nodes are paired |
//! | `order`, `miracle`, `leftovers` | the single pass of MiRaCle and MiRaCleX |
//! | `auto` | the least loss within a reasonable wait |
//! | `limits` | how many rows of a child table may be left out, and what a row is worth so that no more are |
//! | `requirement`, `settle` | what is asked beyond k |
//! | `references` | which second foreign keys stay |
//! | `shown`, `recode`, `arrange`, `loss` | classes to released tables, and what that loses |
//!
//! # Guarantee
//! Every class has k persons or more, and each of its members the same unordered tree of quasi cells, so that no view
//! on the joined tables singles out fewer (definition 5 of `[NCN08]`). Every cell covers its original, sensitive cells
//! are unchanged, rows that are left out show nothing, and keys still join. The order of rows in any table changes
//! nothing but what a reader can't see.
//! # Paper
//! `[NCN08]`, whole
//! # Deviations
//! Several tables of persons are anonymized one after the other, each with the tables that reach it.

mod arrange;
mod auto;
mod canonical;
mod cost;
mod forest;
mod gather;
mod leftovers;
mod limits;
mod loss;
mod miracle;
mod mixed;
mod order;
mod pairing;
mod recode;
mod references;
mod representative;
mod requirement;
mod settle;
mod shown;

use std::collections::BTreeSet;

use kohort_model::spec::{Algorithm, MAX_ROWS_LEFT_OUT, Pairing};
use kohort_model::{
    Loss, Note, Persons, Progress, Release, ReleasedTable, Requirement, Role, Schema, SchemaTable, Spec, Table,
};

use crate::loss::TableLoss;
use crate::requirement::Rules;
use crate::{AnonymizeError, suppress};
use auto::{Found, Way};
use cost::{Basis, Counting, Meter, Scratch};
use forest::Grove;
use limits::Limits;
use miracle::TreesTask;
use order::Points;
use pairing::MOST_PAIRS;
use references::Planned;
use requirement::TreesJudge;
use shown::Shown;

/// A release of several tables and what it costs, not yet verified.
#[derive(Debug)]
pub struct AnonymizedTables {
    /// One table each, in the order of the spec.
    pub release: Release,
    /// The loss of recoding in all tables together.
    pub loss: Loss,
    /// The same per table.
    pub loss_of_tables: Vec<Loss>,
    /// Persons in, out and suppressed, of all tables of persons together.
    pub persons: Persons,
    /// The algorithm that ran.
    pub algorithm: &'static str,
    /// Where the result differs from what a reader of the spec would expect.
    pub notes: Vec<Note>,
}

/// Anonymizes several tables that are linked as the schema says.
///
/// # Errors
/// If the requirement can't be reached. There is then no release at all.
pub fn anonymize_tables(
    tables: &[Table],
    schema: &Schema,
    spec: &Spec,
    progress: &dyn Progress,
) -> Result<AnonymizedTables, AnonymizeError> {
    run(tables, schema, spec, progress, Counting::No).map(|(anonymized, _)| anonymized)
}

/// The same, and the number of pairs of nodes that the algorithm would compare if it shared no work. Comparisons of
/// `auto` are not counted.
///
/// # Errors
/// As [`anonymize_tables`].
pub fn anonymize_tables_with_counts(
    tables: &[Table],
    schema: &Schema,
    spec: &Spec,
    progress: &dyn Progress,
) -> Result<(AnonymizedTables, u64), AnonymizeError> {
    run(tables, schema, spec, progress, Counting::Yes)
}

fn run(
    tables: &[Table],
    schema: &Schema,
    spec: &Spec,
    progress: &dyn Progress,
    counting: Counting,
) -> Result<(AnonymizedTables, u64), AnonymizeError> {
    if tables.iter().all(|table| table.with_role(Role::Quasi).is_empty()) {
        return Err(AnonymizeError::NoQuasiColumn);
    }
    let requirements: Vec<Vec<Requirement>> = spec.tables.iter().map(|table| spec.requirements(table)).collect();
    let mut released: Vec<Option<ReleasedTable>> = tables.iter().map(|_| None).collect();
    let mut losses: Vec<TableLoss> = vec![TableLoss::default(); tables.len()];
    let mut persons = Persons { n_in: 0, n_out: 0, suppressed: 0 };
    let mut scratch = Scratch::default();
    let mut notes: BTreeSet<Note> = Note::unused(spec).into_iter().collect();
    let job = TreesJob { tables, schema, spec, requirements: &requirements, progress, counting };
    let planned = schema.roots().into_iter().map(|root| job.plan(root, &mut scratch, &mut notes));
    let mut planned: Vec<Planned<'_>> = planned.collect::<Result<_, _>>()?;
    progress.begin("recode", 0);
    let kept = references::keep(tables, schema, &requirements, &mut planned)?;
    for plan in &planned {
        let n_out: u64 = plan.shown.class_sizes.iter().sum();
        persons.n_in += plan.n_in;
        persons.n_out += n_out;
        persons.suppressed += plan.n_in - n_out;
        for (table, loss) in loss::measure(tables, &plan.grove, &plan.shown, |person| plan.needed.k_of_row(person)) {
            losses[table] = loss;
        }
    }
    for (table, recoded) in recode::recode(tables, schema, &planned, &kept, spec) {
        released[table] = Some(recoded);
    }
    notes.extend(released.iter().flatten().zip(tables).zip(&schema.tables).filter_map(note_rows_left_out));
    let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    let anonymized = AnonymizedTables {
        release: Release { tables: released.into_iter().flatten().collect() },
        loss: TableLoss::together(&losses, &names, &schema.roots()),
        loss_of_tables: losses.iter().map(TableLoss::alone).collect(),
        persons,
        algorithm: spec.algorithm.word(),
        notes: notes.into_iter().collect(),
    };
    Ok((anonymized, scratch.n_pairs))
}

/// A note if a child table without a limit leaves out more rows than is usual.
fn note_rows_left_out(((released, table), linked): ((&ReleasedTable, &Table), &SchemaTable)) -> Option<Note> {
    let (n, n_rows) = ((table.n_rows - released.rows.len()) as u64, table.n_rows as u64);
    let is_usual = n as f64 <= MAX_ROWS_LEFT_OUT * n_rows as f64;
    let has_limit = linked.parent.is_none() || linked.max_rows_left_out.is_some();
    (!has_limit && !is_usual).then(|| Note::RowsLeftOut { table: table.name.clone(), n, n_rows })
}

struct TreesJob<'j> {
    tables: &'j [Table],
    schema: &'j Schema,
    spec: &'j Spec,
    requirements: &'j [Vec<Requirement>],
    progress: &'j dyn Progress,
    counting: Counting,
}

impl<'j> TreesJob<'j> {
    /// Puts the persons of one table, with all rows below them, into classes.
    fn plan(
        &self,
        root: usize,
        scratch: &mut Scratch,
        notes: &mut BTreeSet<Note>,
    ) -> Result<Planned<'j>, AnonymizeError> {
        let TreesJob { tables, schema, spec, requirements, progress, .. } = *self;
        progress.begin("encode", 0);
        let mut grove = Grove::new(tables, schema, root)?;
        let of_persons = requirement::with_shares_of_l(&requirements[root]);
        let kept =
            suppress::rows_that_can_stand(&tables[root], &grove.encoded[0], &of_persons, spec.max_suppressed, &[])?;
        let n_in = tables[root].n_rows as u64;
        let unplaceable = n_in - kept.len() as u64;
        if unplaceable > 0 {
            let mut stays = vec![false; tables[root].n_rows];
            kept.iter().for_each(|&row| stays[row as usize] = true);
            grove.retain(&stays);
        }
        let forest = grove.forest(tables, schema, spec.keys);
        let judge = TreesJudge::new(tables, &grove, &forest, requirements, |_, _| true)?;
        let points = Points::new(&forest, &grove.encoded);
        let folded: Vec<u32> = (0..forest.len() as u32).collect();
        let order = points.by_similarity(&folded, &forest.kinds);
        let task = TreesTask {
            forest: &forest,
            order: &order,
            points: &points,
            judge: &judge,
            clustering: spec.clustering,
            allowance: suppress::allowance(spec.max_suppressed, n_in) - unplaceable,
            leftovers: spec.leftovers,
            progress,
        };
        let (n_persons, n_tried) = (order.len() as u64, auto::TRIED as u64);
        if spec.algorithm == Algorithm::Auto && n_persons > n_tried {
            notes.insert(Note::ComparedOnPart { n_persons, n_tried });
        }
        if forest.most_pairs_of_siblings() > MOST_PAIRS {
            notes.insert(Note::PairedInParts { limit: MOST_PAIRS as u64 });
        }
        progress.begin("partition", forest.len() as u64);
        let basis = if spec.algorithm == Algorithm::MiracleX { Basis::Node } else { Basis::Subtree };
        let pairing = spec.clustering.pairing.unwrap_or(Pairing::Greedy);
        let limits = Limits::new(tables, schema, &grove, &forest);
        if let Some(exceeded) = limits.out_of_reach() {
            return Err(exceeded.error(tables));
        }
        let mut found = match spec.algorithm {
            Algorithm::Auto => auto::least_loss(&task, &grove.encoded, &limits),
            Algorithm::Miracle | Algorithm::MiracleX => {
                let meter = Meter::new(&forest, &grove.encoded, basis, pairing, self.counting);
                let clusters = miracle::pass(&task, &meter, scratch, f64::INFINITY);
                let classes = leftovers::place(&task, &meter, scratch, clusters.unwrap_or_default());
                Found { way: Way::Pass(basis, pairing), worths: limits.cells(), classes }
            }
            algorithm => return Err(AnonymizeError::Unavailable { algorithm, kind: "for several tables" }),
        };
        let classes = loop {
            crate::stop_if_cancelled(progress)?;
            let weighed = forest.with_worths(&found.worths);
            let meter = || Meter::new(&weighed, &grove.encoded, basis, pairing, Counting::No);
            let task = TreesTask { forest: &weighed, ..task };
            let classes = settle::settle(tables, &grove, requirements, &task, meter, found.classes)?;
            let Some(exceeded) = limits.exceeded(&classes) else { break classes };
            let excess = limits.excess(&forest, &order, &classes, 0.0);
            let Some(worths) = limits.raised(&found.worths, &excess) else {
                return Err(exceeded.error(tables));
            };
            let classes = auto::find(&task, found.way, &grove.encoded, &worths, f64::INFINITY).unwrap_or_default();
            found = Found { worths, classes, ..found };
        };

        let shown = Shown::new(&grove, &forest, &classes);
        let needed = Rules::compile(&tables[root], &requirements[root], &kept)?;
        Ok(Planned { root, grove, forest, shown, needed, n_in })
    }
}

#[cfg(test)]
mod tests;
