//! Users and grants over the wire: granted views can be read, and revoked ones can't, not even by open cursors.

use std::sync::Arc;

use chrono::Utc;
use kohort_server::Configuration;
use kohort_sql::Engine;
use kohort_sql::access::{Granted, UNASKED};
use kohort_sql::policy::ComplianceLog;

use crate::client::connect;
use crate::fixture::{ANALYST, OWNER, PEOPLE, as_owner, serve, serve_engine, with_accounts};

/// A second view of the same persons with other classes.
const AGAIN: &str = "CREATE ANONYMIZATION_VIEW again ON SELECT name, age, zip FROM people WITH ANONYMIZATION_ID name
  ANONYMIZATION_QUASI_ID (age, zip DGH_NAME zip) K 2 USING mondrian";

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_view_is_refused_at_once() {
    let served = serve(PEOPLE).await;
    let mut ann = connect(&served, ANALYST).await;
    let mut owner = connect(&served, OWNER).await;
    ann.rows("PREPARE kept AS SELECT ward FROM seen; BEGIN; DECLARE open CURSOR FOR SELECT ward FROM seen")
        .await
        .unwrap();
    assert_eq!(ann.rows("FETCH 1 FROM open").await.unwrap().len(), 1);
    let prepared = ann.client.prepare("SELECT ward FROM seen WHERE ward = $1").await.unwrap();
    assert_eq!(ann.client.query(&prepared, &[&"north"]).await.unwrap().len(), 4);

    owner.rows("REVOKE SELECT ON seen FROM ann").await.unwrap();
    assert_eq!(ann.failure("FETCH 1 FROM open").await.0, "42501");
    ann.rows("ROLLBACK").await.unwrap();
    assert!(ann.client.query(&prepared, &[&"north"]).await.is_err());
    for sql in ["EXECUTE kept", "SELECT * FROM seen"] {
        ann.failure(sql).await;
    }
    let none: Vec<Vec<String>> = Vec::new();
    assert_eq!(ann.rows("SHOW ANONYMIZATION_VIEWS").await.unwrap(), none);

    owner.rows("GRANT SELECT ON seen TO ann").await.unwrap();
    assert_eq!(ann.rows("EXECUTE kept").await.unwrap().len(), 8);
    owner.rows("REVOKE PURPOSE care RECIPIENT nurse FROM ann").await.unwrap();
    assert_eq!(ann.failure("SELECT * FROM seen").await.0, "42501");
    owner.rows("DROP USER ann").await.unwrap();
    assert!(ann.client.simple_query("SELECT 1").await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purpose_that_is_not_granted_counts_for_nothing() {
    let served = serve(PEOPLE).await;
    let mut ann = connect(&served, ANALYST).await;
    let (state, message) = ann.failure("SELECT * FROM seen PURPOSE study RECIPIENT lab").await;
    assert_eq!((state.as_str(), message.as_str()), ("42501", "this purpose and recipient are not granted to you"));
    ann.rows("SET kohort.purpose = 'study'").await.unwrap();
    ann.failure("SELECT * FROM seen").await;
    ann.rows("SET kohort.purpose = 'CARE'").await.unwrap();
    assert_eq!(ann.rows("SELECT * FROM seen").await.unwrap().len(), 8);
    ann.rows("RESET kohort.purpose").await.unwrap();
    assert_eq!(ann.rows("SELECT * FROM seen").await.unwrap().len(), 8);
    let asked = "SELECT * FROM seen PURPOSE care RECIPIENT lab";
    ann.failure(asked).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_purposes_learns_of_none() {
    let served = serve(PEOPLE).await;
    as_owner(&served.engine, "REVOKE PURPOSE care RECIPIENT nurse FROM ann").await;
    let ann = connect(&served, ANALYST).await;
    for sql in ["SELECT * FROM seen", "SELECT * FROM seen PURPOSE x RECIPIENT y"] {
        let error = ann.client.simple_query(sql).await.unwrap_err();
        let said = format!("{:?}", error.as_db_error().unwrap());
        for hidden in ["care", "study", "nurse", "lab"] {
            assert!(!said.contains(&format!("{hidden},")) && !said.contains(&format!("{hidden}\"")), "{said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_views_that_tell_more_together_are_not_granted_to_one_login() {
    let served = serve(PEOPLE).await;
    as_owner(&served.engine, AGAIN).await;
    let mut owner = connect(&served, OWNER).await;
    let (state, message) = owner.failure("GRANT SELECT ON again TO ann").await;
    assert_eq!(state, "42501");
    assert_eq!(message, "a user who reads again and seen can single out some persons");
    // A user who has read one of them may have kept the answers.
    owner.rows("REVOKE SELECT ON seen FROM ann").await.unwrap();
    assert_eq!(owner.failure("GRANT SELECT ON again TO ann").await.0, "42501");
    owner.rows("CREATE USER bob PASSWORD 'correct horse'; GRANT SELECT ON again TO bob").await.unwrap();
    assert_eq!(connect(&served, "bob").await.rows("SELECT * FROM again").await.unwrap().len(), 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn three_views_of_which_any_two_may_be_read_together_are_not_granted_to_one_login() {
    let served = serve(PEOPLE).await;
    let bits: Vec<String> =
        (0..8).map(|number| format!("('{number}', {}, {}, {})", number & 1, number >> 1 & 1, number >> 2)).collect();
    as_owner(
        &served.engine,
        &format!("CREATE TABLE bits (id TEXT, a INT, b INT, c INT) AS VALUES {}", bits.join(", ")),
    )
    .await;
    let mut owner = connect(&served, OWNER).await;
    for bit in ["a", "b", "c"] {
        let make = format!(
            "CREATE ANONYMIZATION_VIEW by_{bit} ON SELECT id, {bit} FROM bits WITH ANONYMIZATION_ID id
             ANONYMIZATION_QUASI_ID ({bit}) K 2; CREATE USER u{bit} PASSWORD 'correct horse'"
        );
        owner.rows(&make).await.unwrap();
    }
    for (user, views) in [("ua", ["by_a", "by_b"]), ("ub", ["by_b", "by_c"]), ("uc", ["by_c", "by_a"])] {
        for view in views {
            owner.rows(&format!("GRANT SELECT ON {view} TO {user}")).await.unwrap();
        }
        let mut reader = connect(&served, user).await;
        assert_eq!(reader.rows(&format!("SELECT * FROM {}", views[1])).await.unwrap().len(), 8);
    }
    let (state, message) = owner.failure("GRANT SELECT ON by_c TO ua").await;
    let expected = "a user who reads by_c, by_a and by_b can single out some persons";
    assert_eq!((state.as_str(), message.as_str()), ("42501", expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn views_are_read_together_only_where_everybody_hides_among_as_many_as_they_ask_for() {
    let served = serve(PEOPLE).await;
    let bits: Vec<String> = (0..8).map(|number| format!("('{number}', {}, {})", number & 1, number >> 1 & 1)).collect();
    let wishes: Vec<String> =
        (0..8).map(|number| format!("('{number}', 'any', 'any', {}, 0)", if number == 7 { 4 } else { 2 })).collect();
    let view = |bit: &str| {
        format!(
            "CREATE ANONYMIZATION_VIEW by_{bit} ON SELECT id, {bit} FROM bits WITH ANONYMIZATION_ID id
             ANONYMIZATION_QUASI_ID ({bit}) id REFERENCES wishes (k, level)"
        )
    };
    let make = format!(
        "CREATE TABLE bits (id TEXT, a INT, b INT) AS VALUES {};
         CREATE TABLE wishes (id TEXT, purpose TEXT, recipient TEXT, k INT, level INT) AS VALUES {}; {}; {}",
        bits.join(", "),
        wishes.join(", "),
        view("a"),
        view("b"),
    );
    as_owner(&served.engine, &make).await;
    let mut owner = connect(&served, OWNER).await;
    owner.rows("CREATE USER bob PASSWORD 'correct horse'; GRANT SELECT ON by_a TO bob").await.unwrap();
    let (state, message) = owner.failure("GRANT SELECT ON by_b TO bob").await;
    let expected = "a user who reads by_b and by_a can tell some persons apart from all but 1 other";
    assert_eq!((state.as_str(), message.as_str()), ("42501", expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_is_replaced_by_one_that_tells_more_is_refused_when_it_is_read() {
    let served = serve(PEOPLE).await;
    as_owner(
        &served.engine,
        "CREATE TABLE others (name TEXT, zip TEXT) AS VALUES ('x', '1'), ('y', '2');
        CREATE ANONYMIZATION_VIEW again ON SELECT * FROM others WITH ANONYMIZATION_ID name
          ANONYMIZATION_QUASI_ID (zip DGH_NAME zip) K 2; GRANT SELECT ON again TO ann",
    )
    .await;
    let mut ann = connect(&served, ANALYST).await;
    assert_eq!(ann.rows("SELECT * FROM again").await.unwrap().len(), 2);
    as_owner(&served.engine, &AGAIN.replace("CREATE ", "CREATE OR REPLACE ")).await;
    for view in ["seen", "again"] {
        assert_eq!(ann.failure(&format!("SELECT * FROM {view}")).await.0, "42501");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_of_a_dropped_view_is_granted_no_other() {
    let served = serve(PEOPLE).await;
    let mut owner = connect(&served, OWNER).await;
    owner.rows("CREATE USER bob PASSWORD 'correct horse'").await.unwrap();
    owner.rows("DROP ANONYMIZATION_VIEW seen").await.unwrap();
    owner.rows(AGAIN).await.unwrap();
    let (state, message) = owner.failure("GRANT SELECT ON again TO ann").await;
    let expected = "'ann' could read 'seen', which was dropped, so it can't be compared with again";
    assert_eq!((state.as_str(), message.as_str()), ("42501", expected));
    assert_eq!(connect(&served, ANALYST).await.failure("SELECT * FROM again").await.0, "42P01");
    owner.rows("GRANT SELECT ON again TO bob; GRANT SELECT ON again TO ann FORCE").await.unwrap();
    for user in [ANALYST, "bob"] {
        assert_eq!(connect(&served, user).await.rows("SELECT * FROM again").await.unwrap().len(), 8);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_could_not_be_made_again_keeps_others_from_its_readers() {
    let served = serve(PEOPLE).await;
    served.engine.accounts().unwrap().grant(ANALYST, &Granted::View("lost".to_owned()), UNASKED).unwrap();
    let (state, message) = connect(&served, ANALYST).await.failure("SELECT * FROM seen").await;
    assert_eq!(state, "42501");
    assert!(message.contains("seen and lost can't be compared"), "{message}");
    connect(&served, OWNER).await.rows("DROP ANONYMIZATION_VIEW IF EXISTS lost").await.unwrap();
    assert_eq!(connect(&served, ANALYST).await.rows("SELECT * FROM seen").await.unwrap().len(), 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_with_a_partition_per_purpose_is_for_logins_with_one() {
    let served = serve(PEOPLE).await;
    let apart = "CREATE ANONYMIZATION_VIEW apart ON SELECT name, age, zip FROM people WITH ANONYMIZATION_ID name
        ANONYMIZATION_QUASI_ID (age, zip DGH_NAME zip) name REFERENCES choices (k, level) PER PURPOSE";
    as_owner(&served.engine, apart).await;
    let mut owner = connect(&served, OWNER).await;
    let make = "CREATE USER bob PASSWORD 'correct horse'; GRANT PURPOSE care RECIPIENT nurse TO bob; GRANT SELECT ON apart TO bob";
    owner.rows(make).await.unwrap();
    assert_eq!(owner.failure("GRANT PURPOSE study RECIPIENT lab TO bob").await.0, "42501");
    owner.rows("REVOKE PURPOSE care RECIPIENT nurse FROM bob").await.unwrap();
    assert_eq!(owner.failure("GRANT PURPOSE study RECIPIENT lab TO bob").await.0, "42501");
    let make = "CREATE USER cem PASSWORD 'correct horse'; GRANT PURPOSE care RECIPIENT nurse TO cem; GRANT PURPOSE study RECIPIENT lab TO cem";
    owner.rows(make).await.unwrap();
    assert_eq!(owner.failure("GRANT SELECT ON apart TO cem").await.0, "42501");
}

#[tokio::test(flavor = "multi_thread")]
async fn analysts_change_nothing() {
    let served = serve(PEOPLE).await;
    let mut ann = connect(&served, ANALYST).await;
    for sql in [
        "CREATE USER eve PASSWORD 'correct horse'",
        "ALTER USER olga PASSWORD 'correct horse'",
        "DROP USER olga",
        "GRANT PURPOSE study RECIPIENT lab TO ann",
        "GRANT SELECT ON seen TO ann",
        "REVOKE SELECT ON seen FROM ann",
        "SHOW USERS",
        "SHOW COMPLIANCE LOG",
        "COPY seen TO STDOUT",
        "COPY (SELECT 1) TO 'x.csv'",
        "CREATE TABLE t AS SELECT 1",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'",
        "INSERT INTO seen SELECT * FROM seen",
        "SET datafusion.catalog.information_schema = false",
        "SELECT * FROM '/etc/passwd'",
    ] {
        ann.failure(sql).await;
    }
    let granted = [["ann", "SELECT ON seen"], ["ann", "PURPOSE care RECIPIENT nurse"]];
    assert_eq!(ann.rows("SHOW GRANTS").await.unwrap(), granted);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_names_whatever_stands_in_them() {
    let served = serve(PEOPLE).await;
    let mut owner = connect(&served, OWNER).await;
    let name = "x\"\"; DROP USER ann; --','[";
    owner.rows(&format!("CREATE USER \"{name}\" PASSWORD 'correct horse'")).await.unwrap();
    owner.rows(&format!("CREATE DGH \"{name}\" FROM MASK RIGHT")).await.unwrap();
    let view = format!(
        "CREATE ANONYMIZATION_VIEW \"{name}\" ON SELECT name AS \"{name}\", zip FROM people
         WITH ANONYMIZATION_ID \"{name}\" ANONYMIZATION_QUASI_ID (zip DGH_NAME \"{name}\") K 2"
    );
    owner.rows(&view).await.unwrap();
    owner.rows(&format!("GRANT SELECT ON \"{name}\" TO \"{name}\"")).await.unwrap();
    let users = owner.rows("SHOW USERS").await.unwrap();
    assert!(users.contains(&vec!["ann".to_owned(), "analyst".to_owned()]), "{users:?}");

    let plain = name.replace("\"\"", "\"");
    let mut config = tokio_postgres::Config::new();
    config.host("127.0.0.1").port(served.port).user(&plain).password("correct horse").dbname("kohort");
    let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let rows = client.query(&format!("SELECT zip FROM \"{name}\""), &[]).await.unwrap();
    assert_eq!(rows.len(), 8);
    let listed = client.query("SELECT relname::text FROM pg_catalog.pg_class WHERE relkind = 'v'", &[]).await.unwrap();
    let listed: Vec<String> = listed.iter().map(|row| row.get(0)).collect();
    assert!(listed.contains(&plain), "{listed:?}");
    assert!(!listed.contains(&"seen".to_owned()), "{listed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_names_logins_and_holds_no_password_and_no_value() {
    let served = serve(PEOPLE).await;
    let mut owner = connect(&served, OWNER).await;
    owner.rows("CREATE USER bob PASSWORD 'battery staple'").await.unwrap();
    owner.rows("ALTER USER bob PASSWORD 'staple battery'").await.unwrap();
    let ann = connect(&served, ANALYST).await;
    ann.client.query("SELECT zip FROM seen WHERE illness = $1", &[&"flu"]).await.unwrap();
    let log = owner.rows("SHOW COMPLIANCE LOG").await.unwrap();
    let text = format!("{log:?}");
    for hidden in ["battery", "staple", "flu"] {
        assert!(!text.contains(hidden), "{text}");
    }
    let last = log.last().unwrap();
    let asked = "SELECT zip FROM seen WHERE illness = $1";
    assert_eq!(last[1..6], ["analyst", "ann", asked, "care", "nurse"], "{last:?}");
    assert!(text.contains("CREATE USER bob PASSWORD ?"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_of_an_owner_are_those_of_the_data_folder() {
    let in_memory = serve("").await;
    assert_eq!(connect(&in_memory, OWNER).await.failure("BEGIN").await.0, "0A000");

    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::open(folder.path(), Arc::new(Utc::now), ComplianceLog::new()).await.unwrap();
    let served = serve_engine(with_accounts(engine), Configuration::default()).await;
    let mut owner = connect(&served, OWNER).await;
    owner.rows("CREATE TABLE t (n INT)").await.unwrap();
    owner.rows("BEGIN; INSERT INTO t VALUES (1); ROLLBACK").await.unwrap();
    owner.rows("BEGIN; INSERT INTO t VALUES (2); COMMIT").await.unwrap();
    assert_eq!(owner.rows("SELECT n FROM t").await.unwrap(), [["2"]]);
    // A failure ends the whole transaction, as clients of PostgreSQL expect.
    owner.rows("BEGIN; INSERT INTO t VALUES (3)").await.unwrap();
    owner.failure("SELECT nothing FROM t").await;
    assert_eq!(owner.failure("INSERT INTO t VALUES (4)").await.0, "25P02");
    owner.rows("COMMIT").await.unwrap();
    assert_eq!(owner.rows("SELECT n FROM t").await.unwrap(), [["2"]]);
    // A savepoint prevents that.
    owner.rows("BEGIN; INSERT INTO t VALUES (7); SAVEPOINT here; INSERT INTO t VALUES (8)").await.unwrap();
    owner.failure("SELECT nothing FROM t").await;
    assert_eq!(owner.failure("ROLLBACK TO SAVEPOINT nowhere").await.0, "3B001");
    owner.rows("ROLLBACK TO here; INSERT INTO t VALUES (9); RELEASE here; COMMIT").await.unwrap();
    assert_eq!(owner.rows("SELECT n FROM t ORDER BY n").await.unwrap(), [["2"], ["7"], ["9"]]);
    // Disconnecting ends the transaction too.
    owner.rows("BEGIN; INSERT INTO t VALUES (5)").await.unwrap();
    drop(owner);
    let mut again = connect(&served, OWNER).await;
    again.rows("INSERT INTO t VALUES (6)").await.unwrap();
    assert_eq!(again.rows("SELECT n FROM t ORDER BY n").await.unwrap(), [["2"], ["6"], ["7"], ["9"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_of_a_view_that_changes_is_granted_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::open(folder.path(), Arc::new(Utc::now), ComplianceLog::new()).await.unwrap();
    let served = serve_engine(with_accounts(engine), Configuration::default()).await;
    let mut owner = connect(&served, OWNER).await;
    let view = |kind: &str, name: &str| {
        format!(
            "CREATE OR REPLACE {kind} ANONYMIZATION_VIEW {name} ON SELECT id, zip FROM people WITH ANONYMIZATION_ID id \
             ANONYMIZATION_QUASI_ID (zip DGH_NAME zip) K 2"
        )
    };
    for sql in [
        "CREATE TABLE people (id INT PRIMARY KEY, zip TEXT)",
        "INSERT INTO people VALUES (1, '10'), (2, '10'), (3, '20'), (4, '20')",
        "CREATE DGH zip FROM MASK RIGHT",
        &view("MATERIALIZED", "moving"),
        &view("", "still"),
        &view("", "later"),
        "GRANT SELECT ON moving TO ann",
    ] {
        owner.rows(sql).await.unwrap();
    }
    let (state, message) = owner.failure("GRANT SELECT ON still TO ann").await;
    assert_eq!(state, "42501");
    assert!(message.contains("still and moving can't be compared"), "{message}");

    owner
        .rows("CREATE USER bob PASSWORD 'correct horse'; GRANT SELECT ON still TO bob; GRANT SELECT ON later TO bob")
        .await
        .unwrap();
    let mut bob = connect(&served, "bob").await;
    assert_eq!(bob.rows("SELECT * FROM still").await.unwrap().len(), 4);
    // A granted view can't be replaced by one that changes.
    let (_, message) = owner.failure(&view("MATERIALIZED", "later")).await;
    assert!(message.contains("can't be replaced by a materialized view"), "{message}");
    assert_eq!(bob.rows("SELECT * FROM later").await.unwrap().len(), 4);
    let mut ann = connect(&served, ANALYST).await;
    let point = "SELECT * FROM moving WHERE zip = '10'";
    assert_eq!(ann.rows(point).await.unwrap().len(), 2);
    owner.rows("REVOKE SELECT ON moving FROM ann").await.unwrap();
    ann.failure(point).await;

    // A connection that holds the data folder would wait for itself.
    owner.rows("BEGIN; INSERT INTO people VALUES (5, '10')").await.unwrap();
    assert_eq!(owner.failure("GRANT SELECT ON still TO ann").await.0, "25001");
    owner.rows("ROLLBACK").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn privileges_are_those_of_the_login_that_asks() {
    let served = serve(PEOPLE).await;
    let mut ann = connect(&served, ANALYST).await;
    let mut owner = connect(&served, OWNER).await;
    let asks = |table: &str, privilege: &str| format!("SELECT has_table_privilege('{table}', '{privilege}')");
    for (table, privilege, of_ann, of_owner) in [
        ("seen", "SELECT", "t", "t"),
        ("public.seen", "insert, select", "t", "t"),
        ("seen", "SELECT WITH GRANT OPTION", "f", "t"),
        ("seen", "INSERT", "f", "t"),
        // Views that are not granted, and views that do not exist.
        ("people", "SELECT", "f", "t"),
        ("nothing", "SELECT", "f", "f"),
        ("pg_catalog.pg_class", "SELECT", "t", "t"),
    ] {
        let asked = asks(table, privilege);
        assert_eq!(ann.rows(&asked).await.unwrap(), [[of_ann]], "{asked}");
        assert_eq!(owner.rows(&asked).await.unwrap(), [[of_owner]], "{asked}");
    }
    let of_columns = "SELECT t, has_table_privilege(t, 'SELECT'), has_any_column_privilege('ann', t, 'SELECT')
        FROM (VALUES ('seen'), ('people')) AS named(t) ORDER BY t";
    assert_eq!(ann.rows(of_columns).await.unwrap(), [["people", "f", "f"], ["seen", "t", "t"]]);
    for (asked, says) in [
        ("SELECT has_schema_privilege('public', 'USAGE'), has_schema_privilege('public', 'CREATE')", ["t", "f"]),
        ("SELECT has_database_privilege('kohort', 'CONNECT'), has_database_privilege('kohort', 'CREATE')", ["t", "f"]),
    ] {
        assert_eq!(ann.rows(asked).await.unwrap(), [says], "{asked}");
    }
    assert_eq!(ann.failure("SELECT has_table_privilege('olga', 'seen', 'SELECT')").await.0, "0A000");
    assert_eq!(ann.failure("SELECT has_table_privilege(16384, 'SELECT')").await.0, "0A000");
    owner.rows("REVOKE SELECT ON seen FROM ann").await.unwrap();
    assert_eq!(ann.rows(&asks("seen", "SELECT")).await.unwrap(), [["f"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_numbers_do_not_wrap_around_and_dates_lose_no_hours() {
    let served = serve(PEOPLE).await;
    let most = "9223372036854775807";
    let made = format!("CREATE TABLE n (x BIGINT, i INT) AS VALUES ({most}, 2147483647), (1, 1), (-1, -1)");
    as_owner(&served.engine, &made).await;
    for user in [OWNER, ANALYST] {
        let mut asks = connect(&served, user).await;
        let numbers = match user {
            OWNER => "n".to_owned(),
            _ => format!("(VALUES ({most}, CAST(2147483647 AS INT)), (1, 1), (-1, -1)) AS n(x, i)"),
        };
        for out_of_range in [
            "SELECT x + x FROM n",
            "SELECT x * 2 FROM n",
            "SELECT -x - 2 FROM n",
            "SELECT CAST(i AS INT) * CAST(i AS INT) FROM n",
            "SELECT sum(x) FROM n WHERE x > 0",
            "SELECT i % 2, sum(x) FROM n WHERE x > 0 GROUP BY i % 2",
            "SELECT sum(DISTINCT x) FROM n WHERE x > 0",
            "SELECT sum(x) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM n",
            "SELECT CAST(x AS INT) FROM n",
            "SELECT 9223372036854775807 + 1",
        ] {
            let asked = out_of_range.replace("FROM n", &format!("FROM {numbers}"));
            let (state, message) = asks.failure(&asked).await;
            let is_cast = asked.contains("CAST(x AS INT)");
            assert_eq!(state, if is_cast { "22000" } else { "22003" }, "{user}: {asked}: {message}");
            assert!(!message.contains(most), "{message}");
        }
        // Intermediate sums may be larger than the result.
        for (asked, says) in [
            ("SELECT sum(x) FROM n", most),
            ("SELECT sum(DISTINCT x) FROM n", most),
            ("SELECT sum(y) FROM (SELECT x AS y FROM n UNION ALL SELECT -x FROM n) AS both", "0"),
            ("SELECT sum(i) FROM n", "2147483647"),
            ("SELECT sum(x) FROM n WHERE x > 5 AND x < 6", ""),
            ("SELECT max(x) - 1 FROM n", "9223372036854775806"),
        ] {
            let asked = asked.replace("FROM n", &format!("FROM {numbers}"));
            let expected = if says.is_empty() { "NULL" } else { says };
            assert_eq!(asks.rows(&asked).await.unwrap(), [[expected]], "{user}: {asked}");
        }
        assert_eq!(asks.failure("SELECT 1 / (x - x) FROM (VALUES (1)) AS n(x)").await.0, "22012");
        // Rounded as PostgreSQL rounds numerics.
        let rounded = "SELECT CAST(2.5 AS INT) AS a, CAST(-2.5 AS BIGINT) AS b, CAST(x AS INT) AS c,
            CAST(CAST(x AS DECIMAL(4, 1)) AS INT) AS d
            FROM (VALUES (7.6)) AS n(x)";
        assert_eq!(asks.rows(rounded).await.unwrap(), [["3", "-3", "8", "8"]]);
        for refused in [
            "SELECT DATE '2026-01-31' + INTERVAL '5 hours'",
            "SELECT INTERVAL '1 hour' + d FROM (VALUES (DATE '2026-01-31')) AS days(d)",
            "SELECT INTERVAL '40 days' > INTERVAL '1 month'",
        ] {
            assert_eq!(asks.failure(refused).await.0, "0A000", "{refused}");
        }
        let days = "SELECT DATE '2026-01-31' + INTERVAL '1 month' AS a, DATE '2026-03-01' - INTERVAL '1 day' AS b, DATE '2026-02-27' + 1 AS c";
        assert_eq!(asks.rows(days).await.unwrap(), [["2026-02-28", "2026-02-28", "2026-02-28"]]);
    }
}
