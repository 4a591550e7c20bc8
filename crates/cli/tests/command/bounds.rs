//! `kohort anonymize --cells bounds`, and how such releases are verified.

use insta::assert_snapshot;

use crate::runner::{Folder, PATIENTS, SPEC};

/// The small clinic. Its postcodes are masked, and its ages have no hierarchy.
fn clinic() -> Folder {
    Folder::with(&[("patients.csv", PATIENTS), ("release.toml", SPEC)])
}

fn released(format: &str) -> Folder {
    let folder = clinic();
    let ran = folder.run(&["anonymize", "release.toml", "--cells", "bounds", "--format", format, "-o", "out"]);
    assert_eq!(ran.code, 0, "{ran}");
    folder
}

/// The bounds in the first row, as they are written.
fn first_bounds(folder: &Folder) -> (String, String) {
    let table = folder.read("out/patients.csv");
    let mut cells = table.lines().nth(1).unwrap().split(',').map(str::to_owned);
    (cells.next().unwrap(), cells.next().unwrap())
}

#[test]
fn numbers_without_a_hierarchy_are_two_columns() {
    let folder = released("csv");
    assert_snapshot!("bounds_table", folder.read("out/patients.csv"));
    let manifest = folder.manifest();
    assert_snapshot!("bounds_columns", format!("{:#}", manifest["tables"][0]["columns"]));
}

#[test]
fn a_stream_has_the_bytes_of_the_file() {
    let folder = released("csv");
    let ran = folder.run(&["anonymize", "release.toml", "--cells", "bounds", "-o", "-"]);
    assert_eq!(ran.stdout, folder.read("out/patients.csv"));
}

#[test]
fn bounds_are_verified_in_every_format() {
    for format in ["csv", "csv.gz", "parquet", "arrow", "arrows"] {
        let folder = released(format);
        for arguments in [&["verify", "out"][..], &["verify", "out", "--against", "release.toml"]] {
            let ran = folder.run_in_vain(arguments);
            assert_eq!(ran.code, 0, "{format}: {ran}");
            assert!(ran.stdout.contains("\nclasses          4\n"), "{ran}");
        }
    }
}

#[test]
fn any_change_of_a_bound_is_seen_in_the_digest() {
    let folder = released("csv");
    let (low, _) = first_bounds(&folder);
    let table = folder.read("out/patients.csv").replacen(&low, "1", 1);
    folder.write("out/patients.csv", table.as_bytes());
    assert_snapshot!("bounds_changed", folder.run(&["verify", "out"]));
}

#[test]
fn a_bound_that_was_changed_under_a_new_digest_is_refused() {
    let folder = released("csv");
    let (low, _) = first_bounds(&folder);
    // The person in the first row now looks like nobody else.
    folder.forge("out/patients.csv", |table| table.replacen(&format!("\n{low},"), "\n1,", 1));
    assert_snapshot!("bounds_forged", folder.run(&["verify", "out"]));
    assert_eq!(folder.run(&["verify", "out", "--against", "release.toml"]).code, 1);
}

#[test]
fn bounds_that_do_not_cover_the_input_are_refused() {
    let folder = released("csv");
    let (low, high) = first_bounds(&folder);
    assert_ne!(low, high);
    folder.forge("out/patients.csv", |table| table.replace(&format!("\n{low},{high},"), &format!("\n{high},{high},")));
    // Persons who looked the same still do, so only a comparison with the input finds the change.
    assert_eq!(folder.run(&["verify", "out"]).code, 0);
    assert_snapshot!("bounds_untruthful", folder.run(&["verify", "out", "--against", "release.toml"]));
}

#[test]
fn a_bound_without_its_partner_is_refused() {
    let folder = released("csv");
    let (low, _) = first_bounds(&folder);
    folder.forge("out/patients.csv", |table| table.replacen(&format!("\n{low},"), "\n,", 1));
    assert_snapshot!("bounds_half", folder.run(&["verify", "out"]));
}

#[test]
fn a_bound_does_not_take_another_column_s_name() {
    let folder = Folder::with(&[("ages.csv", "age,age_lo\n1,2\n3,4\n")]);
    let flags = ["anonymize", "ages.csv", "--k", "2", "--quasi", "age", "--plain", "age_lo"];
    let ran = folder.run_in_vain(&[&flags[..], &["--cells", "bounds", "-o", "out"]].concat());
    assert_snapshot!("bounds_name_taken", ran);
}
