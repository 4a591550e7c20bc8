//! `COPY table FROM 'file'`: rows of a file for a stored table.
//!
//! Files are read as the command `kohort` reads them. In a CSV file a quoted empty cell is an empty text, and a bare empty cell
//! is NULL. Types are not guessed: cells are converted to the types of the table. The path names one file, whatever characters
//! it has. Rows come in the order of the file, so an error can name the row by its number.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{Field, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use kohort_io::{FileColumns, ReadError, TableBatches};
use kohort_store::StoreError;

use super::stored::nullable;
use crate::SqlError;

/// Batches that are read ahead of those that are inserted.
const WAITING_BATCHES: usize = 2;

/// The rows of a file with the columns of a table, which are found by name. A column that the file lacks is NULL.
pub(crate) fn read_file(file: &str, table: &SchemaRef) -> SendableRecordBatchStream {
    let schema = nullable(table);
    let mut builder = RecordBatchReceiverStreamBuilder::new(Arc::clone(&schema), WAITING_BATCHES);
    let (sender, file) = (builder.tx(), file.to_owned());
    builder.spawn_blocking(move || {
        let mut rows = FileRows::open(file, schema)?;
        while let Some(batch) = rows.next_batch()? {
            // The statement may have ended.
            if sender.blocking_send(Ok(batch)).is_err() {
                break;
            }
        }
        Ok(())
    });
    builder.build()
}

/// A file that is being read into a table.
struct FileRows {
    file: String,
    batches: TableBatches,
    /// The columns of the table.
    schema: SchemaRef,
    /// For each column of the table, its position in the file.
    positions: Vec<Option<usize>>,
    /// Rows that were read so far.
    n_rows: u64,
}

impl FileRows {
    fn open(file: String, schema: SchemaRef) -> Result<FileRows, SqlError> {
        let batches = TableBatches::open(Path::new(&file)).map_err(|problem| unreadable(&file, problem))?;
        let found = Arc::clone(batches.schema());
        let mut positions = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let is_it = |other: &Arc<Field>| other.name() == field.name();
            let places: Vec<usize> = (0..found.fields().len()).filter(|&at| is_it(&found.fields()[at])).collect();
            if places.len() > 1 {
                let columns = FileColumns::by_position(places);
                return Err(unreadable(&file, ReadError::DuplicateColumn { columns }));
            }
            positions.push(places.first().copied());
        }
        let (n_columns, n_known) = (found.fields().len(), positions.iter().flatten().count());
        if n_known < n_columns {
            return Err(SqlError::OtherColumns { file, n_unknown: n_columns - n_known, n_columns });
        }
        Ok(FileRows { file, batches, schema, positions, n_rows: 0 })
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        let Some(batch) = self.batches.next().transpose().map_err(|problem| unreadable(&self.file, problem))? else {
            return Ok(None);
        };
        let column = |(field, position): (&Arc<Field>, &Option<usize>)| match position {
            Some(position) => as_stored(batch.column(*position), field).map_err(|error| error.after_rows(self.n_rows)),
            None => Ok(new_null_array(field.data_type(), batch.num_rows())),
        };
        let columns = self.schema.fields().iter().zip(&self.positions).map(column).collect::<Result<Vec<_>, _>>()?;
        self.n_rows += batch.num_rows() as u64;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let made = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options);
        made.map(Some).map_err(|error| SqlError::while_running(error.into()))
    }
}

/// A column of a file, converted to the type of the table's column. If a value does not fit, the error names its row and
/// does not show it.
fn as_stored(column: &ArrayRef, field: &Field) -> Result<ArrayRef, StoreError> {
    let does_not_fit = |row: Option<u64>| StoreError::DoesNotFit {
        column: field.name().clone(),
        data_type: field.data_type().clone(),
        row,
    };
    let options = CastOptions { safe: true, ..CastOptions::default() };
    let stored = cast_with_options(column, field.data_type(), &options).map_err(|_| does_not_fit(None))?;
    if stored.logical_null_count() > column.logical_null_count() {
        let (before, after) = (column.logical_nulls(), stored.logical_nulls());
        let is_null = |nulls: &Option<datafusion::arrow::buffer::NullBuffer>, row: usize| {
            nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
        };
        let lost = (0..column.len()).find(|row| is_null(&after, *row) && !is_null(&before, *row));
        return Err(does_not_fit(lost.map(|row| row as u64 + 1)));
    }
    Ok(stored)
}

fn unreadable(file: &str, problem: ReadError) -> SqlError {
    let file = file.to_owned();
    match problem {
        ReadError::Io { source } => SqlError::File { file, kind: source.kind() },
        ReadError::UnknownFormat => SqlError::UnknownFormat { file },
        problem => SqlError::Unreadable { file, problem },
    }
}
