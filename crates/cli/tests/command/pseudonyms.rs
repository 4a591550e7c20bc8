//! Columns of role `pseudonym`.
#![cfg(unix)]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::runner::{Folder, PATIENTS, SPEC};

const KEY: &[u8] = b"a key of the tests, which nobody should ever use";

fn set_mode(folder: &Folder, file: &str, mode: u32) {
    fs::set_permissions(folder.path(file), fs::Permissions::from_mode(mode)).unwrap();
}

/// The clinic, with names as pseudonyms of the persons.
fn clinic() -> Folder {
    let spec = SPEC.replace("name = \"identifier\"", "name = { role = \"pseudonym\", key_file = \"keys/clinic.key\" }");
    let spec = spec.replace("file = \"patients.csv\"\n", "file = \"patients.csv\"\nperson = \"name\"\n");
    let folder = Folder::with(&[("patients.csv", PATIENTS), ("release.toml", &spec)]);
    folder.write("keys/clinic.key", KEY);
    set_mode(&folder, "keys/clinic.key", 0o600);
    folder
}

fn released(folder: &Folder) -> Vec<String> {
    let ran = folder.run(&["anonymize", "release.toml", "-o", "out", "--force"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(
        ran.stderr.contains("note: 'name' holds pseudonyms: releases with pseudonyms of the same key can be joined")
    );
    let text = folder.read("out/patients.csv");
    text.lines().skip(1).map(|line| line.split(',').next().unwrap().to_owned()).collect()
}

#[test]
fn every_person_has_one_pseudonym_and_the_key_leaves_no_trace() {
    let folder = clinic();
    let pseudonyms = released(&folder);
    assert_eq!(pseudonyms.iter().collect::<BTreeSet<_>>().len(), 8);
    assert!(pseudonyms.iter().all(|text| text.len() == 16), "{pseudonyms:?}");
    // Equal keys give equal pseudonyms, and other keys others.
    assert_eq!(released(&folder), pseudonyms);
    let manifest = folder.manifest();
    assert_eq!(manifest["tables"][0]["columns"]["name"]["pseudonym"], "hmac-sha-256");
    assert_eq!(manifest["achieved"]["k"], 2);
    let digest = crate::runner::digest(KEY);
    for (file, bytes) in folder.contents() {
        if file.starts_with(folder.path("out")) {
            let text = String::from_utf8_lossy(&bytes);
            assert!(
                !text.contains("Ada") && !text.contains("clinic.key") && !text.contains(&digest),
                "{}",
                file.display()
            );
        }
    }
    for verified in [&["verify", "out"][..], &["verify", "out", "--against", "release.toml"]] {
        let ran = folder.run_in_vain(verified);
        assert_eq!(ran.code, 0, "{ran}");
    }
    folder.write("keys/clinic.key", b"another key of the tests, which nobody should use");
    let ran = folder.run_in_vain(&["verify", "out", "--against", "release.toml"]);
    assert_eq!(ran.code, 1, "{ran}");
    let others = released(&folder);
    assert!(others.iter().all(|text| !pseudonyms.contains(text)));
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let folder = clinic();
    set_mode(&folder, "keys/clinic.key", 0o640);
    let ran = folder.run_in_vain(&["anonymize", "release.toml", "-o", "out"]);
    assert!(ran.code == 2 && ran.stderr.contains("others than its owner may use it"), "{ran}");
    assert!(ran.stderr.contains("hint: close it: chmod 600"), "{ran}");
    folder.write("keys/clinic.key", b"short");
    set_mode(&folder, "keys/clinic.key", 0o600);
    let ran = folder.run_in_vain(&["anonymize", "release.toml", "-o", "out"]);
    assert!(ran.code == 2 && ran.stderr.contains("holds 5 bytes, but a key has at least 32"), "{ran}");
    fs::remove_file(folder.path("keys/clinic.key")).unwrap();
    let ran = folder.run_in_vain(&["anonymize", "release.toml", "-o", "out"]);
    assert!(ran.code == 2 && ran.stderr.contains("head -c 32 /dev/urandom"), "{ran}");
}

/// Rows that share a pseudonym can be put together by any reader: their quasi cells are then one longer row, which nobody counted.
#[test]
fn rows_of_one_person_are_not_linked_by_a_pseudonym() {
    let folder = clinic();
    folder.write("patients.csv", format!("{PATIENTS}Ada,62,89321,f,north,flu\n").as_bytes());
    let ran = folder.run_in_vain(&["anonymize", "release.toml", "-o", "out"]);
    assert!(
        ran.code == 2 && ran.stderr.contains("pseudonyms would link the rows of one value, in rows 1 and 9"),
        "{ran}"
    );
    assert!(!ran.stderr.contains("Ada"), "{ran}");
}

#[test]
fn forged_pseudonyms_are_found_without_the_key() {
    let folder = clinic();
    let pseudonyms = released(&folder);
    // One name, and one pseudonym that two rows share.
    for forged in ["Ada", &pseudonyms[1]] {
        let before = folder.read("out/patients.csv");
        folder.forge("out/patients.csv", |text| text.replacen(&pseudonyms[0], forged, 1));
        let ran = folder.run_in_vain(&["verify", "out"]);
        assert!(ran.code == 1 && ran.stderr.contains("no pseudonym of its own"), "{ran}");
        folder.forge("out/patients.csv", |_| before);
    }
}

#[test]
fn what_can_not_have_pseudonyms_is_refused_by_name() {
    let folder = clinic();
    let spec = folder.read("release.toml").replace("person = \"name\"\n", "");
    folder.write("rows.toml", spec.as_bytes());
    let ran = folder.run_in_vain(&["anonymize", "rows.toml", "-o", "out", "--memory", "50MB"]);
    assert!(ran.code == 2 && ran.stderr.contains("pseudonyms can't be anonymized in cells"), "{ran}");
    released(&folder);
    folder.write("new.csv", PATIENTS.as_bytes());
    let ran = folder.run_in_vain(&["apply", "out", "new.csv", "-o", "new"]);
    assert!(ran.code == 2 && ran.stderr.contains("it has pseudonyms"), "{ran}");
}
