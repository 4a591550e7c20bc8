//! Compares the store's speed with plain SQLite: `cargo run --release --example store_rates -p kohort-store`.
//!
//! Scans and lookups are the best of several runs, in processor time. Writes are timed by the clock, because they wait
//! for the disk. Both sides read and write the same values in files with the same settings.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::DataType;
use kohort_store::{
    ColumnDescription, Comparison, Condition, IndexDescription, ScanRequest, Store, TableDescription, TableKind,
    Uniqueness, Value,
};
use rusqlite::Connection;
use rusqlite::types::ValueRef;

const N_ROWS: i64 = 1_000_000;
const RUNS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let store = Store::open(&folder.path().join("store"))?;
    let plain = plain_file(&folder.path().join("plain.db"))?;

    let batches: Vec<RecordBatch> = (0..N_ROWS / 1_000).map(|batch| rows(batch * 1_000, 1_000)).collect();
    let change = store.write()?;
    change.create_table(&description())?;
    let start = Instant::now();
    for batch in &batches {
        change.insert("people", batch)?;
    }
    change.commit()?;
    let ours = start.elapsed();
    let start = Instant::now();
    plain.execute_batch("BEGIN IMMEDIATE")?;
    for batch in 0..N_ROWS / 1_000 {
        insert_plain(&plain, batch * 1_000, 1_000)?;
    }
    plain.execute_batch("COMMIT")?;
    report("insert 1 M rows in one transaction", ours, start.elapsed());

    let request = ScanRequest::default();
    let ours = best(|| {
        let mut n_rows = 0;
        for batch in store.read()?.scan("people", &request)? {
            n_rows += batch?.num_rows();
        }
        assert_eq!(n_rows, 1_000_000);
        Ok(())
    })?;
    let theirs = best(|| scan_plain(&plain))?;
    report("scan 1 M rows of 4 columns", ours, theirs);
    let theirs = best(|| sum_plain(&plain))?;
    report("the same, compared with sums computed inside SQLite", ours, theirs);

    let lookups = 20_000;
    let snapshot = store.read()?;
    let ours = best(|| {
        for lookup in 0..lookups {
            let id = lookup * 7_919 % N_ROWS;
            let condition =
                Condition::Compare { column: "id".to_owned(), comparison: Comparison::Eq, value: Value::Integer(id) };
            let request = ScanRequest { conditions: vec![condition], batch_size: 1, ..ScanRequest::default() };
            let found = snapshot.scan("people", &request)?.next().ok_or("a row")??;
            assert_eq!(found.num_rows(), 1);
        }
        Ok(())
    })?;
    let theirs = best(|| {
        let mut statement = plain.prepare("SELECT id, age, weight, town FROM people WHERE id = ?")?;
        for lookup in 0..lookups {
            let id = lookup * 7_919 % N_ROWS;
            let town = statement.query_row([id], |row| row.get::<_, String>(3))?;
            assert!(!town.is_empty());
        }
        Ok(())
    })?;
    report("20,000 rows by index, one at a time", ours, theirs);

    let mut next = N_ROWS;
    for (name, size) in [("300 commits of 1 row", 1), ("300 commits of 1,000 rows", 1_000)] {
        let start = Instant::now();
        for commit in 0..300 {
            let change = store.write()?;
            change.insert("people", &rows(next + commit * size, size))?;
            change.commit()?;
        }
        let ours = start.elapsed();
        let start = Instant::now();
        for commit in 0..300 {
            plain.execute_batch("BEGIN IMMEDIATE")?;
            insert_plain(&plain, next + commit * size, size)?;
            plain.execute_batch("COMMIT")?;
        }
        report(name, ours, start.elapsed());
        next += 300 * size;
    }
    Ok(())
}

fn description() -> TableDescription {
    let column = |name: &str, data_type| ColumnDescription { name: name.to_owned(), data_type, nullable: true };
    TableDescription {
        name: "people".to_owned(),
        columns: vec![
            column("id", DataType::Int64),
            column("age", DataType::Int64),
            column("weight", DataType::Float64),
            column("town", DataType::Utf8),
        ],
        primary_key: vec![],
        indexes: vec![IndexDescription { columns: vec!["id".to_owned()], uniqueness: Uniqueness::Plain }],
        kind: TableKind::Base,
    }
}

fn plain_file(path: &Path) -> Result<Connection, rusqlite::Error> {
    let plain = Connection::open(path)?;
    plain.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         CREATE TABLE people (row INTEGER PRIMARY KEY, id INTEGER, age INTEGER, weight REAL, town TEXT) STRICT;
         CREATE INDEX people_id ON people (id);",
    )?;
    Ok(plain)
}

fn weight(id: i64) -> f64 {
    40.0 + (id % 977) as f64 / 10.0
}

fn rows(first: i64, n_rows: i64) -> RecordBatch {
    let ids = first..first + n_rows;
    let columns: [(&str, ArrayRef); 4] = [
        ("id", Arc::new(Int64Array::from_iter_values(ids.clone()))),
        ("age", Arc::new(Int64Array::from_iter_values(ids.clone().map(|id| id % 97)))),
        ("weight", Arc::new(Float64Array::from_iter_values(ids.clone().map(weight)))),
        ("town", Arc::new(StringArray::from_iter_values(ids.map(|id| format!("town {}", id % 1_009))))),
    ];
    RecordBatch::try_from_iter(columns).expect("columns are of one length")
}

fn insert_plain(plain: &Connection, first: i64, n_rows: i64) -> Result<(), rusqlite::Error> {
    let mut statement = plain.prepare_cached("INSERT INTO people (id, age, weight, town) VALUES (?, ?, ?, ?)")?;
    for id in first..first + n_rows {
        statement.execute((id, id % 97, weight(id), format!("town {}", id % 1_009)))?;
    }
    Ok(())
}

/// A scan by SQLite alone: reads each column of each row and keeps nothing.
fn scan_plain(plain: &Connection) -> Result<(), Box<dyn std::error::Error>> {
    let mut statement = plain.prepare("SELECT id, age, weight, town FROM people")?;
    let mut rows = statement.query([])?;
    let (mut n_rows, mut n_bytes) = (0, 0);
    while let Some(row) = rows.next()? {
        for column in 0..4 {
            n_bytes += match row.get_ref(column)? {
                ValueRef::Integer(value) => usize::from(value == 0),
                ValueRef::Real(value) => usize::from(value == 0.0),
                ValueRef::Text(value) | ValueRef::Blob(value) => value.len(),
                ValueRef::Null => 0,
            };
        }
        n_rows += 1;
    }
    assert!(n_rows == 1_000_000 && n_bytes > 0);
    Ok(())
}

/// A scan in a loop inside SQLite, which computes sums without a call per row.
fn sum_plain(plain: &Connection) -> Result<(), Box<dyn std::error::Error>> {
    let sql = "SELECT sum(id), sum(age), sum(weight), sum(octet_length(town)) FROM people";
    let n_bytes: i64 = plain.query_row(sql, [], |row| row.get(3))?;
    assert!(n_bytes > 0);
    Ok(())
}

fn best(
    mut run: impl FnMut() -> Result<(), Box<dyn std::error::Error>>,
) -> Result<Duration, Box<dyn std::error::Error>> {
    let mut best = Duration::MAX;
    for _ in 0..RUNS {
        let start = processor_time()?;
        run()?;
        best = best.min(processor_time()? - start);
    }
    Ok(best)
}

/// The processor time of this process, which other processes disturb less than the clock.
fn processor_time() -> Result<Duration, nix::Error> {
    Ok(nix::time::clock_gettime(nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID)?.into())
}

fn report(what: &str, ours: Duration, theirs: Duration) {
    let (ours, theirs) = (ours.as_secs_f64(), theirs.as_secs_f64());
    println!("{what:<40} store {ours:>8.3} s   SQLite {theirs:>8.3} s   {:>5.2} x", ours / theirs);
}
