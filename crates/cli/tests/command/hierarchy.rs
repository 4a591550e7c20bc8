//! `kohort hierarchy`.

use insta::assert_snapshot;

use crate::runner::{Folder, PATIENTS};

const ZIP: &str = "88512;885**;88***;*\n88540;885**;88***;*\n89321;893**;89***;*\n";

#[test]
fn a_hierarchy_is_checked_and_shown() {
    let folder = Folder::with(&[("zip.csv", ZIP), ("edges.csv", "a,x\nb,x\nx,all\n")]);
    assert_snapshot!("hierarchy_check", folder.run(&["hierarchy", "check", "zip.csv"]));
    assert_snapshot!("hierarchy_show", folder.run(&["hierarchy", "show", "zip.csv"]));
    assert_snapshot!("hierarchy_show_depth", folder.run(&["hierarchy", "show", "zip.csv", "--depth", "1"]));
    assert_snapshot!("hierarchy_show_edges", folder.run(&["hierarchy", "show", "--edges", "edges.csv"]));
}

#[test]
fn every_problem_of_a_hierarchy_is_reported() {
    let folder =
        Folder::with(&[("zip.csv", "a;b;*\nb;c;*\n;x\nlonely\na;c;*\n\"open;*\n"), ("cycle.csv", "a;b\nb;a\n")]);
    assert_snapshot!("hierarchy_problems", folder.run(&["hierarchy", "check", "zip.csv"]));
    assert_snapshot!("hierarchy_cycle", folder.run(&["hierarchy", "check", "cycle.csv", "--edges"]));
    assert_snapshot!("hierarchy_missing", folder.run(&["hierarchy", "check", "nowhere.csv"]));
}

#[test]
fn a_hierarchy_is_made_by_rule() {
    let folder = Folder::with(&[("patients.csv", PATIENTS)]);
    let make = |column: &str, rule: &str| {
        folder.run(&["hierarchy", "make", "patients.csv", "--column", column, "--rule", rule])
    };
    assert_snapshot!("hierarchy_make_steps", make("age", "steps:5,10,50"));
    assert_snapshot!("hierarchy_make_mask", make("zip", "mask:right"));
    assert_snapshot!("hierarchy_make_flat", make("sex", "flat"));
    assert_snapshot!("hierarchy_make_wrong_steps", make("age", "steps:5,12"));
    assert_snapshot!("hierarchy_make_wrong_type", make("sex", "steps:5"));
    assert_snapshot!("hierarchy_make_no_rule", make("sex", "sex.csv"));
    assert_snapshot!("hierarchy_make_half_a_rule", make("zip", "mask"));
    assert_snapshot!("hierarchy_make_no_column", make("height", "flat"));
}

#[test]
fn a_hierarchy_that_was_made_can_be_read() {
    let folder = Folder::with(&[("patients.csv", PATIENTS)]);
    let made = folder.run(&["hierarchy", "make", "patients.csv", "--column", "age", "--rule", "steps:5,10"]);
    folder.write("age.csv", made.stdout.as_bytes());
    assert_eq!(folder.run(&["hierarchy", "check", "age.csv"]).code, 0);
}
