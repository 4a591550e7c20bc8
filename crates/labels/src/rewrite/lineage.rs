//! [`Origin`] of a column, and the scope in which names are looked up.

use std::sync::Arc;

use datafusion::common::{Column, DFSchema, DFSchemaRef, Result, plan_err};

use super::ProtectedColumns;
use crate::meaning::Meaning;

/// Where the cells of a column come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// Plain values.
    Raw,
    /// Labels of one meaning.
    Protected(Arc<Meaning>),
    /// Something made of labels that may be shown but not compared, such as a list of labels, or a union of labels and
    /// other values. The name of the column is kept for messages.
    Shown(String),
}

impl Origin {
    pub(super) fn is_raw(&self) -> bool {
        *self == Origin::Raw
    }

    /// The column's name for messages; `None` if it has plain values.
    pub(super) fn column(&self) -> Option<String> {
        match self {
            Origin::Raw => None,
            Origin::Protected(meaning) => Some(format!("{}.{}", meaning.view(), meaning.column())),
            Origin::Shown(column) => Some(column.clone()),
        }
    }

    /// The origin of a column whose cells come from both.
    pub(super) fn or(&self, other: &Origin) -> Origin {
        if self == other {
            return self.clone();
        }
        self.column().or_else(|| other.column()).map_or(Origin::Raw, Origin::Shown)
    }
}

/// One origin per column of a schema.
#[derive(Clone)]
struct Part {
    schema: DFSchemaRef,
    origins: Vec<Origin>,
}

/// The columns that an expression of a node can name: those of the node's inputs.
#[derive(Clone, Default)]
pub(super) struct Scope {
    parts: Vec<Part>,
}

impl Scope {
    pub(super) fn of(schema: &DFSchemaRef, origins: &[Origin]) -> Scope {
        Scope { parts: vec![Part { schema: Arc::clone(schema), origins: origins.to_vec() }] }
    }

    pub(super) fn beside(&self, other: &Scope) -> Scope {
        Scope { parts: self.parts.iter().chain(&other.parts).cloned().collect() }
    }

    pub(super) fn find(&self, column: &Column) -> Option<&Origin> {
        self.parts.iter().find_map(|part| part.origins.get(part.schema.maybe_index_of_column(column)?))
    }

    /// All columns in one schema, for the types of expressions.
    pub(super) fn schema(&self) -> DFSchema {
        let mut parts = self.parts.iter();
        let mut schema = parts.next().map_or_else(DFSchema::empty, |part| part.schema.as_ref().clone());
        for part in parts {
            schema.merge(&part.schema);
        }
        schema
    }
}

/// Rewrites a plan, and knows the scopes of enclosing queries.
pub(super) struct Rewriter<'a> {
    pub(super) protected: &'a ProtectedColumns,
    /// Scopes of enclosing queries, the nearest last.
    pub(super) outer: Vec<Scope>,
}

impl<'a> Rewriter<'a> {
    pub(super) fn new(protected: &'a ProtectedColumns) -> Rewriter<'a> {
        Rewriter { protected, outer: Vec::new() }
    }

    /// The origin of a column. A column that can't be found is an error, because an unknown origin must not count as plain.
    pub(super) fn origin(&self, column: &Column, scope: &Scope) -> Result<Origin> {
        match scope.find(column) {
            Some(origin) => Ok(origin.clone()),
            None => plan_err!("the origin of column '{column}' is not known"),
        }
    }

    pub(super) fn outer_origin(&self, column: &Column) -> Result<Origin> {
        match self.outer.iter().rev().find_map(|scope| scope.find(column)) {
            Some(origin) => Ok(origin.clone()),
            None => plan_err!("the origin of column '{column}' of an enclosing query is not known"),
        }
    }
}
