//! `COPY table FROM 'file'`: what cells become, which file is read, and the errors for files that do not fit.

use std::path::Path;

use kohort_sql::{Engine, Session};

use crate::folder::{open, sorted};
use crate::session::{owner, rows, try_rows};

async fn people(engine: &Engine) -> Session {
    let mut session = owner(engine);
    rows(&mut session, "CREATE TABLE people (name TEXT NOT NULL UNIQUE, age INT, note TEXT)").await;
    session
}

fn write(file: &Path, text: &str) -> String {
    std::fs::write(file, text).unwrap();
    format!("COPY people FROM '{}'", file.display())
}

/// The error and hint for a file that can't be copied. Checks that nothing of the file is kept.
async fn refusal(session: &mut Session, copy: &str) -> String {
    let before = rows(session, "SELECT count(*) FROM people").await;
    let error = try_rows(session, copy).await.unwrap_err();
    assert_eq!(rows(session, "SELECT count(*) FROM people").await, before);
    format!("{error}\n{}\n{error:?}", error.hint().unwrap_or_default())
}

#[tokio::test]
async fn a_quoted_empty_cell_is_a_text_and_a_bare_one_null() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(&folder.path().join("data")).await;
    let mut session = people(&engine).await;
    let copy =
        write(&folder.path().join("people.csv"), "name,age,note\n\"\",,\"\"\nAnn,21,\n\" \",\"7\",\"a,\"\"b\"\"\"\n");
    rows(&mut session, &copy).await;
    let expected = [["", "NULL", ""], [" ", "7", "a,\"b\""], ["Ann", "21", "NULL"]];
    assert_eq!(sorted(&mut session, "SELECT * FROM people").await, expected);
    let copy = write(&folder.path().join("people.csv"), "name,age\n,3\n");
    assert!(refusal(&mut session, &copy).await.starts_with("row 1: column 'name' must have a value"));
    let copy = write(&folder.path().join("people.csv"), "name,age\nBob,\"\"\n");
    let said = refusal(&mut session, &copy).await;
    assert!(said.starts_with("row 1: the value of column 'age' does not fit its type Int32"), "{said}");
}

#[tokio::test]
async fn a_path_names_one_file_whatever_its_characters() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(&folder.path().join("data")).await;
    let mut session = people(&engine).await;
    for (place, name) in ["x[1].csv", "x1.CSV", "x*.csv", "x?.csv", "x%20 {a,b}#.csv"].into_iter().enumerate() {
        rows(&mut session, &write(&folder.path().join(name), &format!("name\n\"{name}\"\n"))).await;
        let copied = rows(&mut session, "SELECT name FROM people").await;
        assert_eq!(copied.len(), place + 1, "{name}");
        assert!(copied.contains(&vec![name.to_owned()]), "{name}: {copied:?}");
    }
    let (written, parquet) = (folder.path().join("x.parquet"), folder.path().join("x[1].parquet"));
    rows(&mut session, &format!("COPY (SELECT 'from parquet' AS name) TO '{}'", written.display())).await;
    std::fs::rename(written, &parquet).unwrap();
    rows(&mut session, &format!("COPY people FROM '{}'", parquet.display())).await;
    assert_eq!(rows(&mut session, "SELECT count(*) FROM people WHERE name = 'from parquet'").await, [["1"]]);
    for (file, said) in [
        ("y.csv", "y.csv' can't be read: entity not found"),
        ("", "' is no .csv, .csv.gz, .csv.zst, .parquet or .arrow file"),
        ("z[1].csv", "z[1].csv' can't be read"),
    ] {
        let copy = format!("COPY people FROM '{}'", folder.path().join(file).display());
        let found = refusal(&mut session, &copy).await;
        assert!(found.contains(said), "{found}");
    }
    assert!(refusal(&mut session, "COPY people FROM '-'").await.starts_with("'-' is no .csv"));
}

#[tokio::test]
async fn a_file_without_a_header_shows_no_cell() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(&folder.path().join("data")).await;
    let mut session = people(&engine).await;
    for (text, n_unknown) in [("Ann,4711,flu\n", "3 of the 3"), ("Ann,age,Ann\nBob,4711,flu\n", "2 of the 3")] {
        let said = refusal(&mut session, &write(&folder.path().join("people.csv"), text)).await;
        assert!(said.starts_with(&format!("{n_unknown} columns of '")), "{said}");
        assert!(said.contains("the first line of a CSV file must hold the names"), "{said}");
        assert!(!said.contains("Ann") && !said.contains("4711") && !said.contains("flu"), "{said}");
    }
    let copy = write(&folder.path().join("people.csv"), "name,age,name\nAnn,4711,flu\n");
    let said = refusal(&mut session, &copy).await;
    assert!(said.contains("2 columns have the same name: column 1, column 3") && !said.contains("4711"), "{said}");
}

#[tokio::test]
async fn a_row_is_named_by_its_number_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(&folder.path().join("data")).await;
    let mut session = people(&engine).await;
    let many: String = (0..25_000).map(|row| format!("person {row},{row},{}\n", "x".repeat(50))).collect();
    for (last, said) in [
        ("person 7,1,", "row 25001: table 'people' already has a row with the same name"),
        (",1,", "row 25001: column 'name' must have a value"),
        ("p,4711secret,", "row 25001: the value of column 'age' does not fit its type Int32"),
        ("p,99999999999,", "row 25001: the value of column 'age' does not fit its type Int32"),
        ("p,1,,secret", "people.csv': row 25001: expected 3 cells, found 4"),
    ] {
        let copy = write(&folder.path().join("people.csv"), &format!("name,age,note\n{many}{last}\n"));
        let found = refusal(&mut session, &copy).await;
        assert!(found.contains(said), "{found}");
        assert!(!found.contains("secret") && !found.contains("99999999999"), "{found}");
    }
    rows(&mut session, &write(&folder.path().join("people.csv"), &format!("name,age,note\n{many}"))).await;
    assert_eq!(rows(&mut session, "SELECT count(*), sum(age) FROM people").await, [["25000", "312487500"]]);
    let error = try_rows(&mut session, "UPDATE people SET name = 'one' WHERE age > 5").await.unwrap_err();
    assert_eq!(error.to_string(), "table 'people' already has a row with the same name");
}
