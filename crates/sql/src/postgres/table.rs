//! [`PostgresTable`]: a table of a server in a query.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::address::Address;
use super::columns::{Column, ColumnLayout};
use super::conditions::Conditions;
use super::scan::{PostgresQuery, postgres_scan};

/// A table of a server.
pub(super) struct PostgresTable {
    address: Arc<Address>,
    layout: ColumnLayout,
    schema: SchemaRef,
}

impl fmt::Debug for PostgresTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresTable({}.{})", self.address.schema, self.address.table)
    }
}

impl PostgresTable {
    pub(super) fn new(address: Arc<Address>, layout: ColumnLayout) -> PostgresTable {
        let schema = Schema::new(layout.columns.iter().map(Column::field).collect::<Vec<Field>>()).into();
        PostgresTable { address, layout, schema }
    }
}

#[async_trait]
impl TableProvider for PostgresTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match Conditions::understands(filter, &self.layout) {
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns: Vec<Column> = match projection {
            Some(projection) => projection.iter().map(|&position| self.layout.columns[position].clone()).collect(),
            None => self.layout.columns.clone(),
        };
        let asked = PostgresQuery {
            columns,
            conditions: Conditions::of(filters, &self.layout),
            encoding: self.layout.encoding,
            // A limit is sent only without filters, because filters are applied again and may remove more rows.
            limit: limit.filter(|_| filters.is_empty()),
            batch_size: session.config().batch_size(),
        };
        Ok(postgres_scan(Arc::clone(&self.address), asked))
    }
}
