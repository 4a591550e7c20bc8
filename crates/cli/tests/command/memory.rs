//! Tables that are larger than the memory they are given.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::runner::Folder;

const SPEC: &str = "\
k = 5
[tables.people]
file = \"people.csv\"
[tables.people.columns]
age = \"quasi\"
town = { role = \"quasi\", hierarchy = \"flat\" }
cost = \"quasi\"
illness = { role = \"sensitive\", l = 2 }
";

/// Nobody in it is real.
fn people(n_rows: u64) -> String {
    let mut table = "age,town,cost,illness\n".to_owned();
    for row in 0..n_rows {
        let (age, town, cost) = (20 + row * 7 % 61, row * row % 11, row * 31 % 503);
        writeln!(table, "{age},town{town},{cost},ill{}", row * 13 % 7).unwrap();
    }
    table
}

/// Folders of work that is going on or was killed.
fn beside(folder: &Folder) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".kohort"))).collect()
}

#[test]
fn a_table_that_is_larger_than_its_memory_is_released_in_cells() {
    let folder = Folder::with(&[("people.csv", &people(3000)), ("release.toml", SPEC)]);
    let ran = folder.run(&["anonymize", "release.toml", "--memory", "256KB", "-o", "out"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stderr.contains("cells that share no class"), "{ran}");
    let verified = folder.run(&["verify", "out", "--against", "release.toml"]);
    assert_eq!(verified.code, 0, "{verified}");
    assert!(beside(&folder).is_empty());

    // What fits into memory is one cell, which is no different from a job without --memory.
    let ran = folder.run(&["anonymize", "release.toml", "--memory", "1GB", "-o", "one"]);
    assert_eq!(ran.code, 0, "{ran}");
    let manifest: Value = serde_json::from_str(&folder.read("one/manifest.json")).unwrap();
    assert_eq!(manifest["notes"].as_array().map_or(0, Vec::len), 0, "{ran}");
}

#[test]
fn rows_of_a_killed_run_stay_encrypted_and_are_removed_by_the_next() {
    let folder = Folder::with(&[("people.csv", &people(300_000)), ("release.toml", SPEC)]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_kohort"))
        .args(["anonymize", "release.toml", "--memory", "8MB", "-o", "out"])
        .current_dir(folder.path(""))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let left_behind = || -> Vec<PathBuf> {
        let files = beside(&folder).into_iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
        files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|ending| ending == "cell")).collect()
    };
    while left_behind().is_empty() {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before its rows were on the disk");
    }
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success());
    let names = left_behind();
    assert!(!names.is_empty());
    for name in names {
        let bytes = std::fs::read(&name).unwrap();
        assert!(!bytes.windows(6).any(|bytes| bytes == b"ARROW1" || bytes.starts_with(b"town")), "{}", name.display());
    }
    let ran = folder.run(&["anonymize", "release.toml", "--memory", "8MB", "-o", "out"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(beside(&folder).is_empty());
}
