//! Changes are kept whole or not at all, and a call that fails undoes only itself.

use kohort_store::{ScanRequest, StoreError, TableDescription, Uniqueness};

use crate::sample::{all_ids, people, people_rows, store_of_people};

#[test]
fn a_change_that_is_dropped_or_rolled_back_was_never_there() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_of_people(folder.path(), &[(1, None)]);
    for end in ["dropped", "rolled back"] {
        let change = store.write().unwrap();
        change.insert("people", &people_rows(&[(2, None)])).unwrap();
        change.create_table(&TableDescription { name: "more".to_owned(), ..people() }).unwrap();
        change.put_record("view", "v", "text").unwrap();
        if end == "rolled back" {
            change.rollback().unwrap();
        }
    }
    let snapshot = store.read().unwrap();
    assert_eq!(all_ids(&snapshot), [1]);
    assert_eq!(snapshot.tables().unwrap(), [people()]);
    assert_eq!(snapshot.record("view", "v").unwrap(), None);
    assert_eq!(store.write().unwrap().tables().unwrap(), [people()]);
}

#[test]
fn a_batch_of_which_one_row_is_refused_leaves_no_row_and_the_change_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_of_people(folder.path(), &[(1, None)]);
    let change = store.write().unwrap();
    change.insert("people", &people_rows(&[(2, None)])).unwrap();
    let error = change.insert("people", &people_rows(&[(3, None), (4, None), (1, None)])).unwrap_err();
    assert!(matches!(&error, StoreError::Duplicate { columns, row: Some(3), .. } if columns == &["id"]), "{error}");
    assert!(change.delete("people", &[1, 99]).is_err());
    let to_same = people_rows(&[(7, None), (7, None)]);
    assert!(matches!(change.update("people", &[1, 2], &to_same), Err(StoreError::Duplicate { row: None, .. })));
    change.insert("people", &people_rows(&[(5, None)])).unwrap();
    change.commit().unwrap();
    assert_eq!(all_ids(&store.read().unwrap()), [1, 2, 5]);
}

#[test]
fn a_savepoint_undoes_what_came_after_it_and_nothing_before() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_of_people(folder.path(), &[]);
    let change = store.write().unwrap();
    change.insert("people", &people_rows(&[(1, None)])).unwrap();
    let outer = change.savepoint().unwrap();
    change.insert("people", &people_rows(&[(2, None)])).unwrap();
    let inner = change.savepoint().unwrap();
    change.insert("people", &people_rows(&[(3, None)])).unwrap();
    change.create_table(&TableDescription { name: "more".to_owned(), ..people() }).unwrap();
    change.undo(inner).unwrap();
    assert_eq!(all_ids(&change), [1, 2]);
    assert_eq!(change.table("more").unwrap(), None);
    let inner = change.savepoint().unwrap();
    change.insert("people", &people_rows(&[(4, None)])).unwrap();
    change.release(inner).unwrap();
    change.undo(outer).unwrap();
    assert_eq!(all_ids(&change), [1]);
    let kept = change.savepoint().unwrap();
    change.insert("people", &people_rows(&[(5, None)])).unwrap();
    change.release(kept).unwrap();
    change.commit().unwrap();
    assert_eq!(all_ids(&store.read().unwrap()), [1, 5]);
}

#[test]
fn a_unique_index_is_not_made_over_rows_that_agree() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_of_people(folder.path(), &[(1, Some("Ulm")), (2, Some("Ulm")), (3, None), (4, None)]);
    let change = store.write().unwrap();
    let error = change.create_index("people", &["town".to_owned()], Uniqueness::Unique).unwrap_err();
    assert!(matches!(&error, StoreError::NotUnique { columns, .. } if columns == &["town"]));
    assert!(!error.to_string().contains("Ulm"));
    assert_eq!(change.table("people").unwrap(), Some(people()));
    change.delete("people", &[2]).unwrap();
    change.create_index("people", &["town".to_owned()], Uniqueness::Unique).unwrap();
}

#[test]
fn a_scan_of_a_change_sees_what_it_wrote_and_stops_when_its_table_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_of_people(folder.path(), &[(1, None), (2, None)]);
    let change = store.write().unwrap();
    change.insert("people", &people_rows(&[(3, None)])).unwrap();
    assert_eq!(all_ids(&change), [1, 2, 3]);
    let request = ScanRequest { batch_size: 1, ..ScanRequest::default() };
    let mut rows = change.scan("people", &request).unwrap();
    rows.next().unwrap().unwrap();
    change.put_record("view", "v", "other tables may be written").unwrap();
    rows.next().unwrap().unwrap();
    change.insert("people", &people_rows(&[(4, None)])).unwrap();
    assert!(matches!(rows.next(), Some(Err(StoreError::ChangedUnderScan { .. }))));
    assert!(rows.next().is_none());

    let mut rows = change.scan("people", &request).unwrap();
    change.commit().unwrap();
    assert!(matches!(rows.next(), Some(Err(StoreError::TransactionOver))));
    store.write().unwrap();
}
