//! Damaged files, full disks and wrong use, which must lose nothing.

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use chrono::{DateTime, Utc};
use kohort_crashkit::{Disk, Fault};
use kohort_sql::policy::ComplianceLog;
use kohort_sql::{Engine, Session, SqlError};
use kohort_store::StoreError;

use crate::folder::{analyst, known, open, open_by, sorted, try_open};
use crate::session::{owner, rows, try_rows};

const CLAUSES: &str = "WITH ANONYMIZATION_ID name ANONYMIZATION_QUASI_ID (age DGH_NAME age)
    ANONYMIZATION_SENSITIVE_ATTR (disease)";

/// The numbers of rows that are shown, pending, hidden and leaving.
async fn standing(engine: &Engine, session: &mut Session) -> [usize; 4] {
    let view = &rows(session, "SHOW ANONYMIZATION_VIEWS").await[0];
    let n_of = |from_end: usize| view[view.len() - from_end].parse::<usize>().unwrap();
    [rows(&mut analyst(engine), "SELECT * FROM v").await.len(), n_of(4), n_of(3), n_of(2)]
}

#[tokio::test]
async fn persons_are_named_by_values_of_any_type() {
    let types = [
        ("BIGINT", ["1", "2", "-3", "4", "5"]),
        ("DOUBLE", ["1", "2.5", "3e10", "-0.001", "5"]),
        ("DECIMAL(10, 2)", ["1", "2.50", "3.1", "4", "5.05"]),
        ("DATE", ["'2026-01-01'", "'2026-01-02'", "'1901-02-03'", "'2026-01-04'", "'2026-01-05'"]),
        (
            "TIMESTAMP",
            ["'2026-01-01 00:00:00'", "'2026-01-01 00:00:00.5'", "'2026-01-02'", "'1950-01-01'", "'2027-01-01'"],
        ),
        ("VARCHAR", ["''", "' '", "'*'", "'o''brien'", "'Ü;\"'"]),
    ];
    for (data_type, names) in types {
        let folder = tempfile::tempdir().unwrap();
        let engine = open(folder.path()).await;
        let mut session = owner(&engine);
        let table = format!("CREATE TABLE patient (name {data_type} PRIMARY KEY, age INT, disease TEXT);");
        rows(&mut session, &format!("{table} CREATE DGH age FROM STEPS (10, 50);")).await;
        let row = |name: &str| format!("INSERT INTO patient VALUES ({name}, 21, 'flu');");
        rows(&mut session, &names[..2].iter().map(|name| row(name)).collect::<String>()).await;
        let view = format!("CREATE MATERIALIZED ANONYMIZATION_VIEW v ON SELECT * FROM patient {CLAUSES} K 2");
        rows(&mut session, &view).await;
        assert_eq!(standing(&engine, &mut session).await, [2, 0, 0, 0], "{data_type}");
        rows(&mut session, &row(names[2])).await;
        assert_eq!(standing(&engine, &mut session).await, [2, 1, 0, 0], "{data_type}");
        rows(&mut session, &format!("DELETE FROM patient WHERE name = {}", names[2])).await;
        assert_eq!(standing(&engine, &mut session).await, [2, 0, 0, 0], "{data_type}");
        rows(&mut session, &format!("{}{}", row(names[3]), row(names[4]))).await;
        assert_eq!(standing(&engine, &mut session).await, [4, 0, 0, 0], "{data_type}");
        rows(&mut session, &format!("DELETE FROM patient WHERE name = {}", names[0])).await;
        assert_eq!(standing(&engine, &mut session).await, [4, 0, 0, 1], "{data_type}");
        rows(&mut session, &format!("UPDATE patient SET name = {0} WHERE name = {1}", names[0], names[3])).await;
        let [_, _, _, n_leaving] = standing(&engine, &mut session).await;
        assert_eq!(n_leaving, 2, "{data_type}");
        rows(&mut session, "DELETE FROM patient").await;
        assert_eq!(standing(&engine, &mut session).await, [0, 0, 0, 0], "{data_type}");
    }
}

#[tokio::test]
async fn names_may_hold_quotes_and_semicolons() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut session = owner(&engine);
    let made_by = r#"
        CREATE TABLE "a'; DROP TABLE ""t" ("na;me" TEXT PRIMARY KEY, "a""ge" INT, "dis'ease" TEXT);
        INSERT INTO "a'; DROP TABLE ""t" VALUES ('a', 21, 'flu'), ('b', 22, 'gout');
        CREATE DGH "d'; gh" FROM STEPS (10, 50);
        CREATE MATERIALIZED ANONYMIZATION_VIEW "v'; ""w" ON SELECT * FROM "a'; DROP TABLE ""t" WITH ANONYMIZATION_ID "na;me"
        ANONYMIZATION_QUASI_ID ("a""ge" DGH_NAME "d'; gh") ANONYMIZATION_SENSITIVE_ATTR ("dis'ease") K 2;
        CREATE ANONYMIZATION_VIEW "c'; ""w" ON SELECT * FROM "a'; DROP TABLE ""t" WITH ANONYMIZATION_ID "na;me"
        ANONYMIZATION_QUASI_ID ("a""ge" DGH_NAME "d'; gh") ANONYMIZATION_SENSITIVE_ATTR ("dis'ease") K 2;
        CREATE VIEW "s'; ""w" AS SELECT "a""ge" FROM "a'; DROP TABLE ""t";"#;
    rows(&mut session, made_by).await;
    drop((session, engine));
    let engine = open(folder.path()).await;
    assert!(engine.take_lost().is_empty());
    let mut session = owner(&engine);
    rows(&mut session, r#"INSERT INTO "a'; DROP TABLE ""t" VALUES ('c', 23, 'flu'), ('d', 24, 'gout')"#).await;
    assert_eq!(rows(&mut analyst(&engine), r#"SELECT "a""ge" FROM "v'; ""w" WHERE "a""ge" = 23"#).await.len(), 4);
    assert_eq!(rows(&mut session, r#"SELECT * FROM "s'; ""w""#).await.len(), 4);
    rows(&mut session, r#"DROP ANONYMIZATION_VIEW "v'; ""w"; DROP ANONYMIZATION_VIEW "c'; ""w"; DROP VIEW "s'; ""w";"#)
        .await;
    rows(&mut session, r#"DROP TABLE "a'; DROP TABLE ""t"; DROP DGH "d'; gh""#).await;
}

async fn people(engine: &Engine) -> Session {
    let mut session = owner(engine);
    let made_by = format!(
        "CREATE TABLE patient (name TEXT, age TEXT, disease TEXT);
         CREATE TABLE choice (name TEXT, k INT);
         INSERT INTO patient VALUES ('a', '21', 'flu'), ('b', '22', 'gout');
         INSERT INTO choice VALUES ('*', 2);
         CREATE DGH age; INSERT INTO DGH age VALUES ('21', 'young'), ('22', 'young'), ('young', '*');
         CREATE MATERIALIZED ANONYMIZATION_VIEW v ON SELECT * FROM patient {CLAUSES} name REFERENCES choice (k)"
    );
    rows(&mut session, &made_by).await;
    session
}

#[tokio::test]
async fn a_row_that_no_dgh_takes_is_kept_and_hidden() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut session = people(&engine).await;
    rows(&mut session, "INSERT INTO patient VALUES ('c', '99', 'flu'), ('d', '21', 'flu')").await;
    assert_eq!(rows(&mut session, "SELECT count(*) FROM patient").await, [["4"]]);
    assert_eq!(standing(&engine, &mut session).await, [2, 1, 1, 0]);
    rows(&mut session, "UPDATE patient SET age = '22' WHERE name = 'c'").await;
    assert_eq!(standing(&engine, &mut session).await, [4, 0, 0, 0]);
    rows(&mut session, "UPDATE patient SET age = '99' WHERE name = 'a'").await;
    assert_eq!(standing(&engine, &mut session).await, [4, 0, 1, 1]);
}

#[tokio::test]
async fn a_second_row_of_a_person_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut session = people(&engine).await;
    assert!(try_rows(&mut session, "INSERT INTO patient VALUES ('a', '22', 'cold')").await.is_err());
    rows(
        &mut session,
        "BEGIN; INSERT INTO patient VALUES ('a', '22', 'cold'); DELETE FROM patient WHERE disease = 'flu'",
    )
    .await;
    rows(&mut session, "COMMIT").await;
    rows(&mut session, "BEGIN; INSERT INTO patient VALUES ('b', '22', 'cold')").await;
    assert!(try_rows(&mut session, "COMMIT").await.is_err());
    let patients = sorted(&mut session, "SELECT name, disease FROM patient").await;
    assert_eq!(patients, [["a", "cold"], ["b", "gout"]]);
}

#[tokio::test]
async fn tables_of_a_materialized_view_stay() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut session = people(&engine).await;
    for table in ["patient", "choice"] {
        assert!(try_rows(&mut session, &format!("DROP TABLE {table}")).await.is_err(), "{table}");
    }
    rows(&mut session, "DROP ANONYMIZATION_VIEW v; DROP TABLE patient; DROP TABLE choice").await;
}

#[tokio::test]
async fn choices_of_a_materialized_view_stand_in_a_stored_table() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut session = people(&engine).await;
    rows(&mut session, "CREATE VIEW doubled AS SELECT name, k * 2 AS k FROM choice").await;
    let view = format!(
        "CREATE MATERIALIZED ANONYMIZATION_VIEW w ON SELECT * FROM patient {CLAUSES} name REFERENCES doubled (k)"
    );
    assert!(try_rows(&mut session, &view).await.is_err());
}

#[tokio::test]
async fn choices_are_followed_whatever_the_case_of_their_columns() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut session = owner(&engine);
    let made_by = format!(
        "CREATE TABLE patient (name TEXT PRIMARY KEY, age INT, disease TEXT);
         CREATE TABLE choice (\"Name\" TEXT PRIMARY KEY, \"K\" INT);
         INSERT INTO patient VALUES ('a', 21, 'flu'), ('b', 22, 'gout');
         INSERT INTO choice VALUES ('*', 2);
         CREATE DGH age FROM STEPS (10, 50);
         CREATE MATERIALIZED ANONYMIZATION_VIEW v ON SELECT * FROM patient {CLAUSES} name REFERENCES choice (k)"
    );
    rows(&mut session, &made_by).await;
    rows(&mut session, "INSERT INTO choice VALUES ('b', 3)").await;
    assert_eq!(standing(&engine, &mut session).await, [2, 0, 1, 1]);
}

#[tokio::test]
async fn a_dropped_policy_may_not_be_imported_over_another_table() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut session = owner(&engine);
    let import = "IMPORT POLICY 'tests/slt/tables/policy.toml' INTO imported";
    rows(&mut session, import).await;
    let imported = sorted(&mut session, "SELECT * FROM imported").await;
    drop((session, engine));
    let engine = open(folder.path()).await;
    let mut session = owner(&engine);
    assert_eq!(sorted(&mut session, "SELECT * FROM imported").await, imported);
    rows(&mut session, import).await;
    rows(&mut session, "DROP TABLE imported; CREATE TABLE imported (a INT)").await;
    assert!(try_rows(&mut session, import).await.is_err());
    drop((session, engine));
    let engine = open(folder.path()).await;
    assert!(try_rows(&mut owner(&engine), import).await.is_err());
}

#[tokio::test]
async fn files_are_copied_as_the_table_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut session = owner(&engine);
    rows(&mut session, "CREATE TABLE home (zip TEXT, n INT, day DATE, note TEXT)").await;
    let csv = folder.path().join("home.csv");
    std::fs::write(&csv, "n,zip,day\n7,01234,2026-01-02\n,00000,\n8,\"a,b\",2026-02-03\n").unwrap();
    rows(&mut session, &format!("COPY home FROM '{}'", csv.display())).await;
    let expected =
        [["00000", "NULL", "NULL", "NULL"], ["01234", "7", "2026-01-02", "NULL"], ["a,b", "8", "2026-02-03", "NULL"]];
    assert_eq!(sorted(&mut session, "SELECT * FROM home").await, expected);
    let parquet = folder.path().join("home.parquet");
    rows(&mut session, &format!("COPY (SELECT * FROM home) TO '{}'", parquet.display())).await;
    rows(&mut session, &format!("DELETE FROM home; COPY home FROM '{}'", parquet.display())).await;
    assert_eq!(sorted(&mut session, "SELECT * FROM home").await, expected);
    std::fs::write(&csv, "n,zip\n1,02345\nmany,03456\n").unwrap();
    let error = try_rows(&mut session, &format!("COPY home FROM '{}'", csv.display())).await.unwrap_err();
    assert_eq!(error.to_string(), "row 2: the value of column 'n' does not fit its type Int32");
    std::fs::write(&csv, "n,zip\n1,02345\n2,03456,secret\n").unwrap();
    let error = try_rows(&mut session, &format!("COPY home FROM '{}'", csv.display())).await.unwrap_err();
    let said = error.to_string();
    assert!(said.contains("row 2: expected 2 cells, found 3") && !said.contains("secret"), "{said}");
    std::fs::write(&csv, "n,zap\n1,02345\n").unwrap();
    assert!(try_rows(&mut session, &format!("COPY home FROM '{}'", csv.display())).await.is_err());
    assert!(try_rows(&mut session, "COPY home FROM 'nowhere.csv'").await.is_err());
    assert_eq!(sorted(&mut session, "SELECT * FROM home").await, expected);
}

#[tokio::test]
async fn a_clock_that_goes_back_changes_nothing_that_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let seconds = Arc::new(AtomicI64::new(2_000_000_000));
    let told = Arc::clone(&seconds);
    let clock = Arc::new(move || DateTime::<Utc>::from_timestamp(told.load(Ordering::Relaxed), 0).unwrap());
    let engine = Engine::open(folder.path(), clock, ComplianceLog::new()).await.unwrap();
    let mut session = people(&engine).await;
    rows(&mut session, "INSERT INTO patient VALUES ('c', '21', 'flu')").await;
    seconds.store(-1_000_000_000, Ordering::Relaxed);
    assert_eq!(standing(&engine, &mut session).await, [2, 1, 0, 0]);
    rows(&mut session, "INSERT INTO patient VALUES ('d', '21', 'flu'); DELETE FROM patient WHERE name = 'a'").await;
    assert_eq!(standing(&engine, &mut session).await, [4, 0, 0, 1]);
}

#[tokio::test]
async fn a_damaged_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    drop(people(&engine).await);
    drop(engine);
    let file = folder.path().join("kohort.db");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    assert!(is_refused(folder.path()).await, "half a file");
    std::fs::write(&file, &whole).unwrap();
    let mut damaged = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
    damaged.seek(SeekFrom::Start(0)).unwrap();
    damaged.write_all(&[0x5a; 64]).unwrap();
    assert!(is_refused(folder.path()).await, "another beginning");
    std::fs::write(&file, &whole).unwrap();
    assert!(!is_refused(folder.path()).await, "as it was");
}

/// Whether a folder can't be opened, or its view can't be read.
async fn is_refused(folder: &Path) -> bool {
    match try_open(folder).await {
        Err(_) => true,
        Ok(engine) => try_rows(&mut analyst(&engine), "SELECT * FROM v").await.is_err(),
    }
}

#[tokio::test]
async fn nothing_takes_the_place_of_a_stored_table() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut session = people(&engine).await;
    let csv = folder.path().join("patient.csv");
    std::fs::write(&csv, "name,age,disease\nx,1,y\n").unwrap();
    let external = format!("EXTERNAL TABLE patient STORED AS CSV LOCATION '{}'", csv.display());
    for sql in [
        "CREATE OR REPLACE VIEW patient AS SELECT 1 AS x".to_owned(),
        "CREATE VIEW patient AS SELECT 1 AS x".to_owned(),
        format!("CREATE OR REPLACE {external}"),
        format!("CREATE {external}"),
        "CREATE OR REPLACE TABLE patient AS SELECT 1 AS x".to_owned(),
        format!("CREATE OR REPLACE ANONYMIZATION_VIEW patient ON SELECT * FROM patient {CLAUSES} K 2"),
        "CREATE OR REPLACE VIEW v AS SELECT 1 AS x".to_owned(),
        "CREATE TABLE v (x INT)".to_owned(),
    ] {
        let refusal = try_rows(&mut session, &sql).await;
        assert!(matches!(refusal, Err(SqlError::Taken { .. })), "{sql}: {refusal:?}");
    }
    drop((session, engine));
    let engine = open(folder.path()).await;
    assert!(engine.take_lost().is_empty());
    assert_eq!(rows(&mut owner(&engine), "SELECT * FROM patient").await.len(), 2);
}

#[tokio::test]
async fn the_schema_stays_and_nothing_is_dropped_by_a_prepared_statement() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut session = people(&engine).await;
    for sql in [
        "DROP SCHEMA public CASCADE",
        "CREATE SCHEMA other",
        "CREATE SCHEMA IF NOT EXISTS other",
        "CREATE DATABASE other",
    ] {
        let refusal = try_rows(&mut session, sql).await;
        assert!(matches!(refusal, Err(SqlError::OneSchema)), "{sql}: {refusal:?}");
    }
    for sql in ["DROP TABLE patient", "CREATE OR REPLACE VIEW patient AS SELECT 1 AS x", "DROP SCHEMA public CASCADE"] {
        let refusal = try_rows(&mut session, &format!("PREPARE p AS {sql}; EXECUTE p")).await;
        assert!(matches!(refusal, Err(SqlError::NotPrepared)), "{sql}: {refusal:?}");
    }
    assert_eq!(rows(&mut session, "SELECT * FROM patient").await.len(), 2);
    assert_eq!(rows(&mut analyst(&engine), "SELECT * FROM v").await.len(), 2);
}

#[tokio::test]
async fn a_view_that_is_read_does_not_come_to_move() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut session = people(&engine).await;
    rows(&mut session, &format!("CREATE ANONYMIZATION_VIEW computed ON SELECT * FROM patient {CLAUSES} K 2")).await;
    let moving = format!("MATERIALIZED ANONYMIZATION_VIEW computed ON SELECT * FROM patient {CLAUSES} K 2");
    let refusal = try_rows(&mut session, &format!("CREATE OR REPLACE {moving}")).await;
    assert!(matches!(refusal, Err(SqlError::Computed { .. })), "{refusal:?}");
    assert_eq!(rows(&mut analyst(&engine), "SELECT * FROM computed").await.len(), 2);
    rows(&mut session, &format!("DROP ANONYMIZATION_VIEW computed; CREATE {moving}")).await;
}

#[tokio::test]
async fn an_update_that_would_find_others_a_second_time_leaves_a_view_that_agrees() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut session = people(&engine).await;
    let more: Vec<String> = (0..200).map(|number| format!("('p{number}', '2{}', 'flu')", 1 + number % 2)).collect();
    rows(&mut session, &format!("INSERT INTO patient VALUES {}", more.join(", "))).await;
    for _ in 0..3 {
        rows(&mut session, "UPDATE patient SET name = name || 'x' WHERE random() < 0.5").await;
        let [n_shown, n_pending, n_hidden, n_leaving] = standing(&engine, &mut session).await;
        assert_eq!(n_shown + n_pending + n_hidden, 202 + n_leaving);
    }
}

#[tokio::test]
async fn letters_beyond_ascii_are_as_they_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut session = owner(&engine);
    let view = |name: &str, ages: [u32; 2]| {
        format!(
            "CREATE TABLE \"of {name}\" (name TEXT PRIMARY KEY, age INT, disease TEXT);
             INSERT INTO \"of {name}\" VALUES ('a', {}, 'flu'), ('b', {}, 'gout');
             CREATE MATERIALIZED ANONYMIZATION_VIEW \"{name}\" ON SELECT * FROM \"of {name}\" {CLAUSES} K 2;",
            ages[0], ages[1]
        )
    };
    let both = format!("{} {}", view("Ämter", [20, 20]), view("ämter", [21, 21]));
    rows(&mut session, &format!("CREATE DGH age FROM STEPS (10, 50); {both}")).await;
    for (written, shown) in [("Ämter", "20"), ("ÄMTER", "20"), ("ämter", "21"), ("äMTER", "21"), ("\"Ämter\"", "20")]
    {
        // Once without a plan, and once with a plan.
        for order in ["", "ORDER BY age"] {
            let asked = format!("SELECT age FROM {written} WHERE age = {shown} {order}");
            assert_eq!(rows(&mut analyst(&engine), &asked).await, [[shown], [shown]], "{asked}");
        }
    }
}

#[tokio::test]
async fn imported_choices_expire_by_a_calendar_that_does_not_go_back() {
    let folder = tempfile::tempdir().unwrap();
    let day = Arc::new(AtomicU32::new(100));
    let engine = open_by(folder.path(), &day).await;
    let mut session = owner(&engine);
    let import = "IMPORT POLICY 'tests/slt/tables/policy.toml' INTO imported";
    rows(&mut session, import).await;
    let imported = sorted(&mut session, "SELECT * FROM imported").await;
    day.store(5, Ordering::Relaxed);
    rows(&mut session, import).await;
    assert_eq!(sorted(&mut session, "SELECT * FROM imported").await, imported);
}

const FULL: &str = "KOHORT_FULL_DISK";

/// Runs a test in a process of its own, because a process has only one simulated disk.
fn with_own_disk(name: &str, test: impl Future<Output = ()>) {
    if std::env::var_os(FULL).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(test);
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("abuse::{name}"), "--nocapture"]).env(FULL, "");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_full_disk_fails_a_statement_and_nothing_else() {
    with_own_disk("a_full_disk_fails_a_statement_and_nothing_else", fill_disk());
}

#[test]
fn a_disk_that_fails_in_a_transaction_takes_all_of_it_and_the_next_statement_is_not_alone() {
    with_own_disk(
        "a_disk_that_fails_in_a_transaction_takes_all_of_it_and_the_next_statement_is_not_alone",
        fail_in_transaction(),
    );
}

#[test]
fn a_disk_that_fails_leaves_what_is_there_when_the_folder_is_opened_again() {
    with_own_disk("a_disk_that_fails_leaves_what_is_there_when_the_folder_is_opened_again", fail_definitions());
}

async fn fail_in_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::at(folder.path());
    let engine = open(folder.path()).await;
    let mut session = owner(&engine);
    rows(&mut session, "CREATE TABLE note (text TEXT)").await;
    for fault in [Fault::Full, Fault::Error] {
        rows(&mut session, "BEGIN; INSERT INTO note VALUES ('first')").await;
        // More rows than SQLite holds in memory before a commit.
        disk.fail_at(disk.n_calls(), fault);
        let large = "INSERT INTO note SELECT repeat('x', 1000000) FROM generate_series(1, 80)";
        let error = try_rows(&mut session, large).await.unwrap_err();
        disk.fail_at(u64::MAX, fault);
        match fault {
            Fault::Full => assert!(matches!(error, SqlError::Store(StoreError::Full)), "{error:?}"),
            _ => assert!(matches!(error, SqlError::Store(StoreError::Sqlite { .. })), "{error:?}"),
        }
        for sql in ["INSERT INTO note VALUES ('alone')", "INSERT INTO note SELECT 'alone'", "SAVEPOINT here"] {
            let refusal = try_rows(&mut session, sql).await;
            assert!(matches!(refusal, Err(SqlError::TransactionLost)), "{sql}: {refusal:?}");
        }
        rows(&mut session, "ROLLBACK").await;
        assert_eq!(rows(&mut session, "SELECT count(*) FROM note").await, [["0"]]);
    }
    rows(&mut session, "BEGIN; INSERT INTO note VALUES ('first'); INSERT INTO note VALUES ('second'); COMMIT").await;
    assert_eq!(rows(&mut session, "SELECT count(*) FROM note").await, [["2"]]);
}

async fn fail_definitions() {
    let folder = tempfile::tempdir().unwrap();
    let files = tempfile::tempdir().unwrap();
    let csv = files.path().join("kind.csv");
    std::fs::write(&csv, "disease,kind\nflu,virus\n").unwrap();
    let external = format!(
        "CREATE EXTERNAL TABLE kind STORED AS CSV LOCATION '{}' OPTIONS (format.has_header 'true')",
        csv.display()
    );
    let view = |name: &str, kind: &str| {
        format!("CREATE {kind} ANONYMIZATION_VIEW {name} ON SELECT * FROM patient {CLAUSES} K 2")
    };
    let statements = [
        "CREATE DGH zip",
        "INSERT INTO DGH zip VALUES ('1', '*')",
        "CREATE TABLE other AS SELECT * FROM patient",
        "CREATE VIEW young AS SELECT * FROM patient WHERE age = '21'",
        &external,
        "IMPORT POLICY 'tests/slt/tables/policy.toml' INTO imported",
        &view("kept", "MATERIALIZED"),
        &view("computed", ""),
        "DROP ANONYMIZATION_VIEW computed",
        "DROP ANONYMIZATION_VIEW kept",
        "DROP TABLE imported",
        "DROP TABLE kind",
        "DROP VIEW young",
        "DROP TABLE other",
        "DROP DGH zip",
    ];
    let names = ["patient", "other", "young", "kind", "imported", "kept", "computed"];
    let disk = Disk::at(folder.path());
    let mut engine = open(folder.path()).await;
    drop(people(&engine).await);
    let mut n_failures = 0;
    for sql in statements {
        for n_calls in [0, 1, 2] {
            let before = known(&engine, &names).await;
            disk.fail_at(disk.n_calls() + n_calls, Fault::Full);
            let done = try_rows(&mut owner(&engine), sql).await;
            disk.fail_at(u64::MAX, Fault::Full);
            let after = known(&engine, &names).await;
            drop(engine);
            engine = open(folder.path()).await;
            assert_eq!(known(&engine, &names).await, after, "{sql} at {n_calls}: {done:?}");
            if done.is_ok() {
                assert_ne!(after, before, "{sql}");
                break;
            }
            n_failures += 1;
            assert_eq!(after, before, "{sql} at {n_calls}");
        }
        // Do it now if it failed each time, because later statements need it.
        let _ = try_rows(&mut owner(&engine), sql).await;
    }
    assert!(n_failures >= statements.len(), "{n_failures}");
}

async fn fill_disk() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::at(folder.path());
    let engine = open(folder.path()).await;
    let mut session = people(&engine).await;
    let mut n_failures = 0;
    for number in 0..40 {
        let before = sorted(&mut session, "SELECT * FROM patient").await;
        let shown = standing(&engine, &mut session).await;
        disk.fail_at(disk.n_calls() + number / 2, Fault::Full);
        let done = try_rows(&mut session, &format!("INSERT INTO patient VALUES ('p{number}', '21', 'flu')")).await;
        disk.fail_at(u64::MAX, Fault::Full);
        let after = sorted(&mut session, "SELECT * FROM patient").await;
        match done {
            Ok(_) => assert_eq!(after.len(), before.len() + 1),
            Err(_) => {
                n_failures += 1;
                assert_eq!(after, before);
                assert_eq!(standing(&engine, &mut session).await, shown);
            }
        }
        let [n_shown, n_pending, n_hidden, n_leaving] = standing(&engine, &mut session).await;
        assert_eq!(n_shown + n_pending + n_hidden, after.len() + n_leaving);
    }
    assert!(n_failures > 0, "the disk was never full");
}
