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

#[test]
fn a_hierarchy_of_a_classification_can_be_used() {
    let folder = Folder::with(&[("a.csv", "icd,land\nE11.9,DE\nE10,FR\nC50.1,DE\nE11.9,\n")]);
    let icd = folder.run(&["hierarchy", "make", "a.csv", "--column", "icd", "--kind", "icd10"]);
    assert_eq!(
        icd.stdout,
        "C50.1;C50.-;C50-C50;II C00-D48;*\nE10;E10.-;E10-E14;IV E00-E90;*\nE11.9;E11.-;E10-E14;IV E00-E90;*\n",
        "{icd}"
    );
    assert!(icd.stderr.contains("note: the hierarchy lists the codes of the table"), "{icd}");
    let land = folder.run(&["hierarchy", "make", "a.csv", "--column", "land", "--kind", "countries"]);
    assert_eq!((land.code, land.stdout.lines().count(), land.stderr.as_str()), (0, 249, ""), "{land}");
    folder.write("icd.csv", icd.stdout.as_bytes());
    assert_eq!(folder.run(&["hierarchy", "check", "icd.csv"]).code, 0);
    let wrong = folder.run(&["hierarchy", "make", "a.csv", "--column", "land", "--kind", "isco"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("no codes of isco, in rows 1"), "{wrong}");
    assert!(!wrong.stderr.contains("FR"), "{wrong}");
    let both = folder.run(&["hierarchy", "make", "a.csv", "--column", "land", "--kind", "nuts", "--rule", "flat"]);
    assert_eq!(both.code, 2, "{both}");
}

#[test]
fn values_that_a_hierarchy_lacks_are_listed_for_their_owner_alone() {
    let spec = "k = 2\n[tables.a]\nfile = \"a.csv\"\n[tables.a.columns]\nzip = { role = \"quasi\", type = \"text\", hierarchy = \"zip.csv\" }\n";
    let table = "zip\n88512\n11111\n\"a, \"\"b\"\"\"\n11111\n";
    let folder = Folder::with(&[("a.csv", table), ("zip.csv", ZIP), ("release.toml", spec)]);
    let ran = folder.run_in_vain(&["anonymize", "release.toml", "-o", "out"]);
    assert!(ran.code == 2 && !ran.stderr.contains("11111"), "{ran}");
    let ran = folder.run(&["anonymize", "release.toml", "-o", "out", "--missing", "missing.csv"]);
    assert!(ran.code == 2 && !ran.stderr.contains("11111"), "{ran}");
    assert!(ran.stderr.contains("note: 2 values missing from hierarchies are listed in missing.csv"), "{ran}");
    let expected = "table,column,value,rows\n\"a\",\"zip\",\"11111\",2\n\"a\",\"zip\",\"a, \"\"b\"\"\",1\n";
    assert_eq!(folder.read("missing.csv"), expected);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(folder.path("missing.csv")).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
    }
}
