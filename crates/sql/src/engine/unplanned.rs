//! What a query that can't be planned does with labels, by name.
//!
//! Labels are texts to the planner, and it says of `age + 1` and `avg(age)` that texts can't be added, before any rule
//! of ours sees a plan. So once it has refused a statement, the statement is looked at for the place where it computes
//! with a column of labels. Nothing is let through here: the statement has failed already.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::sql::parser::Statement as DFStatement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Statement, UnaryOperator,
    visit_expressions, visit_relations,
};

use crate::rewrite::Refusal;
use crate::view::AView;

/// Where a statement computes with labels.
pub(super) fn refusal(
    statement: &DFStatement,
    view: impl Fn(&str) -> Option<Arc<AView>>,
    is_aggregate: impl Fn(&str) -> bool,
) -> Option<Refusal> {
    let statement = asked(statement)?;
    let mut views = Vec::new();
    let _: ControlFlow<()> = visit_relations(statement, |name| {
        let name = name.0.last().and_then(|part| part.as_ident()).map(spelled);
        views.extend(name.and_then(|name| view(&name)));
        ControlFlow::Continue(())
    });
    let label = |expression: &Expr| views.iter().find_map(|view| label_of(view, expression));
    let found = visit_expressions(statement, |expression| match computed(expression, &label, &is_aggregate) {
        Some(refusal) => ControlFlow::Break(refusal),
        None => ControlFlow::Continue(()),
    });
    found.break_value()
}

fn asked(statement: &DFStatement) -> Option<&Statement> {
    match statement {
        DFStatement::Statement(statement) => Some(statement),
        DFStatement::Explain(explained) => asked(&explained.statement),
        _ => None,
    }
}

fn computed(
    expression: &Expr,
    label: &dyn Fn(&Expr) -> Option<String>,
    is_aggregate: &dyn Fn(&str) -> bool,
) -> Option<Refusal> {
    let expression_of = |column: String, what: String| Refusal::Expression { column, what };
    match expression {
        Expr::BinaryOp { left, op, right } if is_arithmetic(op) => {
            let column = label(left).or_else(|| label(right))?;
            Some(expression_of(column, format!("the operator {op}")))
        }
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => {
            Some(expression_of(label(expr)?, "a minus or plus sign".to_owned()))
        }
        Expr::Collate { expr, .. } => Some(expression_of(label(expr)?, "COLLATE".to_owned())),
        Expr::Function(call) => {
            let FunctionArguments::List(arguments) = &call.args else { return None };
            let column = arguments.args.iter().find_map(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => label(argument),
                _ => None,
            })?;
            let function = spelled(call.name.0.last()?.as_ident()?);
            Some(match is_aggregate(&function) {
                true => Refusal::Aggregate { column, function },
                false => expression_of(column, format!("the function {function}")),
            })
        }
        _ => None,
    }
}

fn is_arithmetic(operator: &BinaryOperator) -> bool {
    matches!(
        operator,
        BinaryOperator::Plus
            | BinaryOperator::Minus
            | BinaryOperator::Multiply
            | BinaryOperator::Divide
            | BinaryOperator::Modulo
    )
}

/// The column of labels that an expression is, by its name.
fn label_of(view: &AView, expression: &Expr) -> Option<String> {
    let name = match expression {
        Expr::Nested(inner) => return label_of(view, inner),
        Expr::Identifier(name) => spelled(name),
        Expr::CompoundIdentifier(names) => spelled(names.last()?),
        _ => return None,
    };
    let position = view.definition.columns.iter().position(|column| column.name == name)?;
    view.definition.is_labelled(position).then(|| format!("{}.{name}", view.definition.name))
}

/// A name as the planner reads it: in small letters unless it is quoted.
pub(super) fn spelled(name: &Ident) -> String {
    if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() }
}
