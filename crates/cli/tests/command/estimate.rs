//! Estimates from releases of one table and of several, and conditions that are refused.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::runner::{Folder, PATIENTS, Ran, SPEC};

const ZIPS: &str = "\
88512;8851*;885**;88***;8****;*
88514;8851*;885**;88***;8****;*
88540;8854*;885**;88***;8****;*
88541;8854*;885**;88***;8****;*
89321;8932*;893**;89***;8****;*
89344;8934*;893**;89***;8****;*
89345;8934*;893**;89***;8****;*
89346;8934*;893**;89***;8****;*
";

fn clinic() -> Folder {
    let folder = Folder::with(&[("release.toml", SPEC), ("patients.csv", PATIENTS), ("zip.csv", ZIPS)]);
    let ran = folder.run(&["anonymize", "release.toml", "-o", "out"]);
    assert_eq!(ran.code, 0, "{ran}");
    folder
}

fn ask(folder: &Folder, query: &str, more: &[&str]) -> Ran {
    folder.run_in_vain(&[&["estimate", "out", query], more].concat())
}

fn count(folder: &Folder, query: &str, more: &[&str]) -> f64 {
    let ran = ask(folder, query, &[more, &["--json"]].concat());
    assert_eq!(ran.code, 0, "{ran}");
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    (found["count"].as_f64().unwrap() * 1e6).round() / 1e6
}

#[test]
fn parts_add_up_to_the_whole() {
    let folder = clinic();
    assert_eq!(count(&folder, "age > 0", &[]), 8.0);
    let below = count(&folder, "age < 37", &[]);
    let at = count(&folder, "age = 37", &[]);
    let above = count(&folder, "age > 37", &[]);
    assert!((below + at + above - 8.0).abs() < 1e-5);
    assert_eq!(count(&folder, "age in (36, 37, 37) and age <= 36", &[]), count(&folder, "age = 36", &[]));
    assert_eq!(count(&folder, "age > 40 and age < 40", &[]), 0.0);
    let zip = ["--hierarchy", "zip=zip.csv"];
    let low = count(&folder, "zip in ('885**')", &zip);
    assert!((low + count(&folder, "zip = '893**'", &zip) - 8.0).abs() < 1e-5);
    let sexes = count(&folder, "sex = f", &[]) + count(&folder, "sex = m", &[]);
    assert!((sexes - 8.0).abs() < 1e-5);
}

#[test]
fn programs_get_the_count_and_every_value() {
    let ran = ask(&clinic(), "age >= 60", &["--json"]);
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&found["count"], &found["of"]), (&json!(4.0), &json!(8.0)));
    let values: Vec<&str> =
        found["sensitive"]["disease"].as_array().unwrap().iter().map(|v| v["value"].as_str().unwrap()).collect();
    assert_eq!(values, ["asthma", "flu", "ulcer"]);
    assert_snapshot!("estimate", ask(&clinic(), "age >= 60", &[]));
}

#[test]
fn conditions_that_can_t_be_asked_are_refused() {
    let folder = clinic();
    let wrong = |query: &str, more: &[&str]| {
        let ran = ask(&folder, query, more);
        assert_eq!(ran.code, 2, "{ran}");
        ran
    };
    assert_snapshot!("estimate_misread", wrong("age between 20", &[]));
    assert_snapshot!("estimate_unknown_column", wrong("agee = 3 and disease = 'flu' and ward = 'north'", &[]));
    assert_snapshot!("estimate_not_a_code", wrong("zip = 'south'", &[]));
    assert_snapshot!("estimate_other_hierarchy", wrong("zip = '11111'", &["--hierarchy", "zip=zip.csv"]));
    assert_snapshot!("estimate_not_of_type", wrong("age < old", &[]));
    assert_snapshot!("estimate_text_by_order", wrong("sex < f", &[]));
    assert_snapshot!("estimate_nowhere", folder.run_in_vain(&["estimate", "nowhere", "age = 3"]));
    assert_snapshot!("estimate_no_such_hierarchy", wrong("age = 3", &["--hierarchy", "plz=zip.csv"]));
}

#[test]
fn persons_of_several_tables_are_estimated() {
    let spec = "\
k = 2
[tables.person]
file = \"person.csv\"
person = \"id\"
[tables.person.columns]
age = \"quasi\"
[tables.visit]
file = \"visit.csv\"
parent = { table = \"person\", foreign_key = \"id\" }
[tables.visit.columns]
code = { role = \"quasi\", hierarchy = \"flat\" }
";
    let folder = Folder::with(&[
        ("release.toml", spec),
        ("person.csv", "id,age\n1,20\n2,22\n3,40\n4,41\n"),
        ("visit.csv", "id,code\n1,a\n2,a\n3,b\n4,b\n"),
    ]);
    let ran = folder.run(&["anonymize", "release.toml", "-o", "out"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(count(&folder, "age < 30", &[]), 2.0);
    assert_snapshot!("estimate_child_column", ask(&folder, "code = 'a'", &[]));
}
