//! Materialized views: how much of them a query reads, and what SHOW tells their owner.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use kohort_sql::Session;

use crate::folder::{analyst, open, open_by, sorted};
use crate::session::{owner, rows, try_rows};

const TABLE: &str = "
    CREATE TABLE patient (name TEXT PRIMARY KEY, age INT, disease TEXT);
    CREATE DGH age FROM STEPS (10, 50);
    INSERT INTO patient VALUES ('a', 21, 'flu'), ('b', 22, 'gout'), ('c', 63, 'flu'), ('d', 64, 'cold');";

fn view(options: &str) -> String {
    format!(
        "CREATE MATERIALIZED ANONYMIZATION_VIEW v ON SELECT name, age, disease FROM patient WITH ANONYMIZATION_ID name
         ANONYMIZATION_QUASI_ID (age DGH_NAME age) ANONYMIZATION_SENSITIVE_ATTR (disease) K 2 {options}"
    )
}

async fn figure(session: &mut Session, name: &str) -> String {
    let shown = "SHOW ANONYMIZATION_VIEW v DRIFT";
    let columns =
        ["view", "ncp", "ncp_if_refreshed", "drift", "rows_pending", "rows_hidden", "rows_leaving", "waiting_since"];
    let place = columns.iter().position(|column| *column == name).unwrap();
    rows(session, shown).await[0][place].clone()
}

#[tokio::test]
async fn a_plan_reads_no_row_of_a_materialized_view() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut session = owner(&engine);
    rows(&mut session, &format!("{TABLE} SET kohort.keep_mb = 0; {}", view(""))).await;
    // A query that reads rows finds none.
    let change = engine.store().unwrap().write().unwrap();
    change.drop_table("view v\u{1f}rows").unwrap();
    change.commit().unwrap();
    for sql in ["SELECT count(*) FROM v", "SELECT count(*) FROM v WHERE age = 21 AND disease = 'flu'"] {
        assert!(try_rows(&mut session, sql).await.is_err(), "{sql}");
        assert!(!rows(&mut session, &format!("EXPLAIN {sql}")).await.is_empty());
        assert!(!rows(&mut analyst(&engine), &format!("EXPLAIN {sql}")).await.is_empty());
    }
    let join = "EXPLAIN SELECT count(*) FROM v AS a JOIN v AS b ON a.age = b.age";
    assert!(!rows(&mut analyst(&engine), join).await.is_empty());
}

#[tokio::test]
async fn answers_do_not_depend_on_what_is_kept_in_memory() {
    let mut answers = Vec::new();
    for keep_mb in [0, 256] {
        let folder = tempfile::tempdir().unwrap();
        let engine = open(folder.path()).await;
        let mut session = owner(&engine);
        rows(&mut session, &format!("{TABLE} SET kohort.keep_mb = {keep_mb}; {}", view(""))).await;
        let mut found = Vec::new();
        for change in [
            "SELECT 1",
            "INSERT INTO patient VALUES ('e', 23, 'cold'), ('f', 24, 'flu')",
            "DELETE FROM patient WHERE name IN ('c', 'd')",
        ] {
            rows(&mut session, change).await;
            found.push(sorted(&mut analyst(&engine), "SELECT * FROM v WHERE age = 21").await);
            let join = "SELECT a.age, b.disease FROM v AS a JOIN v AS b ON a.age = b.age";
            found.push(sorted(&mut analyst(&engine), join).await);
        }
        answers.push(found);
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0][5].len(), 16);
}

#[tokio::test]
async fn a_person_who_is_shown_and_then_hidden_waits_from_then_on() {
    let folder = tempfile::tempdir().unwrap();
    let day = Arc::new(AtomicU32::new(0));
    let engine = open_by(folder.path(), &day).await;
    let mut session = owner(&engine);
    rows(&mut session, &format!("{TABLE} {}", view("DEPARTURES WITHDRAW"))).await;
    assert_eq!(figure(&mut session, "waiting_since").await, "NULL");
    day.store(4, Ordering::Relaxed);
    rows(&mut session, "DELETE FROM patient WHERE name = 'a'").await;
    assert_eq!(figure(&mut session, "waiting_since").await, "2026-01-05T12:00:00");
    // Others who come, or are hidden too, do not change who has waited longest.
    day.store(6, Ordering::Relaxed);
    rows(&mut session, "DELETE FROM patient WHERE name = 'c'; INSERT INTO patient VALUES ('x', 21, 'flu')").await;
    assert_eq!(figure(&mut session, "waiting_since").await, "2026-01-05T12:00:00");
}

#[tokio::test]
async fn drift_is_what_a_refresh_would_change_and_asking_for_it_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut session = owner(&engine);
    rows(&mut session, &format!("{TABLE} {}", view(""))).await;
    assert_eq!(figure(&mut session, "drift").await, "0.0");
    rows(&mut session, "INSERT INTO patient VALUES ('e', 23, 'cold')").await;
    let before = rows(&mut session, "SHOW ANONYMIZATION_VIEWS").await;
    let promised = figure(&mut session, "ncp_if_refreshed").await;
    // Of the three rows, two lose half and one loses everything.
    assert_eq!(figure(&mut session, "ncp").await, "0.6");
    assert_eq!(figure(&mut session, "rows_pending").await, "1");
    assert_eq!(rows(&mut session, "SHOW ANONYMIZATION_VIEWS").await, before);
    rows(&mut session, "REFRESH ANONYMIZATION_VIEW v FORCE").await;
    assert_eq!(figure(&mut session, "ncp").await, promised);
    assert_eq!(figure(&mut session, "drift").await, "0.0");
}
