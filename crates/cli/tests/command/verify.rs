//! `kohort verify`.

use insta::assert_snapshot;

use crate::runner::{Folder, PATIENTS, SPEC, digest};

fn released() -> Folder {
    let folder = Folder::with(&[("patients.csv", PATIENTS), ("release.toml", SPEC)]);
    let ran = folder.run(&["anonymize", "release.toml", "-o", "out"]);
    assert_eq!(ran.code, 0, "{ran}");
    folder
}

#[test]
fn a_release_is_counted_from_its_files_alone() {
    let folder = released();
    assert_snapshot!("verify", folder.run_in_vain(&["verify", "out"]));
    assert_snapshot!("verify_json", folder.run_in_vain(&["verify", "out", "--json"]));
}

#[test]
fn a_release_is_compared_with_its_input() {
    assert_snapshot!("verify_against", released().run_in_vain(&["verify", "out", "--against", "release.toml"]));
}

#[test]
fn a_release_is_compared_with_the_spec_on_stdin() {
    let folder = released();
    let ran = folder.pipe(SPEC.as_bytes(), &["verify", "out", "--against", "-"]);
    assert_eq!(ran.code, 0, "{ran}");
    let other = SPEC.replace("k = 2", "k = 3");
    assert_ne!(other, SPEC);
    assert_eq!(folder.pipe(other.as_bytes(), &["verify", "out", "--against", "-"]).code, 1);
}

#[test]
fn a_spec_with_long_fractions_asks_for_what_its_manifest_says() {
    // The last bit of this fraction changes when it is read from JSON.
    let spec = format!("max_suppressed = 0.39315846863765325\n{SPEC}");
    let folder = Folder::with(&[("patients.csv", PATIENTS), ("release.toml", &spec)]);
    assert_eq!(folder.run(&["anonymize", "release.toml", "-o", "out"]).code, 0);
    let ran = folder.run(&["verify", "out", "--against", "release.toml"]);
    assert_eq!(ran.code, 0, "{ran}");
    // The last bit of this fraction changes, too. It is part of the requirement of an audience.
    let fraction = 0.20712309942597326;
    let hidden = format!("hierarchy = \"flat\", t = {fraction:?}, sensitive_to = [\"hr\"] }}");
    let of_audience = SPEC.replace("hierarchy = \"flat\" }", &hidden);
    let audiences =
        "[audiences.hr]\nquasi = [\"age\", \"zip\"]\n[audiences.lab]\nquasi = [\"sex\", \"age\", \"zip\"]\n";
    folder.write("audiences.toml", (of_audience + audiences).as_bytes());
    let ran = folder.run(&["anonymize", "audiences.toml", "-o", "for-audiences"]);
    assert_eq!(ran.code, 0, "{ran}");
    let ran = folder.run(&["verify", "for-audiences", "--against", "audiences.toml"]);
    assert_eq!(ran.code, 0, "{ran}");
    // Another fraction is still something else.
    folder.write("release.toml", spec.replace("8637653", "8637663").as_bytes());
    assert_eq!(folder.run(&["verify", "out", "--against", "release.toml"]).code, 1);
}

#[test]
fn a_file_that_was_changed_is_found_out() {
    let folder = released();
    let table = folder.read("out/patients.csv").replace("flu", "gout");
    folder.write("out/patients.csv", table.as_bytes());
    assert_snapshot!("verify_changed_file", folder.run(&["verify", "out"]));
}

#[test]
fn a_manifest_that_claims_too_much_is_found_out() {
    let folder = released();
    let manifest = folder.read("out/manifest.json").replace("\"k\": 2", "\"k\": 7");
    folder.write("out/manifest.json", manifest.as_bytes());
    assert_snapshot!("verify_asked_too_much", folder.run(&["verify", "out"]));

    let folder = released();
    let mut manifest = folder.manifest();
    manifest["achieved"]["k"] = 9.into();
    manifest["classes"] = 1.into();
    folder.write("out/manifest.json", manifest.to_string().as_bytes());
    assert_snapshot!("verify_claimed_too_much", folder.run(&["verify", "out"]));
}

#[test]
fn a_manifest_can_t_talk_the_limit_on_persons_left_out_away() {
    // The last patient fits no class of l = 2 and is left out.
    let spec = SPEC.replace("k = 2", "k = 2\nmax_suppressed = 0.2\nleftovers = \"suppress\"");
    let outlier = "Ida,99,12345,f,north,flu\n";
    let folder = Folder::with(&[("patients.csv", &format!("{PATIENTS}{outlier}")), ("release.toml", &spec)]);
    let ran = folder.run(&["anonymize", "release.toml", "-o", "out"]);
    assert_eq!(ran.code, 0, "{ran}");
    let mut manifest = folder.manifest();
    assert_eq!(manifest["persons"], serde_json::json!({ "in": 9, "out": 8, "suppressed": 1 }));

    // One of nine persons is more than the limit of 0.05, so the manifest claims that there are 1000 persons.
    manifest["requirement"]["max_suppressed"] = 0.05.into();
    manifest["persons"]["in"] = 1000.into();
    folder.write("out/manifest.json", manifest.to_string().as_bytes());
    folder.write("release.toml", spec.replace("max_suppressed = 0.2", "max_suppressed = 0.05").as_bytes());
    assert_snapshot!("verify_left_out", folder.run(&["verify", "out"]));
    assert_snapshot!("verify_left_out_against", folder.run(&["verify", "out", "--against", "release.toml"]));
}

#[test]
fn a_manifest_of_more_persons_than_can_be_counted_is_found_out() {
    let folder = released();
    let mut manifest = folder.manifest();
    // Added to the 8 who were released this is 0 in 64 bits.
    manifest["persons"]["suppressed"] = (u64::MAX - 7).into();
    manifest["persons"]["in"] = 0.into();
    folder.write("out/manifest.json", manifest.to_string().as_bytes());
    let ran = folder.run(&["verify", "out"]);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.contains("manifest.json says persons.in = 0"), "{ran}");
}

#[test]
fn a_release_of_something_else_is_found_out() {
    let folder = released();
    folder.write("patients.csv", PATIENTS.replace("34,", "99,").as_bytes());
    let ran = folder.run(&["verify", "out", "--against", "release.toml"]);
    assert_snapshot!("verify_untruthful", ran);
    folder.write("release.toml", SPEC.replace("k = 2", "k = 3").as_bytes());
    let ran = folder.run(&["verify", "out", "--against", "release.toml"]);
    assert_eq!(ran.code, 1, "{ran}");
}

#[test]
fn a_folder_that_is_no_release_is_wrong_use() {
    let folder = Folder::with(&[("out/patients.csv", PATIENTS)]);
    assert_snapshot!("verify_no_release", folder.run(&["verify", "out"]));
}

/// Four persons, one of whom has the flu in three rows.
const SEVERAL_ROWS: &str = "\
id,age,disease
1,20,flu
1,20,flu
1,20,flu
1,20,cold
2,20,flu
2,20,cold
3,40,flu
3,40,cold
4,40,flu
4,40,cold
";

fn spec_of_several_rows(requirement: &str) -> String {
    format!(
        "k = 2\nalgorithm = \"mondrian\"\n[tables.patients]\nfile = \"patients.csv\"\nperson = \"id\"\n\
         [tables.patients.columns]\nage = \"quasi\"\ndisease = {{ role = \"sensitive\", {requirement} }}\n"
    )
}

#[test]
fn shares_of_persons_with_several_rows_are_not_counted_in_rows() {
    let hard = ["t = 0.01", "entropy_l = 2.0", "recursive_cl = [1.1, 2]", "beta = 0.01", "enhanced_beta = 0.01"];
    for requirement in hard.into_iter().chain(["l = 2", "alpha = 1.0"]) {
        let spec = spec_of_several_rows(requirement);
        let folder = Folder::with(&[("patients.csv", SEVERAL_ROWS), ("release.toml", &spec)]);
        let ran = folder.run(&["anonymize", "release.toml", "-o", "out"]);
        assert_eq!(ran.code, 0, "{requirement}: {ran}");
        let ran = folder.run(&["verify", "out"]);
        assert_eq!(ran.code, 0, "{requirement}: {ran}");
        assert!(
            ran.stdout.contains("verified         in part: what was counted, from the released files alone"),
            "{ran}"
        );
        let ran = folder.run(&["verify", "out", "--against", "release.toml"]);
        assert_eq!(ran.code, 0, "{requirement}: {ran}");
        assert!(ran.stdout.contains("verified         yes, against the private table"), "{ran}");
    }
}

#[test]
fn requirements_that_files_can_t_confirm_are_listed_if_persons_have_several_rows() {
    let spec = spec_of_several_rows("l = 2, t = 0.01");
    let folder = Folder::with(&[("patients.csv", SEVERAL_ROWS), ("release.toml", &spec)]);
    assert_eq!(folder.run(&["anonymize", "release.toml", "-o", "out"]).code, 0);
    assert_snapshot!("verify_several_rows", folder.run_in_vain(&["verify", "out"]));
    assert_snapshot!("verify_several_rows_json", folder.run_in_vain(&["verify", "out", "--json"]));
    assert_snapshot!(
        "verify_several_rows_against",
        folder.run_in_vain(&["verify", "out", "--against", "release.toml"])
    );
}

#[test]
fn a_manifest_that_claims_more_than_rows_allow_is_found_out() {
    let folder = Folder::with(&[("patients.csv", SEVERAL_ROWS), ("release.toml", &spec_of_several_rows("l = 2"))]);
    assert_eq!(folder.run(&["anonymize", "release.toml", "-o", "out"]).code, 0);
    let manifest = folder.manifest();
    let claims: [(&[&str], u64); 3] =
        [(&["achieved", "k"], 5), (&["persons", "out"], 11), (&["achieved", "sensitive", "disease", "l"], 3)];
    for (path, claimed) in claims {
        let mut changed = manifest.clone();
        *path.iter().fold(&mut changed, |value, key| &mut value[*key]) = claimed.into();
        folder.write("out/manifest.json", changed.to_string().as_bytes());
        let ran = folder.run(&["verify", "out"]);
        assert_eq!(ran.code, 1, "{path:?}: {ran}");
    }
}

#[test]
fn a_verification_that_can_t_tell_has_an_exit_code_of_its_own() {
    // Ten persons with five rows and ten with one, in three overlapping classes of twenty rows. So rows can be traced back
    // to persons in very many ways. Each class alone can have eighteen persons, but not all three can, and the search does
    // not find that out.
    let rows = |person: usize| format!("{person},{},flu\n", 20 + person % 11).repeat(if person < 10 { 5 } else { 1 });
    let table: String = std::iter::once("id,age,disease\n".to_owned()).chain((0..20).map(rows)).collect();
    let spec = spec_of_several_rows("l = 1");
    let folder = Folder::with(&[("patients.csv", &table), ("release.toml", &spec)]);
    assert_eq!(folder.run(&["anonymize", "release.toml", "-o", "out"]).code, 0);
    let row = |number: usize| format!("\"[20,{}]\",flu\n", 31 + number / 20);
    let released: String = std::iter::once("age,disease\n".to_owned()).chain((0..60).map(row)).collect();
    folder.write("out/patients.csv", released.as_bytes());
    let mut manifest = folder.manifest();
    manifest["tables"][0]["sha256"] = digest(released.as_bytes()).into();
    manifest["requirement"]["k"] = 18.into();
    folder.write("out/manifest.json", manifest.to_string().as_bytes());
    folder.write("release.toml", spec.replace("k = 2", "k = 18").as_bytes());
    let ran = folder.run(&["verify", "out", "--against", "release.toml"]);
    assert_eq!(ran.code, 4, "{ran}");
    let ran = folder.run(&["verify", "out", "--against", "release.toml", "--json"]);
    let printed: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&printed["exit"], &printed["verdict"]), (&4.into(), &"cannot_tell".into()), "{ran}");
}
