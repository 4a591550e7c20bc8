//! Ctrl-C stops a job: nothing is written, and the exit code is the one that shells expect.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use insta::assert_snapshot;

use crate::runner::{Folder, Ran};

#[test]
fn a_job_that_is_interrupted_writes_nothing() {
    let folder = Folder::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_kohort"))
        .args(["anonymize", "-", "--k", "2", "--quasi", "age", "-o", "out"])
        .current_dir(folder.path(""))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // This is more than a pipe holds. So when all of it is written, the job is reading and listens for the signal.
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"age\n").unwrap();
    stdin.write_all(&b"30\n".repeat(1 << 18)).unwrap();
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    drop(stdin);
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let ran = Ran { code: status.code().unwrap(), stdout: text(stdout), stderr: text(stderr) };
    assert_snapshot!("cancelled", ran);
    assert!(folder.contents().is_empty());
}
