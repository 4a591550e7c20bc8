//! The patients of the paper's figure 8.

use kohort_sql::Role;

use crate::session::{engine, owner, rows, try_rows};

const PATIENTS: &str = include_str!("patients.sql");

fn view(name: &str, options: &str) -> String {
    format!(
        "CREATE ANONYMIZATION_VIEW {name} ON SELECT name, birth, zipcode, disease FROM patient
         WITH ANONYMIZATION_ID name
         ANONYMIZATION_QUASI_ID (birth DGH_NAME birth, zipcode DGH_NAME zip)
         ANONYMIZATION_SENSITIVE_ATTR (disease DGH_NAME disease)
         name REFERENCES choices (k, sa_level) {options};"
    )
}

const AS_NURSE: &str = "PURPOSE Treatment RECIPIENT Nurse";

#[tokio::test]
async fn the_view_of_the_paper_has_one_of_its_two_partitions() {
    let engine = engine();
    let mut owner = owner(&engine);
    rows(&mut owner, PATIENTS).await;
    rows(&mut owner, &view("by_row", "DISCLOSURE ROW")).await;
    let shown = rows(&mut owner, &format!("SELECT * FROM by_row ORDER BY zipcode, disease {AS_NURSE}")).await;
    assert_eq!(shown.len(), 5);
    assert!(shown.iter().all(|row| row[0] == "NULL"), "names are hidden: {shown:?}");
    // Either {P1, P2} and {P3, P4, P5}, or {P1, P2, P3} and {P4, P5}.
    let mut diseases: Vec<&str> = shown.iter().map(|row| row[3].as_str()).collect();
    diseases.sort_unstable();
    assert_eq!(diseases, ["Indigestion", "Pneumonia", "Stomach-disease", "Viral-disease", "Viral-disease"]);
    let hidden_births = shown.iter().filter(|row| row[1] == "NULL").count();
    assert_eq!(hidden_births, 2, "P1 and P3 refuse: {shown:?}");
}

#[tokio::test]
async fn by_default_a_refusal_raises_the_column_for_the_class() {
    let engine = engine();
    let mut owner = owner(&engine);
    rows(&mut owner, PATIENTS).await;
    rows(&mut owner, &view("by_class", "")).await;
    let shown = rows(&mut owner, &format!("SELECT birth, zipcode FROM by_class {AS_NURSE}")).await;
    // Whichever classes P1 and P3 are in, each class of the paper has a member who does not show the birth.
    assert!(shown.iter().filter(|row| row[0] == "*").count() >= 3, "{shown:?}");
    assert!(shown.iter().all(|row| row[0] != "NULL"));
}

#[tokio::test]
async fn a_zipcode_is_answered_from_the_view_or_by_matching_classes() {
    let engine = engine();
    let mut owner = owner(&engine);
    rows(&mut owner, PATIENTS).await;
    rows(&mut owner, &view("from_view", "")).await;
    rows(&mut owner, &view("matching", "ANSWERS MATCHING")).await;
    for plan in ["anonymize_first", "select_first", "auto"] {
        rows(&mut owner, &format!("SET kohort.plan = '{plan}'")).await;
        let from_view = rows(&mut owner, &format!("SELECT * FROM from_view WHERE zipcode = '88512' {AS_NURSE}")).await;
        let all = rows(&mut owner, &format!("SELECT zipcode FROM from_view {AS_NURSE}")).await;
        let could = all.iter().filter(|row| ["88512", "885**", "88***", "*****"].contains(&row[0].as_str())).count();
        assert_eq!(from_view.len(), could);
        let matching = rows(&mut owner, &format!("SELECT * FROM matching WHERE zipcode = '88512' {AS_NURSE}")).await;
        assert!((2..=3).contains(&matching.len()), "{matching:?}");
        let named = rows(&mut owner, &format!("SELECT * FROM from_view WHERE name = 'P1' {AS_NURSE}")).await;
        assert!(named.is_empty(), "names are hidden");
    }
}

#[tokio::test]
async fn an_analyst_sees_the_view_and_nothing_below() {
    let engine = engine();
    let mut owner = owner(&engine);
    rows(&mut owner, PATIENTS).await;
    rows(&mut owner, &view("patient_aview", "")).await;
    let mut analyst = engine.session(Role::Analyst);
    let shown = rows(&mut analyst, &format!("SELECT * FROM patient_aview {AS_NURSE}")).await;
    assert_eq!(shown.len(), 5);
    for statement in [
        "SELECT * FROM patient",
        "SELECT * FROM choices",
        "CREATE TABLE t AS SELECT 1",
        "COPY (SELECT 1) TO 'x.csv'",
        "SET datafusion.optimizer.skip_failed_rules = true",
        "SELECT * FROM patient_aview",
        "SELECT * FROM patient_aview PURPOSE Marketing RECIPIENT Nurse",
    ] {
        assert!(try_rows(&mut analyst, statement).await.is_err(), "{statement}");
    }
}
