//! [`CsvBatches`]: the rows of a CSV file as columns of text, block by block.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::blocks::BlockEnd;
use super::record::{Cell, Span};
use super::{CsvFile, RowCounter};
use crate::read::ReadError;

/// The rows of a CSV file. Ends with the first problem.
pub(crate) struct CsvBatches<'a> {
    file: CsvFile<'a>,
    rows: RowCounter,
    schema: SchemaRef,
    /// Whether there are no more rows, because the file or the part of it that can be read has ended.
    is_done: bool,
}

impl<'a> CsvBatches<'a> {
    pub(crate) fn new(file: CsvFile<'a>) -> Self {
        let fields = file.names.iter().map(|name| Field::new(name, DataType::Utf8, true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        CsvBatches { rows: RowCounter::new(file.names.len()), file, schema, is_done: false }
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, ReadError> {
        while !self.is_done {
            let mut spans: Vec<Span> = Vec::new();
            let consumed = std::mem::take(&mut self.file.consumed);
            let block = self.file.blocks.next(consumed).map_err(|source| ReadError::Io { source })?;
            let (next, stop) = self.rows.cut_block(block.text, block.end, self.file.separator, &mut spans);
            if let Some(ragged) = self.rows.ragged.take() {
                return Err(ragged);
            }
            if let Some(stop) = stop {
                return Err(stop.problem(self.rows.next_row()));
            }
            self.is_done = block.end != BlockEnd::More;
            if block.end == BlockEnd::Invalid {
                return Err(self.file.invalid_text(self.rows.next_row()));
            }
            let n_columns = self.rows.n_columns;
            let column = |position: usize| {
                let spans = spans.iter().skip(position).step_by(n_columns);
                texts(block.text, spans, &self.file.null_words)
            };
            let columns: Vec<ArrayRef> =
                if spans.is_empty() { Vec::new() } else { (0..n_columns).map(column).collect() };
            self.file.consumed = next;
            if !columns.is_empty() {
                let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns);
                return Ok(Some(batch.expect("columns are texts, of as many rows each")));
            }
        }
        Ok(None)
    }
}

fn texts<'s>(text: &str, spans: impl Iterator<Item = &'s Span>, null_words: &[String]) -> ArrayRef {
    let (mut column, mut scratch) = (StringBuilder::new(), String::new());
    for span in spans {
        match span.cell(text, &mut scratch) {
            Cell::Bare(bare) if null_words.iter().any(|word| word == bare) => column.append_null(),
            Cell::Bare(text) | Cell::Quoted(text) => column.append_value(text),
        }
    }
    Arc::new(column.finish())
}

impl Iterator for CsvBatches<'_> {
    type Item = Result<RecordBatch, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.next_batch();
        self.is_done |= batch.is_err();
        batch.transpose()
    }
}
