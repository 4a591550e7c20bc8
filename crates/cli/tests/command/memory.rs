//! Tables that are larger than the memory they are given.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::runner::{Folder, Ran};

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
    let ran = folder.run(&["anonymize", "release.toml", "--memory", "512KB", "-o", "out"]);
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
fn persons_with_several_rows_are_released_in_cells() {
    let mut table = "id,age,town,cost,illness\n".to_owned();
    for (row, line) in people(6000).lines().skip(1).enumerate() {
        writeln!(table, "p{},{line}", row % 1000).unwrap();
    }
    let spec =
        SPEC.replace("[tables.people.columns]\n", "person = \"id\"\n[tables.people.columns]\nid = \"identifier\"\n");
    let folder = Folder::with(&[("people.csv", &table), ("release.toml", &spec)]);
    let planned = folder.run_in_vain(&["anonymize", "release.toml", "--memory", "1MB", "--dry-run"]);
    assert!(planned.code == 0 && planned.stdout.contains("passes           8 over all rows\n"), "{planned}");
    for threads in ["1", "2"] {
        let ran = folder.run(&["anonymize", "release.toml", "--memory", "1MB", "--threads", threads, "-o", threads]);
        assert_eq!(ran.code, 0, "{ran}");
        assert!(ran.stderr.contains("cells that share no class"), "{ran}");
        let verified = folder.run(&["verify", threads]);
        assert_eq!(verified.code, 0, "{verified}");
    }
    assert!(folder.read("1/people.csv") == folder.read("2/people.csv"));
    let manifest = folder.read("1/manifest.json");
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["persons"]["in"], 1000, "{manifest}");
    assert!(beside(&folder).is_empty());
}

#[test]
fn the_number_of_threads_changes_no_byte() {
    let folder = Folder::with(&[("people.csv", &people(3000)), ("release.toml", SPEC)]);
    for threads in ["1", "2"] {
        let ran = folder.run(&["anonymize", "release.toml", "--memory", "512KB", "--threads", threads, "-o", threads]);
        assert_eq!(ran.code, 0, "{ran}");
    }
    assert!(folder.read("1/people.csv") == folder.read("2/people.csv"));
    assert_eq!(folder.read("1/manifest.json"), folder.read("2/manifest.json"));
}

/// Runs the command after some words of a shell.
fn run_after(folder: &Folder, words: &str, memory: &str) -> Ran {
    let kohort = env!("CARGO_BIN_EXE_kohort");
    let script = format!("{words}; exec '{kohort}' anonymize release.toml --memory {memory} -o out");
    folder.run_program(Path::new("sh"), &["-c", &script], b"")
}

#[test]
fn there_may_be_more_cells_than_files_that_a_process_may_have_open() {
    let folder = Folder::with(&[("people.csv", &people(60_000)), ("release.toml", SPEC)]);
    let ran = run_after(&folder, "ulimit -n 24", "512KB");
    assert_eq!(ran.code, 0, "{ran}");
    let notes = folder.manifest()["notes"].as_array().unwrap().clone();
    let note = notes.iter().find(|note| note["code"] == "in_cells").unwrap()["message"].as_str().unwrap().to_owned();
    let n_cells: usize = note.split_whitespace().find_map(|word| word.parse().ok()).unwrap();
    assert!(n_cells > 24, "{note}");
}

#[test]
fn a_disk_that_is_full_is_an_error_and_leaves_nothing() {
    let folder = Folder::with(&[("people.csv", &people(30_000)), ("release.toml", SPEC)]);
    // The first limit stops the rows of cells, the second one only the file, which is larger.
    for blocks in ["4", "400"] {
        let ran = run_after(&folder, &format!("trap '' XFSZ; ulimit -f {blocks}"), "1MB");
        assert_eq!(ran.code, 3, "{ran}");
        assert!(ran.stderr.contains("can't be written"), "{ran}");
        assert!(!folder.path("out").exists() && beside(&folder).is_empty());
    }
}

#[test]
fn too_little_memory_is_refused_before_any_work_with_the_least_that_would_do() {
    // Half of the persons look alike in all quasi columns. Cells are cut by these columns, so one cell must hold them all.
    let mut table = people(5000);
    table.push_str(&"30,town1,70,ill1\n30,town1,70,ill2\n".repeat(2500));
    let folder = Folder::with(&[("people.csv", &table), ("release.toml", SPEC)]);
    let ran = folder.run(&["anonymize", "release.toml", "--memory", "512KB", "-o", "out"]);
    assert_eq!(ran.code, 2, "{ran}");
    assert!(ran.stderr.contains("the rows of some equal persons must be in memory together"), "{ran}");
    assert!(!folder.path("out").exists() && beside(&folder).is_empty());
    let least = ran.stderr.split("--memory ").nth(1).unwrap().trim().to_owned();
    let ran = folder.run(&["anonymize", "release.toml", "--memory", &least, "-o", "out"]);
    assert_eq!(ran.code, 0, "{least}: {ran}");
}

#[test]
fn rows_of_a_killed_run_stay_encrypted_and_are_removed_by_the_next() {
    let folder = Folder::with(&[("people.csv", &people(100_000)), ("release.toml", SPEC)]);
    let files_in = |beginning: &str| -> Vec<PathBuf> {
        let is_wanted = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(beginning);
        let folders = beside(&folder).into_iter().filter(is_wanted);
        let files = folders.filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
        let is_rows = |path: &PathBuf| {
            path.extension().is_some_and(|ending| ending == "cell")
                || path.file_name().is_some_and(|name| name == "release")
        };
        files.map(|file| file.path()).filter(is_rows).collect()
    };
    // Whether a run was killed as soon as a folder had rows, and left them; it may have been faster.
    let is_killed_in = |phase: &str| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kohort"))
            .args(["anonymize", "release.toml", "--memory", "4MB", "--force", "-o", "out"])
            .current_dir(folder.path(""))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while files_in(phase).is_empty() && child.try_wait().unwrap().is_none() {}
        child.kill().unwrap();
        !child.wait().unwrap().success() && !files_in(phase).is_empty()
    };
    // Killed while rows go to their cells, and while the file is written or verified.
    for phase in [".kohort-cells-", ".kohort-partial-"] {
        assert!((0..20).any(|_| is_killed_in(phase)), "no run was killed while there were rows in {phase}");
        for name in files_in(".kohort-cells-") {
            let bytes = std::fs::read(&name).unwrap();
            let is_readable = |bytes: &[u8]| bytes == b"ARROW1" || bytes == b"Schema" || bytes.starts_with(b"town");
            assert!(!bytes.windows(6).any(is_readable), "{}", name.display());
        }
    }
    // A job without cells removes them, too.
    let ran = folder.run(&["anonymize", "release.toml", "--force", "-o", "out"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(files_in(".kohort-cells-").is_empty());
}

#[test]
fn rows_of_a_killed_comparison_stay_encrypted_and_are_removed_by_the_next() {
    let folder = Folder::with(&[("people.csv", &people(30_000)), ("release.toml", SPEC)]);
    assert_eq!(folder.run(&["anonymize", "release.toml", "-o", "out"]).code, 0);
    std::fs::create_dir(folder.path("waiting")).unwrap();
    let rows = || -> Vec<PathBuf> {
        let folders = std::fs::read_dir(folder.path("waiting")).unwrap().flatten();
        let files = folders.filter_map(|folder| std::fs::read_dir(folder.path()).ok()).flatten().flatten();
        files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|ending| ending == "cell")).collect()
    };
    let verify = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kohort"));
        command.args(["verify", "out", "--against", "release.toml", "--memory", "8MB"]);
        command.env("TMPDIR", folder.path("waiting")).current_dir(folder.path(""));
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let is_killed = || {
        let mut child = verify();
        while rows().is_empty() && child.try_wait().unwrap().is_none() {}
        child.kill().unwrap();
        !child.wait().unwrap().success() && !rows().is_empty()
    };
    assert!((0..20).any(|_| is_killed()), "no comparison was killed while there were rows");
    for name in rows() {
        let bytes = std::fs::read(&name).unwrap();
        assert!(!bytes.windows(6).any(|bytes| bytes == b"ARROW1" || bytes == b"Schema"), "{}", name.display());
    }
    assert!(verify().wait().unwrap().success());
    assert_eq!(std::fs::read_dir(folder.path("waiting")).unwrap().count(), 0);
}

#[test]
fn a_table_and_a_release_that_are_larger_than_memory_are_counted() {
    let spec = SPEC.replace("k = 5", "k = 100");
    let folder = Folder::with(&[("people.csv", &people(20_000)), ("release.toml", &spec)]);
    assert_eq!(folder.run(&["anonymize", "release.toml", "-o", "out"]).code, 0);
    folder.without_documents();
    let check = ["check", "people.csv", "--quasi", "age,town", "--sensitive", "illness:l=2,t=0.1", "--k", "5"];
    let against = ["verify", "out", "--against", "release.toml"];
    // Rows whose labels overlap are compared together, so that takes more memory.
    let commands = [
        (&["verify", "out"][..], "1MB"),
        (&["verify", "out", "--json"][..], "1MB"),
        (&against[..], "4MB"),
        (&check[..], "1MB"),
    ];
    for (command, memory) in commands {
        let in_memory = folder.run_in_vain(command);
        let in_parts = folder.run_in_vain(&[command, &["--memory", memory]].concat());
        assert_eq!(
            (in_parts.code, in_parts.stdout, in_parts.stderr),
            (in_memory.code, in_memory.stdout, in_memory.stderr)
        );
    }
    // Somebody leaves a class, and is alone now.
    folder.forge("out/people.csv", |text| {
        let row = text.lines().nth(1).unwrap();
        let (_, illness) = row.rsplit_once(',').unwrap();
        text.replacen(row, &format!("20,town1,1,{illness}"), 1)
    });
    for (command, memory) in [commands[0], commands[2]] {
        let in_memory = folder.run_in_vain(command);
        let in_parts = folder.run_in_vain(&[command, &["--memory", memory]].concat());
        assert_eq!((in_memory.code, in_parts.code), (1, 1));
        assert_eq!(in_parts.stderr, in_memory.stderr);
    }
    folder.write("out/people.csv", b"age,town,cost,illness\n1,town1,2,ill1\n");
    let ran = folder.run(&["verify", "out", "--memory", "1MB"]);
    assert!(ran.code == 1 && ran.stderr.contains("digest"), "{ran}");
}

#[test]
fn a_dry_run_says_what_the_work_will_take() {
    let folder = Folder::with(&[("people.csv", &people(5000)), ("release.toml", SPEC)]);
    let command = ["anonymize", "release.toml", "--memory", "512KB", "--dry-run"];
    let ran = folder.run_in_vain(&command);
    assert_eq!(ran.code, 0, "{ran}");
    for word in
        ["rows             5000\n", "cells ", "passes           7 over all rows\n", "disk             at most 1 MB\n"]
    {
        assert!(ran.stdout.contains(word), "{ran}");
    }
    let ran = folder.run_in_vain(&[&command[..], &["--json"]].concat());
    let planned: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(planned["cells"].as_u64().unwrap() > 2, "{ran}");
}

#[test]
fn a_job_that_would_not_fit_into_the_machine_is_done_in_cells_by_itself() {
    let folder = Folder::with(&[("people.csv", &people(30_000)), ("release.toml", SPEC)]);
    let anonymize = |machine: &str, more: &[&str]| {
        let kohort = env!("CARGO_BIN_EXE_kohort");
        let script = format!("KOHORT_MEMORY={machine} exec '{kohort}' anonymize release.toml {}", more.join(" "));
        folder.run_program(Path::new("sh"), &["-c", &script], b"")
    };
    // 30,000 rows of 4 columns need about 3.4 MB.
    let small = anonymize("2MB", &["-o", "out"]);
    assert_eq!(small.code, 0, "{small}");
    assert!(small.stderr.contains("3 MB of memory would be needed and 2 MB are there"), "{small}");
    let codes = |folder: &Folder| -> Vec<String> {
        let notes = folder.manifest()["notes"].as_array().cloned().unwrap_or_default();
        notes.iter().map(|note| note["code"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(codes(&folder), ["memory_chosen", "in_cells"]);
    let verified = folder.run(&["verify", "out", "--against", "release.toml"]);
    assert_eq!(verified.code, 0, "{verified}");

    let planned = anonymize("2MB", &["--dry-run"]);
    assert!(planned.stdout.contains("memory           1 MB for the data\n"), "{planned}");
    // Memory that is given, and memory that suffices.
    for (machine, more) in [("2MB", &["--memory", "1GB"][..]), ("1GB", &[][..])] {
        let ran = anonymize(machine, &[more, &["--force", "-o", "out"]].concat());
        assert_eq!((ran.code, codes(&folder).len()), (0, 0), "{ran}");
    }
    let wrong = anonymize("much", &["-o", "other"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("KOHORT_MEMORY: no such unit"), "{wrong}");
}
