//! Judges jobs of many tables. Persons are compared by their trees written out or, if tables reference each other, by
//! trying to exchange them.

mod every_way;

use std::collections::BTreeSet;

use kohort_core::AnonymizeError;
use kohort_core::relational::AnonymizedTables;
use kohort_model::{NULL, Requirement, Role, Schema, Table};
use kohort_verify::{
    ReleasedLink, Suppressed, SuppressionLimit, TablesAgainst, verify_tables, verify_tables_against,
    verify_tables_alone, verify_tables_written,
};

pub use every_way::{FoundEveryWay, verify_tables_every_way};

use super::{FaultKind, Judged};
use crate::generate::snowflake::TablesJob;
use crate::oracle::orbits::classes_with_orbits;
use crate::oracle::swaps::Connected;
use crate::oracle::views::{Joined, as_read};
use crate::oracle::{self, Verdict};

/// For up to this many persons, every way to leave some of them out is tried.
const FEW_PERSONS: usize = 10;

pub(super) fn judge(job: &TablesJob) -> Judged {
    judge_by(job, by_trees)
}

pub(super) fn judge_with_references(job: &TablesJob) -> Judged {
    judge_by(job, by_exchanging)
}

fn by_trees(counted: &mut Counted<'_>, files: &[Table], schema: &Schema) {
    let joined = Joined::new(files, schema);
    for root in schema.roots() {
        for class in classes_with_orbits(&joined, schema, root) {
            counted.persons(root, &class.persons);
            class.orbits.iter().for_each(|(table, rows)| counted.orbit(*table, rows));
        }
    }
}

fn by_exchanging(counted: &mut Counted<'_>, files: &[Table], schema: &Schema) {
    let connected = Connected::new(files, schema);
    for (table, file) in files.iter().enumerate() {
        let crowds: BTreeSet<Vec<usize>> = connected.crowds(table).into_iter().collect();
        let n_rows: usize = crowds.iter().map(Vec::len).sum();
        counted.judged.holds(n_rows == file.n_rows, || "being exchangeable is not an equivalence relation".to_owned());
        for rows in crowds {
            if schema.tables[table].parent.is_none() {
                counted.persons(table, &rows);
            }
            counted.orbit(table, &rows);
        }
    }
}

fn judge_by(job: &TablesJob, count: impl FnOnce(&mut Counted<'_>, &[Table], &Schema)) -> Judged {
    match job.run() {
        Ok(done) => judge_release(job, &done, count),
        Err(error) => judge_refused_tables(job, &error),
    }
}

fn judge_release(
    job: &TablesJob,
    done: &AnonymizedTables,
    count: impl FnOnce(&mut Counted<'_>, &[Table], &Schema),
) -> Judged {
    let (files, schema) = as_read(&done.release, &job.tables, &job.schema);
    let mut counted = Counted::new(job, done);
    count(&mut counted, &files, &schema);
    let mut judged = counted.judged;
    recount_rows(&mut judged, job, done, (&files, &schema));
    verify_every_way(&mut judged, job, done, &files);
    judged
}

/// A release whose classes are judged one by one.
struct Counted<'a> {
    judged: Judged,
    job: &'a TablesJob,
    done: &'a AnonymizedTables,
    requirements: Vec<Vec<Requirement>>,
    /// The private tables, each with a person column that names the person of each row.
    of_persons: Vec<Table>,
}

impl<'a> Counted<'a> {
    fn new(job: &'a TablesJob, done: &'a AnonymizedTables) -> Self {
        let of_persons = (0..job.tables.len()).map(|table| with_persons(job, table)).collect();
        Counted { judged: Judged::released(), job, done, requirements: job.requirements(), of_persons }
    }

    /// The private rows from which released rows come.
    fn sources(&self, table: usize, rows: &[usize]) -> Vec<u32> {
        rows.iter().map(|&row| self.done.release.tables[table].rows[row]).collect()
    }

    /// Counts k and the persons' own k in a class.
    fn persons(&mut self, root: usize, rows: &[usize]) {
        self.judged.classes += 1;
        let sources = self.sources(root, rows);
        let released = &self.done.release.tables[root].rows;
        for requirement in &self.requirements[root] {
            if requirement.k().is_some() || requirement.own_k_column().is_some() {
                let verdict = oracle::judge(&self.job.tables[root], requirement, &sources, released);
                self.judged.class(verdict, || format!("{requirement:?} of persons {sources:?}"));
            }
        }
    }

    /// Counts the requirements on the sensitive columns of rows that look the same. Shares count rows, alpha counts
    /// persons, and no value may belong to more than one in l persons.
    fn orbit(&mut self, table: usize, rows: &[usize]) {
        let sources = self.sources(table, rows);
        let released = &self.done.release.tables[table].rows;
        for requirement in &self.requirements[table] {
            let by_rows = |requirement: &Requirement| {
                let rows_each = Table { person: None, ..self.job.tables[table].clone() };
                oracle::judge(&rows_each, requirement, &sources, released)
            };
            let by_persons =
                |requirement: &Requirement| oracle::judge(&self.of_persons[table], requirement, &sources, released);
            let verdicts = match requirement {
                Requirement::K(_) | Requirement::PersonK { .. } => continue,
                Requirement::DistinctL { column, l } => {
                    let share = Requirement::Alpha { column: column.clone(), alpha: 1.0 / f64::from((*l).max(1)) };
                    vec![by_rows(requirement), by_persons(&share)]
                }
                Requirement::Alpha { .. } => vec![by_persons(requirement)],
                Requirement::EntropyL { .. }
                | Requirement::RecursiveCL { .. }
                | Requirement::TCloseness { .. }
                | Requirement::Beta { .. }
                | Requirement::EnhancedBeta { .. } => vec![by_rows(requirement)],
            };
            for verdict in verdicts {
                let name = &self.job.tables[table].name;
                self.judged.class(verdict, || format!("{requirement:?} of rows {sources:?} of {name}"));
            }
        }
    }
}

/// A private table with a column that names the person of each row. Rows that lead to nobody are not released.
fn with_persons(job: &TablesJob, table: usize) -> Table {
    let mut at: Vec<Option<(usize, u32)>> =
        (0..job.tables[table].n_rows as u32).map(|row| Some((table, row))).collect();
    for place in &mut at {
        while let Some((table, row)) = *place {
            let Some(parents) = job.schema.parent_rows(&job.tables, table) else { break };
            let above = job.schema.tables[table].parent.expect("it has parent rows").table;
            *place = Some(parents[row as usize]).filter(|&row| row != NULL).map(|row| (above, row));
        }
    }
    let names: Vec<String> = at.iter().map(|place| format!("{place:?}")).collect();
    let mut with_persons = job.tables[table].clone();
    let cells = names.iter().map(|name| Some(name.as_str()));
    with_persons.columns.push(kohort_model::Column::from_cells("person of the row", Role::Key, cells));
    with_persons.person = Some(with_persons.columns.len() - 1);
    with_persons
}

/// Checks that cells and parents are true, no row is released twice, and the counts of persons add up.
fn recount_rows(judged: &mut Judged, job: &TablesJob, done: &AnonymizedTables, (files, schema): (&[Table], &Schema)) {
    for (at, (released, private)) in done.release.tables.iter().zip(&job.tables).enumerate() {
        let distinct: BTreeSet<u32> = released.rows.iter().copied().collect();
        judged.holds(distinct.len() == released.rows.len(), || format!("a row of {} is released twice", private.name));
        for (position, column) in released.columns.iter().enumerate() {
            let original = &private.columns[column.source];
            for (row, &source) in released.rows.iter().enumerate() {
                let (shown, was) = (files[at].columns[position].cell(row), original.cell(source as usize));
                let is_true = match original.role {
                    Role::Quasi => oracle::covers(original, shown, was),
                    Role::Sensitive | Role::Plain => shown == was,
                    Role::Key => true,
                    Role::Identifier | Role::PersonK | Role::Drop => false,
                };
                judged.holds(is_true, || {
                    format!("{}.{} shows {shown:?} for row {source}, which is not true", private.name, column.name)
                });
            }
        }
        if let (Some(private_parents), Some(parents)) =
            (job.schema.parent_rows(&job.tables, at), schema.parent_rows(files, at))
        {
            let above = schema.tables[at].parent.expect("it has parent rows").table;
            for (&source, &parent) in released.rows.iter().zip(&parents) {
                let is_true = parent != NULL
                    && done.release.tables[above].rows[parent as usize] == private_parents[source as usize];
                judged.holds(is_true, || {
                    format!("row {source} of {} has another parent than in the private table", private.name)
                });
            }
        }
    }
    let count = |tables: &mut dyn Iterator<Item = usize>| tables.sum::<usize>() as u64;
    let n_in = count(&mut job.schema.roots().into_iter().map(|root| job.tables[root].n_rows));
    let n_out = count(&mut job.schema.roots().into_iter().map(|root| done.release.tables[root].rows.len()));
    let persons = (done.persons.n_in, done.persons.n_out, done.persons.suppressed);
    judged.holds(persons == (n_in, n_out, n_in - n_out), || {
        format!("the engine says {persons:?} persons, but {n_in} are private and {n_out} are released")
    });
    for root in job.schema.roots() {
        let n_persons = job.tables[root].n_rows;
        let gone = n_persons - done.release.tables[root].rows.len();
        let most = (job.spec.max_suppressed * n_persons as f64 + 1e-9).floor() as usize;
        judged.holds(gone <= most, || {
            format!("{gone} persons of {} are left out, which is more than allowed", job.tables[root].name)
        });
    }
    for ((asked, private), released) in job.spec.tables.iter().zip(&job.tables).zip(&done.release.tables) {
        let (gone, limit) = (private.n_rows - released.rows.len(), asked.max_rows_left_out);
        judged.holds(limit.is_none_or(|limit| gone as f64 <= limit * private.n_rows as f64 + 1e-9), || {
            format!("{gone} of {} rows of {} are left out, which is more than allowed", private.n_rows, private.name)
        });
    }
}

/// Verifies the release in memory, its files read back, the files alone, and the files against the private tables.
fn verify_every_way(judged: &mut Judged, job: &TablesJob, done: &AnonymizedTables, files: &[Table]) {
    let requirements = job.requirements();
    let limit = SuppressionLimit::share(job.spec.max_suppressed);
    let verified = verify_tables(done.release.clone(), &job.tables, &job.schema, &requirements, limit);
    let Some(verified) = judged.verified("release", verified) else { return };
    let written = verify_tables_written(files, &verified, &job.tables, &job.schema, &requirements);
    let written = judged.verified("written", written);
    let links = ReleasedLink::of(&job.schema, &job.tables);
    let alone = judged.verified("alone", verify_tables_alone(files, &links, &requirements));
    if let (Some(written), Some(alone)) = (&written, &alone) {
        let figures = [written, alone].map(|found| (found.k, found.persons, found.classes));
        judged.holds(figures[0] == figures[1], || {
            format!("the files alone give the figures {:?}, and not {:?}", figures[1], figures[0])
        });
    }
    let n_left =
        |(table, released): (&Table, &kohort_model::ReleasedTable)| (table.n_rows - released.rows.len()) as u64;
    let suppressed = job.tables.iter().zip(&done.release.tables).map(n_left);
    // In a table of persons each row is one person.
    let suppressed: Vec<Suppressed> = suppressed.map(|rows| Suppressed { rows, persons: rows }).collect();
    let against = TablesAgainst {
        originals: &job.tables,
        schema: &job.schema,
        requirements: &requirements,
        suppressed: &suppressed,
        limit,
        keys: job.spec.keys,
    };
    judged.verified("against", verify_tables_against(files, &against));
}

/// Judges a refusal: the error must be a reason to refuse and, if there are few enough persons to try everything, brute
/// force must find no release either.
pub fn judge_refused_tables(job: &TablesJob, error: &AnonymizeError) -> Judged {
    let is_reason = matches!(
        error,
        AnonymizeError::TooFewPersons { .. }
            | AnonymizeError::OwnKTooLarge { .. }
            | AnonymizeError::TooFrequent { .. }
            | AnonymizeError::NoQuasiColumn
            | AnonymizeError::Unreachable { .. }
    ) || is_beyond_a_limit(job, error);
    let mut judged = Judged::refused(error, can_be_released(job, error));
    if !is_reason {
        judged.fault(FaultKind::RefusedWithoutNeed, error.to_string());
    }
    judged
}

/// Whether a release is refused because it would leave out more rows than a limit of the spec allows.
fn is_beyond_a_limit(job: &TablesJob, error: &AnonymizeError) -> bool {
    let AnonymizeError::RowsLeftOut { table, n_left_out, n_rows, limit } = error else { return false };
    let asked = job.spec.tables.iter().find(|asked| asked.name == *table).and_then(|asked| asked.max_rows_left_out);
    asked == Some(*limit) && *n_left_out as f64 > limit * *n_rows as f64
}

/// Whether brute force finds a release; `None` if there are too many possible releases to try all of them. A release
/// that shows nothing but that its persons exist is enough, so this only asks whether enough persons can be one class.
fn can_be_released(job: &TablesJob, error: &AnonymizeError) -> Option<Verdict> {
    if *error == AnonymizeError::NoQuasiColumn {
        let has_quasi = |table: &Table| !table.with_role(Role::Quasi).is_empty();
        return Some(if job.tables.iter().all(has_quasi) { Verdict::Holds } else { Verdict::Fails });
    }
    // Whether other classes would leave out fewer rows is not tried.
    if is_beyond_a_limit(job, error) {
        return None;
    }
    let roots = job.schema.roots();
    if roots.iter().any(|&root| job.tables[root].n_rows > FEW_PERSONS) {
        return None;
    }
    let verdict = |&root: &usize| {
        // With many tables, l also bounds the share of each value.
        let requirements = job.requirements()[root].clone();
        let shares = requirements.iter().filter_map(|requirement| {
            let l = distinct_l(requirement)?;
            let column = requirement.column()?.to_owned();
            Some(Requirement::Alpha { column, alpha: 1.0 / f64::from(l.max(1)) })
        });
        let asked: Vec<Requirement> = requirements.iter().cloned().chain(shares).collect();
        oracle::can_be_one_class(&job.tables[root], &asked, job.spec.max_suppressed)
    };
    let verdicts: Vec<Verdict> = roots.iter().map(verdict).collect();
    Some(match verdicts.contains(&Verdict::Fails) {
        true => Verdict::Fails,
        false if verdicts.contains(&Verdict::TooClose) => Verdict::TooClose,
        false => Verdict::Holds,
    })
}

fn distinct_l(requirement: &Requirement) -> Option<u32> {
    match requirement {
        Requirement::DistinctL { l, .. } => Some(*l),
        Requirement::K(_)
        | Requirement::PersonK { .. }
        | Requirement::EntropyL { .. }
        | Requirement::RecursiveCL { .. }
        | Requirement::TCloseness { .. }
        | Requirement::Alpha { .. }
        | Requirement::Beta { .. }
        | Requirement::EnhancedBeta { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::strategy::ValueTree;

    use super::*;
    use crate::generate::references::references_job;
    use crate::generate::snowflake::{Asks, TablesSize, tables_job};
    use crate::jobs::{System, tree};

    #[test]
    fn releases_of_many_tables_under_the_requirement_are_found() {
        let mut n_judged = 0;
        for number in 0..20 {
            let snowflake = tree(tables_job(TablesSize::SMALL, Asks::K), System::Tables, number).current();
            let connected = tree(references_job(), System::Tables, number).current();
            for (mut job, is_connected) in [(snowflake, false), (connected, true)] {
                let Ok(done) = job.run() else { continue };
                job.spec.k = 1000;
                let count = if is_connected { by_exchanging } else { by_trees };
                judged_false(&judge_release(&job, &done, count));
                n_judged += 1;
            }
        }
        assert!(n_judged > 20, "{n_judged}");
    }

    fn judged_false(judged: &Judged) {
        for kind in [FaultKind::UnderRequirement, FaultKind::Rejected] {
            assert!(judged.faults.iter().any(|fault| fault.kind == kind), "{:?}", judged.faults);
        }
    }
}
