//! Random tables and predicates: the answer of SQL is compared with the values behind each label, listed one by one.

use std::ops::Range;

use proptest::prelude::*;

use super::*;
use crate::meaning::Comparison;

const VALUES: Range<i64> = 0..8;

/// A cell of a protected column: its label, and the values it can stand for. `None` is a hidden cell.
type Cell = Option<(String, Vec<i64>)>;

/// `a` has a tree, `b` ranges, `n` is plain.
#[derive(Clone, Debug)]
struct Row {
    a: Cell,
    b: Cell,
    n: Option<i64>,
}

#[derive(Clone, Debug)]
enum Predicate {
    Compare(char, Comparison, i64),
    CompareColumns(char, Comparison, char),
    In(char, Vec<i64>),
    Between(char, i64, i64),
    IsNull(char),
    Not(Box<Predicate>),
    And(Box<Predicate>, Box<Predicate>),
    Or(Box<Predicate>, Box<Predicate>),
}

fn leaf(position: i64) -> i64 {
    position * 3 % 8
}

fn tree() -> String {
    VALUES.map(|n| format!("{};pair {};four {};*\n", leaf(n), n / 2, n / 4)).collect()
}

fn tree_cell() -> impl Strategy<Value = Cell> {
    prop_oneof![
        1 => Just(None),
        6 => (VALUES, 0..4usize).prop_map(|(position, level)| {
            let (label, width) = match level {
                0 => (leaf(position).to_string(), 1),
                1 => (format!("pair {}", position / 2), 2),
                2 => (format!("four {}", position / 4), 4),
                _ => ("*".to_owned(), 8),
            };
            let start = position / width * width;
            Some((label, (start..start + width).map(leaf).collect()))
        }),
    ]
}

fn range_cell() -> impl Strategy<Value = Cell> {
    prop_oneof![
        1 => Just(None),
        6 => (VALUES, VALUES).prop_map(|(x, y)| {
            let (low, high) = (x.min(y), x.max(y));
            let label = if low == high { low.to_string() } else { format!("[{low},{high}]") };
            Some((label, (low..=high).collect()))
        }),
    ]
}

fn row() -> impl Strategy<Value = Row> {
    (tree_cell(), range_cell(), proptest::option::weighted(0.8, VALUES)).prop_map(|(a, b, n)| Row { a, b, n })
}

fn comparison() -> impl Strategy<Value = Comparison> {
    proptest::sample::select(vec![
        Comparison::Equal,
        Comparison::Differ,
        Comparison::Less,
        Comparison::LessOrEqual,
        Comparison::Greater,
        Comparison::GreaterOrEqual,
    ])
}

fn predicate() -> impl Strategy<Value = Predicate> {
    let column = || proptest::sample::select(vec!['a', 'b', 'n']);
    let literal = || -1..9i64;
    let comparison = prop_oneof![
        4 => (column(), comparison(), literal()).prop_map(|(c, op, x)| Predicate::Compare(c, op, x)),
        3 => (column(), comparison(), column()).prop_map(|(c, op, d)| Predicate::CompareColumns(c, op, d)),
        1 => (column(), proptest::collection::vec(literal(), 1..9)).prop_map(|(c, list)| Predicate::In(c, list)),
        // Lists that have nothing in common.
        2 => (column(), proptest::collection::vec(literal(), 1..3)).prop_map(|(c, list)| Predicate::In(c, list)),
        1 => (column(), literal(), literal()).prop_map(|(c, x, y)| Predicate::Between(c, x, y)),
        1 => column().prop_map(Predicate::IsNull),
    ];
    comparison.prop_recursive(4, 12, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|p| Predicate::Not(Box::new(p))),
            (inner.clone(), inner.clone()).prop_map(|(p, q)| Predicate::And(Box::new(p), Box::new(q))),
            (inner.clone(), inner).prop_map(|(p, q)| Predicate::Or(Box::new(p), Box::new(q))),
        ]
    })
}

impl Predicate {
    fn sql(&self) -> String {
        match self {
            Predicate::Compare(c, op, x) => format!("{c} {op} {x}"),
            Predicate::CompareColumns(c, op, d) => format!("{c} {op} {d}"),
            Predicate::In(c, list) => {
                let list: Vec<String> = list.iter().map(i64::to_string).collect();
                format!("{c} IN ({})", list.join(", "))
            }
            Predicate::Between(c, x, y) => format!("{c} BETWEEN {x} AND {y}"),
            Predicate::IsNull(c) => format!("{c} IS NULL"),
            Predicate::Not(p) => format!("(NOT {})", p.sql()),
            Predicate::And(p, q) => format!("({} AND {})", p.sql(), q.sql()),
            Predicate::Or(p, q) => format!("({} OR {})", p.sql(), q.sql()),
        }
    }
}

impl Row {
    /// The values that a cell can stand for, none if it is NULL.
    fn values(&self, column: char) -> Vec<i64> {
        match column {
            'a' => self.a.as_ref().map_or(Vec::new(), |(_, values)| values.clone()),
            'b' => self.b.as_ref().map_or(Vec::new(), |(_, values)| values.clone()),
            _ => self.n.into_iter().collect(),
        }
    }

    /// Whether values exist for which a comparison, or its negation, is true. For a plain column this is SQL's own answer with
    /// NULL as false, as in WHERE once negations are at the comparisons.
    fn comparison(&self, columns: &[char], denied: bool, holds: impl Fn(&[i64]) -> bool) -> bool {
        let first = self.values(columns[0]);
        let second = columns.get(1).map_or(vec![0], |&column| self.values(column));
        first.iter().any(|&x| second.iter().any(|&y| holds(&[x, y]) != denied))
    }

    fn satisfies(&self, predicate: &Predicate, denied: bool) -> bool {
        match predicate {
            Predicate::Compare(c, op, x) => self.comparison(&[*c], denied, |v| op.holds(&v[0], x)),
            // One plain column has one value, not two independent ones.
            Predicate::CompareColumns('n', op, 'n') => self.comparison(&['n'], denied, |v| op.holds(&v[0], &v[0])),
            Predicate::CompareColumns(c, op, d) => self.comparison(&[*c, *d], denied, |v| op.holds(&v[0], &v[1])),
            Predicate::In(c, list) => self.comparison(&[*c], denied, |v| list.contains(&v[0])),
            Predicate::Between(c, x, y) => self.comparison(&[*c], denied, |v| *x <= v[0] && v[0] <= *y),
            Predicate::IsNull(c) => self.values(*c).is_empty() != denied || self.hides_null(*c) && !denied,
            Predicate::Not(p) => self.satisfies(p, !denied),
            Predicate::And(p, q) if denied => self.satisfies(p, denied) || self.satisfies(q, denied),
            Predicate::Or(p, q) if denied => self.satisfies(p, denied) && self.satisfies(q, denied),
            Predicate::And(p, q) => self.satisfies(p, denied) && self.satisfies(q, denied),
            Predicate::Or(p, q) => self.satisfies(p, denied) || self.satisfies(q, denied),
        }
    }

    fn hides_null(&self, column: char) -> bool {
        column == 'a' && self.a.as_ref().is_some_and(|(label, _)| label == "*")
    }
}

fn context(rows: &[Row]) -> SessionContext {
    let paths = tree();
    let meanings: Meanings = Arc::new([
        None,
        meaning("p", "a", ValueType::Integer, Some(&paths)),
        meaning("p", "b", ValueType::Integer, None),
        None,
    ]);
    let context = session(vec![("p", meanings)]);
    fn label(cell: &Cell) -> Option<&str> {
        cell.as_ref().map(|(label, _)| label.as_str())
    }
    let ids: Vec<Option<i64>> = (0..rows.len() as i64).map(Some).collect();
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("id", integers(&ids), true),
        ("a", texts(&rows.iter().map(|row| label(&row.a)).collect::<Vec<_>>()), true),
        ("b", texts(&rows.iter().map(|row| label(&row.b)).collect::<Vec<_>>()), true),
        ("n", integers(&rows.iter().map(|row| row.n).collect::<Vec<_>>()), true),
    ]);
    context.register_batch("p", batch.unwrap()).unwrap();
    context
}

fn run(context: &SessionContext, sql: &str) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(rows(context, sql)).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort();
    rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_query_returns_the_rows_of_which_its_atoms_could_be_true(
        rows in proptest::collection::vec(row(), 1..20),
        predicate in predicate(),
    ) {
        let context = context(&rows);
        let expected = (0..rows.len()).filter(|&row| rows[row].satisfies(&predicate, false)).map(|row| row.to_string());
        let sql = format!("SELECT id FROM p WHERE {}", predicate.sql());
        prop_assert_eq!(run(&context, &sql), sorted(expected.collect()), "{}", sql);
        // The same question through a subquery.
        let expected = rows.iter().filter(|row| row.satisfies(&predicate, true)).count();
        let sql = format!(
            "WITH q AS (SELECT b, a AS x, n FROM p), r AS (SELECT n, x AS a, b FROM q) \
             SELECT count(*) FILTER (WHERE NOT {}) FROM r", predicate.sql());
        prop_assert_eq!(run(&context, &sql), [expected.to_string()], "{}", sql);
    }

    #[test]
    fn a_join_returns_the_pairs_that_could_match(
        rows in proptest::collection::vec(row(), 1..12),
        left in proptest::sample::select(vec!['a', 'b', 'n']),
        right in proptest::sample::select(vec!['a', 'b']),
        comparison in comparison(),
    ) {
        let context = context(&rows);
        let could = |x: usize, y: usize| {
            let (values, others) = (rows[x].values(left), rows[y].values(right));
            values.iter().any(|value| others.iter().any(|other| comparison.holds(value, other)))
        };
        let all = 0..rows.len();
        let pairs = all.clone().flat_map(|x| all.clone().map(move |y| (x, y))).filter(|&(x, y)| could(x, y));
        let sql = format!("SELECT x.id, y.id FROM p x JOIN p y ON x.{left} {comparison} y.{right}");
        prop_assert_eq!(run(&context, &sql), sorted(pairs.map(|(x, y)| format!("{x}|{y}")).collect()), "{}", sql);
        let alone = all.clone().filter(|&x| !all.clone().any(|y| could(x, y))).map(|x| x.to_string());
        let sql = format!("SELECT id FROM p x WHERE NOT EXISTS (SELECT 1 FROM p y WHERE x.{left} {comparison} y.{right})");
        prop_assert_eq!(run(&context, &sql), sorted(alone.collect()), "{}", sql);
        if comparison == Comparison::Equal {
            let some = all.clone().filter(|&x| all.clone().any(|y| could(x, y))).map(|x| x.to_string());
            let sql = format!("SELECT id FROM p WHERE {left} IN (SELECT {right} FROM p)");
            prop_assert_eq!(run(&context, &sql), sorted(some.collect()), "{}", sql);
        }
    }
}
