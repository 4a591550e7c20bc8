//! The protected tables of these tests are tables in memory whose cells are labels. They are known by name.

mod operators;
mod oracle;
mod pairs;
mod queries;
mod refusals;
mod unknown;

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::Analyzer;
use datafusion::prelude::{SessionConfig, SessionContext};
use kohort_model::{Hierarchy, ValueType};

use super::{KeepUnknown, Meanings, ProtectedColumns, RefuseRawComparisons, RewriteComparisons, RewriteError};
use crate::meaning::{Meaning, avlike};

fn hierarchy(paths: &str) -> Arc<Hierarchy> {
    Arc::new(Hierarchy::from_paths(paths).unwrap())
}

fn meaning(view: &str, column: &str, value_type: ValueType, paths: Option<&str>) -> Option<Arc<Meaning>> {
    Some(Arc::new(Meaning::new(view, column, value_type, paths.map(hierarchy), true).unwrap()))
}

/// A session with all rules in their order, in which these tables are protected.
fn session(protected: Vec<(&'static str, Meanings)>) -> SessionContext {
    let protected = ProtectedColumns::new(move |scan| {
        let found = protected.iter().find(|(name, _)| scan.table_name.table() == *name)?;
        Some(Arc::clone(&found.1))
    });
    let mut rules = Analyzer::new().rules;
    rules.insert(0, Arc::new(RewriteComparisons::new(protected.clone())));
    rules.push(Arc::new(KeepUnknown));
    rules.push(Arc::new(RefuseRawComparisons::new(protected)));
    let mut config = SessionConfig::new().with_target_partitions(1).with_batch_size(7);
    // As in the engine: DataFusion 55 takes `p IS TRUE` for nullable in one plan and for never null in the other.
    config.options_mut().execution.skip_physical_aggregate_schema_check = true;
    let state =
        SessionStateBuilder::new().with_default_features().with_config(config).with_analyzer_rules(rules).build();
    let context = SessionContext::new_with_state(state);
    context.register_udf(avlike());
    context
}

fn texts(cells: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(cells.to_vec()))
}

fn integers(cells: &[Option<i64>]) -> ArrayRef {
    Arc::new(Int64Array::from(cells.to_vec()))
}

const BIRTHS: &str = "1975;1970-1980;*\n1977;1970-1980;*\n1979;1970-1980;*\n1984;1980-1990;*\n1988;1980-1990;*\n";
const ZIPS: &str = "88512;885**;88***;*****\n88540;885**;88***;*****\n88541;885**;88***;*****\n\
                    89321;893**;89***;*****\n89344;893**;89***;*****\n";
const WIDE_ZIPS: &str = "88512;88;*\n88540;88;*\n89321;89;*\n90000;90;*\n";

/// `v` and `w` are protected except for `id` and `ward`; `t` is plain. No table is there yet.
fn without_patients() -> SessionContext {
    let of_v: Meanings = Arc::new([
        None,
        meaning("v", "birth", ValueType::Integer, Some(BIRTHS)),
        meaning("v", "zipcode", ValueType::Text, Some(ZIPS)),
        meaning("v", "age", ValueType::Integer, None),
        meaning("v", "born", ValueType::Date, None),
        None,
    ]);
    let of_w: Meanings = Arc::new([
        None,
        meaning("w", "zipcode", ValueType::Text, Some(WIDE_ZIPS)),
        meaning("w", "age", ValueType::Integer, None),
    ]);
    session(vec![("v", of_v), ("w", of_w)])
}

/// The same session with some rows.
fn patients() -> SessionContext {
    let context = without_patients();
    let v = RecordBatch::try_from_iter_with_nullable([
        ("id", integers(&[Some(1), Some(2), Some(3), Some(4), Some(5)]), true),
        ("birth", texts(&[Some("1980-1990"), None, Some("1970-1980"), Some("1975"), Some("*")]), true),
        ("zipcode", texts(&[Some("885**"), Some("88512"), Some("*****"), Some("89***"), Some("893**")]), true),
        ("age", texts(&[Some("[20,29]"), Some("[20,29]"), Some("*"), Some("35"), None]), true),
        ("born", texts(&[Some("[1980-01-01,1989-12-31]"), None, Some("1979-05-05"), Some("*"), Some("*")]), true),
        ("ward", texts(&[Some("a"), Some("b"), Some("a"), None, Some("c")]), true),
    ]);
    let w = RecordBatch::try_from_iter_with_nullable([
        ("id", integers(&[Some(10), Some(20), Some(30)]), true),
        ("zipcode", texts(&[Some("88"), Some("89321"), Some("90")]), true),
        ("age", texts(&[Some("[25,40]"), Some("[50,60]"), None]), true),
    ]);
    let t = RecordBatch::try_from_iter_with_nullable([
        ("id", integers(&[Some(100), Some(200), Some(300), Some(400)]), true),
        ("zipcode", texts(&[Some("88512"), Some("89344"), Some("11111"), None]), true),
        ("age", integers(&[Some(22), Some(35), Some(99), None]), true),
        ("year", integers(&[Some(1984), Some(1975), Some(1901), None]), true),
    ]);
    for (name, batch) in [("v", v), ("w", w), ("t", t)] {
        context.register_batch(name, batch.unwrap()).unwrap();
    }
    context
}

/// The rows of a query, cells joined by a bar, in order of their texts.
async fn rows(context: &SessionContext, sql: &str) -> Result<Vec<String>> {
    let mut rows = Vec::new();
    for batch in context.sql(sql).await?.collect().await? {
        let columns: Vec<ArrayRef> =
            batch.columns().iter().map(|column| cast(column, &DataType::Utf8).unwrap()).collect();
        for row in 0..batch.num_rows() {
            let cell = |column: &ArrayRef| {
                if column.is_null(row) { "NULL".to_owned() } else { column.as_string::<i32>().value(row).to_owned() }
            };
            rows.push(columns.iter().map(cell).collect::<Vec<_>>().join("|"));
        }
    }
    rows.sort();
    Ok(rows)
}

async fn assert_rows(context: &SessionContext, sql: &str, expected: &str) {
    let rows = rows(context, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    assert_eq!(rows.join(" "), expected, "{sql}");
}

/// The ids of `v` that satisfy a predicate.
async fn assert_ids(context: &SessionContext, predicate: &str, expected: &str) {
    assert_rows(context, &format!("SELECT id FROM v WHERE {predicate}"), expected).await;
}

async fn analyzed(context: &SessionContext, sql: &str) -> LogicalPlan {
    let state = context.state();
    let plan = state.create_logical_plan(sql).await.unwrap();
    state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {}).unwrap()
}

/// Why a query is refused, or what happened instead.
async fn refusal(context: &SessionContext, sql: &str) -> Result<RewriteError, String> {
    let error = match rows(context, sql).await {
        Ok(rows) => return Err(format!("not refused: {} rows", rows.len())),
        Err(error) => error,
    };
    match error.find_root() {
        DataFusionError::External(inner) if inner.is::<RewriteError>() => {
            Ok(inner.downcast_ref::<RewriteError>().expect("asked just now").clone())
        }
        other => Err(format!("not by us: {other}")),
    }
}
