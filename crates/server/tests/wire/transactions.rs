//! Transactions over the wire: after each of their possible ends, the connection works and the client knows what was
//! committed.

use crate::client::{Connected, connect};
use crate::fixture::{OWNER, Served, serve_folder, wait_until};

/// A table of people, and a materialized view with one row per person. A second row of a person can't be committed.
async fn serve_people(folder: &std::path::Path) -> (Served, Connected) {
    let served = serve_folder(folder, |configuration| configuration.idle_in_transaction_timeout = 2).await;
    let mut owner = connect(&served, OWNER).await;
    for sql in [
        "CREATE TABLE people (visit INT PRIMARY KEY, name TEXT NOT NULL, zip TEXT)",
        "INSERT INTO people VALUES (1, 'Ann', '10'), (2, 'Bea', '10'), (3, 'Cem', '20'), (4, 'Dan', '20')",
        "CREATE DGH zip FROM MASK RIGHT",
        "CREATE MATERIALIZED ANONYMIZATION_VIEW seen ON SELECT name, zip FROM people WITH ANONYMIZATION_ID name \
         ANONYMIZATION_QUASI_ID (zip DGH_NAME zip) K 2",
    ] {
        owner.rows(sql).await.unwrap();
    }
    (served, owner)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_fails_ends_the_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let (_served, mut owner) = serve_people(folder.path()).await;
    for end in ["ROLLBACK", "COMMIT"] {
        owner.rows("BEGIN; INSERT INTO people VALUES (5, 'Ann', '10')").await.unwrap();
        assert_eq!(owner.failure("COMMIT").await.0, "23505");
        owner.rows(end).await.unwrap();
        assert_eq!(owner.rows("SELECT count(*) FROM people").await.unwrap(), [["4"]]);
    }
    owner.rows("BEGIN; INSERT INTO people VALUES (5, 'Eva', '10'); COMMIT").await.unwrap();
    assert_eq!(owner.rows("SELECT count(*) FROM people").await.unwrap(), [["5"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_violated_constraint_has_another_state_than_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let (_served, mut owner) = serve_people(folder.path()).await;
    for (sql, state) in [
        ("INSERT INTO people VALUES (1, 'Eva', '10')", "23505"),
        ("INSERT INTO people VALUES (6, NULL, '10')", "23502"),
        ("DROP TABLE people", "2BP01"),
        ("COPY people FROM 'nowhere.csv'", "58P01"),
    ] {
        assert_eq!(owner.failure(sql).await.0, state, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_who_is_idle_in_a_transaction_is_disconnected() {
    let folder = tempfile::tempdir().unwrap();
    let (served, mut owner) = serve_people(folder.path()).await;
    let mut idle = connect(&served, OWNER).await;
    idle.rows("BEGIN; INSERT INTO people VALUES (5, 'Eva', '10')").await.unwrap();
    owner.rows("INSERT INTO people VALUES (6, 'Fay', '20')").await.unwrap();
    wait_until("the idle client is disconnected", || idle.client.is_closed()).await;
    assert_eq!(owner.rows("SELECT count(*) FROM people").await.unwrap(), [["5"]]);
    assert_eq!(owner.failure("SET idle_in_transaction_session_timeout = 0").await.0, "22023");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_only_reads_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (_served, mut owner) = serve_people(folder.path()).await;
    let change = "INSERT INTO people VALUES (5, 'Eva', '10')";
    owner.rows(&format!("PREPARE change AS {change}; PREPARE ask AS SELECT count(*) FROM people")).await.unwrap();
    for begin in ["BEGIN READ ONLY", "BEGIN; SET TRANSACTION READ ONLY", "BEGIN; SET transaction_read_only = on"] {
        for refused in [change, "EXECUTE change", "DELETE FROM people", "CREATE TABLE t (n INT)"] {
            owner.rows(begin).await.unwrap();
            assert_eq!(owner.rows("EXECUTE ask").await.unwrap(), [["4"]]);
            assert_eq!(owner.failure(refused).await.0, "25006", "{begin}: {refused}");
            owner.rows("ROLLBACK").await.unwrap();
        }
    }
    owner.rows("SET default_transaction_read_only = on").await.unwrap();
    assert_eq!(owner.failure(change).await.0, "25006");
    owner.rows(&format!("BEGIN READ WRITE; {change}; COMMIT")).await.unwrap();
    owner.rows("RESET default_transaction_read_only").await.unwrap();
    owner.rows("DELETE FROM people WHERE visit = 5").await.unwrap();
    assert_eq!(owner.rows("EXECUTE ask").await.unwrap(), [["4"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_has_changed_nothing_keeps_nobody_from_writing() {
    let folder = tempfile::tempdir().unwrap();
    let (served, mut owner) = serve_people(folder.path()).await;
    let mut n_people = 4;
    for idle in [
        "BEGIN",
        "BEGIN READ ONLY; SELECT count(*) FROM people",
        "BEGIN; SELECT count(*) FROM people",
        "BEGIN; SELECT nothing",
        "BEGIN; INSERT INTO people VALUES (9, 'Ida', '10'); SELECT nothing",
    ] {
        let mut other = connect(&served, OWNER).await;
        let _ = other.rows(idle).await;
        n_people += 1;
        // If the other connection still had its turn, this would wait for it and fail.
        owner.rows(&format!("INSERT INTO people VALUES ({n_people}0, 'P{n_people}', '10')")).await.unwrap();
        assert_eq!(owner.rows("SELECT count(*) FROM people").await.unwrap(), [[n_people.to_string()]], "{idle}");
        other.rows("ROLLBACK").await.unwrap();
    }
}
