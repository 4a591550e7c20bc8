//! The command `kohort-serve` as a user runs it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Output, Stdio};

use crate::fixture::{PASSWORD, PEOPLE, psql_with, stderr, stdout};

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kohort-serve"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(arguments: &[&str], stdin: &str) -> Output {
    let mut child = command(arguments).spawn().unwrap();
    // It may end before it reads.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    child.wait_with_output().unwrap()
}

/// Reads what it says up to a line that starts so; returns the rest of that line.
fn wait_for(lines: &mut impl Iterator<Item = std::io::Result<String>>, start: &str) -> String {
    loop {
        let line = lines.next().expect("it goes on").unwrap();
        if let Some(rest) = line.strip_prefix(start) {
            return rest.to_owned();
        }
        assert!(!line.starts_with("error"), "{line}");
    }
}

fn terminate(child: &Child) {
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn it_serves_a_file_and_stops_when_told_to() {
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

#[test]
fn without_an_owner_it_does_not_start() {
    let output = run(&["--listen", "127.0.0.1:0"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("there is no owner"), "{}", stderr(&output));
    let output = run(&["--create-owner", "olga"], "short\n");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("a password has 8 to"), "{}", stderr(&output));
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
    for (wrong, said) in [
        ("listen = '0.0.0.0:5439'", "can be reached from other machines"),
        ("require_tls = true", "there is no certificate"),
        ("tls_key = 'x'", "both a certificate and its key"),
        ("metrics = '0.0.0.0:1'", "loopback"),
        ("max_connections = 0", "at least 1"),
        ("maximum = 0", "unknown field"),
        ("listen = 5", "invalid type"),
    ] {
        let output = check(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(stderr(&output).contains(said), "{wrong}: {}", stderr(&output));
        assert_eq!(stdout(&output), "");
    }
}

#[test]
fn what_is_wrong_in_a_file_is_said_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let init = folder.path().join("setup.sql");
    std::fs::write(&init, "SELECT 1;\nCREATE DGH FROM 'x'").unwrap();
    let output = run(&["--create-owner", "olga", "--init", init.to_str().unwrap()], "correct horse\n");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("setup.sql: line 2, column 12: "), "{}", stderr(&output));
}
