//! [`Writer`]: answers as a table, CSV or JSON lines. CSV and JSON leave row by row; a table waits for its last row, which
//! may be the widest.

use std::io::{self, ErrorKind, Write};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::LineDelimitedWriter;
use datafusion::arrow::json::writer::{LineDelimited, WriterBuilder};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::arrow::util::pretty::pretty_format_batches_with_options;

/// What answers look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Table,
    Csv,
    Json,
}

/// One answer on its way out.
pub(super) struct Writer<W: Write> {
    out: W,
    format: Format,
    schema: SchemaRef,
    /// The first line of CSV, until there is another or none comes.
    heading: String,
    /// What a table shows when it is complete.
    waiting: Vec<RecordBatch>,
    /// Whether somebody still reads.
    is_read: bool,
}

impl<W: Write> Writer<W> {
    pub(super) fn start(out: W, format: Format, schema: SchemaRef) -> Self {
        let heading = if format == Format::Csv { csv_heading(&schema) } else { String::new() };
        Writer { out, format, schema, heading, waiting: Vec::new(), is_read: true }
    }

    /// Adds rows. Says whether anybody wants more: a reader that has seen enough, as in `| head`, does not.
    pub(super) fn add(&mut self, batch: RecordBatch) -> io::Result<bool> {
        match self.format {
            Format::Table => self.waiting.push(batch),
            Format::Csv => {
                let mut rows = std::mem::take(&mut self.heading);
                push_csv(&mut rows, &batch).map_err(into_io)?;
                self.write(&rows)?;
            }
            Format::Json => {
                let mut rows = Vec::new();
                let mut json: LineDelimitedWriter<_> =
                    WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(&mut rows);
                json.write(&batch).and_then(|()| json.finish()).map_err(into_io)?;
                self.write_bytes(&rows)?;
            }
        }
        Ok(self.is_read)
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        let heading = std::mem::take(&mut self.heading);
        if !heading.is_empty() {
            self.write(&heading)?;
        }
        if self.format == Format::Table {
            if self.waiting.is_empty() {
                self.waiting.push(RecordBatch::new_empty(self.schema.clone()));
            }
            // Empty text is an empty cell, so NULL has to be said.
            let options = FormatOptions::new().with_null("NULL");
            let table = pretty_format_batches_with_options(&self.waiting, &options).map_err(into_io)?;
            self.write(&format!("{table}\n"))?;
        }
        Ok(())
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.write_bytes(text.as_bytes())
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.out.write_all(bytes).and_then(|()| self.out.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.is_read = false;
                Ok(())
            }
            written => written,
        }
    }
}

fn csv_heading(schema: &SchemaRef) -> String {
    let mut heading = String::new();
    for (position, field) in schema.fields().iter().enumerate() {
        if position > 0 {
            heading.push(',');
        }
        push_quoted(&mut heading, field.name());
    }
    heading.push('\n');
    heading
}

/// The cells of a column, as they are written. Most are texts, which need no formatter.
enum PrintedCells<'a> {
    Texts(&'a StringArray),
    Others(&'a dyn Array, ArrayFormatter<'a>),
}

impl<'a> PrintedCells<'a> {
    fn of(column: &'a ArrayRef, options: &'a FormatOptions<'a>) -> Result<PrintedCells<'a>, ArrowError> {
        match column.as_string_opt() {
            Some(texts) => Ok(PrintedCells::Texts(texts)),
            None => Ok(PrintedCells::Others(column.as_ref(), ArrayFormatter::try_new(column.as_ref(), options)?)),
        }
    }

    fn push(&self, row: usize, rows: &mut String, cell: &mut String) -> Result<(), ArrowError> {
        match self {
            PrintedCells::Texts(texts) if texts.is_valid(row) => push_quoted(rows, texts.value(row)),
            PrintedCells::Others(array, formatter) if array.is_valid(row) => {
                cell.clear();
                formatter.value(row).write(cell).map_err(|_| ArrowError::CsvError(String::new()))?;
                push_quoted(rows, cell);
            }
            PrintedCells::Texts(_) | PrintedCells::Others(..) => {}
        }
        Ok(())
    }
}

fn push_csv(rows: &mut String, batch: &RecordBatch) -> Result<(), ArrowError> {
    let options = FormatOptions::new();
    let columns = batch.columns().iter().map(|column| PrintedCells::of(column, &options));
    let columns = columns.collect::<Result<Vec<PrintedCells<'_>>, ArrowError>>()?;
    let mut cell = String::new();
    for row in 0..batch.num_rows() {
        for (position, column) in columns.iter().enumerate() {
            if position > 0 {
                rows.push(',');
            }
            column.push(row, rows, &mut cell)?;
        }
        rows.push('\n');
    }
    Ok(())
}

/// In quotes where a reader would take it for something else; empty text is no NULL.
fn push_quoted(rows: &mut String, cell: &str) {
    let is_special = |byte: u8| matches!(byte, b',' | b'"' | b'\n' | b'\r');
    if !cell.is_empty() && !cell.bytes().any(is_special) {
        rows.push_str(cell);
        return;
    }
    rows.push('"');
    for character in cell.chars() {
        rows.extend(std::iter::repeat_n(character, if character == '"' { 2 } else { 1 }));
    }
    rows.push('"');
}

/// Arrow's words may hold a cell.
fn into_io(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        _ => io::Error::new(ErrorKind::InvalidData, "an answer of a type that can't be shown"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::Int64Array;

    use super::*;

    fn shown(format: Format) -> String {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("[20,29]"), Some(""), None, Some("a \"b\"")]));
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3), Some(4)]));
        let batch = RecordBatch::try_from_iter([("age", texts), ("n", numbers)]).unwrap();
        let mut out = Vec::new();
        let mut writer = Writer::start(&mut out, format, batch.schema());
        assert!(writer.add(batch).unwrap());
        writer.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_null_is_not_an_empty_text() {
        insta::assert_snapshot!(shown(Format::Csv), @r#"
        age,n
        "[20,29]",1
        "",
        ,3
        "a ""b""",4
        "#);
        insta::assert_snapshot!(shown(Format::Json), @r#"
        {"age":"[20,29]","n":1}
        {"age":"","n":null}
        {"age":null,"n":3}
        {"age":"a \"b\"","n":4}
        "#);
        insta::assert_snapshot!(shown(Format::Table), @r#"
        +---------+------+
        | age     | n    |
        +---------+------+
        | [20,29] | 1    |
        |         | NULL |
        | NULL    | 3    |
        | a "b"   | 4    |
        +---------+------+
        "#);
    }

    #[test]
    fn an_answer_without_rows_shows_its_columns() {
        let batch = RecordBatch::try_from_iter([("age", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]).unwrap();
        let show = |format| {
            let mut out = Vec::new();
            Writer::start(&mut out, format, batch.schema()).finish().unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(show(Format::Csv), "age\n");
        assert_eq!(show(Format::Json), "");
        assert!(show(Format::Table).contains("| age |"));
    }
}
