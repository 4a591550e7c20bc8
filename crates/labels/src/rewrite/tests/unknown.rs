//! IN lists give true, false or unknown as SQL defines it, which is evaluated here one row at a time.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// A predicate of one column that may be null.
#[derive(Clone, Debug)]
enum Predicate {
    In(Vec<i64>),
    NotIn(Vec<i64>),
    Equal(i64),
    IsTrue(Box<Predicate>),
    Not(Box<Predicate>),
    And(Box<Predicate>, Box<Predicate>),
    Or(Box<Predicate>, Box<Predicate>),
}

fn predicate() -> impl Strategy<Value = Predicate> {
    // DataFusion keeps lists of more than three values as lists.
    let list = || prop_oneof![vec(0..5i64, 1..3), vec(0..9i64, 4..6)];
    let comparison = prop_oneof![
        list().prop_map(Predicate::In),
        list().prop_map(Predicate::NotIn),
        (0..5i64).prop_map(Predicate::Equal)
    ];
    comparison.prop_recursive(4, 12, 2, |inner| {
        prop_oneof![
            1 => inner.clone().prop_map(|p| Predicate::IsTrue(Box::new(p))),
            2 => inner.clone().prop_map(|p| Predicate::Not(Box::new(p))),
            4 => (inner.clone(), inner.clone()).prop_map(|(p, q)| Predicate::And(Box::new(p), Box::new(q))),
            4 => (inner.clone(), inner).prop_map(|(p, q)| Predicate::Or(Box::new(p), Box::new(q))),
        ]
    })
}

impl Predicate {
    fn sql(&self) -> String {
        let list = |list: &[i64]| list.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Predicate::In(values) => format!("n IN ({})", list(values)),
            Predicate::NotIn(values) => format!("n NOT IN ({})", list(values)),
            Predicate::Equal(value) => format!("n = {value}"),
            Predicate::IsTrue(p) => format!("(({}) IS TRUE)", p.sql()),
            Predicate::Not(p) => format!("(NOT {})", p.sql()),
            Predicate::And(p, q) => format!("({} AND {})", p.sql(), q.sql()),
            Predicate::Or(p, q) => format!("({} OR {})", p.sql(), q.sql()),
        }
    }

    /// `None` is unknown.
    fn of(&self, n: Option<i64>) -> Option<bool> {
        match self {
            Predicate::In(values) => n.map(|n| values.contains(&n)),
            Predicate::NotIn(values) => n.map(|n| !values.contains(&n)),
            Predicate::Equal(value) => n.map(|n| n == *value),
            Predicate::IsTrue(p) => Some(p.of(n) == Some(true)),
            Predicate::Not(p) => p.of(n).map(|truth| !truth),
            Predicate::And(p, q) => match (p.of(n), q.of(n)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Predicate::Or(p, q) => match (p.of(n), q.of(n)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
        }
    }
}

fn numbers(cells: &[Option<i64>]) -> SessionContext {
    let context = session(Vec::new());
    let batch = RecordBatch::try_from_iter_with_nullable([("n", integers(cells), true)]);
    context.register_batch("t", batch.unwrap()).unwrap();
    context
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn lists_are_what_sql_says(predicate in predicate()) {
        let cells: Vec<Option<i64>> = (0..9).map(Some).chain([None]).collect();
        let context = numbers(&cells);
        let run = |sql: String| {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(rows(&context, &sql)).unwrap_or_else(|error| panic!("{sql}: {error}"))
        };
        let text = |n: Option<i64>| n.map_or("NULL".to_owned(), |n| n.to_string());
        let mut shown: Vec<String> = cells.iter().map(|&n| {
            let truth = predicate.of(n).map_or("NULL".to_owned(), |truth| truth.to_string());
            format!("{}|{truth}", text(n))
        }).collect();
        shown.sort();
        prop_assert_eq!(run(format!("SELECT n, {} FROM t", predicate.sql())), shown, "{}", predicate.sql());
        let mut stays: Vec<String> = cells.iter().filter(|n| predicate.of(**n) == Some(true)).map(|&n| text(n)).collect();
        stays.sort();
        let query = format!("SELECT n FROM t WHERE {}", predicate.sql());
        prop_assert_eq!(&run(query), &stays, "{}", predicate.sql());
        let query = format!("SELECT count(*) FILTER (WHERE {}) FROM t", predicate.sql());
        prop_assert_eq!(run(query), [stays.len().to_string()], "{}", predicate.sql());
    }
}

#[tokio::test]
async fn lists_that_only_say_which_rows_stay_are_left_alone() {
    let context = numbers(&[Some(1), None]);
    for condition in ["n IN (1, 2)", "n NOT IN (1, 2)", "NOT n IN (1, 2)", "n = 1 OR n = 2", "n IN (1) OR n IN (2)"] {
        let plan = analyzed(&context, &format!("SELECT n FROM t WHERE {condition}")).await;
        assert!(!plan.display_indent().to_string().contains("IS N"), "{condition}: {}", plan.display_indent());
    }
    let plan = analyzed(&context, "SELECT n FROM t WHERE n NOT IN (1) OR n NOT IN (2)").await;
    assert!(plan.display_indent().to_string().contains("IS NOT NULL"));
}

#[tokio::test]
async fn lists_may_stand_wherever_a_query_has_expressions() {
    let context = numbers(&[Some(1), Some(2), None]);
    for (sql, expected) in [
        ("SELECT n IN (1) AND n IN (2), count(*) FROM t GROUP BY n IN (1) AND n IN (2)", "NULL|1 false|2"),
        ("SELECT n IN (1, 3), count(*) FROM t GROUP BY ROLLUP (n IN (1, 3))", "NULL|1 NULL|3 false|1 true|1"),
        ("SELECT count(*) FROM t GROUP BY GROUPING SETS ((n = 1 OR n = 2), (n NOT IN (1)), ())", "1 1 1 1 2 3"),
        (
            "SELECT count(*) FILTER (WHERE ((n = 2) IS TRUE OR n IN (0)) AND (n = 2) IS TRUE AND NOT n IN (1)) FROM t",
            "1",
        ),
        ("SELECT n FROM t ORDER BY n IN (1) AND n IN (2) NULLS FIRST, n LIMIT 1", "NULL"),
        ("SELECT DISTINCT ON (n IN (2) AND n IN (1)) n IS NULL FROM t ORDER BY n IN (2) AND n IN (1)", "false true"),
        ("SELECT count(*) OVER (PARTITION BY n NOT IN (1) OR n NOT IN (2)) FROM t", "1 2 2"),
        ("SELECT count(*) FROM t a JOIN t b ON a.n = b.n AND (b.n NOT IN (1) OR b.n NOT IN (2))", "2"),
        ("SELECT count(*) FROM t a LEFT JOIN t b ON b.n NOT IN (1) OR b.n NOT IN (2)", "6"),
        (
            "SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE t.n IS NULL AND (u.n NOT IN (1) OR u.n NOT IN (2)))",
            "1",
        ),
        (
            "SELECT CASE WHEN n IN (1) AND n IN (2) THEN 'yes' WHEN NOT (n IN (1) AND n IN (2)) THEN 'no' END FROM t",
            "NULL no no",
        ),
    ] {
        assert_rows(&context, sql, expected).await;
    }
}
