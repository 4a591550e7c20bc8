//! Tables and batches that the tests share.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_array::{cast::AsArray, types::Int64Type};
use arrow_schema::DataType;
use kohort_store::{
    ColumnDescription, IndexDescription, ScanRequest, State, Store, TableDescription, TableKind, Uniqueness,
};

pub(crate) fn column(name: &str, data_type: DataType) -> ColumnDescription {
    ColumnDescription { name: name.to_owned(), data_type, nullable: true }
}

/// A table `people` of an id, which is its key, and an indexed town.
pub(crate) fn people() -> TableDescription {
    let id = ColumnDescription { name: "id".to_owned(), data_type: DataType::Int64, nullable: false };
    TableDescription {
        name: "people".to_owned(),
        columns: vec![id, column("town", DataType::Utf8)],
        primary_key: vec!["id".to_owned()],
        indexes: vec![IndexDescription { columns: vec!["town".to_owned()], uniqueness: Uniqueness::Plain }],
        kind: TableKind::Base,
    }
}

/// Rows of [`people`].
pub(crate) fn people_rows(rows: &[(i64, Option<&str>)]) -> RecordBatch {
    let ids: Int64Array = rows.iter().map(|row| Some(row.0)).collect();
    let towns: StringArray = rows.iter().map(|row| row.1).collect();
    let columns: [(&str, ArrayRef); 2] = [("id", Arc::new(ids)), ("town", Arc::new(towns))];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// A store with the table [`people`] and these rows.
pub(crate) fn store_of_people(folder: &Path, rows: &[(i64, Option<&str>)]) -> Store {
    let store = Store::open(folder).unwrap();
    let change = store.write().unwrap();
    change.create_table(&people()).unwrap();
    change.insert("people", &people_rows(rows)).unwrap();
    change.commit().unwrap();
    store
}

/// The ids of the people that a request finds, in the order they come.
pub(crate) fn ids(state: &State, request: &ScanRequest) -> Vec<i64> {
    let request = ScanRequest { columns: Some(vec!["id".to_owned()]), ..request.clone() };
    let batches: Vec<RecordBatch> = state.scan("people", &request).unwrap().map(Result::unwrap).collect();
    batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
}

pub(crate) fn all_ids(state: &State) -> Vec<i64> {
    ids(state, &ScanRequest::default())
}
