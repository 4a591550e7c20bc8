//! [`read_rows`]: record batches of a query as a [`Table`], so that a query engine has its rows encoded like those of files.
//!
//! The types are those of the batch: text stays text whatever it looks like.
//!
//! # Guarantee
//! [`PrivateRows`] are a batch and the table that was read from it. Nobody can put another batch beside the table, so cells
//! that were verified in the table can be copied from the batch.

use std::sync::Arc;

use arrow_array::RecordBatch;
use kohort_model::{Column, Hierarchy, NULL, Notation, Role, Table, Texts, ValueType};
use kohort_verify::ReadAsTable;
use rayon::prelude::*;

use super::arrow::distinct_texts;
use super::error::ReadError;
use crate::arrow_text::{ArrowOrder, Fixed, TextForm};

/// The rows of a query, and the table that was read from them.
pub struct PrivateRows {
    batch: RecordBatch,
    table: Table,
}

/// Whether the cells of plain columns are read, although they are released unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainCells {
    /// The cells are read, so that they can be compared.
    Read,
    /// The cells are not read, and all of them are null in the table.
    Skipped,
}

impl PrivateRows {
    /// The rows as they came.
    pub fn batch(&self) -> &RecordBatch {
        &self.batch
    }

    /// The rows as a table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The table alone. From here on nothing connects it with the batch.
    pub fn into_table(self) -> Table {
        self.table
    }

    /// Treats the texts of a column as values of another type.
    pub fn set_type(&mut self, position: usize, value_type: ValueType) {
        self.table.columns[position].value_type = value_type;
    }

    /// Gives a column a hierarchy.
    pub fn set_hierarchy(&mut self, position: usize, hierarchy: Arc<Hierarchy>) {
        self.table.columns[position].hierarchy = Some(hierarchy);
    }
}

impl ReadAsTable for PrivateRows {
    fn table(&self) -> &Table {
        &self.table
    }
}

/// Reads the rows of a batch as a table, each column in the role it has at its position.
///
/// # Errors
/// Every column that can't have its role.
pub fn read_rows(
    batch: &RecordBatch,
    name: &str,
    roles: &[Role],
    person: Option<usize>,
    plain: PlainCells,
) -> Result<PrivateRows, Vec<ReadError>> {
    let n_rows = batch.num_rows();
    let read: Vec<Result<Column, ReadError>> = (0..batch.num_columns())
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
            if role == Role::Drop || (role == Role::Plain && plain == PlainCells::Skipped) {
                column.ids = vec![NULL; n_rows];
                return Ok(column);
            }
            let unreadable =
                || ReadError::UnreadableType { column: field.name().clone(), data_type: field.data_type().to_string() };
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
    if !problems.is_empty() {
        return Err(problems);
    }
    let table = Table { name: name.to_owned(), columns, n_rows, person };
    Ok(PrivateRows { batch: batch.clone(), table })
}

/// The least number of columns for one thread. If there are few rows one thread reads all columns, because handing them
/// to another thread takes longer than reading them.
pub(crate) fn columns_together(n_rows: usize, n_columns: usize) -> usize {
    if n_rows < 1 << 12 { n_columns.max(1) } else { 1 }
}

/// The type by which the values of a column are ordered.
fn value_type(form: &TextForm, texts: &Texts) -> Option<ValueType> {
    match form.order() {
        ArrowOrder::Typed(value_type) => Some(value_type),
        ArrowOrder::Unordered => Some(ValueType::Text),
        ArrowOrder::ByText => Some(match innermost(form) {
            // Whole numbers that don't fit 64 bits with a sign are decimals without a fraction.
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
