//! [`Writer`]: prints answers as a table, CSV or JSON lines. CSV and JSON are printed row by row. A table is printed at
//! the end, because the last row may be the widest.

use std::io::{self, ErrorKind, Write};

use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::LineDelimitedWriter;
use datafusion::arrow::json::writer::{LineDelimited, WriterBuilder};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::arrow::util::pretty::pretty_format_batches_with_options;

/// The format of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Table,
    Csv,
    Json,
}

/// Prints one answer.
pub(super) struct Writer<W: Write> {
    out: W,
    format: Format,
    schema: SchemaRef,
    /// The first line of CSV, until it is printed.
    heading: String,
    /// The rows of a table, until it is complete.
    waiting: Vec<RecordBatch>,
    /// Whether the output is still open.
    is_read: bool,
}

impl<W: Write> Writer<W> {
    pub(super) fn start(out: W, format: Format, schema: SchemaRef) -> Self {
        let heading = if format == Format::Csv { csv_heading(&schema) } else { String::new() };
        Writer { out, format, schema, heading, waiting: Vec::new(), is_read: true }
    }

    /// Adds rows, and returns whether more are wanted. A closed pipe, as after `| head`, wants no more.
    pub(super) fn add(&mut self, batch: RecordBatch) -> io::Result<bool> {
        match self.format {
            Format::Table => self.waiting.push(batch),
            Format::Csv => {
                let rows = std::mem::take(&mut self.heading) + &csv_rows(&batch).map_err(into_io)?;
                self.write(rows.as_bytes())?;
            }
            Format::Json => {
                let mut rows = Vec::new();
                let mut json: LineDelimitedWriter<_> =
                    WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(&mut rows);
                json.write(&batch).and_then(|()| json.finish()).map_err(into_io)?;
                self.write(&rows)?;
            }
        }
        Ok(self.is_read)
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        let heading = std::mem::take(&mut self.heading);
        self.write(heading.as_bytes())?;
        if self.format == Format::Table {
            if self.waiting.is_empty() {
                self.waiting.push(RecordBatch::new_empty(self.schema.clone()));
            }
            // An empty text is an empty cell, so NULL needs a word.
            let options = FormatOptions::new().with_null("NULL");
            let table = pretty_format_batches_with_options(&self.waiting, &options).map_err(into_io)?;
            self.write(format!("{table}\n").as_bytes())?;
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
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
    let names: Vec<String> = schema.fields().iter().map(|field| quoted(field.name())).collect();
    names.join(",") + "\n"
}

fn csv_rows(batch: &RecordBatch) -> Result<String, ArrowError> {
    let options = FormatOptions::new();
    let columns = batch.columns().iter();
    let columns = columns.map(|column| Ok((column, ArrayFormatter::try_new(column.as_ref(), &options)?)));
    let columns = columns.collect::<Result<Vec<_>, ArrowError>>()?;
    let mut rows = String::new();
    for row in 0..batch.num_rows() {
        for (position, (column, formatter)) in columns.iter().enumerate() {
            if position > 0 {
                rows.push(',');
            }
            if column.is_valid(row) {
                rows.push_str(&quoted(&formatter.value(row).try_to_string()?));
            }
        }
        rows.push('\n');
    }
    Ok(rows)
}

/// A cell, with quotes if necessary. An empty text is quoted, because an empty cell means NULL.
fn quoted(cell: &str) -> String {
    match cell.is_empty() || cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}

/// Converts an error without Arrow's message, which may contain a cell.
fn into_io(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        _ => io::Error::new(ErrorKind::InvalidData, "the answer has a type that can't be printed"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray};

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
