//! Second foreign keys (references): what they would give away, which of them are kept, and that kept ones name the
//! right rows.

use std::collections::{BTreeMap, BTreeSet};

use kohort_core::relational::AnonymizedTables;
use kohort_model::{NULL, Table};
use kohort_testkit::attacks::connections::{clinic, seen};
use kohort_testkit::generate::config;
use kohort_testkit::generate::references::references_job;
use kohort_testkit::generate::snowflake::TablesJob;
use kohort_testkit::jobs::verify_tables_every_way;
use kohort_testkit::oracle::swaps::Connected;
use kohort_testkit::oracle::views::as_read;
use kohort_testkit::scenario::tables_job;
use kohort_verify::{Findings, ReleasedLink, SuppressionLimit, Violation, verify_tables, verify_tables_alone};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Verifies a release in every way there is. Its files must give the same findings as the release in memory, to the
/// last bit.
fn verify(job: &TablesJob, done: &AnonymizedTables) -> Result<Findings, String> {
    let found = verify_tables_every_way(job, done)?;
    if found.written == found.in_memory {
        Ok(found.written)
    } else {
        Err(format!("{:?} is not {:?}", found.written, found.in_memory))
    }
}

fn cells(table: &Table, column: &str) -> Vec<Option<String>> {
    let column = table.column(column).expect("it is released");
    (0..table.n_rows).map(|row| column.cell(row).map(str::to_owned)).collect()
}

/// How many references of a table the verifier counted as kept.
fn kept(findings: &Findings, table: usize) -> u64 {
    findings.tables[table].references.iter().map(|reference| reference.kept).sum()
}

#[test]
fn references_stay_where_everybody_has_the_same_pattern() {
    // Each of five doctors has twelve patients, and each patient saw the same doctor three times.
    let job = clinic(5, |patient, _| patient % 5);
    let done = job.run().unwrap();
    let findings = verify(&job, &done).unwrap();
    assert_eq!(kept(&findings, 1), 180);
    assert!(seen(&job, &done).values().all(|doctors| doctors.values().eq(&[3])));
}

#[test]
fn as_many_references_of_unequal_crowds_stay_as_can_be_balanced() {
    // Doctor 0 has 32 patients and the other four have seven each. So the references of seven patients per doctor are
    // kept, and no more.
    let job = clinic(5, |patient, _| if patient < 28 { patient / 7 + 1 } else { 0 });
    let done = job.run().unwrap();
    let findings = verify(&job, &done).unwrap();
    assert_eq!(kept(&findings, 1), 105);
    let sizes: BTreeSet<usize> = in_degrees(&job, &done).into_values().collect();
    assert_eq!(sizes, BTreeSet::from([21]), "no doctor has more visits than another");
}

fn in_degrees(job: &TablesJob, done: &AnonymizedTables) -> BTreeMap<String, usize> {
    let mut degrees = BTreeMap::new();
    for doctors in seen(job, done).into_values() {
        for (doctor, times) in doctors {
            *degrees.entry(doctor).or_default() += times;
        }
    }
    degrees
}

const TRANSFERS: &str = "k = 2
[tables.account]
file = \"account.csv\"
key = \"id\"
columns = { town = \"quasi\", sum = \"plain\", receiver = { role = \"key\", references = \"account\" } }
";

#[test]
fn a_receiver_is_the_right_person_after_renumbering() {
    // Each account of town a sends to another account of town b.
    let rows = ["z9,a,1,m4", "z3,a,2,m1", "m4,b,3,", "m1,b,4,"];
    let job = tables_job(TRANSFERS, &[("id,town,sum,receiver", rows.map(str::to_owned).to_vec())]);
    let done = job.run().unwrap();
    let findings = verify(&job, &done).unwrap();
    assert_eq!(kept(&findings, 0), 2);
    let (files, _) = as_read(&done.release, &job.tables, &job.schema);
    let sum_of: BTreeMap<_, _> = cells(&files[0], "id").into_iter().zip(cells(&files[0], "sum")).collect();
    let sent: Vec<_> = cells(&files[0], "sum").into_iter().zip(cells(&files[0], "receiver")).collect();
    let pairs: BTreeSet<(String, String)> =
        sent.into_iter().filter_map(|(from, to)| Some((from?, sum_of[&Some(to?)].clone()?))).collect();
    let expected = [("1", "3"), ("2", "4")].map(|(from, to)| (from.to_owned(), to.to_owned()));
    assert_eq!(pairs, BTreeSet::from(expected));
}

#[test]
fn a_row_that_is_referenced_more_often_than_others_does_not_stand_out() {
    // Everybody in town a sends to m1, who would be the only one with two senders.
    let rows = ["z9,a,1,m1", "z3,a,2,m1", "m4,b,3,", "m1,b,4,"];
    let job = tables_job(TRANSFERS, &[("id,town,sum,receiver", rows.map(str::to_owned).to_vec())]);
    let findings = verify(&job, &job.run().unwrap()).unwrap();
    assert_eq!((kept(&findings, 0), findings.tables[0].references[0].removed), (0, Some(2)));
}

/// Accounts of one town as files, each with a receiver.
fn accounts(receivers: &[&str]) -> (Vec<Table>, Vec<ReleasedLink>, Vec<Vec<kohort_model::Requirement>>) {
    let rows = (1..).zip(receivers).map(|(id, receiver)| format!("{id},a,1,{receiver}")).collect();
    let job = tables_job(TRANSFERS, &[("id,town,sum,receiver", rows)]);
    let links = ReleasedLink::of(&job.schema, &job.tables);
    let asked = job.requirements();
    (job.tables, links, asked)
}

#[test]
fn files_with_circles_or_lonely_patterns_are_refused() {
    // A circle of three senders and one of six look the same by unfolding, but somebody who knows the whole graph tells
    // them apart.
    let (files, links, asked) = accounts(&["2", "3", "1", "5", "6", "7", "8", "9", "4"]);
    let refused = verify_tables_alone(&files, &links, &asked).unwrap_err().0;
    let circle = Violation::ReferencesInCircle { column: "receiver".to_owned(), n: 9, first_row: 1 };
    let in_table = Violation::InTable { table: "account".to_owned(), violation: Box::new(circle) };
    assert_eq!(refused, [in_table]);
    // If each of two senders has a receiver of its own, the receivers look the same. If both send to one account, it
    // stands out.
    let (files, links, asked) = accounts(&["", "", "1", "2"]);
    assert_eq!(verify_tables_alone(&files, &links, &asked).unwrap().k, 2);
    let (files, links, asked) = accounts(&["", "", "1", "1"]);
    assert!(verify_tables_alone(&files, &links, &asked).is_err());
    // Leaving the reference out of the manifest does not help.
    let (files, _, asked) = accounts(&["", "", "1", "2"]);
    assert!(verify_tables_alone(&files, &[], &asked).is_err());
}

#[test]
fn references_to_another_row_are_found() {
    let rows = ["z9,a,1,m4", "z3,a,2,m1", "m4,b,3,", "m1,b,4,"];
    let job = tables_job(TRANSFERS, &[("id,town,sum,receiver", rows.map(str::to_owned).to_vec())]);
    let mut release = job.run().unwrap().release;
    let receiver = release.tables[0].columns.last_mut().expect("the receiver comes last");
    let kohort_model::Cells::Surrogate { ids } = &mut receiver.cells else { panic!("it is renumbered") };
    let named: Vec<usize> = (0..ids.len()).filter(|&row| ids[row] != NULL).collect();
    ids.swap(named[0], named[1]);
    let found = verify_tables(
        release,
        &job.tables,
        &job.schema,
        &job.requirements(),
        SuppressionLimit::share(job.spec.max_suppressed),
    )
    .unwrap_err()
    .0;
    let is_false = |violation: &Violation| match violation {
        Violation::InTable { violation, .. } => matches!(**violation, Violation::FalseReference { n: 2, .. }),
        _ => false,
    };
    assert!(found.iter().all(is_false) && found.len() == 1, "{found:?}");
}

#[test]
fn the_properties_speak_of_releases_that_keep_references() {
    let mut runner = TestRunner::deterministic();
    let (mut n_kept, mut n_removed, mut n_released) = (0, 0, 0);
    for _ in 0..200 {
        let job = references_job().new_tree(&mut runner).expect("jobs are drawn without conditions").current();
        let Ok(done) = job.run() else { continue };
        let findings = verify(&job, &done).unwrap();
        let references = || findings.tables.iter().flat_map(|table| &table.references);
        n_released += u32::from(references().any(|reference| reference.kept > 0));
        n_kept += references().map(|reference| reference.kept).sum::<u64>();
        n_removed += references().filter_map(|reference| reference.removed).sum::<u64>();
    }
    assert!(n_released > 20 && n_kept > 100 && n_removed > 100, "{n_released} {n_kept} {n_removed}");
}

fn threads(n: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(n).build().expect("threads can be started")
}

/// The released files as texts.
fn files(job: &TablesJob) -> Option<Vec<Vec<Vec<Option<String>>>>> {
    let done = job.run().ok()?;
    let (tables, _) = as_read(&done.release, &job.tables, &job.schema);
    let rows = |table: &Table| {
        let cells = |row: usize| table.columns.iter().map(|column| column.cell(row).map(str::to_owned)).collect();
        (0..table.n_rows).map(cells).collect()
    };
    Some(tables.iter().map(rows).collect())
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn everybody_can_be_exchanged_with_k_and_joins_are_true(job in references_job()) {
        let Ok(done) = job.run() else { return Ok(()) };
        let findings = verify(&job, &done).map_err(TestCaseError::fail)?;
        let (tables, schema) = as_read(&done.release, &job.tables, &job.schema);
        let connected = Connected::new(&tables, &schema);
        for root in schema.roots() {
            let crowds = connected.exchangeable(root);
            let smallest = crowds.iter().copied().min().unwrap_or(0);
            prop_assert!(smallest >= job.spec.k as usize, "{:?}", crowds);
            prop_assert_eq!(findings.tables[root].k, Some(smallest as u64));
            let n_classes: f64 = crowds.iter().map(|&crowd| 1.0 / crowd as f64).sum();
            prop_assert!((findings.tables[root].classes as f64 - n_classes).abs() < 1e-9);
        }
        for (table, linked) in job.schema.tables.iter().enumerate() {
            for (reference, found) in linked.references.iter().zip(&findings.tables[table].references) {
                let private = job.schema.reference_rows(&job.tables, table, *reference);
                let public = schema.reference_rows(&tables, table, *schema.tables[table].references.iter()
                    .find(|to| tables[table].columns[to.column].name == found.column).expect("it is released"));
                let mut removed = 0;
                for (&source, &met) in done.release.tables[table].rows.iter().zip(&public) {
                    match (met, private[source as usize]) {
                        (NULL, NULL) => {}
                        (NULL, _) => removed += 1,
                        (met, target) => {
                            prop_assert_eq!(done.release.tables[reference.table].rows[met as usize], target);
                        }
                    }
                }
                prop_assert_eq!(found.removed, Some(removed));
            }
        }
    }

    #[test]
    fn neither_threads_nor_the_order_of_rows_change_the_files(job in references_job()) {
        let one = threads(1).install(|| files(&job));
        prop_assert_eq!(&one, &threads(8).install(|| files(&job)));
        let orders: Vec<Vec<usize>> = job.tables.iter().map(|table| (0..table.n_rows).rev().collect()).collect();
        prop_assert_eq!(&one, &files(&job.with_rows(&orders)));
    }
}
