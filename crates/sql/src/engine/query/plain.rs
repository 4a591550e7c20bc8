//! Parts of statements as the planner reads them, for whoever answers without it.

use datafusion::sql::sqlparser::ast::{Query, SetExpr};

/// The body of a query that has nothing else.
pub(in crate::engine) fn plain_body(query: &Query) -> Option<&SetExpr> {
    // Every field is named, so that none is overlooked.
    let Query {
        with: None,
        body,
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks,
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators,
    } = query
    else {
        return None;
    };
    (locks.is_empty() && pipe_operators.is_empty()).then_some(body)
}
