//! Properties of this crate's readers that hold for arbitrary bytes. The target in `fuzz/` calls this function with
//! random bytes, and the tests call it with the files in `fuzz/corpus`.

use std::cmp::Ordering;

use arrow_array::Array;
use rusqlite::types::ValueRef;

use crate::ColumnDescription;
use crate::encoding::{Bound, Cells, ColumnBuilder, StoredType, float_from_stored, wide_decimal_from_stored};
use crate::log::find_damage;

/// Reads a log, or a column of a possibly damaged file. If the first line is `log`, the rest is a log. Otherwise the
/// first line is the name of the column's type in the catalog, and the cells follow, see [`next_cell`].
///
/// The store must support every type that the catalog can name, under the same name. Cells must be written as they were
/// read, and their stored order must be the order of their values.
///
/// # Panics
/// If a property does not hold.
pub fn stored(data: &[u8]) {
    let end = data.iter().position(|&byte| byte == b'\n').unwrap_or(data.len());
    let (name, mut rest) = (&data[..end], &data[(end + 1).min(data.len())..]);
    if name == b"log" {
        find_damage(rest).expect("bytes in memory can be read");
        return;
    }
    let Some(stored) = std::str::from_utf8(name).ok().and_then(StoredType::from_catalog_name) else { return };
    let column = ColumnDescription { name: "c".to_owned(), data_type: stored.data_type(), nullable: true };
    assert_eq!(
        StoredType::of(&column).as_ref().ok(),
        Some(&stored),
        "the store does not support a type that the catalog names"
    );
    assert_eq!(StoredType::from_catalog_name(&stored.catalog_name()), Some(stored.clone()));

    let mut cells = Vec::new();
    let mut builder = ColumnBuilder::new(stored.clone(), 0);
    while let Some(cell) = next_cell(&mut rest) {
        if builder.push(cell).is_err() {
            return;
        }
        cells.push(cell);
    }
    let Ok(array) = builder.finish() else { return };
    assert_eq!((array.len(), array.data_type()), (cells.len(), &stored.data_type()));
    let written = Cells::of(&array, &stored);
    for (row, cell) in cells.iter().enumerate() {
        let bound = written.bound(row).expect("what was read fits its type");
        assert!(is_same(&bound, *cell), "a cell is written differently than it was read");
    }
    for pair in cells.windows(2) {
        if let Some(ordered) = order(&stored, pair[0], pair[1]) {
            assert_eq!(ordered, order_in_file(pair[0], pair[1]), "SQLite and Arrow order these values differently");
        }
    }
}

/// Takes the next cell: a byte for its kind; then 8 bytes of an integer, or a byte for the length of a text or a blob
/// and its bytes. At the end of the data, a cell may be shorter.
fn next_cell<'d>(data: &mut &'d [u8]) -> Option<ValueRef<'d>> {
    let (&kind, rest) = data.split_first()?;
    *data = rest;
    let mut take = |length: usize| {
        let (taken, rest) = data.split_at(length.min(data.len()));
        *data = rest;
        taken
    };
    Some(match kind % 4 {
        0 => ValueRef::Null,
        1 => {
            let mut bytes = [0; 8];
            let taken = take(8);
            bytes[8 - taken.len()..].copy_from_slice(taken);
            ValueRef::Integer(i64::from_be_bytes(bytes))
        }
        kind => {
            let length = take(1).first().copied().unwrap_or(0);
            let bytes = take(length.into());
            if kind == 2 { ValueRef::Text(bytes) } else { ValueRef::Blob(bytes) }
        }
    })
}

fn is_same(bound: &Bound<'_>, cell: ValueRef<'_>) -> bool {
    match (bound.as_value(), cell) {
        (ValueRef::Null, ValueRef::Null) => true,
        (ValueRef::Integer(written), ValueRef::Integer(read)) => written == read,
        (ValueRef::Text(written) | ValueRef::Blob(written), ValueRef::Text(read) | ValueRef::Blob(read)) => {
            written == read
        }
        _ => false,
    }
}

/// The order of two values, for types whose stored form differs from the value.
fn order(stored: &StoredType, one: ValueRef<'_>, other: ValueRef<'_>) -> Option<Ordering> {
    match (stored, one, other) {
        (StoredType::Float64, ValueRef::Integer(one), ValueRef::Integer(other)) => {
            Some(float_from_stored(one).total_cmp(&float_from_stored(other)))
        }
        (StoredType::Decimal { .. }, ValueRef::Blob(one), ValueRef::Blob(other)) => {
            let [one, other] = [one, other].map(|bytes| <[u8; 16]>::try_from(bytes).map(wide_decimal_from_stored));
            Some(one.ok()?.cmp(&other.ok()?))
        }
        _ => None,
    }
}

fn order_in_file(one: ValueRef<'_>, other: ValueRef<'_>) -> Ordering {
    match (one, other) {
        (ValueRef::Integer(one), ValueRef::Integer(other)) => one.cmp(&other),
        (ValueRef::Blob(one), ValueRef::Blob(other)) => one.cmp(other),
        _ => unreachable!("only such pairs have an order of their own"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_corpus_of_stored_columns_and_logs_is_read_as_they_should_be() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/stored");
        let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert!(!files.is_empty());
        for file in files {
            // If this test fails, the last printed file is the reason.
            println!("{}", file.display());
            super::stored(&std::fs::read(file).unwrap());
        }
    }
}
