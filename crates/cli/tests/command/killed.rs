//! A run that is killed leaves no release, and nothing that blocks the next run.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::runner::Folder;

const FLAGS: [&str; 8] = ["anonymize", "-", "--k", "2", "--quasi", "age", "-o", "out"];

#[test]
fn a_run_that_is_killed_while_it_reads_leaves_nothing() {
    let folder = Folder::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_kohort"))
        .args(FLAGS)
        .current_dir(folder.path(""))
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // This is more than a pipe holds. So when all of it is written, the run is reading and waits for the rest.
    let mut table = b"age\n".to_vec();
    table.extend(b"30\n".repeat(1 << 18));
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&table).unwrap();
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success());
    drop(stdin);
    assert!(folder.contents().is_empty());

    let ran = folder.pipe(&table, &FLAGS);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(folder.run(&["verify", "out"]).code, 0);
}
