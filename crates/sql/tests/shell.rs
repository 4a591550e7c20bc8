//! The command `kohort-sql` as a user sees it.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

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
fn a_failure_names_the_line_of_its_statement() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("setup.sql");
    std::fs::write(&file, "SELECT 1 AS a;\n-- a comment\n\nSELECT\n  nothing;\nSELECT 2 AS a").unwrap();
    let output = run(&["--csv", "-f", file.to_str().unwrap()], "");
    let place = format!("error: {}: line 4: ", file.display());
    assert!(stderr(&output).starts_with(&place), "{}", stderr(&output));
    assert!(stderr(&run(&["-c", "SELECT nothing"], "")).starts_with("error: Schema error"));
}

#[test]
fn a_file_that_is_not_there_is_wrong_input() {
    let output = run(&["-f", "nowhere.sql"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).starts_with("error: nowhere.sql: can't be read: "), "{}", stderr(&output));
}

/// Two persons with two illnesses, and a view of them.
const SETUP: &str = "
CREATE TABLE patients (name TEXT, zip TEXT, illness TEXT) AS VALUES ('Ann', '1001', 'flu'), ('Bea', '1002', 'ulcer');
CREATE DGH zip FROM MASK RIGHT;
CREATE ANONYMIZATION_VIEW seen ON SELECT name, zip, illness FROM patients WITH ANONYMIZATION_ID name
  ANONYMIZATION_QUASI_ID (zip DGH_NAME zip) ANONYMIZATION_SENSITIVE_ATTR (illness) K 2;
";

/// Runs the command after a file with [`SETUP`], in a folder of its own.
fn run_after_setup(arguments: &[&str], stdin: &str) -> (Output, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("setup.sql");
    std::fs::write(&file, SETUP).unwrap();
    let log = folder.path().join("asked.jsonl");
    let all = [&["-f", file.to_str().unwrap(), "--log", log.to_str().unwrap()], arguments].concat();
    (run(&all, stdin), folder)
}

#[test]
fn a_view_is_read_in_each_format() {
    let sql = "SELECT * FROM seen WHERE zip = '1007' ORDER BY illness";
    let (csv, _) = run_after_setup(&["--csv", "-c", sql], "");
    assert_eq!(stdout(&csv), "name,zip,illness\n,100*,flu\n,100*,ulcer\n", "{}", stderr(&csv));
    let (json, _) = run_after_setup(&["--json", "-c", sql], "");
    assert_eq!(
        stdout(&json),
        "{\"name\":null,\"zip\":\"100*\",\"illness\":\"flu\"}\n{\"name\":null,\"zip\":\"100*\",\"illness\":\"ulcer\"}\n"
    );
    let (table, _) = run_after_setup(&["--table", "-c", sql], "");
    assert!(stdout(&table).contains("| NULL | 100* | flu     |"), "{}", stdout(&table));
}

#[test]
fn stderr_says_what_was_done() {
    let (output, _folder) = run_after_setup(&["--csv", "-c", "REFRESH ANONYMIZATION_VIEW seen"], "");
    assert_eq!(stdout(&output), "");
    let done = "created DGH zip\nanonymization view seen: 2 rows in 1 class, k = 2";
    assert!(stderr(&output).contains(done), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn an_analyst_reads_what_the_files_of_the_owner_made() {
    let (output, _folder) = run_after_setup(&["--as", "analyst", "--csv", "-c", "SELECT zip FROM seen"], "");
    assert_eq!(stdout(&output), "zip\n100*\n100*\n");
    let (output, _folder) = run_after_setup(&["--as", "analyst", "--csv", "-c", "SELECT * FROM patients"], "");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stdout(&output), "");
    assert!(stderr(&output).ends_with("table 'kohort.public.patients' not found\n"), "{}", stderr(&output));
    let (output, _folder) = run_after_setup(&["--as", "analyst", "--csv", "-c", "DROP ANONYMIZATION_VIEW seen"], "");
    assert_eq!(output.status.code(), Some(2));
    let refused = "error: analysts may not run this statement: it changes a view\n\
                   hint: analysts read anonymization views: SELECT, EXPLAIN, SET, SHOW\n";
    assert!(stderr(&output).ends_with(refused), "{}", stderr(&output));
}

#[test]
fn an_analyst_talks_on_after_files() {
    let (output, _folder) = run_after_setup(&["--as", "analyst", "--csv", "-i"], "SELECT count(*) AS n FROM seen;");
    assert_eq!(stdout(&output), "n\n2\n");
}

#[test]
fn every_statement_is_in_the_log_without_its_values() {
    let asked = "SELECT zip FROM seen WHERE zip = '1001' PURPOSE care";
    let (output, folder) =
        run_after_setup(&["--as", "analyst", "--csv", "-c", asked, "-c", "SELECT * FROM patients"], "");
    assert_eq!(output.status.code(), Some(2));
    let log = std::fs::read_to_string(folder.path().join("asked.jsonl")).unwrap();
    let entries: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(entries.len(), 5, "{log}");
    let entry = &entries[3];
    assert_eq!(entry["role"], "analyst");
    assert_eq!(entry["purpose"], "care");
    assert_eq!(entry["statement"], "SELECT zip FROM seen WHERE zip = ? PURPOSE ?");
    assert_eq!(entry["views"][0]["name"], "seen");
    assert_eq!(entry["outcome"], "answered");
    assert_eq!(entries[4]["outcome"], "failed");
    assert!(!log.contains("Ann") && !log.contains("1001"), "{log}");
}

#[test]
fn nothing_is_answered_where_the_log_cannot_be_written() {
    let output = run(&["--log", "nowhere/asked.jsonl", "--csv", "-c", "SELECT 1 AS a"], "");
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(stdout(&output), "");
    assert!(stderr(&output).starts_with("error: nowhere/asked.jsonl: can't be written: "), "{}", stderr(&output));
    assert!(stderr(&output).contains("\nhint: "), "{}", stderr(&output));
}

#[test]
fn a_requirement_that_cannot_be_reached_has_an_exit_code_of_its_own() {
    let more = "CREATE OR REPLACE ANONYMIZATION_VIEW seen ON SELECT name, zip FROM patients WITH ANONYMIZATION_ID name
                ANONYMIZATION_QUASI_ID (zip DGH_NAME zip) K 3";
    let (output, _folder) = run_after_setup(&["-c", more], "");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("error: the view 'seen' stays as it was, because the new one would be unusable: "),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_failure_in_a_file_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.sql");
    std::fs::write(&file, "SELECT 1 AS a;\nSELECT nothing;").unwrap();
    let output = run(&["--csv", "-f", file.to_str().unwrap(), "-c", "SELECT 2 AS a"], "");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stdout(&output), "a\n1\n");
    assert!(stderr(&output).starts_with(&format!("error: {}: ", file.display())), "{}", stderr(&output));
}

#[test]
fn wrong_use_has_the_exit_code_of_wrong_input() {
    assert_eq!(run(&["--csv", "--json"], "").status.code(), Some(2));
    assert_eq!(run(&["--as", "king"], "").status.code(), Some(2));
    assert_eq!(run(&["--help"], "").status.code(), Some(0));
}

#[test]
fn completions_and_the_manual_page_name_the_flags() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell], "");
        assert_eq!(script.status.code(), Some(0));
        assert!(stdout(&script).contains("no-history") && stdout(&script).contains("backup"), "{shell}");
    }
    let page = run(&["man"], "");
    assert_eq!(page.status.code(), Some(0));
    assert!(stdout(&page).contains(".TH kohort-sql 1") && stdout(&page).contains("no\\-history"), "{}", stdout(&page));
}

#[test]
fn a_file_of_data_is_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("patients.csv");
    std::fs::write(&file, "name,zip\nAnn,1001\nBea,1002\n").unwrap();
    let sql = format!(
        "CREATE EXTERNAL TABLE patients (name TEXT, zip TEXT) STORED AS CSV LOCATION '{}' OPTIONS ('format.has_header' 'true');
         CREATE DGH zip FROM MASK RIGHT;
         CREATE ANONYMIZATION_VIEW seen ON SELECT * FROM patients WITH ANONYMIZATION_ID name
           ANONYMIZATION_QUASI_ID (zip DGH_NAME zip) K 2;
         SELECT zip FROM seen;",
        file.display()
    );
    let output = run(&["--csv"], &sql);
    assert_eq!(stdout(&output), "zip\n100*\n100*\n", "{}", stderr(&output));
}

#[test]
fn a_transaction_that_nobody_ended_is_said_to_be_lost() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let run_with = |arguments: &[&str]| run(arguments, "");
    let run = |sql: &str| run(&["--data", data.to_str().unwrap(), "--csv", "-c", sql], "");
    run("CREATE TABLE t (a INT)");
    let lost = run("BEGIN; INSERT INTO t VALUES (1)");
    assert!(stderr(&lost).ends_with("warning: the open transaction was not committed, so its changes are lost\n"));
    assert!(!stderr(&run("BEGIN; INSERT INTO t VALUES (2); COMMIT")).contains("warning"));
    let file = folder.path().join("lost.sql");
    std::fs::write(&file, "BEGIN; INSERT INTO t VALUES (4)").unwrap();
    let (data, file) = (data.to_str().unwrap(), file.to_str().unwrap());
    let asked = run_with(&["--data", data, "-f", file, "--as", "analyst", "-c", "SELECT 1"]);
    assert!(
        stderr(&asked).contains("its changes are lost"),
        "the file runs as the owner, whatever role asks afterwards"
    );
    let refused = run("BEGIN READ ONLY; INSERT INTO t VALUES (3); COMMIT");
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(stdout(&run("SELECT * FROM t")), "a\n2\n");
}

#[test]
fn a_backup_is_no_folder_and_an_empty_file_is_no_backup() {
    let folder = tempfile::tempdir().unwrap();
    let (data, empty) = (folder.path().join("data"), folder.path().join("empty.db"));
    let (data, empty) = (data.to_str().unwrap(), empty.to_str().unwrap());
    std::fs::write(empty, "").unwrap();
    let opened = run(&["--data", empty, "-c", "SELECT 1"], "");
    assert_eq!(opened.status.code(), Some(2));
    let said = format!("error: '{empty}' is a file, not a data folder\nhint: put a backup into a folder of its own, ");
    assert!(stderr(&opened).starts_with(&said), "{}", stderr(&opened));
    let checked = run(&["check", empty], "");
    assert_eq!(checked.status.code(), Some(1), "{}", stderr(&checked));
    std::fs::create_dir(data).unwrap();
    std::fs::write(format!("{data}/kohort.db"), "").unwrap();
    let copied = run(&["backup", data, &format!("{data}/copy.db")], "");
    assert_eq!(copied.status.code(), Some(2));
    assert!(stderr(&copied).contains("is not a store of kohort"), "{}", stderr(&copied));
    assert_eq!(run(&["check", data], "").status.code(), Some(1));
}
