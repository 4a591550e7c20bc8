//! [`Traced`]: what a view shows a reader, with the identifier of each row. Only the owner's own figures use it
//! (`EXPLAIN UTILITY`): it is in no catalog of a session, and only counts of it leave the engine.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use kohort_io::write_rows;
use kohort_labels::rewrite::Meanings;

use super::exec::external;
use crate::view::{AView, ViewError};

/// The column with the identifiers.
pub(crate) const TRACE: &str = "identifier under the row";

/// A view with the identifiers under its rows.
pub(crate) struct Traced {
    view: Arc<AView>,
    schema: SchemaRef,
}

impl fmt::Debug for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Traced({})", self.view.definition.name)
    }
}

impl Traced {
    pub(crate) fn new(view: Arc<AView>) -> Traced {
        let definition = &view.definition;
        let data_type = definition.columns[definition.identifier].data_type.clone();
        let own = definition.schema();
        let fields = own.fields().iter().cloned().chain([Arc::new(Field::new(TRACE, data_type, true))]);
        Traced { schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())), view }
    }

    /// What the labels can stand for.
    pub(crate) fn meanings(&self) -> Meanings {
        self.view.meanings().iter().cloned().chain([None]).collect()
    }

    /// What the view shows a query with these filters. They decide what a view with ANSWERS MATCHING shows.
    async fn rows(&self, session: &dyn Session, filters: &[Expr]) -> Result<RecordBatch> {
        let read = self.view.view_read(session, filters).await?;
        let read = read.begun(Vec::new()).await?;
        let private = read.fetch().await?;
        let shown = tokio::task::spawn_blocking(move || read.block(&private)).await;
        let definition = &self.view.definition;
        let Some(verified) = shown.map_err(|_| external(ViewError::fault(&definition.name)))?.map_err(external)? else {
            return Ok(RecordBatch::new_empty(Arc::clone(&self.schema)));
        };
        let rows = &verified.get().block().rows;
        let positions: Vec<usize> = (0..definition.columns.len()).collect();
        let shown = write_rows(&verified, 0..rows.len(), &positions, definition.schema())?;
        let identifier = verified.get().private().batch().column(definition.identifier);
        let under = take(identifier, &UInt32Array::from(rows.clone()), None)?;
        let columns: Vec<ArrayRef> = shown.columns().iter().cloned().chain([under]).collect();
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

#[async_trait]
impl TableProvider for Traced {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        self.view.supports_filters_pushdown(filters)
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let rows = self.rows(session, filters).await?;
        let rows = MemTable::try_new(self.schema(), vec![vec![rows]])?;
        // The query applies the filters again.
        rows.scan(session, projection, &[], limit).await
    }
}
