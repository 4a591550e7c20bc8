//! [`postgres_scan`]: reads a table of a server.

use std::pin::pin;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use futures::TryStreamExt;
use tokio::sync::mpsc::Sender;
use tokio_postgres::Row;

use super::address::Address;
use super::cells::PostgresCells;
use super::columns::{Column, Encoding};
use super::conditions::Conditions;
use super::connection::PostgresConnection;
use super::{PostgresError, external};
use crate::scan::SourceScan;

/// A query of a table.
#[derive(Clone)]
pub(super) struct PostgresQuery {
    pub(super) columns: Vec<Column>,
    pub(super) conditions: Conditions,
    /// The encoding for which the conditions were made.
    pub(super) encoding: Encoding,
    pub(super) limit: Option<usize>,
    pub(super) batch_size: usize,
}

impl PostgresQuery {
    fn sql(&self, address: &Address) -> String {
        let columns: Vec<String> = self.columns.iter().map(Column::selected).collect();
        let columns = if columns.is_empty() { "true".to_owned() } else { columns.join(", ") };
        let limit = self.limit.map(|limit| format!(" LIMIT {limit}")).unwrap_or_default();
        format!("SELECT {columns} FROM {}{}{limit}", address.quoted(), self.conditions.to_sql())
    }
}

/// Reads a table of a server, in one transaction of its own.
pub(super) fn postgres_scan(address: Arc<Address>, asked: PostgresQuery) -> Arc<dyn ExecutionPlan> {
    let schema: SchemaRef = Schema::new(asked.columns.iter().map(Column::field).collect::<Vec<Field>>()).into();
    let limit = asked.limit.map(|limit| format!(", limit={limit}")).unwrap_or_default();
    let n_conditions = asked.conditions.len();
    let shown = format!("table={}.{}, conditions={n_conditions}{limit}", address.schema, address.table);
    SourceScan::of("PostgresScan", shown, Arc::clone(&schema), move |stream, _| {
        let (sender, address, asked, schema) = (stream.tx(), Arc::clone(&address), asked.clone(), Arc::clone(&schema));
        stream.spawn(async move { read(&address, &asked, &schema, &sender).await.map_err(external) });
        Ok(())
    })
}

/// Reads the rows and sends them batch by batch, until the receiver is gone.
async fn read(
    address: &Address,
    asked: &PostgresQuery,
    schema: &SchemaRef,
    sender: &Sender<Result<RecordBatch>>,
) -> Result<(), PostgresError> {
    let failed = |error| address.problem(&error);
    let connection = PostgresConnection::begin(address).await?;
    if connection.encoding != asked.encoding {
        return Err(changed(address));
    }
    let sent = connection.client.query_typed_raw(&asked.sql(address), asked.conditions.parameters()).await;
    let mut sent = pin!(sent.map_err(failed)?);
    let mut cells: Vec<PostgresCells<'_>> = asked.columns.iter().map(PostgresCells::new).collect();
    let mut n_rows = 0;
    while let Some(row) = sent.try_next().await.map_err(failed)? {
        take(&row, &mut cells, address)?;
        n_rows += 1;
        if n_rows == asked.batch_size {
            if sender.send(batch(&mut cells, schema, n_rows)).await.is_err() {
                return Ok(());
            }
            n_rows = 0;
        }
    }
    if n_rows > 0 {
        // The receiver may be gone.
        let _ = sender.send(batch(&mut cells, schema, n_rows)).await;
    }
    Ok(())
}

/// The error that the table has changed since its columns were read.
fn changed(address: &Address) -> PostgresError {
    PostgresError::Changed { schema: address.schema.clone(), table: address.table.clone() }
}

fn take(row: &Row, cells: &mut [PostgresCells<'_>], address: &Address) -> Result<(), PostgresError> {
    for (place, cells) in cells.iter_mut().enumerate() {
        if !cells.column.sent_as().contains(row.columns()[place].type_()) {
            return Err(changed(address));
        }
        cells.push(row.try_get(place).map_err(|error| address.problem(&error))?)?;
    }
    Ok(())
}

fn batch(cells: &mut [PostgresCells<'_>], schema: &SchemaRef, n_rows: usize) -> Result<RecordBatch> {
    let columns: Vec<ArrayRef> = cells.iter_mut().map(PostgresCells::finish).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(n_rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}
