//! A change and its record: both happen, or neither does.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::Utc;
use kohort_sql::access::{Accounts, MemoryRecords, Record, Records, UNASKED};
use kohort_sql::policy::ComplianceLog;
use kohort_sql::store::StoreRecords;
use kohort_sql::{Engine, Role, Session};

use crate::session::{owner, rows, try_rows};

const MADE: &str = "
    CREATE TABLE patient (name TEXT PRIMARY KEY, age INT);
    INSERT INTO patient VALUES ('a', 21), ('b', 22), ('c', 23), ('d', 64);
    CREATE DGH age FROM STEPS (10, 50);
    CREATE ANONYMIZATION_VIEW v ON SELECT name, age FROM patient WITH ANONYMIZATION_ID name
      ANONYMIZATION_QUASI_ID (age DGH_NAME age) K 2;
    CREATE ANONYMIZATION_VIEW other ON SELECT name, age FROM patient WITH ANONYMIZATION_ID name
      ANONYMIZATION_QUASI_ID (age DGH_NAME age) K 2;
    CREATE USER ann PASSWORD 'correct horse';
    GRANT SELECT ON v TO ann;
    GRANT PURPOSE care RECIPIENT nurse TO ann;";

/// A log on a full disk.
const FULL: &str = "/dev/full";

async fn open(folder: &Path, log: ComplianceLog) -> Engine {
    let engine = Engine::open(folder, Arc::new(Utc::now), log).await.unwrap();
    let records = StoreRecords::new(engine.store().unwrap().clone());
    engine.keep_accounts(Accounts::open(Box::new(records)).unwrap());
    engine
}

/// What statements can change.
async fn kept(folder: &Path) -> Vec<String> {
    let engine = open(folder, ComplianceLog::new()).await;
    let mut session = owner(&engine);
    let mut kept = Vec::new();
    for sql in ["SELECT * FROM patient ORDER BY name", "SHOW DGHS", "SHOW TABLES", "SHOW USERS", "SHOW GRANTS"] {
        kept.extend(rows(&mut session, sql).await.into_iter().map(|row| row.join(" ")));
    }
    let accounts = engine.accounts().unwrap();
    kept.push(format!("{:?}", accounts.user("ann").map(|user| user.verifier)));
    kept.sort();
    kept
}

/// The SQLSTATE with which a statement fails.
async fn state(session: &mut Session, sql: &str) -> &'static str {
    match try_rows(session, sql).await {
        Ok(rows) => panic!("{sql}: {rows:?}"),
        Err(error) => error.sqlstate(),
    }
}

#[tokio::test]
async fn a_change_that_can_not_be_recorded_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path(), ComplianceLog::new()).await;
    rows(&mut owner(&engine), MADE).await;
    drop(engine);
    let before = kept(folder.path()).await;
    let backup = folder.path().join("copy.sqlite");
    let copied = format!("BACKUP TO '{}'", backup.display());
    for sql in [
        "INSERT INTO patient VALUES ('e', 25)",
        "INSERT INTO patient SELECT 'e', 25",
        "UPDATE patient SET age = 99",
        "DELETE FROM patient",
        "CREATE TABLE made (x INT)",
        "CREATE TABLE made AS SELECT 1 AS x",
        "CREATE VIEW made AS SELECT 1 AS x",
        "CREATE DGH zip FROM MASK RIGHT",
        "DROP DGH age",
        "DROP ANONYMIZATION_VIEW v",
        "REFRESH ANONYMIZATION_VIEW v",
        "CREATE USER bob PASSWORD 'correct horse'",
        "GRANT PURPOSE study RECIPIENT lab TO ann",
        &copied,
        // A right that is taken away is gone in memory, but not in the data folder.
        "REVOKE SELECT ON v FROM ann",
        "REVOKE PURPOSE care RECIPIENT nurse FROM ann",
        "ALTER USER ann PASSWORD 'battery staple'",
        "DROP USER ann",
    ] {
        let engine = open(folder.path(), ComplianceLog::with_file(Path::new(FULL)).unwrap()).await;
        assert_eq!(state(&mut owner(&engine), sql).await, "53100", "{sql}");
        drop(engine);
        assert_eq!(kept(folder.path()).await, before, "{sql}");
    }
    assert!(!backup.exists());
}

#[tokio::test]
async fn a_statement_of_a_transaction_that_can_not_be_recorded_leaves_nothing_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path(), ComplianceLog::new()).await;
    rows(&mut owner(&engine), MADE).await;
    drop(engine);
    let engine = open(folder.path(), ComplianceLog::with_file(Path::new(FULL)).unwrap()).await;
    let mut session = owner(&engine);
    for sql in ["BEGIN", "INSERT INTO patient VALUES ('e', 25)", "DELETE FROM patient", "COMMIT"] {
        assert_eq!(state(&mut session, sql).await, "53100", "{sql}");
    }
    drop((session, engine));
    let engine = open(folder.path(), ComplianceLog::new()).await;
    assert_eq!(rows(&mut owner(&engine), "SELECT count(*) FROM patient").await, [["4"]]);
}

#[tokio::test]
async fn a_revocation_counts_at_once_even_if_it_can_t_be_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path(), ComplianceLog::new()).await;
    rows(&mut owner(&engine), MADE).await;
    drop(engine);
    let engine = open(folder.path(), ComplianceLog::with_file(Path::new(FULL)).unwrap()).await;
    let accounts = engine.accounts().unwrap();
    let (_, login) = accounts.verifier("ann");
    assert!(accounts.may_read(login.as_ref().unwrap(), "v"));
    let error = try_rows(&mut owner(&engine), "REVOKE SELECT ON v FROM ann").await.unwrap_err();
    insta::assert_snapshot!(error, @"this is in effect, but neither the change nor its log entry could be written, so a restart of the server would undo it: No space left on device (os error 28)");
    assert_eq!(
        error.hint().unwrap(),
        "make the compliance log writable; the next change of users or grants then writes both"
    );
    assert!(!accounts.may_read(login.as_ref().unwrap(), "v"));
    assert_eq!(accounts.views("ann"), BTreeSet::new());
    // As long as there is no room for the record, nothing is granted, so nothing is written.
    assert_eq!(state(&mut owner(&engine), "CREATE USER bob PASSWORD 'correct horse'").await, "53100");
    drop(engine);
    let again = open(folder.path(), ComplianceLog::new()).await;
    assert_eq!(again.accounts().unwrap().views("ann"), BTreeSet::from(["v".to_owned()]));
}

/// Records whose disk can be full.
struct Failing(MemoryRecords, Arc<AtomicBool>);

impl Failing {
    fn check(&self) -> io::Result<()> {
        if self.1.load(Ordering::Relaxed) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

impl Records for Failing {
    fn list(&self, kind: &str) -> io::Result<Vec<Record>> {
        self.0.list(kind)
    }

    fn put(&self, kind: &str, name: &str, text: &str) -> io::Result<()> {
        self.check().and_then(|()| self.0.put(kind, name, text))
    }

    fn remove(&self, kind: &str, name: &str) -> io::Result<()> {
        self.check().and_then(|()| self.0.remove(kind, name))
    }
}

#[tokio::test]
async fn a_change_that_was_recorded_and_then_failed_is_recorded_as_broken_off() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("asked.jsonl");
    let engine = Engine::with_log(Arc::new(Utc::now), ComplianceLog::with_file(&path).unwrap());
    let fails = Arc::new(AtomicBool::new(false));
    let accounts = Accounts::open(Box::new(Failing(MemoryRecords::default(), Arc::clone(&fails)))).unwrap();
    accounts.create_user("ann", Role::Analyst, "correct horse", UNASKED).unwrap();
    engine.keep_accounts(accounts);
    let mut session = owner(&engine);
    rows(&mut session, "GRANT PURPOSE care RECIPIENT nurse TO ann").await;
    fails.store(true, Ordering::Relaxed);
    assert_eq!(state(&mut session, "CREATE USER bob PASSWORD 'correct horse'").await, "53100");
    assert_eq!(state(&mut session, "REVOKE PURPOSE care RECIPIENT nurse FROM ann").await, "58030");
    // The statement was refused before it did anything.
    assert_eq!(state(&mut session, "CREATE USER ann PASSWORD 'correct horse'").await, "42710");
    fails.store(false, Ordering::Relaxed);
    rows(&mut session, "CREATE USER bob PASSWORD 'correct horse'").await;
    let written = std::fs::read_to_string(&path).unwrap();
    let entries: Vec<(String, String)> = written
        .lines()
        .map(|line| {
            let entry: serde_json::Value = serde_json::from_str(line).unwrap();
            let text = |name: &str| entry[name].as_str().unwrap().to_owned();
            (text("statement").split(' ').next().unwrap().to_owned(), text("outcome"))
        })
        .collect();
    let expected = [
        ("GRANT", "answered"),
        ("CREATE", "answered"),
        ("CREATE", "broke off"),
        ("REVOKE", "answered"),
        ("REVOKE", "broke off"),
        ("CREATE", "failed"),
        ("CREATE", "answered"),
    ];
    assert_eq!(entries, expected.map(|(statement, outcome)| (statement.to_owned(), outcome.to_owned())));
}
