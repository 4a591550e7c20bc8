//! The command `kohort-sql` as a user sees it.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Runs the command with these arguments and this text on stdin.
fn run(arguments: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kohort-sql"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

#[test]
fn answers_are_csv_json_lines_or_a_table() {
    let sql = "SELECT 1 AS a, '' AS b, CAST(NULL AS VARCHAR) AS c";
    assert_eq!(stdout(&run(&["--csv", "-c", sql], "")), "a,b,c\n1,\"\",\n");
    assert_eq!(stdout(&run(&["--json", "-c", sql], "")), "{\"a\":1,\"b\":\"\",\"c\":null}\n");
    let table = run(&["-c", sql], "");
    assert!(stdout(&table).contains("| 1 |   | NULL |"), "{}", stdout(&table));
    assert_eq!(table.status.code(), Some(0));
}

#[test]
fn statements_come_from_files_then_from_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("first.sql");
    std::fs::write(&file, "SELECT 1 AS a;\nSELECT 2 AS a;").unwrap();
    let output = run(&["--csv", "-c", "SELECT 3 AS a", "-c", "SELECT 4 AS a", "-f", file.to_str().unwrap()], "");
    assert_eq!(stdout(&output), "a\n1\na\n2\na\n3\na\n4\n");
}

#[test]
fn statements_are_read_from_a_pipe() {
    assert_eq!(stdout(&run(&["--csv"], "SELECT 1 AS a; -- so\n")), "a\n1\n");
    assert_eq!(run(&[], "").status.code(), Some(0));
}

#[test]
fn a_text_that_cannot_be_parsed_runs_nothing_and_says_where() {
    let output = run(&["--csv"], "SELECT 1 AS a;\nCREATE DGH FROM 'zip.csv';");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stdout(&output), "");
    assert_eq!(
        stderr(&output),
        "error: line 2, column 12: expected the DGH's name, found FROM\n\
         hint: for example: CREATE DGH zip FROM 'zip.csv'\n"
    );
}

#[test]
fn the_first_statement_that_fails_is_the_last() {
    let output = run(&["--csv", "-c", "SELECT 1 AS a; SELECT nothing; SELECT 2 AS a"], "");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stdout(&output), "a\n1\n");
    assert!(stderr(&output).starts_with("error: "), "{}", stderr(&output));
}

#[test]
fn a_file_that_is_not_there_is_wrong_input() {
    let output = run(&["-f", "nowhere.sql"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).starts_with("error: nowhere.sql: can't be read: "), "{}", stderr(&output));
}
