//! `kohort anonymize` with valid input.

use insta::assert_snapshot;

use crate::runner::{Folder, PATIENTS, SPEC};

const FLAGS: &[&str] = &[
    "anonymize",
    "patients.csv",
    "--k",
    "2",
    "--quasi",
    "age,zip,sex",
    "--hierarchy",
    "sex=flat",
    "--hierarchy",
    "zip=mask:right",
    "--identifier",
    "name",
    "--plain",
    "ward",
    "--sensitive",
    "disease:l=2",
];

fn clinic() -> Folder {
    Folder::with(&[("patients.csv", PATIENTS), ("release.toml", SPEC)])
}

fn with<'a>(arguments: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [arguments, more].concat()
}

#[test]
fn a_spec_becomes_a_release() {
    let folder = clinic();
    assert_snapshot!("anonymize", folder.run(&["anonymize", "release.toml", "-o", "out"]));
    assert_snapshot!("anonymize_table", folder.read("out/patients.csv"));
    assert_snapshot!("anonymize_manifest", folder.read("out/manifest.json"));
}

#[test]
fn flags_mean_what_the_spec_means() {
    let folder = clinic();
    assert_eq!(folder.run(&["anonymize", "release.toml", "-o", "by-spec"]).code, 0);
    // The codes in the file look like numbers, but the spec calls them text. Flags can't say that.
    let ran = folder.run(&with(FLAGS, &["-o", "by-flags"]));
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(folder.read("by-spec/patients.csv"), folder.read("by-flags/patients.csv"));
}

#[test]
fn datafly_takes_persons_block_by_block() {
    let spec = "k = 2\nalgorithm = \"datafly\"\n[datafly]\nblock = 2\n[tables.t]\nfile = \"t.csv\"\nperson = \"id\"\n\
                columns = { id = \"identifier\", age = \"quasi\", ward = \"plain\" }\n";
    // Persons are ordered by number, so 10 comes after 9. Neighbours in this order differ in age.
    let rows = ["7,30,a", "8,60,b", "9,31,c", "10,61,d"];
    let file = |rows: &[&str]| format!("id,age,ward\n{}\n", rows.join("\n"));
    let shuffled = [rows[2], rows[0], rows[3], rows[1]];
    for rows in [rows, shuffled] {
        let folder = Folder::with(&[("release.toml", spec), ("t.csv", &file(&rows))]);
        let ran = folder.run(&["anonymize", "release.toml", "-o", "out"]);
        assert_eq!(ran.code, 0, "{ran}");
        let expected = "age,ward\n\"[30,60]\",a\n\"[30,60]\",b\n\"[31,61]\",c\n\"[31,61]\",d\n";
        assert_eq!(folder.read("out/t.csv"), expected);
    }
    let whole = spec.replace("[datafly]\nblock = 2\n", "");
    let folder = Folder::with(&[("release.toml", &whole), ("t.csv", &file(&rows))]);
    assert_eq!(folder.run(&["anonymize", "release.toml", "-o", "out"]).code, 0);
    let expected = "age,ward\n\"[30,31]\",a\n\"[30,31]\",c\n\"[60,61]\",b\n\"[60,61]\",d\n";
    assert_eq!(folder.read("out/t.csv"), expected);
}

#[test]
fn a_full_domain_search_makes_least_what_it_is_told() {
    let spec = "k = 2\nalgorithm = \"full-domain\"\n[full_domain]\nobjective = \"lm\"\n[tables.t]\nfile = \"t.csv\"\n\
                columns = { ward = \"quasi\", sex = \"quasi\" }\n";
    let rows = "ward,sex\nnorth,f\nnorth,m\nsouth,f\nsouth,f\nsouth,f\nsouth,m\nsouth,m\nsouth,m\n";
    // Showing either column alone has the same LM, but by sex the classes have equal sizes: 16 + 16 is less than 4 + 36.
    let by_ward = format!("ward,sex\n{}{}", "north,*\n".repeat(2), "south,*\n".repeat(6));
    let by_sex = format!("ward,sex\n{}{}", "*,f\n".repeat(4), "*,m\n".repeat(4));
    for (objective, expected) in [("lm", by_ward), ("dm", by_sex)] {
        let spec = spec.replace("\"lm\"", &format!("\"{objective}\""));
        let folder = Folder::with(&[("release.toml", &spec), ("t.csv", rows)]);
        let ran = folder.run(&["anonymize", "release.toml", "-o", "out"]);
        assert_eq!(ran.code, 0, "{ran}");
        assert_eq!(folder.read("out/t.csv"), expected);
    }
}

#[test]
fn one_thread_and_eight_write_the_same_bytes() {
    let folder = clinic();
    for threads in ["1", "8"] {
        let ran = folder.run(&["anonymize", "release.toml", "-o", threads, "--threads", threads]);
        assert_eq!(ran.code, 0, "{ran}");
    }
    for file in ["patients.csv", "manifest.json"] {
        assert_eq!(folder.read(&format!("1/{file}")), folder.read(&format!("8/{file}")));
    }
}

#[test]
fn a_dry_run_does_everything_but_write() {
    let folder = clinic();
    assert_snapshot!("anonymize_dry_run", folder.run_in_vain(&["anonymize", "release.toml", "--dry-run"]));
    assert_snapshot!(
        "anonymize_dry_run_json",
        folder.run_in_vain(&["anonymize", "release.toml", "--dry-run", "--json"])
    );
}

#[test]
fn programs_get_the_manifest_and_its_place() {
    let folder = clinic();
    let ran = folder.run(&["anonymize", "release.toml", "-o", "out", "--json"]);
    let printed: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let mut written: serde_json::Value = serde_json::from_str(&folder.read("out/manifest.json")).unwrap();
    written["release"] = "out".into();
    assert_eq!(printed, written);
    assert_eq!(ran.stderr, "");
}

#[test]
fn a_table_flows_from_stdin_to_stdout() {
    let folder = clinic();
    let arguments: Vec<&str> = FLAGS.iter().map(|&word| if word == "patients.csv" { "-" } else { word }).collect();
    let ran = folder.pipe(PATIENTS.as_bytes(), &with(&arguments, &["-o", "-"]));
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.starts_with("age,zip,sex,ward,disease\n"), "{ran}");
    assert_eq!(folder.run(&["anonymize", "release.toml", "-o", "out"]).code, 0);
    assert_eq!(ran.stdout, folder.read("out/patients.csv"));
}

#[test]
fn a_release_takes_the_format_asked_for() {
    let folder = clinic();
    for format in ["parquet", "arrow", "csv.gz", "csv.zst"] {
        let ran = folder.run(&["anonymize", "release.toml", "-o", format, "--format", format]);
        assert_eq!(ran.code, 0, "{ran}");
        let file = format!("{format}/patients.{format}");
        let ran = folder.run(&["check", &file, "--quasi", "age,zip,sex", "--sensitive", "disease:l=2", "--k", "2"]);
        assert_eq!(ran.code, 0, "{ran}");
        assert_eq!(folder.run(&["verify", format]).code, 0);
    }
}

#[test]
fn a_release_replaces_another_only_when_told_to() {
    let folder = clinic();
    let again = ["anonymize", "release.toml", "-o", "out"];
    assert_eq!(folder.run(&again).code, 0);
    assert_snapshot!("anonymize_not_empty", folder.run_in_vain(&again));
    assert_eq!(folder.run(&with(&again, &["--force"])).code, 0);
    folder.write("precious/thesis.tex", b"x");
    let ran = folder.run_in_vain(&["anonymize", "release.toml", "-o", "precious", "--force"]);
    assert_snapshot!("anonymize_not_a_release", ran);
}

#[test]
fn three_hundred_columns_are_fine() {
    let names: Vec<String> = (0..300).map(|column| format!("c{column}")).collect();
    let row = vec!["1"; 300].join(",");
    let text = format!("{}\n{row}\n{row}\n", names.join(","));
    let folder = Folder::with(&[("wide.csv", &text)]);
    let plain = names[1..].join(",");
    let ran = folder.run(&["anonymize", "wide.csv", "--k", "2", "--quasi", "c0", "--plain", &plain, "-o", "out"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(folder.read("out/wide.csv"), text);
}

#[test]
fn persons_with_several_rows_count_once() {
    let visits = "id,age,cost\n1,30,5\n1,31,6\n2,30,7\n3,31,5\n4,95,9\n4,96,9\n5,30,1\n6,31,2\n";
    let spec = "\
k = 2
[tables.visits]
file = \"visits.csv\"
person = \"id\"
columns = { age = { role = \"quasi\", hierarchy = { steps = [5, 10] } }, cost = \"sensitive\" }
";
    let folder = Folder::with(&[("visits.csv", visits), ("release.toml", spec)]);
    let ran = folder.run(&["anonymize", "release.toml", "-o", "out"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_snapshot!("anonymize_persons", ran);
    assert_snapshot!("anonymize_persons_table", folder.read("out/visits.csv"));
    assert_snapshot!("anonymize_persons_verified", folder.run(&["verify", "out"]));
    assert_snapshot!("anonymize_persons_verified_against", folder.run(&["verify", "out", "--against", "release.toml"]));
}

#[test]
fn the_clinic_of_the_readme_is_released() {
    let folder = Folder::new();
    let spec = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/clinic/release.toml");
    let ran = folder.run(&["anonymize", spec, "-o", "clinic-release", "--json"]);
    assert_eq!(ran.code, 0, "{ran}");
    let manifest: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(manifest["achieved"]["k"].as_u64() >= manifest["requirement"]["k"].as_u64());
    for arguments in [&["verify", "clinic-release"][..], &["verify", "clinic-release", "--against", spec]] {
        let ran = folder.run(arguments);
        assert_eq!(ran.code, 0, "{ran}");
    }
}
