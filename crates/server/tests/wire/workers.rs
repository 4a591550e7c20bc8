//! Statements that DataFusion itself neither limits nor stops. Each must end and be logged correctly, and others must
//! go on.

use std::path::Path;

use tokio_postgres::NoTls;

use crate::client::{Connected, connect};
use crate::command::start;
use crate::fixture::{ANALYST, OWNER, PASSWORD, Served, as_owner, serve_as, wait_until};

/// A view of so many persons that comparing all with all takes long.
const CROWD: &str = "
CREATE TABLE crowd AS SELECT CAST(value AS VARCHAR) AS name, CAST(value % 5 AS INT) AS age, value % 7 AS ward
  FROM generate_series(1, 1000);
CREATE ANONYMIZATION_VIEW cv ON SELECT name, age, ward FROM crowd
  WITH ANONYMIZATION_ID name ANONYMIZATION_QUASI_ID (age) ANONYMIZATION_OTHER (ward) K 5 USING mondrian;
GRANT SELECT ON cv TO ann;
";

/// A statement that needs more memory than allowed.
const TOO_LARGE: [&str; 3] = [
    "SELECT count(*) FROM generate_series(1,1000000) a, generate_series(1,1000000) b, generate_series(1,1000000) c",
    "SELECT count(*) FROM cv a, cv b, cv c, cv d WHERE a.ward + b.ward + c.ward + d.ward = 1",
    "SELECT count(*) FROM (SELECT a.ward + b.ward AS w FROM cv a, cv b, cv c) x JOIN cv y ON x.w < y.ward",
];

/// A statement that takes longer than any test waits.
const TOO_LONG: [&str; 5] = [
    "SELECT count(*) FROM cv a, cv b, cv c WHERE a.ward + b.ward * c.ward = 100",
    "SELECT count(*) FROM cv a JOIN cv b ON a.age < b.age JOIN cv c ON b.age < c.age",
    "SELECT count(*) FROM cv a JOIN cv b ON a.age = b.age JOIN cv c ON b.age = c.age JOIN cv d ON c.age = d.age",
    "SELECT a.ward, count(*) FROM cv a, cv b, cv c GROUP BY a.ward",
    "SELECT sum(a.ward * b.ward + value) FROM cv a, cv b, generate_series(1, 1000000)",
];

async fn crowd() -> Served {
    serve_as(CROWD, |configuration| configuration.query_memory = 256).await
}

/// The analyst's statements and their outcomes in the log.
async fn outcomes(served: &Served) -> Vec<String> {
    let log = connect(served, OWNER).await.rows("SHOW COMPLIANCE LOG").await.unwrap();
    let is_asked = |entry: &&Vec<String>| entry[2] == ANALYST && entry[3].starts_with("SELECT");
    log.iter().filter(is_asked).map(|entry| entry[7].clone()).collect()
}

/// Waits until no statement and no process of a statement runs any more.
async fn wait_for_end(served: &Served) {
    wait_until("no statement runs", || served.server.metrics().running.get() == 0).await;
    wait_until("no process runs", || served.workers.n_running() == 0).await;
}

/// Starts a statement that takes too long, and waits until its process exists.
async fn asked(
    served: &Served,
    client: Connected,
    sql: &'static str,
) -> tokio::task::JoinHandle<(tokio_postgres::Error, Connected)> {
    let asked = tokio::spawn(async move { (client.client.simple_query(sql).await.unwrap_err(), client) });
    wait_until("its process runs", || served.workers.n_running() == 1).await;
    asked
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_ends_at_its_timeout() {
    let served = crowd().await;
    let mut ann = connect(&served, ANALYST).await;
    ann.rows("SET statement_timeout = '500ms'").await.unwrap();
    for sql in TOO_LONG {
        assert_eq!(ann.failure(sql).await.0, "57014", "{sql}");
        wait_for_end(&served).await;
    }
    assert_eq!(outcomes(&served).await, vec!["stopped"; TOO_LONG.len()]);
    ann.rows("RESET statement_timeout").await.unwrap();
    assert_eq!(ann.rows("SELECT count(*) FROM cv").await.unwrap(), [["1000"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_ends_where_it_is_cancelled() {
    let served = crowd().await;
    let mut ann = connect(&served, ANALYST).await;
    for sql in TOO_LONG {
        let cancel = ann.client.cancel_token();
        let running = asked(&served, ann, sql).await;
        cancel.cancel_query(NoTls).await.unwrap();
        let (error, client) = running.await.unwrap();
        assert_eq!(error.code().unwrap().code(), "57014", "{sql}");
        wait_for_end(&served).await;
        ann = client;
    }
    assert_eq!(outcomes(&served).await, vec!["stopped"; TOO_LONG.len()]);
    assert_eq!(ann.rows("SELECT count(*) FROM cv").await.unwrap(), [["1000"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_ends_where_its_client_hangs_up() {
    let served = crowd().await;
    for sql in TOO_LONG {
        let url = format!("{} password='{PASSWORD}'", served.url(ANALYST));
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        let driver = tokio::spawn(connection);
        let running = tokio::spawn(async move { client.simple_query(sql).await.is_err() });
        wait_until("its process runs", || served.workers.n_running() == 1).await;
        driver.abort();
        assert!(running.await.unwrap(), "{sql}");
        wait_for_end(&served).await;
    }
    assert_eq!(outcomes(&served).await, vec!["stopped"; TOO_LONG.len()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_ends_with_its_login_and_with_what_it_reads() {
    for (taken, state, outcomes_may_be) in [
        // Either the statement or its connection may notice it first.
        ("ALTER USER ann PASSWORD 'another horse'", "28000", &["stopped", "refused"][..]),
        ("DROP USER ann", "28000", &["stopped", "refused"]),
        ("REVOKE SELECT ON cv FROM ann", "42501", &["refused"]),
        ("DROP ANONYMIZATION_VIEW cv", "42501", &["refused"]),
    ] {
        let served = crowd().await;
        let ann = connect(&served, ANALYST).await;
        let running = asked(&served, ann, TOO_LONG[0]).await;
        as_owner(&served.engine, taken).await;
        let (error, _client) = running.await.unwrap();
        assert_eq!(error.code().unwrap().code(), state, "{taken}: {error}");
        wait_for_end(&served).await;
        let [outcome] = &outcomes(&served).await[..] else { panic!("{taken}: one record") };
        assert!(outcomes_may_be.contains(&outcome.as_str()), "{taken}: {outcome}");
    }
}

/// A memory figure of a process, in kilobytes.
fn kilobytes(process: u32, figure: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':')).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// The child processes of a process.
fn children(process: u32) -> Vec<u32> {
    let is_child = |id: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        status.lines().any(|line| line.split_whitespace().eq(["PPid:", &process.to_string()]))
    };
    let ids = Path::new("/proc").read_dir().unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    ids.filter(is_child).collect()
}

fn kill(processes: &[u32]) {
    for process in processes {
        // The process may have ended.
        let _ = std::process::Command::new("kill").args(["-KILL", &process.to_string()]).output().unwrap();
    }
}

/// The server is a process of its own, so that other memory does not count.
#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_needs_too_much_memory_ends_and_the_server_stays_small() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (init, config, log) = (file("setup.sql"), file("serve.toml"), file("asked.jsonl"));
    std::fs::write(&init, format!("CREATE USER ann PASSWORD '{PASSWORD}';\n{CROWD}")).unwrap();
    std::fs::write(&config, "query_memory = 64\n").unwrap();
    let arguments = ["--create-owner", OWNER, "--init", &init, "--config", &config, "--log", &log];
    let started = start(&arguments, PASSWORD);
    let url = format!("host=127.0.0.1 port={} user={ANALYST} password='{PASSWORD}' dbname=kohort", started.port);
    let (ann, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let small = "SELECT count(*) FROM cv WHERE ward = 1";
    ann.simple_query(small).await.unwrap();
    let before = kilobytes(started.id(), "VmHWM");
    for sql in TOO_LARGE {
        let error = ann.simple_query(sql).await.unwrap_err();
        assert_eq!(error.code().unwrap_or_else(|| panic!("{sql}: {error}")).code(), "53200", "{sql}");
        ann.simple_query(small).await.unwrap();
    }
    let grown = kilobytes(started.id(), "VmHWM") - before;
    assert!(grown < 64 * 1024, "{grown} KB");
    let written = std::fs::read_to_string(&log).unwrap();
    let outcomes: Vec<bool> = written
        .lines()
        .filter(|line| line.contains(r#""login":"ann""#))
        .map(|line| line.contains(r#""outcome":"failed""#))
        .collect();
    assert_eq!(outcomes, [false, true, false, true, false, true, false], "{written}");
    started.stop();
}

/// If a worker is killed, for example by the system because memory is short, only its statement fails.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_workers_are_killed_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let init = folder.path().join("setup.sql");
    std::fs::write(&init, format!("CREATE USER ann PASSWORD '{PASSWORD}';\n{CROWD}")).unwrap();
    let started = start(&["--create-owner", OWNER, "--init", init.to_str().unwrap()], PASSWORD);
    let url = format!("host=127.0.0.1 port={} user={ANALYST} password='{PASSWORD}' dbname=kohort", started.port);
    let (ann, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let small = "SELECT count(*) FROM cv WHERE ward = 1";
    // An idle worker is killed unnoticed, so no statement fails.
    for _ in 0..5 {
        let waiting = children(started.id());
        assert!(!waiting.is_empty(), "there are always idle workers");
        kill(&waiting);
        ann.simple_query(small).await.unwrap();
    }
    // A running worker is lost with its statement. A statement whose worker was killed before it began gets another
    // one.
    let running = tokio::spawn(async move { (ann.simple_query(TOO_LONG[0]).await.unwrap_err(), ann) });
    let is_over = || {
        kill(&children(started.id()));
        running.is_finished()
    };
    wait_until("the statement is over", is_over).await;
    let (error, ann) = running.await.unwrap();
    assert_eq!(error.code().unwrap().code(), "53200", "{error}");
    ann.simple_query(small).await.unwrap();
    started.stop();
}
