//! Judges jobs of one table.

use std::collections::BTreeSet;

use kohort_core::{AnonymizeError, Anonymized};
use kohort_model::{Requirement, Role, Schema, SchemaTable, Table};
use kohort_verify::{
    Asked, Findings, RowsOf, Skipped, Suppressed, SuppressionLimit, Verified, verify_against, verify_alone,
    verify_release, verify_written,
};

use super::{FaultKind, Judged};
use crate::generate::Job;
use crate::oracle::{self, Verdict, views::as_read};

/// For up to this many persons, every way to leave some of them out is tried.
const FEW_PERSONS: usize = 10;
/// For up to this many rows, every partition is tried.
const FEW_ROWS: usize = 7;

pub(super) fn judge(job: &Job) -> Judged {
    match job.run() {
        Ok(done) => judge_release(job, &done),
        Err(error) => refused(job, &error),
    }
}

fn judge_release(job: &Job, done: &Anonymized) -> Judged {
    let mut judged = Judged::released();
    let table = &job.table;
    let released = &done.release.tables[0];
    for class in oracle::classes(table, &done.release) {
        judged.classes += 1;
        for requirement in &job.requirements {
            let verdict = oracle::judge(table, requirement, &class.rows, &released.rows);
            judged.class(verdict, || format!("{requirement:?} in the class of rows {:?}", class.rows));
        }
    }
    recount_rows(&mut judged, job, done);
    verify_every_way(&mut judged, job, done, &job.requirements);
    judged
}

/// Checks that cells are true, no row is released twice, and the counts of persons add up.
pub(super) fn recount_rows(judged: &mut Judged, job: &Job, done: &Anonymized) {
    let table = &job.table;
    let released = &done.release.tables[0];
    for (cells, &row) in oracle::released_cells(table, &done.release).iter().zip(&released.rows) {
        for (cell, column) in cells.iter().zip(&released.columns) {
            let column = &table.columns[column.source];
            let original = column.cell(row as usize);
            let is_true = match column.role {
                Role::Quasi => oracle::covers(column, cell.as_deref(), original),
                Role::Sensitive | Role::Plain => cell.as_deref() == original,
                Role::Key => true,
                Role::Identifier | Role::PersonK | Role::Drop => false,
            };
            judged.holds(is_true, || format!("{} shows {cell:?} for row {row}, which is not true", column.name));
        }
    }
    let here_rows: BTreeSet<u32> = released.rows.iter().copied().collect();
    judged.holds(here_rows.len() == released.rows.len(), || "a row is released twice".to_owned());
    let left_out: Vec<u32> = (0..table.n_rows as u32).filter(|row| !here_rows.contains(row)).collect();
    let (gone, here) = (oracle::persons(table, &left_out), oracle::persons(table, &released.rows));
    judged.holds(gone.is_disjoint(&here), || "only some rows of a person are left out".to_owned());
    let persons = (done.persons.n_in, done.persons.n_out, done.persons.suppressed);
    let counted = ((here.len() + gone.len()) as u64, here.len() as u64, gone.len() as u64);
    judged.holds(persons == counted, || {
        format!("the engine says {persons:?} persons (in, out, suppressed), but {counted:?} were counted")
    });
    let most = (job.spec.max_suppressed * counted.0 as f64 + 1e-9).floor() as u64;
    judged.holds(counted.2 <= most, || format!("{} persons are left out, but at most {most} may be", counted.2));
}

/// Verifies the release in memory, its file read back, the file alone, and the file against the private table.
pub(super) fn verify_every_way<'a, A>(judged: &mut Judged, job: &'a Job, done: &Anonymized, asked: &'a A)
where
    &'a A: Into<Asked<'a>>,
    A: ?Sized,
{
    let table = &job.table;
    let limit = SuppressionLimit::share(job.spec.max_suppressed);
    let verified = judged.verified("release", verify_release(done.release.clone(), table, asked, limit));
    let file = file_of(table, done);
    if let Some(verified) = &verified {
        judged.verified("written", verify_written(&file, verified, table, asked));
    }
    let rows = &done.release.tables[0].rows;
    let n_persons = oracle::persons(table, rows).len();
    let rows_of = if n_persons == rows.len() { RowsOf::PersonsEach } else { RowsOf::PersonsUnnamed };
    judged.verified("alone", verify_alone(&file, &file.with_role(Role::Quasi), asked, rows_of));
    let suppressed = Suppressed { rows: (table.n_rows - rows.len()) as u64, persons: done.persons.suppressed };
    let against = judged.verified("against", verify_against(&file, table, asked, suppressed, limit));
    for (way, found) in [("release", verified.as_ref().map(Verified::findings)), ("against", against.as_ref())] {
        let Some(found) = found else { continue };
        compare(judged, way, found, n_persons);
    }
}

fn compare(judged: &mut Judged, way: &str, found: &Findings, n_persons: usize) {
    if !found.skipped.contains(&Skipped::Figures) {
        judged.holds(found.persons == n_persons as u64, || {
            format!("{way} counts {} persons, but there are {n_persons}", found.persons)
        });
    }
}

/// The release as its file is read back.
fn file_of(table: &Table, done: &Anonymized) -> Table {
    let schema = Schema {
        tables: vec![SchemaTable {
            name: table.name.clone(),
            key: None,
            parent: None,
            references: Vec::new(),
            max_rows_left_out: None,
        }],
    };
    as_read(&done.release, std::slice::from_ref(table), &schema).0.remove(0)
}

fn refused(job: &Job, error: &AnonymizeError) -> Judged {
    let is_reason = matches!(
        error,
        AnonymizeError::TooFewPersons { .. } | AnonymizeError::OwnKTooLarge { .. } | AnonymizeError::TooFrequent { .. }
    );
    let mut judged = Judged::refused(error, can_be_released(job, &job.requirements));
    if !is_reason {
        judged.fault(FaultKind::RefusedWithoutNeed, error.to_string());
    }
    judged
}

/// Whether brute force finds a release; `None` if there are too many possible releases to try all of them.
pub(super) fn can_be_released(job: &Job, requirements: &[Requirement]) -> Option<Verdict> {
    let table = &job.table;
    let all: Vec<u32> = (0..table.n_rows as u32).collect();
    let n_persons = oracle::persons(table, &all).len();
    let may_leave = (job.spec.max_suppressed * n_persons as f64 + 1e-9).floor() as usize;
    if table.person_column().is_none() && table.n_rows <= FEW_ROWS {
        Some(oracle::can_be_released(table, requirements, job.spec.max_suppressed))
    } else if n_persons <= FEW_PERSONS {
        // If persons have several rows, classes that look the same count as one, so no partition is better than a
        // single class.
        Some(oracle::can_be_one_class(table, requirements, job.spec.max_suppressed))
    } else if may_leave == 0 {
        Some(oracle::stands(table, requirements, &all, &all))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::strategy::ValueTree;

    use super::*;
    use crate::generate::{Size, job};
    use crate::jobs::{System, tree};

    fn has(judged: &Judged, kind: FaultKind) -> bool {
        judged.faults.iter().any(|fault| fault.kind == kind)
    }

    #[test]
    fn a_class_under_the_requirement_and_a_release_that_is_not_true_are_found() {
        let mut n_judged = 0;
        for number in 0..60 {
            let job = tree(job(Size::SMALL), System::Table, number).current();
            let Ok(mut done) = job.run() else { continue };
            n_judged += 1;
            let mut more = job.clone();
            more.requirements[0] = Requirement::K(1000);
            let judged = judge_release(&more, &done);
            assert!(has(&judged, FaultKind::UnderRequirement) && has(&judged, FaultKind::Rejected), "{job:?}");
            // Releases the last row once more, in place of the first.
            let rows = &mut done.release.tables[0].rows;
            if rows.len() > 1 {
                rows[0] = rows[rows.len() - 1];
                let judged = judge_release(&job, &done);
                assert!(has(&judged, FaultKind::Untrue) && has(&judged, FaultKind::Rejected), "{job:?}");
            }
        }
        assert!(n_judged > 20, "{n_judged}");
    }

    #[test]
    fn a_refusal_is_held_against_brute_force() {
        let error = AnonymizeError::TooFewPersons { persons: 1, k: 2 };
        let (mut n_wrong, mut n_right) = (0, 0);
        for number in 0..60 {
            let job = tree(job(Size::TINY), System::Table, number).current();
            let is_wrong = has(&refused(&job, &error), FaultKind::RefusedWithoutNeed);
            // There is a release, so brute force must find one too, unless rounding decides.
            let found = can_be_released(&job, &job.requirements);
            assert_eq!(is_wrong, found == Some(Verdict::Holds));
            match job.run() {
                Ok(_) => n_wrong += usize::from(is_wrong),
                Err(_) => n_right += usize::from(!is_wrong),
            }
        }
        assert!(n_wrong > 10 && n_right > 10, "{n_wrong} {n_right}");
    }
}
