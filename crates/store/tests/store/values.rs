//! Values and names of every kind come back as they were given, and compare as Arrow compares them.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int8Array, Int16Array, Int32Array,
    Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray, UInt8Array, UInt16Array, UInt32Array,
};
use arrow_schema::DataType;
use kohort_store::{
    Comparison, Condition, ScanRequest, Store, StoreError, TableDescription, TableKind, Uniqueness, Value,
};

use crate::sample::column;

fn table(name: &str, columns: &RecordBatch) -> TableDescription {
    let described =
        columns.schema().fields().iter().map(|field| column(field.name(), field.data_type().clone())).collect();
    TableDescription {
        name: name.to_owned(),
        columns: described,
        primary_key: vec![],
        indexes: vec![],
        kind: TableKind::Base,
    }
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

fn decimals(values: Vec<Option<i128>>, digits: u8, scale: i8) -> Decimal128Array {
    Decimal128Array::from(values).with_data_type(DataType::Decimal128(digits, scale))
}

#[test]
fn every_type_comes_back_bit_by_bit() {
    let time = || TimestampMicrosecondArray::from(vec![Some(i64::MIN), Some(-1), None, Some(i64::MAX)]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("boolean", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, Some(true)]))),
        ("int8", Arc::new(Int8Array::from(vec![Some(i8::MIN), Some(0), None, Some(i8::MAX)]))),
        ("int16", Arc::new(Int16Array::from(vec![Some(i16::MIN), Some(0), None, Some(i16::MAX)]))),
        ("int32", Arc::new(Int32Array::from(vec![Some(i32::MIN), Some(0), None, Some(i32::MAX)]))),
        ("int64", Arc::new(Int64Array::from(vec![Some(i64::MIN), Some(0), None, Some(i64::MAX)]))),
        ("uint8", Arc::new(UInt8Array::from(vec![Some(0), Some(1), None, Some(u8::MAX)]))),
        ("uint16", Arc::new(UInt16Array::from(vec![Some(0), Some(1), None, Some(u16::MAX)]))),
        ("uint32", Arc::new(UInt32Array::from(vec![Some(0), Some(1), None, Some(u32::MAX)]))),
        ("text", Arc::new(StringArray::from(vec![Some("a\0b'\"; --"), Some(""), None, Some("Zoë 🦆")]))),
        ("binary", Arc::new(BinaryArray::from(vec![Some(&b"\xff\0"[..]), Some(b""), None, Some(b"x")]))),
        ("date", Arc::new(Date32Array::from(vec![Some(i32::MIN), Some(-1), None, Some(i32::MAX)]))),
        ("timestamp", Arc::new(time())),
        ("timestamp in a zone", Arc::new(time().with_timezone("Europe/Berlin"))),
        ("decimal", Arc::new(decimals(vec![Some(-(10_i128.pow(18) - 1)), Some(0), None, Some(7)], 18, 2))),
        ("wide decimal", Arc::new(decimals(vec![Some(-(10_i128.pow(38) - 1)), Some(0), None, Some(7)], 38, -3))),
    ];
    let rows = batch(columns);
    let floats = [
        0.0,
        -0.0,
        f64::NAN,
        -f64::NAN,
        f64::INFINITY,
        f64::MIN_POSITIVE,
        1e300,
        f64::from_bits(0x7ff0_dead_beef_0001),
    ];
    let floats = batch(vec![("float", Arc::new(Float64Array::from_iter_values(floats)) as ArrayRef)]);

    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let change = store.write().unwrap();
    for (name, rows) in [("all", &rows), ("floats", &floats)] {
        change.create_table(&table(name, rows)).unwrap();
        change.insert(name, rows).unwrap();
    }
    change.commit().unwrap();
    drop((change, store));
    let snapshot = Store::open(folder.path()).unwrap().read().unwrap();
    let read = |name: &str| snapshot.scan(name, &ScanRequest::default()).unwrap().next().unwrap().unwrap();
    assert_eq!(read("all"), rows);
    let bits = |rows: &RecordBatch| -> Vec<u64> {
        rows.column(0)
            .as_primitive::<arrow_array::types::Float64Type>()
            .values()
            .iter()
            .map(|float| float.to_bits())
            .collect()
    };
    assert_eq!(bits(&read("floats")), bits(&floats));
}

/// Whether a comparison holds for two values in this order.
type Holds = fn(Ordering) -> bool;

/// Compares the result of every comparison of every pair of values with `order`, with and without an index.
fn assert_compares<T: Copy>(
    values: &[T],
    array: &ArrayRef,
    value: impl Fn(T) -> Value,
    order: impl Fn(T, T) -> Ordering,
) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let positions: ArrayRef = Arc::new(Int64Array::from_iter_values(0..values.len() as i64));
    let rows = batch(vec![("value", array.clone()), ("position", positions)]);
    let change = store.write().unwrap();
    for name in ["plain", "indexed"] {
        change.create_table(&table(name, &rows)).unwrap();
        change.insert(name, &rows).unwrap();
    }
    change.create_index("indexed", &["value".to_owned()], Uniqueness::Plain).unwrap();
    let comparisons: [(Comparison, Holds); 5] = [
        (Comparison::Eq, Ordering::is_eq),
        (Comparison::Lt, Ordering::is_lt),
        (Comparison::Le, Ordering::is_le),
        (Comparison::Gt, Ordering::is_gt),
        (Comparison::Ge, Ordering::is_ge),
    ];
    for (right_position, right) in values.iter().enumerate() {
        for (comparison, holds) in comparisons {
            let condition = Condition::Compare { column: "value".to_owned(), comparison, value: value(*right) };
            let request = ScanRequest {
                columns: Some(vec!["position".to_owned()]),
                conditions: vec![condition],
                ..ScanRequest::default()
            };
            let expected: Vec<i64> =
                (0..values.len() as i64).filter(|position| holds(order(values[*position as usize], *right))).collect();
            for name in ["plain", "indexed"] {
                let found: Vec<i64> = change
                    .scan(name, &request)
                    .unwrap()
                    .flat_map(|rows| rows.unwrap().column(0).as_primitive::<Int64Type>().values().to_vec())
                    .collect();
                assert_eq!(found, expected, "{name}, {comparison:?} the value at {right_position}");
            }
        }
    }
}

#[test]
fn floats_compare_in_total_order() {
    let floats = [
        -f64::NAN,
        f64::NEG_INFINITY,
        -1e300,
        -1.5,
        -f64::MIN_POSITIVE,
        -0.0,
        0.0,
        5e-324,
        1.0,
        1.5,
        1e300,
        f64::INFINITY,
        f64::NAN,
    ];
    let array: ArrayRef = Arc::new(Float64Array::from_iter_values(floats));
    assert_compares(&floats, &array, Value::Float, |left, right| left.total_cmp(&right));
}

#[test]
fn texts_compare_by_their_bytes() {
    let texts = ["", "\0", "A", "Z", "a", "a\0", "a\0b", "aa", "b", "z", "ä", "ß", "ﬁ", "🦆"];
    let array: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
    assert_compares(
        &texts,
        &array,
        |text| Value::Text(text.to_owned()),
        |left, right| left.as_bytes().cmp(right.as_bytes()),
    );
}

#[test]
fn decimals_compare_by_value_whatever_their_digits() {
    let values = [-(10_i128.pow(17)), -256, -1, 0, 1, 255, 256, 10_i128.pow(17)];
    for digits in [18, 19, 38] {
        let array: ArrayRef = Arc::new(decimals(values.map(Some).to_vec(), digits, 2));
        let value = |digits| Value::Decimal { digits, scale: 2 };
        assert_compares(&values, &array, value, |left, right| left.cmp(&right));
    }
}

#[test]
fn dates_times_booleans_and_bytes_compare_as_they_should() {
    let days = [i32::MIN, -719_163, -1, 0, 1, i32::MAX];
    let array: ArrayRef = Arc::new(Date32Array::from_iter_values(days));
    assert_compares(&days, &array, Value::Date, |left, right| left.cmp(&right));
    let times = [i64::MIN, -1, 0, 1, i64::MAX];
    let array: ArrayRef = Arc::new(TimestampMicrosecondArray::from_iter_values(times).with_timezone("UTC"));
    assert_compares(&times, &array, Value::Timestamp, |left, right| left.cmp(&right));
    let array: ArrayRef = Arc::new(BooleanArray::from(vec![false, true]));
    assert_compares(&[false, true], &array, Value::Boolean, |left, right| left.cmp(&right));
    let bytes: [&[u8]; 5] = [b"", b"\0", b"a", b"a\0", b"\xff"];
    let array: ArrayRef = Arc::new(BinaryArray::from_iter_values(bytes));
    assert_compares(&bytes, &array, |bytes| Value::Binary(bytes.to_vec()), Ord::cmp);
}

#[test]
fn any_name_is_fine_and_none_reaches_the_tables_of_the_store() {
    let names = [
        "tables",
        "columns",
        "records",
        "sqlite_schema",
        "sqlite_sequence",
        "t1",
        "t2",
        "i1",
        "row",
        "rowid",
        "c0",
        "select",
        "People",
        "people",
        "PEOPLE",
        " ",
        "'",
        "\"",
        "`",
        "[x]",
        "a.b",
        "?1",
        ":x",
        "\\",
        "a\0b",
        "naïve ☃ 🦆",
        "--",
        "x\"; DROP TABLE tables; --",
        "x'); DELETE FROM records; --",
    ];
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let rows =
        batch(names.iter().map(|name| (*name, Arc::new(StringArray::from_iter_values([*name])) as ArrayRef)).collect());
    let change = store.write().unwrap();
    for name in names {
        change.put_record(name, name, name).unwrap();
        change.create_table(&table(name, &rows)).unwrap();
        change.insert(name, &rows).unwrap();
        change.create_index(name, &[name.to_owned()], Uniqueness::Unique).unwrap();
    }
    change.commit().unwrap();
    drop((change, store));

    let store = Store::open(folder.path()).unwrap();
    store.check().unwrap();
    let snapshot = store.read().unwrap();
    assert_eq!(snapshot.tables().unwrap().len(), names.len());
    for name in names {
        let condition = Condition::In { column: name.to_owned(), values: vec![Value::Text(name.to_owned())] };
        let request = ScanRequest { conditions: vec![condition], ..ScanRequest::default() };
        assert_eq!(snapshot.scan(name, &request).unwrap().next().unwrap().unwrap(), rows);
        assert_eq!(snapshot.record(name, name).unwrap().as_deref(), Some(name));
    }
}

#[test]
fn a_value_that_does_not_fit_is_refused_by_its_place_and_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let change = store.write().unwrap();
    for (name, digits) in [("narrow", 5), ("wide", 20)] {
        let fits = batch(vec![("price", Arc::new(decimals(vec![Some(1)], digits, 2)) as ArrayRef)]);
        change.create_table(&table(name, &fits)).unwrap();
        let values = vec![Some(1), Some(10_i128.pow(u32::from(digits)))];
        let over = batch(vec![("price", Arc::new(decimals(values, digits, 2)) as ArrayRef)]);
        let error = change.insert(name, &over).unwrap_err();
        assert!(matches!(&error, StoreError::DoesNotFit { column, row: Some(2), .. } if column == "price"));
        assert!(!error.to_string().contains("00"), "{error}");
        assert_eq!(change.count(name).unwrap(), 0);
    }
}
