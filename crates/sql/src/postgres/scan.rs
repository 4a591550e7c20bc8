//! [`PostgresScan`]: reads a table of a server.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::TryStreamExt;
use tokio::sync::mpsc::Sender;
use tokio_postgres::Row;

use super::address::Address;
use super::cells::PostgresCells;
use super::columns::{Column, Encoding};
use super::conditions::Conditions;
use super::connection::PostgresConnection;
use super::{PostgresError, external};
use crate::leaf::{methods_of_leaf, properties_of_leaf};

/// Batches that may wait for the operator above.
const WAITING_BATCHES: usize = 2;

/// What is asked of a table.
#[derive(Clone)]
pub(super) struct PostgresQuery {
    pub(super) columns: Vec<Column>,
    pub(super) conditions: Conditions,
    /// That the conditions were made for.
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
pub(super) struct PostgresScan {
    address: Arc<Address>,
    asked: PostgresQuery,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl PostgresScan {
    pub(super) fn new(address: Arc<Address>, asked: PostgresQuery) -> PostgresScan {
        let schema: SchemaRef = Schema::new(asked.columns.iter().map(Column::field).collect::<Vec<Field>>()).into();
        let properties = properties_of_leaf(&schema, 1);
        PostgresScan { address, asked, schema, properties }
    }
}

impl fmt::Debug for PostgresScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresScan({}.{})", self.address.schema, self.address.table)
    }
}

impl DisplayAs for PostgresScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (schema, table, n_conditions) = (&self.address.schema, &self.address.table, self.asked.conditions.len());
        write!(f, "PostgresScan: table={schema}.{table}, conditions={n_conditions}")?;
        self.asked.limit.map_or(Ok(()), |limit| write!(f, ", limit={limit}"))
    }
}

impl ExecutionPlan for PostgresScan {
    fn name(&self) -> &'static str {
        "PostgresScan"
    }

    methods_of_leaf!();

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let mut builder = RecordBatchReceiverStreamBuilder::new(Arc::clone(&self.schema), WAITING_BATCHES);
        let (sender, address, asked) = (builder.tx(), Arc::clone(&self.address), self.asked.clone());
        let schema = Arc::clone(&self.schema);
        builder.spawn(async move { read(&address, &asked, &schema, &sender).await.map_err(external) });
        Ok(builder.build())
    }
}

/// Sends what is asked, batch by batch, as long as somebody listens.
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
    let mut cells: Vec<PostgresCells> = asked.columns.iter().map(PostgresCells::new).collect();
    let mut n_rows = 0;
    while let Some(row) = sent.try_next().await.map_err(failed)? {
        take(&row, &asked.columns, &mut cells, address)?;
        n_rows += 1;
        if n_rows == asked.batch_size {
            if sender.send(batch(&mut cells, schema, n_rows)).await.is_err() {
                return Ok(());
            }
            n_rows = 0;
        }
    }
    if n_rows > 0 {
        // Nobody may be listening any more.
        let _ = sender.send(batch(&mut cells, schema, n_rows)).await;
    }
    Ok(())
}

/// The table is not what it was when it was first looked at.
fn changed(address: &Address) -> PostgresError {
    PostgresError::Changed { schema: address.schema.clone(), table: address.table.clone() }
}

fn take(row: &Row, columns: &[Column], cells: &mut [PostgresCells], address: &Address) -> Result<(), PostgresError> {
    for (place, (column, cells)) in columns.iter().zip(cells).enumerate() {
        if !column.sent_as().contains(row.columns()[place].type_()) {
            return Err(changed(address));
        }
        cells.push(row.try_get(place).map_err(|error| address.problem(&error))?, column)?;
    }
    Ok(())
}

fn batch(cells: &mut [PostgresCells], schema: &SchemaRef, n_rows: usize) -> Result<RecordBatch> {
    let columns: Vec<ArrayRef> = cells.iter_mut().map(PostgresCells::finish).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(n_rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}
