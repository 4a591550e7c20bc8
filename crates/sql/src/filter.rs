//! [`Filter`]: the conditions on single columns in the filter of a query, for tables that search for rows themselves.
//!
//! # Guarantee
//! Every row that satisfies the query's filter satisfies the [`Filter`] that was read from it. The opposite need not hold,
//! because the query applies its filter again. So parts of a conjunction that are not understood are left out, and nothing below
//! a negation is read.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};
use kohort_store::Comparison;

/// The longest list of values that a table searches for. Longer lists are left to the query.
const MOST_VALUES: usize = 10_000;

/// A condition on rows.
#[derive(Debug, PartialEq)]
pub(crate) enum Filter<'e> {
    /// The column of this name passes a test.
    Column(&'e str, Test<'e>),
    /// All of these hold.
    All(Vec<Filter<'e>>),
    /// One of these holds.
    Any(Vec<Filter<'e>>),
}

/// A condition on the values of one column.
#[derive(Debug, PartialEq)]
pub(crate) enum Test<'e> {
    /// The values compare in this way with a value.
    Compare(Comparison, &'e ScalarValue),
    /// The values are one of these, none of which is NULL.
    In(Vec<&'e ScalarValue>),
    /// The values are NULL.
    IsNull,
    /// The values are not NULL.
    IsNotNull,
}

impl<'e> Filter<'e> {
    /// The conditions on single columns in a filter; `None` if there are none.
    pub(crate) fn of(filter: &'e Expr) -> Option<Filter<'e>> {
        match filter {
            Expr::BinaryExpr(BinaryExpr { op: Operator::And, .. }) => {
                Filter::all(parts(filter, Operator::And).into_iter().filter_map(Filter::of).collect())
            }
            Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) => {
                // A part that is NULL keeps no row, so leave it out.
                let parts = parts(filter, Operator::Or).into_iter().filter(|part| !is_null(part));
                Filter::any(parts.map(Filter::of).collect::<Option<_>>()?)
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let (column, op, value) = match (left.as_ref(), right.as_ref()) {
                    (column, Expr::Literal(value, _)) => (column, *op, value),
                    (Expr::Literal(value, _), column) => (column, op.swap()?, value),
                    _ => return None,
                };
                Some(Filter::Column(name_of(column)?, Test::Compare(comparison(op)?, value)))
            }
            Expr::Between(Between { expr, negated: false, low, high }) => {
                let bounds = [(Comparison::Ge, low.as_ref()), (Comparison::Le, high.as_ref())];
                let bound = |(comparison, value): (Comparison, &'e Expr)| {
                    Some(Filter::Column(name_of(expr)?, Test::Compare(comparison, value.as_literal()?)))
                };
                Filter::all(bounds.into_iter().filter_map(bound).collect())
            }
            Expr::InList(InList { expr, list, negated: false }) => {
                let values =
                    list.iter().filter(|item| !is_null(item)).map(Expr::as_literal).collect::<Option<Vec<_>>>()?;
                Filter::among(name_of(expr)?, values)
            }
            Expr::IsNull(inner) => Some(Filter::Column(name_of(inner)?, Test::IsNull)),
            Expr::IsNotNull(inner) => Some(Filter::Column(name_of(inner)?, Test::IsNotNull)),
            _ => None,
        }
    }

    fn all(parts: Vec<Filter<'e>>) -> Option<Filter<'e>> {
        (!parts.is_empty()).then_some(Filter::All(parts))
    }

    /// Joins equalities of one column to a list of values, because the planner writes short lists as equalities.
    fn any(parts: Vec<Filter<'e>>) -> Option<Filter<'e>> {
        let Filter::Column(column, _) = parts.first()? else { return Some(Filter::Any(parts)) };
        let mut values = Vec::new();
        for part in &parts {
            match part {
                Filter::Column(name, Test::Compare(Comparison::Eq, value)) if name == column => values.push(*value),
                Filter::Column(name, Test::In(others)) if name == column => values.extend(others),
                _ => return Some(Filter::Any(parts)),
            }
        }
        Filter::among(column, values)
    }

    fn among(column: &'e str, values: Vec<&'e ScalarValue>) -> Option<Filter<'e>> {
        let is_short = (1..=MOST_VALUES).contains(&values.len());
        is_short.then_some(Filter::Column(column, Test::In(values)))
    }
}

/// The parts of a conjunction or disjunction. This is a loop, because recursion on a long chain would overflow the stack.
fn parts(filter: &Expr, of: Operator) -> Vec<&Expr> {
    let (mut parts, mut open) = (Vec::new(), vec![filter]);
    while let Some(next) = open.pop() {
        match next {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if *op == of => open.extend([right.as_ref(), left]),
            part => parts.push(part),
        }
    }
    parts
}

fn comparison(op: Operator) -> Option<Comparison> {
    match op {
        Operator::Eq => Some(Comparison::Eq),
        Operator::Lt => Some(Comparison::Lt),
        Operator::LtEq => Some(Comparison::Le),
        Operator::Gt => Some(Comparison::Gt),
        Operator::GtEq => Some(Comparison::Ge),
        _ => None,
    }
}

fn name_of(expression: &Expr) -> Option<&str> {
    expression.try_as_col().map(|column| column.name.as_str())
}

fn is_null(expression: &Expr) -> bool {
    expression.as_literal().is_some_and(ScalarValue::is_null)
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, in_list, lit};

    use super::*;

    #[test]
    fn equalities_of_one_column_are_a_list_of_values() {
        let (one, two, three) = (ScalarValue::from(1_i64), ScalarValue::from(2_i64), ScalarValue::from(3_i64));
        let listed = Some(Filter::Column("a", Test::In(vec![&one, &two, &three])));
        let null = || lit(ScalarValue::Boolean(None));
        let equals = |value: i64| col("a").eq(lit(value));
        assert_eq!(Filter::of(&equals(1).or(equals(2)).or(equals(3))), listed);
        assert_eq!(Filter::of(&equals(1).or(lit(2_i64).eq(col("a")).or(equals(3))).or(null())), listed);
        let two_of_them = in_list(col("a"), vec![lit(2_i64), lit(ScalarValue::Int64(None)), lit(3_i64)], false);
        assert_eq!(Filter::of(&equals(1).or(two_of_them)), listed);
        let other = equals(1).or(col("b").eq(lit(2_i64)));
        assert!(matches!(Filter::of(&other), Some(Filter::Any(parts)) if parts.len() == 2));
        assert_eq!(Filter::of(&equals(1).or(col("a").not_eq(lit(2_i64)))), None);
    }

    #[test]
    fn an_unknown_condition_weakens_a_conjunction_and_ends_a_disjunction() {
        let one = ScalarValue::from(1_i64);
        let at_least = || Filter::Column("a", Test::Compare(Comparison::Ge, &one));
        let (known, unknown) = (|| lit(1_i64).lt_eq(col("a")), || (col("a") + lit(1_i64)).eq(lit(2_i64)));
        assert_eq!(Filter::of(&known()), Some(at_least()));
        assert_eq!(Filter::of(&known().and(unknown())), Some(Filter::All(vec![at_least()])));
        assert_eq!(Filter::of(&known().or(unknown())), None);
        assert_eq!(Filter::of(&!known()), None);
        assert_eq!(Filter::of(&unknown().and(unknown())), None);
    }

    #[test]
    fn a_chain_of_any_length_is_read_and_a_long_list_left_to_the_query() {
        let chain = |n_parts: i64| {
            let parts = (1..n_parts).map(|value| col("a").eq(lit(value)));
            parts.fold(col("a").eq(lit(0_i64)), Expr::or)
        };
        let short = chain(100);
        assert!(matches!(Filter::of(&short), Some(Filter::Column("a", Test::In(values))) if values.len() == 100));
        let values = |n_values: i64| in_list(col("a"), (0..n_values).map(lit).collect(), false);
        assert!(Filter::of(&values(10_000)).is_some());
        assert_eq!(Filter::of(&values(10_001)), None);
    }
}
