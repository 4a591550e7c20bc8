//! `kohort apply`.

use crate::runner::{Folder, PATIENTS, SPEC};

const NEW: &str = "\
name,age,zip,sex,ward,disease
Ina,35,88513,f,north,flu
Jil,34,88512,f,south,ulcer
Kim,36,88541,m,south,asthma
Leo,38,88540,m,north,flu
Mia,90,89344,f,north,flu
";

fn released() -> Folder {
    let folder = Folder::with(&[("patients.csv", PATIENTS), ("release.toml", SPEC), ("new.csv", NEW)]);
    let ran = folder.run(&["anonymize", "release.toml", "-o", "out"]);
    assert_eq!(ran.code, 0, "{ran}");
    folder
}

const APPLY: [&str; 7] = ["apply", "out", "new.csv", "--identifier", "name", "-o", "new"];

#[test]
fn new_persons_get_old_classes_and_those_who_fit_none_are_counted() {
    let folder = released();
    let ran = folder.run(&APPLY);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stderr.contains("note: nobody checked whether a person is in the earlier release"), "{ran}");
    let old = folder.read("out/patients.csv");
    let old: Vec<&str> =
        old.lines().filter_map(|line| line.rsplit_once(',')?.0.rsplit_once(',')).map(|pair| pair.0).collect();
    let new = folder.read("new/patients.csv");
    for line in new.lines().skip(1) {
        let cells = line.rsplit_once(',').unwrap().0.rsplit_once(',').unwrap().0;
        assert!(old.contains(&cells), "{line}");
    }
    let manifest: serde_json::Value = serde_json::from_str(&folder.read("new/manifest.json")).unwrap();
    assert_eq!(manifest["algorithm"], "apply");
    assert_eq!(manifest["persons"]["in"], 5);
    assert_eq!(manifest["persons"]["suppressed"], 5 - (new.lines().count() - 1));
    let alone = folder.run_in_vain(&["verify", "new"]);
    assert!(alone.code == 0 && alone.stdout.contains("verified         in part"), "{alone}");
    let both = folder.run_in_vain(&["verify", "new", "--applied-from", "out"]);
    assert!(
        both.code == 0 && both.stdout.contains("verified         yes, from the released files, together with"),
        "{both}"
    );
    let other = folder.run_in_vain(&["verify", "out", "--applied-from", "new"]);
    assert!(other.code == 2 && other.stderr.contains("was not made by applying"), "{other}");
}

#[test]
fn an_old_release_that_is_damaged_missing_or_newer_is_refused_by_name() {
    let folder = released();
    let refused = |folder: &Folder, expected: &str, code: i32| {
        let ran = folder.run_in_vain(&APPLY);
        assert!(ran.code == code && ran.stderr.contains(expected), "{ran}");
    };
    let manifest = folder.read("out/manifest.json");
    let table = folder.read("out/patients.csv");
    folder.write("out/patients.csv", table.replace("flu", "gout").as_bytes());
    refused(&folder, "out: patients.csv: its digest is not the one in manifest.json", 1);
    folder.write("out/patients.csv", table.as_bytes());
    let newer = manifest.replacen('{', "{ \"kohort\": \"99.0.0\", \"unheard_of\": 1,", 1);
    let newer = newer.replacen(&format!("\"kohort\": \"{}\",", env!("CARGO_PKG_VERSION")), "", 1);
    folder.write("out/manifest.json", newer.as_bytes());
    refused(&folder, "written by kohort 99.0.0", 2);
    std::fs::remove_file(folder.path("out/manifest.json")).unwrap();
    refused(&folder, "out holds no manifest.json", 2);
}

#[test]
fn what_can_not_be_applied_is_said() {
    let folder = released();
    let without_name = ["apply", "out", "new.csv", "-o", "new"];
    let ran = folder.run_in_vain(&without_name);
    assert!(ran.code == 2 && ran.stderr.contains("name"), "{ran}");
    let few = folder.run_in_vain(&[&APPLY[..], &["--max-suppressed", "0"]].concat());
    assert_eq!(few.code, 1, "{few}");
    let share = folder.run_in_vain(&[&APPLY[..], &["--max-suppressed", "1.5"]].concat());
    assert_eq!(share.code, 2, "{share}");
    folder.write("new.csv", b"name,age,zip,sex,ward,disease\nZoe,99,10115,f,north,flu\n");
    let nobody = folder.run_in_vain(&APPLY);
    assert!(nobody.code == 1 && nobody.stderr.contains("none of the 1 new persons can be released"), "{nobody}");
    assert!(!nobody.stderr.contains("10115"), "{nobody}");
}
