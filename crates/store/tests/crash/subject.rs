//! The tables of a [`History`] in the store.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::DataType;
use kohort_crashkit::{History, Model, Operation};
use kohort_store::{
    Change, ColumnDescription, Comparison, Condition, IndexDescription, ScanRequest, State, Store, StoreError,
    TableDescription, TableKind, Uniqueness, Value,
};
use tempfile::TempDir;

/// A folder for a store, in memory if possible, because these tests do not depend on a real disk.
pub(crate) fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

/// Creates the tables if they do not exist.
pub(crate) fn prepare(store: &Store) -> Result<(), StoreError> {
    let change = store.write()?;
    if change.table("people")?.is_some() {
        return Ok(());
    }
    change.create_table(&pairs("people", ["person", "group"], TableKind::Base))?;
    change.create_table(&pairs("visits", ["visit", "person"], TableKind::Base))?;
    change.create_table(&pairs("group sizes", ["group", "n"], TableKind::Hidden))?;
    change.commit()
}

fn pairs(name: &str, columns: [&str; 2], kind: TableKind) -> TableDescription {
    let column = |name: &str| ColumnDescription { name: name.to_owned(), data_type: DataType::Int64, nullable: false };
    TableDescription {
        name: name.to_owned(),
        columns: columns.map(column).to_vec(),
        primary_key: vec![columns[0].to_owned()],
        indexes: vec![IndexDescription { columns: vec![columns[1].to_owned()], uniqueness: Uniqueness::Plain }],
        kind,
    }
}

/// Runs one transaction of a history.
pub(crate) fn run(store: &Store, operations: &[Operation]) -> Result<(), StoreError> {
    let change = store.write()?;
    for operation in operations {
        apply(&change, *operation)?;
    }
    change.commit()
}

fn apply(change: &Change, operation: Operation) -> Result<(), StoreError> {
    match operation {
        Operation::Arrive { person, group } => {
            change.insert("people", &batch([("person", person), ("group", group)]))?;
            resize(change, group, 1)
        }
        Operation::Move { person, group } => {
            let (row, before) = the_one(change, "people", "person", person)?;
            change.update("people", &[row], &batch([("group", group)]))?;
            resize(change, before, -1)?;
            resize(change, group, 1)
        }
        Operation::Leave { person } => {
            let (row, group) = the_one(change, "people", "person", person)?;
            change.delete("people", &[row])?;
            let visits: Vec<i64> =
                found(change, "visits", "person", person)?.into_iter().map(|visit| visit.0).collect();
            change.delete("visits", &visits)?;
            resize(change, group, -1)
        }
        Operation::Visit { visit, person } => {
            change.insert("visits", &batch([("visit", visit), ("person", person)])).map(drop)
        }
    }
}

/// Updates the number of people of a group.
fn resize(change: &Change, group: i64, by: i64) -> Result<(), StoreError> {
    match found(change, "group sizes", "group", group)?.first() {
        None => change.insert("group sizes", &batch([("group", group), ("n", by)])).map(drop),
        Some((row, n)) if n + by == 0 => change.delete("group sizes", &[*row]),
        Some((row, n)) => change.update("group sizes", &[*row], &batch([("n", n + by)])),
    }
}

fn batch<const N: usize>(cells: [(&str, i64); N]) -> RecordBatch {
    let columns = cells.map(|(name, cell)| (name, Arc::new(Int64Array::from(vec![cell])) as ArrayRef));
    RecordBatch::try_from_iter(columns).unwrap()
}

fn the_one(state: &State, table: &str, column: &str, value: i64) -> Result<(i64, i64), StoreError> {
    Ok(found(state, table, column, value)?[0])
}

/// The numbers of the rows with a value in a column, and the second column of each.
fn found(state: &State, table: &str, column: &str, value: i64) -> Result<Vec<(i64, i64)>, StoreError> {
    let condition =
        Condition::Compare { column: column.to_owned(), comparison: Comparison::Eq, value: Value::Integer(value) };
    let rows = read(state, table, vec![condition])?;
    Ok(rows.into_iter().map(|[row, _, second]| (row, second)).collect())
}

fn read(state: &State, table: &str, conditions: Vec<Condition>) -> Result<Vec<[i64; 3]>, StoreError> {
    let request = ScanRequest { with_rowid: true, conditions, ..ScanRequest::default() };
    let mut rows = Vec::new();
    for batch in state.scan(table, &request)? {
        let batch = batch?;
        let columns: Vec<_> = batch.columns().iter().map(AsArray::as_primitive::<Int64Type>).collect();
        rows.extend((0..batch.num_rows()).map(|row| [0, 1, 2].map(|column: usize| columns[column].value(row))));
    }
    Ok(rows)
}

fn content(state: &State, table: &str) -> BTreeMap<i64, i64> {
    if state.table(table).unwrap().is_none() {
        return BTreeMap::new();
    }
    let rows = read(state, table, vec![]).unwrap();
    let content: BTreeMap<i64, i64> = rows.iter().map(|[_, first, second]| (*first, *second)).collect();
    assert_eq!(content.len(), rows.len(), "no row is there twice");
    content
}

/// Compares the store with the transactions of a seed, of which this many were acknowledged and one more may have been
/// under way. Returns how many of them the store has.
pub(crate) fn check(store: &Store, seed: u64, n_acknowledged: u64) -> u64 {
    store.check().unwrap();
    let snapshot = store.read().unwrap();
    let found = Model { people: content(&snapshot, "people"), visits: content(&snapshot, "visits") };
    assert_eq!(content(&snapshot, "group sizes"), found.group_sizes(), "the hidden table agrees with its base");
    let is_after = |n_transactions: u64| History::model_after(seed, n_transactions) == found;
    let n_transactions = (n_acknowledged..=n_acknowledged + 1).find(|n_transactions| is_after(*n_transactions));
    n_transactions.unwrap_or_else(|| {
        let other = (0..n_acknowledged).rev().find(|n_transactions| is_after(*n_transactions));
        panic!("seed {seed}: {n_acknowledged} were acknowledged, but the store has the state after {other:?}");
    })
}
