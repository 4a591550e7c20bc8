//! Tables, DGHs, views and grants are still there when a folder is opened again.

use std::path::Path;

use kohort_sql::Engine;

use crate::folder::{analyst, known, open, sorted, try_open};
use crate::session::{owner, rows, try_rows};

const PATIENTS: &str = "
    CREATE TABLE patient (name TEXT PRIMARY KEY, age INT, zip TEXT, disease TEXT);
    INSERT INTO patient VALUES
        ('a', 21, '08512', 'flu'), ('b', 22, '08513', 'gout'), ('c', 35, '08591', 'flu'), ('d', 36, '08592', 'cold'),
        ('e', 52, '99111', 'cold'), ('f', 55, '99112', 'flu');
    CREATE DGH age FROM STEPS (10, 50);
    CREATE DGH zip FROM MASK RIGHT;";

const MATERIALIZED: &str = "
    CREATE MATERIALIZED ANONYMIZATION_VIEW kept ON SELECT name, age, zip, disease FROM patient
    WITH ANONYMIZATION_ID name ANONYMIZATION_QUASI_ID (age DGH_NAME age, zip DGH_NAME zip)
    ANONYMIZATION_SENSITIVE_ATTR (disease) K 2;";

const LOGICAL: &str = "
    CREATE ANONYMIZATION_VIEW computed ON SELECT name, age, zip, disease FROM patient
    WITH ANONYMIZATION_ID name ANONYMIZATION_QUASI_ID (age DGH_NAME age, zip DGH_NAME zip)
    ANONYMIZATION_SENSITIVE_ATTR (disease) K 3;";

async fn answers(engine: &Engine, statements: &[&str]) -> Vec<Vec<Vec<String>>> {
    let mut session = owner(engine);
    let mut found = Vec::new();
    for sql in statements {
        found.push(sorted(&mut session, sql).await);
    }
    found
}

/// Runs statements, and compares the answers before and after the folder is opened again.
async fn is_kept(folder: &Path, made_by: &str, asked: &[&str]) {
    let engine = open(folder).await;
    rows(&mut owner(&engine), made_by).await;
    let before = answers(&engine, asked).await;
    drop(engine);
    let engine = open(folder).await;
    assert_eq!(answers(&engine, asked).await, before);
}

#[tokio::test]
async fn tables_dghs_and_views_are_there_when_a_folder_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sick.csv");
    std::fs::write(&file, "disease,kind\nflu,virus\ngout,other\n").unwrap();
    let file = file.display();
    let tree = folder.path().join("kinds.csv");
    std::fs::write(&tree, "flu;virus;*\ncold;virus;*\ngout;other;*\n").unwrap();
    let made_by = format!(
        "{PATIENTS} {MATERIALIZED} {LOGICAL}
         CREATE DGH disease; INSERT INTO DGH disease VALUES ('flu', 'virus'), ('cold', 'virus'), ('virus', '*'), ('gout', '*');
         CREATE DGH kinds FROM '{tree}';
         CREATE EXTERNAL TABLE kind STORED AS CSV LOCATION '{file}' OPTIONS (format.has_header 'true');
         CREATE VIEW young AS SELECT name, kind FROM patient JOIN kind USING (disease) WHERE age < 40;",
        tree = tree.display()
    );
    let asked = [
        "SELECT * FROM patient",
        "SELECT * FROM kept",
        "SELECT * FROM computed",
        "SELECT * FROM young",
        "SELECT * FROM kind",
        "SHOW DGHS",
        "SELECT age FROM kept WHERE zip = '08512'",
    ];
    is_kept(folder.path(), &made_by, &asked).await;
}

#[tokio::test]
async fn a_folder_belongs_to_one_engine() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    assert!(try_open(folder.path()).await.is_err());
    drop(engine);
    assert!(try_open(folder.path()).await.is_ok());
}

#[tokio::test]
async fn dropped_tables_and_views_are_gone_when_a_folder_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut session = owner(&engine);
    rows(&mut session, &format!("{PATIENTS} {MATERIALIZED} {LOGICAL} CREATE VIEW young AS SELECT 1 AS x;")).await;
    rows(&mut session, "DROP ANONYMIZATION_VIEW kept; DROP ANONYMIZATION_VIEW computed; DROP VIEW young;").await;
    rows(&mut session, "DROP DGH zip; DROP TABLE patient;").await;
    drop((session, engine));
    let engine = open(folder.path()).await;
    let mut session = owner(&engine);
    for gone in ["kept", "computed", "young", "patient"] {
        assert!(try_rows(&mut session, &format!("SELECT * FROM {gone}")).await.is_err(), "{gone}");
    }
    assert_eq!(rows(&mut session, "SHOW DGHS").await.len(), 1);
    let tables = engine.store().unwrap().read().unwrap().tables().unwrap();
    assert!(tables.is_empty(), "{} hidden tables are left", tables.len());
}

#[tokio::test]
async fn a_folder_opens_though_a_view_lost_its_table() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sick.csv");
    std::fs::write(&file, "disease,kind\nflu,virus\ngout,other\n").unwrap();
    let engine = open(folder.path()).await;
    let mut session = owner(&engine);
    let external = format!(
        "CREATE EXTERNAL TABLE kind STORED AS CSV LOCATION '{}' OPTIONS (format.has_header 'true');
         CREATE VIEW kinds AS SELECT kind FROM kind;",
        file.display()
    );
    rows(&mut session, &format!("{PATIENTS} {LOGICAL} CREATE VIEW ages AS SELECT age FROM patient; {external}")).await;
    rows(&mut session, "DROP TABLE patient").await;
    std::fs::remove_file(&file).unwrap();
    drop((session, engine));
    let engine = open(folder.path()).await;
    let mut session = owner(&engine);
    for gone in ["computed", "ages", "kind", "kinds"] {
        assert!(try_rows(&mut session, &format!("SELECT * FROM {gone}")).await.is_err(), "{gone}");
        assert!(try_rows(&mut analyst(&engine), &format!("SELECT * FROM {gone}")).await.is_err(), "{gone}");
    }
    rows(&mut session, "DROP ANONYMIZATION_VIEW computed").await;
    rows(&mut session, PATIENTS.split_once("CREATE DGH").unwrap().0).await;
    rows(&mut session, LOGICAL).await;
}

#[tokio::test]
async fn a_view_whose_file_is_back_is_refreshed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sick.csv");
    let patients = "name,age\na,21\nb,22\nc,63\nd,64\n";
    std::fs::write(&file, patients).unwrap();
    let engine = open(folder.path()).await;
    let view = |name: &str| {
        format!(
            "CREATE ANONYMIZATION_VIEW {name} ON SELECT name, age FROM sick WITH ANONYMIZATION_ID name
             ANONYMIZATION_QUASI_ID (age DGH_NAME age) K 2;"
        )
    };
    let made = format!(
        "CREATE EXTERNAL TABLE sick STORED AS CSV LOCATION '{}' OPTIONS (format.has_header 'true');
         CREATE DGH age FROM STEPS (10, 50); {} {}",
        file.display(),
        view("seen"),
        view("other"),
    );
    rows(&mut owner(&engine), &made).await;
    drop(engine);
    std::fs::remove_file(&file).unwrap();
    let engine = open(folder.path()).await;
    let refresh = "REFRESH ANONYMIZATION_VIEW seen";
    assert!(try_rows(&mut owner(&engine), refresh).await.is_err());
    std::fs::write(&file, patients).unwrap();
    rows(&mut owner(&engine), refresh).await;
    assert_eq!(rows(&mut analyst(&engine), "SELECT age FROM seen").await.len(), 4);
    assert!(try_rows(&mut analyst(&engine), "SELECT age FROM other").await.is_err(), "nobody asked for it");
    drop(engine);
    let engine = open(folder.path()).await;
    for view in ["seen", "other"] {
        assert_eq!(rows(&mut analyst(&engine), &format!("SELECT age FROM {view}")).await.len(), 4);
    }
}

#[tokio::test]
async fn a_view_that_is_computed_is_stale_after_a_change_until_a_refresh() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut session = owner(&engine);
    rows(&mut session, &format!("{PATIENTS} {LOGICAL}")).await;
    let mut reader = analyst(&engine);
    assert_eq!(rows(&mut reader, "SELECT * FROM computed").await.len(), 6);
    rows(&mut session, "INSERT INTO patient VALUES ('g', 23, '08512', 'flu')").await;
    assert!(try_rows(&mut reader, "SELECT * FROM computed").await.is_err());
    rows(&mut session, "REFRESH ANONYMIZATION_VIEW computed").await;
    assert_eq!(rows(&mut reader, "SELECT * FROM computed").await.len(), 7);
}

#[tokio::test]
async fn a_materialized_view_has_an_index_by_person_on_each_of_its_tables() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut session = owner(&engine);
    let view = |name: &str, table: &str, choices: &str| {
        format!(
            "CREATE MATERIALIZED ANONYMIZATION_VIEW {name} ON SELECT id AS who, age FROM {table} WITH ANONYMIZATION_ID who
             ANONYMIZATION_QUASI_ID (age DGH_NAME any) who REFERENCES {choices} (k);"
        )
    };
    let made_by = [
        "CREATE DGH any FROM FLAT; CREATE TABLE patient (age INT, id TEXT); CREATE TABLE choice (k INT, WHO TEXT);
         CREATE TABLE keyed (id TEXT PRIMARY KEY, age INT); CREATE TABLE chosen (who TEXT, k INT, UNIQUE (who, k));",
        &["patient", "keyed"].map(|table| format!("INSERT INTO {table} (id, age) VALUES ('a', 1), ('b', 2);")).concat(),
        "INSERT INTO choice VALUES (2, '*'); INSERT INTO chosen VALUES ('*', 2);",
        &view("v", "patient", "choice"),
        &view("w", "keyed", "chosen"),
        "REFRESH ANONYMIZATION_VIEW v;",
    ];
    rows(&mut session, &made_by.concat()).await;
    drop((session, engine));
    let tables = kohort_store::Store::open(folder.path()).unwrap().read().unwrap().tables().unwrap();
    let indexes = |name: &str| {
        let table = tables.iter().find(|table| table.name == name).unwrap();
        table.indexes.iter().map(|index| index.columns.join(" ")).collect::<Vec<String>>()
    };
    assert_eq!(indexes("patient"), ["id"]);
    assert_eq!(indexes("choice"), ["who"]);
    assert_eq!(indexes("keyed"), [""; 0]);
    assert_eq!(indexes("chosen"), ["who k"]);
}

/// A table of a file with this one cell.
fn table_of(folder: &Path, file: &str, cell: &str) -> String {
    let path = folder.join(file);
    std::fs::write(&path, format!("cell\n{cell}\n")).unwrap();
    format!("t STORED AS CSV LOCATION '{}' OPTIONS (format.has_header 'true');", path.display())
}

#[tokio::test]
async fn views_are_there_again_though_what_they_read_was_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (table_of(folder.path(), "a.csv", "a"), table_of(folder.path(), "b.csv", "b"));
    let made_by = format!(
        "CREATE EXTERNAL TABLE {first}
         CREATE VIEW lower AS SELECT cell FROM t;
         CREATE VIEW upper AS SELECT cell FROM lower;
         DROP TABLE t; CREATE EXTERNAL TABLE {second}
         CREATE OR REPLACE VIEW lower AS SELECT cell FROM t;
         CREATE OR REPLACE VIEW upper AS SELECT cell FROM lower;
         DROP VIEW lower; CREATE VIEW lower AS SELECT cell FROM t;
         DROP TABLE t; CREATE EXTERNAL TABLE {second}"
    );
    let asked = ["SELECT * FROM upper", "SELECT * FROM lower", "SELECT * FROM t"];
    is_kept(folder.path(), &made_by, &asked).await;
    let engine = open(folder.path()).await;
    assert!(engine.take_lost().is_empty());
    assert_eq!(rows(&mut owner(&engine), "SELECT * FROM upper").await, [["b"]]);
}

#[tokio::test]
async fn statements_without_effect_change_nothing_in_a_reopened_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (table_of(folder.path(), "a.csv", "a"), table_of(folder.path(), "b.csv", "b"));
    let engine = open(folder.path()).await;
    let mut session = owner(&engine);
    rows(&mut session, &format!("CREATE EXTERNAL TABLE {first} CREATE VIEW young AS SELECT 1 AS x;")).await;
    let said = [
        (format!("CREATE EXTERNAL TABLE IF NOT EXISTS {second}"), "there is a table t already"),
        ("DROP TABLE IF EXISTS young".to_owned(), "there is no table young"),
        ("DROP VIEW IF EXISTS t".to_owned(), "there is no view t"),
        ("DROP VIEW IF EXISTS nothing".to_owned(), "there is no view nothing"),
    ];
    for (sql, said) in &said {
        assert_eq!(rows(&mut session, sql).await, [[*said]]);
    }
    assert!(try_rows(&mut session, "DROP TABLE young").await.is_err());
    let asked = ["SELECT * FROM t", "SELECT * FROM young"];
    let before = answers(&engine, &asked).await;
    assert_eq!(before, [[["a"]], [["1"]]]);
    drop((session, engine));
    assert_eq!(answers(&open(folder.path()).await, &asked).await, before);
}

#[tokio::test]
async fn lost_tables_and_views_can_be_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let first = table_of(folder.path(), "a.csv", "a");
    let engine = open(folder.path()).await;
    rows(&mut owner(&engine), &format!("CREATE EXTERNAL TABLE {first} CREATE VIEW cells AS SELECT cell FROM t")).await;
    drop(engine);
    std::fs::remove_file(folder.path().join("a.csv")).unwrap();
    let engine = open(folder.path()).await;
    assert_eq!(engine.take_lost().len(), 2);
    let mut session = owner(&engine);
    assert!(try_rows(&mut session, "DROP VIEW t").await.is_err());
    assert!(try_rows(&mut session, "DROP ANONYMIZATION_VIEW t").await.is_err());
    rows(&mut session, "DROP TABLE t; DROP VIEW IF EXISTS cells").await;
    drop((session, engine));
    assert!(open(folder.path()).await.take_lost().is_empty());
}

#[tokio::test]
async fn a_folder_opens_though_a_materialized_view_lost_its_table_and_nobody_changes_what_it_is_made_from() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let view = MATERIALIZED.replace("K 2", "name REFERENCES choice (k)");
    let choices = "CREATE TABLE choice (name TEXT, k INT); INSERT INTO choice VALUES ('*', 2);";
    rows(&mut owner(&engine), &format!("{PATIENTS} {choices} {view}")).await;
    let change = engine.store().unwrap().write().unwrap();
    change.drop_table("patient").unwrap();
    change.commit().unwrap();
    drop((change, engine));
    let engine = open(folder.path()).await;
    let lost: Vec<String> = engine.take_lost().into_iter().map(|lost| lost.name).collect();
    assert_eq!(lost, ["kept"]);
    let mut session = owner(&engine);
    let make_table = PATIENTS.split_once("INSERT").unwrap().0;
    for sql in [
        make_table,
        "CREATE VIEW patient AS SELECT 1 AS x",
        "CREATE VIEW kept AS SELECT 1 AS x",
        LOGICAL.replace("computed", "kept").as_str(),
        "INSERT INTO choice VALUES ('a', 3)",
        "UPDATE choice SET k = 3",
        "DELETE FROM choice",
        "DROP TABLE choice",
        "SELECT * FROM kept",
    ] {
        assert!(try_rows(&mut session, sql).await.is_err(), "{sql}");
    }
    assert_eq!(rows(&mut session, "SELECT * FROM choice").await.len(), 1);
    rows(&mut session, "DROP ANONYMIZATION_VIEW kept").await;
    let hidden = known(&engine, &[]).await.len() - rows(&mut session, "SHOW DGHS").await.len();
    assert_eq!(hidden, 0);
    rows(&mut session, &format!("UPDATE choice SET k = 3; {make_table} DROP TABLE choice")).await;
    drop((session, engine));
    assert!(open(folder.path()).await.take_lost().is_empty());
}

#[tokio::test]
async fn a_view_by_the_papers_rule_of_an_earlier_kohort_shows_nothing_until_it_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    rows(&mut owner(&engine), &format!("{PATIENTS} {MATERIALIZED}")).await;
    let change = engine.store().unwrap().write().unwrap();
    let record = change.record("statement", "kept").unwrap().unwrap();
    assert!(record.contains("K 2"), "{record}");
    change.put_record("statement", "kept", &record.replace("K 2", "K 2 CHANGES PAPER")).unwrap();
    change.commit().unwrap();
    drop((change, engine));
    let engine = open(folder.path()).await;
    let lost = engine.take_lost();
    assert_eq!(lost.len(), 1);
    assert!(lost[0].problem.to_string().contains("CHANGES PAPER is not supported any more"), "{}", lost[0].problem);
    let mut session = owner(&engine);
    for sql in ["SELECT * FROM kept", "REFRESH ANONYMIZATION_VIEW kept", "DELETE FROM patient WHERE name = 'a'"] {
        assert!(try_rows(&mut session, sql).await.is_err(), "{sql}");
    }
    assert!(try_rows(&mut analyst(&engine), "SELECT * FROM kept").await.is_err());
    rows(&mut session, &format!("DROP ANONYMIZATION_VIEW kept; {MATERIALIZED}")).await;
    rows(&mut session, "DELETE FROM patient WHERE name = 'a'").await;
    assert_eq!(rows(&mut session, "SELECT * FROM kept").await.len(), 6, "who leaves alone is still shown");
}
