//! What the store refuses, and its messages.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::DataType;
use kohort_store::{
    ColumnDescription, Comparison, Condition, ROW_NUMBER, ScanRequest, Store, StoreError, TableDescription, Uniqueness,
    Value, backup_folder, check_folder,
};
use rusqlite::Connection;

use crate::sample::{all_ids, column, people, people_rows, store_of_people};

const FOLDER: &str = "KOHORT_STORE_FOLDER";

fn refusal<T>(outcome: Result<T, StoreError>) -> StoreError {
    match outcome {
        Ok(_) => panic!("this is refused"),
        Err(error) => error,
    }
}

/// Starts this test program again, to run one test with a folder in its environment.
fn again(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(FOLDER, folder);
    command
}

#[test]
fn a_folder_in_use_is_refused_by_name_until_its_process_ends_however_that_ends() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let _store = store_of_people(Path::new(&folder), &[(1, None)]);
        println!("\nholding");
        // Held until this process is killed.
        loop {
            std::thread::park();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let mut holder: Child =
        again("refusals::a_folder_in_use_is_refused_by_name_until_its_process_ends_however_that_ends", folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "holding"));
    let error = refusal(Store::open(folder.path()));
    assert!(matches!(&error, StoreError::Locked { holder: found, .. } if *found == format!("process {}", holder.id())));
    assert!(error.hint().is_some());

    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(folder.path().join("kohort.lock").exists(), "the file of the killed process is still there");
    assert_eq!(all_ids(&Store::open(folder.path()).unwrap().read().unwrap()), [1]);
}

#[test]
fn a_folder_is_opened_once_in_a_process_too() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    assert!(matches!(refusal(Store::open(folder.path())), StoreError::Locked { .. }));
    let snapshot = store.read().unwrap();
    drop(store);
    assert!(matches!(refusal(Store::open(folder.path())), StoreError::Locked { .. }));
    drop(snapshot);
    Store::open(folder.path()).unwrap();
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_written_is_refused_by_name() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    if let Some(folder) = std::env::var_os(FOLDER) {
        let folder = Path::new(&folder);
        let error = refusal(Store::open(folder));
        assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
        assert!(error.hint().is_some());
        if folder.exists() {
            // Reading needs a lock, which SQLite writes to a file beside the store's file.
            let file = folder.join("kohort.db");
            for outcome in [check_folder(folder), backup_folder(folder, &folder.with_extension("backup"))] {
                let error = refusal(outcome);
                assert_eq!(error.to_string(), format!("'{}' can't be read", file.display()));
                assert!(error.hint().is_some());
            }
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    drop(store_of_people(&data, &[(1, None)]));
    let permit = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    permit(folder.path(), 0o755);
    permit(&data, 0o555);
    for entry in std::fs::read_dir(&data).unwrap() {
        permit(&entry.unwrap().path(), 0o444);
    }
    // Root may write everywhere, so the test continues as another user.
    let is_root = std::fs::File::create(data.join("probe")).is_ok();
    for absent in [&data, &data.join("new")] {
        let program = std::env::current_exe().unwrap();
        let reachable = folder.path().join("program");
        if !reachable.exists() {
            std::fs::copy(&program, &reachable).unwrap();
        }
        let mut command = Command::new(&reachable);
        command.args(["--exact", "refusals::a_folder_that_cannot_be_written_is_refused_by_name"]).env(FOLDER, absent);
        if is_root {
            command.uid(65_534).gid(65_534);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    permit(&data, 0o755);
}

#[test]
fn a_second_change_waits_and_then_is_told_that_the_store_is_busy() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_waiting(folder.path(), Duration::from_millis(1)).unwrap();
    let change = store.write().unwrap();
    let error = refusal(store.write());
    assert!(matches!(error, StoreError::Busy { .. }));
    assert!(error.hint().is_some());
    drop(change);
    store.write().unwrap();
}

#[test]
fn files_that_are_no_store_or_a_newer_one_are_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kohort.db");
    std::fs::write(&file, "this is not a database, but a text of some length").unwrap();
    assert!(matches!(refusal(Store::open(folder.path())), StoreError::Foreign { .. }));
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("this is not"));

    std::fs::remove_file(&file).unwrap();
    Connection::open(&file).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    let theirs = std::fs::read(&file).unwrap();
    assert!(matches!(refusal(Store::open(folder.path())), StoreError::Foreign { .. }));
    assert_eq!(std::fs::read(&file).unwrap(), theirs);

    std::fs::remove_file(&file).unwrap();
    drop(store_of_people(folder.path(), &[(1, None)]));
    Connection::open(&file).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let error = refusal(Store::open(folder.path()));
    assert!(matches!(error, StoreError::NewerFormat { found: 99, .. }));
    assert_eq!(error.to_string(), "the store has format 99; this kohort reads formats up to 1");
    Connection::open(&file).unwrap().pragma_update(None, "user_version", 1).unwrap();
    assert_eq!(all_ids(&Store::open(folder.path()).unwrap().read().unwrap()), [1]);
}

#[test]
fn unknown_names_and_wrong_types_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_of_people(folder.path(), &[(1, Some("Ulm"))]);
    let change = store.write().unwrap();
    let request = ScanRequest::default();
    assert!(
        matches!(refusal(change.scan("peopel", &request)), StoreError::UnknownTable { table } if table == "peopel")
    );
    let columns = Some(vec!["Town".to_owned()]);
    let error = refusal(change.scan("people", &ScanRequest { columns, ..request.clone() }));
    assert_eq!(error.to_string(), "table 'people' has no column 'Town'");
    let condition =
        Condition::Compare { column: "town".to_owned(), comparison: Comparison::Eq, value: Value::Integer(8_907) };
    assert!(!format!("{condition:?}").contains("8907"));
    let error = refusal(change.scan("people", &ScanRequest { conditions: vec![condition], ..request.clone() }));
    assert_eq!(error.to_string(), "column 'town' of type Utf8 can't be compared with a value of another type");
    let among = |n_values| Condition::In { column: "id".to_owned(), values: vec![Value::Integer(7); n_values] };
    let is_there = Condition::IsNotNull { column: "town".to_owned() };
    let too_many = [
        (vec![among(20_000), among(20_000)], "a scan of table 'people' takes at most 30000 values in its conditions"),
        (vec![is_there; 501], "a scan of table 'people' takes at most 500 conditions"),
    ];
    for (conditions, expected) in too_many {
        let request = ScanRequest { conditions: conditions.clone(), ..request.clone() };
        assert_eq!(refusal(change.scan("people", &request)).to_string(), expected);
        let fitting = Condition::that_fit(conditions.into_iter().chain([among(9)]));
        assert!(change.scan("people", &ScanRequest { conditions: fitting, ..request }).is_ok());
    }
    let fitting = Condition::that_fit([among(20_000), among(20_000), among(10_000)]);
    assert_eq!(fitting, [among(20_000), among(10_000)]);
    assert!(matches!(refusal(change.delete("people", &[17])), StoreError::UnknownRow { row: 17, .. }));
    assert!(matches!(refusal(change.create_table(&people())), StoreError::TableExists { .. }));
}

#[test]
fn rows_of_another_shape_are_refused_and_no_cell_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_of_people(folder.path(), &[(4_711, Some("Ulm"))]);
    let change = store.write().unwrap();
    let text = || Arc::new(StringArray::from(vec!["secret"])) as ArrayRef;
    let number = |value: Option<i64>| Arc::new(Int64Array::from(vec![value])) as ArrayRef;
    let rows = |columns: Vec<(&str, ArrayRef)>| {
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
    };
    let cases = [
        (rows(vec![("id", number(Some(1)))]), "do not have its columns: names or their order differ"),
        (rows(vec![("town", text()), ("id", number(Some(1)))]), "do not have its columns: names or their order differ"),
        (rows(vec![("id", text()), ("town", text())]), "column 'id' is of type Utf8, not Int64"),
        (rows(vec![("id", number(None)), ("town", text())]), "row 1: column 'id' must have a value"),
        (rows(vec![("id", number(Some(4_711))), ("town", text())]), "already has a row with the same id"),
    ];
    for (rows, expected) in cases {
        let error = refusal(change.insert("people", &rows));
        let shown = format!("{error} {error:?}");
        assert!(error.to_string().contains(expected), "{error}");
        assert!(!shown.contains("4711") && !shown.contains("secret"), "{shown}");
    }
    let error = refusal(change.update("people", &[1], &rows(vec![("id", number(None))])));
    assert_eq!(error.to_string(), "column 'id' must have a value");
    assert!(matches!(
        refusal(change.update("people", &[], &people_rows(&[(1, None)]))),
        StoreError::OtherColumns { .. }
    ));
}

#[test]
fn tables_that_make_no_sense_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let change = store.write().unwrap();
    let with_columns = |columns: Vec<ColumnDescription>| TableDescription {
        columns,
        primary_key: vec![],
        indexes: vec![],
        ..people()
    };
    let text = |name: &str| column(name, DataType::Utf8);
    let wide = (0..2_000).map(|position| text(&position.to_string())).collect();
    for description in [
        TableDescription { name: String::new(), ..people() },
        with_columns(vec![]),
        with_columns(vec![text("")]),
        with_columns(vec![text("a"), text("a")]),
        with_columns(vec![text("a"), text(ROW_NUMBER)]),
        with_columns(wide),
        TableDescription { primary_key: vec!["town".to_owned()], ..people() },
        TableDescription { primary_key: vec!["id".to_owned(), "id".to_owned()], ..people() },
    ] {
        assert!(matches!(refusal(change.create_table(&description)), StoreError::BadDescription { .. }));
    }
    let unknown = TableDescription { primary_key: vec!["x".to_owned()], ..people() };
    assert!(matches!(refusal(change.create_table(&unknown)), StoreError::UnknownColumn { .. }));
    for data_type in [DataType::UInt64, DataType::LargeUtf8, DataType::Decimal128(39, 0), DataType::Decimal128(0, 0)] {
        let description = with_columns(vec![column("x", data_type)]);
        assert!(matches!(refusal(change.create_table(&description)), StoreError::UnsupportedType { .. }));
    }
    change.create_table(&people()).unwrap();
    let none = refusal(change.create_index("people", &[], Uniqueness::Plain));
    assert!(matches!(none, StoreError::BadDescription { .. }));
}
