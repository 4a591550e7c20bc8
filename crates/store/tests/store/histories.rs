//! Random histories of calls, compared with a model in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use kohort_store::{Comparison, Condition, Savepoint, ScanRequest, State, Store, Value};
use proptest::prelude::*;

use crate::sample::{people_rows, store_of_people};

const TOWNS: [Option<&str>; 4] = [None, Some(""), Some("Ulm"), Some("Zürich")];

/// The rows by their numbers: an id, and a position in [`TOWNS`].
type Rows = BTreeMap<i64, (i64, usize)>;

#[derive(Debug, Clone)]
enum Call {
    Insert(Vec<(i64, usize)>),
    /// Deletes the existing rows at these positions.
    Delete(Vec<usize>),
    Update(usize, usize),
    Mark,
    Undo,
    Release,
    Commit,
    Drop,
    Reopen,
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let row = (0..40_i64, 0..TOWNS.len());
    let call = prop_oneof![
        6 => prop::collection::vec(row, 0..4).prop_map(Call::Insert),
        3 => prop::collection::vec(0..50_usize, 0..3).prop_map(Call::Delete),
        4 => (0..50_usize, 0..TOWNS.len()).prop_map(|(row, town)| Call::Update(row, town)),
        2 => Just(Call::Mark),
        1 => Just(Call::Undo),
        1 => Just(Call::Release),
        2 => Just(Call::Commit),
        1 => Just(Call::Drop),
        1 => Just(Call::Reopen),
    ];
    prop::collection::vec(call, 1..40)
}

fn read(state: &State, conditions: Vec<Condition>) -> Rows {
    let request = ScanRequest { with_rowid: true, batch_size: 3, conditions, ..ScanRequest::default() };
    let mut rows = Rows::new();
    for batch in state.scan("people", &request).unwrap() {
        let batch = batch.unwrap();
        let (numbers, ids) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_primitive::<Int64Type>());
        let towns = batch.column(2).as_string::<i32>();
        for row in 0..batch.num_rows() {
            let town = towns.is_valid(row).then(|| towns.value(row));
            let town = TOWNS.iter().position(|known| *known == town).unwrap();
            assert_eq!(rows.insert(numbers.value(row), (ids.value(row), town)), None);
        }
    }
    rows
}

fn assert_same(state: &State, model: &Rows) {
    assert_eq!(&read(state, vec![]), model);
    assert_eq!(state.count("people").unwrap(), model.len() as u64);
    let town = Condition::Compare {
        column: "town".to_owned(),
        comparison: Comparison::Ge,
        value: Value::Text("Ulm".to_owned()),
    };
    let expected: Rows = model.iter().filter(|(_, row)| row.1 >= 2).map(|(number, row)| (*number, *row)).collect();
    assert_eq!(state.count_of("people", std::slice::from_ref(&town)).unwrap(), expected.len() as u64);
    assert_eq!(read(state, vec![town]), expected);
}

fn insert(model: &Rows, new: &[(i64, usize)]) -> bool {
    let mut ids: Vec<i64> = model.values().map(|row| row.0).chain(new.iter().map(|row| row.0)).collect();
    let n_rows = ids.len();
    ids.sort_unstable();
    ids.dedup();
    ids.len() == n_rows
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_store_does_what_a_map_does(calls in calls()) {
        let memory = std::path::Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let mut store = store_of_people(folder.path(), &[]);
        let mut committed = Rows::new();
        let mut highest = 0;
        let mut change = Some(store.write().unwrap());
        let mut model = committed.clone();
        let mut marks: Vec<(Savepoint, Rows)> = Vec::new();
        for call in calls {
            let now = change.as_ref().unwrap();
            let pick = |position: usize| model.keys().nth(position).copied();
            match call {
                Call::Insert(rows) => {
                    let batch: Vec<_> = rows.iter().map(|(id, town)| (*id, TOWNS[*town])).collect();
                    let numbers = now.insert("people", &people_rows(&batch));
                    prop_assert_eq!(numbers.is_ok(), insert(&model, &rows));
                    if let Ok(numbers) = numbers {
                        prop_assert!(numbers.is_empty() || numbers.start > highest, "numbers are never given twice");
                        highest = highest.max(numbers.end - 1);
                        model.extend(numbers.zip(rows));
                    }
                }
                Call::Delete(positions) => {
                    let mut numbers: Vec<i64> = positions.into_iter().filter_map(pick).collect();
                    numbers.sort_unstable();
                    let n_numbers = numbers.len();
                    let deleted = now.delete("people", &numbers);
                    numbers.dedup();
                    prop_assert_eq!(deleted.is_ok(), numbers.len() == n_numbers);
                    if deleted.is_ok() {
                        model.retain(|number, _| !numbers.contains(number));
                    }
                }
                Call::Update(position, town) => {
                    if let Some(number) = pick(position) {
                        let column: ArrayRef = Arc::new(StringArray::from(vec![TOWNS[town]]));
                        let columns = RecordBatch::try_from_iter([("town", column)]).unwrap();
                        now.update("people", &[number], &columns).unwrap();
                        model.get_mut(&number).unwrap().1 = town;
                    }
                }
                Call::Mark => marks.push((now.savepoint().unwrap(), model.clone())),
                Call::Undo => {
                    if let Some((mark, before)) = marks.pop() {
                        now.undo(mark).unwrap();
                        model = before;
                    }
                }
                Call::Release => {
                    if let Some((mark, _)) = marks.pop() {
                        now.release(mark).unwrap();
                    }
                }
                end @ (Call::Commit | Call::Drop | Call::Reopen) => {
                    let ended = change.take().unwrap();
                    if matches!(end, Call::Commit) {
                        ended.commit().unwrap();
                        committed.clone_from(&model);
                    } else {
                        drop(ended);
                        model.clone_from(&committed);
                        // Numbers of a change that was undone may be given again, because no reader saw them.
                        highest = committed.keys().next_back().copied().unwrap_or(0);
                    }
                    marks.clear();
                    if matches!(end, Call::Reopen) {
                        drop(store);
                        store = Store::open(folder.path()).unwrap();
                    }
                    change = Some(store.write().unwrap());
                }
            }
            assert_same(change.as_ref().unwrap(), &model);
            assert_same(&store.read().unwrap(), &committed);
        }
        store.check().unwrap();
    }
}
