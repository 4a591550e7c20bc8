//! [`costs`]: what each quasi column and each requirement costs, by leaving out one at a time.
//!
//! # Guarantee
//! Every figure is that of a release that the verifier accepted. None of these releases is written.
//! # Limits
//! Algorithms are heuristics, so a release without a requirement can, by chance, lose a little more than one with it.
//! # Cost
//! One reading, and one partitioning and verification for everything together and for each quasi column and requirement. As many
//! of them as there are threads go on at the same time.

use std::collections::BTreeMap;

use kohort_io::{LoadedTable, LoadedTables, load, load_tables};
use kohort_model::report::{CostFigures, CostReport, CostsReport};
use kohort_model::spec::TableSpec;
use kohort_model::{Loss, Progress, Quiet, Requirement, Role, Spec, Table};
use rayon::prelude::*;

use super::words::setting;
use crate::Job;
use crate::error::Error;
use crate::job::Made;
use crate::manifest::settings;

/// The private tables.
enum Private {
    One(Box<LoadedTable>),
    Many(LoadedTables),
}

impl Private {
    fn tables(&self) -> &[Table] {
        match self {
            Private::One(loaded) => std::slice::from_ref(&loaded.table),
            Private::Many(loaded) => &loaded.tables,
        }
    }
}

/// One thing that is left out, by the positions of its table and column in the spec.
#[derive(Clone, Debug)]
enum LeftOut {
    Nothing,
    Column { table: usize, column: usize },
    K,
    OwnK { table: usize, column: usize },
    Requirement { table: usize, column: usize, position: usize },
}

/// What a release lost.
struct Lost {
    figures: CostFigures,
    /// For each table of the spec, its private rows, and the LM of each of its quasi columns.
    tables: Vec<(f64, BTreeMap<String, f64>)>,
}

/// What each quasi column and each requirement of a job costs.
pub(super) fn costs(job: &Job, progress: &dyn Progress) -> Result<CostsReport, Error> {
    let spec = job.spec();
    let what = match (spec.audiences.is_empty(), spec.registers.is_empty()) {
        (true, true) => None,
        (false, _) => Some("audiences"),
        (true, false) => Some("registers"),
    };
    if let Some(what) = what {
        let message = format!("what columns and requirements cost is not available with {what} in this version");
        return Err(Error::input(message, "ask for no costs"));
    }
    let private = match spec.links_rows() {
        true => Private::Many(load_tables(job.sources(), spec, progress)?),
        false => Private::One(Box::new(load(job.sources(), spec, &spec.tables[0], progress)?)),
    };
    let all = everything(spec);
    progress.begin("leaving one out", all.len() as u64);
    let mut done = Vec::with_capacity(all.len());
    // As for explorations: no more releases than threads are in memory.
    for together in all.chunks(rayon::current_num_threads()) {
        let run = |left_out: &LeftOut| {
            let ran = lost(spec, &private, left_out, &Quiet(progress));
            progress.advance(1);
            ran
        };
        done.par_extend(together.par_iter().map(run));
        if progress.is_cancelled() {
            return Err(Error::Cancelled);
        }
    }
    let mut done = all.iter().zip(done);
    let with_all = match done.next() {
        Some((_, Ok(lost))) => lost,
        Some((_, Err(error))) => return Err(error),
        None => return Err(Error::input("there is nothing to leave out", "give a column the role quasi")),
    };
    let mut report = CostsReport { all: with_all.figures, columns: Vec::new(), requirements: Vec::new() };
    for (left_out, lost) in done {
        let (without, dropped) = (left_out.words(spec), left_out.column(spec));
        let dropped = dropped.as_ref();
        let cost = match lost {
            Ok(lost) => {
                let saved = with_all.others(dropped).zip(lost.others(dropped)).map(|(with, without)| with - without);
                CostReport { without, figures: Some(lost.figures), unreachable: None, saved }
            }
            Err(Error::Unreachable(why)) => {
                CostReport { without, figures: None, unreachable: Some(why.to_string()), saved: None }
            }
            Err(error) => return Err(error),
        };
        match left_out {
            LeftOut::Column { .. } => report.columns.push(cost),
            _ => report.requirements.push(cost),
        }
    }
    // The dearest comes first. Equal ones keep the order of the spec.
    let dearest = |one: &CostReport, other: &CostReport| {
        let saved = |cost: &CostReport| cost.saved.unwrap_or(f64::NEG_INFINITY);
        saved(other).total_cmp(&saved(one))
    };
    report.columns.sort_by(dearest);
    report.requirements.sort_by(dearest);
    Ok(report)
}

/// Nothing, and then each thing that can be left out.
fn everything(spec: &Spec) -> Vec<LeftOut> {
    let mut all = vec![LeftOut::Nothing];
    let columns = || {
        let of_table = |(table, of): (usize, &TableSpec)| {
            (0..of.columns.len()).map(move |column| (table, column)).collect::<Vec<_>>()
        };
        spec.tables.iter().enumerate().flat_map(of_table)
    };
    let of = |(table, column): (usize, usize)| &spec.tables[table].columns[column];
    let quasi: Vec<(usize, usize)> = columns().filter(|&place| of(place).role == Role::Quasi).collect();
    // Without its only quasi column nothing would be anonymized.
    if quasi.len() > 1 {
        all.extend(quasi.into_iter().map(|(table, column)| LeftOut::Column { table, column }));
    }
    all.push(LeftOut::K);
    for (table, column) in columns() {
        if of((table, column)).role == Role::PersonK {
            all.push(LeftOut::OwnK { table, column });
        }
        let requirements = 0..of((table, column)).requirements.len();
        all.extend(requirements.map(|position| LeftOut::Requirement { table, column, position }));
    }
    all
}

impl LeftOut {
    /// The spec without it.
    fn without(&self, spec: &Spec) -> Spec {
        let mut spec = spec.clone();
        match *self {
            LeftOut::Nothing => {}
            LeftOut::K => spec.k = 1,
            LeftOut::Column { table, column } => {
                let column = &mut spec.tables[table].columns[column];
                (column.role, column.requirements) = (Role::Plain, Vec::new());
            }
            LeftOut::OwnK { table, column } => spec.tables[table].columns[column].role = Role::Drop,
            LeftOut::Requirement { table, column, position } => {
                spec.tables[table].columns[column].requirements.remove(position);
            }
        }
        spec
    }

    /// The table and the name of the column whose role changes.
    fn changed(&self, spec: &Spec) -> Option<(usize, String, Role)> {
        let name = |table: usize, column: usize| spec.tables[table].columns[column].name.clone();
        match *self {
            LeftOut::Column { table, column } => Some((table, name(table, column), Role::Plain)),
            LeftOut::OwnK { table, column } => Some((table, name(table, column), Role::Drop)),
            LeftOut::Nothing | LeftOut::K | LeftOut::Requirement { .. } => None,
        }
    }

    /// The position of the table, and the name of the quasi column.
    fn column(&self, spec: &Spec) -> Option<(usize, String)> {
        match *self {
            LeftOut::Column { table, column } => Some((table, spec.tables[table].columns[column].name.clone())),
            LeftOut::Nothing | LeftOut::K | LeftOut::OwnK { .. } | LeftOut::Requirement { .. } => None,
        }
    }

    fn words(&self, spec: &Spec) -> String {
        let name = |table: usize, column: usize| match spec.tables.as_slice() {
            [only] => only.columns[column].name.clone(),
            several => format!("{}.{}", several[table].name, several[table].columns[column].name),
        };
        match *self {
            LeftOut::Nothing => "nothing".to_owned(),
            LeftOut::Column { table, column } => name(table, column),
            LeftOut::K => format!("k = {}", spec.k),
            LeftOut::OwnK { table, column } => format!("{}: own k", name(table, column)),
            LeftOut::Requirement { table, column, position } => {
                let requirement: &Requirement = &spec.tables[table].columns[column].requirements[position];
                let asked = settings(None, std::slice::from_ref(requirement));
                let asked = asked.values().flatten().filter(|(key, _)| *key != "distance");
                let asked: Vec<String> = asked.map(|(key, value)| format!("{key} = {}", setting(value))).collect();
                format!("{}: {}", name(table, column), asked.join(", "))
            }
        }
    }
}

/// Makes, verifies and measures one release.
fn lost(spec: &Spec, private: &Private, left_out: &LeftOut, progress: &dyn Progress) -> Result<Lost, Error> {
    let changed = left_out.changed(spec);
    let spec = left_out.without(spec);
    let tables: Vec<Table> = match &changed {
        None => Vec::new(),
        Some((of_spec, name, role)) => {
            let mut tables = private.tables().to_vec();
            let changed = tables.iter_mut().filter(|table| table.name == spec.tables[*of_spec].name);
            for column in changed.flat_map(|table| &mut table.columns).filter(|column| column.name == *name) {
                column.role = *role;
            }
            tables
        }
    };
    let tables: &[Table] = if changed.is_some() { &tables } else { private.tables() };
    let made = match private {
        Private::One(_) => Made::of_one(&spec, &tables[0], progress)?,
        Private::Many(loaded) => Made::of_many(&spec, tables, &loaded.schema, progress)?,
    };
    let found = made.release.findings();
    let figures = CostFigures {
        k: found.k,
        classes: found.classes,
        suppressed: found.suppressed.map_or(0, |left_out| left_out.persons),
        loss: made.loss.lm,
    };
    // One table has no losses of tables.
    let losses = if made.loss_of_tables.is_empty() { std::slice::from_ref(&made.loss) } else { &made.loss_of_tables };
    let of_table = |(table, loss): (&Table, &Loss)| (table.n_rows as f64, loss.columns.clone());
    Ok(Lost { figures, tables: tables.iter().zip(losses).map(of_table).collect() })
}

impl Lost {
    /// The mean LM of the cells of all quasi columns but one, which is named with the position of its table. A table has equally
    /// many cells in each of its columns.
    fn others(&self, dropped: Option<&(usize, String)>) -> Option<f64> {
        let (mut lost, mut n_cells) = (0.0, 0.0);
        for (position, (n_rows, columns)) in self.tables.iter().enumerate() {
            let is_dropped = |name: &str| dropped.is_some_and(|(table, column)| *table == position && column == name);
            for lm in columns.iter().filter(|(name, _)| !is_dropped(name)).map(|(_, lm)| lm) {
                (lost, n_cells) = (lost + n_rows * lm, n_cells + n_rows);
            }
        }
        (n_cells > 0.0).then(|| lost / n_cells)
    }
}
