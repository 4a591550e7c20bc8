//! Writes a part of a Parquet file to another file, so that a spec need not name columns that it does not use.

use std::error::Error;
use std::fs::File;
use std::path::Path;

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{ArrowWriter, ProjectionMask};

const BATCH_ROWS: usize = 1 << 16;

/// Writes some columns of the first rows of a file to another.
pub(crate) fn write(source: &Path, columns: &[&str], n_rows: usize, target: &Path) -> Result<(), Box<dyn Error>> {
    let file = File::open(source).map_err(|error| format!("{}: {error}", source.display()))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file)?;
    let mask = ProjectionMask::columns(builder.parquet_schema(), columns.iter().copied());
    let batches = builder.with_projection(mask).with_limit(n_rows).with_batch_size(BATCH_ROWS).build()?;
    let mut writer: Option<ArrowWriter<File>> = None;
    for batch in batches {
        let batch = batch?;
        let writer = match &mut writer {
            Some(writer) => writer,
            None => writer.insert(ArrowWriter::try_new(File::create(target)?, batch.schema(), None)?),
        };
        writer.write(&batch)?;
    }
    writer.ok_or("there are no rows to write")?.close()?;
    Ok(())
}
