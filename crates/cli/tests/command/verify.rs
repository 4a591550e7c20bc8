//! `kohort verify`.

use insta::assert_snapshot;

use crate::runner::{Folder, PATIENTS, SPEC};

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
    let mut manifest: serde_json::Value = serde_json::from_str(&folder.read("out/manifest.json")).unwrap();
    manifest["achieved"]["k"] = 9.into();
    manifest["classes"] = 1.into();
    folder.write("out/manifest.json", manifest.to_string().as_bytes());
    assert_snapshot!("verify_claimed_too_much", folder.run(&["verify", "out"]));
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
