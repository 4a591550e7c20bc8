//! A release folder appears whole or not at all.

use std::fs;
use std::path::{Path, PathBuf};

use kohort_io::{
    Compression, ErrorClass, Existing, Format, LoadedTable, ReleaseError, check_target, read_release, write_csv_to,
};
use kohort_model::spec::CsvSpec;
use kohort_model::{Release, Role, Silent, ValueType};
use kohort_verify::Verified;
use tempfile::TempDir;

use crate::job::{load_file, private, release, write};

fn example() -> (TempDir, LoadedTable, Verified<Release>) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("in.csv"), "age,ward\n23,a\n42,b\n7,a\n").unwrap();
    let loaded = load_file(folder.path(), "in.csv", &["age".to_owned(), "ward".to_owned()], CsvSpec::default());
    let release = release(&loaded, vec![2, 0, 1]);
    (folder, loaded, release)
}

fn entries(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_release_holds_its_table_and_a_manifest_that_fits() {
    let (folder, loaded, release) = example();
    let out = folder.path().join("out");
    let manifest = write(&release, &loaded, &out, None, Existing::Refuse).unwrap();
    assert_eq!(entries(&out), ["manifest.json", "patient.csv"]);
    assert_eq!(entries(folder.path()), ["in.csv", "out"]);
    let (read, tables) = read_release(&out, &Silent).unwrap();
    assert_eq!(read, manifest);
    assert_eq!(tables[0].name, "patient");
    assert_eq!(tables[0].columns[0].role, Role::Quasi);
    assert_eq!(tables[0].columns[0].value_type, ValueType::Integer);
    assert_eq!(tables[0].columns[1].cell(2), Some("b"));
}

#[test]
fn a_folder_that_is_not_empty_is_replaced_only_when_asked_and_only_if_it_is_a_release() {
    let (folder, loaded, release) = example();
    let out = folder.path().join("out");
    fs::create_dir(&out).unwrap();
    write(&release, &loaded, &out, None, Existing::Refuse).unwrap();

    let problem = check_target(&out, Existing::Refuse).unwrap_err();
    assert!(problem.to_string().ends_with("exists and is not empty"));
    assert_eq!(problem.class(), ErrorClass::Input);
    assert!(write(&release, &loaded, &out, None, Existing::Refuse).is_err());
    let parquet = Some(Format::Parquet);
    write(&release, &loaded, &out, parquet, Existing::Replace).unwrap();
    assert_eq!(entries(&out), ["manifest.json", "patient.parquet"]);
    assert_eq!(entries(folder.path()), ["in.csv", "out"]);

    let home = folder.path().join("home");
    fs::create_dir(&home).unwrap();
    fs::write(home.join("thesis.tex"), "all my work").unwrap();
    assert!(write(&release, &loaded, &home, None, Existing::Replace).is_err());
    assert_eq!(entries(&home), ["thesis.tex"]);
}

#[test]
fn targets_that_can_not_be_folders_are_refused_early() {
    let (folder, _, _) = example();
    let refused = |path: PathBuf| check_target(&path, Existing::Refuse).unwrap_err().class();
    assert_eq!(refused(folder.path().join("in.csv")), ErrorClass::Input);
    assert_eq!(refused(folder.path().join("no/such/folder")), ErrorClass::Input);
    assert_eq!(refused("/".into()), ErrorClass::Input);
    assert_eq!(refused("..".into()), ErrorClass::Input);
    check_target(&folder.path().join("new"), Existing::Refuse).unwrap();
}

#[test]
fn the_remains_of_a_killed_run_are_no_release() {
    let (folder, loaded, release) = example();
    // What is on the disk when a run is killed after its table was written and before it was verified.
    let partial = folder.path().join(".kohort-partial-x1Y2z3");
    fs::create_dir_all(partial.join("release")).unwrap();
    fs::write(partial.join("release/patient.csv"), "age,ward\n*,a\n").unwrap();
    let out = folder.path().join("out");
    assert!(!out.exists());
    for left in [&partial, &partial.join("release")] {
        assert!(matches!(read_release(left, &Silent), Err(ReleaseError::NoManifest { .. })));
    }
    // The partial folder is not in the way of the next run.
    write(&release, &loaded, &out, None, Existing::Refuse).unwrap();
    assert_eq!(entries(folder.path()), [".kohort-partial-x1Y2z3", "in.csv", "out"]);
}

#[test]
fn a_release_that_was_changed_is_not_read() {
    let (folder, loaded, release) = example();
    let out = folder.path().join("out");
    write(&release, &loaded, &out, None, Existing::Refuse).unwrap();
    let json = fs::read_to_string(out.join("manifest.json")).unwrap();
    fs::write(out.join("manifest.json"), json.replace("patient.csv", "../in.csv")).unwrap();
    assert!(matches!(read_release(&out, &Silent), Err(ReleaseError::BadManifest { .. })));
    fs::write(out.join("manifest.json"), json.replace("\"rows_out\": 3", "\"rows_out\": 4")).unwrap();
    assert!(matches!(read_release(&out, &Silent), Err(ReleaseError::Differs { what: "rows", .. })));
    fs::write(out.join("manifest.json"), json.replace("\"ward\"", "\"word\"")).unwrap();
    assert!(matches!(read_release(&out, &Silent), Err(ReleaseError::Differs { what: "columns", .. })));
    fs::write(out.join("manifest.json"), &json).unwrap();
    read_release(&out, &Silent).unwrap();
    fs::write(out.join("notes.txt"), "who is who").unwrap();
    assert!(matches!(read_release(&out, &Silent), Err(ReleaseError::Unnamed { .. })));
    fs::remove_file(out.join("notes.txt")).unwrap();
    for (what, changed) in [
        ("unknown", json.replacen('{', "{\"m_invariance\": 3,", 1)),
        ("twice", json.replacen("\"ward\":", "\"ward\": {\"role\": \"plain\", \"type\": \"text\"}, \"ward\":", 1)),
    ] {
        assert_ne!(changed, json, "{what}");
        fs::write(out.join("manifest.json"), changed).unwrap();
        assert!(matches!(read_release(&out, &Silent), Err(ReleaseError::BadManifest { .. })), "{what}");
    }
    fs::write(out.join("manifest.json"), &json).unwrap();
    fs::write(out.join("patient.csv"), "age,ward\n*,a\n*,a\n*,a\n").unwrap();
    assert!(matches!(read_release(&out, &Silent), Err(ReleaseError::Digest { .. })));
    fs::remove_file(out.join("patient.csv")).unwrap();
    assert!(matches!(read_release(&out, &Silent), Err(ReleaseError::Io { .. })));
}

#[test]
fn a_stream_gets_the_verified_bytes() {
    let (_folder, loaded, release) = example();
    let mut bytes = Vec::new();
    let findings = write_csv_to(&mut bytes, &release, &private(&loaded, 1)).unwrap();
    assert_eq!(bytes, b"age,ward\n*,a\n*,a\n*,b\n");
    assert_eq!(findings.k, 3);
}

#[test]
fn a_release_that_is_not_published_leaves_nothing() {
    let (folder, loaded, release) = example();
    let out = folder.path().join("out");
    let staged =
        kohort_io::stage(&release, &private(&loaded, 1), &out, kohort_io::WriteOptions::default(), &Silent).unwrap();
    assert_eq!(staged.files()[0].name, "patient.csv");
    drop(staged);
    assert_eq!(entries(folder.path()), ["in.csv"]);
}

#[test]
fn batches_in_memory_hold_the_cells_of_the_file() {
    let (_folder, loaded, release) = example();
    let (tables, findings) = kohort_io::release_batches(&release, &private(&loaded, 1)).unwrap();
    assert_eq!(findings.k, 3);
    assert_eq!(tables[0].name, "patient");
    let read = kohort_io::read_batches_for_check("patient", &tables[0].rows, &Silent).unwrap();
    let cells: Vec<Option<&str>> = (0..3).map(|row| read.columns[1].cell(row)).collect();
    assert_eq!(cells, [Some("a"), Some("a"), Some("b")]);
    let problem = kohort_io::release_batches(&release, &private(&loaded, 4)).unwrap_err();
    assert!(problem.to_string().starts_with("the written release is not the verified one"));
}

#[test]
fn a_requirement_the_file_does_not_meet_leaves_nothing() {
    let (folder, loaded, release) = example();
    let out = folder.path().join("out");
    let options = kohort_io::WriteOptions { format: Some(Format::Csv(Compression::Zstd)), existing: Existing::Refuse };
    let problem = kohort_io::stage(&release, &private(&loaded, 4), &out, options, &Silent).unwrap_err();
    assert!(problem.to_string().starts_with("the written release is not the verified one"));
    assert_eq!(entries(folder.path()), ["in.csv"]);
}
