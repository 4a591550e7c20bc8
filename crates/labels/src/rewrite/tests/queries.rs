//! The rule follows labels through every part of a query.

use super::*;

#[tokio::test]
async fn aliases_subqueries_and_ctes_keep_the_meaning() {
    let context = patients();
    for (sql, expected) in [
        ("SELECT id FROM v AS x WHERE x.zipcode = '88512'", "1 2 3"),
        ("SELECT id FROM (SELECT id, zipcode AS z FROM v) WHERE z = '88512'", "1 2 3"),
        ("SELECT a FROM (SELECT id, zipcode FROM v) AS x(a, b) WHERE b = '88512'", "1 2 3"),
        (
            "WITH x AS (SELECT zipcode AS z, id FROM v), y AS (SELECT * FROM x) SELECT id FROM y WHERE z = '88512'",
            "1 2 3",
        ),
        ("SELECT id FROM (SELECT * FROM v ORDER BY zipcode LIMIT 5) WHERE zipcode = '88512'", "1 2 3"),
        ("SELECT id FROM (SELECT DISTINCT * FROM v) WHERE zipcode = '88512'", "1 2 3"),
        ("SELECT id FROM (SELECT id, CAST(zipcode AS TEXT) z FROM v) WHERE z = '88512'", "1 2 3"),
        (
            "SELECT id FROM (SELECT DISTINCT ON (zipcode) id, zipcode z FROM v ORDER BY zipcode) WHERE z = '88512'",
            "1 2 3",
        ),
        (
            "SELECT id FROM (SELECT id, zipcode, row_number() OVER (PARTITION BY zipcode ORDER BY birth) n FROM v) \
          WHERE n = 1 AND zipcode = '88512'",
            "1 2 3",
        ),
        ("SELECT id FROM (SELECT id, lag(zipcode) OVER (ORDER BY id) z FROM v) WHERE z = '88512'", "2 3 4"),
        ("SELECT zipcode FROM v WHERE id = 1", "885**"),
    ] {
        assert_rows(&context, sql, expected).await;
    }
}

#[tokio::test]
async fn groups_are_by_label_and_having_asks_what_could_be() {
    let context = patients();
    for (sql, expected) in [
        ("SELECT ward, count(*) FROM v WHERE birth = 1984 GROUP BY ward", "a|1 c|1"),
        ("SELECT zipcode, count(*) FROM v GROUP BY zipcode HAVING zipcode = '88512'", "*****|1 885**|1 88512|1"),
        ("SELECT count(*) FILTER (WHERE zipcode = '88512') FROM v", "3"),
        ("SELECT count(zipcode) FILTER (WHERE NOT (zipcode = '88512')) + 1 FROM v", "5"),
        ("SELECT count(birth), count(DISTINCT birth) FROM v", "4|4"),
        ("SELECT string_agg(zipcode, ',' ORDER BY zipcode) FROM v WHERE id < 3", "885**,88512"),
        ("SELECT z FROM (SELECT first_value(zipcode ORDER BY id) z FROM v) WHERE z = '88512'", "885**"),
        (
            "SELECT count(*) FROM (SELECT zipcode, ward FROM v GROUP BY GROUPING SETS ((zipcode), (ward))) \
          WHERE zipcode = '88512'",
            "3",
        ),
        ("SELECT id, count(*) FILTER (WHERE zipcode = '88512') OVER () FROM v WHERE id = 1", "1|1"),
        ("SELECT id FROM v ORDER BY birth, zipcode LIMIT 10", "1 2 3 4 5"),
    ] {
        assert_rows(&context, sql, expected).await;
    }
}

#[tokio::test]
async fn set_operations_keep_one_meaning() {
    let context = patients();
    for (sql, expected) in [
        ("SELECT count(*) FROM (SELECT zipcode FROM v UNION ALL SELECT zipcode FROM v) WHERE zipcode = '88512'", "6"),
        ("SELECT zipcode FROM v INTERSECT SELECT zipcode FROM v WHERE id = 1", "885**"),
        ("SELECT count(*) FROM (SELECT zipcode FROM v EXCEPT SELECT zipcode FROM v WHERE id = 1)", "4"),
        ("SELECT zipcode FROM v WHERE id = 1 UNION SELECT zipcode FROM t WHERE id = 100", "885** 88512"),
    ] {
        assert_rows(&context, sql, expected).await;
    }
}

#[tokio::test]
async fn joins_ask_what_could_be_equal() {
    let context = patients();
    let pairs = "1|100 2|100 3|100 3|200 4|200 5|200";
    for (sql, expected) in [
        ("SELECT v.id, t.id FROM v JOIN t ON v.zipcode = t.zipcode", pairs),
        ("SELECT v.id, t.id FROM v JOIN t USING (zipcode)", pairs),
        (
            "SELECT v.id, t.id FROM (SELECT id, zipcode FROM v) v JOIN (SELECT id, zipcode FROM t) t ON t.zipcode = v.zipcode",
            pairs,
        ),
        ("SELECT a, b FROM (SELECT id a, zipcode FROM v) NATURAL JOIN (SELECT id b, zipcode FROM t)", pairs),
        (
            "SELECT t.id, v.id FROM t LEFT JOIN v ON t.zipcode = v.zipcode AND v.id < 3",
            "100|1 100|2 200|NULL 300|NULL 400|NULL",
        ),
        (
            "SELECT t.id, v.id FROM v RIGHT JOIN t ON t.zipcode = v.zipcode AND v.id < 3",
            "100|1 100|2 200|NULL 300|NULL 400|NULL",
        ),
        ("SELECT t.id FROM t LEFT SEMI JOIN v ON t.zipcode = v.zipcode", "100 200"),
        ("SELECT t.id FROM t LEFT ANTI JOIN v ON t.zipcode = v.zipcode", "300 400"),
        ("SELECT v.id, w.id FROM v JOIN w ON v.zipcode = w.zipcode", "1|10 2|10 3|10 3|20 4|20 5|20"),
        ("SELECT v.id, w.id FROM v JOIN w ON v.zipcode = w.zipcode AND v.age = w.age", "1|10 2|10 3|10 3|20"),
        ("SELECT x.id, y.id FROM v x JOIN v y ON x.zipcode = y.zipcode WHERE x.id < y.id", "1|2 1|3 2|3 3|4 3|5 4|5"),
        ("SELECT v.id, t.id FROM v JOIN t ON v.id * 100 = t.id AND v.birth = t.year", "1|100"),
        ("SELECT t.id FROM t LEFT JOIN v ON v.zipcode = t.zipcode WHERE v.zipcode IS NULL", "100 200 300 400"),
        (
            "SELECT t.id, x.id FROM t, LATERAL (SELECT id FROM v WHERE v.zipcode = t.zipcode) x WHERE t.id = 100",
            "100|1 100|2 100|3",
        ),
    ] {
        assert_rows(&context, sql, expected).await;
    }
}

#[tokio::test]
async fn subqueries_of_predicates_ask_what_could_be() {
    let context = patients();
    for (sql, expected) in [
        ("SELECT id FROM v WHERE zipcode IN (SELECT zipcode FROM t)", "1 2 3 4 5"),
        ("SELECT id FROM v WHERE zipcode IN (SELECT zipcode FROM t WHERE id = 100)", "1 2 3"),
        ("SELECT id FROM t WHERE zipcode IN (SELECT zipcode FROM v)", "100 200"),
        ("SELECT id FROM v WHERE zipcode IN (SELECT zipcode FROM w WHERE age = 30)", "1 2 3"),
        ("SELECT id FROM v WHERE zipcode = ANY (SELECT zipcode FROM t WHERE id = 100)", "1 2 3"),
        ("SELECT id FROM t WHERE EXISTS (SELECT 1 FROM v WHERE v.zipcode = t.zipcode AND v.birth = 1984)", "100 200"),
        ("SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM v WHERE v.zipcode = t.zipcode)", "300 400"),
        ("SELECT id FROM v WHERE EXISTS (SELECT 1 FROM t WHERE v.zipcode = t.zipcode AND t.id = 200)", "3 4 5"),
        ("SELECT id FROM v WHERE EXISTS (SELECT 1 FROM v x WHERE x.zipcode = v.zipcode AND x.id <> v.id)", "1 2 3 4 5"),
        ("SELECT id FROM v WHERE ward = 'c' OR zipcode IN (SELECT zipcode FROM t WHERE id = 100)", "1 2 3 5"),
        ("SELECT id FROM v WHERE id IN (SELECT id FROM v WHERE zipcode = '88512')", "1 2 3"),
        ("SELECT id FROM v WHERE id NOT IN (SELECT id FROM v WHERE zipcode = '88512')", "4 5"),
        ("SELECT (SELECT count(*) FROM v WHERE zipcode = '88512')", "3"),
        ("SELECT id FROM v WHERE zipcode IN (SELECT zipcode FROM v WHERE id = 2)", "1 2 3"),
        ("SELECT id FROM v WHERE zipcode IN (SELECT zipcode FROM w WHERE zipcode IN (SELECT zipcode FROM t))", "1 2 3"),
        (
            "SELECT id FROM v WHERE zipcode IN (SELECT zipcode FROM t) AND zipcode IN (SELECT zipcode FROM w WHERE id = 20)",
            "3 4 5",
        ),
        ("SELECT id FROM v WHERE zipcode IN (VALUES ('88512'), ('1'))", "1 2 3"),
        ("SELECT id FROM v WHERE zipcode IN (SELECT zipcode FROM t ORDER BY id LIMIT 1)", "1 2 3"),
        ("SELECT id FROM t WHERE id = 100 AND (SELECT max(id) FROM v WHERE zipcode = '88512') = 3", "100"),
    ] {
        assert_rows(&context, sql, expected).await;
    }
}

#[tokio::test]
async fn plans_say_what_is_asked() {
    let context = patients();
    let plan = analyzed(
        &context,
        "SELECT zipcode, count(*) FROM v WHERE NOT (birth <> 1984 OR ward = 'a') AND zipcode LIKE '885%' GROUP BY zipcode",
    )
    .await;
    insta::assert_snapshot!(plan.display_indent(), @r#"
    Projection: v.zipcode, count(Int64(1)) AS count(*)
      Aggregate: groupBy=[[v.zipcode]], aggr=[[count(Int64(1))]]
        Filter: AVLIKE '1984'(v.birth) AND NOT v.ward = Utf8("a") AND could be LIKE '885%'(v.zipcode)
          TableScan: v
    "#);
    let plan = analyzed(&context, "SELECT v.id FROM v JOIN t USING (zipcode) WHERE v.age > t.age").await;
    insta::assert_snapshot!(plan.display_indent(), @r#"
    Projection: v.id
      Filter: could be >(v.age, t.age)
        Inner Join:  Filter: AVLIKE(v.zipcode, t.zipcode)
          TableScan: v
          TableScan: t
    "#);
    let plan = analyzed(&context, "SELECT id FROM v WHERE zipcode IN (SELECT zipcode FROM w)").await;
    insta::assert_snapshot!(plan.display_indent(), @r#"
    Projection: v.id
      Filter: EXISTS (<subquery>)
        Subquery:
          Filter: AVLIKE(outer_ref(v.zipcode), __could_be_in.zipcode)
            SubqueryAlias: __could_be_in
              Projection: w.zipcode
                TableScan: w
        TableScan: v
    "#);
}

#[tokio::test]
async fn rewriting_again_changes_nothing() {
    let context = patients();
    let state = context.state();
    for sql in [
        "SELECT zipcode, count(*) FILTER (WHERE age > 20) FROM v WHERE NOT (birth = 1984 OR ward = 'a') GROUP BY zipcode",
        "SELECT v.id FROM v JOIN t USING (zipcode) WHERE v.age > t.age AND v.birth IS NOT NULL",
        "SELECT id FROM v WHERE zipcode IN (SELECT zipcode FROM w) AND EXISTS (SELECT 1 FROM t WHERE t.year = v.birth)",
        "SELECT zipcode FROM v INTERSECT SELECT zipcode FROM v",
    ] {
        let once = analyzed(&context, sql).await;
        let twice = state.analyzer().execute_and_check(once.clone(), state.config_options(), |_, _| {}).unwrap();
        assert_eq!(once, twice, "{sql}");
    }
}

#[tokio::test]
async fn views_and_prepared_statements_are_rewritten_when_used() {
    let context = patients();
    rows(&context, "CREATE VIEW x AS SELECT id, zipcode AS z FROM v WHERE birth = 1984").await.unwrap();
    assert_rows(&context, "SELECT id FROM x WHERE z = '88512'", "1").await;
    rows(&context, "PREPARE p(TEXT) AS SELECT id FROM v WHERE zipcode = $1").await.unwrap();
    assert_rows(&context, "EXECUTE p('88512')", "1 2 3").await;
}
