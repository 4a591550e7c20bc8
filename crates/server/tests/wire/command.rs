//! The command `kohort-serve`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;

use chrono::Utc;
use kohort_sql::Engine;
use kohort_sql::policy::ComplianceLog;

use crate::fixture::{PASSWORD, PEOPLE, psql_with, stderr, stdout};

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kohort-serve"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(arguments: &[&str], stdin: &str) -> Output {
    let mut child = command(arguments).spawn().unwrap();
    // The command may end before it reads stdin.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    child.wait_with_output().unwrap()
}

/// Reads lines until one begins with `start`, and returns the rest of that line.
fn wait_for(lines: &mut impl Iterator<Item = std::io::Result<String>>, start: &str) -> String {
    loop {
        let line = lines.next().expect("the command prints the expected line before it ends").unwrap();
        if let Some(rest) = line.strip_prefix(start) {
            return rest.to_owned();
        }
        assert!(!line.starts_with("error"), "{line}");
    }
}

/// A running server on a port of its own.
pub(crate) struct Started {
    child: Child,
    pub(crate) port: String,
    lines: Box<dyn Iterator<Item = std::io::Result<String>>>,
}

pub(crate) fn start(arguments: &[&str], stdin: &str) -> Started {
    let mut child = command(&[&["--listen", "127.0.0.1:0"], arguments].concat()).spawn().unwrap();
    writeln!(child.stdin.take().unwrap(), "{stdin}").unwrap();
    let mut lines = Box::new(BufReader::new(child.stderr.take().unwrap()).lines());
    let address = wait_for(&mut lines, "listening on ");
    Started { child, port: address.rsplit(':').next().unwrap().to_owned(), lines }
}

impl Started {
    async fn psql(&self, user: &str, sql: &str) -> Output {
        let url = format!("host=127.0.0.1 port={} user={user} dbname=kohort", self.port);
        psql_with(&url, PASSWORD, &["--tuples-only", "--set=ON_ERROR_STOP=1", "-c", sql]).await
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn stop(mut self) {
        terminate(&self.child);
        wait_for(&mut self.lines, "stopped");
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

fn terminate(child: &Child) {
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
}

#[test]
fn completions_and_the_manual_page_name_the_flags() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["--completions", shell], "");
        assert_eq!(script.status.code(), Some(0), "{}", stderr(&script));
        assert!(stdout(&script).contains("create-owner"), "{shell}");
    }
    let page = run(&["--man"], "");
    assert_eq!(page.status.code(), Some(0), "{}", stderr(&page));
    assert!(stdout(&page).contains(".TH kohort-serve 1"), "{}", stdout(&page));
    assert!(stdout(&page).contains("create\\-owner"), "{}", stdout(&page));
    assert_eq!(run(&["--man", "--check-config"], "").status.code(), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_serves_a_file_and_stops_at_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let init = folder.path().join("setup.sql");
    std::fs::write(&init, format!("CREATE USER ann PASSWORD '{PASSWORD}';\n{PEOPLE}")).unwrap();
    let log = folder.path().join("asked.jsonl");
    let arguments = ["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--create-owner", "olga"];
    let files = ["--init", init.to_str().unwrap(), "--log", log.to_str().unwrap()];
    let mut child = command(&[arguments.as_slice(), &files].concat()).spawn().unwrap();
    writeln!(child.stdin.take().unwrap(), "{PASSWORD}").unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let metrics = wait_for(&mut lines, "metrics on ");
    let address = wait_for(&mut lines, "listening on ");
    let port = address.rsplit(':').next().unwrap();
    let url = format!("host=127.0.0.1 port={port} user=ann dbname=kohort");
    let output =
        psql_with(&url, PASSWORD, &["--tuples-only", "-c", "SELECT count(*) FROM seen WHERE illness = 'flu'"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let read = |path: &str| {
        let mut stream = std::net::TcpStream::connect(&metrics).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        std::io::read_to_string(stream).unwrap()
    };
    let counts = read("/metrics");
    assert!(counts.contains("\nkohort_statements_total{outcome=\"answered\"} 1\n"), "{counts}");
    assert!(counts.contains("\nkohort_rows_sent_total 1\n"), "{counts}");
    assert!(read("/").starts_with("HTTP/1.1 404"));
    terminate(&child);
    wait_for(&mut lines, "stopped");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains(r#""login":"ann""#), "{log}");
    assert!(!log.contains("flu") && !log.contains("horse"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_folder_keeps_tables_views_users_and_grants() {
    const SETUP: [&str; 7] = [
        "CREATE TABLE people (name TEXT PRIMARY KEY, zip TEXT, illness TEXT)",
        "INSERT INTO people VALUES ('Ann', '1001', 'flu'), ('Bea', '1001', 'cold'), ('Cem', '1002', 'flu'), \
         ('Dan', '1002', 'cold')",
        "CREATE DGH zip FROM MASK RIGHT",
        "CREATE DGH illness FROM FLAT",
        "CREATE MATERIALIZED ANONYMIZATION_VIEW seen ON SELECT name, zip, illness FROM people WITH ANONYMIZATION_ID name \
         ANONYMIZATION_QUASI_ID (zip DGH_NAME zip) ANONYMIZATION_SENSITIVE_ATTR (illness DGH_NAME illness) K 2",
        "CREATE USER ann PASSWORD 'correct horse'",
        "GRANT SELECT ON seen TO ann",
    ];
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let first = start(&["--data", data, "--create-owner", "olga"], PASSWORD);
    for sql in SETUP {
        let output = first.psql("olga", sql).await;
        assert!(output.status.success(), "{sql}\n{}", stderr(&output));
    }
    let second = run(&["--listen", "127.0.0.1:0", "--data", data], "");
    assert_eq!(second.status.code(), Some(2), "{}", stderr(&second));
    first.stop();

    let again = start(&["--data", data], "");
    let seen = again.psql("ann", "SELECT zip, count(*) FROM seen GROUP BY zip ORDER BY zip").await;
    assert_eq!(stdout(&seen), "1001|2\n1002|2\n", "{}", stderr(&seen));
    let refused = again.psql("ann", "SELECT * FROM people").await;
    assert!(stderr(&refused).contains("people' not found"), "{}", stderr(&refused));
    for sql in ["REVOKE SELECT ON seen FROM ann", "DELETE FROM people WHERE name = 'Ann'"] {
        let output = again.psql("olga", sql).await;
        assert!(output.status.success(), "{sql}\n{}", stderr(&output));
    }
    again.stop();

    let taken = run(&["--listen", "127.0.0.1:0", "--data", data, "--create-owner", "olga"], "correct horse\n");
    assert_eq!(taken.status.code(), Some(2));
    assert!(stderr(&taken).contains("olga"), "{}", stderr(&taken));
    let last = start(&["--data", data], "");
    assert!(!last.psql("ann", "SELECT * FROM seen").await.status.success());
    last.stop();
}

#[test]
fn without_an_owner_it_does_not_start() {
    let output = run(&["--listen", "127.0.0.1:0"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("there is no owner"), "{}", stderr(&output));
    let output = run(&["--create-owner", "olga"], "short\n");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("a password must have 8 to"), "{}", stderr(&output));
    assert!(!stderr(&output).contains("short"), "{}", stderr(&output));
}

#[test]
fn a_configuration_is_checked_without_serving() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kohort-serve.toml");
    let check = |text: &str| {
        std::fs::write(&path, text).unwrap();
        run(&["--config", path.to_str().unwrap(), "--check-config"], "")
    };
    assert_eq!(check("listen = '127.0.0.1:5439'\nmax_connections = 64").status.code(), Some(0));
    let (data, log) = (folder.path().join("data"), folder.path().join("asked.jsonl"));
    let both = check(&format!("data = '{}'\nlog = '{}'", data.display(), log.display()));
    assert_eq!(both.status.code(), Some(0), "{}", stderr(&both));
    assert!(!data.exists() && !log.exists(), "the check creates no file");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("kohort.db"), "something else").unwrap();
    let foreign = format!("data = '{}'", data.display());
    for (wrong, said) in [
        ("listen = '0.0.0.0:5439'", "can be reached from other machines"),
        ("require_tls = true", "there is no certificate"),
        ("tls_key = 'x'", "both a certificate and its key"),
        ("metrics = '0.0.0.0:1'", "loopback"),
        ("max_connections = 0", "at least 1"),
        ("maximum = 0", "unknown field"),
        ("listen = 5", "invalid type"),
        ("log = '/nowhere/at/all.log'", "/nowhere/at: No such file"),
        ("log = '/proc'", "/proc: Is a directory"),
        ("data = '/proc/version'", "/proc/version: Not a directory"),
        ("data = '/proc/nothing/data'", "/proc: "),
        (&foreign, "is not a store of kohort"),
    ] {
        let output = check(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(stderr(&output).contains(said), "{wrong}: {}", stderr(&output));
        assert_eq!(stdout(&output), "");
    }
    let init = folder.path().join("setup.sql");
    std::fs::write(&init, "SELECT 1;\nCREATE DGH FROM 'x'").unwrap();
    let output = run(&["--init", init.to_str().unwrap(), "--check-config"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("setup.sql: line 2"), "{}", stderr(&output));
}

#[test]
fn an_error_in_a_file_has_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let init = folder.path().join("setup.sql");
    std::fs::write(&init, "SELECT 1;\nCREATE DGH FROM 'x'").unwrap();
    let output = run(&["--create-owner", "olga", "--init", init.to_str().unwrap()], "correct horse\n");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("setup.sql: line 2, column 12: "), "{}", stderr(&output));
}

#[tokio::test]
async fn a_data_folder_of_a_newer_format_is_found_without_serving() {
    let folder = tempfile::tempdir().unwrap();
    let check = || run(&["--data", folder.path().to_str().unwrap(), "--check-config"], "");
    let engine = Engine::open(folder.path(), Arc::new(Utc::now), ComplianceLog::new()).await.unwrap();
    let store = engine.store().cloned().unwrap();
    assert_eq!(check().status.code(), Some(0), "the check works while another process has the folder open");
    let noted = store.read().unwrap().records("format").unwrap();
    let change = store.write().unwrap();
    change.put_record("format", &noted[0].0, "99").unwrap();
    change.commit().unwrap();
    let output = check();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("99") && stderr(&output).contains("hint: "), "{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_who_is_there_already_is_not_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let arguments = ["--data", data.to_str().unwrap(), "--create-owner", "olga"];
    let started = start(&arguments, PASSWORD);
    assert_eq!(stdout(&started.psql("olga", "SHOW kohort.health").await), "ok\n");
    started.stop();
    let again = run(&arguments, PASSWORD);
    assert_eq!(again.status.code(), Some(2));
    let said = "error: user 'olga' exists already\nhint: leave out --create-owner, which is only for the first start\n";
    assert!(stderr(&again).ends_with(said), "{}", stderr(&again));
}
