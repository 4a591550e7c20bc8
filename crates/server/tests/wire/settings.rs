//! Settings: behind a connection pooler, a client does not inherit the settings of an earlier one.

use crate::client::connect;
use crate::fixture::{ANALYST, PASSWORD, PEOPLE, as_owner, psql_with, serve, stderr, stdout};

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_was_set_outlives_discard_all() {
    let served = serve(PEOPLE).await;
    as_owner(&served.engine, "GRANT PURPOSE study RECIPIENT lab TO ann").await;
    let mut ann = connect(&served, ANALYST).await;
    let set = "SET kohort.purpose = 'study'; SET kohort.recipient = 'lab'; SET application_name = 'first'; \
               SET statement_timeout = '7s'";
    for reset in [
        "DISCARD ALL",
        "RESET ALL",
        "RESET kohort.purpose; RESET kohort.recipient; RESET application_name; \
         RESET statement_timeout",
    ] {
        ann.rows(set).await.unwrap();
        assert_eq!(ann.rows("SELECT DISTINCT illness FROM seen").await.unwrap().len(), 2);
        ann.rows(reset).await.unwrap();
        assert_eq!(ann.failure("SELECT * FROM seen").await.0, "42501", "{reset}");
        assert_eq!(ann.rows("SHOW application_name").await.unwrap(), [[""]]);
        assert_eq!(ann.rows("SHOW statement_timeout").await.unwrap(), [["300000"]]);
    }
    ann.rows("BEGIN").await.unwrap();
    assert_eq!(ann.failure("DISCARD ALL").await.0, "25001");
}

#[tokio::test(flavor = "multi_thread")]
async fn reset_restores_the_values_of_the_startup_message() {
    let served = serve(PEOPLE).await;
    as_owner(&served.engine, "GRANT PURPOSE study RECIPIENT lab TO ann").await;
    let url = format!("{} options='-c kohort.purpose=study -c kohort.recipient=lab'", served.url(ANALYST));
    let script = [
        "-c",
        "SET kohort.purpose = 'care'; SET kohort.recipient = 'nurse'",
        "-c",
        "DISCARD ALL",
        "-c",
        "SELECT DISTINCT illness FROM seen ORDER BY 1",
    ];
    let output = psql_with(&url, PASSWORD, &[&["--tuples-only"], script.as_slice()].concat()).await;
    assert_eq!(stdout(&output), "SET\nSET\nDISCARD ALL\ninfection\nstomach\n", "{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn local_settings_end_with_the_transaction() {
    let served = serve(PEOPLE).await;
    as_owner(&served.engine, "GRANT PURPOSE study RECIPIENT lab TO ann").await;
    let mut ann = connect(&served, ANALYST).await;
    for end in ["COMMIT", "ROLLBACK"] {
        ann.rows("BEGIN; SET LOCAL kohort.purpose = 'study'; SET LOCAL application_name = 'x'").await.unwrap();
        assert_eq!(ann.rows("SELECT DISTINCT illness FROM seen").await.unwrap().len(), 2);
        ann.rows(end).await.unwrap();
        assert_eq!(ann.failure("SELECT * FROM seen").await.0, "42501", "{end}");
        assert_eq!(ann.rows("SHOW application_name").await.unwrap(), [[""]]);
    }
    for sql in ["SET LOCAL application_name = 'x'", "SET LOCAL kohort.purpose = 'study'"] {
        let said = ann.rows(sql).await.unwrap();
        assert_eq!(said, [["warning: this setting has no effect outside of a transaction"]], "{sql}");
    }
    let said = ann.rows("SET lock_timeout = '1s'").await.unwrap();
    assert_eq!(said, [["\"lock_timeout\" has no effect: a change always waits 10 seconds for another"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn discard_all_removes_prepared_statements_of_any_name() {
    let served = serve(PEOPLE).await;
    let mut ann = connect(&served, ANALYST).await;
    for name in ["plain", "GRÖSSE", "\"Größe\""] {
        for end in ["DISCARD ALL".to_owned(), format!("DEALLOCATE {name}")] {
            ann.rows(&format!("PREPARE {name} AS SELECT 1")).await.unwrap();
            assert_eq!(ann.rows(&format!("EXECUTE {name}")).await.unwrap(), [["1"]]);
            ann.rows(&end).await.unwrap();
            assert_eq!(ann.failure(&format!("EXECUTE {name}")).await.0, "26000", "{end}");
        }
    }
}
