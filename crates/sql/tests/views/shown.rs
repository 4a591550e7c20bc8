//! What views show as a whole: in pieces, and as the statements that make them.

use crate::session::{engine, owner, rows, try_rows};

/// More rows than leave in one piece.
const N_ROWS: usize = 150_000;

fn many(options: &str) -> String {
    format!(
        "CREATE TABLE people AS SELECT 'p' || (value * 7919 % {N_ROWS}) AS name, CAST(value % 97 AS INT) AS age,
             'z' || (value * 31 % 113) AS zip, 'd' || value % 5 AS disease FROM generate_series(1, {N_ROWS});
         CREATE TABLE choices AS SELECT name, CAST(5 AS INT) AS k, age <> 3 AS zip_op, disease <> 'd1' AS age_op,
             'care' AS purpose, 'nurse' AS recipient FROM people;
         CREATE DGH age FROM STEPS (5, 20); CREATE DGH zip FROM MASK RIGHT;
         CREATE ANONYMIZATION_VIEW v ON SELECT * FROM people WITH ANONYMIZATION_ID name
           ANONYMIZATION_QUASI_ID (age DGH_NAME age, zip DGH_NAME zip) ANONYMIZATION_SENSITIVE_ATTR (disease) {options};
         SET kohort.purpose = 'care'; SET kohort.recipient = 'nurse'"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_view_leaves_in_pieces_of_whole_classes_in_the_order_of_their_labels() {
    for options in
        ["K 50 BLOCK 1024", "K 5", "name REFERENCES choices (k)", "name REFERENCES choices (k) DISCLOSURE ROW"]
    {
        let engine = engine();
        let mut owner = owner(&engine);
        rows(&mut owner, &many(options)).await;
        let mut shown = rows(&mut owner, "SELECT age, zip, disease FROM v").await;
        assert_eq!(shown.len(), N_ROWS, "{options}");
        let labels = |rows: &[Vec<String>]| -> Vec<Vec<String>> {
            let mut labels: Vec<Vec<String>> = rows.iter().map(|row| row[..2].to_vec()).collect();
            labels.dedup();
            labels
        };
        let in_order = labels(&shown);
        // With DISCLOSURE ROW everything leaves together, and missing labels stand at one end.
        let is_whole = options.ends_with("ROW");
        assert!(is_whole || in_order.is_sorted(), "{options}: the order of classes tells more than their labels");
        rows(&mut owner, "SET kohort.plan = 'anonymize_first'").await;
        let mut first = rows(&mut owner, "SELECT age, zip, disease FROM v").await;
        shown.sort_unstable();
        first.sort_unstable();
        assert!(shown == first, "{options}: the plans differ");
    }
}

#[tokio::test]
async fn a_shown_statement_makes_the_same_view_and_dgh() {
    let engine = engine();
    let mut owner = owner(&engine);
    rows(
        &mut owner,
        "CREATE TABLE people AS SELECT 'p' || value AS \"Name\", CAST(value % 7 AS INT) AS age, 'it''s' AS zip,
             'd' || value % 3 AS disease, value AS n FROM generate_series(1, 60);
         CREATE TABLE \"The choices\" AS SELECT \"Name\", CAST(3 AS INT) AS k, CAST(0 AS INT) AS level FROM people;
         CREATE DGH age FROM STEPS (5, 10); CREATE DGH zip; CREATE DGH masks FROM MASK LEFT; CREATE DGH flat FROM FLAT;
         CREATE DGH days FROM DATES (month, year); CREATE DGH nothing;
         INSERT INTO DGH zip VALUES ('it''s', '*'), ('other', '*')",
    )
    .await;
    for dgh in ["age", "zip", "masks", "flat", "days", "nothing"] {
        let shown = rows(&mut owner, &format!("SHOW CREATE DGH {dgh}")).await[0][1].clone();
        rows(&mut owner, &format!("DROP DGH {dgh}; {shown}")).await;
        assert_eq!(rows(&mut owner, &format!("SHOW CREATE DGH {dgh}")).await[0][1], shown);
    }
    for options in [
        "K 3",
        "K 2 USING mondrian L_DIVERSITY 2 ANSWERS MATCHING",
        "K 2 USING top_down T_CLOSENESS 0.9",
        "BLOCK 20 LEFTOVERS SUPPRESS DISCLOSURE ROW \"Name\" REFERENCES \"The choices\" (k, level) K 2",
        "\"Name\" REFERENCES \"The choices\" (k)",
        "K 4 ANSWERS AGGREGATES",
    ] {
        let view = format!(
            "CREATE ANONYMIZATION_VIEW \"a view\" ON SELECT \"Name\", age, zip, disease, n FROM people WHERE n > 0 -- all
               WITH ANONYMIZATION_ID \"Name\" ANONYMIZATION_QUASI_ID {{{{age DGH_NAME age}}, {{zip DGH_NAME zip}}}}
               ANONYMIZATION_SENSITIVE_ATTR (disease) ANONYMIZATION_OTHER (n) {options}"
        );
        rows(&mut owner, &view).await;
        let show = "SHOW CREATE ANONYMIZATION_VIEW \"a view\"";
        let shown = rows(&mut owner, show).await[0][1].clone();
        rows(&mut owner, "DROP ANONYMIZATION_VIEW \"a view\"").await;
        rows(&mut owner, &shown).await;
        assert_eq!(rows(&mut owner, show).await[0][1], shown, "{options}");
        for word in options.split_whitespace() {
            assert!(shown.contains(word), "{word} is not in {shown}");
        }
        rows(&mut owner, "DROP ANONYMIZATION_VIEW \"a view\"").await;
    }
    assert!(try_rows(&mut owner, "SHOW CREATE ANONYMIZATION_VIEW nothing").await.is_err());
}
