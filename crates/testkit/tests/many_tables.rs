//! Many tables end to end: random snowflakes are anonymized, and the verifier, the oracle and the attacker must agree.

use std::collections::{BTreeMap, BTreeSet};

use kohort_core::AnonymizeError;
use kohort_core::relational::{AnonymizedTables, anonymize_tables};
use kohort_model::spec::{Algorithm, Keys, Order};
use kohort_model::{Cells, Column, Requirement, Role, Schema, Silent, Spec, Table};
use kohort_testkit::generate::config;
use kohort_testkit::generate::snowflake::{Asks, TablesJob, TablesSize, tables_job};
use kohort_testkit::jobs::{judge_refused_tables, verify_tables_every_way};
use kohort_testkit::oracle::views::{Counting, Joined, Tree, as_read, attack, classes_of_trees, smallest_answer};
use kohort_testkit::random::Random;
use kohort_testkit::{data, students};
use kohort_verify::{Findings, SuppressionLimit, verify_tables};
use proptest::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Verifies a release in every way there is, and returns what was found in its files.
fn verify(job: &TablesJob, done: &AnonymizedTables) -> Result<Findings, String> {
    verify_tables_every_way(job, done).map(|found| found.written)
}

/// Checks that a refusal is right, by brute force if there are few enough persons.
fn check_refusal(job: &TablesJob, error: &AnonymizeError) -> Result<(), TestCaseError> {
    let judged = judge_refused_tables(job, error);
    prop_assert!(judged.faults.is_empty(), "{:?}", judged.faults);
    Ok(())
}

/// Checks that two jobs that differ only in the order of rows or tables give the same release, except for the numbers
/// of keys.
fn same_release(job: &TablesJob, other: &TablesJob) -> Result<(), TestCaseError> {
    match (job.run(), other.run()) {
        (Ok(done), Ok(again)) => {
            prop_assert_eq!(persons_as_shown(job, &done), persons_as_shown(other, &again));
            prop_assert!((done.loss.lm - again.loss.lm).abs() < 1e-12);
        }
        (Err(_), Err(_)) => {}
        (done, again) => prop_assert!(false, "one order succeeds: {:?} {:?}", done.err(), again.err()),
    }
    Ok(())
}

/// A release without the numbers of its keys: what a reader can see of each person, sorted.
fn persons_as_shown(job: &TablesJob, done: &AnonymizedTables) -> BTreeMap<String, Vec<String>> {
    let (mut files, schema) = as_read(&done.release, &job.tables, &job.schema);
    // Everything that is shown of a row counts, except its key.
    for table in &mut files {
        for column in &mut table.columns {
            if column.role != Role::Key {
                column.role = Role::Quasi;
            }
        }
    }
    let joined = Joined::new(&files, &schema);
    let of_root = |&root: &usize| {
        let classes = classes_of_trees(&joined, root);
        let mut shown: Vec<String> = classes
            .iter()
            .flat_map(|class| class.iter().map(|&row| format!("{:?}", without_rows(&joined.persons(root)[row]))))
            .collect();
        shown.sort_unstable();
        (files[root].name.clone(), shown)
    };
    schema.roots().iter().map(of_root).collect()
}

type Shown = (Vec<Option<String>>, Vec<Vec<String>>);

/// A tree as texts, with its rows in a fixed order.
fn without_rows(tree: &Tree) -> Shown {
    let rows_of_table = |rows: &Vec<Tree>| {
        let mut rows: Vec<String> = rows.iter().map(|row| format!("{:?}", without_rows(row))).collect();
        rows.sort_unstable();
        rows
    };
    let mut children: Vec<Vec<String>> = tree.children.iter().map(rows_of_table).collect();
    // Tables may come in another order too.
    children.sort_unstable();
    (tree.cells.clone(), children)
}

fn threads(n: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(n).build().expect("threads can be started")
}

/// Every cell of every released table, row by row.
fn shown_tables(job: &TablesJob, done: &AnonymizedTables) -> Vec<Vec<Vec<Option<String>>>> {
    let (files, _) = as_read(&done.release, &job.tables, &job.schema);
    let cells =
        |table: &Table, row: usize| table.columns.iter().map(|column| column.cell(row).map(str::to_owned)).collect();
    files.iter().map(|table| (0..table.n_rows).map(|row| cells(table, row)).collect()).collect()
}

fn shuffled(n: usize, random: &mut Random) -> Vec<usize> {
    random.choose(&(0..n).collect::<Vec<_>>(), n)
}

proptest! {
    #![proptest_config(config(96))]

    #[test]
    fn every_release_of_many_tables_is_verified(job in tables_job(TablesSize::SMALL, Asks::K)) {
        match job.run() {
            Err(error) => check_refusal(&job, &error)?,
            Ok(done) => {
                let findings = verify(&job, &done).map_err(TestCaseError::fail)?;
                let limit = job.spec.max_suppressed * done.persons.n_in as f64 + 1e-9;
                prop_assert!(done.persons.suppressed as f64 <= limit);
                prop_assert_eq!(done.persons.n_out, findings.persons);
                prop_assert_eq!(findings.suppressed.unwrap().persons, done.persons.suppressed);
            }
        }
    }

    #[test]
    fn requirements_beyond_k_hold_in_every_orbit(job in tables_job(TablesSize::SMALL, Asks::More)) {
        match job.run() {
            Err(error) => check_refusal(&job, &error)?,
            Ok(done) => drop(verify(&job, &done).map_err(TestCaseError::fail)?),
        }
    }

    #[test]
    fn no_view_over_a_release_singles_anybody_out(job in tables_job(TablesSize::SMALL, Asks::K), seed in any::<u64>()) {
        let Ok(done) = job.run() else { return Ok(()) };
        let (files, schema) = as_read(&done.release, &job.tables, &job.schema);
        let (released, private) = (Joined::new(&files, &schema), Joined::new(&job.tables, &job.schema));
        let found = attack(&released, &private, job.spec.k as usize, 300, seed);
        prop_assert!(found.is_none(), "{found:?}");
    }

    #[test]
    fn the_smallest_answer_of_all_views_is_what_the_verifier_counts(job in tables_job(TablesSize::TINY, Asks::K)) {
        let Ok(done) = job.run() else { return Ok(()) };
        let findings = verify(&job, &done).map_err(TestCaseError::fail)?;
        let (files, schema) = as_read(&done.release, &job.tables, &job.schema);
        prop_assert_eq!(findings.k, u64::from(smallest_answer(&files, &schema, Counting::Counts)));
    }

    #[test]
    fn the_order_of_rows_changes_nothing_but_numbers_of_keys(
        mut job in tables_job(TablesSize::SMALL, Asks::K),
        seed in any::<u64>(),
    ) {
        (job.spec.order, job.spec.keys) = (Order::Sorted, Keys::Surrogate);
        let mut random = Random::new(seed);
        let orders: Vec<Vec<usize>> = job.tables.iter().map(|table| shuffled(table.n_rows, &mut random)).collect();
        same_release(&job, &job.with_rows(&orders))?;
    }

    #[test]
    fn the_order_of_tables_changes_nothing_but_numbers_of_keys(
        mut job in tables_job(TablesSize::SMALL, Asks::K),
        seed in any::<u64>(),
    ) {
        (job.spec.order, job.spec.keys) = (Order::Sorted, Keys::Surrogate);
        same_release(&job, &job.with_tables(&shuffled(job.tables.len(), &mut Random::new(seed))))?;
    }

    #[test]
    fn one_thread_and_eight_give_the_same_release(job in tables_job(TablesSize::SMALL, Asks::More)) {
        let run = |n: usize| threads(n).install(|| job.run().map(|done| shown_tables(&job, &done)));
        match (run(1), run(8)) {
            (Ok(one), Ok(eight)) => prop_assert_eq!(one, eight),
            (one, eight) => prop_assert_eq!(one.err(), eight.err()),
        }
    }

    #[test]
    fn a_k_larger_than_the_number_of_persons_is_refused(job in tables_job(TablesSize::TINY, Asks::K)) {
        let mut job = job;
        prop_assume!(job.tables.iter().any(|table| !table.with_role(Role::Quasi).is_empty()));
        let largest = job.schema.roots().iter().map(|&root| job.tables[root].n_rows).min().unwrap();
        (job.spec.k, job.spec.max_suppressed) = (largest as u32 + 1, 0.0);
        let refused = matches!(job.run(), Err(AnonymizeError::TooFewPersons { .. }));
        prop_assert!(refused);
    }
}

#[test]
fn the_golden_students_come_out_as_in_the_paper() {
    let folder = data::golden("students");
    let text = r#"
k = 2
algorithm = "miracle"
[tables.student]
file = "student.csv"
person = "sid"
columns = { sid = "key", gpa = "sensitive" }
[tables.takes]
file = "takes.csv"
key = "scid"
parent = { table = "student", foreign_key = "sid" }
[tables.takes.columns]
course = { role = "quasi", hierarchy = "course.dgh.csv" }
grade = "sensitive"
[tables.books]
file = "books.csv"
parent = { table = "takes", foreign_key = "scid" }
[tables.books.columns]
book = { role = "quasi", hierarchy = "book.dgh.csv" }
price = "sensitive"
"#;
    for algorithm in [Algorithm::Auto, Algorithm::Miracle, Algorithm::MiracleX] {
        let mut spec = Spec::parse(text).unwrap_or_else(|problems| panic!("{problems}"));
        spec.algorithm = algorithm;
        let load = |table| {
            kohort_io::load(&folder, &spec, table, &Silent).unwrap_or_else(|problems| panic!("{problems}")).table
        };
        let tables: Vec<Table> = spec.tables.iter().map(load).collect();
        let schema = Schema::of(&spec, &tables).unwrap();
        let job = TablesJob { tables, schema, spec };
        let done = job.run().unwrap();
        verify(&job, &done).unwrap();
        assert!((done.loss.lm - 0.2803).abs() < 5e-5, "{algorithm:?}: {}", done.loss.lm);
        let (files, schema) = as_read(&done.release, &job.tables, &job.schema);
        let joined = Joined::new(&files, &schema);
        let gpas = |class: &Vec<usize>| {
            class.iter().map(|&row| files[0].column("gpa").unwrap().cell(row).unwrap().to_owned()).collect()
        };
        let classes: BTreeSet<BTreeSet<String>> = classes_of_trees(&joined, 0).iter().map(gpas).collect();
        let expected = [["3.72", "2.34"], ["3.12", "4.00"]].map(|class| class.map(str::to_owned).into_iter().collect());
        assert_eq!(classes, BTreeSet::from(expected), "{algorithm:?}");
    }
}

#[test]
fn the_experiment_s_students_are_kept_together() {
    let (tables, mut spec) = students::generate(120, 3, students::Books::Some);
    spec.k = 5;
    let schema = Schema::of(&spec, &tables).unwrap();
    for algorithm in [Algorithm::Miracle, Algorithm::MiracleX] {
        spec.algorithm = algorithm;
        let job = TablesJob { tables: tables.clone(), schema: schema.clone(), spec: spec.clone() };
        let done = job.run().unwrap();
        assert!(verify(&job, &done).unwrap().k >= 5, "{algorithm:?}");
        let (files, schema) = as_read(&done.release, &job.tables, &job.schema);
        let (released, private) = (Joined::new(&files, &schema), Joined::new(&job.tables, &job.schema));
        let found = attack(&released, &private, 5, 300, 1);
        assert!(found.is_none(), "{algorithm:?}: {found:?}");
    }
}

#[test]
fn a_person_with_ten_thousand_rows_among_persons_with_three_is_hidden() {
    const N_PERSONS: usize = 12;
    let mut rows: Vec<(usize, usize)> = (0..10_000).map(|row| (0, row % 50)).collect();
    rows.extend((1..N_PERSONS).flat_map(|person| (0..3).map(move |row| (person, (person * 3 + row) % 50))));
    let text = |cells: Vec<String>, name: &str, role| {
        Column::from_cells(name, role, cells.iter().map(|cell| Some(cell.as_str())))
    };
    let tables = vec![
        Table {
            name: "person".to_owned(),
            columns: vec![text((0..N_PERSONS).map(|person| person.to_string()).collect(), "id", Role::Key)],
            n_rows: N_PERSONS,
            person: Some(0),
        },
        Table {
            name: "visit".to_owned(),
            columns: vec![
                text(rows.iter().map(|(person, _)| person.to_string()).collect(), "id", Role::Key),
                text(rows.iter().map(|(_, day)| day.to_string()).collect(), "day", Role::Quasi)
                    .typed(kohort_model::ValueType::Integer),
            ],
            n_rows: rows.len(),
            person: None,
        },
    ];
    let spec = Spec::parse(
        "k = 3\n[tables.person]\nfile = \"person.csv\"\nperson = \"id\"\ncolumns = { id = \"key\" }\n[tables.visit]\nfile = \"visit.csv\"\n\
         parent = { table = \"person\", foreign_key = \"id\" }\ncolumns = { day = \"quasi\" }\n",
    )
    .unwrap_or_else(|problems| panic!("{problems}"));
    let schema = Schema::of(&spec, &tables).unwrap();
    let job = TablesJob { tables, schema, spec };
    let done = job.run().unwrap();
    let findings = verify(&job, &done).unwrap();
    assert!(findings.k >= 3);
    assert_eq!(findings.persons, N_PERSONS as u64);
    assert!(findings.tables[1].rows <= 3 * N_PERSONS as u64, "at most 3 rows per person can find partners");
}

#[test]
fn two_kinds_of_persons_are_each_kept_together() {
    let text = |cells: &[&str], name: &str, role| Column::from_cells(name, role, cells.iter().map(|&cell| Some(cell)));
    let table = |name: &str, columns: Vec<Column>, person| {
        let n_rows = columns[0].ids.len();
        Table { name: name.to_owned(), columns, n_rows, person }
    };
    let tables = vec![
        table(
            "patient",
            vec![text(&["1", "2", "3", "4"], "pid", Role::Key), text(&["a", "a", "b", "c"], "town", Role::Quasi)],
            Some(0),
        ),
        table(
            "visit",
            vec![
                text(&["1", "2", "3", "4", "4"], "pid", Role::Key),
                text(&["x", "y", "x", "y", "x"], "ward", Role::Quasi),
            ],
            None,
        ),
        table(
            "doctor",
            vec![text(&["1", "2", "3"], "did", Role::Key), text(&["u", "v", "w"], "school", Role::Quasi)],
            Some(0),
        ),
    ];
    let spec = Spec::parse(
        "k = 2\n[tables.patient]\nfile = \"p.csv\"\nperson = \"pid\"\ncolumns = { town = \"quasi\" }\n\
         [tables.visit]\nfile = \"v.csv\"\nparent = { table = \"patient\", foreign_key = \"pid\" }\n\
         columns = { ward = \"quasi\" }\n\
         [tables.doctor]\nfile = \"d.csv\"\nperson = true\nkey = \"did\"\ncolumns = { school = \"quasi\" }\n",
    )
    .unwrap_or_else(|problems| panic!("{problems}"));
    let schema = Schema::of(&spec, &tables).unwrap();
    let job = TablesJob { tables, schema, spec };
    let done = job.run().unwrap();
    let findings = verify(&job, &done).unwrap();
    assert_eq!(findings.tables.iter().map(|table| table.k.is_some()).collect::<Vec<_>>(), [true, false, true]);
    assert!(findings.k >= 2);
    let doctors = &done.release.tables[2];
    assert!(
        doctors.columns.iter().all(|column| !matches!(column.cells, Cells::Surrogate { .. })),
        "nothing points to doctors"
    );
    let too_many = [vec![Requirement::K(2)], Vec::new(), vec![Requirement::K(4)]];
    assert!(
        verify_tables(
            done.release,
            &job.tables,
            &job.schema,
            &too_many,
            SuppressionLimit::share(job.spec.max_suppressed)
        )
        .is_err()
    );
    assert!(anonymize_tables(&job.tables, &job.schema, &Spec { k: 4, ..job.spec.clone() }, &Silent).is_err());
}

#[test]
fn more_persons_than_are_tried_every_way_are_hidden_alike_by_any_number_of_threads() {
    let (tables, mut spec) = students::generate(9000, 5, students::Books::Some);
    (spec.k, spec.algorithm) = (5, Algorithm::Auto);
    let schema = Schema::of(&spec, &tables).unwrap();
    let job = TablesJob { tables, schema, spec };
    let [one, eight] = [1, 8].map(|n| threads(n).install(|| job.run().unwrap()));
    verify(&job, &one).unwrap();
    assert_eq!(shown_tables(&job, &one), shown_tables(&job, &eight));
}
