//! Queries such as `SELECT set_config('jit', 'off', false), current_setting('TimeZone')`.
//!
//! A function of a query does not know its connection, so a query that consists of such calls is answered by the
//! connection itself, like SET and SHOW. Drivers send them: asyncpg when it looks up types, pg_dump at its start. In
//! any other query `set_config` is unknown, and `current_setting` is NULL.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Query, Select, SelectItem, SetExpr,
    Statement as SqlStatement, Value,
};
use kohort_sql::parser::{Parsed, spelled};

use crate::error::AnswerError;
use crate::settings::truth;

/// One call, with its arguments as written.
pub(crate) struct SettingCall<'q> {
    function: SettingFunction,
    column: String,
    arguments: Vec<&'q Expr>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SettingFunction {
    Read,
    Set,
}

/// What a call wants.
pub(crate) enum SettingRequest {
    /// The value of a setting; if there is none, NULL or an error.
    Read {
        name: String,
        or_null: bool,
    },
    Set {
        name: String,
        value: String,
        is_local: bool,
    },
    /// An argument is NULL, so nothing is done and the result is NULL.
    Nothing,
}

/// The calls of a query that consists of such calls alone; `None` for any other query.
pub(crate) fn calls_of(query: &Query) -> Option<Vec<SettingCall<'_>>> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let Select { distinct: None, selection: None, having: None, qualify: None, .. } = select.as_ref() else {
        return None;
    };
    let is_plain = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && select.from.is_empty()
        && select.into.is_none();
    if !is_plain || select.projection.is_empty() {
        return None;
    }
    select.projection.iter().map(SettingCall::of_item).collect()
}

/// The columns of such a query.
pub(crate) fn columns_of(query: &Parsed) -> SchemaRef {
    let columns = calls_in(query).into_iter().map(|call| Field::new(call.column, DataType::Utf8, true));
    Arc::new(Schema::new(columns.collect::<Vec<_>>()))
}

/// The calls of a parsed query.
pub(crate) fn calls_in(query: &Parsed) -> Vec<SettingCall<'_>> {
    match query.sql() {
        Some(SqlStatement::Query(query)) => calls_of(query).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// The values as the only row of an answer with these columns.
pub(crate) fn row(schema: SchemaRef, values: Vec<Option<String>>) -> Result<SendableRecordBatchStream, AnswerError> {
    let columns = values.into_iter().map(|value| Arc::new(StringArray::from(vec![value])) as ArrayRef).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).map_err(DataFusionError::from)?;
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter([Ok(batch)]))))
}

impl<'q> SettingCall<'q> {
    fn of_item(item: &'q SelectItem) -> Option<SettingCall<'q>> {
        let (call, alias) = match item {
            SelectItem::UnnamedExpr(Expr::Function(call)) => (call, None),
            SelectItem::ExprWithAlias { expr: Expr::Function(call), alias } => (call, Some(spelled(alias))),
            _ => return None,
        };
        let (function, name) = function_of(call)?;
        let FunctionArguments::List(list) = &call.args else { return None };
        let argument = |argument: &'q FunctionArg| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value),
            _ => None,
        };
        let arguments: Vec<&Expr> = list.args.iter().map(argument).collect::<Option<_>>()?;
        let takes = match function {
            SettingFunction::Read => 1..=2,
            SettingFunction::Set => 3..=3,
        };
        let is_call = takes.contains(&arguments.len()) && call.over.is_none() && call.filter.is_none();
        is_call.then(|| SettingCall { function, column: alias.unwrap_or(name), arguments })
    }

    /// What the call wants, once parameters have values.
    pub(crate) fn request(&self) -> Result<SettingRequest, AnswerError> {
        let mut values = Vec::with_capacity(self.arguments.len());
        for argument in &self.arguments {
            match literal(argument)? {
                Some(value) => values.push(value),
                None => return Ok(SettingRequest::Nothing),
            }
        }
        let flag = |text: &str| {
            truth(text).ok_or_else(|| AnswerError::statement("22P02", "the last argument must be true or false"))
        };
        Ok(match (self.function, values.as_slice()) {
            (SettingFunction::Set, [name, value, is_local]) => {
                SettingRequest::Set { name: name.clone(), value: value.clone(), is_local: flag(is_local)? }
            }
            (_, [name, or_null]) => SettingRequest::Read { name: name.clone(), or_null: flag(or_null)? },
            (_, [name, ..]) => SettingRequest::Read { name: name.clone(), or_null: false },
            _ => SettingRequest::Nothing,
        })
    }
}

/// The function, and its name without a schema.
fn function_of(call: &Function) -> Option<(SettingFunction, String)> {
    let mut path = call.name.0.iter().map(|part| part.as_ident().map(spelled));
    let name = match (path.next()??, path.next()) {
        (name, None) => name,
        (schema, Some(name)) if schema == "pg_catalog" => name?,
        _ => return None,
    };
    match name.as_str() {
        "current_setting" => Some((SettingFunction::Read, name)),
        "set_config" => Some((SettingFunction::Set, name)),
        _ => None,
    }
}

/// The text of a literal; `None` for NULL.
fn literal(value: &Expr) -> Result<Option<String>, AnswerError> {
    let value = match value {
        Expr::Value(value) => &value.value,
        Expr::TypedString(typed) => &typed.value.value,
        Expr::Cast { expr, .. } | Expr::Nested(expr) => return literal(expr),
        _ => return Err(AnswerError::statement("0A000", "the arguments of this function must be constants")),
    };
    Ok(match value {
        Value::Null => None,
        Value::SingleQuotedString(text) => Some(text.clone()),
        other => Some(other.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use kohort_sql::parser::parse;

    use super::*;

    fn requests(sql: &str) -> Option<Vec<String>> {
        let parsed = parse(sql).unwrap().remove(0);
        let calls = calls_in(&parsed);
        let request = |call: &SettingCall<'_>| {
            let wanted = match call.request().ok()? {
                SettingRequest::Read { name, or_null } => format!("read {name} {or_null}"),
                SettingRequest::Set { name, value, is_local } => format!("set {name} {value} {is_local}"),
                SettingRequest::Nothing => "nothing".to_owned(),
            };
            Some(format!("{}: {wanted}", call.column))
        };
        if calls.is_empty() { None } else { calls.iter().map(request).collect() }
    }

    #[test]
    fn a_query_of_calls_alone_is_answered_by_the_connection() {
        for (sql, wanted) in [
            ("SELECT current_setting('jit') AS cur", "cur: read jit false"),
            ("SELECT current_setting('no.such', true)", "current_setting: read no.such true"),
            ("SELECT pg_catalog.set_config('search_path', '', false)", "set_config: set search_path  false"),
            ("SELECT set_config('a', 'b'::text, 't')", "set_config: set a b true"),
            ("SELECT SET_CONFIG('a', NULL, true)", "set_config: nothing"),
        ] {
            assert_eq!(requests(sql), Some(vec![wanted.to_owned()]), "{sql}");
        }
    }

    #[test]
    fn every_other_query_is_left_to_the_engine() {
        for sql in [
            "SELECT 1",
            "SELECT set_config('a', 'b', false), 1",
            "SELECT set_config('a', 'b')",
            "SELECT set_config('a', 'b', false) FROM seen",
            "SELECT set_config('a', 'b', false) WHERE false",
            "SELECT set_config('a', 'b', false) LIMIT 0",
            "SELECT other.set_config('a', 'b', false)",
            "SELECT current_setting('a') || 'b'",
            "SELECT current_setting('a') UNION SELECT 'b'",
            "SELECT set_config(concat('a', 'b'), 'b', false)",
        ] {
            assert_eq!(requests(sql), None, "{sql}");
        }
    }
}
