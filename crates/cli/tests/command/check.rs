//! `kohort check`.

use insta::assert_snapshot;

use crate::runner::{Folder, PATIENTS};

fn clinic() -> Folder {
    Folder::with(&[("patients.csv", PATIENTS)])
}

#[test]
fn a_table_is_counted() {
    let ran = clinic().run(&["check", "patients.csv", "--quasi", "sex,ward", "--sensitive", "disease,name"]);
    assert_snapshot!("check", ran);
}

#[test]
fn persons_with_several_rows_count_once() {
    let folder = Folder::with(&[("visits.csv", "id,sex\n1,f\n1,f\n2,f\n3,m\n")]);
    let ran = folder.run(&["check", "visits.csv", "--quasi", "sex", "--person", "id"]);
    assert_snapshot!("check_persons", ran);
}

#[test]
fn a_requirement_that_is_met_ends_in_exit_code_0() {
    let arguments = ["check", "patients.csv", "--quasi", "sex", "--sensitive", "disease:l=2", "--k", "4"];
    let ran = clinic().run(&arguments);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
}

#[test]
fn a_requirement_that_is_not_met_ends_in_exit_code_1() {
    let arguments = ["check", "patients.csv", "--quasi", "age", "--sensitive", "disease:l=2,t=0.1", "--k", "2"];
    assert_snapshot!("check_not_met", clinic().run(&arguments));
}

#[test]
fn programs_get_one_object() {
    let mut arguments =
        vec!["check", "patients.csv", "--quasi", "sex", "--sensitive", "disease:t=0.2,distance=ordered"];
    arguments.extend(["--k", "5", "--json"]);
    assert_snapshot!("check_json", clinic().run(&arguments));
}

#[test]
fn columns_that_are_not_there_are_named() {
    let ran = clinic().run(&["check", "patients.csv", "--quasi", "agee,zip,sexx"]);
    assert_snapshot!("check_unknown_columns", ran);
}

#[test]
fn a_table_comes_from_stdin() {
    let ran = clinic().pipe(PATIENTS.as_bytes(), &["check", "-", "--quasi", "sex"]);
    assert_eq!(ran.code, 0);
    assert!(ran.stdout.starts_with("rows             8\n"), "{}", ran.stdout);
}

#[test]
fn errors_are_json_too() {
    let ran = clinic().run(&["check", "nowhere.csv", "--quasi", "sex", "--json"]);
    assert_snapshot!("check_json_error", ran);
}

#[test]
fn a_person_who_is_null_is_an_error() {
    let folder = Folder::with(&[("visits.csv", "id,sex\n1,f\n,f\n")]);
    assert_snapshot!("check_null_person", folder.run(&["check", "visits.csv", "--quasi", "sex", "--person", "id"]));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    use std::process::{Command, Stdio};
    let folder = clinic();
    let mut child = Command::new(env!("CARGO_BIN_EXE_kohort"))
        .args(["check", "patients.csv", "--quasi", "sex"])
        .current_dir(folder.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_table_is_read_as_the_flags_say() {
    let folder = Folder::new();
    let table = "stra\u{df}e;gr\u{f6}\u{df}e;krank\nA;1,5;k.A.\nA;1,50;flu\nB;2,5;flu\nB;2,5;k.A.\n";
    let latin: Vec<u8> = table.chars().map(|letter| letter as u8).collect();
    folder.write("a.csv", &latin);
    let flags = ["--encoding", "windows-1252", "--separator", ";", "--null", "k.A.", "--decimal", ","];
    let check = [
        "check",
        "a.csv",
        "--quasi",
        "stra\u{df}e",
        "--sensitive",
        "gr\u{f6}\u{df}e:t=0.6,distance=ordered",
        "--k",
        "2",
        "--json",
    ];
    let without = folder.run_in_vain(&check);
    assert_ne!(without.code, 0, "{without}");
    let ran = folder.run_in_vain(&[&check[..], &flags].concat());
    assert_eq!(ran.code, 0, "{ran}");
    let found: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&found["k"], &found["classes"]), (&2.into(), &2.into()));
    let made = folder.run_in_vain(
        &[&["hierarchy", "make", "a.csv", "--column", "gr\u{f6}\u{df}e", "--rule", "steps:1"][..], &flags].concat(),
    );
    assert!(made.code == 0 && made.stdout.contains("2,5;\"[2;3)\";*"), "{made}");
}

#[test]
fn the_risk_comes_from_columns_sets_of_columns_rows_and_the_population() {
    let folder = clinic();
    let quasi = ["check", "patients.csv", "--quasi", "age,sex,ward"];
    let asked = ["--by-column", "--suda", "2", "--population", "80", "--records", "risks.csv"];
    let ran = folder.run(&[&quasi[..], &asked].concat());
    assert_snapshot!("check_risks", ran);
    // Every age is unique, so nothing else is minimal: (3 - 1) (3 - 2) each.
    let rows: String = (1..=8).map(|row| format!("{row},1,1,2\n")).collect();
    assert_eq!(folder.read("risks.csv"), format!("row,persons,risk,suda\n{rows}"));
    assert_eq!(folder.run(&["check", "patients.csv", "--quasi", "sex,ward", "--records", "risks.csv"]).code, 0);
    let rows: String = (1..=8).map(|row| format!("{row},2,0.5\n")).collect();
    assert_eq!(folder.read("risks.csv"), format!("row,persons,risk\n{rows}"));
    let json = folder.run(&[&quasi[..], &["--suda", "1", "--population", "8", "--json"]].concat());
    let found: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&found["suda"]["minimal_sets"][0], &found["population"]["alone"]["pitman"]), (&8.into(), &8.0.into()));
    assert_eq!(found["columns"][0]["column"], "age");
}

#[test]
fn risks_that_can_t_be_searched_are_refused() {
    let folder = clinic();
    let wrong = |more: &[&str]| {
        let ran = folder.run(&[&["check", "patients.csv"], more].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran}");
        ran.to_string()
    };
    let all = [
        wrong(&["--quasi", "age,sex", "--suda", "2", "--person", "name"]),
        wrong(&["--quasi", "age", "--suda", "2"]),
        wrong(&["--quasi", "age,sex", "--suda", "0"]),
        wrong(&["--quasi", "age,sex", "--population", "7"]),
    ];
    assert_snapshot!("check_risks_refused", all.join("\n"));
}
