//! Constants that labels are compared with, and the types of plain columns that they may be compared with.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use kohort_model::ValueType;

use super::RewriteError;
use crate::meaning::{Meaning, MeaningError, Point};

/// A constant as a value of a column.
pub(super) enum Constant {
    Null,
    Text(String),
}

impl Constant {
    /// The value of an expression without columns; `None` if it is not constant.
    pub(super) fn of(expression: &Expr, column: &str) -> Result<Option<Constant>> {
        let mut is_constant = true;
        let mut is_parameter = false;
        expression.apply(|part| {
            is_parameter |= matches!(part, Expr::Placeholder(_));
            is_constant &= matches!(
                part,
                Expr::Literal(..)
                    | Expr::Alias(_)
                    | Expr::Cast(_)
                    | Expr::TryCast(_)
                    | Expr::Negative(_)
                    | Expr::BinaryExpr(_)
                    | Expr::ScalarFunction(_)
            ) && !part.is_volatile_node();
            Ok(TreeNodeRecursion::Continue)
        })?;
        if is_parameter {
            return Err(RewriteError::Parameter { column: column.to_owned() }.into());
        }
        if !is_constant {
            return Ok(None);
        }
        let mut expression = expression.clone();
        if !matches!(expression, Expr::Literal(..)) {
            let simplifier = ExprSimplifier::new(SimplifyContext::default());
            expression = simplifier.simplify(simplifier.coerce(expression, &DFSchema::empty())?)?;
        }
        match expression.unalias() {
            Expr::Literal(scalar, _) => Constant::of_scalar(&scalar).map(Some),
            _ => Ok(None),
        }
    }

    fn of_scalar(scalar: &ScalarValue) -> Result<Constant> {
        if scalar.is_null() {
            return Ok(Constant::Null);
        }
        if let Some(Some(text)) = scalar.try_as_str() {
            return Ok(Constant::Text(text.to_owned()));
        }
        let text = scalar.cast_to(&DataType::Utf8)?;
        Ok(text.try_as_str().flatten().map_or(Constant::Null, |text| Constant::Text(text.to_owned())))
    }

    /// The constant as a value of a column; `None` for NULL.
    pub(super) fn point(&self, meaning: &Meaning) -> Result<Option<Point>, MeaningError> {
        match self {
            Constant::Null => Ok(None),
            Constant::Text(text) => meaning.point(text).map(Some),
        }
    }
}

/// Whether plain cells of a type can be read as values of a protected column's type.
pub(super) fn reads_as(data_type: &DataType, value_type: ValueType) -> bool {
    if let DataType::Dictionary(_, values) = data_type {
        return reads_as(values, value_type);
    }
    let is_decimal = matches!(data_type, DataType::Decimal128(..) | DataType::Decimal256(..));
    match value_type {
        _ if data_type.is_null() => true,
        ValueType::Integer => data_type.is_integer(),
        ValueType::Decimal => data_type.is_integer() || is_decimal,
        ValueType::Float => data_type.is_integer() || is_decimal || data_type.is_floating(),
        ValueType::Date => *data_type == DataType::Date32,
        ValueType::Timestamp => matches!(data_type, DataType::Date32 | DataType::Timestamp(..)),
        ValueType::Text => data_type.is_string(),
        ValueType::Boolean => *data_type == DataType::Boolean,
    }
}
