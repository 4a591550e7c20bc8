//! Tables of a PostgreSQL server: their cells, the conditions that are sent to the server, and views over them.

mod server;

use kohort_sql::postgres::PostgresError;
use kohort_sql::view::ViewError;
use kohort_sql::{Engine, Session, SqlError};

use crate::folder::{analyst, open, sorted};
use crate::session::{engine, owner, rows, try_rows};
use server::{Database, PASSWORD, Server, write_private};

const PATIENTS: &str = "
    CREATE TABLE patient (name text PRIMARY KEY, age integer, zip char(6), born date, disease text, ward varchar(10));
    INSERT INTO patient VALUES
        ('a', 21, '88512', '2004-05-01', 'flu', 'north'), ('b', 22, '88513', '2003-05-01', 'gout', 'south'),
        ('c', 35, '88591', '1990-05-01', 'flu', 'north'), ('d', 36, '88592', '1989-05-01', 'cold', 'north'),
        ('e', 52, '99111', '1973-05-01', 'cold', NULL), ('F', NULL, '99112', NULL, 'flu', 'South');
    CREATE TABLE choice (name text, k integer, ward_op boolean);
    INSERT INTO choice VALUES ('*', 2, true);";

const SEEN: &str = "
    CREATE ANONYMIZATION_VIEW seen ON SELECT name, age, disease, ward FROM patient
    WITH ANONYMIZATION_ID name ANONYMIZATION_QUASI_ID (age)
    ANONYMIZATION_SENSITIVE_ATTR (disease) ANONYMIZATION_OTHER (ward) name REFERENCES choice (k);";

async fn problem(session: &mut Session, sql: &str) -> PostgresError {
    match try_rows(session, sql).await {
        Err(SqlError::Postgres(problem)) => {
            let told = format!("{problem} {problem:?} {:?}", problem.hint());
            assert!(!told.contains(PASSWORD), "{told}");
            problem
        }
        other => panic!("{sql} gave {other:?}"),
    }
}

#[tokio::test]
async fn every_type_is_read_as_it_is() {
    let server = Server::running();
    let made_by = "
        CREATE TYPE mood AS ENUM ('fine', 'ill');
        CREATE TABLE everything (
            a boolean, b smallint, c integer, d bigint, e real, f double precision, g numeric(8, 3), h text, i varchar(9),
            j char(5), k uuid, l mood, m bytea, n date, o timestamp, p timestamptz, q numeric(38), r name);
        INSERT INTO everything VALUES
            (true, -2, 70000, -5000000000, 0.5, -0.25, -12.050, 'hé', 'x', 'ab', '0b6e5b54-8d3c-4f4e-9d43-2d6e4d3c1a00', 'ill',
             '\\x6869', '1969-12-31', '1999-12-31 23:59:59.5', '2026-01-01 01:00:00+01', 99999999999999999999999999999999999999, 'n'),
            (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);";
    let database = server.database("every_type", made_by).await;
    let engine = engine();
    let mut session = owner(&engine);
    rows(&mut session, &database.external("everything")).await;
    let found = sorted(&mut session, "SELECT * FROM everything").await;
    let expected = [
        "true",
        "-2",
        "70000",
        "-5000000000",
        "0.5",
        "-0.25",
        "-12.050",
        "hé",
        "x",
        "ab",
        "0b6e5b54-8d3c-4f4e-9d43-2d6e4d3c1a00",
        "ill",
        "hi",
        "1969-12-31",
        "1999-12-31T23:59:59.500",
        "2026-01-01T00:00:00Z",
        "99999999999999999999999999999999999999",
        "n",
    ];
    assert_eq!(found, [vec!["NULL"; 18], expected.to_vec()]);
}

#[tokio::test]
async fn queries_sent_to_the_server_answer_like_those_of_a_local_table() {
    let server = Server::running();
    let database = server.database("asked", PATIENTS).await;
    let engine = engine();
    let mut session = owner(&engine);
    rows(&mut session, &database.external("patient")).await;
    rows(&mut session, "CREATE TABLE here AS SELECT * FROM patient").await;
    // A condition, and how many of its parts are sent to the server.
    let conditions = [
        ("age = 22", 1),
        ("22 <= age AND age < 36", 2),
        ("age BETWEEN 22 AND 36", 2),
        ("age IN (21, 35, 52, 99)", 1),
        ("age = 5000000000", 0),
        ("age IS NULL", 1),
        ("age IS NOT NULL AND ward = 'north'", 2),
        ("zip = '88512'", 1),
        ("zip = '88512 '", 1),
        ("name > 'E'", 1),
        ("name <= 'F' OR age > 50", 1),
        ("name = 'a''; DROP TABLE patient; --'", 1),
        ("born < DATE '1990-01-01'", 1),
        ("disease LIKE 'f%'", 0),
        ("length(name) = 1 AND age < 30", 1),
        ("age + 1 = 23", 0),
    ];
    for (condition, n_asked) in conditions {
        let [there, here] = ["patient", "here"].map(|table| format!("SELECT * FROM {table} WHERE {condition}"));
        let found = sorted(&mut session, &there).await;
        assert_eq!(found, sorted(&mut session, &here).await, "{condition}");
        let plan = rows(&mut session, &format!("EXPLAIN {there}")).await.concat().concat();
        // For a condition that no row can satisfy, the server is not asked.
        if n_asked > 0 {
            assert!(plan.contains(&format!("table=public.patient, conditions={n_asked}")), "{condition}: {plan}");
        }
    }
    assert_eq!(rows(&mut session, "SELECT count(*) FROM patient").await, [["6"]]);
    assert_eq!(rows(&mut session, "SELECT name FROM patient LIMIT 2").await.len(), 2);
    let plan = rows(&mut session, "EXPLAIN SELECT name FROM patient LIMIT 2").await.concat().concat();
    assert!(plan.contains("conditions=0, limit=2"), "{plan}");
}

#[tokio::test]
async fn texts_of_a_server_in_another_encoding_compare_as_they_do_here() {
    let server = Server::running();
    // In this encoding Cyrillic letters are not in the order of their code points.
    let made_by = "CREATE TABLE word (word text); INSERT INTO word VALUES ('я'), ('а'), ('ё'), ('z'), ('A'), (NULL);";
    let database = server.database_in("cyrillic", "KOI8R", made_by).await;
    let engine = engine();
    let mut session = owner(&engine);
    rows(&mut session, &database.external("word")).await;
    rows(&mut session, "CREATE TABLE here AS SELECT * FROM word").await;
    for (condition, n_asked) in [
        ("word = 'z'", 1),
        ("word IN ('z', 'A')", 1),
        ("word = 'ё'", 0),
        ("word = '🦆'", 0),
        ("word IN ('z', '🦆')", 0),
        ("word > 'б'", 0),
        ("word < 'z'", 0),
        ("word IS NULL OR word = 'A'", 1),
    ] {
        let [there, here] = ["word", "here"].map(|table| format!("SELECT * FROM {table} WHERE {condition}"));
        assert_eq!(sorted(&mut session, &there).await, sorted(&mut session, &here).await, "{condition}");
        let plan = rows(&mut session, &format!("EXPLAIN {there}")).await.concat().concat();
        assert!(plan.contains(&format!("table=public.word, conditions={n_asked}")), "{condition}: {plan}");
    }
    // Another database in its place has another encoding than was checked.
    let made_by = "CREATE TABLE word (word text); INSERT INTO word VALUES ('я');";
    server.database_in("cyrillic", "UTF8", made_by).await;
    let problem = problem(&mut session, "SELECT * FROM word").await;
    assert!(matches!(problem, PostgresError::Changed { .. }), "{problem}");
}

#[tokio::test]
async fn a_scan_is_one_state_and_writes_nothing() {
    let server = Server::running();
    let made_by = "CREATE VIEW state AS SELECT current_setting('transaction_isolation') AS isolation,
                   current_setting('transaction_read_only') AS read_only, current_setting('search_path') AS path";
    let database = server.database("state", made_by).await;
    let engine = engine();
    let mut session = owner(&engine);
    rows(&mut session, &database.external("state")).await;
    assert_eq!(rows(&mut session, "SELECT * FROM state").await, [["repeatable read", "on", "pg_catalog"]]);
    for sql in ["INSERT INTO state VALUES ('a', 'b', 'c')", "DELETE FROM state", "UPDATE state SET path = ''"] {
        assert!(try_rows(&mut session, sql).await.is_err(), "{sql}");
    }
}

#[tokio::test]
async fn every_fault_is_named() {
    let server = Server::running();
    let made_by = "CREATE TABLE shape (name text, area polygon); CREATE TABLE endless (day date);
                   INSERT INTO endless VALUES ('infinity'); CREATE TABLE open_number (n numeric);
                   CREATE SCHEMA other; CREATE TABLE other.\"My \"\"Table\" (n integer);
                   INSERT INTO other.\"My \"\"Table\" VALUES (7);";
    let database = server.database("wrong", made_by).await;
    let engine = engine();
    let mut session = owner(&engine);
    let unsupported = problem(&mut session, &database.external("shape")).await;
    assert_eq!(
        unsupported.to_string(),
        "column 'area' has the type polygon, which is not supported in PostgreSQL tables"
    );
    assert!(matches!(
        problem(&mut session, &database.external("open_number")).await,
        PostgresError::UnsupportedType { column, .. } if column == "n"
    ));
    let unknown = problem(&mut session, &database.external("nobody")).await;
    assert_eq!(unknown.to_string(), "there is no table 'public.nobody' on the PostgreSQL server");
    rows(&mut session, &database.external("endless")).await;
    let infinite = problem(&mut session, "SELECT * FROM endless").await;
    assert_eq!(infinite.to_string(), "column 'day' of the PostgreSQL table contains an infinite date");
    database.client.batch_execute("ALTER TABLE endless RENAME COLUMN day TO night").await.unwrap();
    assert!(matches!(problem(&mut session, "SELECT * FROM endless").await, PostgresError::Changed { .. }));
    database.client.batch_execute("DROP TABLE endless").await.unwrap();
    assert!(matches!(problem(&mut session, "SELECT * FROM endless").await, PostgresError::UnknownTable { .. }));

    let table = database.external("mine").replace("OPTIONS (", "OPTIONS (schema 'other', \"table\" 'My \"Table', ");
    rows(&mut session, &table).await;
    assert_eq!(rows(&mut session, "SELECT * FROM mine").await, [["7"]]);
    let given = database.external("x").replace("TABLE x", "TABLE x (n INT)");
    assert_eq!(problem(&mut session, &given).await, PostgresError::ColumnsGiven);
    let option = database.external("x").replace("OPTIONS (", "OPTIONS (tabel 'x', ");
    assert_eq!(problem(&mut session, &option).await, PostgresError::Option { name: "tabel".to_owned() });

    let with_password = database.external("x").replace("ann@", &format!("ann:{}@", PASSWORD.replace(' ', "%20")));
    assert_eq!(problem(&mut session, &with_password).await, PostgresError::PasswordInLocation);
    let nowhere = database.external("x").replace("/wrong'", "/nowhere'");
    assert!(matches!(problem(&mut session, &nowhere).await, PostgresError::UnknownDatabase { .. }));
    let unreachable = "CREATE EXTERNAL TABLE x STORED AS POSTGRES LOCATION 'postgres://ann@localhost:1/wrong'";
    assert!(matches!(problem(&mut session, unreachable).await, PostgresError::Unreachable { .. }));

    let folder = tempfile::tempdir().unwrap();
    let passfile = folder.path().join("pgpass");
    write_private(&passfile, "*:*:*:ann:wrong horse\n");
    let location = &database.location;
    let with = |file: &std::path::Path| {
        let file = file.display();
        format!("CREATE EXTERNAL TABLE x STORED AS POSTGRES LOCATION '{location}' OPTIONS (passfile '{file}')")
    };
    assert!(matches!(problem(&mut session, &with(&passfile)).await, PostgresError::Rejected { .. }));
    write_private(&passfile, "*:*:*:bob:other horse\n");
    assert!(matches!(problem(&mut session, &with(&passfile)).await, PostgresError::NoPassword { .. }));
    assert!(matches!(problem(&mut session, &with(folder.path())).await, PostgresError::File { .. }));
}

#[tokio::test]
async fn a_server_is_believed_by_its_certificate() {
    let server = Server::running();
    let database = server.database("believed", PATIENTS).await;
    let engine = engine();
    let mut session = owner(&engine);
    let by_tls = database.external("patient").replace("/believed'", "/believed?sslmode=require'");
    assert!(matches!(problem(&mut session, &by_tls).await, PostgresError::Untrusted { .. }));
    let certificate = server.certificate();
    let known = format!("OPTIONS (root_certificate '{}', ", certificate.display());
    rows(&mut session, &by_tls.replace("OPTIONS (", &known)).await;
    assert_eq!(rows(&mut session, "SELECT count(*) FROM patient").await, [["6"]]);
    // The certificate is for localhost.
    let another_name = by_tls.replace("@localhost", "@127.0.0.1").replace("TABLE patient", "TABLE x");
    let another_name = another_name.replace("OPTIONS (", &known);
    assert!(matches!(problem(&mut session, &another_name).await, PostgresError::Untrusted { .. }));
}

#[tokio::test]
async fn a_password_is_neither_kept_nor_shown() {
    let server = Server::running();
    let database = server.database("kept", PATIENTS).await;
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut session = owner(&engine);
    rows(&mut session, &format!("{} {} {SEEN}", database.external("patient"), database.external("choice"))).await;
    let mut told = String::new();
    for sql in [
        "EXPLAIN VERBOSE SELECT * FROM patient",
        "SHOW ANONYMIZATION_VIEWS",
        "SHOW COMPLIANCE LOG",
        "SHOW CREATE TABLE patient",
        "SELECT * FROM information_schema.tables",
    ] {
        told += &rows(&mut session, sql).await.concat().concat();
    }
    assert!(!told.contains(PASSWORD));
    drop((session, engine));
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(PASSWORD.len()).any(|window| window == PASSWORD.as_bytes()));
    }
}

async fn viewed(database: &Database, engine: &Engine) -> Vec<Vec<String>> {
    let mut session = owner(engine);
    rows(&mut session, &format!("{} {} {SEEN}", database.external("patient"), database.external("choice"))).await;
    sorted(&mut analyst(engine), "SELECT * FROM seen").await
}

async fn is_stale(engine: &Engine) -> bool {
    match try_rows(&mut analyst(engine), "SELECT * FROM seen").await {
        Ok(_) => false,
        Err(SqlError::View(ViewError::Stale)) => true,
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_view_shows_a_table_of_a_server_as_it_was_verified() {
    let server = Server::running();
    let database = server.database("viewed", PATIENTS).await;
    let engine = engine();
    assert_eq!(viewed(&database, &engine).await.len(), 6);
    let state = rows(&mut analyst(&engine), "SHOW ANONYMIZATION_VIEWS").await;
    assert_eq!(state, [["seen", "usable: changes of its tables are noticed when it is read"]]);
    let found = rows(&mut analyst(&engine), "SELECT count(*) FROM seen WHERE age = 21").await;
    assert_eq!(found.len(), 1);
    for table in ["patient", "choice"] {
        assert!(try_rows(&mut analyst(&engine), &format!("SELECT * FROM {table}")).await.is_err(), "{table}");
    }
    let own = "CREATE EXTERNAL TABLE mine STORED AS POSTGRES LOCATION 'postgres://ann@localhost/viewed'";
    assert!(matches!(try_rows(&mut analyst(&engine), own).await, Err(SqlError::NotAllowed { .. })));
    let changes = [
        "INSERT INTO patient VALUES ('g', 23, '88512', NULL, 'flu', 'north')",
        "DELETE FROM patient WHERE name = 'g'",
        "UPDATE patient SET disease = 'gout' WHERE name = 'a'",
        "UPDATE patient SET ward = 'east' WHERE name = 'a'",
        "UPDATE choice SET ward_op = false",
        "INSERT INTO choice VALUES ('a', 3, true)",
    ];
    for change in changes {
        assert!(!is_stale(&engine).await, "before {change}");
        database.client.batch_execute(change).await.unwrap();
        assert!(is_stale(&engine).await, "after {change}");
        rows(&mut owner(&engine), "REFRESH ANONYMIZATION_VIEW seen").await;
    }
}

#[tokio::test]
async fn an_analyst_is_told_nothing_of_a_server_that_fails() {
    let server = Server::running();
    let database = server.database("failing", PATIENTS).await;
    let engine = engine();
    viewed(&database, &engine).await;
    for table in ["patient", "choice"] {
        let [gone, back] = [(table, "away"), ("away", table)].map(|(a, b)| format!("ALTER TABLE {a} RENAME TO {b}"));
        database.client.batch_execute(&gone).await.unwrap();
        for plan in ["anonymize_first", "select_first"] {
            let mut session = analyst(&engine);
            rows(&mut session, &format!("SET kohort.plan = '{plan}'")).await;
            let error = try_rows(&mut session, "SELECT * FROM seen").await.unwrap_err();
            assert!(matches!(&error, SqlError::View(ViewError::Query { .. })), "{error:?}");
            let told = format!("{error} {error:?}");
            assert!(["ann", "localhost", table].iter().all(|hidden| !told.contains(hidden)), "{told}");
        }
        database.client.batch_execute(&back).await.unwrap();
        assert!(!is_stale(&engine).await);
    }
}

#[tokio::test]
async fn a_table_of_a_server_is_there_when_a_folder_is_opened_again() {
    let server = Server::running();
    let database = server.database("reopened", PATIENTS).await;
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let before = viewed(&database, &engine).await;
    let kept = SEEN.replace("CREATE", "CREATE MATERIALIZED").replace("VIEW seen", "VIEW kept");
    let refused = try_rows(&mut owner(&engine), &kept).await;
    assert!(matches!(refused, Err(SqlError::View(ViewError::Materialized(_)))), "{refused:?}");
    drop(engine);
    let engine = open(folder.path()).await;
    assert_eq!(sorted(&mut analyst(&engine), "SELECT * FROM seen").await, before);
    drop(engine);
    database.client.batch_execute("UPDATE patient SET age = 23 WHERE name = 'a'").await.unwrap();
    let engine = open(folder.path()).await;
    assert!(is_stale(&engine).await);
    drop(engine);
    database.client.batch_execute("DROP TABLE patient").await.unwrap();
    let engine = open(folder.path()).await;
    let lost: Vec<String> = engine.take_lost().into_iter().map(|lost| lost.name).collect();
    assert_eq!(lost, ["patient", "seen"]);
    assert!(try_rows(&mut analyst(&engine), "SELECT * FROM seen").await.is_err());
    database.client.batch_execute(PATIENTS.split("CREATE TABLE choice").next().unwrap()).await.unwrap();
    rows(&mut owner(&engine), "REFRESH ANONYMIZATION_VIEW seen").await;
    assert_eq!(sorted(&mut analyst(&engine), "SELECT * FROM seen").await, before);
}
