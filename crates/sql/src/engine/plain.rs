//! Parts of statements as the planner reads them, for whoever answers without it.

use datafusion::sql::sqlparser::ast::{Ident, Query, SetExpr};

/// A name as the planner reads it: in small letters unless it is quoted.
pub(super) fn spelled(name: &Ident) -> String {
    if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() }
}

/// The body of a query that has nothing else.
pub(super) fn plain_body(query: &Query) -> Option<&SetExpr> {
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
