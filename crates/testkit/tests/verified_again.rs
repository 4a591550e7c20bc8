//! Every release that the engine makes is accepted when its files are counted again, alone and against the input.

use kohort_core::Anonymized;
use kohort_model::{Role, Schema, SchemaTable, Table};
use kohort_testkit::generate::{Job, Size, config, job, job_of_several_rows};
use kohort_testkit::oracle::{self, views::as_read};
use kohort_verify::{RowsOf, Skipped, Suppressed, SuppressionLimit, Violation, verify_against, verify_alone};
use proptest::prelude::*;

/// The release as its file is read back.
fn file_of(job: &Job, done: &Anonymized) -> Table {
    let schema = Schema {
        tables: vec![SchemaTable {
            name: job.table.name.clone(),
            key: None,
            parent: None,
            references: Vec::new(),
            max_rows_left_out: None,
        }],
    };
    let (mut files, _) = as_read(&done.release, std::slice::from_ref(&job.table), &schema);
    files.remove(0)
}

/// Which verdict a release must never get.
#[derive(Clone, Copy, PartialEq)]
enum Never {
    /// Neither "false" nor "can't tell".
    Unaccepted,
    /// "False".
    False,
}

/// Counts the file of a release again, alone and against the input.
fn counted_again(job: &Job, never: Never) -> Result<(), TestCaseError> {
    let Ok(done) = job.run() else { return Ok(()) };
    let file = file_of(job, &done);
    let rows = &done.release.tables[0].rows;
    let n_persons = oracle::persons(&job.table, rows).len();
    let rows_of = if n_persons == rows.len() { RowsOf::PersonsEach } else { RowsOf::PersonsUnnamed };
    if let Err(violations) = verify_alone(&file, &file.with_role(Role::Quasi), &job.requirements, rows_of) {
        prop_assert!(false, "alone: {}", violations);
    }
    let suppressed = Suppressed { rows: (job.table.n_rows - rows.len()) as u64, persons: done.persons.suppressed };
    match verify_against(
        &file,
        &job.table,
        &job.requirements,
        suppressed,
        SuppressionLimit::share(job.spec.max_suppressed),
    ) {
        Err(violations) if never == Never::False && violations.0.iter().all(Violation::is_undecided) => {}
        Err(violations) => prop_assert!(false, "against: {}", violations),
        Ok(findings) => {
            prop_assert_eq!(findings.persons, n_persons as u64);
            let lost = findings.loss.as_ref().expect("loss is counted against the private table");
            prop_assert!((lost.lm - done.loss.lm).abs() < 1e-9, "{:?} {:?}", lost, done.loss);
            prop_assert!((lost.ncp - done.loss.ncp).abs() < 1e-9, "{:?} {:?}", lost, done.loss);
            if let Some(of_persons) = lost.persons {
                prop_assert_eq!(of_persons.dm, done.loss.dm);
                prop_assert!((of_persons.average_class - done.loss.average_class).abs() < 1e-9);
                prop_assert!(of_persons.k_deviation.is_none_or(|counted| counted == done.loss.k_deviation));
            }
            if !findings.skipped.contains(&Skipped::Figures) {
                prop_assert_eq!(findings.k, smallest_class(job, &done));
            }
        }
    }
    Ok(())
}

/// The number of persons in the smallest class, counted by the rows from which the release was made.
fn smallest_class(job: &Job, done: &Anonymized) -> u64 {
    let classes = oracle::classes(&job.table, &done.release);
    classes.iter().map(|class| oracle::persons(&job.table, &class.rows).len() as u64).min().unwrap_or(0)
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn a_release_is_accepted_again(job in job(Size::SMALL)) {
        counted_again(&job, Never::Unaccepted)?;
    }

    #[test]
    fn a_release_of_persons_with_several_rows_is_accepted_again(job in job_of_several_rows(Size::SMALL)) {
        counted_again(&job, Never::Unaccepted)?;
    }
}

proptest! {
    #![proptest_config(config(40))]

    // A few hundred rows in overlapping classes can be traced back in too many ways to try all of them.
    #[test]
    fn a_larger_release_of_persons_with_several_rows_is_never_called_false(job in job_of_several_rows(Size::LARGE)) {
        counted_again(&job, Never::False)?;
    }
}
