//! Several sessions on one folder.

use std::path::Path;

use kohort_sql::{Engine, Session, SqlError};
use kohort_store::StoreError;

use crate::folder::{analyst, known, open, sorted, try_open};
use crate::session::{owner, rows, try_rows};

const TABLE: &str = "
    CREATE TABLE patient (name TEXT PRIMARY KEY, age INT, disease TEXT);
    CREATE DGH age FROM STEPS (10, 50);
    INSERT INTO patient VALUES ('a', 21, 'flu'), ('b', 22, 'gout'), ('c', 23, 'flu'), ('d', 64, 'flu');";

const VIEW: &str = "
    CREATE MATERIALIZED ANONYMIZATION_VIEW v ON SELECT name, age, disease FROM patient WITH ANONYMIZATION_ID name
    ANONYMIZATION_QUASI_ID (age DGH_NAME age) ANONYMIZATION_SENSITIVE_ATTR (disease) K 2";

#[tokio::test]
async fn a_second_writer_waits_for_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let (mut first, mut second) = (owner(&engine), owner(&engine));
    rows(&mut first, TABLE).await;
    rows(&mut first, "BEGIN; INSERT INTO patient VALUES ('e', 25, 'flu')").await;
    let (_, _) = tokio::join!(
        rows(&mut second, "INSERT INTO patient SELECT 'f', age, disease FROM patient WHERE name = 'e'"),
        rows(&mut first, "COMMIT"),
    );
    assert_eq!(rows(&mut first, "SELECT age FROM patient WHERE name = 'f'").await, [["25"]]);
}

#[tokio::test]
async fn readers_see_what_was_committed_while_others_write() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let (mut writer, mut reader) = (owner(&engine), owner(&engine));
    rows(&mut writer, &format!("{TABLE} {VIEW}")).await;
    let before = sorted(&mut analyst(&engine), "SELECT * FROM v").await;
    rows(&mut writer, "BEGIN; DELETE FROM patient; INSERT INTO patient VALUES ('x', 21, 'flu')").await;
    assert_eq!(rows(&mut reader, "SELECT count(*) FROM patient").await, [["4"]]);
    assert_eq!(rows(&mut writer, "SELECT count(*) FROM patient").await, [["1"]]);
    assert_eq!(sorted(&mut analyst(&engine), "SELECT * FROM v").await, before);
    assert_eq!(sorted(&mut writer, "SELECT * FROM v").await, before);
    rows(&mut writer, "COMMIT").await;
    assert_eq!(rows(&mut reader, "SELECT count(*) FROM patient").await, [["1"]]);
    assert_eq!(sorted(&mut analyst(&engine), "SELECT * FROM v").await, Vec::<Vec<String>>::new());
}

#[tokio::test]
async fn a_session_that_ends_gives_up_its_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let (mut first, mut second) = (owner(&engine), owner(&engine));
    rows(&mut first, &format!("{TABLE} BEGIN; DELETE FROM patient")).await;
    drop(first);
    rows(&mut second, "INSERT INTO patient VALUES ('e', 25, 'flu')").await;
    assert_eq!(rows(&mut second, "SELECT count(*) FROM patient").await, [["5"]]);
}

#[tokio::test]
async fn a_view_misses_nobody_who_comes_while_it_is_made() {
    for _ in 0..8 {
        let folder = tempfile::tempdir().unwrap();
        let engine = open(folder.path()).await;
        let (mut first, mut second, mut third) = (owner(&engine), owner(&engine), owner(&engine));
        rows(&mut first, TABLE).await;
        let (_, _, _) = tokio::join!(
            rows(&mut first, VIEW),
            rows(&mut second, "INSERT INTO patient VALUES ('e', 25, 'flu')"),
            rows(&mut third, "INSERT INTO patient VALUES ('f', 66, 'flu'); DELETE FROM patient WHERE name = 'b'"),
        );
        let view = &rows(&mut first, "SHOW ANONYMIZATION_VIEWS").await[0];
        let n_of = |from_end: usize| view[view.len() - from_end].parse::<u64>().unwrap();
        let n_shown = rows(&mut analyst(&engine), "SELECT * FROM v").await.len() as u64;
        assert_eq!(n_shown + n_of(4) + n_of(3), 5 + n_of(2), "{view:?}");
        let (_, _) = tokio::join!(
            try_rows(&mut first, "REFRESH ANONYMIZATION_VIEW v FORCE"),
            rows(&mut second, "INSERT INTO patient VALUES ('g', 25, 'flu')"),
        );
        let view = &rows(&mut first, "SHOW ANONYMIZATION_VIEWS").await[0];
        let n_of = |from_end: usize| view[view.len() - from_end].parse::<u64>().unwrap();
        let n_shown = rows(&mut analyst(&engine), "SELECT * FROM v").await.len() as u64;
        assert_eq!(n_shown + n_of(4) + n_of(3), 6 + n_of(2), "{view:?}");
    }
}

/// Runs a statement, and stops waiting for it after this many polls.
async fn give_up(session: &mut Session, sql: &str, n_looks: usize) -> bool {
    let mut statement = std::pin::pin!(try_rows(session, sql));
    for _ in 0..n_looks {
        if futures::poll!(statement.as_mut()).is_ready() {
            return false;
        }
        tokio::task::yield_now().await;
        std::thread::yield_now();
    }
    true
}

#[tokio::test]
async fn a_statement_that_is_given_up_takes_its_transaction_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut session = owner(&engine);
    rows(&mut session, TABLE).await;
    rows(&mut session, "BEGIN; DELETE FROM patient WHERE name = 'a'").await;
    assert!(give_up(&mut session, "INSERT INTO patient SELECT name || 'x', age, disease FROM patient", 1).await);
    assert!(try_rows(&mut session, "DELETE FROM patient").await.is_err());
    assert!(try_rows(&mut session, "COMMIT").await.is_err());
    assert_eq!(rows(&mut session, "SELECT count(*) FROM patient").await, [["4"]]);
    rows(&mut session, "BEGIN; DELETE FROM patient WHERE name = 'a'; COMMIT").await;
    assert_eq!(rows(&mut session, "SELECT count(*) FROM patient").await, [["3"]]);
}

#[tokio::test]
async fn statements_that_are_given_up_leave_views_that_follow() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut session = owner(&engine);
    rows(&mut session, &format!("{TABLE} {VIEW}")).await;
    let mut n_given_up = 0;
    for number in 0..40usize {
        let sql = match number % 4 {
            0 => "REFRESH ANONYMIZATION_VIEW v FORCE".to_owned(),
            1 => format!("DELETE FROM patient WHERE name LIKE 'p%{}'", number % 5),
            _ => {
                format!("INSERT INTO patient VALUES ('p{number}', 2{}, 'flu'), ('q{number}', 61, 'cold')", number % 10)
            }
        };
        n_given_up += usize::from(give_up(&mut session, &sql, number * number / 8).await);
        // Work that went on has ended once somebody else has the turn.
        rows(&mut session, &format!("INSERT INTO patient VALUES ('r{number}', 62, 'gout')")).await;
        let n_patients: u64 = rows(&mut session, "SELECT count(*) FROM patient").await[0][0].parse().unwrap();
        let view = &rows(&mut session, "SHOW ANONYMIZATION_VIEWS").await[0];
        let n_of = |from_end: usize| view[view.len() - from_end].parse::<u64>().unwrap();
        let n_shown = rows(&mut analyst(&engine), "SELECT * FROM v").await.len() as u64;
        assert_eq!(n_shown + n_of(4) + n_of(3), n_patients + n_of(2), "{number}: {view:?}");
    }
    assert!(n_given_up > 5, "{n_given_up}");
}

#[tokio::test]
async fn a_table_stays_that_a_view_was_made_from_while_somebody_waited_to_drop_it() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let (mut first, mut second, mut third) = (owner(&engine), owner(&engine), owner(&engine));
    rows(&mut first, &format!("{TABLE} BEGIN; DELETE FROM patient WHERE name = 'd'")).await;
    // Both wait for the first transaction, and the view is first in line.
    let (made, dropped, _) = tokio::join!(
        try_rows(&mut second, VIEW),
        try_rows(&mut third, "DROP TABLE patient"),
        rows(&mut first, "COMMIT"),
    );
    made.unwrap();
    assert!(matches!(dropped, Err(SqlError::InUse { .. })), "{dropped:?}");
    drop((first, second, third, engine));
    let engine = open(folder.path()).await;
    assert_eq!(rows(&mut analyst(&engine), "SELECT * FROM v").await.len(), 3);
}

#[tokio::test]
async fn choices_stay_that_a_view_was_made_from_while_somebody_waited_to_import_others() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let (mut first, mut second, mut third) = (owner(&engine), owner(&engine), owner(&engine));
    let import = "IMPORT POLICY 'tests/slt/tables/policy.toml' INTO choice";
    rows(&mut first, &format!("{TABLE} {import}; BEGIN; DELETE FROM patient WHERE name = 'd'")).await;
    let view = VIEW.replace("K 2", "name REFERENCES choice (k)");
    let (made, imported, _) =
        tokio::join!(try_rows(&mut second, &view), try_rows(&mut third, import), rows(&mut first, "COMMIT"));
    made.unwrap();
    assert!(matches!(imported, Err(SqlError::InUse { .. })), "{imported:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pairs_that_several_sessions_add_to_a_dgh_are_all_kept() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    rows(&mut owner(&engine), "CREATE DGH zip").await;
    let mut added = Vec::new();
    for number in 0..4 {
        let mut session = owner(&engine);
        added.push(tokio::spawn(async move {
            for leaf in 0..25 {
                rows(&mut session, &format!("INSERT INTO DGH zip VALUES ('{number}-{leaf}', '*')")).await;
            }
        }));
    }
    for session in added {
        session.await.unwrap();
    }
    let before = rows(&mut owner(&engine), "SHOW DGHS").await;
    assert!(before[0].contains(&"100".to_owned()), "{before:?}");
    drop(engine);
    assert_eq!(rows(&mut owner(&open(folder.path()).await), "SHOW DGHS").await, before);
}

/// Statements that make and drop one thing of each kind, in an order that works.
fn made_and_dropped(folder: &Path) -> Vec<String> {
    let file = folder.join("sick.csv");
    std::fs::write(&file, "disease,kind\nflu,virus\n").unwrap();
    let external = format!(
        "CREATE EXTERNAL TABLE kind STORED AS CSV LOCATION '{}' OPTIONS (format.has_header 'true')",
        file.display()
    );
    let computed = VIEW.replace("MATERIALIZED ", "").replace("VIEW v ", "VIEW computed ");
    let texts = [
        "CREATE DGH zip",
        "INSERT INTO DGH zip VALUES ('1', '*')",
        "CREATE TABLE other AS SELECT * FROM patient",
        "CREATE VIEW young AS SELECT * FROM patient WHERE age < 30",
        &external,
        "IMPORT POLICY 'tests/slt/tables/policy.toml' INTO choice",
        VIEW,
        &computed,
        "CREATE OR REPLACE VIEW young AS SELECT * FROM patient WHERE age < 23",
        "REFRESH ANONYMIZATION_VIEW computed",
        "DROP ANONYMIZATION_VIEW computed",
        "DROP ANONYMIZATION_VIEW v",
        "DROP TABLE choice",
        "DROP TABLE kind",
        "DROP VIEW young",
        "DROP TABLE other",
        "DROP DGH zip",
    ];
    texts.map(str::to_owned).to_vec()
}

/// Opens a folder once the statements that nobody waits for have released it.
async fn open_when_free(folder: &Path) -> Engine {
    loop {
        match try_open(folder).await {
            Err(SqlError::Store(StoreError::Locked { .. })) => tokio::task::yield_now().await,
            opened => return opened.unwrap(),
        }
    }
}

const MADE: [&str; 7] = ["patient", "other", "young", "kind", "choice", "v", "computed"];

#[tokio::test]
async fn statements_that_are_given_up_make_something_in_memory_and_in_the_folder_or_in_neither() {
    let folder = tempfile::tempdir().unwrap();
    let statements = made_and_dropped(folder.path());
    let (mut n_given_up, mut n_done) = (0, 0);
    // Some statements are waited for to their end, however slow the machine is.
    for n_looks in [1, 3, 9, 27, 81, 243, usize::MAX] {
        let data = folder.path().join(n_looks.to_string());
        let mut engine = open(&data).await;
        rows(&mut owner(&engine), TABLE).await;
        for sql in &statements {
            let is_given_up = give_up(&mut owner(&engine), sql, n_looks).await;
            // A savepoint takes a turn to write, so work that went on has ended then.
            rows(&mut owner(&engine), "BEGIN; SAVEPOINT here; ROLLBACK").await;
            let in_memory = known(&engine, &MADE).await;
            drop(engine);
            engine = open_when_free(&data).await;
            assert_eq!(known(&engine, &MADE).await, in_memory, "{sql} after {n_looks}");
            n_given_up += usize::from(is_given_up);
            n_done += usize::from(!is_given_up);
            if is_given_up {
                // Do it now if it was not done, because later statements need it.
                let _ = try_rows(&mut owner(&engine), sql).await;
            }
        }
    }
    assert!(n_given_up > 20 && n_done > 0, "{n_given_up} {n_done}");
}
