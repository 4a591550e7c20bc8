//! A query without a meaning for labels is refused. The message names the column and the operation.

use datafusion::common::config::ConfigOptions;
use datafusion::logical_expr::{LogicalPlanBuilder, col, lit};
use datafusion::optimizer::AnalyzerRule;

use super::*;

#[tokio::test]
async fn refusals_name_the_column_and_what_was_tried() {
    let context = patients();
    let mut report = String::new();
    for sql in [
        "SELECT birth || 'x' FROM v",
        "SELECT substr(zipcode, 1, 2) FROM v",
        "SELECT CAST(birth AS INT) FROM v",
        "SELECT CASE WHEN zipcode = '88512' THEN 1 ELSE 0 END FROM v",
        "SELECT zipcode = '88512' FROM v",
        "SELECT zipcode IS NULL FROM v",
        "SELECT zipcode IN (SELECT zipcode FROM t) FROM v",
        "SELECT min(birth) FROM v",
        "SELECT max(zipcode) OVER () FROM v",
        "SELECT lag(zipcode, 1, 'x') OVER (ORDER BY id) FROM v",
        "SELECT id FROM v WHERE upper(zipcode) = 'X'",
        "SELECT id FROM v WHERE (zipcode = '88512') = true",
        "SELECT id FROM v WHERE (zipcode = '88512') IS NOT TRUE",
        "SELECT id FROM v WHERE zipcode ~ '88'",
        "SELECT id FROM v WHERE zipcode SIMILAR TO '88'",
        "SELECT id FROM v WHERE zipcode NOT IN (SELECT zipcode FROM t)",
        "SELECT id FROM v WHERE NOT (zipcode IN (SELECT zipcode FROM t))",
        "SELECT id FROM v WHERE zipcode > ALL (SELECT zipcode FROM t)",
        "SELECT id FROM v WHERE zipcode IN (ward, 'x')",
        "SELECT id FROM v WHERE ward IN (zipcode, 'x')",
        "SELECT id FROM v WHERE birth BETWEEN id AND 1984",
        "SELECT id FROM v WHERE zipcode LIKE ward",
        "SELECT id FROM v WHERE age LIKE '2%'",
        "SELECT id FROM v WHERE birth = ward",
        "SELECT id FROM v WHERE birth = zipcode",
        "SELECT id FROM v WHERE zipcode = $1",
        "SELECT z FROM (SELECT zipcode z FROM v UNION ALL SELECT zipcode FROM t) WHERE z = '88512'",
        "SELECT z FROM (SELECT string_agg(zipcode, ',') z FROM v) WHERE z = '88512'",
        "SELECT zipcode FROM v EXCEPT SELECT zipcode FROM t",
        "SELECT unnest(array_agg(zipcode)) FROM v",
        "WITH RECURSIVE r AS (SELECT zipcode z FROM v UNION ALL SELECT z FROM r WHERE false) SELECT * FROM r",
        "INSERT INTO t (zipcode) SELECT zipcode FROM v",
        "SELECT v.id FROM v FULL JOIN w ON lower(v.zipcode) = w.zipcode",
        "SELECT id FROM v ORDER BY zipcode = '88512'",
        "SELECT count(*) FROM v GROUP BY substr(zipcode, 1, 2)",
        "SELECT avlike(zipcode, '88512') FROM v",
        "SELECT id FROM t WHERE (SELECT count(*) FROM v WHERE v.zipcode = t.zipcode) = 3",
    ] {
        let refusal = refusal(&context, sql).await;
        report += &format!("{sql}\n    {}\n", refusal.map_or_else(|other| other, |refusal| refusal.to_string()));
    }
    assert!(!report.contains("not refused") && !report.contains("not by us"), "{report}");
    insta::assert_snapshot!(report, @r"
    SELECT birth || 'x' FROM v
        column 'v.birth' holds labels, and the operator || can't be computed from labels
    SELECT substr(zipcode, 1, 2) FROM v
        column 'v.zipcode' holds labels, and the function substr can't be computed from labels
    SELECT CAST(birth AS INT) FROM v
        column 'v.birth' holds labels, and a CAST to anything but text can't be computed from labels
    SELECT CASE WHEN zipcode = '88512' THEN 1 ELSE 0 END FROM v
        column 'v.zipcode' holds labels, and the operator = is neither true nor false of a label
    SELECT zipcode = '88512' FROM v
        column 'v.zipcode' holds labels, and the operator = is neither true nor false of a label
    SELECT zipcode IS NULL FROM v
        column 'v.zipcode' holds labels, and IS NULL is neither true nor false of a label
    SELECT zipcode IN (SELECT zipcode FROM t) FROM v
        column 'v.zipcode' holds labels, and IN (SELECT ...) is neither true nor false of a label
    SELECT min(birth) FROM v
        column 'v.birth' holds labels, and min of labels means nothing
    SELECT max(zipcode) OVER () FROM v
        column 'v.zipcode' holds labels, and max of labels means nothing
    SELECT lag(zipcode, 1, 'x') OVER (ORDER BY id) FROM v
        column 'v.zipcode' holds labels, and lag of labels means nothing
    SELECT id FROM v WHERE upper(zipcode) = 'X'
        column 'v.zipcode' holds labels, and the function upper can't be computed from labels
    SELECT id FROM v WHERE (zipcode = '88512') = true
        column 'v.zipcode' holds labels, and the operator = is neither true nor false of a label
    SELECT id FROM v WHERE (zipcode = '88512') IS NOT TRUE
        column 'v.zipcode' holds labels, and the operator = is neither true nor false of a label
    SELECT id FROM v WHERE zipcode ~ '88'
        column 'v.zipcode' holds labels, and the operator ~ can't be computed from labels
    SELECT id FROM v WHERE zipcode SIMILAR TO '88'
        column 'v.zipcode' holds labels, and SIMILAR TO can't be computed from labels
    SELECT id FROM v WHERE zipcode NOT IN (SELECT zipcode FROM t)
        column 'v.zipcode' holds labels, and NOT IN (SELECT ...) has no meaning for labels
    SELECT id FROM v WHERE NOT (zipcode IN (SELECT zipcode FROM t))
        column 'v.zipcode' holds labels, and NOT IN (SELECT ...) has no meaning for labels
    SELECT id FROM v WHERE zipcode > ALL (SELECT zipcode FROM t)
        column 'v.zipcode' holds labels, and a comparison with ANY or ALL is neither true nor false of a label
    SELECT id FROM v WHERE zipcode IN (ward, 'x')
        column 'v.zipcode' holds labels, and the items of IN must be constants there
    SELECT id FROM v WHERE ward IN (zipcode, 'x')
        column 'v.zipcode' holds labels, and the items of IN must be constants there
    SELECT id FROM v WHERE birth BETWEEN id AND 1984
        column 'v.birth' holds labels, and the bounds of BETWEEN must be constants there
    SELECT id FROM v WHERE zipcode LIKE ward
        column 'v.zipcode' holds labels, and patterns of LIKE must be constants there
    SELECT id FROM v WHERE age LIKE '2%'
        column 'v.age' shows ranges of type integer, which have no text that LIKE could match
    SELECT id FROM v WHERE birth = ward
        column 'v.birth' stands for values of type integer and is compared with text
    SELECT id FROM v WHERE birth = zipcode
        column 'v.birth' stands for values of type integer and is compared with text
    SELECT id FROM v WHERE zipcode = $1
        column 'v.zipcode' holds labels, and is compared with a parameter that has no value yet
    SELECT z FROM (SELECT zipcode z FROM v UNION ALL SELECT zipcode FROM t) WHERE z = '88512'
        column 'v.zipcode' mixes labels with something else, or lists them, and can't be compared
    SELECT z FROM (SELECT string_agg(zipcode, ',') z FROM v) WHERE z = '88512'
        column 'v.zipcode' mixes labels with something else, or lists them, and can't be compared
    SELECT zipcode FROM v EXCEPT SELECT zipcode FROM t
        column 'v.zipcode' holds labels, and INTERSECT or EXCEPT compares it with something else
    SELECT unnest(array_agg(zipcode)) FROM v
        column 'v.zipcode' holds labels, which can't be used in unnest
    WITH RECURSIVE r AS (SELECT zipcode z FROM v UNION ALL SELECT z FROM r WHERE false) SELECT * FROM r
        column 'v.zipcode' holds labels, which can't be used in WITH RECURSIVE
    INSERT INTO t (zipcode) SELECT zipcode FROM v
        column 'v.zipcode' holds labels, which can't be used in INSERT, UPDATE or DELETE
    SELECT v.id FROM v FULL JOIN w ON lower(v.zipcode) = w.zipcode
        column 'v.zipcode' holds labels, and the function lower can't be computed from labels
    SELECT id FROM v ORDER BY zipcode = '88512'
        column 'v.zipcode' holds labels, and the operator = is neither true nor false of a label
    SELECT count(*) FROM v GROUP BY substr(zipcode, 1, 2)
        column 'v.zipcode' holds labels, and the function substr can't be computed from labels
    SELECT avlike(zipcode, '88512') FROM v
        column 'v.zipcode' holds labels, and the function avlike can't be computed from labels
    SELECT id FROM t WHERE (SELECT count(*) FROM v WHERE v.zipcode = t.zipcode) = 3
        a scalar subquery compares labels with column 't.zipcode' of the query around it, which can't be planned
    ");
}

#[tokio::test]
async fn a_literal_of_another_type_is_an_error_that_names_the_column() {
    let context = patients();
    for (predicate, column, value_type) in
        [("birth = 'x'", "birth", "integer"), ("birth > 1980.5", "birth", "integer"), ("born = 'May'", "born", "date")]
    {
        let error = rows(&context, &format!("SELECT id FROM v WHERE {predicate}")).await.unwrap_err().to_string();
        assert!(error.contains(&format!("column '{column}' of 'v'")), "{error}");
        assert!(error.ends_with(&format!("not of type {value_type}")), "{error}");
    }
}

#[tokio::test]
async fn a_plain_comparison_that_reached_a_label_is_caught() {
    let context = patients();
    let of_v: Meanings = Arc::new([None, None, meaning("v", "zipcode", ValueType::Text, Some(ZIPS)), None, None, None]);
    let protected = ProtectedColumns::new(move |scan| (scan.table_name.table() == "v").then(|| Arc::clone(&of_v)));
    let net = RefuseRawComparisons::new(protected);
    let state = SessionContext::new();
    for name in ["v", "t"] {
        state.register_table(name, context.table_provider(name).await.unwrap()).unwrap();
    }
    for (sql, caught) in [
        ("SELECT id FROM v WHERE zipcode = '88512'", true),
        ("SELECT id FROM (SELECT id, upper(zipcode) z FROM v) WHERE z LIKE '88512'", true),
        ("SELECT id FROM t WHERE zipcode IN (SELECT zipcode FROM v)", true),
        ("SELECT id FROM t WHERE EXISTS (SELECT 1 FROM v WHERE v.zipcode = t.zipcode)", true),
        ("SELECT id FROM v WHERE EXISTS (SELECT 1 FROM t WHERE v.zipcode = t.zipcode)", true),
        ("SELECT v.id FROM v JOIN t USING (zipcode)", true),
        ("SELECT CASE zipcode WHEN 'x' THEN 1 END FROM v", true),
        ("SELECT max(zipcode) FROM v HAVING max(zipcode) > '5'", true),
        ("SELECT z FROM (SELECT zipcode z FROM t UNION ALL SELECT zipcode FROM v) WHERE z > '5'", true),
        ("SELECT zipcode, count(*) FROM v GROUP BY zipcode HAVING count(zipcode) > 1", false),
        ("SELECT v.id FROM v JOIN t ON v.id = t.id WHERE ward = 'a'", false),
        ("SELECT zipcode FROM v INTERSECT SELECT zipcode FROM v", false),
        ("SELECT id FROM t WHERE zipcode = '88512'", false),
    ] {
        let plan = state.state().create_logical_plan(sql).await.unwrap();
        assert_eq!(net.analyze(plan, &ConfigOptions::default()).is_err(), caught, "{sql}");
    }
}

#[tokio::test]
async fn filters_inside_a_scan_are_rewritten_too() {
    let context = patients();
    let source = datafusion::datasource::provider_as_source(context.table_provider("v").await.unwrap());
    let plan = LogicalPlanBuilder::scan_with_filters("v", source, None, vec![col("v.zipcode").eq(lit("88512"))])
        .and_then(LogicalPlanBuilder::build)
        .unwrap();
    let state = context.state();
    let plan = state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {}).unwrap();
    insta::assert_snapshot!(plan.display_indent(), @"TableScan: v, unsupported_filters=[AVLIKE '88512'(v.zipcode)]");
}
