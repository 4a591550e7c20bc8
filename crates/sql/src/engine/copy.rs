//! `COPY table FROM 'file'`: rows of a file for a stored table.

use std::path::Path;

use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::dataframe::DataFrame;
use datafusion::execution::context::SessionContext;
use datafusion::execution::options::ArrowReadOptions;
use datafusion::logical_expr::{Expr, ident, lit};
use datafusion::prelude::{CsvReadOptions, ParquetReadOptions};

use crate::SqlError;

/// The rows of a file, with the columns of a table found by their names. Columns that the file lacks are NULL.
pub(super) async fn read_file(context: &SessionContext, file: &str, table: &SchemaRef) -> Result<DataFrame, SqlError> {
    let unreadable = |error: std::io::Error| SqlError::File { file: file.to_owned(), kind: error.kind() };
    std::fs::metadata(file).map_err(unreadable)?;
    let extension = Path::new(file).extension().and_then(|extension| extension.to_str()).map(str::to_lowercase);
    let rows = match extension.as_deref() {
        Some("csv") => {
            // Cells are read as what the table keeps, so that 01234 stays what it is.
            let inferred = context.read_csv(file, CsvReadOptions::new().has_header(true)).await?;
            let field = |field: &std::sync::Arc<Field>| match table.field_with_name(field.name()) {
                Ok(known) => known.clone().with_nullable(true),
                Err(_) => field.as_ref().clone(),
            };
            let schema = Schema::new(inferred.schema().fields().iter().map(field).collect::<Vec<_>>());
            context.read_csv(file, CsvReadOptions::new().has_header(true).schema(&schema)).await?
        }
        Some("parquet") => context.read_parquet(file, ParquetReadOptions::default()).await?,
        Some("arrow" | "feather" | "ipc") => context.read_arrow(file, ArrowReadOptions::default()).await?,
        _ => return Err(SqlError::UnknownFormat { file: file.to_owned() }),
    };
    let unknown: Vec<String> = rows
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .filter(|name| table.field_with_name(name).is_err())
        .collect();
    if !unknown.is_empty() {
        return Err(SqlError::OtherColumns { file: file.to_owned(), columns: unknown });
    }
    let column = |field: &std::sync::Arc<Field>| -> Result<Expr, SqlError> {
        match rows.schema().has_column_with_unqualified_name(field.name()) {
            true => Ok(ident(field.name())),
            false => Ok(lit(ScalarValue::try_from(field.data_type())?).alias(field.name())),
        }
    };
    let columns: Result<Vec<Expr>, SqlError> = table.fields().iter().map(column).collect();
    Ok(rows.clone().select(columns?)?)
}
