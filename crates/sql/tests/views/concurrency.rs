//! Many readers while the owner changes everything: each answer comes from one version. Answers that nobody waits for.

use std::collections::BTreeSet;

use futures::{FutureExt, StreamExt};
use kohort_sql::parser::parse;
use kohort_sql::view::ViewError;
use kohort_sql::{Engine, Outcome, Role, Session, SqlError};

use crate::session::{engine, owner, rows, try_rows};

const VIEW: &str = "ANONYMIZATION_VIEW v ON SELECT name, zip FROM people WITH ANONYMIZATION_ID name
                    ANONYMIZATION_QUASI_ID (zip DGH_NAME zip) K 2";
/// Counts pairs of rows that could have the same zip code. The count tells versions apart, and mixtures of them.
const QUERY: &str =
    "SELECT a.zip, b.zip, count(*) FROM v AS a JOIN v AS b ON a.zip = b.zip GROUP BY 1, 2 ORDER BY 1, 2";
const N_CHANGES: usize = 12;
const N_READERS: usize = 3;

/// People of `n` zip codes, `size` in each.
fn people(n: usize, size: usize) -> String {
    let row = |row: usize| format!("('P{row}', 'z{}')", row % n);
    let rows: Vec<String> = (0..n * size).map(row).collect();
    format!("CREATE OR REPLACE TABLE people (name TEXT, zip TEXT) AS VALUES {};", rows.join(", "))
}

async fn engine_with_view() -> Engine {
    let engine = engine();
    let zips: Vec<String> = (0..9).map(|zip| format!("('z{zip}', '*')")).collect();
    let dgh = format!("CREATE DGH zip; INSERT INTO DGH zip VALUES {};", zips.join(", "));
    rows(&mut owner(&engine), &format!("{dgh} {} CREATE {VIEW}", people(3, 4))).await;
    engine
}

/// Whether a reader may get this error while the owner works.
fn is_of_a_change(error: &SqlError) -> bool {
    match error {
        SqlError::View(ViewError::Stale | ViewError::Unusable { .. } | ViewError::Query { .. }) => true,
        SqlError::Query(error) => error.to_string().contains("'kohort.public.v' not found"),
        _ => false,
    }
}

async fn answers(mut session: Session, until: tokio::sync::watch::Receiver<bool>) -> BTreeSet<Vec<Vec<String>>> {
    let mut answers = BTreeSet::new();
    loop {
        let is_last = *until.borrow();
        match try_rows(&mut session, QUERY).await {
            Ok(answer) => {
                answers.insert(answer);
            }
            Err(error) => assert!(is_of_a_change(&error), "{error:?}"),
        }
        if is_last {
            return answers;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_answer_is_one_versions_while_the_owner_refreshes_replaces_and_drops() {
    let engine = engine_with_view().await;
    let mut owner = owner(&engine);
    let tables = [people(3, 4), people(9, 3)];
    let mut expected = BTreeSet::new();
    for table in &tables {
        rows(&mut owner, &format!("{table} REFRESH ANONYMIZATION_VIEW v")).await;
        expected.insert(rows(&mut owner, QUERY).await);
    }
    assert_eq!(expected.len(), 2);

    let (finished, until) = tokio::sync::watch::channel(false);
    let readers: Vec<_> =
        (0..N_READERS).map(|_| tokio::spawn(answers(engine.session(Role::Analyst), until.clone()))).collect();
    for change in 0..N_CHANGES {
        rows(&mut owner, &tables[change % 2]).await;
        let made = match change % 3 {
            0 => "REFRESH ANONYMIZATION_VIEW v".to_owned(),
            1 => format!("CREATE OR REPLACE {VIEW}"),
            _ => format!("DROP ANONYMIZATION_VIEW v; CREATE {VIEW}"),
        };
        rows(&mut owner, &made).await;
    }
    finished.send(true).unwrap();
    for reader in readers {
        let answers = reader.await.expect("no reader panics");
        assert!(!answers.is_empty(), "the last look finds the last version");
        assert!(answers.is_subset(&expected), "{answers:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_nobody_waits_for_holds_nothing_and_harms_nothing() {
    let engine = engine_with_view().await;
    let mut owner = owner(&engine);
    rows(&mut owner, &people(9, 400)).await;
    let memory = std::sync::Arc::clone(&engine.owner_context().runtime_env().memory_pool);
    for block in ["BLOCK ALL", "BLOCK 16"] {
        rows(&mut owner, &format!("CREATE OR REPLACE {VIEW} {block}")).await;
        for plan in ["select_first", "anonymize_first"] {
            rows(&mut owner, &format!("SET kohort.plan = '{plan}'")).await;
            let whole = rows(&mut owner, "SELECT zip, count(*) FROM v GROUP BY 1 ORDER BY 1").await;
            let mut query = parse("SELECT * FROM v").unwrap();
            let Outcome::Rows(mut stream) = owner.run(query.remove(0)).await.unwrap() else { panic!("not rows") };
            // By now the rows are being built, or have been.
            let _ = stream.next().now_or_never();
            drop(stream);
            assert_eq!(memory.reserved(), 0, "{block} {plan}");
            assert_eq!(rows(&mut owner, "SELECT zip, count(*) FROM v GROUP BY 1 ORDER BY 1").await, whole);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_nobody_reads_keep_nobody_waiting() {
    let engine = engine_with_view().await;
    let mut unread = Vec::new();
    // More queries than can read at once on any machine.
    for _ in 0..2 * std::thread::available_parallelism().map_or(1, usize::from).max(2) {
        let mut session = engine.session(Role::Analyst);
        unread.push(session.run(parse("SELECT * FROM v").unwrap().remove(0)).await.unwrap());
    }
    let all = rows(&mut engine.session(Role::Analyst), "SELECT count(*) FROM v").await;
    assert_eq!(all, [["12"]]);
    drop(unread);
}
