//! Wanted: the new value of one person, as the difference of a view before and after it was refreshed. The owner is warned.

use kohort_sql::Session;

use crate::folder::open;
use crate::session::{engine, owner, rows};

/// Two classes of three.
const PATIENTS: &str = "
    CREATE TABLE patient (name TEXT, age INT, ward TEXT, disease TEXT) AS VALUES
      ('Ann', 21, 'north', 'flu'), ('Bea', 22, 'north', 'cold'), ('Cem', 23, 'south', 'flu'),
      ('Dan', 64, 'south', 'cold'), ('Eva', 65, 'north', 'flu'), ('Fay', 66, 'south', 'gout')";

const VIEW: &str = "ANONYMIZATION_VIEW v ON SELECT name, age, ward, disease FROM patient WITH ANONYMIZATION_ID name
    ANONYMIZATION_QUASI_ID (age DGH_NAME age) ANONYMIZATION_SENSITIVE_ATTR (disease) ANONYMIZATION_OTHER (ward) K 3";

const SINGLED_OUT: &str =
    "warning: somebody who kept its earlier answers can single out some persons, by comparing which values changed";

async fn made(session: &mut Session) {
    rows(session, &format!("{PATIENTS}; CREATE DGH age FROM STEPS (10, 50); CREATE {VIEW}")).await;
}

/// The lines of a statement's message after the first.
async fn warned(session: &mut Session, sql: &str) -> Vec<String> {
    let said = rows(session, sql).await[0][0].clone();
    said.lines().skip(1).map(str::to_owned).collect()
}

/// Changes of the table, and whether the refreshed view singles somebody out.
const CHANGES: [(&str, bool); 7] = [
    ("UPDATE patient SET disease = 'gout' WHERE name = 'Ann'", true),
    ("UPDATE patient SET ward = 'east' WHERE name = 'Dan'", true),
    ("UPDATE patient SET disease = 'ulcer' WHERE name IN ('Bea', 'Cem')", true),
    ("UPDATE patient SET disease = 'scurvy' WHERE age > 60", false),
    ("UPDATE patient SET ward = 'west'", false),
    ("UPDATE patient SET ward = ward", false),
    // The change of a value that the label does not show.
    ("UPDATE patient SET age = 24 WHERE name = 'Ann'", false),
];

#[tokio::test]
async fn a_refresh_that_shows_the_changed_values_of_few_warns() {
    let engine = engine();
    let mut session = owner(&engine);
    made(&mut session).await;
    for how in ["REFRESH ANONYMIZATION_VIEW v".to_owned(), format!("CREATE OR REPLACE {VIEW}")] {
        rows(&mut session, &format!("DROP ANONYMIZATION_VIEW v; DROP TABLE patient; {PATIENTS}; CREATE {VIEW}")).await;
        for (change, is_told) in CHANGES {
            rows(&mut session, change).await;
            let expected: &[&str] = if is_told { &[SINGLED_OUT] } else { &[] };
            assert_eq!(warned(&mut session, &how).await, expected, "{change}; {how}");
        }
    }
}

#[tokio::test]
async fn a_view_of_a_folder_that_was_opened_again_warns_too() {
    let folder = tempfile::tempdir().unwrap();
    made(&mut owner(&open(folder.path()).await)).await;
    for (change, is_told) in CHANGES {
        let engine = open(folder.path()).await;
        let mut session = owner(&engine);
        rows(&mut session, change).await;
        let expected: &[&str] = if is_told { &[SINGLED_OUT] } else { &[] };
        assert_eq!(warned(&mut session, "REFRESH ANONYMIZATION_VIEW v").await, expected, "{change}");
    }
    // If the table changed and the folder was closed before a refresh, nobody knows any more what the view showed.
    rows(&mut owner(&open(folder.path()).await), "UPDATE patient SET disease = 'mumps' WHERE name = 'Ann'").await;
    let engine = open(folder.path()).await;
    let said = warned(&mut owner(&engine), "REFRESH ANONYMIZATION_VIEW v").await;
    let [said] = said.as_slice() else { panic!("{said:?}") };
    assert!(said.starts_with("warning: its earlier answers are not known any more"), "{said}");
}

#[tokio::test]
async fn a_view_with_other_columns_of_changed_tables_may_tell_and_of_unchanged_ones_does_not() {
    let engine = engine();
    let mut session = owner(&engine);
    made(&mut session).await;
    let without_ward =
        format!("CREATE OR REPLACE {}", VIEW.replace(" ANONYMIZATION_OTHER (ward)", "").replace(" ward,", ""));
    assert_eq!(warned(&mut session, &without_ward).await, Vec::<String>::new());
    rows(&mut session, CHANGES[0].0).await;
    let said = warned(&mut session, &format!("CREATE OR REPLACE {VIEW}")).await;
    let [said] = said.as_slice() else { panic!("{said:?}") };
    assert!(said.starts_with("warning: its earlier values can't be compared"), "{said}");
}
