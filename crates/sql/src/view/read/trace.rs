//! [`Traced`]: everything that a view shows a reader, with the identifier of each row. Only the owner's own figures use it
//! (`EXPLAIN UTILITY`): it is in no catalog, and only counts of it leave the engine.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use kohort_io::write_rows;
use kohort_labels::rewrite::Meanings;

use super::exec::external;
use crate::view::AView;

/// The column with the identifiers.
pub(crate) const TRACE: &str = "identifier under the row";

/// A view with the identifiers under its rows.
#[derive(Debug)]
pub(crate) struct Traced {
    rows: MemTable,
    meanings: Meanings,
}

impl Traced {
    /// Reads a whole view.
    pub(crate) async fn read(view: &AView, session: &dyn Session) -> Result<Traced> {
        let read = view.view_read(session, &[]).await?;
        let read = read.begun(Vec::new()).await?;
        let private = read.fetch().await?;
        let data_type = private.column(read.version.definition.identifier).data_type().clone();
        let (read, verified) = tokio::task::spawn_blocking(move || {
            let verified = read.block(&private);
            (read, verified)
        })
        .await
        .map_err(|error| datafusion::error::DataFusionError::External(Box::new(error)))?;
        let verified = verified.map_err(external)?;
        let definition = &read.version.definition;
        let positions: Vec<usize> = (0..definition.columns.len()).collect();
        let field = Field::new(TRACE, data_type, true);
        let fields: Vec<Arc<Field>> = definition.schema().fields().iter().cloned().chain([Arc::new(field)]).collect();
        let schema: SchemaRef = Schema::new(fields).into();
        let batch = match &verified {
            None => RecordBatch::new_empty(Arc::clone(&schema)),
            Some(verified) => {
                let rows = &verified.get().block().rows;
                let shown = write_rows(verified, 0..rows.len(), &positions, definition.schema())?;
                let identifier = verified.get().private().batch().column(definition.identifier);
                let under = take(identifier, &UInt32Array::from(rows.clone()), None)?;
                let columns: Vec<ArrayRef> = shown.columns().iter().cloned().chain([under]).collect();
                RecordBatch::try_new(Arc::clone(&schema), columns)?
            }
        };
        let meanings = view.meanings().iter().cloned().chain([None]).collect();
        Ok(Traced { rows: MemTable::try_new(schema, vec![vec![batch]])?, meanings })
    }

    /// What the labels can stand for.
    pub(crate) fn meanings(&self) -> Meanings {
        Arc::clone(&self.meanings)
    }
}

#[async_trait]
impl TableProvider for Traced {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.rows.scan(session, projection, filters, limit).await
    }
}
