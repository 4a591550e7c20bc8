//! Audits of several releases: the two releases of the paper fail, and one release for both audiences passes.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::audiences::{JOBS, VEHICLES, released};
use crate::runner::{Folder, Ran};

const INSURER: &str = include_str!("../../../testkit/golden/accidents/release_insurer.csv");
const HR: &str = include_str!("../../../testkit/golden/accidents/release_hr.csv");

const AUDIENCES: &[&str] = &["--audience", "insurer=age,vehicle,postcode", "--audience", "hr=occupation,age,postcode"];
const HIERARCHIES: &[&str] = &["--hierarchy", "vehicle=vehicle.csv", "--hierarchy", "occupation=occupation.csv"];

fn releases() -> Folder {
    Folder::with(&[("insurer.csv", INSURER), ("hr.csv", HR), ("vehicle.csv", VEHICLES), ("occupation.csv", JOBS)])
}

/// Audits, checks that nothing is written and that no message shows a cell.
fn audit(folder: &Folder, arguments: &[&[&str]]) -> Ran {
    let ran = folder.run_in_vain(&[&["audit"], arguments.concat().as_slice()].concat());
    for cell in ["Dentist", "Medical", "Truck", "31043", "Yes"] {
        assert!(!ran.stderr.contains(cell) && !ran.stdout.contains(cell), "a cell is shown: {ran}");
    }
    ran
}

#[test]
fn the_two_releases_of_the_paper_fail_with_and_without_hierarchies() {
    let folder = releases();
    let files = &["insurer.csv", "hr.csv", "--k", "2"];
    let without = audit(&folder, &[files, AUDIENCES]);
    assert_eq!(without.code, 1);
    assert_snapshot!("audit", without);
    let with = audit(&folder, &[files, AUDIENCES, HIERARCHIES]);
    assert_eq!((with.code, with.stdout), (1, without.stdout));
}

#[test]
fn our_one_release_passes() {
    let folder = released();
    let once = audit(&folder, &[&["out/accident.csv", "--k", "2"], AUDIENCES]);
    assert_eq!(once.code, 0, "{once}");
    assert_snapshot!("audit_one", once);
    let as_folder = audit(&folder, &[&["out", "--k", "2"], AUDIENCES]);
    assert_eq!(as_folder.code, 0, "{as_folder}");
}

#[test]
fn without_k_it_only_reports() {
    let ran = audit(&releases(), &[&["insurer.csv", "hr.csv"], AUDIENCES]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.contains("unique persons"), "{ran}");
}

#[test]
fn programs_read_the_same() {
    let ran = audit(&releases(), &[&["insurer.csv", "hr.csv", "--k", "2", "--json"], AUDIENCES, HIERARCHIES]);
    assert_eq!(ran.code, 1);
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&found["met"], &found["k"], &found["persons"]), (&json!(false), &json!(2), &json!(4)));
    assert_eq!(found["releases"][1], json!({ "file": "hr.csv", "rows": 4 }));
    let insurer = &found["audiences"]["insurer"];
    assert_eq!(insurer["columns"], json!(["age", "vehicle", "postcode"]));
    assert_eq!(insurer["alone"][0]["smallest"], 2);
    let together = json!({
        "smallest": 1, "below_k": 4, "unique_persons": 4, "classes": 4,
        "smallest_classes": [{ "persons": 1, "classes": 4 }],
    });
    assert_eq!(insurer["together"], together);
    assert_eq!(found["union"]["together"], together);
}

#[test]
fn persons_are_matched_by_their_names() {
    let folder = Folder::with(&[
        ("a.csv", "id,age\n1,\"[20,29]\"\n2,\"[20,29]\"\n3,\"[30,39]\"\n4,\"[30,39]\"\n"),
        ("b.csv", "id,age\n5,\"[25,34]\"\n3,\"[25,34]\"\n2,\"[20,24]\"\n1,\"[20,24]\"\n"),
    ]);
    let by_person = audit(&folder, &[&["a.csv", "b.csv", "--audience", "x=age", "--person", "id", "--k", "2"]]);
    assert_eq!(by_person.code, 1);
    assert_snapshot!("audit_persons", by_person);
    let by_order = audit(&folder, &[&["a.csv", "b.csv", "--audience", "x=age", "--k", "2"]]);
    assert_eq!(by_order.code, 2);
    assert_snapshot!("audit_contradiction", by_order);
}

#[test]
fn a_release_that_fails_by_itself_fails_beside_another_one() {
    let folder = Folder::with(&[("ranges.csv", "age\n\"[20,29]\"\n\"[20,30]\"\n"), ("values.csv", "age\n25\n25\n")]);
    let ran = audit(&folder, &[&["ranges.csv", "values.csv", "--audience", "x=age", "--k", "2"]]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.starts_with("error: audience 'x': 2 persons hide among fewer than 2 in ranges.csv by itself"),
        "{ran}"
    );
}

#[test]
fn bounds_and_other_formats_are_understood() {
    let spec = "k = 2\norder = \"input\"\n[tables.ages]\nfile = \"ages.csv\"\ncolumns = { age = \"quasi\", job = \"plain\" }\n";
    let folder = Folder::with(&[("spec.toml", spec), ("ages.csv", "age,job\n20,a\n25,a\n40,b\n45,b\n")]);
    for (flags, file) in [
        (&["-o", "labels"][..], "labels/ages.csv"),
        (&["-o", "bounds", "--cells", "bounds"], "bounds/ages.csv"),
        (&["-o", "parquet", "--cells", "bounds", "--format", "parquet"], "parquet/ages.parquet"),
    ] {
        let ran = folder.run(&[&["anonymize", "spec.toml"], flags].concat());
        assert_eq!(ran.code, 0, "{ran}");
        // A range and a value in it have only the value in common.
        let ran = audit(&folder, &[&[file, "ages.csv", "--audience", "x=age", "--json"]]);
        assert_eq!(ran.code, 0, "{ran}");
        let found: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(found["audiences"]["x"]["alone"][0]["smallest"], 2, "{file}");
        assert_eq!(found["audiences"]["x"]["together"]["smallest"], 1, "{file}");
    }
    let same = ["labels/ages.csv", "bounds/ages.csv", "parquet/ages.parquet"];
    let ran = audit(&folder, &[&same, &["--audience", "x=age", "--k", "2"]]);
    assert_eq!(ran.code, 0, "{ran}");
}

#[test]
fn releases_that_can_t_be_audited_are_refused() {
    let folder = releases();
    folder.write("short.csv", b"age,vehicle,postcode\n30,Truck,31043\n");
    folder.write("twice.csv", b"id,age\n1,30\n1,31\n");
    folder.write("nobody.csv", b"id,age\n1,30\n,31\n");
    let refused = |arguments: &[&[&str]]| {
        let ran = audit(&folder, arguments);
        assert_eq!(ran.code, 2, "{ran}");
        assert_eq!(ran.stdout, "");
        ran
    };
    let both = &["insurer.csv", "hr.csv"][..];
    let mut all = String::new();
    for arguments in [
        &[&["insurer.csv", "short.csv"], AUDIENCES][..],
        &[both, &["--audience", "x=age,height"]],
        &[both, &["--audience", "x=age", "--person", "id"]],
        &[&["twice.csv", "nobody.csv", "--audience", "x=age", "--person", "id"]],
        &[both, AUDIENCES, &["--hierarchy", "vehicle=flat"]],
        &[both, AUDIENCES, &["--hierarchy", "vehicle=nowhere.csv"]],
        &[both, AUDIENCES, &["--hierarchy", "height=vehicle.csv"]],
        &[both, AUDIENCES, &["--hierarchy", "vehicle"]],
        &[both, AUDIENCES, &["--k", "0"]],
        &[both, &["--audience", "x", "--audience", "y=age,", "--audience", "z=age", "--audience", "z=postcode"]],
        &[&["insurer.csv", "nowhere.csv"], AUDIENCES],
    ] {
        all += &format!("{}\n", arguments.concat().join(" "));
        all += &refused(arguments).stderr;
    }
    assert_snapshot!("audit_refused", all);
    assert_eq!(audit(&folder, &[both]).code, 2);
    assert_eq!(audit(&folder, &[AUDIENCES]).code, 2);
}

#[test]
fn rows_that_a_manifest_calls_sorted_are_not_matched_by_their_order() {
    let spec = |order: &str| {
        format!(
            "k = 2\norder = \"{order}\"\n[tables.ages]\nfile = \"ages.csv\"\ncolumns = {{ id = \"identifier\", age = \"quasi\" }}\n"
        )
    };
    let ages = "id,age\n1,20\n2,45\n3,25\n4,40\n";
    let folder = Folder::with(&[("sorted.toml", &spec("sorted")), ("input.toml", &spec("input")), ("ages.csv", ages)]);
    for order in ["sorted", "input"] {
        let ran = folder.run(&["anonymize", &format!("{order}.toml"), "-o", order]);
        assert_eq!(ran.code, 0, "{ran}");
    }
    let mut refused = String::new();
    for releases in [["sorted", "input"], ["sorted/ages.csv", "input/ages.csv"]] {
        let ran = audit(&folder, &[&releases, &["--audience", "x=age", "--k", "2"]]);
        assert_eq!(ran.code, 2, "{ran}");
        refused += &ran.stderr;
    }
    assert_snapshot!("audit_sorted", refused);
    let ran = audit(&folder, &[&["input", "ages.csv", "--audience", "x=age", "--k", "2"]]);
    assert_eq!(ran.code, 1, "a release in its input's order is matched with that input: {ran}");
    let ran = audit(&folder, &[&["sorted", "--audience", "x=age", "--k", "2"]]);
    assert_eq!(ran.code, 0, "one release by itself needs no matching: {ran}");
}

#[test]
fn a_release_folder_that_was_changed_is_refused() {
    let folder = released();
    let changed = std::fs::read_to_string(folder.path("out/accident.csv")).unwrap() + "\n";
    folder.write("out/accident.csv", changed.as_bytes());
    let ran = folder.run(&[&["audit", "out", "--k", "2"], AUDIENCES].concat());
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.contains("its digest is not the one in manifest.json"), "{ran}");
}
