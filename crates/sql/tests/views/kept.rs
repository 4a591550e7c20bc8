//! Views that keep their rows in memory, beside views that read their tables at each query.

use crate::session::{engine, owner, rows, try_rows};

const SETUP: &str = "
    CREATE TABLE people AS
      SELECT 'p' || value AS name, CAST(value % 7 AS INT) AS age, 'z' || value % 3 AS zip,
             CASE WHEN value % 5 = 0 THEN NULL ELSE 'd' || value % 4 END AS disease,
             CAST(value AS DOUBLE) / -8 AS weight, CAST('2020-01-01' AS DATE) + CAST(value % 9 AS INT) AS seen,
             CAST(value AS DECIMAL(12, 3)) AS paid, make_array(value, value % 2) AS visits,
             arrow_cast(value * 1000, 'Timestamp(Millisecond, Some(\"+02:00\"))') AS stamp, value % 2 = 0 AS is_in
      FROM generate_series(1, 60);
    CREATE TABLE choices AS
      SELECT name, CAST(age AS INT) AS k, age <> 3 AS zip_op, age <> 4 AS weight_op FROM people WHERE name <> 'p9';
    CREATE DGH age FROM STEPS (2, 4); CREATE DGH zip FROM MASK RIGHT; CREATE DGH disease FROM FLAT";

fn view(name: &str, options: &str) -> String {
    format!(
        "CREATE ANONYMIZATION_VIEW {name} ON SELECT * FROM people WITH ANONYMIZATION_ID name
           ANONYMIZATION_QUASI_ID (age DGH_NAME age, zip DGH_NAME zip)
           ANONYMIZATION_SENSITIVE_ATTR (disease DGH_NAME disease)
           ANONYMIZATION_OTHER (weight, seen, paid, visits, stamp, is_in)
           name REFERENCES choices (k) {options}"
    )
}

#[tokio::test]
async fn kept_rows_answer_as_their_tables_do() {
    let engine = engine();
    let mut owner = owner(&engine);
    rows(&mut owner, SETUP).await;
    for (number, options) in ["", "BLOCK 16", "DISCLOSURE ROW", "ANSWERS MATCHING", "PER PURPOSE"].iter().enumerate() {
        let (kept, read) = (format!("kept{number}"), format!("read{number}"));
        rows(&mut owner, &format!("SET kohort.keep_mb = 256; {}", view(&kept, options))).await;
        rows(&mut owner, &format!("SET kohort.keep_mb = 0; {}", view(&read, options))).await;
        for filter in ["", "WHERE age = 3", "WHERE zip = 'z1' AND age < 4", "WHERE age = 99", "WHERE zip IS NULL"] {
            let answers_of = |name: &str| format!("SELECT * FROM {name} {filter}");
            let mut from_kept = rows(&mut owner, &answers_of(&kept)).await;
            let mut from_tables = rows(&mut owner, &answers_of(&read)).await;
            from_kept.sort_unstable();
            from_tables.sort_unstable();
            assert_eq!(from_kept, from_tables, "{options} {filter}");
        }
        assert!(rows(&mut owner, &format!("SELECT * FROM {kept} WHERE age = 3")).await.len() > 3);
    }
}

#[tokio::test]
async fn a_kept_row_is_not_shown_once_its_table_has_changed() {
    let engine = engine();
    let mut owner = owner(&engine);
    rows(&mut owner, SETUP).await;
    rows(&mut owner, &view("v", "")).await;
    rows(&mut owner, "SELECT * FROM v").await;
    rows(&mut owner, "INSERT INTO people SELECT * FROM people WHERE FALSE").await;
    for query in ["SELECT * FROM v", "SELECT * FROM v WHERE age = 3"] {
        let problem = try_rows(&mut owner, query).await.unwrap_err();
        assert_eq!(problem.to_string(), "the data of the view have changed since it was verified");
    }
}

#[tokio::test]
async fn labels_and_their_counts_are_the_same_with_rows_and_without() {
    let statements = "
        CREATE TABLE people AS SELECT 'p' || (value * 7919 % 997) AS name, CAST(value % 41 AS INT) AS age,
            'z' || (value * 31 % 113) AS zip, 'd' || value % 5 AS disease FROM generate_series(1, 997);
        CREATE TABLE choices AS SELECT name, CAST(age % 7 AS INT) AS k, age <> 3 AS zip_op, 'care' AS purpose,
            'nurse' AS recipient FROM people;
        CREATE DGH age FROM STEPS (5, 20); CREATE DGH zip FROM MASK RIGHT";
    let kinds = [
        "K 5",
        "K 3 BLOCK 100",
        "K 4 ANSWERS AGGREGATES",
        "name REFERENCES choices (k)",
        "name REFERENCES choices (k) K 2",
        "name REFERENCES choices (k) K 2 DISCLOSURE ROW",
        "K 3 ANSWERS MATCHING",
    ];
    let questions = [
        "SELECT count(*) FROM v",
        "SELECT zip, count(*) FROM v GROUP BY zip ORDER BY zip",
        "SELECT DISTINCT age, zip FROM v ORDER BY age, zip",
        "SELECT count(*) FROM v WHERE age = 7 AND zip LIKE 'z1%'",
        "SELECT age, count(*) FROM v WHERE zip < 'z3' OR age > 30 GROUP BY age ORDER BY age",
        "SELECT count(*) FROM v AS a JOIN v AS b ON a.zip = b.zip WHERE a.age = 11",
    ];
    for kind in kinds {
        let engine = engine();
        let mut owner = owner(&engine);
        let view = format!(
            "CREATE ANONYMIZATION_VIEW v ON SELECT * FROM people WITH ANONYMIZATION_ID name
               ANONYMIZATION_QUASI_ID (age DGH_NAME age, zip DGH_NAME zip) ANONYMIZATION_SENSITIVE_ATTR (disease) {kind}"
        );
        rows(&mut owner, &format!("{statements}; {view}; SET kohort.purpose = 'care'; SET kohort.recipient = 'nurse'"))
            .await;
        let questions = questions.iter().filter(|question| !(kind.contains("MATCHING") && question.contains("JOIN")));
        for question in questions {
            rows(&mut owner, "SET kohort.plan = 'select_first'").await;
            let by_classes = rows(&mut owner, question).await;
            rows(&mut owner, "SET kohort.plan = 'anonymize_first'").await;
            assert_eq!(rows(&mut owner, question).await, by_classes, "{kind}: {question}");
        }
        if !kind.contains("AGGREGATES") {
            // The order of rows must not tell which way they came.
            rows(&mut owner, "SET kohort.plan = 'select_first'").await;
            let labels = rows(&mut owner, "SELECT age, zip FROM v").await;
            let with_others = rows(&mut owner, "SELECT age, zip, disease FROM v").await;
            let first_two: Vec<Vec<String>> = with_others.iter().map(|row| row[..2].to_vec()).collect();
            assert_eq!(labels, first_two, "{kind}");
        }
    }
}
