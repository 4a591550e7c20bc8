//! Explains why a query that computes with labels can't be planned.
//!
//! To the planner labels are texts, so it refuses `age + 1` and `avg(age)` with a message about types, before our own rules see
//! a plan. This module then looks for the place where the statement computes with a column of labels, for a better message. It
//! lets nothing through, because the statement has failed already.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::sql::parser::Statement as DFStatement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Select, SelectItem, Statement,
    UnaryOperator, Visit, Visitor, visit_expressions, visit_relations,
};

use kohort_labels::rewrite::RewriteError;

use crate::parser::spelled;
use crate::view::AView;

/// Why a statement is refused that computes with labels; `None` if it does not.
pub(crate) fn refusal(
    statement: &DFStatement,
    view: impl Fn(&str) -> Option<Arc<AView>>,
    is_aggregate: impl Fn(&str) -> bool,
) -> Option<RewriteError> {
    let statement = asked(statement)?;
    let mut labels = LabelColumns::default();
    let _: ControlFlow<()> = visit_relations(statement, |name| {
        let name = name.0.last().and_then(|part| part.as_ident()).map(spelled);
        if let Some(view) = name.and_then(|name| view(&name)) {
            labels.note_view(&view);
        }
        ControlFlow::Continue(())
    });
    // Repeat, because an outer query may be visited before the inner query that renames a column for it.
    let mut n_known = 0;
    while labels.0.len() > n_known {
        n_known = labels.0.len();
        let _ = statement.visit(&mut labels);
    }
    let found = visit_expressions(statement, |expression| match computed(expression, &labels, &is_aggregate) {
        Some(refusal) => ControlFlow::Break(refusal),
        None => ControlFlow::Continue(()),
    });
    found.break_value()
}

/// The names that columns of labels have in a statement, each with the column of the view.
#[derive(Default)]
struct LabelColumns(BTreeMap<String, String>);

impl LabelColumns {
    fn note_view(&mut self, view: &AView) {
        let definition = &view.definition;
        for position in (0..definition.columns.len()).filter(|&position| definition.is_labelled(position)) {
            let name = &definition.columns[position].name;
            self.0.entry(name.clone()).or_insert_with(|| format!("{}.{name}", definition.name));
        }
    }

    /// The column of a view that an expression names.
    fn of(&self, expression: &Expr) -> Option<String> {
        match expression {
            Expr::Nested(inner) => self.of(inner),
            Expr::Identifier(name) => self.0.get(&spelled(name)).cloned(),
            Expr::CompoundIdentifier(names) => self.0.get(&spelled(names.last()?)).cloned(),
            _ => None,
        }
    }
}

impl Visitor for LabelColumns {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { expr, alias } = item
                && let Some(column) = self.of(expr)
            {
                self.0.entry(spelled(alias)).or_insert(column);
            }
        }
        ControlFlow::Continue(())
    }
}

fn asked(statement: &DFStatement) -> Option<&Statement> {
    match statement {
        DFStatement::Statement(statement) => Some(statement),
        DFStatement::Explain(explained) => asked(&explained.statement),
        _ => None,
    }
}

fn computed(expression: &Expr, labels: &LabelColumns, is_aggregate: &dyn Fn(&str) -> bool) -> Option<RewriteError> {
    let expression_of = |column: String, what: String| RewriteError::Expression { column, what };
    match expression {
        Expr::BinaryOp { left, op, right } if is_arithmetic(op) => {
            let column = labels.of(left).or_else(|| labels.of(right))?;
            Some(expression_of(column, format!("the operator {op}")))
        }
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => {
            Some(expression_of(labels.of(expr)?, "a minus or plus sign".to_owned()))
        }
        Expr::Collate { expr, .. } => Some(expression_of(labels.of(expr)?, "COLLATE".to_owned())),
        Expr::Function(call) => {
            let FunctionArguments::List(arguments) = &call.args else { return None };
            let column = arguments.args.iter().find_map(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => labels.of(argument),
                _ => None,
            })?;
            let function = spelled(call.name.0.last()?.as_ident()?);
            Some(match is_aggregate(&function) {
                true => RewriteError::Aggregate { column, function },
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
