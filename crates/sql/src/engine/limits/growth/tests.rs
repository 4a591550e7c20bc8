//! Queries that are refused for their size or their steps, and queries that are not.

use std::sync::Arc;

use datafusion::logical_expr::{ColumnarValue, Volatility, create_udf};
use datafusion::prelude::SessionContext;

use super::*;

async fn is_refused(sql: &str) -> bool {
    let context = SessionContext::new();
    context.sql("CREATE TABLE t (a TEXT, n BIGINT) AS VALUES ('x', 1)").await.unwrap();
    let plan = context.state().create_logical_plan(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    check_growth(&plan).is_err()
}

#[tokio::test]
async fn queries_whose_values_could_become_too_large_are_refused() {
    let mut doubled = "SELECT a FROM t".to_owned();
    for _ in 0..12 {
        doubled = format!("SELECT a || a AS a FROM ({doubled})");
    }
    for sql in [
        "SELECT length(repeat('a', 2000000000))",
        "SELECT repeat('a', n) FROM t",
        "SELECT repeat(repeat(repeat('a', 1000), 1000), 1000)",
        "SELECT lpad('a', 2000000000, 'b')",
        "SELECT array_length(array_repeat('abc', 2000000000))",
        "SELECT array_resize(make_array(1), 2000000000)",
        "SELECT range(1, 2000000000)",
        "SELECT arrow_cast(make_array(1), 'FixedSizeList(2147483647, Int64)')",
        "SELECT approx_percentile_cont(n, 0.5, 1000000000000000) FROM t",
        "SELECT n FROM t WHERE length(repeat(a, 100000)) = 1",
        "SELECT n FROM t ORDER BY repeat('a', 1000000)",
        "SELECT count(*) FROM t GROUP BY repeat('a', 1000000)",
        "SELECT n FROM t WHERE EXISTS (SELECT repeat('a', 1000000) FROM t)",
        "SELECT (SELECT repeat('a', 1000000))",
        "SELECT levenshtein(repeat('a', 30000), repeat('b', 30000))",
        "SELECT replace(repeat('a', 10000), 'a', repeat('b', 10000))",
        "SELECT concat_ws(repeat('a', 1000), 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', \
         'o', 'p', 'q', 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i')",
        "SELECT array_replace_all(string_to_array(repeat('a,', 1000), ','), 'a', repeat('b', 1000))",
        "SELECT regexp_match(repeat('a', 5000), '((((((((((a*))))))))))')",
        "SELECT (SELECT repeat(u.b, 1000)) FROM (SELECT repeat('x', 16000) AS b FROM t) AS u",
        "SELECT count(*) FROM (SELECT repeat('x', 30000) AS b FROM t) AS u JOIN t ON u.b = t.a",
        "WITH RECURSIVE r AS (SELECT arrow_cast('x', 'LargeUtf8') AS s UNION ALL SELECT s || s || s FROM r) \
         SELECT count(s) FROM r",
        "WITH RECURSIVE r AS (SELECT make_array(1) AS s, 1 AS n UNION ALL SELECT array_concat(s, s), n + 1 FROM r) \
         SELECT count(s) FROM r",
        &doubled,
    ] {
        assert!(is_refused(sql).await, "{sql}");
    }
}

#[tokio::test]
async fn gathered_values_are_copied_beside_no_other_row() {
    let gathered = "SELECT string_agg(a, '') AS s FROM t";
    for sql in [
        "SELECT string_agg(repeat('x', 30000), '') OVER () FROM generate_series(1, 8192)",
        "SELECT array_agg(a) OVER (PARTITION BY n) FROM t",
        &format!("SELECT count(s) FROM ({gathered}) AS u CROSS JOIN t"),
        &format!("SELECT length(s) FROM t JOIN ({gathered}) AS u ON s = t.a"),
        &format!("SELECT ({gathered}) FROM t"),
        &format!("SELECT s, unnest(range(1, 1000)) FROM ({gathered})"),
        &format!("SELECT repeat(s, 2) FROM ({gathered})"),
        &format!("SELECT levenshtein(s, s) FROM ({gathered})"),
        &format!("SELECT s || 'a', s || 'b', s || 'c' FROM ({gathered})"),
        &format!("SELECT max(s) OVER () FROM ({gathered})"),
        "SELECT array_agg(l) FROM (SELECT array_agg(a) AS l FROM t GROUP BY n)",
        "SELECT a, string_agg(a, ''), n FROM t GROUP BY GROUPING SETS ((a), (n)) HAVING repeat(string_agg(a, ''), 9) = ''",
    ] {
        assert!(is_refused(sql).await, "{sql}");
    }
    for sql in [
        &format!("SELECT s, length(s), s LIKE 'x%' FROM ({gathered}) ORDER BY s LIMIT 3"),
        "SELECT n, array_to_string(array_agg(a ORDER BY a), ', ') AS l FROM t GROUP BY n HAVING count(*) > 2 ORDER BY l",
        "SELECT unnest(l) FROM (SELECT array_agg(a) AS l FROM t)",
    ] {
        assert!(!is_refused(sql).await, "{sql}");
    }
}

#[tokio::test]
async fn functions_that_are_not_known_are_refused_by_name() {
    let context = SessionContext::new();
    context.sql("CREATE TABLE t (a TEXT, n BIGINT) AS VALUES ('x', 1)").await.unwrap();
    let odd = |values: &[ColumnarValue]| Ok(values[0].clone());
    let text = DataType::Utf8View;
    context.register_udf(create_udf("odd", vec![text.clone()], text, Volatility::Immutable, Arc::new(odd)));
    let plan = context.state().create_logical_plan("SELECT length(odd(a)) FROM t").await.unwrap();
    let error = check_growth(&plan).unwrap_err();
    assert!(matches!(&error, SqlError::UnknownGrowth { function } if function == "odd"), "{error}");
}

#[tokio::test]
async fn queries_that_could_not_be_stopped_for_long_are_refused() {
    let slow = "levenshtein(repeat('a', 120) || x, repeat('b', 120)) > 0";
    let often =
        |n: usize| format!("SELECT count(*) FROM generate_series(1, 9) AS g (x) WHERE {}", vec![slow; n].join(" AND "));
    assert!(!is_refused(&often(2)).await);
    for sql in [
        &often(50),
        "SELECT count(*) FROM t WHERE levenshtein(repeat('a', 1200) || n, repeat('b', 1200)) > 0",
        "SELECT a ~ '(a?){1000}a{1000}' FROM t",
        "SELECT regexp_like(a, '((a{30}){30}){30}') FROM t",
        "SELECT a ~ '([\\])]a{200}){200}' FROM t",
        "SELECT regexp_like(a, repeat('a?', 1000)) FROM t",
        &format!("SELECT a LIKE '{}' FROM t", "%a".repeat(2_000)),
        &format!("SELECT {}", vec!["length(upper(repeat('a', 30000)))"; 100].join(" + ")),
    ] {
        assert!(is_refused(sql).await, "{sql}");
    }
}

#[tokio::test]
async fn ordinary_queries_are_not_refused() {
    for sql in [
        "SELECT a || ' ' || a || '-' || n AS b FROM t WHERE upper(lower(trim(a))) LIKE 'x%' ORDER BY length(a)",
        "SELECT repeat('-', 20), lpad(a, 10, '0'), rpad(a, 10), replace(a, 'x', 'y') FROM t",
        "SELECT a, count(*), avg(n), string_agg(a, ', ') FROM t GROUP BY a HAVING count(*) > 1",
        "SELECT u.a || v.a FROM t AS u JOIN t AS v ON u.n = v.n LEFT JOIN t AS w ON w.a = v.a",
        "SELECT approx_percentile_cont(n, 0.5), approx_percentile_cont(n, 0.5, 200) FROM t",
        "SELECT a FROM t UNION ALL SELECT a || 'x' FROM t",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 10) SELECT * FROM r",
        "SELECT CASE WHEN n > 1 THEN a ELSE 'none' END, row_number() OVER (ORDER BY n), lag(a) OVER (ORDER BY n) FROM t",
        "SELECT levenshtein(a, 'abc'), array_to_string(array_agg(a), ',') FROM t GROUP BY a",
        "SELECT * FROM generate_series(1, 1000000) AS s (x) WHERE x % 7 = 3",
        "SELECT a ~ '^[0-9]{5}(-[0-9]{4})?$', regexp_replace(a, '[^a-z]+', ' ', 'g'), a LIKE '%x%y_' FROM t",
        "WITH RECURSIVE r AS (SELECT a, 1 AS n FROM t UNION ALL SELECT a, n + 1 FROM r WHERE n < 5) SELECT * FROM r",
        "WITH RECURSIVE r AS (SELECT 'x' AS s, 1 AS n UNION ALL SELECT t.a, r.n + 1 FROM r JOIN t ON t.n = r.n) SELECT * FROM r",
        "SELECT a FROM t AS u WHERE EXISTS (SELECT 1 FROM t AS v WHERE v.a = u.a || 'x')",
        "SELECT a, unnest(make_array('x', 'y')) FROM t",
        "SELECT date_part('year', now()), to_char(now(), '%Y'), CAST(n AS TEXT), substr(a, 1, 3), md5(a) FROM t",
        "SELECT coalesce(a, 'none'), greatest(a, 'b'), concat_ws('-', a, a, n), split_part(a, '-', 1), initcap(a) FROM t",
        "SELECT a, n, sum(n) FROM t GROUP BY ROLLUP (a, n)",
    ] {
        assert!(!is_refused(sql).await, "{sql}");
    }
}
