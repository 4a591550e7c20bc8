//! When a folder is opened again, a computed view shows what it showed before, or is stale until a REFRESH.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use kohort_sql::view::ViewError;
use kohort_sql::{Engine, SqlError};

use crate::folder::{analyst, open, open_by, sorted};
use crate::session::{owner, rows, try_rows};

const PATIENTS: &str = "
    CREATE TABLE patient (name TEXT PRIMARY KEY, age INT, disease TEXT, note TEXT);
    INSERT INTO patient VALUES
        ('a', 21, 'flu', 'x'), ('b', 22, 'gout', 'y'), ('c', 35, 'flu', 'x'), ('d', 36, 'cold', 'x'),
        ('e', 52, 'cold', 'y'), ('f', 55, 'flu', 'x');
    CREATE TABLE choice (name TEXT, k INT, ward_op TEXT);
    INSERT INTO choice VALUES ('*', 2, 'yes');
    CREATE DGH age FROM STEPS (10, 50);
    CREATE DGH disease;
    INSERT INTO DGH disease VALUES ('flu', 'virus'), ('cold', 'virus'), ('virus', 'any'), ('gout', 'any');";

const SEEN: &str = "
    CREATE ANONYMIZATION_VIEW seen ON SELECT name, age, disease, note AS ward FROM patient
    WITH ANONYMIZATION_ID name ANONYMIZATION_QUASI_ID (age DGH_NAME age)
    ANONYMIZATION_SENSITIVE_ATTR (disease DGH_NAME disease) ANONYMIZATION_OTHER (ward) name REFERENCES choice (k);";

const ASKED: &str = "SELECT * FROM seen";

async fn made(folder: &Path) -> Engine {
    let engine = open(folder).await;
    rows(&mut owner(&engine), &format!("{PATIENTS} {SEEN}")).await;
    engine
}

/// The state and the version that SHOW tells the owner.
async fn shown(engine: &Engine) -> (String, String) {
    let views = rows(&mut owner(engine), "SHOW ANONYMIZATION_VIEWS").await;
    let seen = views.into_iter().find(|view| view[0] == "seen").expect("the view is known");
    (seen[1].clone(), seen[2].clone())
}

async fn is_stale(engine: &Engine) -> bool {
    let mut stale = Vec::new();
    for mut session in [owner(engine), analyst(engine)] {
        stale.push(match try_rows(&mut session, ASKED).await {
            Ok(_) => false,
            Err(SqlError::View(ViewError::Stale)) => true,
            Err(other) => panic!("{other:?}"),
        });
    }
    assert_eq!(stale[0], stale[1], "owners and analysts are told the same");
    stale[0]
}

/// Checks that the view is stale for this reason after the statements and a new opening, until a REFRESH.
async fn is_stale_after(changed_by: &str, reason: &str) {
    let folder = tempfile::tempdir().unwrap();
    let engine = made(folder.path()).await;
    rows(&mut owner(&engine), changed_by).await;
    drop(engine);
    let engine = open(folder.path()).await;
    assert!(is_stale(&engine).await, "after {changed_by}");
    assert_eq!(shown(&engine).await, (format!("stale: {reason}, REFRESH it"), "NULL".to_owned()));
    let to_analysts = rows(&mut analyst(&engine), "SHOW ANONYMIZATION_VIEWS").await;
    assert_eq!(to_analysts, [["seen", "stale"]]);
    drop(engine);
    let engine = open(folder.path()).await;
    assert!(is_stale(&engine).await, "opening it once more changes nothing");
    let mut session = owner(&engine);
    let said = &rows(&mut session, "REFRESH ANONYMIZATION_VIEW seen").await[0][0];
    assert!(said.contains("\nwarning: its earlier answers are not known any more: "), "{said}");
    let refreshed = sorted(&mut analyst(&engine), ASKED).await;
    assert_eq!(shown(&engine).await, ("usable".to_owned(), "2".to_owned()));
    drop((session, engine));
    let engine = open(folder.path()).await;
    assert_eq!(sorted(&mut analyst(&engine), ASKED).await, refreshed);
}

#[tokio::test]
async fn a_view_whose_tables_did_not_change_is_the_same_version() {
    let folder = tempfile::tempdir().unwrap();
    let engine = made(folder.path()).await;
    let before = sorted(&mut analyst(&engine), ASKED).await;
    let undone = "INSERT INTO patient VALUES ('g', 23, 'flu', 'x'); DELETE FROM patient WHERE name = 'g';";
    for between in ["", "CREATE TABLE other (x INT);", undone] {
        rows(&mut owner(&engine), &format!("SELECT 1; {between}")).await;
    }
    assert!(is_stale(&engine).await, "a change is noticed before anybody looks what it did");
    drop(engine);
    let engine = open(folder.path()).await;
    assert_eq!(sorted(&mut analyst(&engine), ASKED).await, before);
    assert_eq!(shown(&engine).await, ("usable".to_owned(), "1".to_owned()));
}

#[tokio::test]
async fn a_view_whose_tables_changed_is_stale_when_its_folder_is_opened() {
    is_stale_after("INSERT INTO patient VALUES ('g', 23, 'flu', 'x')", "its tables changed").await;
    is_stale_after("DELETE FROM patient WHERE name = 'a'", "its tables changed").await;
    is_stale_after("UPDATE patient SET disease = 'gout' WHERE name = 'a'", "its tables changed").await;
    is_stale_after("UPDATE patient SET note = 'z' WHERE name = 'a'", "its tables changed").await;
}

#[tokio::test]
async fn a_view_whose_choices_changed_is_stale_when_its_folder_is_opened() {
    is_stale_after("UPDATE choice SET ward_op = 'no'", "its choices changed").await;
    is_stale_after("INSERT INTO choice VALUES ('a', 2, 'yes')", "its choices changed").await;
}

#[tokio::test]
async fn a_view_whose_dgh_changed_is_stale_when_its_folder_is_opened() {
    is_stale_after("CREATE OR REPLACE DGH age FROM STEPS (20, 100)", "its DGHs changed").await;
    // All classes have the same labels, but the labels mean something else.
    is_stale_after("INSERT INTO DGH disease VALUES ('measles', 'virus')", "its DGHs changed").await;
}

#[tokio::test]
async fn a_view_that_can_not_be_made_again_is_stale_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let engine = made(folder.path()).await;
    rows(&mut owner(&engine), "DROP DGH age").await;
    assert!(!is_stale(&engine).await, "a version has its own DGH");
    drop(engine);
    let engine = open(folder.path()).await;
    assert!(is_stale(&engine).await);
    let (state, _) = shown(&engine).await;
    assert!(state.starts_with("stale: it can't be made again (column 'age': there is no DGH"), "{state}");
    let mut session = owner(&engine);
    assert!(try_rows(&mut session, "REFRESH ANONYMIZATION_VIEW seen").await.is_err());
    rows(&mut session, "CREATE DGH age FROM STEPS (10, 50); REFRESH ANONYMIZATION_VIEW seen").await;
    assert!(!is_stale(&engine).await);
}

#[tokio::test]
async fn a_view_of_a_file_that_changed_is_stale_when_its_folder_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("patients.csv");
    let content = "name,age\na,21\nb,22\nc,35\nd,36\n";
    std::fs::write(&file, content).unwrap();
    let engine = open(folder.path()).await;
    let made_by = format!(
        "CREATE EXTERNAL TABLE patient (name VARCHAR, age INT) STORED AS CSV LOCATION '{}' OPTIONS (format.has_header 'true');
         CREATE ANONYMIZATION_VIEW seen ON SELECT name, age FROM patient
         WITH ANONYMIZATION_ID name ANONYMIZATION_QUASI_ID (age) K 2;",
        file.display()
    );
    rows(&mut owner(&engine), &made_by).await;
    let before = sorted(&mut analyst(&engine), ASKED).await;
    drop(engine);
    // The same rows in another order are the same table.
    std::fs::write(&file, "name,age\nd,36\nb,22\nc,35\na,21\n").unwrap();
    let engine = open(folder.path()).await;
    assert_eq!(sorted(&mut analyst(&engine), ASKED).await, before);
    drop(engine);
    std::fs::write(&file, content.replace("36", "37")).unwrap();
    let engine = open(folder.path()).await;
    assert!(is_stale(&engine).await);
    assert_eq!(shown(&engine).await.0, "stale: its tables changed, REFRESH it");
    rows(&mut owner(&engine), "REFRESH ANONYMIZATION_VIEW seen").await;
    assert!(!is_stale(&engine).await);
}

/// Sixty patients with choices, as a file that begins with the patient of this number.
fn sixty(first: usize) -> String {
    let patient = |row: usize| format!("p{row},{},{},{}\n", row * 7 % 60, 1000 + row * 37 % 90, row % 5);
    let all: String = (0..60).map(|place| patient((first + place * 7) % 60)).collect();
    format!("name,age,zip,disease\n{all}")
}

#[tokio::test]
async fn every_partitioner_makes_the_same_version_again_whatever_the_order_of_rows() {
    let ways = [
        "K 3 USING auto",
        "K 3 USING mondrian",
        "K 3 USING top_down L_DIVERSITY 2",
        "K 3 USING cluster",
        "K 3 USING full_domain LEFTOVERS SUPPRESS",
        "K 3 USING datafly BLOCK 20",
        "name REFERENCES choice (k) USING mondrian PER PURPOSE",
    ];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sixty.csv");
    std::fs::write(&file, sixty(0)).unwrap();
    let engine = open(folder.path()).await;
    let mut session = owner(&engine);
    let tables = format!(
        "CREATE EXTERNAL TABLE patient (name VARCHAR, age INT, zip VARCHAR, disease VARCHAR)
           STORED AS CSV LOCATION '{}' OPTIONS (format.has_header 'true');
         CREATE TABLE choice (name TEXT, purpose TEXT, k INT);
         INSERT INTO choice VALUES ('*', 'care', 2), ('*', 'research', 4), ('p7', 'care', 5), ('p8', 'research', 0);
         CREATE DGH age FROM STEPS (10, 50); CREATE DGH zip FROM MASK RIGHT;",
        file.display()
    );
    rows(&mut session, &tables).await;
    for (number, way) in ways.iter().enumerate() {
        let view = format!(
            "CREATE ANONYMIZATION_VIEW v{number} ON SELECT name, age, zip, disease FROM patient
             WITH ANONYMIZATION_ID name ANONYMIZATION_QUASI_ID (age DGH_NAME age, zip DGH_NAME zip)
             ANONYMIZATION_SENSITIVE_ATTR (disease) {way};"
        );
        rows(&mut session, &view).await;
    }
    let before = rows(&mut session, "SHOW ANONYMIZATION_VIEWS").await;
    drop((session, engine));
    for first in [17, 42] {
        std::fs::write(&file, sixty(first)).unwrap();
        let engine = open(folder.path()).await;
        assert_eq!(rows(&mut owner(&engine), "SHOW ANONYMIZATION_VIEWS").await, before);
    }
}

#[tokio::test]
async fn a_view_that_could_not_be_built_waits_for_a_refresh_when_its_folder_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let engine = made(folder.path()).await;
    let mut session = owner(&engine);
    rows(&mut session, "INSERT INTO choice VALUES ('a', 7, 'yes')").await;
    assert!(try_rows(&mut session, "REFRESH ANONYMIZATION_VIEW seen").await.is_err());
    rows(&mut session, "UPDATE choice SET k = 2").await;
    drop((session, engine));
    let engine = open(folder.path()).await;
    assert!(shown(&engine).await.0.starts_with("unusable: "));
    assert!(try_rows(&mut analyst(&engine), ASKED).await.is_err());
    rows(&mut owner(&engine), "REFRESH ANONYMIZATION_VIEW seen").await;
    assert_eq!(rows(&mut analyst(&engine), ASKED).await.len(), 6);
}

#[tokio::test]
async fn a_view_of_which_a_folder_knows_no_version_is_stale() {
    let folder = tempfile::tempdir().unwrap();
    let engine = made(folder.path()).await;
    let change = engine.store().unwrap().write().unwrap();
    let older = format!("{{\"order\":9,\"text\":{:?}}}", SEEN.replace('\n', " "));
    change.put_record("statement", "seen", &older).unwrap();
    change.commit().unwrap();
    drop((change, engine));
    let engine = open(folder.path()).await;
    assert!(is_stale(&engine).await);
    rows(&mut owner(&engine), "REFRESH ANONYMIZATION_VIEW seen").await;
    assert!(!is_stale(&engine).await);
}

#[tokio::test]
async fn expired_values_stay_hidden_if_the_clock_goes_back() {
    let folder = tempfile::tempdir().unwrap();
    let day = Arc::new(AtomicU32::new(0));
    let on = |number: u32| day.store(number, Ordering::Relaxed);
    let wards = async |engine: &Engine| sorted(&mut analyst(engine), "SELECT DISTINCT ward FROM seen").await;
    on(1);
    let engine = open_by(folder.path(), &day).await;
    let until = PATIENTS.replace("ward_op TEXT", "ward_until TEXT").replace("'yes'", "'2026-01-04'");
    rows(&mut owner(&engine), &format!("{until} {SEEN}")).await;
    assert_eq!(wards(&engine).await, [["x"], ["y"]]);
    on(4);
    assert_eq!(wards(&engine).await, [["NULL"]]);
    on(2);
    assert_eq!(wards(&engine).await, [["NULL"]]);
    drop(engine);
    let engine = open_by(folder.path(), &day).await;
    assert_eq!(wards(&engine).await, [["NULL"]]);
}

#[tokio::test]
async fn a_view_that_would_be_unusable_takes_no_others_place() {
    let folder = tempfile::tempdir().unwrap();
    let engine = made(folder.path()).await;
    let before = sorted(&mut analyst(&engine), ASKED).await;
    let mut session = owner(&engine);
    let unreachable = SEEN.replace("CREATE", "CREATE OR REPLACE").replace("name REFERENCES choice (k)", "K 50");
    let refused = try_rows(&mut session, &unreachable).await.unwrap_err();
    assert!(matches!(refused, SqlError::View(ViewError::NotReplaced { .. })), "{refused}");
    assert_eq!(refused.exit_code(), 1);
    assert_eq!(sorted(&mut analyst(&engine), ASKED).await, before);
    drop((session, engine));
    assert_eq!(sorted(&mut analyst(&open(folder.path()).await), ASKED).await, before);
}

#[tokio::test]
async fn a_refresh_warns_if_earlier_answers_are_not_known() {
    let folder = tempfile::tempdir().unwrap();
    let engine = made(folder.path()).await;
    let mut session = owner(&engine);
    rows(&mut session, "UPDATE choice SET k = 50").await;
    try_rows(&mut session, "REFRESH ANONYMIZATION_VIEW seen").await.unwrap_err();
    drop((session, engine));
    let mut session = owner(&open(folder.path()).await);
    rows(&mut session, "UPDATE choice SET k = 3").await;
    let said = &rows(&mut session, "REFRESH ANONYMIZATION_VIEW seen").await[0][0];
    assert!(said.contains("\nwarning: its earlier answers are not known any more: "), "{said}");
}

#[tokio::test]
async fn a_view_that_is_computed_is_refreshed_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = owner(&made(folder.path()).await);
    rows(&mut session, "INSERT INTO patient VALUES ('g', 23, 'flu', 'x')").await;
    for how in ["PARTIAL", "FORCE"] {
        let refused = try_rows(&mut session, &format!("REFRESH ANONYMIZATION_VIEW seen {how}")).await.unwrap_err();
        assert!(matches!(refused, SqlError::NotMaterialized { .. }), "{refused}");
    }
    let refused = try_rows(&mut session, ASKED).await.unwrap_err();
    assert!(matches!(refused, SqlError::View(ViewError::Stale)), "nothing was shown anew: {refused}");
}
