//! Predicates in negation normal form, one comparison after the other.
//!
//! `NOT` moves inward only to reach comparisons with labels. Parts without labels keep their shape and their three truth
//! values. A comparison with a label is never NULL, and false if a cell is NULL, so its negation is a comparison of its own.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::expr::{Between, Exists, InList, InSubquery, Like, SetComparison, SetQuantifier};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlanBuilder, Operator, ScalarUDF, exists, lit};

use super::RewriteError;
use super::constant::{Constant, reads_as};
use super::lineage::{Origin, Rewriter, Scope};
use crate::meaning::{
    Comparison, Condition, CouldBe, CouldMatch, LetterCase, Meaning, MeaningError, Pattern, Point, Side, is_avlike,
};

/// The name of the subquery of `IN (SELECT ...)`.
const ITEMS: &str = "__could_be_in";

/// Whether a predicate or its negation is meant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Polarity {
    Asserted,
    Denied,
}

impl Polarity {
    fn flipped(self) -> Polarity {
        match self {
            Polarity::Asserted => Polarity::Denied,
            Polarity::Denied => Polarity::Asserted,
        }
    }

    /// The polarity inside of a predicate that may be negated, such as NOT BETWEEN: a negation flips it.
    fn of(self, negated: bool) -> Polarity {
        if negated { self.flipped() } else { self }
    }

    fn pick<T>(self, asserted: T, denied: T) -> T {
        match self {
            Polarity::Asserted => asserted,
            Polarity::Denied => denied,
        }
    }

    fn apply(self, raw: Expr) -> Expr {
        match self {
            Polarity::Asserted => raw,
            Polarity::Denied => Expr::Not(Box::new(raw)),
        }
    }
}

impl Rewriter<'_> {
    /// A predicate, or its negation, in which every comparison with labels is a function.
    pub(super) fn predicate(&mut self, predicate: Expr, polarity: Polarity, scope: &Scope) -> Result<Expr> {
        match predicate {
            Expr::Exists(Exists { subquery, negated }) => {
                let (subquery, _) = self.subquery(&subquery, scope)?;
                let negated = polarity.of(negated) == Polarity::Denied;
                Ok(Expr::Exists(Exists::new(subquery, negated)))
            }
            raw if !self.touches(&raw, scope)? => Ok(polarity.apply(self.value(raw, scope)?.0)),
            Expr::Alias(alias) => self.predicate(*alias.expr, polarity, scope),
            Expr::Not(inner) => self.predicate(*inner, polarity.flipped(), scope),
            Expr::IsTrue(inner) if polarity == Polarity::Asserted => self.predicate(*inner, polarity, scope),
            Expr::IsFalse(inner) if polarity == Polarity::Asserted => self.predicate(*inner, Polarity::Denied, scope),
            Expr::BinaryExpr(binary) => self.binary(binary, polarity, scope),
            Expr::ScalarFunction(mut call) if is_avlike(&call.func) && call.args.len() == 2 => {
                let (right, left) = (call.args.remove(1), call.args.remove(0));
                let equality = BinaryExpr::new(Box::new(left), Operator::Eq, Box::new(right));
                self.binary(equality, polarity, scope)
            }
            Expr::IsNull(operand) => self.is_null(*operand, polarity, scope),
            Expr::IsNotNull(operand) => self.is_null(*operand, polarity.flipped(), scope),
            Expr::InList(list) => self.in_list(list, polarity, scope),
            Expr::Between(between) => self.between(between, polarity, scope),
            Expr::Like(like) => self.like(like, polarity, scope),
            Expr::InSubquery(membership) => self.in_subquery(membership, polarity, scope),
            Expr::SetComparison(SetComparison { expr, subquery, op: Operator::Eq, quantifier: SetQuantifier::Any }) => {
                self.in_subquery(InSubquery::new(expr, subquery, false), polarity, scope)
            }
            other => Ok(polarity.apply(self.value(other, scope)?.0)),
        }
    }

    /// One side of a comparison. A cast of labels to the type of the values behind them is dropped. Stored views have such
    /// casts, because types were coerced before they were stored.
    fn operand(&mut self, expression: Expr, scope: &Scope) -> Result<(Expr, Origin)> {
        if let Expr::Cast(cast) = &expression {
            let (inner, origin) = self.operand(cast.expr.as_ref().clone(), scope)?;
            match &origin {
                Origin::Protected(meaning) if reads_as(cast.field.data_type(), meaning.value_type()) => {
                    return Ok((inner, origin));
                }
                _ => {}
            }
        }
        self.value(expression, scope)
    }

    /// Whether an expression may contain labels: it names a column of labels, or has a subquery that may return some.
    fn touches(&self, expression: &Expr, scope: &Scope) -> Result<bool> {
        expression.exists(|part| {
            Ok(match part {
                Expr::Column(column) => !self.origin(column, scope)?.is_raw(),
                Expr::OuterReferenceColumn(_, column) => !self.outer_origin(column)?.is_raw(),
                Expr::InSubquery(_) | Expr::SetComparison(_) | Expr::ScalarSubquery(_) | Expr::Exists(_) => true,
                Expr::ScalarFunction(call) => is_avlike(&call.func),
                _ => false,
            })
        })
    }

    fn binary(&mut self, binary: BinaryExpr, polarity: Polarity, scope: &Scope) -> Result<Expr> {
        let BinaryExpr { left, op, right } = binary;
        let comparison = match op {
            Operator::And | Operator::Or => {
                let left = self.predicate(*left, polarity, scope)?;
                let right = self.predicate(*right, polarity, scope)?;
                let both = polarity.pick(op == Operator::And, op == Operator::Or);
                return Ok(if both { left.and(right) } else { left.or(right) });
            }
            Operator::IsDistinctFrom | Operator::IsNotDistinctFrom => {
                return self.distinct(BinaryExpr { left, op, right }, polarity, scope);
            }
            Operator::Eq => Comparison::Equal,
            Operator::NotEq => Comparison::Differ,
            Operator::Lt => Comparison::Less,
            Operator::LtEq => Comparison::LessOrEqual,
            Operator::Gt => Comparison::Greater,
            Operator::GtEq => Comparison::GreaterOrEqual,
            _ => return Ok(polarity.apply(self.value(Expr::BinaryExpr(BinaryExpr { left, op, right }), scope)?.0)),
        };
        let (left, left_origin) = self.operand(*left, scope)?;
        let (right, right_origin) = self.operand(*right, scope)?;
        if left_origin.is_raw() && right_origin.is_raw() {
            let raw = BinaryExpr::new(Box::new(left), op, Box::new(right));
            return Ok(polarity.apply(Expr::BinaryExpr(raw)));
        }
        let comparison = polarity.pick(comparison, comparison.negated());
        self.compare((left, left_origin), comparison, (right, right_origin), scope)
    }

    /// A comparison of two rewritten sides, at least one of which holds labels.
    pub(super) fn compare(
        &self,
        (left, left_origin): (Expr, Origin),
        comparison: Comparison,
        (right, right_origin): (Expr, Origin),
        scope: &Scope,
    ) -> Result<Expr> {
        match (left_origin, right_origin) {
            (Origin::Shown(column), _) | (_, Origin::Shown(column)) => Err(RewriteError::Mixed { column }.into()),
            (Origin::Protected(meaning), Origin::Raw) => compare_with_raw(left, &meaning, comparison, right, scope),
            (Origin::Raw, Origin::Protected(meaning)) => {
                compare_with_raw(right, &meaning, comparison.swapped(), left, scope)
            }
            (Origin::Protected(meaning), Origin::Protected(other)) => {
                if meaning.value_type() != other.value_type() {
                    return Err(types_differ(&meaning, other.value_type().word()).into());
                }
                let function = CouldMatch::new(Side::Protected(meaning), comparison, Side::Protected(other));
                Ok(ScalarUDF::from(function).call(vec![left, right]))
            }
            (Origin::Raw, Origin::Raw) => {
                datafusion::common::internal_err!("two plain sides are compared as they are")
            }
        }
    }

    /// `IS DISTINCT FROM`, expanded to its definition, because it treats NULL as a value.
    fn distinct(&mut self, binary: BinaryExpr, polarity: Polarity, scope: &Scope) -> Result<Expr> {
        let BinaryExpr { left, op, right } = binary;
        let (left, right) = (*left, *right);
        let nulls = |expression: &Expr| (expression.clone().is_null(), expression.clone().is_not_null());
        let ((left_null, left_not_null), (right_null, right_not_null)) = (nulls(&left), nulls(&right));
        let expanded = match polarity.of(op == Operator::IsNotDistinctFrom) {
            Polarity::Denied => left.eq(right).or(left_null.and(right_null)),
            Polarity::Asserted => {
                left.not_eq(right).or(left_null.and(right_not_null)).or(left_not_null.and(right_null))
            }
        };
        self.predicate(expanded, Polarity::Asserted, scope)
    }

    fn is_null(&mut self, operand: Expr, polarity: Polarity, scope: &Scope) -> Result<Expr> {
        let (operand, origin) = self.operand(operand, scope)?;
        match origin {
            Origin::Raw => Ok(polarity.pick(operand.clone().is_null(), operand.is_not_null())),
            Origin::Protected(meaning) => {
                Ok(could_be(operand, &meaning, polarity.pick(Condition::Null, Condition::NotNull)))
            }
            Origin::Shown(column) => Err(RewriteError::Mixed { column }.into()),
        }
    }

    fn in_list(&mut self, membership: InList, polarity: Polarity, scope: &Scope) -> Result<Expr> {
        let InList { expr, list, negated } = membership;
        let (operand, origin) = self.operand(*expr, scope)?;
        let (list, origins) = self.values(list, scope)?;
        let meaning = match origin {
            Origin::Shown(column) => return Err(RewriteError::Mixed { column }.into()),
            Origin::Raw => {
                if let Some(column) = origins.iter().find_map(Origin::column) {
                    return Err(RewriteError::NotConstant { column, place: "the items of IN" }.into());
                }
                return Ok(polarity.apply(Expr::InList(InList::new(Box::new(operand), list, negated))));
            }
            Origin::Protected(meaning) => meaning,
        };
        let points: Result<Vec<Option<Point>>> =
            list.iter().map(|item| constant(item, &meaning, "the items of IN")).collect();
        let points = points?;
        let has_null = points.iter().any(Option::is_none);
        let points: Vec<Point> = points.into_iter().flatten().collect();
        Ok(match polarity.of(negated) {
            Polarity::Asserted if points.is_empty() => lit(false),
            Polarity::Asserted => could_be(operand, &meaning, Condition::In(points)),
            Polarity::Denied if has_null => lit(false),
            Polarity::Denied => could_be(operand, &meaning, Condition::NotIn(points)),
        })
    }

    fn between(&mut self, between: Between, polarity: Polarity, scope: &Scope) -> Result<Expr> {
        let Between { expr, negated, low, high } = between;
        let (operand, origin) = self.operand(*expr, scope)?;
        let (low, low_origin) = self.value(*low, scope)?;
        let (high, high_origin) = self.value(*high, scope)?;
        let meaning = match origin {
            Origin::Shown(column) => return Err(RewriteError::Mixed { column }.into()),
            Origin::Raw => {
                if let Some(column) = low_origin.or(&high_origin).column() {
                    return Err(RewriteError::NotConstant { column, place: "the bounds of BETWEEN" }.into());
                }
                let between = Between::new(Box::new(operand), negated, Box::new(low), Box::new(high));
                return Ok(polarity.apply(Expr::Between(between)));
            }
            Origin::Protected(meaning) => meaning,
        };
        let low = constant(&low, &meaning, "the bounds of BETWEEN")?;
        let high = constant(&high, &meaning, "the bounds of BETWEEN")?;
        let condition = match (polarity.of(negated), low, high) {
            (Polarity::Asserted, Some(low), Some(high)) => Condition::Between(low, high),
            (Polarity::Denied, Some(low), Some(high)) => Condition::NotBetween(low, high),
            // With one unknown bound, NOT BETWEEN can still be true beyond the other.
            (Polarity::Denied, Some(low), None) => Condition::Compare(Comparison::Less, low),
            (Polarity::Denied, None, Some(high)) => Condition::Compare(Comparison::Greater, high),
            _ => return Ok(lit(false)),
        };
        Ok(could_be(operand, &meaning, condition))
    }

    fn like(&mut self, like: Like, polarity: Polarity, scope: &Scope) -> Result<Expr> {
        let Like { negated, expr, pattern, escape_char, case_insensitive } = like;
        let (operand, origin) = self.operand(*expr, scope)?;
        let (pattern, pattern_origin) = self.value(*pattern, scope)?;
        let meaning = match (origin, pattern_origin.column()) {
            (Origin::Shown(column), _) => return Err(RewriteError::Mixed { column }.into()),
            (_, Some(column)) => return Err(RewriteError::NotConstant { column, place: "patterns of LIKE" }.into()),
            (Origin::Raw, None) => {
                let like = Like::new(negated, Box::new(operand), Box::new(pattern), escape_char, case_insensitive);
                return Ok(polarity.apply(Expr::Like(like)));
            }
            (Origin::Protected(meaning), None) => meaning,
        };
        let column = qualified(&meaning);
        if !meaning.has_texts() {
            return Err(RewriteError::LikeOfRanges { column, value_type: meaning.value_type() }.into());
        }
        let Some(pattern) = Constant::of(&pattern, &column)? else {
            return Err(RewriteError::NotConstant { column, place: "patterns of LIKE" }.into());
        };
        let Constant::Text(pattern) = pattern else { return Ok(lit(false)) };
        let letter_case = if case_insensitive { LetterCase::Ignored } else { LetterCase::Matters };
        let pattern = Pattern::new(&pattern, escape_char, letter_case);
        let condition = match polarity.of(negated) {
            Polarity::Asserted => Condition::Like(pattern),
            Polarity::Denied => Condition::NotLike(pattern),
        };
        Ok(could_be(operand, &meaning, condition))
    }

    /// `x IN (SELECT y ...)` is EXISTS (SELECT ... WHERE x could be y).
    fn in_subquery(&mut self, membership: InSubquery, polarity: Polarity, scope: &Scope) -> Result<Expr> {
        let InSubquery { expr, subquery, negated } = membership;
        let (subquery, item_origin) = self.subquery(&subquery, scope)?;
        let (operand, origin) = self.operand(*expr, scope)?;
        let polarity = polarity.of(negated);
        if origin.is_raw() && item_origin.is_raw() {
            let membership = InSubquery::new(Box::new(operand), subquery, polarity == Polarity::Denied);
            return Ok(Expr::InSubquery(membership));
        }
        if let (Polarity::Denied, Some(column)) = (polarity, origin.or(&item_origin).column()) {
            return Err(RewriteError::NotInSubquery { column }.into());
        }
        let schema = scope.schema();
        let operand = operand.transform(|part| match part {
            Expr::Column(column) => {
                let (_, field) = schema.qualified_field_from_column(&column)?;
                Ok(Transformed::yes(Expr::OuterReferenceColumn(Arc::clone(field), column)))
            }
            other => Ok(Transformed::no(other)),
        })?;
        // The subquery gets a name of its own, because both queries may read the same table.
        let items = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone()).alias(ITEMS)?.build()?;
        let item = Expr::Column(items.schema().columns().swap_remove(0));
        let inner = Scope::of(items.schema(), std::slice::from_ref(&item_origin));
        let could = self.compare((operand.data, origin), Comparison::Equal, (item, item_origin), &inner)?;
        let plan = LogicalPlanBuilder::from(items).filter(could)?.build()?;
        Ok(exists(Arc::new(plan)))
    }
}

fn compare_with_raw(
    label: Expr,
    meaning: &Arc<Meaning>,
    comparison: Comparison,
    other: Expr,
    scope: &Scope,
) -> Result<Expr> {
    let column = qualified(meaning);
    if let Some(constant) = Constant::of(&other, &column)? {
        return Ok(match constant.point(meaning).map_err(problem)? {
            Some(point) => could_be(label, meaning, Condition::Compare(comparison, point)),
            None => lit(false),
        });
    }
    let data_type = other.get_type(&scope.schema())?;
    if !reads_as(&data_type, meaning.value_type()) {
        let word = if data_type.is_string() { "text".to_owned() } else { data_type.to_string() };
        return Err(types_differ(meaning, &word).into());
    }
    let function = CouldMatch::new(Side::Protected(Arc::clone(meaning)), comparison, Side::Raw(meaning.value_type()));
    Ok(ScalarUDF::from(function).call(vec![label, other]))
}

fn could_be(label: Expr, meaning: &Arc<Meaning>, condition: Condition) -> Expr {
    ScalarUDF::from(CouldBe::new(Arc::clone(meaning), condition)).call(vec![label])
}

fn constant(item: &Expr, meaning: &Meaning, place: &'static str) -> Result<Option<Point>> {
    let column = qualified(meaning);
    match Constant::of(item, &column)? {
        Some(constant) => constant.point(meaning).map_err(problem),
        None => Err(RewriteError::NotConstant { column, place }.into()),
    }
}

fn problem(problem: MeaningError) -> datafusion::error::DataFusionError {
    datafusion::error::DataFusionError::External(Box::new(problem))
}

fn qualified(meaning: &Meaning) -> String {
    format!("{}.{}", meaning.view(), meaning.column())
}

fn types_differ(meaning: &Meaning, other: &str) -> RewriteError {
    RewriteError::TypesDiffer { column: qualified(meaning), value_type: meaning.value_type(), other: other.to_owned() }
}
