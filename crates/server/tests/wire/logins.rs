//! A login ends when its user is dropped, even while another connection is busy.

use crate::client::connect;
use crate::fixture::{ANALYST, OWNER, PEOPLE, serve, serve_folder, wait_until};
use crate::limits::ENDLESS;

const AGAIN: &str = "CREATE USER ann PASSWORD 'correct horse'; GRANT SELECT ON seen TO ann; \
                     GRANT PURPOSE care RECIPIENT nurse TO ann";

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_a_dropped_user_ends_and_is_not_revived_by_another_of_the_name() {
    let served = serve(PEOPLE).await;
    let (idle, busy) = (connect(&served, ANALYST).await, connect(&served, ANALYST).await);
    let asked = tokio::spawn(async move { busy.client.simple_query(ENDLESS).await });
    wait_until("the statement runs", || served.server.metrics().running.get() == 1).await;
    let mut owner = connect(&served, OWNER).await;
    owner.rows(&format!("DROP USER ann; {AGAIN}")).await.unwrap();
    assert!(asked.await.unwrap().is_err());
    wait_until("the idle one has ended", || idle.client.is_closed()).await;
    wait_until("only one connection is open", || served.server.metrics().open.get() == 1).await;
    assert_eq!(connect(&served, ANALYST).await.rows("SELECT * FROM seen").await.unwrap().len(), 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_password_ends_the_sessions_of_the_old_one() {
    let served = serve(PEOPLE).await;
    let ann = connect(&served, ANALYST).await;
    let (mut owner, other) = (connect(&served, OWNER).await, connect(&served, OWNER).await);
    owner.rows("ALTER USER ann PASSWORD 'battery staple'").await.unwrap();
    wait_until("ann is disconnected", || ann.client.is_closed()).await;
    owner.rows("ALTER USER olga PASSWORD 'battery staple'").await.unwrap();
    wait_until("the other session is disconnected", || other.client.is_closed()).await;
    assert_eq!(owner.rows("SELECT 1").await.unwrap(), [["1"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_view_is_refused_even_while_the_data_folder_is_busy() {
    let folder = tempfile::tempdir().unwrap();
    let served = serve_folder(folder.path(), |_| {}).await;
    let (mut holder, mut owner) = (connect(&served, OWNER).await, connect(&served, OWNER).await);
    for sql in [
        "CREATE TABLE people (name TEXT PRIMARY KEY, zip TEXT)",
        "INSERT INTO people VALUES ('Ann', '10'), ('Bea', '10')",
        "CREATE DGH zip FROM MASK RIGHT",
        "CREATE ANONYMIZATION_VIEW seen ON SELECT name, zip FROM people WITH ANONYMIZATION_ID name \
         ANONYMIZATION_QUASI_ID (zip DGH_NAME zip) K 2",
        "GRANT SELECT ON seen TO ann",
    ] {
        owner.rows(sql).await.unwrap();
    }
    let ann = connect(&served, ANALYST).await;
    assert_eq!(ann.client.simple_query("SELECT zip FROM seen").await.unwrap().len(), 4);
    holder.rows("BEGIN; INSERT INTO people VALUES ('Cem', '10')").await.unwrap();
    let revoked = tokio::spawn(async move { owner.rows("REVOKE SELECT ON seen FROM ann").await });
    let refused = async { while ann.client.simple_query("SELECT zip FROM seen").await.is_ok() {} };
    tokio::time::timeout(std::time::Duration::from_secs(60), refused).await.unwrap();
    assert!(!revoked.is_finished(), "it waits to be written");
    holder.rows("ROLLBACK").await.unwrap();
    revoked.await.unwrap().unwrap();
}
