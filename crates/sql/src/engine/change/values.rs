//! `INSERT INTO table VALUES (..)` of texts and whole numbers, without a plan.
//!
//! Programs that insert row by row send such statements, and planning one costs more than all the rest of it. Every other
//! statement is planned, and so is one that needs a conversion of values.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::TableReference;
use datafusion::sql::parser::Statement as DFStatement;
use datafusion::sql::sqlparser::ast::{
    Expr, Insert, ObjectName, Query, SetExpr, Statement, TableObject, UnaryOperator, Value, ValueWithSpan,
};

use crate::parser::spelled;

/// The rows of a statement, as they are written.
pub(crate) struct LiteralRows<'a> {
    pub(crate) table: TableReference,
    /// The columns that the statement names; none for all columns of the table.
    columns: Vec<String>,
    rows: Vec<&'a [Expr]>,
}

/// The rows of a statement that is an `INSERT` of values and nothing else.
pub(crate) fn literal_rows(statement: &DFStatement) -> Option<LiteralRows<'_>> {
    let DFStatement::Statement(statement) = statement else { return None };
    let Statement::Insert(insert) = statement.as_ref() else { return None };
    // All fields are named, so a field that the parser learns later does not compile.
    let Insert {
        insert_token: _,
        optimizer_hints,
        or: None,
        ignore: false,
        into: true,
        table: TableObject::TableName(table),
        table_alias: None,
        columns,
        overwrite: false,
        source: Some(source),
        assignments,
        partitioned: None,
        after_columns,
        has_table_keyword: false,
        on: None,
        returning: None,
        output: None,
        replace_into: false,
        priority: None,
        insert_alias: None,
        settings: None,
        format_clause: None,
        multi_table_insert_type: None,
        multi_table_into_clauses,
        multi_table_when_clauses,
        multi_table_else_clause: None,
    } = insert
    else {
        return None;
    };
    let is_plain = optimizer_hints.is_empty()
        && assignments.is_empty()
        && after_columns.is_empty()
        && multi_table_into_clauses.is_empty()
        && multi_table_when_clauses.is_empty();
    let SetExpr::Values(values) = plain_body(source)? else { return None };
    if !is_plain || values.explicit_row || values.value_keyword {
        return None;
    }
    Some(LiteralRows {
        table: TableReference::bare(simple_name(table)?),
        columns: columns.iter().map(simple_name).collect::<Option<_>>()?,
        rows: values.rows.iter().map(|row| row.content.as_slice()).collect(),
    })
}

impl LiteralRows<'_> {
    /// The rows with the columns of a table; `None` if a value is not written as one of its column's type.
    pub(crate) fn batch(&self, schema: &Schema) -> Option<RecordBatch> {
        let n_columns = schema.fields().len();
        if self.rows.iter().any(|row| row.len() != n_columns) {
            return None;
        }
        let place_of = |name: &String| match self.columns.as_slice() {
            [] => schema.index_of(name).ok(),
            named if named.len() == n_columns => named.iter().position(|column| column == name),
            _ => None,
        };
        let column = |field: &datafusion::arrow::datatypes::Field| -> Option<(String, ArrayRef, bool)> {
            let place = place_of(field.name())?;
            let cells = self.rows.iter().map(|row| &row[place]);
            let array: ArrayRef = match field.data_type() {
                DataType::Utf8 => Arc::new(cells.map(text).collect::<Option<StringArray>>()?),
                data_type if data_type.is_signed_integer() => {
                    Arc::new(cells.map(whole_number).collect::<Option<Int64Array>>()?)
                }
                _ => return None,
            };
            Some((field.name().clone(), array, true))
        };
        let columns: Option<Vec<_>> = schema.fields().iter().map(|field| column(field)).collect();
        RecordBatch::try_from_iter_with_nullable(columns?).ok()
    }
}

/// The body of a query that has nothing else.
fn plain_body(query: &Query) -> Option<&SetExpr> {
    // All fields are named, so a field that the parser learns later does not compile.
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

/// A name of one part, as SQL takes it.
fn simple_name(name: &ObjectName) -> Option<String> {
    let [part] = name.0.as_slice() else { return None };
    part.as_ident().map(spelled)
}

fn text(cell: &Expr) -> Option<Option<&str>> {
    match cell {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => Some(Some(text)),
        Expr::Value(ValueWithSpan { value: Value::Null, .. }) => Some(None),
        _ => None,
    }
}

fn whole_number(cell: &Expr) -> Option<Option<i64>> {
    match cell {
        Expr::Value(ValueWithSpan { value: Value::Number(digits, false), .. }) => digits.parse().ok().map(Some),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => Some(Some(whole_number(expr)??.checked_neg()?)),
        Expr::Value(ValueWithSpan { value: Value::Null, .. }) => Some(None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::datatypes::{Field, Int64Type};

    use super::*;
    use crate::parser::{self, parse};

    fn rows(text: &str) -> Option<RecordBatch> {
        let parser::Statement::Sql(statement) = parse(text).unwrap().remove(0).statement else { return None };
        let schema =
            Schema::new(vec![Field::new("id", DataType::Int32, false), Field::new("zip", DataType::Utf8, true)]);
        literal_rows(&statement)?.batch(&schema)
    }

    #[test]
    fn rows_of_literals_stand_in_the_columns_of_the_table() {
        for text in
            ["INSERT INTO t VALUES (-7, '01234'), (8, NULL)", "INSERT INTO t (zip, id) VALUES ('01234', -7), (NULL, 8)"]
        {
            let batch = rows(text).unwrap();
            assert_eq!(batch.column(0).as_primitive::<Int64Type>().values(), &[-7, 8]);
            let zips: Vec<_> = batch.column(1).as_string::<i32>().iter().collect();
            assert_eq!(zips, [Some("01234"), None]);
        }
    }

    #[test]
    fn everything_else_is_left_to_the_planner() {
        for text in [
            "INSERT INTO t VALUES (1, 2)",
            "INSERT INTO t VALUES ('1', 'a')",
            "INSERT INTO t VALUES (1.5, 'a')",
            "INSERT INTO t VALUES (1 + 1, 'a')",
            "INSERT INTO t VALUES (99999999999999999999, 'a')",
            "INSERT INTO t VALUES (1)",
            "INSERT INTO t (id) VALUES (1)",
            "INSERT INTO t (id, id) VALUES (1, 2)",
            "INSERT INTO t VALUES (1, 'a') ON CONFLICT DO NOTHING",
            "INSERT INTO t VALUES (1, 'a') RETURNING id",
            "INSERT INTO s.t VALUES (1, 'a')",
            "INSERT INTO t SELECT 1, 'a'",
            "DELETE FROM t",
        ] {
            assert!(rows(text).is_none(), "{text}");
        }
    }
}
