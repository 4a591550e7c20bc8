//! psql: logging in, listing, describing, completing.

use crate::fixture::{ANALYST, OWNER, PASSWORD, PEOPLE, psql, psql_with, serve, serve_as, stderr, stdout};

#[tokio::test(flavor = "multi_thread")]
async fn an_analyst_logs_in_and_reads_a_view() {
    let served = serve(PEOPLE).await;
    let output = psql(&served, ANALYST, &["-c", "SELECT ward, count(*) FROM seen GROUP BY ward ORDER BY ward"]).await;
    assert_eq!(stdout(&output), "ward|count\nnorth|4\nsouth|4\n(2 rows)\n", "{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_of_an_owner_have_command_tags() {
    let served = serve("").await;
    let statements = PEOPLE.split(';').filter(|sql| !sql.trim().is_empty()).flat_map(|sql| ["-c", sql]);
    let output = psql(&served, OWNER, &statements.collect::<Vec<_>>()).await;
    let said: Vec<&str> = stderr(&output).lines().filter(|line| !line.starts_with("NOTICE:")).collect();
    assert_eq!(said, Vec::<&str>::new());
    let tags =
        "CREATE TABLE\nCREATE TABLE\nCREATE DGH\nCREATE DGH\nALTER DGH\nCREATE ANONYMIZATION_VIEW\nGRANT\nGRANT\n";
    assert_eq!(stdout(&output), tags);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_and_a_wrong_name_are_told_the_same() {
    let served = serve(PEOPLE).await;
    let wrong = psql_with(&served.url(ANALYST), "incorrect horse", &["-c", "SELECT 1"]).await;
    let unknown = psql_with(&served.url("nobody"), PASSWORD, &["-c", "SELECT 1"]).await;
    assert_eq!((wrong.status.code(), unknown.status.code()), (Some(2), Some(2)));
    assert!(stderr(&wrong).contains("password authentication failed for user \"ann\""), "{}", stderr(&wrong));
    assert_eq!(stderr(&wrong).replace("ann", "X"), stderr(&unknown).replace("nobody", "X"));
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_name_granted_views_and_nothing_else() {
    let served = serve(PEOPLE).await;
    crate::fixture::as_owner(
        &served.engine,
        "CREATE TABLE secret (name TEXT, zip TEXT) AS VALUES ('a', '1'), ('b', '2');
         CREATE ANONYMIZATION_VIEW hidden ON SELECT * FROM secret WITH ANONYMIZATION_ID name
           ANONYMIZATION_QUASI_ID (zip DGH_NAME zip) K 2",
    )
    .await;
    let mut failed = Vec::new();
    let lists = [
        r"\d",
        r"\dv",
        r"\dv+",
        r"\d+",
        r"\d+ *",
        r"\d+ people",
        r"\d+ seen",
        r"\dt",
        r"\d *",
        r"\d people",
        r"\d hidden",
        r"\df",
        r"\dn",
        r"\l",
        r"\du",
        r"\dp",
        r"\di",
    ];
    for list in lists {
        let output = psql(&served, ANALYST, &["-c", list]).await;
        let all = format!("{}{}", stdout(&output), stderr(&output));
        for hidden in ["choices", "secret", "olga"] {
            assert!(!all.contains(hidden), "{list} shows {hidden}: {all}");
        }
        if all.contains("ERROR") {
            failed.push(format!("{list}: {all}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    let views = psql(&served, ANALYST, &["--tuples-only", "-c", r"\dv"]).await;
    assert!(stdout(&views).starts_with("public|seen|view|"), "{}", stdout(&views));
    assert_eq!(stdout(&views).lines().count(), 1, "{}", stdout(&views));
    for missing in ["people", "hidden"] {
        let output = psql(&served, ANALYST, &["-c", &format!(r"\d {missing}")]).await;
        assert_eq!(stderr(&output), format!("Did not find any relation named \"{missing}\".\n"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn current_user_keeps_the_name_of_its_column() {
    let served = serve(PEOPLE).await;
    let output = psql(&served, ANALYST, &["-c", "SELECT current_user, session_user, current_user AS me"]).await;
    assert_eq!(stdout(&output), "current_user|session_user|me\nann|ann|ann\n(1 row)\n", "{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_is_described_by_its_columns() {
    let served = serve(PEOPLE).await;
    let output = psql(&served, ANALYST, &["--tuples-only", "-c", r"\d seen"]).await;
    let columns: Vec<&str> = stdout(&output).lines().map(|line| line.split("||").next().unwrap()).collect();
    let expected = ["name|text", "age|text", "zip|text", "ward|text", "illness|text"];
    assert_eq!(columns, expected, "{}", stderr(&output));
    let output = psql(&served, ANALYST, &["--tuples-only", "-c", r"\d+ seen"]).await;
    let columns: Vec<&str> = stdout(&output).lines().take(5).map(|line| line.split("||").next().unwrap()).collect();
    assert_eq!(columns, expected, "{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_is_named_like_the_catalog_is_a_view() {
    let served = serve(&PEOPLE.replace("seen", "pg_seen")).await;
    let query = "SELECT (SELECT count(*) FROM pg_seen) FROM pg_seen LIMIT 1";
    let output = psql(&served, ANALYST, &["--tuples-only", "-c", query]).await;
    assert_eq!(stdout(&output), "8\n", "{}", stderr(&output));
}

/// The queries of psql 15 when a name is completed after FROM, and after a table.
#[tokio::test(flavor = "multi_thread")]
async fn names_are_completed() {
    let served = serve(PEOPLE).await;
    let tables = "SELECT pg_catalog.quote_ident(c.relname), NULL::pg_catalog.text FROM pg_catalog.pg_class c \
                  WHERE c.relkind IN ('r', 'S', 'v', 'm', 'f', 'p') AND (c.relname) LIKE 'se%' \
                  AND pg_catalog.pg_table_is_visible(c.oid) \
                  AND c.relnamespace <> (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = 'pg_catalog') \
                  LIMIT 1000";
    let output = psql(&served, ANALYST, &["--tuples-only", "-c", tables]).await;
    assert_eq!(stdout(&output), "seen|\n", "{}", stderr(&output));
    let columns = "SELECT pg_catalog.quote_ident(a.attname) FROM pg_catalog.pg_attribute a, pg_catalog.pg_class c \
                   WHERE c.oid = a.attrelid AND a.attnum > 0 AND NOT a.attisdropped AND (a.attname) LIKE 'il%' \
                   AND c.relname = 'seen' AND pg_catalog.pg_table_is_visible(c.oid) LIMIT 1000";
    let output = psql(&served, ANALYST, &["--tuples-only", "-c", columns]).await;
    assert_eq!(stdout(&output), "illness\n", "{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn cursors_give_some_rows_at_a_time() {
    let served = serve(PEOPLE).await;
    let script = [
        "-c",
        "BEGIN",
        "-c",
        "DECLARE c CURSOR FOR SELECT ward FROM seen ORDER BY ward",
        "-c",
        "FETCH 3 FROM c",
        "-c",
        "FETCH FORWARD ALL FROM c",
        "-c",
        "FETCH NEXT FROM c",
        "-c",
        "CLOSE c",
        "-c",
        "COMMIT",
    ];
    let output = psql(&served, ANALYST, &[&["--tuples-only"], script.as_slice()].concat()).await;
    let expected =
        "BEGIN\nDECLARE CURSOR\nnorth\nnorth\nnorth\nnorth\nsouth\nsouth\nsouth\nsouth\nCLOSE CURSOR\nCOMMIT\n";
    assert_eq!(stdout(&output), expected, "{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_error_a_transaction_runs_nothing() {
    let served = serve(PEOPLE).await;
    let script = ["-c", "BEGIN", "-c", "SELECT nothing", "-c", "SELECT 1", "-c", "COMMIT", "-c", "SELECT 2"];
    let output = psql(&served, ANALYST, &[&["--tuples-only"], script.as_slice()].concat()).await;
    assert_eq!(stdout(&output), "BEGIN\nROLLBACK\n2\n");
    assert!(stderr(&output).contains("current transaction is aborted"), "{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_makes_tables_views_and_users() {
    let served = serve("").await;
    let script = [
        "-c",
        PEOPLE.split("GRANT").next().unwrap(),
        "-c",
        "INSERT INTO people VALUES ('Ida', 35, '1002', 'south', 'flu')",
        "-c",
        "REFRESH ANONYMIZATION_VIEW seen",
        "-c",
        "CREATE USER bob PASSWORD 'battery staple'",
        "-c",
        "GRANT SELECT ON seen TO bob",
        "-c",
        "GRANT PURPOSE study RECIPIENT lab TO bob",
        "-c",
        "SHOW GRANTS",
    ];
    let output = psql(&served, OWNER, &[&["--tuples-only"], script.as_slice()].concat()).await;
    assert!(stdout(&output).contains("\nINSERT 0 1\n"), "{}{}", stdout(&output), stderr(&output));
    assert!(
        stdout(&output).ends_with("GRANT\nbob|SELECT ON seen\nbob|PURPOSE study RECIPIENT lab\n"),
        "{}",
        stdout(&output)
    );
    assert!(stderr(&output).contains("NOTICE:  anonymization view seen: 9 rows"), "{}", stderr(&output));
    let read = psql_with(
        &served.url("bob"),
        "battery staple",
        &["--tuples-only", "-c", "SELECT DISTINCT illness FROM seen ORDER BY 1"],
    )
    .await;
    assert_eq!(stdout(&read), "infection\nstomach\n", "{}", stderr(&read));
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_a_state_and_a_hint() {
    let served = serve(PEOPLE).await;
    let verbose = ["-v", "VERBOSITY=verbose", "-c"];
    for (sql, state, said) in [
        ("SELECT * FROM people", "42P01", "table 'kohort.public.people' not found"),
        ("SELECT nothing FROM seen", "42703", "No field named nothing"),
        ("SELEC 1", "42601", "expected"),
        ("DROP TABLE seen", "42501", "HINT:  analysts read anonymization views"),
        ("SELECT age + 1 FROM seen", "42804", "HINT:  labels can be shown"),
        ("SELECT * FROM seen PURPOSE study RECIPIENT lab", "42501", "HINT:  you may use: PURPOSE care RECIPIENT nurse"),
        ("SET client_encoding = 'LATIN1'", "22023", "HINT"),
    ] {
        let output = psql(&served, ANALYST, &[verbose.as_slice(), &[sql]].concat()).await;
        assert!(stderr(&output).contains(&format!("ERROR:  {state}:")), "{sql}: {}", stderr(&output));
        assert!(stderr(&output).contains(said), "{sql}: {}", stderr(&output));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn health_is_asked_for_by_a_query() {
    let served = serve("").await;
    let output = psql(&served, ANALYST, &["--tuples-only", "-c", "SELECT 1", "-c", "SHOW kohort.health"]).await;
    assert_eq!(stdout(&output), "1\nok\n", "{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_is_spoken_bound_to_the_certificate_and_can_be_required() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = crate::limits::make_certificate(folder.path());
    let served = serve_as(PEOPLE, |configuration| {
        configuration.tls_certificate = Some(certificate);
        configuration.tls_key = Some(key);
        configuration.require_tls = true;
    })
    .await;
    let asked = ["--tuples-only", "-c", "SELECT count(*) FROM seen"];
    let plain = psql_with(&format!("{} sslmode=disable", served.url(ANALYST)), PASSWORD, &asked).await;
    assert!(stderr(&plain).contains("TLS is required"), "{}", stderr(&plain));
    for options in
        ["sslmode=require", "sslmode=require channel_binding=require", "sslmode=require channel_binding=disable"]
    {
        let secret = psql_with(&format!("{} {options}", served.url(ANALYST)), PASSWORD, &asked).await;
        assert_eq!(stdout(&secret), "8\n", "{options}: {}", stderr(&secret));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_exchanged_while_the_server_runs_and_a_bad_one_is_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = crate::limits::make_certificate(folder.path());
    let (first, other) = (folder.path().join("first.crt"), folder.path().join("other"));
    std::fs::copy(&certificate, &first).unwrap();
    std::fs::create_dir(&other).unwrap();
    let (next, next_key) = crate::limits::make_certificate(&other);
    let served = serve_as(PEOPLE, |configuration| {
        configuration.tls_certificate = Some(certificate.clone());
        configuration.tls_key = Some(key.clone());
    })
    .await;
    let asked = async |trusted: &std::path::Path| {
        let url = format!("{} sslmode=verify-ca sslrootcert={}", served.url(ANALYST), trusted.display());
        psql_with(&url, PASSWORD, &["--tuples-only", "-c", "SELECT count(*) FROM seen"]).await.status.success()
    };
    assert!(asked(&first).await && !asked(&next).await);
    std::fs::write(&certificate, "half of a new file").unwrap();
    assert!(asked(&first).await, "a file that can't be read changes nothing");
    std::fs::copy(&next, &certificate).unwrap();
    assert!(asked(&first).await, "nor does a certificate without its key");
    std::fs::copy(&next_key, &key).unwrap();
    assert!(asked(&next).await && !asked(&first).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn options_of_views_are_set_when_connecting() {
    let served = serve(PEOPLE).await;
    crate::fixture::as_owner(&served.engine, "GRANT PURPOSE study RECIPIENT lab TO ann").await;
    let url = format!("{} options='-c kohort.purpose=study -c kohort.recipient=lab'", served.url(ANALYST));
    let output =
        psql_with(&url, PASSWORD, &["--tuples-only", "-c", "SELECT DISTINCT illness FROM seen ORDER BY 1"]).await;
    assert_eq!(stdout(&output), "infection\nstomach\n", "{}", stderr(&output));
    let output = psql(&served, ANALYST, &["-c", "SELECT * FROM seen"]).await;
    assert!(stderr(&output).contains("a purpose is needed"), "{}", stderr(&output));
}
