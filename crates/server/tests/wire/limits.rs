//! The limits of a server: time, connections, failed logins, and the time to stop.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::{Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::TableProvider;
use datafusion::datasource::MemTable;
use kohort_server::tls::Tls;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_postgres::NoTls;

use crate::client::connect;
use crate::command::start;
use crate::fixture::{
    ANALYST, Held, OWNER, PASSWORD, PEOPLE, Served, as_owner, needed, on_path, serve, serve_as, wait_until,
};

/// A query that takes forever.
pub(crate) const ENDLESS: &str = "SELECT count(*) FROM generate_series(1, 1000000000) AS a(x), generate_series(1, 1000000000) AS b(y) WHERE x % 7 = y % 11";

/// A certificate of its own and its key.
pub(crate) fn make_certificate(folder: &Path) -> (PathBuf, PathBuf) {
    let (certificate, key) = (folder.join("server.crt"), folder.join("server.key"));
    let mut command = Command::new(needed(on_path("openssl"), "openssl"));
    command.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]);
    let output = command.arg("-keyout").arg(&key).arg("-out").arg(&certificate).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (certificate, key)
}

#[test]
fn a_bad_certificate_is_an_error_and_no_plain_text() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = make_certificate(folder.path());
    assert!(Tls::read(&certificate, &key).is_ok());
    let other = folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let (other_certificate, other_key) = make_certificate(&other);
    let empty = folder.path().join("empty");
    std::fs::write(&empty, "").unwrap();
    for (certificate, key) in [
        (&certificate, &other_key),
        (&other_certificate, &key),
        (&empty, &key),
        (&certificate, &empty),
        (&key, &key),
        (&certificate, &certificate),
    ] {
        assert!(Tls::read(certificate, key).is_err(), "{} {}", certificate.display(), key.display());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_is_cancelled_by_its_client() {
    let served = serve(PEOPLE).await;
    let connected = connect(&served, ANALYST).await;
    let cancel = connected.client.cancel_token();
    let asked = tokio::spawn(async move { (connected.client.simple_query(ENDLESS).await.err(), connected) });
    wait_until("the statement runs", || served.server.metrics().running.get() == 1).await;
    cancel.cancel_query(NoTls).await.unwrap();
    let (error, connected) = asked.await.unwrap();
    assert_eq!(error.unwrap().code().unwrap().code(), "57014");
    assert_eq!(connected.client.simple_query("SELECT 1").await.unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_takes_too_long_ends() {
    let served = serve(PEOPLE).await;
    let mut ann = connect(&served, ANALYST).await;
    ann.rows("SET statement_timeout = '50ms'").await.unwrap();
    let (state, message) = ann.failure(ENDLESS).await;
    assert_eq!((state.as_str(), message.as_str()), ("57014", "canceling statement due to statement timeout"));
    assert_eq!(ann.failure("SET statement_timeout = 0").await.0, "22023");
    assert_eq!(ann.rows("SHOW statement_timeout").await.unwrap(), [["50"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_needs_too_much_memory_ends_and_others_go_on() {
    let served = serve_as(PEOPLE, |configuration| configuration.query_memory = 16).await;
    let mut ann = connect(&served, ANALYST).await;
    let sorted =
        "SELECT sum(r) FROM (SELECT row_number() OVER (ORDER BY x DESC) AS r FROM generate_series(1, 5000000) AS a(x))";
    let (state, message) = ann.failure(sorted).await;
    assert_eq!(state, "53200");
    assert!(message.contains("more memory than it may use"), "{message}");
    assert_eq!(ann.rows("SELECT * FROM seen").await.unwrap().len(), 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_analyst_takes_all_connections_and_owners_find_one() {
    let served = serve_as(PEOPLE, |configuration| configuration.max_connections = 4).await;
    as_owner(&served.engine, "CREATE USER bob PASSWORD 'correct horse'").await;
    let refused = async |user: &str| {
        let url = format!("{} password='{PASSWORD}'", served.url(user));
        let error = tokio_postgres::connect(&url, NoTls).await.err().unwrap();
        let error = error.as_db_error().unwrap();
        (error.code().code().to_owned(), error.message().to_owned())
    };
    let first = connect(&served, ANALYST).await;
    let _second = connect(&served, ANALYST).await;
    let of_one = ("53300".to_owned(), "too many connections of this login".to_owned());
    assert_eq!(refused(ANALYST).await, of_one);
    let _third = connect(&served, "bob").await;
    assert_eq!(refused("bob").await, ("53300".to_owned(), "too many connections".to_owned()));
    let _owner = connect(&served, OWNER).await;
    assert_eq!(refused(OWNER).await.0, "53300");
    let n_open = served.server.metrics().open.get();
    drop(first);
    wait_until("the first is gone", || served.server.metrics().open.get() < n_open).await;
    connect(&served, OWNER).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_log_in_at_once_all_do() {
    let served = serve(PEOPLE).await;
    let mut connected = futures::future::join_all((0..20).map(|_| connect(&served, ANALYST))).await;
    for ann in &mut connected {
        assert_eq!(ann.rows("SELECT 1").await.unwrap(), [["1"]]);
    }
}

/// Connections that send these bytes and nothing more.
async fn stalled(served: &Served, n_connections: usize, said: &[u8]) -> Vec<TcpStream> {
    let mut streams = Vec::with_capacity(n_connections);
    for _ in 0..n_connections {
        let mut stream = TcpStream::connect(("127.0.0.1", served.port)).await.unwrap();
        stream.write_all(said).await.unwrap();
        streams.push(stream);
    }
    streams
}

/// The first message of a client that wants to log in.
fn startup(user: &str) -> Vec<u8> {
    let body = [&196_608_u32.to_be_bytes()[..], b"user\0", user.as_bytes(), b"\0\0"].concat();
    [&(body.len() as u32 + 4).to_be_bytes()[..], &body].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_say_nothing_keep_nobody_out() {
    let served = serve(PEOPLE).await;
    let mut silent = stalled(&served, 150, b"").await;
    let mut ann = connect(&served, ANALYST).await;
    assert_eq!(ann.rows("SELECT count(*) FROM seen").await.unwrap(), [["8"]]);
    // Fifty connections were closed for later ones, and one for the login.
    wait_until("the oldest connections are closed", || served.server.metrics().refused.get() == 51).await;
    let mut told = Vec::new();
    silent[0].read_to_end(&mut told).await.unwrap();
    assert_eq!(told[0], b'E');
    let told = String::from_utf8_lossy(&told);
    assert!(told.contains("53300") && told.contains("log in at once"), "{told}");
    let mut byte = [0];
    let is_open = |stream: &mut TcpStream| {
        let read = stream.try_read(&mut byte);
        read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    };
    assert!(silent[51..].iter_mut().all(is_open), "the other connections are still open");
}

#[tokio::test(flavor = "multi_thread")]
async fn logins_that_are_begun_and_left_there_keep_nobody_out() {
    let served = serve(PEOPLE).await;
    let begun = stalled(&served, 40, &startup(ANALYST)).await;
    for stream in &begun {
        stream.readable().await.unwrap();
    }
    let mut ann = connect(&served, ANALYST).await;
    assert_eq!(ann.rows("SELECT count(*) FROM seen").await.unwrap(), [["8"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn few_places_for_newcomers_are_given_to_the_newest() {
    let served = serve_as(PEOPLE, |configuration| configuration.max_connections = 4).await;
    let silent = stalled(&served, 8, b"").await;
    wait_until("all are open", || served.server.metrics().open.get() == 8).await;
    assert_eq!(served.server.metrics().refused.get(), 0);
    let connected = connect(&served, ANALYST).await;
    assert_eq!(served.server.metrics().refused.get(), 1);
    drop((silent, connected));
    wait_until("all connections are closed", || served.server.metrics().open.get() == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_ends_with_its_client() {
    let served = serve(PEOPLE).await;
    let url = format!("{} password='{PASSWORD}'", served.url(ANALYST));
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    let driver = tokio::spawn(connection);
    let asked = tokio::spawn(async move { client.simple_query(ENDLESS).await.is_err() });
    wait_until("the statement runs", || served.server.metrics().running.get() == 1).await;
    driver.abort();
    wait_until("it ended", || served.server.metrics().running.get() == 0).await;
    wait_until("its connection is closed", || served.server.metrics().open.get() == 0).await;
    assert!(asked.await.unwrap());
}

/// All threads for parts of statements compute without a pause, and timers of other statements must still work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_takes_too_long_ends_while_others_compute_without_a_pause() {
    let served = serve(PEOPLE).await;
    let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
    let part = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(Int64Array::from(vec![1]))]).unwrap();
    let parts = MemTable::try_new(schema, vec![vec![part]; 64]).unwrap();
    served.engine.owner_context().register_table("parts", Arc::new(parts)).unwrap();
    let held = Held::register(&served.engine);
    let mut owner = connect(&served, OWNER).await;
    let busy = tokio::spawn(async move { owner.rows("SELECT max(held(a)) FROM parts").await });
    let n_processors = std::thread::available_parallelism().unwrap().get();
    wait_until("as many threads compute as there are processors", || held.n_held() >= n_processors).await;
    let mut ann = connect(&served, ANALYST).await;
    ann.rows("SET statement_timeout = '50ms'").await.unwrap();
    let late = tokio::time::timeout(Duration::from_secs(60), ann.failure(ENDLESS)).await;
    assert_eq!(late.unwrap().1, "canceling statement due to statement timeout");
    held.let_go();
    assert_eq!(busy.await.unwrap().unwrap(), [["1"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn guessing_passwords_is_slow() {
    let served = serve(PEOPLE).await;
    let wrong = format!("{} password=wrong", served.url(ANALYST));
    let mut states = Vec::new();
    for _ in 0..6 {
        states.push(tokio_postgres::connect(&wrong, NoTls).await.err().unwrap().code().unwrap().code().to_owned());
    }
    assert_eq!(states, ["28P01", "28P01", "28P01", "28P01", "28P01", "28000"]);
    // The right password is refused too, because otherwise an attacker could recognize it.
    let right = format!("{} password='{PASSWORD}'", served.url(ANALYST));
    let refused = tokio_postgres::connect(&right, NoTls).await.err().unwrap();
    assert_eq!(refused.as_db_error().unwrap().message(), "too many failed logins");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_finishes_what_runs_and_ends_what_is_idle() {
    let served = serve(PEOPLE).await;
    let held = Held::register(&served.engine);
    let idle = connect(&served, ANALYST).await;
    let mut busy = connect(&served, OWNER).await;
    let asked = tokio::spawn(async move { busy.rows("SELECT held(7)").await });
    wait_until("the statement runs", || held.n_held() == 1).await;
    let stopped = tokio::spawn(served.stop());
    wait_until("the idle client is disconnected", || idle.client.is_closed()).await;
    assert!(!asked.is_finished() && !stopped.is_finished());
    held.let_go();
    assert_eq!(asked.await.unwrap().unwrap(), [["7"]]);
    tokio::time::timeout(Duration::from_secs(60), stopped).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_does_not_wait_for_ever() {
    let served = serve_as(PEOPLE, |configuration| configuration.shutdown_timeout = 1).await;
    let busy = connect(&served, ANALYST).await;
    let endless = tokio::spawn(async move { busy.client.simple_query(ENDLESS).await });
    wait_until("the statement runs", || served.server.metrics().running.get() == 1).await;
    tokio::time::timeout(Duration::from_secs(60), served.stop()).await.unwrap();
    assert!(endless.await.unwrap().is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_server_frees_its_engine() {
    let served = serve(PEOPLE).await;
    let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int32, true)]));
    let table: Arc<dyn TableProvider> = Arc::new(MemTable::try_new(schema, vec![vec![]]).unwrap());
    let held = Arc::downgrade(&table);
    served.engine.owner_context().register_table("held", table).unwrap();
    for user in [ANALYST, OWNER] {
        let mut connected = connect(&served, user).await;
        assert!(!connected.rows("SELECT relname FROM pg_catalog.pg_class").await.unwrap().is_empty());
        connected.rows("PREPARE kept AS SELECT * FROM seen").await.unwrap();
    }
    assert!(held.upgrade().is_some());
    served.stop().await;
    wait_until("tasks of queries have ended", || held.upgrade().is_none()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_is_too_deep_is_refused_and_the_server_goes_on() {
    let served = serve(PEOPLE).await;
    let mut ann = connect(&served, ANALYST).await;
    let deep = [
        format!("SELECT ward FROM seen WHERE {}", vec!["ward = 'a'"; 20_000].join(" OR ")),
        vec!["SELECT 1"; 20_000].join(" UNION ALL "),
        format!("SELECT relname FROM pg_class WHERE {}", vec!["oid = 1"; 20_000].join(" OR ")),
    ];
    for sql in deep {
        assert_eq!(ann.failure(&sql).await.0, "54001", "{}", &sql[..40]);
        assert!(ann.client.prepare(&sql).await.is_err());
    }
    assert!(!ann.rows("SELECT ward FROM seen").await.unwrap().is_empty());
}

/// The server is a process of its own, because it would crash if a limit did not hold.
#[tokio::test(flavor = "multi_thread")]
async fn statements_that_would_crash_the_process_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let init = folder.path().join("setup.sql");
    std::fs::write(&init, format!("CREATE USER ann PASSWORD '{PASSWORD}';\n{PEOPLE}")).unwrap();
    let started = start(&["--create-owner", OWNER, "--init", init.to_str().unwrap()], PASSWORD);
    let url = format!("host=127.0.0.1 port={} user={ANALYST} password='{PASSWORD}' dbname=kohort", started.port);
    let (ann, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let grown = vec!["s"; 100].join(" || ");
    let twenty_seven: Vec<String> = (0..27).map(|number| format!("value + {number}")).collect();
    for (sql, state) in [
        // The first text can't be parsed. The second one must not be parsed by the rewriting parser.
        (format!("COPY t TO STDOUT; SELECT {}", vec!["1"; 60_000].join("+")), "54001"),
        (format!("SELECT 1 IN ({})", vec!["1"; 1_000_000].join(",")), "54000"),
        (" ".repeat(8 << 20), "54000"),
        (format!("SELECT {}1{}", "abs(".repeat(40), ")".repeat(40)), "54001"),
        (format!("SELECT {}1{}", "(SELECT ".repeat(40), ")".repeat(40)), "54001"),
        (format!("SELECT {}", vec![format!("{}1{}", "abs(".repeat(14), ")".repeat(14)); 300].join(",")), "54001"),
        (format!("SELECT count(*) FROM generate_series(1, 1) GROUP BY CUBE ({})", twenty_seven.join(", ")), "54000"),
        (";SELECT 1".repeat(10_001), "54000"),
        ("SELECT string_agg(repeat('x', 30000), '') OVER () FROM generate_series(1, 8192)".to_owned(), "54000"),
        (
            "SELECT count(s) FROM (SELECT string_agg(repeat('x', 30000), '') AS s FROM generate_series(1, 8192)) AS u, \
             generate_series(1, 1000000)"
                .to_owned(),
            "54000",
        ),
        (
            format!(
                "WITH RECURSIVE t AS (SELECT arrow_cast('x', 'LargeUtf8') AS s UNION ALL SELECT {grown} FROM t) \
                 SELECT count(s) FROM t"
            ),
            "54000",
        ),
    ] {
        let error = ann.simple_query(&sql).await.expect_err(&sql[..60]);
        assert_eq!(error.code().unwrap_or_else(|| panic!("{}: {error}", &sql[..60])).code(), state, "{}", &sql[..60]);
    }
    ann.simple_query("PREPARE p (TEXT) AS SELECT $1 || $1 || $1 || $1 FROM generate_series(1, 8192)").await.unwrap();
    let error = ann.simple_query(&format!("EXECUTE p('{}')", "x".repeat(20_000))).await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "54000");
    let often = format!("SELECT 'a' IN ({})", vec!["$1"; 20_000].join(","));
    let error = ann.query(&often, &[&"x".repeat(1 << 20)]).await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "54000");
    assert!(!ann.simple_query("SELECT ward FROM seen").await.unwrap().is_empty());
    started.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_that_have_read_their_view_keep_nobody_from_reading_it() {
    let served = serve(PEOPLE).await;
    let endless = ENDLESS.replace("FROM", "FROM seen,");
    let n_turns = std::thread::available_parallelism().map_or(1, usize::from).max(2);
    let mut asked = Vec::new();
    for _ in 0..=n_turns {
        let busy = connect(&served, ANALYST).await;
        let (cancel, endless) = (busy.client.cancel_token(), endless.clone());
        asked.push((cancel, tokio::spawn(async move { busy.client.simple_query(&endless).await.is_err() })));
    }
    let mut ann = connect(&served, ANALYST).await;
    for _ in 0..20 {
        assert_eq!(ann.rows("SELECT count(*) FROM seen").await.unwrap(), [["8"]]);
    }
    for (cancel, asked) in asked {
        while !asked.is_finished() {
            cancel.cancel_query(NoTls).await.unwrap();
            tokio::task::yield_now().await;
        }
        assert!(asked.await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_statement_is_recorded_once_however_it_ends() {
    let served = serve(PEOPLE).await;
    let mut ann = connect(&served, ANALYST).await;
    ann.rows("SET statement_timeout = '300ms'").await.unwrap();
    ann.failure("SELECT FROM WHERE name = Smith").await;
    ann.failure("SELECT \"Smith\" FROM seen").await;
    ann.failure("SELECT ward FROM seen PURPOSE smith RECIPIENT 'Smith'").await;
    // One side is small, so that the statement runs out of time and not out of memory.
    ann.failure(
        "SELECT count(*) AS \"Smith\" FROM generate_series(1, 1000) AS a(x), generate_series(1, 1000000000000) AS b(y) \
         WHERE x % 7 = y % 11",
    )
    .await;
    ann.rows("SELECT ward AS \"Ward\" FROM seen").await.unwrap();
    let log = connect(&served, OWNER).await.rows("SHOW COMPLIANCE LOG").await.unwrap();
    let of_ann: Vec<Vec<&str>> = log
        .iter()
        .filter(|entry| entry[2] == ANALYST)
        .map(|entry| vec![entry[3].as_str(), &entry[4], &entry[5], &entry[7]])
        .collect();
    let endless = "SELECT count(*) AS ? FROM generate_series(?, ?) AS ?(?), generate_series(?, ?) AS ?(?) \
                   WHERE ? % ? = ? % ?";
    assert_eq!(
        of_ann,
        [
            ["SELECT FROM WHERE name = ?", "NULL", "NULL", "failed"],
            ["SELECT ? FROM seen", "care", "nurse", "failed"],
            ["SELECT ward FROM seen PURPOSE ? RECIPIENT ?", "?", "?", "refused"],
            [endless, "care", "nurse", "stopped"],
            ["SELECT ward AS \"Ward\" FROM seen", "care", "nurse", "answered"],
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_memory_of_windows_is_counted() {
    let served = serve_as(PEOPLE, |configuration| configuration.query_memory = 16).await;
    let mut ann = connect(&served, ANALYST).await;
    for function in ["sum(value)", "nth_value(value, 3)", "lag(value, 1000000)"] {
        let query = format!("SELECT max(s) FROM (SELECT {function} OVER () AS s FROM generate_series(1, 3000000))");
        assert_eq!(ann.failure(&query).await.0, "53200", "{function}");
    }
    let wards = "SELECT count(*) OVER (PARTITION BY ward) FROM seen LIMIT 1";
    assert_eq!(ann.rows(wards).await.unwrap(), [["4"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn values_without_quotes_are_not_in_the_log() {
    let served = serve(PEOPLE).await;
    let mut ann = connect(&served, ANALYST).await;
    for wrong in [
        "SELECT zip FROM seen WHERE illness = Smith",
        "SELECT zip FROM seen WHERE illness = \u{2019}Smith\u{2019}",
        "SELECT smith(zip) FROM seen",
        "EXECUTE pp(smith)",
    ] {
        ann.failure(wrong).await;
    }
    let log = connect(&served, OWNER).await.rows("SHOW COMPLIANCE LOG").await.unwrap();
    assert!(log.iter().any(|entry| entry[3] == "SELECT zip FROM seen WHERE illness = ?"), "{log:?}");
    assert!(!format!("{log:?}").to_lowercase().contains("smith"), "{log:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prepared_statement_of_a_view_with_other_columns_is_refused() {
    let served = serve(PEOPLE).await;
    let ann = connect(&served, ANALYST).await;
    let prepared = ann.client.prepare("SELECT * FROM seen").await.unwrap();
    let fewer = "CREATE OR REPLACE ANONYMIZATION_VIEW seen ON SELECT name, age FROM people
        WITH ANONYMIZATION_ID name ANONYMIZATION_QUASI_ID (age) name REFERENCES choices (k, level)";
    connect(&served, OWNER).await.rows(fewer).await.unwrap();
    let error = ann.client.query(&prepared, &[]).await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "0A000", "{error}");
    assert_eq!(ann.client.query("SELECT age FROM seen", &[]).await.unwrap().len(), 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_that_can_not_be_prepared_are_recorded() {
    let served = serve(PEOPLE).await;
    let ann = connect(&served, ANALYST).await;
    for wrong in [
        "SELECT name FROM people",
        "SELECT zip FROM seen WHERE nothing = $1",
        "SELECT repeat(zip, length(ward)) FROM seen",
    ] {
        assert!(ann.client.prepare(wrong).await.is_err(), "{wrong}");
    }
    let right = ann.client.prepare("SELECT zip FROM seen WHERE illness = $1").await.unwrap();
    let count = "SELECT count(*) FROM seen";
    ann.client.query(count, &[]).await.unwrap();
    ann.client.query(&right, &[&"flu"]).await.unwrap();
    let log = connect(&served, OWNER).await.rows("SHOW COMPLIANCE LOG").await.unwrap();
    let of_ann = log.iter().filter(|entry| entry[2] == ANALYST);
    let of_ann: Vec<[&str; 2]> = of_ann.map(|entry| [entry[3].as_str(), &entry[7]]).collect();
    assert_eq!(
        of_ann,
        [
            ["SELECT name FROM people", "failed"],
            ["SELECT zip FROM seen WHERE nothing = $1", "failed"],
            ["SELECT repeat(zip, length(ward)) FROM seen", "failed"],
            [count, "answered"],
            ["SELECT zip FROM seen WHERE illness = $1", "answered"],
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn prepared_statements_can_be_forgotten_and_are_not_many() {
    let served = serve(PEOPLE).await;
    let mut ann = connect(&served, ANALYST).await;
    ann.rows("PREPARE Q AS SELECT ward FROM seen; PREPARE \"Q\" AS SELECT zip FROM seen").await.unwrap();
    ann.rows("DEALLOCATE q").await.unwrap();
    ann.failure("EXECUTE q").await;
    assert_eq!(ann.rows("EXECUTE \"Q\"").await.unwrap().len(), 8);
    assert_eq!(
        ann.failure("DEALLOCATE q").await,
        ("26000".to_owned(), "there is no prepared statement \"q\"".to_owned())
    );
    for forget in ["DEALLOCATE ALL", "DISCARD ALL"] {
        ann.rows("PREPARE again AS SELECT ward FROM seen").await.unwrap();
        ann.rows(forget).await.unwrap();
        ann.failure("EXECUTE again").await;
    }
    for number in 0..1_000 {
        ann.rows(&format!("PREPARE p{number} AS SELECT 1")).await.unwrap();
    }
    assert_eq!(ann.failure("PREPARE more AS SELECT 1").await.0, "53400");
    ann.rows("DEALLOCATE p7; PREPARE more AS SELECT 1").await.unwrap();
    ann.rows("DEALLOCATE ALL").await.unwrap();
    // A parsed statement takes more memory than its text.
    let long = format!("SELECT 1 IN ({})", vec!["1"; 40_000].join(","));
    ann.rows(&format!("PREPARE a AS {long}; PREPARE b AS {long}")).await.unwrap();
    assert_eq!(ann.failure(&format!("PREPARE c AS {long}")).await.0, "53400");
    let error = ann.client.prepare(&long).await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "53400");
}

/// There are more statements than processors, and nothing can stop any of these statements.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_that_compute_without_a_pause_keep_nobody_from_being_heard() {
    let served = serve(PEOPLE).await;
    let held = Held::register(&served.engine);
    let n_busy = 2 * std::thread::available_parallelism().unwrap().get();
    let mut asked = Vec::new();
    for _ in 0..n_busy {
        let mut owner = connect(&served, OWNER).await;
        asked.push(tokio::spawn(async move { owner.rows("SELECT held(7)").await }));
    }
    wait_until("all of them compute", || held.n_held() == n_busy).await;
    let mut ann = connect(&served, ANALYST).await;
    assert_eq!(ann.rows("SELECT ward FROM seen").await.unwrap().len(), 8);
    held.let_go();
    for asked in asked {
        assert_eq!(asked.await.unwrap().unwrap(), [["7"]]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_that_would_take_all_memory_are_refused() {
    let served = serve(PEOPLE).await;
    let mut ann = connect(&served, ANALYST).await;
    for sql in [
        "SELECT approx_percentile_cont(x, 0.5, 1000000000000000) FROM generate_series(1, 3) AS a (x)",
        "SELECT array_length(array_repeat('abcdefgh', 2000000000))",
        "SELECT length(repeat('a', 2000000000))",
        "SELECT ward FROM seen WHERE zip = repeat('1', 2000000000)",
        "EXPLAIN SELECT repeat('a', 2000000000)",
        "PREPARE p AS SELECT repeat('a', 2000000000)",
    ] {
        assert_eq!(ann.failure(sql).await.0, "54000", "{sql}");
    }
    assert!(ann.client.query("SELECT repeat('a', $1)", &[&2_000_000_000_i64]).await.is_err());
    ann.failure("SELECT * FROM generate_series(1, length(repeat('a', 2000000000)))").await;
    let chain: Vec<String> =
        (1..30).map(|n| format!("t{n} AS (SELECT a.x FROM t{0} AS a CROSS JOIN t{0} AS b)", n - 1)).collect();
    let grown = format!("WITH t0 AS (SELECT 1 AS x), {} SELECT count(*) FROM t29", chain.join(", "));
    assert_eq!(ann.failure(&grown).await.0, "54001");
    assert_eq!(ann.rows("SELECT ward FROM seen").await.unwrap().len(), 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_memory_of_prepared_statements_is_counted() {
    let served = serve_as(PEOPLE, |configuration| configuration.query_memory = 64).await;
    let long = format!("SELECT 1 WHERE 1 IN ({})", vec!["0"; 20_000].join(", "));
    let (first, second) = (connect(&served, ANALYST).await, connect(&served, ANALYST).await);
    let kept = first.client.prepare(&long).await.unwrap();
    let error = second.client.prepare(&long).await.err().unwrap();
    assert_eq!(error.code().unwrap().code(), "53200", "{error}");
    drop(kept);
    first.client.query("SELECT zip FROM seen", &[]).await.unwrap();
    second.client.prepare(&long).await.unwrap();
}
