//! Making, describing, scanning and removing tables; records.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::DataType;
use kohort_store::{
    Comparison, Condition, ScanRequest, Store, StoreError, TableDescription, TableKind, Uniqueness, Value,
};

use crate::sample::{all_ids, column, ids, people, people_rows, store_of_people};

const ROWS: [(i64, Option<&str>); 5] =
    [(10, Some("Ulm")), (20, Some("Bonn")), (30, None), (40, Some("Ulm")), (50, Some("Aach"))];

fn compare(column: &str, comparison: Comparison, value: Value) -> Condition {
    Condition::Compare { column: column.to_owned(), comparison, value }
}

fn where_all(conditions: Vec<Condition>) -> ScanRequest {
    ScanRequest { conditions, ..ScanRequest::default() }
}

#[test]
fn a_table_is_described_as_it_was_made_also_after_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let hidden = TableDescription { name: "classes".to_owned(), kind: TableKind::Hidden, ..people() };
    let store = store_of_people(folder.path(), &ROWS);
    let change = store.write().unwrap();
    change.create_table(&hidden).unwrap();
    change.commit().unwrap();
    let assert_described = |store: &Store| {
        let snapshot = store.read().unwrap();
        assert_eq!(snapshot.tables().unwrap(), [hidden.clone(), people()]);
        assert_eq!(snapshot.table("people").unwrap(), Some(people()));
        assert_eq!(snapshot.table("PEOPLE").unwrap(), None);
    };
    assert_described(&store);
    drop((change, store));
    assert_described(&Store::open(folder.path()).unwrap());
}

#[test]
fn conditions_find_the_same_rows_with_and_without_an_index() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_of_people(folder.path(), &ROWS);
    let bare = TableDescription { primary_key: vec![], indexes: vec![], ..people() };
    let other = tempfile::tempdir().unwrap();
    let unindexed = Store::open(other.path()).unwrap();
    let change = unindexed.write().unwrap();
    change.create_table(&bare).unwrap();
    change.insert("people", &people_rows(&ROWS)).unwrap();
    change.commit().unwrap();

    let town = |comparison| compare("town", comparison, Value::Text("Bonn".to_owned()));
    let among = |towns: &[&str]| Condition::In {
        column: "town".to_owned(),
        values: towns.iter().map(|town| Value::Text((*town).to_owned())).collect(),
    };
    let cases: Vec<(Vec<Condition>, &[i64])> = vec![
        (vec![], &[10, 20, 30, 40, 50]),
        (vec![town(Comparison::Eq)], &[20]),
        (vec![town(Comparison::Lt)], &[50]),
        (vec![town(Comparison::Le)], &[20, 50]),
        (vec![town(Comparison::Gt)], &[10, 40]),
        (vec![town(Comparison::Ge)], &[10, 20, 40]),
        (vec![among(&["Ulm", "Aach"])], &[10, 40, 50]),
        (vec![among(&[])], &[]),
        (vec![Condition::IsNull { column: "town".to_owned() }], &[30]),
        (vec![Condition::IsNotNull { column: "town".to_owned() }], &[10, 20, 40, 50]),
        (vec![among(&["Ulm"]), compare("id", Comparison::Gt, Value::Integer(10))], &[40]),
    ];
    for (conditions, expected) in cases {
        let request = where_all(conditions);
        assert_eq!(ids(&store.read().unwrap(), &request), expected, "{:?}", request.conditions);
        assert_eq!(ids(&unindexed.read().unwrap(), &request), expected, "{:?}", request.conditions);
        let first = ScanRequest { limit: Some(1), batch_size: 1, ..request };
        assert_eq!(ids(&store.read().unwrap(), &first), expected[..expected.len().min(1)]);
    }
}

#[test]
fn an_index_that_finds_most_of_a_large_table_gives_way_to_a_pass_over_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_of_people(folder.path(), &[]);
    let rows: Vec<(i64, Option<&str>)> =
        (0..70_000).map(|id| (id, Some(if id % 7_000 == 0 { "Bonn" } else { "Ulm" }))).collect();
    let change = store.write().unwrap();
    change.insert("people", &people_rows(&rows)).unwrap();
    change.commit().unwrap();
    let town = |town: &str| where_all(vec![compare("town", Comparison::Eq, Value::Text(town.to_owned()))]);
    let snapshot = store.read().unwrap();
    assert_eq!(ids(&snapshot, &town("Bonn")), (0..10).map(|tens| tens * 7_000).collect::<Vec<_>>());
    let expected: Vec<i64> = (0..70_000).filter(|id| id % 7_000 != 0).collect();
    assert_eq!(ids(&snapshot, &town("Ulm")), expected);
}

#[test]
fn a_scan_gives_the_columns_asked_for_in_batches_of_the_size_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = store_of_people(folder.path(), &ROWS).read().unwrap();
    let request = ScanRequest {
        columns: Some(vec!["town".to_owned()]),
        with_rowid: true,
        batch_size: 2,
        limit: Some(3),
        ..ScanRequest::default()
    };
    let batches: Vec<RecordBatch> = snapshot.scan("people", &request).unwrap().map(Result::unwrap).collect();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(
        batches[0].schema().fields().iter().map(|field| field.name()).collect::<Vec<_>>(),
        [kohort_store::ROW_NUMBER, "town"]
    );
    assert_eq!(batches[1].column(0).as_primitive::<Int64Type>().values(), &[3]);

    let none = ScanRequest { columns: Some(vec![]), ..ScanRequest::default() };
    let batch = snapshot.scan("people", &none).unwrap().next().unwrap().unwrap();
    assert_eq!((batch.num_columns(), batch.num_rows()), (0, 5));
    assert_eq!(snapshot.count("people").unwrap(), 5);
}

#[test]
fn numbers_of_rows_are_never_given_twice() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_of_people(folder.path(), &ROWS);
    let change = store.write().unwrap();
    change.delete("people", &[5]).unwrap();
    assert_eq!(change.insert("people", &people_rows(&[(60, None)])).unwrap(), 6..7);
    change.delete("people", &[1, 2, 3, 4, 6]).unwrap();
    change.commit().unwrap();
    drop((change, store));
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.write().unwrap().insert("people", &people_rows(&[(1, None), (2, None)])).unwrap(), 7..9);
}

#[test]
fn an_update_changes_the_named_columns_of_the_named_rows() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_of_people(folder.path(), &ROWS);
    let change = store.write().unwrap();
    let new_ids: ArrayRef = Arc::new(Int64Array::from(vec![11, 51]));
    change.update("people", &[1, 5], &RecordBatch::try_from_iter([("id", new_ids)]).unwrap()).unwrap();
    assert_eq!(all_ids(&change), [11, 20, 30, 40, 51]);
    let ulm = where_all(vec![compare("town", Comparison::Eq, Value::Text("Ulm".to_owned()))]);
    assert_eq!(ids(&change, &ulm), [11, 40]);
}

#[test]
fn an_index_made_later_is_used_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_of_people(folder.path(), &[(1, Some("a")), (2, Some("a"))]);
    let change = store.write().unwrap();
    let columns = ["town".to_owned(), "id".to_owned()];
    change.create_index("people", &columns, Uniqueness::Unique).unwrap();
    change.commit().unwrap();
    let described = store.read().unwrap().table("people").unwrap().unwrap();
    assert_eq!(described.indexes.len(), 2);
    assert_eq!(described.indexes[1].columns, columns);
}

#[test]
fn a_removed_table_is_gone_and_its_name_is_free() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_of_people(folder.path(), &ROWS);
    let change = store.write().unwrap();
    change.drop_table("people").unwrap();
    assert!(matches!(change.count("people"), Err(StoreError::UnknownTable { .. })));
    let other = TableDescription { columns: vec![column("x", DataType::Utf8)], ..people() };
    let other = TableDescription { primary_key: vec![], indexes: vec![], ..other };
    change.create_table(&other).unwrap();
    change.commit().unwrap();
    assert_eq!(store.read().unwrap().tables().unwrap(), [other]);
    store.check().unwrap();
}

#[test]
fn records_are_kept_by_kind_and_name() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let change = store.write().unwrap();
    change.put_record("view", "b", "second").unwrap();
    change.put_record("view", "a", "draft").unwrap();
    change.put_record("view", "a", "first").unwrap();
    change.put_record("user", "a", "other").unwrap();
    change.put_record("user", "gone", "").unwrap();
    assert!(change.remove_record("user", "gone").unwrap());
    assert!(!change.remove_record("user", "gone").unwrap());
    change.commit().unwrap();
    let snapshot = store.read().unwrap();
    let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    assert_eq!(snapshot.records("view").unwrap(), [pair("a", "first"), pair("b", "second")]);
    assert_eq!(snapshot.record("user", "a").unwrap().as_deref(), Some("other"));
    assert_eq!(snapshot.record("user", "b").unwrap(), None);
}
