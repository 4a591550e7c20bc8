//! [`TableBatches`]: the rows of a file of any format, in its order, batch by batch.
//!
//! For callers that take rows one after another and know their types: no type is inferred, and cells of CSV are texts.

use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use kohort_model::Silent;
use kohort_model::spec::CsvSpec;

use super::arrow::ArrowBatches;
use super::csv::CsvBatches;
use super::error::ReadError;
use super::open::OpenTable;
use crate::InputFormat;

/// The rows of a file. They end with the first problem.
pub struct TableBatches {
    source: Source,
}

enum Source {
    Csv(CsvBatches<'static>),
    Arrow(ArrowBatches<'static>),
}

impl TableBatches {
    /// Opens a file, whose name tells its format.
    ///
    /// # Errors
    /// If it can't be read, or its columns can't be known.
    pub fn open(path: &Path) -> Result<TableBatches, ReadError> {
        let format = InputFormat::of_path(path).ok_or(ReadError::UnknownFormat)?;
        let source = match OpenTable::open(path, Some(format), &CsvSpec::default(), &Silent)? {
            OpenTable::Csv(file) => Source::Csv(CsvBatches::new(file)),
            OpenTable::Arrow(file) => Source::Arrow(file.into_batches()?),
            OpenTable::Lazy(_) => unreachable!("a file is opened, and lazy columns are in memory"),
        };
        Ok(TableBatches { source })
    }

    /// The columns of the batches.
    pub fn schema(&self) -> &SchemaRef {
        match &self.source {
            Source::Csv(batches) => batches.schema(),
            Source::Arrow(batches) => batches.schema(),
        }
    }
}

impl Iterator for TableBatches {
    type Item = Result<RecordBatch, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.source {
            Source::Csv(batches) => batches.next(),
            Source::Arrow(batches) => batches.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use arrow_array::Array;
    use arrow_array::cast::AsArray;

    use super::*;

    /// The cells of a file, row by row, and the problem that ends it.
    fn cells(path: &Path) -> (Vec<Vec<Option<String>>>, Option<ReadError>) {
        let mut rows = Vec::new();
        for batch in TableBatches::open(path).unwrap() {
            let batch = match batch {
                Ok(batch) => batch,
                Err(problem) => return (rows, Some(problem)),
            };
            for row in 0..batch.num_rows() {
                let cell = |column: &arrow_array::ArrayRef| {
                    let texts = column.as_string::<i32>();
                    texts.is_valid(row).then(|| texts.value(row).to_owned())
                };
                rows.push(batch.columns().iter().map(cell).collect());
            }
        }
        (rows, None)
    }

    #[test]
    fn a_quoted_empty_cell_is_text_and_a_bare_one_null_in_every_compression() {
        let folder = tempfile::tempdir().unwrap();
        let text = b"a;b\r\n\"\";\r\n;\"x;\"\"y\"\"\"\r\n\r\n";
        let plain = folder.path().join("t[1].CSV");
        std::fs::write(&plain, text).unwrap();
        let gzip = folder.path().join("t.csv.gz");
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        std::fs::write(&gzip, encoder.finish().unwrap()).unwrap();
        let zstd = folder.path().join("t.csv.zst");
        std::fs::write(&zstd, zstd::encode_all(&text[..], 1).unwrap()).unwrap();
        let some = |text: &str| Some(text.to_owned());
        for path in [plain, gzip, zstd] {
            let (rows, problem) = cells(&path);
            assert_eq!(rows, [[some(""), None], [None, some("x;\"y\"")]]);
            assert!(problem.is_none());
        }
    }

    #[test]
    fn a_file_of_many_blocks_comes_whole_and_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        let line = |row: usize| format!("{row},{}\n", "x".repeat(row % 97));
        let text: String = std::iter::once("n,x\n".to_owned()).chain((0..60_000).map(line)).collect();
        assert!(text.len() > 2 << 20);
        std::fs::write(&path, text).unwrap();
        assert!(TableBatches::open(&path).unwrap().count() > 2);
        let (rows, problem) = cells(&path);
        assert!(problem.is_none());
        assert_eq!(rows.len(), 60_000);
        for (row, found) in rows.iter().enumerate() {
            assert_eq!(found[0].as_deref(), Some(row.to_string().as_str()));
            assert_eq!(found[1].as_ref().map_or(0, String::len), row % 97);
        }
    }

    #[test]
    fn a_problem_is_named_by_its_row_in_the_file_and_ends_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        let start: String = std::iter::once("n,x\n").chain(std::iter::repeat_n("some,cells\n", 200_000)).collect();
        for (end, said) in [
            ("a,b,secret\n", "row 200001: expected 2 cells, found 3"),
            ("a,\"secret", "row 200001: a quote opens and is never closed"),
            ("a,\"secret\"x\n", "row 200001: text after a closing quote"),
        ] {
            std::fs::write(&path, format!("{start}{end}")).unwrap();
            let problem = cells(&path).1.unwrap();
            assert_eq!(problem.to_string(), said);
            let mut batches = TableBatches::open(&path).unwrap();
            assert!(batches.by_ref().any(|batch| batch.is_err()));
            assert!(batches.next().is_none());
        }
        assert!(matches!(TableBatches::open(Path::new("-")), Err(ReadError::UnknownFormat)));
    }
}
