//! Conditions that the store tests itself give the same answers as a table that reads every row.
//!
//! The oracle is a table with the same rows in an engine without a data folder, where DataFusion reads and filters all rows.

use kohort_sql::Session;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use crate::folder::open;
use crate::session::{engine, owner, rows, try_rows};

/// The name, type and values of a column. Conditions compare with each of the values.
type Column = (&'static str, &'static str, &'static [&'static str]);

const COLUMNS: [Column; 8] = [
    (
        "n",
        "BIGINT",
        &["NULL", "-9223372036854775808", "-9223372036854775807", "-1", "0", "1", "7", "9223372036854775807"],
    ),
    (
        "x",
        "DOUBLE",
        &[
            "NULL",
            "CAST('-Infinity' AS DOUBLE)",
            "-1.5",
            "-1e-320",
            "CAST('-0.0' AS DOUBLE)",
            "CAST('0.0' AS DOUBLE)",
            "1e-320",
            "1.5",
            "7.0",
            "CAST('Infinity' AS DOUBLE)",
            "CAST('NaN' AS DOUBLE)",
        ],
    ),
    ("t", "TEXT", &["NULL", "''", "'a'", "'A'", "'aa'", "'a '", "'b'", "'ä'", "'ß'", "'ﬁ'", "'🦆'", "'o''b'", "'%'"]),
    ("d", "DATE", &["NULL", "DATE '0001-01-01'", "DATE '1969-12-31'", "DATE '1970-01-01'", "DATE '9999-12-31'"]),
    (
        "s",
        "TIMESTAMP",
        &[
            "NULL",
            "TIMESTAMP '1901-02-03 04:05:06.000007'",
            "TIMESTAMP '1969-12-31 23:59:59.999999'",
            "TIMESTAMP '1970-01-01 00:00:00'",
            "TIMESTAMP '2100-02-28 12:00:00.5'",
        ],
    ),
    ("p", "DECIMAL(10, 2)", &["NULL", "-99999999.99", "-0.01", "0.00", "0.01", "1.50", "99999999.99"]),
    ("w", "DECIMAL(38, 3)", &["NULL", "-1.5", "0", "0.001", "12345678901234567890.125"]),
    ("b", "BOOLEAN", &["NULL", "true", "false"]),
];

/// Literals of another type than the column's, or that are not valid values.
const OTHERS: [(&str, &[&str]); 4] = [
    ("n", &["1.5", "1e300", "-0.0", "9223372036854775808"]),
    ("x", &["0", "-0.0", "1", "0.1", "'NaN'"]),
    ("p", &["0", "1.505", "1e20", "100000000"]),
    ("w", &["0.0005", "1"]),
];

const N_ROWS: usize = 150;

/// The statements that fill a table: rows in which values of different columns meet in many ways.
fn filled(table: &str) -> String {
    let row = |row: usize| {
        let value =
            |(place, (_, _, values)): (usize, &Column)| values[(row * (2 * place + 1) + row / 7) % values.len()];
        let values: Vec<&str> = COLUMNS.iter().enumerate().map(value).collect();
        format!("({row}, {})", values.join(", "))
    };
    let values: Vec<String> = (0..N_ROWS).map(row).collect();
    format!("INSERT INTO {table} VALUES {};", values.join(", "))
}

fn created(table: &str, key: &str) -> String {
    let columns: Vec<String> = COLUMNS.iter().map(|(name, data_type, _)| format!("{name} {data_type}")).collect();
    format!("CREATE TABLE {table} (id BIGINT{key}, {});", columns.join(", "))
}

fn literal(column: usize) -> BoxedStrategy<String> {
    let (name, _, values) = COLUMNS[column];
    let others = OTHERS.iter().find(|(of, _)| *of == name).map_or(&[][..], |(_, others)| *others);
    let own = prop::sample::select(values).prop_map(str::to_owned);
    if others.is_empty() {
        return own.boxed();
    }
    prop_oneof![4 => own, 1 => prop::sample::select(others).prop_map(str::to_owned)].boxed()
}

fn test_of_one_column() -> impl Strategy<Value = String> {
    (0..COLUMNS.len()).prop_flat_map(|column| {
        let name = COLUMNS[column].0;
        let sign =
            prop::sample::select(&["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"][..]);
        let not = prop::sample::select(&["", "NOT "][..]);
        let is_swapped = any::<bool>();
        // DataFusion 55 wrongly simplifies `s IN (TIMESTAMP x) AND TIMESTAMP x = s` to false for any table.
        let fewest = if COLUMNS[column].1 == "TIMESTAMP" { 2 } else { 1 };
        prop_oneof![
            4 => (sign, literal(column), is_swapped).prop_map(move |(sign, value, is_swapped)| match is_swapped {
                true => format!("{value} {sign} {name}"),
                false => format!("{name} {sign} {value}"),
            }),
            3 => (not.clone(), prop::collection::vec(literal(column), fewest..6))
                .prop_map(move |(not, values)| format!("{name} {not}IN ({})", values.join(", "))),
            2 => (not.clone(), literal(column), literal(column))
                .prop_map(move |(not, low, high)| format!("{name} {not}BETWEEN {low} AND {high}")),
            1 => not.prop_map(move |not| format!("{name} IS {not}NULL")),
        ]
    })
}

fn predicate() -> impl Strategy<Value = String> {
    test_of_one_column().prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("({})", parts.join(" AND "))),
            prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("({})", parts.join(" OR "))),
            inner.prop_map(|part| format!("NOT ({part})")),
        ]
    })
}

async fn found(session: &mut Session, table: &str, predicate: &str) -> Option<Vec<Vec<String>>> {
    try_rows(session, &format!("SELECT id FROM {table} WHERE {predicate} ORDER BY id")).await.ok()
}

#[test]
fn random_predicates_find_the_rows_that_a_look_at_each_finds() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (stored, in_memory) = runtime.block_on(async {
        let stored = open(folder.path()).await;
        let mut session = owner(&stored);
        rows(&mut session, &[created("indexed", " PRIMARY KEY"), created("plain", "")].concat()).await;
        for (name, _, _) in COLUMNS {
            rows(&mut session, &format!("CREATE INDEX ON indexed ({name})")).await;
        }
        rows(&mut session, &[filled("indexed"), filled("plain")].concat()).await;
        let in_memory = engine();
        rows(&mut owner(&in_memory), &[created("looked_at", ""), filled("looked_at")].concat()).await;
        (stored, in_memory)
    });
    let (mut stored, mut in_memory) = (owner(&stored), owner(&in_memory));
    let sessions = std::cell::RefCell::new((&mut stored, &mut in_memory));
    let mut runner = TestRunner::new(Config { cases: 400, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&predicate(), |predicate| {
        let mut sessions = sessions.borrow_mut();
        let (stored, in_memory) = &mut *sessions;
        let expected = runtime.block_on(found(in_memory, "looked_at", &predicate));
        for table in ["indexed", "plain"] {
            let found = runtime.block_on(found(stored, table, &predicate));
            if found != expected {
                let told = format!("{table} WHERE {predicate}: {found:?}, not {expected:?}");
                return Err(TestCaseError::fail(told));
            }
        }
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

#[tokio::test]
async fn both_zeros_are_one_number_to_every_statement() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut session = owner(&engine);
    rows(&mut session, "CREATE TABLE z (x DOUBLE, y DOUBLE); CREATE INDEX ON z (x);").await;
    for zero in ["0", "0.0", "-0.0", "CAST('-0.0' AS DOUBLE)"] {
        rows(&mut session, "DELETE FROM z; INSERT INTO z VALUES (-0.0, 1), (0.0, 2), (-1, 3), (1, 4)").await;
        for (condition, n_rows) in [
            (format!("x = {zero}"), "2"),
            (format!("x >= {zero}"), "3"),
            (format!("x <= {zero}"), "3"),
            (format!("x < {zero}"), "1"),
            (format!("x > {zero}"), "1"),
            (format!("x <> {zero}"), "2"),
            (format!("x BETWEEN {zero} AND {zero}"), "2"),
            (format!("x IN ({zero}, 7)"), "2"),
        ] {
            let counted = rows(&mut session, &format!("SELECT count(*) FROM z WHERE {condition}")).await;
            assert_eq!(counted, [[n_rows]], "{condition}");
        }
        assert_eq!(rows(&mut session, &format!("UPDATE z SET y = 5 WHERE x = {zero}")).await, [["2"]]);
        assert_eq!(rows(&mut session, &format!("DELETE FROM z WHERE x <= {zero}")).await, [["3"]]);
    }
}

#[tokio::test]
async fn the_plan_says_how_many_conditions_the_store_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut session = owner(&engine);
    rows(&mut session, "CREATE TABLE t (id BIGINT PRIMARY KEY, x DOUBLE, word TEXT)").await;
    for (condition, n_conditions) in [
        ("id = 1", 1),
        ("id IN (1, 2)", 1),
        ("id IN (1, 2, 3)", 1),
        ("id IN (1, 2, 3, 4, 5)", 1),
        ("id = 1 OR 2 = id OR id IN (5, 6, 7, 8)", 1),
        ("id IN (1, 2, NULL)", 1),
        ("id BETWEEN 1 AND 5", 2),
        ("id > 1 AND x <= 0 AND word IN ('a', '*')", 3),
        ("word IS NULL", 1),
        ("id = 1 OR word = 'a'", 0),
        ("id + 1 = 2", 0),
        ("id <> 1", 0),
    ] {
        let plan = rows(&mut session, &format!("EXPLAIN SELECT * FROM t WHERE {condition}")).await.concat().concat();
        assert!(plan.contains(&format!("StoredScan: table=t, conditions={n_conditions}")), "{condition}: {plan}");
    }
}

async fn wide_conditions() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut session = owner(&engine);
    let columns: Vec<String> = (0..600).map(|column| format!("c{column} INT")).collect();
    rows(&mut session, &format!("CREATE TABLE wide ({})", columns.join(", "))).await;
    rows(&mut session, "INSERT INTO wide (c0) VALUES (1), (2); INSERT INTO wide (c599) VALUES (3)").await;
    let conditions: Vec<String> = (1..600).map(|column| format!("c{column} IS NULL")).collect();
    let condition = conditions.join(" AND ");
    assert_eq!(rows(&mut session, &format!("SELECT c0 FROM wide WHERE {condition} ORDER BY c0")).await, [["1"], ["2"]]);
    assert_eq!(rows(&mut session, &format!("DELETE FROM wide WHERE {condition}")).await, [["2"]]);
}

#[test]
fn conditions_that_are_too_much_for_the_store_are_left_to_the_query() {
    // In an unoptimized build, planning and executing such a long condition needs more stack than threads of tests have.
    const LARGE_STACK: usize = 256 << 20;
    let run = || {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.enable_all().thread_stack_size(LARGE_STACK).build().unwrap().block_on(wide_conditions());
    };
    std::thread::Builder::new().stack_size(LARGE_STACK).spawn(run).unwrap().join().unwrap();
}

#[tokio::test]
async fn a_column_has_no_name_that_numbers_rows() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let mut session = owner(&engine);
    for sql in [
        "CREATE TABLE t (a BIGINT, \"kohort row number\" BIGINT, b BIGINT)",
        "CREATE TABLE t AS SELECT 1 AS a, 2 AS \"kohort row number\"",
    ] {
        let error = try_rows(&mut session, sql).await.unwrap_err();
        let expected = "can't create table 't': the column name 'kohort row number' is reserved";
        assert_eq!(error.to_string(), expected);
    }
}
