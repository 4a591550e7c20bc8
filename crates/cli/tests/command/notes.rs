//! Nothing is done in silence: where a job differs from what its spec says, the output and the manifest say so.

use serde_json::Value;

use crate::runner::{Folder, PATIENTS, Ran, SPEC};

fn codes(folder: &Folder) -> Vec<String> {
    let manifest: Value = serde_json::from_str(&folder.read("out/manifest.json")).unwrap();
    let notes = manifest["notes"].as_array().cloned().unwrap_or_default();
    notes.iter().map(|note| note["code"].as_str().unwrap().to_owned()).collect()
}

fn released(files: &[(&str, &str)]) -> (Folder, Ran) {
    let folder = Folder::with(files);
    let ran = folder.run(&["anonymize", "release.toml", "-o", "out"]);
    assert_eq!(ran.code, 0, "{ran}");
    (folder, ran)
}

#[test]
fn a_job_that_does_what_it_is_asked_has_no_notes() {
    let (folder, ran) = released(&[("patients.csv", PATIENTS), ("release.toml", SPEC)]);
    assert_eq!(codes(&folder), [""; 0]);
    assert!(!ran.stderr.contains("note:"), "{ran}");
}

#[test]
fn settings_without_effect_are_named() {
    let spec = format!("seed = 7\n{SPEC}[mondrian]\ncuts = \"relaxed\"\n[clustering]\npairing = \"optimal\"\n");
    let (folder, ran) = released(&[("patients.csv", PATIENTS), ("release.toml", &spec)]);
    assert_eq!(codes(&folder), ["unused_setting"; 3]);
    let note = "note: the setting [mondrian] has no effect here: it is for algorithm = \"mondrian\"\n";
    assert!(ran.stderr.contains(note), "{ran}");
    let ran = folder.run(&["anonymize", "release.toml", "--dry-run", "--json"]);
    assert!(ran.stdout.contains("unused_setting"), "{ran}");
}

#[test]
fn the_manifest_says_the_effort_that_was_asked_for() {
    let effort = |settings: &str, flags: &[&str]| {
        let spec = format!("{settings}{SPEC}");
        let folder = Folder::with(&[("patients.csv", PATIENTS), ("release.toml", &spec)]);
        let ran = folder.run(&[&["anonymize", "release.toml", "-o", "out"][..], flags].concat());
        assert_eq!(ran.code, 0, "{ran}");
        assert_eq!(folder.run(&["verify", "out", "--against", "release.toml"]).code, 0);
        let manifest: Value = serde_json::from_str(&folder.read("out/manifest.json")).unwrap();
        assert_eq!(manifest["notes"], Value::Null);
        manifest["effort"].clone()
    };
    assert_eq!(effort("", &[]), Value::Null);
    assert_eq!(effort("effort = 3\n", &[]), 3);
    assert_eq!(effort("effort = 3\n", &["--effort", "5"]), 5);
    assert_eq!(effort("effort = 3\n", &["--effort", "1"]), Value::Null);
}

#[test]
fn the_manifest_says_what_was_minimized_and_the_verifier_counts_rank_and_entropy() {
    let manifest = |settings: &str| {
        let spec = format!("{settings}{SPEC}").replace("age = \"quasi\"", "age = { role = \"quasi\", weight = 2 }");
        let folder = Folder::with(&[("patients.csv", PATIENTS), ("release.toml", &spec)]);
        let ran = folder.run(&["anonymize", "release.toml", "-o", "out"]);
        assert_eq!(ran.code, 0, "{ran}");
        assert_eq!(folder.run(&["verify", "out", "--against", "release.toml"]).code, 0);
        let manifest = folder.manifest();
        folder.claim(|manifest| manifest["loss"]["rank"] = 0.987.into());
        let wrong = folder.run(&["verify", "out", "--against", "release.toml"]);
        assert!(wrong.code == 1 && wrong.to_string().contains("loss.rank"), "{wrong}");
        manifest
    };
    for objective in ["rank", "entropy", "target:disease"] {
        let manifest = manifest(&format!("objective = \"{objective}\"\n"));
        assert_eq!((&manifest["objective"], &manifest["weights"]["age"]), (&objective.into(), &2.0.into()));
    }
    let ignored = manifest("objective = \"rank\"\nalgorithm = \"datafly\"\n");
    assert_eq!((&ignored["objective"], &ignored["notes"][0]["code"]), (&Value::Null, &"unused_setting".into()));
}

#[test]
fn persons_of_several_rows_are_told_to_lose_more() {
    let twice: String = PATIENTS.lines().skip(1).map(|row| format!("{row}\n{row}\n")).collect();
    let table = format!("name,age,zip,sex,ward,disease\n{twice}");
    let spec = SPEC.replace("file = \"patients.csv\"", "file = \"patients.csv\"\nperson = \"name\"");
    let suppress = spec.replace("k = 2", "k = 2\nmax_suppressed = 0.2\nleftovers = \"suppress\"");
    let (folder, _) = released(&[("patients.csv", &table), ("release.toml", &spec)]);
    assert_eq!(codes(&folder), ["only_cut"]);
    let (folder, _) = released(&[("patients.csv", &table), ("release.toml", &suppress)]);
    assert_eq!(codes(&folder), ["only_cut", "nobody_trimmed"]);
}

#[test]
fn a_distance_to_the_release_keeps_everybody() {
    let spec =
        SPEC.replace("k = 2", "k = 2\nmax_suppressed = 0.2\nleftovers = \"suppress\"").replace("l = 2", "t = 0.9");
    let (folder, _) = released(&[("patients.csv", PATIENTS), ("release.toml", &spec)]);
    assert_eq!(codes(&folder), ["nobody_trimmed"]);
}

#[test]
fn siblings_too_many_to_compare_all_are_told() {
    let spec = "k = 2\n[tables.people]\nfile = \"people.csv\"\nperson = \"id\"\ncolumns = { age = \"quasi\" }\n\
        [tables.visits]\nfile = \"visits.csv\"\nparent = { table = \"people\", foreign_key = \"id\" }\n\
        columns = { day = \"quasi\" }\n[clustering]\npairing = \"optimal\"\n";
    let visits = |n: usize| -> String {
        let rows = (0..n).flat_map(|day| [format!("a,{day}\n"), format!("b,{}\n", 3 * day)]);
        "id,day\n".to_owned() + &rows.collect::<String>()
    };
    for (n, expected) in [(128, &[][..]), (129, &["paired_in_parts"])] {
        let people = "id,age\na,1\nb,2\n";
        let (folder, _) = released(&[("release.toml", spec), ("people.csv", people), ("visits.csv", &visits(n))]);
        assert_eq!(codes(&folder), expected);
    }
}
