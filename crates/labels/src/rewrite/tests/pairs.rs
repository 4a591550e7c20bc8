//! Joins through pairs give the rows of the same joins made row by row, and pairs are those that comparing all cells finds.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, StringArray};
use datafusion::catalog::MemTable;
use datafusion::catalog::default_table_source::provider_as_source;
use datafusion::physical_plan::displayable;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::meaning::{Comparison, CouldMatch, PairFinder, Side};
use crate::rewrite::{FindPairs, JoinThroughPairs};

const JOINS: [&str; 8] = [
    "JOIN",
    "LEFT JOIN",
    "RIGHT JOIN",
    "FULL JOIN",
    "LEFT SEMI JOIN",
    "LEFT ANTI JOIN",
    "RIGHT SEMI JOIN",
    "RIGHT ANTI JOIN",
];

/// The same session with joins through pairs.
fn through_pairs(context: &SessionContext) -> SessionContext {
    let state = SessionStateBuilder::new_from_existing(context.state())
        .with_optimizer_rule(Arc::new(JoinThroughPairs::new(|_, _| None)))
        .with_physical_optimizer_rule(Arc::new(FindPairs))
        .build();
    SessionContext::new_with_state(state)
}

async fn physical(context: &SessionContext, sql: &str) -> String {
    let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    displayable(plan.as_ref()).indent(false).to_string()
}

#[tokio::test]
async fn every_kind_of_join_gives_the_same_rows_through_pairs() {
    let row_by_row = patients();
    let paired = through_pairs(&row_by_row);
    let conditions = [
        ("v", "t", "v.zipcode = t.zipcode"),
        ("v", "t", "t.age = v.age"),
        ("t", "v", "v.age = t.age AND v.id + t.id < 303"),
        ("v", "t", "v.birth = t.year AND v.age = t.age"),
        ("v", "w", "v.zipcode = w.zipcode"),
        ("w", "v", "v.age = w.age AND v.zipcode <> w.zipcode"),
    ];
    for join in JOINS {
        for (left, right, condition) in conditions {
            let sql = format!("SELECT * FROM {left} {join} {right} ON {condition}");
            let expected = rows(&row_by_row, &sql).await.unwrap();
            assert_eq!(rows(&paired, &sql).await.unwrap(), expected, "{sql}");
            let plan = physical(&paired, &sql).await;
            assert!(plan.contains("PairsExec") && !plan.contains("NestedLoopJoinExec"), "{sql}\n{plan}");
        }
    }
}

#[tokio::test]
async fn a_view_joins_itself_through_pairs() {
    let row_by_row = patients();
    let paired = through_pairs(&row_by_row);
    for join in ["JOIN", "LEFT JOIN", "FULL JOIN"] {
        let sql = format!("SELECT a.id, b.id, b.zipcode FROM v AS a {join} v AS b ON a.zipcode = b.zipcode");
        assert_eq!(rows(&paired, &sql).await.unwrap(), rows(&row_by_row, &sql).await.unwrap(), "{sql}");
    }
}

#[tokio::test]
async fn whatever_exists_beside_something_else_is_found_through_pairs() {
    let row_by_row = patients();
    let paired = through_pairs(&row_by_row);
    let conditions = [
        "EXISTS (SELECT 1 FROM t WHERE t.age = v.age) OR v.id = 5",
        "v.id = 2 OR NOT EXISTS (SELECT 1 FROM t WHERE t.zipcode = v.zipcode)",
        "v.id > 9 OR EXISTS (SELECT 1 FROM w WHERE w.zipcode = v.zipcode AND w.id > v.id + 10)",
        "v.ward = 'b' OR v.age IN (SELECT age FROM w)",
        "EXISTS (SELECT 1 FROM v AS other WHERE other.zipcode = v.zipcode AND other.id > v.id) OR v.birth = 1975",
    ];
    for condition in conditions {
        let sql = format!("SELECT v.id FROM v WHERE {condition}");
        let expected = rows(&row_by_row, &sql).await.unwrap();
        assert_eq!(rows(&paired, &sql).await.unwrap(), expected, "{sql}");
        let plan = physical(&paired, &sql).await;
        assert!(plan.contains("PairsExec") && !plan.contains("NestedLoopJoinExec"), "{sql}\n{plan}");
    }
}

#[tokio::test]
async fn joins_without_an_equality_still_compare_rows() {
    let paired = through_pairs(&patients());
    let plan = physical(&paired, "SELECT v.id FROM v JOIN t ON v.age < t.age").await;
    assert!(plan.contains("NestedLoopJoinExec"), "{plan}");
}

/// Lists the labels that a table in memory holds in a column.
fn labels_in(tables: Vec<(&'static str, RecordBatch)>) -> JoinThroughPairs {
    JoinThroughPairs::new(move |scan, column| {
        let (_, rows) = tables.iter().find(|(name, _)| scan.table_name.table() == *name)?;
        let mut labels: Vec<&str> = rows.column(column).as_string_opt::<i32>()?.iter().flatten().collect();
        labels.sort_unstable();
        labels.dedup();
        let labels = RecordBatch::try_from_iter([("label", Arc::new(StringArray::from(labels)) as ArrayRef)]).unwrap();
        let table = MemTable::try_new(labels.schema(), vec![vec![labels]]).unwrap();
        Some(provider_as_source(Arc::new(table)))
    })
}

/// A row of `v` or `w`: an id, and a label or nothing per column.
type LabelRow = (i64, Option<String>, Option<String>);
type LabelRows = Vec<LabelRow>;

fn label_rows(paths: &'static str) -> impl Strategy<Value = LabelRows> {
    let label = prop::option::weighted(0.9, node(paths));
    vec((0..20i64, label, prop::option::weighted(0.9, range())), 0..25)
}

fn batch(rows: &LabelRows, with_birth: bool) -> RecordBatch {
    let column =
        |cell: fn(&LabelRow) -> Option<String>| Arc::new(rows.iter().map(cell).collect::<StringArray>()) as ArrayRef;
    let ids = integers(&rows.iter().map(|(id, ..)| Some(*id)).collect::<Vec<_>>());
    let none = || Arc::new(rows.iter().map(|_| None::<String>).collect::<StringArray>()) as ArrayRef;
    let (zips, ages) = (column(|(_, zip, _)| zip.clone()), column(|(_, _, age)| age.clone()));
    let columns = match with_birth {
        true => {
            vec![("id", ids), ("birth", none()), ("zipcode", zips), ("age", ages), ("born", none()), ("ward", none())]
        }
        false => vec![("id", ids), ("zipcode", zips), ("age", ages)],
    };
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true))).unwrap()
}

proptest! {
    /// Rows are joined one by one, by tuples, and by tuples of what the labels of both tables leave.
    #[test]
    fn joins_by_tuples_give_the_rows_of_joins_row_by_row(
        v in label_rows(ZIPS), w in label_rows(WIDE_ZIPS), shown in 0..4usize, condition in 0..6usize, few in 0..20i64,
    ) {
        let shown = ["*", "count(*)", "v.id, w.age", "v.zipcode, count(*)"][shown];
        let condition = [
            "v.zipcode = w.zipcode",
            "v.age = w.age",
            "v.zipcode = w.zipcode AND w.age = v.age",
            "v.zipcode = w.zipcode AND w.age = v.age AND v.id < w.id",
            "v.zipcode = w.zipcode AND v.age <> w.age",
            "v.age = w.age AND v.zipcode = w.zipcode AND v.zipcode = w.zipcode",
        ][condition];
        let grouping = if shown.starts_with("v.zipcode") { "GROUP BY v.zipcode" } else { "" };
        let sql = format!("SELECT {shown} FROM v JOIN w ON {condition} WHERE w.id >= {few} {grouping}");
        let context = without_patients();
        let tables = vec![("v", batch(&v, true)), ("w", batch(&w, false))];
        for (name, rows) in &tables {
            context.register_batch(*name, rows.clone()).unwrap();
        }
        let reduced = SessionStateBuilder::new_from_existing(context.state())
            .with_optimizer_rule(Arc::new(labels_in(tables)))
            .with_physical_optimizer_rule(Arc::new(FindPairs))
            .build();
        let reduced = SessionContext::new_with_state(reduced);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let expected = rows(&context, &sql).await.unwrap();
            prop_assert_eq!(&rows(&through_pairs(&context), &sql).await.unwrap(), &expected, "{}", sql);
            prop_assert_eq!(&rows(&reduced, &sql).await.unwrap(), &expected, "{} with known labels", sql);
            let plan = physical(&reduced, &sql).await;
            prop_assert!(plan.contains("PairsExec") && !plan.contains("NestedLoopJoinExec"), "{}", plan);
            Ok(())
        })?;
    }
}

/// Checks that the finder finds the same cells as comparing every cell.
fn assert_found(kind: Side, asked: Side, cells: &[Option<String>], others: &[String]) -> Result<(), TestCaseError> {
    let function = CouldMatch::new(kind.clone(), Comparison::Equal, asked.clone());
    let finder = PairFinder::new(cells.iter().cloned().collect::<StringArray>(), kind, asked).unwrap();
    for other in others {
        let mut found = Vec::new();
        finder.find(other, &mut found).unwrap();
        let could = |cell: &Option<String>| function.matches(cell.as_deref(), Some(other)).unwrap();
        let expected: Vec<u32> = (0..).zip(cells).filter(|(_, cell)| could(cell)).map(|(row, _)| row).collect();
        prop_assert_eq!(found, expected, "{}", other);
    }
    Ok(())
}

fn side(value_type: ValueType, paths: Option<&str>) -> Side {
    Side::Protected(meaning("v", "column", value_type, paths).unwrap())
}

fn range() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0..30i64).prop_map(|n| n.to_string()),
        4 => (0..30i64, 0..12i64).prop_map(|(low, width)| format!("[{low},{}]", low + width)),
        1 => Just("*".to_owned()),
    ]
}

fn node(paths: &str) -> impl Strategy<Value = String> + use<> {
    let nodes: Vec<String> = paths.split(['\n', ';']).filter(|node| !node.is_empty()).map(str::to_owned).collect();
    prop::sample::select(nodes)
}

/// `1` and `01` are one value.
const TWICE: &str = "1;low;*\n2;low;*\n01;high;*\n7;high;*\n5;middle;*\n";

proptest! {
    #[test]
    fn pairs_of_ranges_are_found(cells in vec(prop::option::weighted(0.9, range()), 0..20), others in vec(range(), 1..8)) {
        let ranges = || side(ValueType::Integer, None);
        assert_found(ranges(), ranges(), &cells, &others)?;
    }

    #[test]
    fn ranges_of_a_number_are_found(cells in vec(prop::option::of(range()), 0..20), number in -1..40i64) {
        assert_found(side(ValueType::Integer, None), Side::Raw(ValueType::Integer), &cells, &[number.to_string()])?;
    }

    #[test]
    fn pairs_of_nodes_are_found(
        cells in vec(prop::option::of(node(ZIPS)), 0..12), alike in vec(node(ZIPS), 1..6), wide in vec(node(WIDE_ZIPS), 1..6),
    ) {
        let zips = side(ValueType::Text, Some(ZIPS));
        assert_found(zips.clone(), zips.clone(), &cells, &alike)?;
        assert_found(zips, side(ValueType::Text, Some(WIDE_ZIPS)), &cells, &wide)?;
    }

    #[test]
    fn nodes_over_numbers_that_are_spelled_twice_are_found(
        cells in vec(prop::option::of(node(TWICE)), 0..12), others in vec(node(TWICE), 1..6),
    ) {
        let twice = side(ValueType::Integer, Some(TWICE));
        assert_found(twice.clone(), twice, &cells, &others)?;
    }
}
