//! The papers' worked examples that fit one table.

use std::collections::BTreeSet;
use std::path::Path;

use kohort_core::{Anonymized, anonymize};
use kohort_io::LoadedTable;
use kohort_model::{Column, Requirement, Role, Silent, Spec, Table};
use kohort_testkit::corpus::PARTITIONERS;
use kohort_testkit::data;
use kohort_testkit::oracle::{self, Verdict};
use kohort_verify::{SuppressionLimit, measure, verify_release};

fn load(folder: &Path, spec: &str) -> (LoadedTable, Spec) {
    let spec = Spec::parse(spec).expect("the spec is one");
    let loaded = kohort_io::load(folder, &spec, &spec.tables[0], &Silent).expect("the golden fits its spec");
    (loaded, spec)
}

fn run(table: &Table, spec: &Spec) -> Anonymized {
    let requirements = spec.requirements(&spec.tables[0]);
    let done = anonymize(table, spec, &requirements, &Silent).expect("k can be reached");
    verify_release(done.release.clone(), table, &requirements, SuppressionLimit::NOBODY)
        .expect("the verifier accepts it");
    done
}

/// The classes of a release as sets of names.
fn classes(table: &Table, done: &Anonymized, names: &[&str]) -> BTreeSet<BTreeSet<String>> {
    let name = |&row: &u32| names[row as usize].to_owned();
    oracle::classes(table, &done.release).iter().map(|class| class.rows.iter().map(name).collect()).collect()
}

fn sets(classes: &[&[&str]]) -> BTreeSet<BTreeSet<String>> {
    classes.iter().map(|class| class.iter().map(|&name| name.to_owned()).collect()).collect()
}

fn k_on(table: &Table, quasi: &[&str]) -> u64 {
    let positions: Vec<usize> = quasi.iter().map(|name| table.position(name).expect("the column is there")).collect();
    measure(table, &positions, &[], &[]).expect("the table can be counted").k
}

/// The given columns, each taken from the table that shows it best.
fn joined(columns: &[(&Table, &str)]) -> Table {
    let columns: Vec<Column> =
        columns.iter().map(|(table, name)| table.column(name).expect("the column is there").clone()).collect();
    Table { name: "joined".to_owned(), n_rows: columns[0].ids.len(), columns, person: None }
}

const PATIENTS: &str = r#"
k = 2
[tables.patient]
file = "patient.csv"
[tables.patient.columns]
name = "identifier"
birth = { role = "quasi", hierarchy = "birth.dgh.csv" }
zipcode = { role = "quasi", hierarchy = "zipcode.dgh.csv" }
disease = "sensitive"
"#;
const PATIENT_NAMES: [&str; 5] = ["P1", "P2", "P3", "P4", "P5"];

#[test]
fn patients_form_two_classes_that_a_reader_can_trust() {
    let (loaded, mut spec) = load(&data::golden("patients"), PATIENTS);
    let valid = [sets(&[&["P1", "P2"], &["P3", "P4", "P5"]]), sets(&[&["P1", "P2", "P3"], &["P4", "P5"]])];
    for partitioner in PARTITIONERS {
        partitioner.set(&mut spec);
        let done = run(&loaded.table, &spec);
        let found = classes(&loaded.table, &done, &PATIENT_NAMES);
        assert!(valid.contains(&found), "{}: {found:?}", partitioner.name);
    }
}

#[test]
fn the_patient_who_asks_for_three_is_among_three() {
    let (loaded, mut spec) = load(&data::golden("patients"), PATIENTS);
    let choices = data::read(&data::golden("patients").join("choices.csv"));
    let mut table = loaded.table;
    let mut wishes = choices.column("k").unwrap().clone();
    (wishes.role, wishes.name) = (Role::PersonK, "k".to_owned());
    table.columns.push(wishes);
    let requirements = [Requirement::K(2), Requirement::PersonK { column: "k".to_owned() }];
    for partitioner in PARTITIONERS {
        partitioner.set(&mut spec);
        let done = anonymize(&table, &spec, &requirements, &Silent).unwrap();
        let of_third =
            oracle::classes(&table, &done.release).into_iter().find(|class| class.rows.contains(&2)).unwrap();
        assert!(of_third.rows.len() >= 3, "{}", partitioner.name);
        verify_release(done.release, &table, &requirements, SuppressionLimit::NOBODY).unwrap();
    }
}

#[test]
fn the_register_s_microdata_fall_into_the_two_groups_of_the_paper() {
    let (loaded, spec) = load(
        &data::golden("register"),
        r#"
k = 3
algorithm = "mondrian"
[tables.microdata]
file = "microdata.csv"
[tables.microdata.columns]
id = "identifier"
qi1 = "quasi"
qi2 = "quasi"
sa = "sensitive"
"#,
    );
    let done = run(&loaded.table, &spec);
    let found = classes(&loaded.table, &done, &["A", "B", "C", "D", "E", "F", "G"]);
    assert_eq!(found, sets(&[&["A", "B", "C", "D"], &["E", "F", "G"]]));
    assert_eq!(done.loss.dm, 25.0);
    assert_eq!(perimeters(&loaded.table, &done), 62);
}

/// NCP as the paper counts it: the perimeter of each row's box, not normalized.
fn perimeters(table: &Table, done: &Anonymized) -> i64 {
    let width = |cell: &Option<String>| {
        let cell = cell.as_deref().expect("there is no null");
        let number = |text: &str| text.parse::<i64>().expect("bounds are whole numbers");
        let range = cell.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        range.and_then(|range| range.split_once(',')).map_or(0, |(low, high)| number(high) - number(low))
    };
    let of_class = |class: &oracle::Class| 2 * class.cells.iter().map(width).sum::<i64>() * class.rows.len() as i64;
    oracle::classes(table, &done.release).iter().map(of_class).sum()
}

#[test]
fn two_releases_of_accidents_keep_two_apart_and_together_single_out() {
    let folder = data::golden("accidents");
    let (insurer, hr) = (data::read(&folder.join("release_insurer.csv")), data::read(&folder.join("release_hr.csv")));
    assert_eq!(k_on(&insurer, &["age", "vehicle", "postcode"]), 2);
    assert_eq!(k_on(&hr, &["occupation", "age", "postcode"]), 2);
    let together = joined(&[(&insurer, "occupation"), (&insurer, "age"), (&hr, "vehicle"), (&hr, "postcode")]);
    assert_eq!(k_on(&together, &["occupation", "age", "vehicle", "postcode"]), 1);
}

#[test]
fn the_butterfly_of_accidents_satisfies_both_audiences_in_one_table() {
    let folder = data::golden("accidents");
    let (insurer, hr) = (data::read(&folder.join("release_insurer.csv")), data::read(&folder.join("release_hr.csv")));
    let butterfly = joined(&[(&hr, "occupation"), (&insurer, "age"), (&insurer, "vehicle"), (&insurer, "postcode")]);
    assert_eq!(k_on(&butterfly, &["age", "vehicle", "postcode"]), 2);
    assert_eq!(k_on(&butterfly, &["occupation", "age", "postcode"]), 2);
    assert_eq!(k_on(&butterfly, &["occupation", "age", "vehicle", "postcode"]), 1);
}

#[test]
fn accidents_are_two_anonymous_on_the_union_too_if_asked() {
    let (loaded, spec) = load(
        &data::golden("accidents"),
        r#"
k = 2
[tables.accident]
file = "accident.csv"
[tables.accident.columns]
occupation = { role = "quasi", hierarchy = "occupation.dgh.csv" }
age = "quasi"
vehicle = { role = "quasi", hierarchy = "vehicle.dgh.csv" }
postcode = "quasi"
faulty = "sensitive"
"#,
    );
    let done = run(&loaded.table, &spec);
    let released = &done.release.tables[0].rows;
    for class in oracle::classes(&loaded.table, &done.release) {
        assert_eq!(oracle::judge(&loaded.table, &Requirement::K(2), &class.rows, released), Verdict::Holds);
        assert_eq!((class.cells[1].as_deref(), class.cells[3].as_deref()), (Some("30"), Some("31043")));
    }
}

#[test]
fn three_pairs_are_two_anonymous_on_either_side_but_not_together() {
    let table = data::read(&data::golden("accidents").join("three_pairs.csv"));
    assert_eq!(k_on(&table, &["a", "b"]), 2);
    assert_eq!(k_on(&table, &["b", "c"]), 2);
    assert_eq!(k_on(&table, &["a", "b", "c"]), 1);
}

#[test]
fn students_are_read_and_their_hierarchies_hold_every_value() {
    let folder = data::golden("students");
    let table = |name: &str| data::read(&folder.join(name));
    assert_eq!((table("student.csv").n_rows, table("takes.csv").n_rows, table("books.csv").n_rows), (4, 11, 11));
    for (file, column, tree) in [("takes.csv", "course", "course.dgh.csv"), ("books.csv", "book", "book.dgh.csv")] {
        let hierarchy = data::hierarchy(&folder.join(tree));
        let table = table(file);
        assert!(table.column(column).unwrap().texts.iter().all(|text| hierarchy.leaf(text).is_some()), "{file}");
        assert_eq!(hierarchy.height(), 2, "{tree}");
    }
}
