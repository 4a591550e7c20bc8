//! Readers see one state, and later commits do not change it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use kohort_store::{Change, Rows, ScanRequest, Snapshot, Store};

use crate::sample::{all_ids, people_rows, store_of_people};

#[test]
fn handles_go_from_thread_to_thread() {
    fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<Store>();
    is_send_and_sync::<Snapshot>();
    is_send_and_sync::<Change>();
    is_send_and_sync::<Rows>();
}

#[test]
fn a_snapshot_and_its_scans_stay_as_they_are_while_others_commit() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_of_people(folder.path(), &[(1, None), (2, None), (3, None)]);
    let before = store.read().unwrap();
    let mut rows = before.scan("people", &ScanRequest { batch_size: 1, ..ScanRequest::default() }).unwrap();
    rows.next().unwrap().unwrap();

    let change = store.write().unwrap();
    change.delete("people", &[2, 3]).unwrap();
    change.insert("people", &people_rows(&[(4, None)])).unwrap();
    assert_eq!(all_ids(&store.read().unwrap()), [1, 2, 3], "what is not committed is not seen");
    change.commit().unwrap();
    let change = store.write().unwrap();
    change.drop_table("people").unwrap();
    change.commit().unwrap();

    assert_eq!(all_ids(&before), [1, 2, 3]);
    drop(before);
    let rest = std::thread::spawn(move || rows.map(|rows| rows.unwrap().num_rows()).collect::<Vec<_>>());
    assert_eq!(rest.join().unwrap(), [1, 1], "a scan keeps its snapshot");
    assert_eq!(store.read().unwrap().tables().unwrap(), []);
}

#[test]
fn many_readers_see_whole_changes_only() {
    let folder = tempfile::tempdir().unwrap();
    // Each change adds one to a row and subtracts one from another, so the sum stays the same.
    let store = store_of_people(folder.path(), &[(1_000, None), (2_000, None), (3_000, None)]);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut n_reads = 0;
                while !is_over.load(Ordering::Relaxed) || n_reads == 0 {
                    assert_eq!(all_ids(&store.read().unwrap()).iter().sum::<i64>(), 6_000);
                    n_reads += 1;
                }
            });
        }
        let writers: Vec<_> = (0..2).map(|_| scope.spawn(|| (0..40).for_each(|_| move_one(&store)))).collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(all_ids(&store.read().unwrap()), [1_080, 2_000, 2_920]);
}

#[test]
fn a_snapshot_after_a_commit_sees_it_even_on_a_reused_connection() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_of_people(folder.path(), &[(1, None)]);
    let commit = |id: i64, meanwhile: &dyn Fn() -> Option<Snapshot>| {
        let change = store.write().unwrap();
        change.insert("people", &people_rows(&[(id, None)])).unwrap();
        let snapshot = meanwhile();
        change.commit().unwrap();
        snapshot
    };
    assert_eq!(all_ids(&store.read().unwrap()), [1]);
    commit(2, &|| None);
    let before = store.read().unwrap();
    assert_eq!(all_ids(&before), [1, 2]);
    commit(3, &|| None);
    drop(before);
    assert_eq!(all_ids(&store.read().unwrap()), [1, 2, 3]);
    let during = commit(4, &|| Some(store.read().unwrap())).unwrap();
    assert_eq!(all_ids(&during), [1, 2, 3]);
    drop(during);
    assert_eq!(all_ids(&store.read().unwrap()), [1, 2, 3, 4]);
}

#[test]
fn readers_that_are_done_do_not_keep_the_log_from_being_worked_in() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_of_people(folder.path(), &[]);
    let town = "x".repeat(1_000);
    let mut n_written = 0;
    for batch in 0..60 {
        let rows: Vec<(i64, Option<&str>)> = (0..500).map(|row| (batch * 500 + row, Some(town.as_str()))).collect();
        let change = store.write().unwrap();
        change.insert("people", &people_rows(&rows)).unwrap();
        change.commit().unwrap();
        n_written += rows.len() * town.len();
        assert_eq!(store.read().unwrap().count("people").unwrap(), batch.cast_unsigned() * 500 + 500);
    }
    let log = std::fs::metadata(folder.path().join("kohort.db-wal")).unwrap().len();
    assert!(log < n_written as u64 / 2, "{log} bytes of {n_written}");
}

fn move_one(store: &Store) {
    let change = store.write().unwrap();
    let request = ScanRequest { columns: Some(vec!["id".to_owned()]), ..ScanRequest::default() };
    let rows = change.scan("people", &request).unwrap().next().unwrap().unwrap();
    let ids = rows.column(0).as_primitive::<Int64Type>();
    for (row, id) in [(1, ids.value(0) + 1), (3, ids.value(2) - 1)] {
        let id: ArrayRef = Arc::new(Int64Array::from(vec![id]));
        change.update("people", &[row], &RecordBatch::try_from_iter([("id", id)]).unwrap()).unwrap();
    }
    change.commit().unwrap();
}
