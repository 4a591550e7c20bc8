//! Attacks by somebody who holds the release, knows the algorithm, and knows things from outside.
//!
//! Each test first shows the leak on a release as a careless publisher would make it, and then that ours has no such
//! leak. The strongest proof is that two private tables give the same file byte by byte, because then nothing in it
//! tells them apart.

use std::collections::BTreeSet;

use kohort_core::encode::Encoded;
use kohort_core::partition::{KeepTree, Mondrian, Partitioner, Task};
use kohort_core::requirement::Rules;
use kohort_model::spec::{MondrianSpec, Order, SpecErrorKind, SpecErrors};
use kohort_model::{Column, Hierarchy, Role, Silent, Spec, Table};
use kohort_testkit::generate::{Job, Size, config, job, plain_job};
use kohort_testkit::oracle::{self, Verdict};
use kohort_testkit::scenario::Scenario;
use kohort_verify::{measure, verify_release};
use proptest::prelude::*;

fn spec(settings: &str, table: &str, columns: &str) -> String {
    format!("{settings}\n[tables.t]\nfile = \"t.csv\"\n{table}\n[tables.t.columns]\n{columns}\n")
}

fn lines(csv: &str) -> Vec<&str> {
    csv.lines().skip(1).collect()
}

/// The same table with its rows in reverse order.
fn reversed(csv: &str) -> String {
    let (header, rows) = csv.split_once('\n').expect("a table has a header");
    let mut rows: Vec<&str> = rows.lines().collect();
    rows.reverse();
    format!("{header}\n{}\n", rows.join("\n"))
}

/// The released file of a job, as cells.
fn file(job: &Job) -> Option<Vec<Vec<Option<String>>>> {
    job.run().ok().map(|done| oracle::released_cells(&job.table, &done.release))
}

#[test]
fn finer_classes_than_shown_are_not_visible() {
    // The column is text without a hierarchy. The partitioner separates {baker, clerk} from {nurse, pilot}, and both
    // show `*`.
    let jobs = ["baker", "baker", "clerk", "clerk", "nurse", "nurse", "pilot", "pilot"];
    let diseases = ["ulcer", "flu", "ulcer", "flu", "gout", "cold", "gout", "cold"];
    let csv = |diseases: &[&str]| {
        let rows: String = jobs.iter().zip(diseases).map(|(job, disease)| format!("{job},{disease}\n")).collect();
        format!("job,disease\n{rows}")
    };
    let text = spec("k = 4", "", "job = \"quasi\"\ndisease = \"sensitive\"");
    let scenario = Scenario::new(&csv(&diseases), &text);
    let table = &scenario.loaded.table;

    // A careless publisher leaves rows in the order of the partitioner's classes.
    let encoded = Encoded::new(table, &table.with_role(Role::Quasi)).unwrap();
    let all: Vec<u32> = (0..8).collect();
    let rows = encoded.fold(&all);
    let rules = Rules::compile(table, &scenario.requirements(), &all).unwrap();
    let mondrian = Mondrian { spec: MondrianSpec::default(), keep_tree: KeepTree::No };
    let leftovers = kohort_model::spec::Leftovers::Merge;
    let task =
        Task { rows: &rows, domains: &encoded.domains, rules: &rules, allowance: 0, leftovers, progress: &Silent };
    let classes = mondrian.partition(&task).unwrap();
    assert_eq!(classes.len(), 2, "the partitioner's classes are finer than what they show");
    let first: BTreeSet<&str> = classes
        .rows(0)
        .iter()
        .flat_map(|&row| rows.members(row))
        .map(|&row| table.column("disease").unwrap().cell(row as usize).unwrap())
        .collect();
    assert_eq!(first.len(), 2, "a reader who knows the order knows that no baker has gout");

    let swapped: Vec<&str> = diseases.iter().rev().copied().collect();
    assert_eq!(scenario.released_csv(), Scenario::new(&csv(&swapped), &text).released_csv());
}

#[test]
fn minimum_class_after_suppression() {
    // At most half of a class may have flu, so two of the four persons with flu must go. If they were taken from
    // finished classes, one class would have fewer than k persons.
    let csv = "age,disease\n20,flu\n21,flu\n22,gout\n40,flu\n41,flu\n42,cold\n43,ulcer\n";
    let columns = "age = \"quasi\"\ndisease = { role = \"sensitive\", alpha = 0.4 }";
    let plain = Scenario::new(csv, &spec("k = 3", "", "age = \"quasi\"\ndisease = \"sensitive\""));
    let disease = plain.loaded.table.column("disease").unwrap();
    let smallest_careless = oracle::classes(&plain.loaded.table, plain.verified().get())
        .iter()
        .map(|class| class.rows.iter().filter(|&&row| disease.cell(row as usize) != Some("flu")).count())
        .min();
    assert!(smallest_careless < Some(3), "what is left of a class is smaller than k");

    let scenario = Scenario::new(csv, &spec("k = 3\nmax_suppressed = 0.3", "", columns));
    let done = scenario.run().unwrap();
    assert!(done.persons.suppressed > 0);
    let released = &done.release.tables[0].rows;
    for class in oracle::classes(&scenario.loaded.table, &done.release) {
        let verdict = oracle::stands(&scenario.loaded.table, &scenario.requirements(), &class.rows, released);
        assert_ne!(verdict, Verdict::Fails);
    }
    verify_release(done.release, &scenario.loaded.table, &scenario.requirements(), scenario.limit()).unwrap();
}

#[test]
fn suppressed_persons_leave_no_trace() {
    // The person aged 99 can't be hidden and is left out. No range reaches to her age, and no cell of hers is released.
    let csv = |outlier: &str| format!("age,wish,disease\n20,2,flu\n21,2,gout\n22,2,flu\n23,2,cold\n{outlier}\n");
    let columns = "age = \"quasi\"\nwish = \"person_k\"\ndisease = \"sensitive\"";
    let text = spec("k = 2\nmax_suppressed = 0.2", "", columns);
    let released = |outlier: &str| Scenario::new(&csv(outlier), &text).released_csv();
    assert_eq!(lines(&released("99,9,plague")).len(), 4);
    assert!(!released("99,9,plague").contains("99") && !released("99,9,plague").contains("plague"));
    assert_eq!(released("99,9,plague"), released("99,7,flu"));
}

#[test]
fn homogeneous_class_is_refused_under_l() {
    let csv = "age,disease\n20,hiv\n21,hiv\n40,flu\n41,gout\n";
    let columns = |disease: &str| format!("age = \"quasi\"\ndisease = {disease}");
    let careless = Scenario::new(csv, &spec("k = 2", "", &columns("\"sensitive\""))).released_csv();
    assert_eq!(lines(&careless)[..2], ["\"[20,21]\",hiv", "\"[20,21]\",hiv"], "everybody aged 20 has hiv");
    let diverse = Scenario::new(csv, &spec("k = 2", "", &columns("{ role = \"sensitive\", l = 2 }")));
    assert_eq!(diverse.verified().findings().sensitive[0].l, 3);
    let table = &diverse.loaded.table;
    let finished = Scenario::new(csv, &spec("k = 2", "", &columns("\"sensitive\""))).run().unwrap();
    let violations = verify_release(finished.release, table, &diverse.requirements(), diverse.limit()).unwrap_err();
    assert!(!violations.0.is_empty(), "the verifier refuses the careless release");
}

#[test]
fn skewed_class_is_refused_under_t() {
    // One person in ten has it; in the class of the young it would be one in two.
    let csv = "age,hiv\n20,yes\n21,no\n40,no\n41,no\n42,no\n43,no\n44,no\n45,no\n46,no\n47,no\n";
    let columns = |hiv: &str| format!("age = \"quasi\"\nhiv = {hiv}");
    let careless = Scenario::new(csv, &spec("k = 2", "", &columns("{ role = \"sensitive\" }")));
    assert!(careless.verified().findings().sensitive[0].t >= 0.4);
    let close = Scenario::new(csv, &spec("k = 2", "", &columns("{ role = \"sensitive\", t = 0.15 }")));
    assert!(close.verified().findings().sensitive[0].t <= 0.15 + 1e-9);
    let finished = careless.run().unwrap();
    assert!(verify_release(finished.release, &close.loaded.table, &close.requirements(), close.limit()).is_err());
}

#[test]
fn null_matches_only_null_or_root() {
    let csv = "age,city\n20,Bonn\n,Bonn\n21,\n22,Lyon\n,\n23,Lyon\n";
    let files = [("city.csv".to_owned(), "Bonn;Germany;Europe\nLyon;France;Europe\n".to_owned())].into();
    let columns = "age = \"quasi\"\ncity = { role = \"quasi\", hierarchy = \"city.csv\" }";
    let scenario = Scenario::with_files(csv, &spec("k = 2", "", columns), &files);
    let table = &scenario.loaded.table;
    for class in oracle::classes(table, scenario.verified().get()) {
        for &row in &class.rows {
            if table.column("age").unwrap().cell(row as usize).is_none() {
                assert!(matches!(class.cells[0].as_deref(), None | Some("*")));
            }
            if table.column("city").unwrap().cell(row as usize).is_none() {
                assert!(matches!(class.cells[1].as_deref(), None | Some("Europe")));
            }
        }
    }
    // A careless reader lets null match everything, and takes a class of one person for a class of three.
    let table = Table {
        name: "t".to_owned(),
        columns: vec![Column::from_cells("age", Role::Quasi, [Some("20"), None, None])],
        n_rows: 3,
        person: None,
    };
    assert_eq!(measure(&table, &[0], &[], &[]).unwrap().k, 1);
}

#[test]
fn spelling_does_not_single_anybody_out() {
    // Only one person wrote 1.50, so a reader who saw the form knows whose row that is.
    let csv = "dose,disease\n1.5,flu\n1.50,gout\n1.5,cold\n";
    let columns = "dose = \"quasi\"\ndisease = \"sensitive\"";
    let released = Scenario::new(csv, &spec("k = 3", "", columns)).released_csv();
    assert_eq!(lines(&released), ["1.5,cold", "1.5,flu", "1.5,gout"]);
}

#[test]
fn spelling_makes_no_sensitive_value_diverse() {
    // Everybody aged 20 has the dose 1.5, in two spellings. That is one value, so l = 2 must not count two.
    let csv = "age,dose\n20,1.5\n20,1.50\n40,1.5\n40,2.5\n";
    let columns = "age = \"quasi\"\ndose = { role = \"sensitive\", type = \"decimal\", l = 2 }";
    let scenario = Scenario::new(csv, &spec("k = 2", "", columns));
    for class in oracle::classes(&scenario.loaded.table, &scenario.run().unwrap().release) {
        assert_eq!(class.rows.len(), 4, "the class of 20 has one dose");
    }
    assert_eq!(scenario.verified().findings().sensitive[0].l, 2);
}

#[test]
fn a_key_that_links_nothing_is_refused() {
    // Renumbered or not, equal numbers show which rows share a doctor, and no requirement counts whom that tells apart.
    for asked in ["k = 2", "k = 2\nkeys = \"keep\""] {
        let spec = spec(asked, "person = \"id\"", "doctor = \"key\"\nage = \"quasi\"");
        let SpecErrors(problems) = Spec::parse(&spec).unwrap_err();
        let faults: Vec<(&str, &SpecErrorKind)> =
            problems.iter().map(|problem| (problem.key.as_str(), &problem.fault)).collect();
        assert_eq!(faults, [("tables.t.columns.doctor", &SpecErrorKind::KeyLinksNothing)]);
    }
}

#[test]
fn classes_that_look_alike_are_one_class_to_a_reader() {
    // Persons 3 and 4 have rows in both of the partitioner's classes, {a, b} and {c, d}, which both show `*`. Half of
    // either class has flu, but four of the six persons whom a reader sees together have it.
    let csv = "id,job,disease\n1,a,flu\n2,b,flu\n3,a,gout\n4,b,cold\n3,c,gout\n4,d,cold\n5,c,flu\n6,d,flu\n\
               7,e,ulcer\n8,e,ulcer\n9,e,fever\n10,e,fever\n11,e,mumps\n12,e,mumps\n";
    let columns = "job = \"quasi\"\ndisease = { role = \"sensitive\", alpha = 0.5 }";
    let scenario = Scenario::new(csv, &spec("k = 4", "person = \"id\"", columns));
    let table = &scenario.loaded.table;
    let done = scenario.run().unwrap();
    let released = &done.release.tables[0].rows;
    for class in oracle::classes(table, &done.release) {
        let verdict = oracle::stands(table, &scenario.requirements(), &class.rows, released);
        assert_ne!(verdict, Verdict::Fails, "the class that shows {:?}", class.cells);
    }
}

#[test]
fn an_own_k_holds_in_every_class_a_person_is_in() {
    // One row of person 1 asks for two and another for four, so the person asks for four wherever they have a row.
    let csv = "id,age,wish\n1,20,2\n2,20,2\n1,40,4\n3,40,2\n4,40,2\n5,40,2\n";
    let columns = "age = \"quasi\"\nwish = \"person_k\"";
    let scenario = Scenario::new(csv, &spec("k = 2", "person = \"id\"", columns));
    let table = &scenario.loaded.table;
    let done = scenario.run().unwrap();
    for class in oracle::classes(table, &done.release) {
        let n_persons = oracle::persons(table, &class.rows).len();
        assert!(n_persons >= 4 || !oracle::persons(table, &class.rows).contains("1"), "person 1 is one of {n_persons}");
    }
    verify_release(done.release, table, &scenario.requirements(), scenario.limit()).unwrap();
}

#[test]
fn the_choice_of_whom_to_leave_out_does_not_depend_on_the_order_of_the_input() {
    // One of two persons who look the same must go. If the first in the file goes, the release tells who was first.
    let columns = "age = \"quasi\"\ndisease = { role = \"sensitive\", alpha = 0.5 }\nward = \"plain\"";
    let csv = "age,disease,ward\n20,flu,north\n20,flu,south\n20,gout,east\n";
    let ours = |csv: &str| Scenario::new(csv, &spec("k = 2\nmax_suppressed = 0.4", "", columns)).released_csv();
    assert_eq!(ours(csv), ours(&reversed(csv)));
}

#[test]
fn ties_between_frequent_values_do_not_depend_on_the_order_of_the_input() {
    // Person 2 has both frequent diseases. If flu is handled first, 2 leaves and that is enough; if gout is, 3 leaves,
    // and then 2 as well. The choice must not depend on which disease the file names first.
    let columns = "age = \"quasi\"\ndisease = { role = \"sensitive\", alpha = 0.35 }";
    let csv = "id,age,disease\n1,20,flu\n2,15,flu\n2,15,gout\n3,10,gout\n4,30,cold\n5,40,ulcer\n";
    let ours = |csv: &str| {
        let scenario = Scenario::new(csv, &spec("k = 2\nmax_suppressed = 0.4", "person = \"id\"", columns));
        assert!(scenario.run().unwrap().persons.suppressed > 0);
        scenario.released_csv()
    };
    assert_eq!(ours(csv), ours(&reversed(csv)));
}

#[test]
fn leaving_somebody_out_moves_what_closeness_is_measured_against() {
    // Two persons with flu must go for alpha. Then the released shares are one half each, so t holds with distance 0.
    let csv = "age,disease\n20,flu\n20,flu\n20,flu\n20,flu\n20,flu\n20,flu\n20,gout\n20,gout\n20,gout\n20,gout\n";
    let columns = "age = \"quasi\"\ndisease = { role = \"sensitive\", alpha = 0.5, t = 0.05 }";
    let scenario = Scenario::new(csv, &spec("k = 2\nmax_suppressed = 0.2", "", columns));
    let done = scenario.run().unwrap();
    assert_eq!(done.persons.suppressed, 2);
    verify_release(done.release, &scenario.loaded.table, &scenario.requirements(), scenario.limit()).unwrap();
}

#[test]
fn no_cell_of_the_table_is_in_an_error_or_a_debug_text() {
    let csv = "id,age,city,disease\nsecret1,20,secret2,secret3\nsecret4,21,secret5,secret3\n";
    let columns = "age = \"quasi\"\ncity = \"quasi\"\ndisease = { role = \"sensitive\", l = 2 }";
    for settings in ["k = 2", "k = 3"] {
        let scenario = Scenario::new(csv, &spec(settings, "person = \"id\"", columns));
        let error = scenario.run().unwrap_err();
        let text = format!("{error} {error:?} {:?} {:?}", error.hint(), scenario.loaded);
        assert!(!text.contains("secret"), "{text}");
    }
    let done = Scenario::new(
        csv,
        &spec("k = 2", "", "id = \"plain\"\nage = \"quasi\"\ncity = \"quasi\"\ndisease = \"plain\""),
    );
    assert!(!format!("{:?}", done.run().unwrap()).contains("secret"));
    let mut table = done.loaded.table.clone();
    table.columns[2] = table.columns[2].clone().with_hierarchy(Hierarchy::flat("*", ["other"]));
    let error = kohort_core::anonymize(&table, &done.spec, &done.requirements(), &Silent).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("secret"));
}

/// The job after exchanging the copied cells among the members of each class, all columns of a row together.
fn with_owners_exchanged(job: &Job, seed: u64) -> Option<Job> {
    let done = job.run().ok()?;
    let mut owner: Vec<usize> = (0..job.table.n_rows).collect();
    for class in oracle::classes(&job.table, &done.release) {
        let turn = seed as usize % class.rows.len();
        for (position, &row) in class.rows.iter().enumerate() {
            owner[row as usize] = class.rows[(position + turn) % class.rows.len()] as usize;
        }
    }
    let mut exchanged = job.clone();
    for column in &mut exchanged.table.columns {
        if matches!(column.role, Role::Plain | Role::Sensitive) {
            let cells = Column::from_cells(&column.name, column.role, owner.iter().map(|&row| column.cell(row)));
            (column.texts, column.ids) = (cells.texts, cells.ids);
        }
    }
    Some(exchanged)
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn within_a_class_nobody_owns_a_row(mut job in plain_job(Size::SMALL), seed in any::<u64>()) {
        job.spec.order = Order::Sorted;
        if let Some(exchanged) = with_owners_exchanged(&job, seed) {
            prop_assert_eq!(file(&job), file(&exchanged));
        }
    }

    #[test]
    fn the_file_does_not_depend_on_the_order_of_the_input(mut job in job(Size::SMALL)) {
        job.spec.order = Order::Sorted;
        job.spec.max_suppressed = 0.0;
        let backwards: Vec<usize> = (0..job.table.n_rows).rev().collect();
        prop_assert_eq!(file(&job), file(&job.with_rows(&backwards)));
    }
}
