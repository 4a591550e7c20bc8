//! [`RewriteError`]: why a query can't be asked of labels.

use datafusion::error::DataFusionError;
use kohort_model::ValueType;

/// Why a query can't be asked of labels. Names the column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the variants and fields are")]
pub enum RewriteError {
    /// An expression other than a comparison in WHERE, HAVING or ON.
    #[error("column '{column}' holds labels, and {what} can't be computed from labels")]
    Expression { column: String, what: String },
    /// A comparison whose truth value would be shown or computed with.
    #[error("column '{column}' holds labels, and {what} is neither true nor false of a label")]
    TruthValue { column: String, what: String },
    #[error("column '{column}' holds labels, and {function} of labels means nothing")]
    Aggregate { column: String, function: String },
    /// A comparison with a column that mixes labels and other values.
    #[error("column '{column}' mixes labels with something else, or lists them, and can't be compared")]
    Mixed { column: String },
    #[error("column '{column}' holds labels, and NOT IN (SELECT ...) has no meaning for labels")]
    NotInSubquery { column: String },
    #[error("column '{column}' holds labels, and {place} must be constants there")]
    NotConstant { column: String, place: &'static str },
    /// LIKE on a column whose values have no known texts.
    #[error("column '{column}' shows ranges of type {value_type}, which have no text that LIKE could match")]
    LikeOfRanges { column: String, value_type: ValueType },
    #[error("column '{column}' stands for values of type {value_type} and is compared with {other}")]
    TypesDiffer { column: String, value_type: ValueType, other: String },
    /// INTERSECT or EXCEPT of labels with other values, or with labels of another meaning.
    #[error("column '{column}' holds labels, and INTERSECT or EXCEPT compares it with something else")]
    SetOperation { column: String },
    #[error("a scalar subquery compares labels with column '{column}' of the query around it, which can't be planned")]
    CorrelatedScalar { column: String },
    #[error("column '{column}' holds labels, which can't be used in {node}")]
    Node { column: String, node: String },
    #[error("column '{column}' holds labels, and is compared with a parameter that has no value yet")]
    Parameter { column: String },
    #[error("a plain comparison reached column '{column}', which holds labels")]
    RawComparison { column: String },
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
