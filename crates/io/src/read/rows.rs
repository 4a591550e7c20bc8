//! [`read_rows`]: record batches of a query as a [`Table`], so that a query engine needs no other way to codes.
//!
//! Types are those of the batch: text stays text whatever it looks like.

use arrow_array::RecordBatch;
use kohort_model::{Column, NULL, Notation, Role, Table, Texts, ValueType};
use rayon::prelude::*;

use super::arrow::distinct_texts;
use super::problem::ReadProblem;
use crate::arrow_text::{ArrowOrder, Fixed, TextForm};

/// Reads the rows of a batch as a table, each column in the role it has at its position. Cells of plain columns are
/// not read: they leave as they came.
///
/// # Errors
/// Every column that can't have its role.
pub fn read_rows(
    batch: &RecordBatch,
    name: &str,
    roles: &[Role],
    person: Option<usize>,
) -> Result<Table, Vec<ReadProblem>> {
    let n_rows = batch.num_rows();
    let read: Vec<Result<Column, ReadProblem>> = (0..batch.num_columns())
        .into_par_iter()
        .with_min_len(columns_together(n_rows, batch.num_columns()))
        .map(|position| {
            let field = batch.schema_ref().field(position);
            let role = roles[position];
            let mut column = Column {
                name: field.name().clone(),
                role,
                value_type: ValueType::Text,
                notation: Notation::default(),
                hierarchy: None,
                texts: Texts::new(),
                ids: Vec::new(),
            };
            if matches!(role, Role::Plain | Role::Drop) {
                column.ids = vec![NULL; n_rows];
                return Ok(column);
            }
            let unreadable = || ReadProblem::UnreadableType {
                column: field.name().clone(),
                data_type: field.data_type().to_string(),
            };
            (column.texts, column.ids) = distinct_texts(batch.column(position)).ok_or_else(unreadable)?;
            let form = TextForm::of(field.data_type());
            column.value_type = value_type(&form, &column.texts)
                .filter(|_| form.is_readable() || role != Role::Quasi)
                .ok_or_else(unreadable)?;
            Ok(column)
        })
        .collect();
    let mut columns = Vec::with_capacity(read.len());
    let mut problems = Vec::new();
    for column in read {
        match column {
            Ok(column) => columns.push(column),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(Table { name: name.to_owned(), columns, n_rows, person }) } else { Err(problems) }
}

/// How many columns one thread looks at, at least: all of them where rows are few, since handing them to another thread
/// takes longer than reading them.
pub(crate) fn columns_together(n_rows: usize, n_columns: usize) -> usize {
    if n_rows < 1 << 12 { n_columns.max(1) } else { 1 }
}

/// How the values of a column are ordered.
fn value_type(form: &TextForm, texts: &Texts) -> Option<ValueType> {
    match form.order() {
        ArrowOrder::Typed(value_type) => Some(value_type),
        ArrowOrder::Unordered => Some(ValueType::Text),
        ArrowOrder::ByText => Some(match innermost(form) {
            // Whole numbers beyond 64 bits with a sign are decimals without a fraction.
            TextForm::Fixed(Fixed::Signed(_) | Fixed::Unsigned(_)) => {
                if texts.iter().all(|text| text.parse::<i64>().is_ok()) {
                    ValueType::Integer
                } else {
                    ValueType::Decimal
                }
            }
            _ => ValueType::Text,
        }),
    }
}

fn innermost(form: &TextForm) -> &TextForm {
    match form {
        TextForm::Dictionary(values) => innermost(values),
        form => form,
    }
}
