//! [`RewriteError`]: why a query can't be asked of labels.

use datafusion::error::DataFusionError;
use kohort_model::ValueType;

/// Why a query can't be asked of labels. Names the column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RewriteError {
    /// An expression other than a comparison in WHERE, HAVING or ON.
    #[error("column '{column}' holds labels, and {what} can't be computed from labels")]
    Expression {
        /// The column.
        column: String,
        /// The expression's kind.
        what: String,
    },
    /// A comparison whose truth value would be shown or computed with.
    #[error("column '{column}' holds labels, and {what} is neither true nor false of a label")]
    TruthValue {
        /// The column.
        column: String,
        /// The comparison's kind.
        what: String,
    },
    /// An aggregate or window function.
    #[error("column '{column}' holds labels, and {function} of labels means nothing")]
    Aggregate {
        /// The column.
        column: String,
        /// The function.
        function: String,
    },
    /// A comparison with a column that mixes labels and other values.
    #[error("column '{column}' mixes labels with something else, or lists them, and can't be compared")]
    Mixed {
        /// The column.
        column: String,
    },
    /// `NOT IN (SELECT ...)`.
    #[error("column '{column}' holds labels, and NOT IN (SELECT ...) has no meaning for labels")]
    NotInSubquery {
        /// The column.
        column: String,
    },
    /// A list, a bound or a pattern that is not constant.
    #[error("column '{column}' holds labels, and {place} must be constants there")]
    NotConstant {
        /// The column.
        column: String,
        /// What must be constant.
        place: &'static str,
    },
    /// LIKE on a column whose values have no known texts.
    #[error("column '{column}' shows ranges of type {value_type}, which have no text that LIKE could match")]
    LikeOfRanges {
        /// The column.
        column: String,
        /// The type of its values.
        value_type: ValueType,
    },
    /// A comparison of values of different types.
    #[error("column '{column}' stands for values of type {value_type} and is compared with {other}")]
    TypesDiffer {
        /// The column.
        column: String,
        /// The type of its values.
        value_type: ValueType,
        /// The other type.
        other: String,
    },
    /// INTERSECT or EXCEPT of labels with other values, or with labels of another meaning.
    #[error("column '{column}' holds labels, and INTERSECT or EXCEPT compares it with something else")]
    SetOperation {
        /// The column.
        column: String,
    },
    /// A scalar subquery that compares labels with a column of the outer row.
    #[error("a scalar subquery compares labels with column '{column}' of the query around it, which can't be planned")]
    CorrelatedScalar {
        /// The column of the enclosing query.
        column: String,
    },
    /// A part of a query that labels can't pass through.
    #[error("column '{column}' holds labels, which can't be used in {node}")]
    Node {
        /// The column.
        column: String,
        /// The part's name.
        node: String,
    },
    /// A parameter without a value.
    #[error("column '{column}' holds labels, and is compared with a parameter that has no value yet")]
    Parameter {
        /// The column.
        column: String,
    },
    /// A plain comparison that still touches a label after the rewrite.
    #[error("a plain comparison reached column '{column}', which holds labels")]
    RawComparison {
        /// The column.
        column: String,
    },
}

impl RewriteError {
    /// What to do instead, if there is something.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            RewriteError::Expression { .. } => {
                "labels can be shown, grouped, sorted, counted, and compared in WHERE, HAVING and ON".to_owned()
            }
            RewriteError::TruthValue { .. } => {
                "compare in WHERE, HAVING or ON, for example once with = and once with <>".to_owned()
            }
            RewriteError::Aggregate { .. } => "use count, array_agg or string_agg, or GROUP BY the label".to_owned(),
            RewriteError::Mixed { .. } => "compare on each side, before the union".to_owned(),
            RewriteError::NotInSubquery { .. } => {
                "write NOT EXISTS (SELECT ... WHERE ...) if none may match".to_owned()
            }
            RewriteError::NotConstant { .. } => "join with the columns, or compare with =, <= and >=".to_owned(),
            RewriteError::LikeOfRanges { .. } => "use BETWEEN, < or >".to_owned(),
            RewriteError::TypesDiffer { value_type, .. } => format!("CAST the other side to {value_type}"),
            RewriteError::SetOperation { .. } => "use a join or IN (SELECT ...) to ask what could be equal".to_owned(),
            RewriteError::CorrelatedScalar { .. } => "write a join with GROUP BY instead".to_owned(),
            RewriteError::Node { .. } | RewriteError::RawComparison { .. } => return None,
            RewriteError::Parameter { .. } => "EXECUTE the statement with values".to_owned(),
        };
        Some(hint)
    }
}

impl From<RewriteError> for DataFusionError {
    fn from(refusal: RewriteError) -> Self {
        DataFusionError::External(Box::new(refusal))
    }
}
