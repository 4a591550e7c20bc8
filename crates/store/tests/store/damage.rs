//! Damaged files.

use std::path::Path;

use kohort_store::{ScanRequest, Snapshot, Store, StoreError, backup_folder, check_folder};

use crate::sample::{people_rows, store_of_people};

const PAGE: usize = 4_096;

/// The message of an error about damage; `None` if there is no error.
fn damaged_file(outcome: Result<(), StoreError>) -> Option<String> {
    match outcome {
        Ok(()) => None,
        Err(error @ (StoreError::Corrupt { .. } | StoreError::Foreign { .. })) => Some(error.to_string()),
        Err(error) => panic!("{error:?}"),
    }
}

fn is_named(outcome: Result<(), StoreError>) -> bool {
    let said = damaged_file(outcome);
    assert!(said.as_ref().is_none_or(|said| said.contains("kohort.db")), "{said:?}");
    said.is_some()
}

/// All rows of people; `None` if they can't be read.
fn rows(folder: &Path) -> Option<Vec<String>> {
    let read = |state: &Snapshot| -> Result<Vec<String>, StoreError> {
        let batches: Result<Vec<_>, _> = state.scan("people", &ScanRequest::default())?.collect();
        Ok(batches?.iter().map(|batch| format!("{batch:?}")).collect())
    };
    let found = Store::open(folder).and_then(|store| store.read()).and_then(|state| read(&state));
    match found {
        Ok(rows) => Some(rows),
        Err(error) => {
            assert!(error.to_string().contains("kohort.db"), "{error}");
            None
        }
    }
}

fn five_thousand() -> Vec<(i64, Option<&'static str>)> {
    (0..5_000).map(|id| (id, Some("a town"))).collect()
}

#[test]
fn a_page_that_was_overwritten_is_found_and_its_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    drop(store_of_people(folder.path(), &five_thousand()));
    let file = folder.path().join("kohort.db");
    let whole = std::fs::read(&file).unwrap();
    for page in 0..whole.len() / PAGE {
        let mut damaged = whole.clone();
        damaged[page * PAGE..][..64].fill(0xa5);
        std::fs::write(&file, &damaged).unwrap();
        assert!(is_named(check_folder(folder.path())), "page {page}");
        // Small files are checked when they are opened.
        assert!(is_named(Store::open(folder.path()).map(drop)), "page {page}");
        let target = folder.path().join("backup");
        assert!(is_named(backup_folder(folder.path(), &target)), "page {page}");
        assert!(!target.exists());
    }
    std::fs::write(&file, &whole).unwrap();
    check_folder(folder.path()).unwrap();
    Store::open(folder.path()).unwrap().check().unwrap();
}

#[test]
fn a_bit_that_changed_is_found_or_no_row_is_lost_by_it() {
    let folder = tempfile::tempdir().unwrap();
    // Use cells of one letter, so that nearly every bit of the file belongs to the structure.
    let people: Vec<_> = (0..2_000).map(|id| (id, Some("x"))).collect();
    drop(store_of_people(folder.path(), &people));
    let file = folder.path().join("kohort.db");
    let whole = std::fs::read(&file).unwrap();
    let expected = rows(folder.path()).unwrap();
    let (mut n_found, mut n_changed) = (0, 0);
    for number in 0..400 {
        let offset = number * 7_919 % whole.len();
        let mut damaged = whole.clone();
        damaged[offset] ^= 1 << (number % 8);
        std::fs::write(&file, &damaged).unwrap();
        if is_named(check_folder(folder.path())) {
            n_found += 1;
        } else if let Some(read) = rows(folder.path()) {
            // SQLite can't notice a changed value in a column without an index.
            let n_cells = |rows: &[String]| rows.iter().map(|batch| batch.matches(',').count()).sum::<usize>();
            assert_eq!(n_cells(&read), n_cells(&expected), "byte {offset}");
            n_changed += usize::from(read != expected);
        }
    }
    assert!(n_found > 100, "{n_found} found");
    assert!(n_changed < 40, "{n_changed} changed");
}

#[test]
fn a_log_that_is_damaged_before_its_last_commits_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_of_people(folder.path(), &[(1, None)]);
    for id in 2..12 {
        let change = store.write().unwrap();
        change.insert("people", &people_rows(&[(id, None)])).unwrap();
        change.commit().unwrap();
    }
    // Copy the files while the store is open, as a killed process would leave them.
    let left = tempfile::tempdir().unwrap();
    for name in ["kohort.db", "kohort.db-wal", "kohort.lock"] {
        std::fs::copy(folder.path().join(name), left.path().join(name)).unwrap();
    }
    drop(store);
    let log = left.path().join("kohort.db-wal");
    let whole = std::fs::read(&log).unwrap();
    for offset in [20, 32 + 100, whole.len() / 2] {
        let mut damaged = whole.clone();
        damaged[offset] ^= 0x10;
        std::fs::write(&log, &damaged).unwrap();
        for outcome in [check_folder(left.path()), Store::open(left.path()).map(drop)] {
            let said = damaged_file(outcome).unwrap();
            assert!(said.contains("kohort.db-wal"), "{said}");
        }
        assert_eq!(std::fs::read(&log).unwrap(), damaged, "it is left alone");
    }
    std::fs::write(&log, &whole).unwrap();
    check_folder(left.path()).unwrap();
    assert_eq!(crate::sample::all_ids(&Store::open(left.path()).unwrap().read().unwrap()).len(), 11);
}

#[test]
fn a_store_that_was_closed_leaves_no_log() {
    let folder = tempfile::tempdir().unwrap();
    drop(store_of_people(folder.path(), &[(1, None)]));
    assert!(!folder.path().join("kohort.db-wal").exists());
}

#[test]
fn a_backup_is_checked_like_a_folder_and_where_there_is_none_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_of_people(&folder.path().join("data"), &five_thousand());
    let backup = folder.path().join("monday.db");
    store.backup(&backup).unwrap();
    // The check works while the folder is held, too.
    check_folder(&folder.path().join("data")).unwrap();
    check_folder(&backup).unwrap();
    for absent in ["nowhere", "nowhere/at/all", "monday.db/data"] {
        let path = folder.path().join(absent);
        for outcome in [check_folder(&path), backup_folder(&path, &folder.path().join("tuesday.db"))] {
            let error = outcome.unwrap_err();
            assert!(matches!(error, StoreError::Absent { .. }), "{error:?}");
            assert!(error.to_string().contains(absent), "{error}");
        }
    }
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    assert!(matches!(check_folder(&folder.path().join("empty")), Err(StoreError::Absent { .. })));
    let mut damaged = std::fs::read(&backup).unwrap();
    damaged[3 * PAGE..][..64].fill(0xa5);
    std::fs::write(&backup, damaged).unwrap();
    assert!(damaged_file(check_folder(&backup)).unwrap().contains("monday.db"));
}
