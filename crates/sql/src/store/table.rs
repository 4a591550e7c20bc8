//! [`StoredTable`]: a table of the store in a query.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Constraint, Constraints};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use kohort_store::{ColumnDescription, Condition, ROW_NUMBER, ScanRequest, Store, TableDescription};

use super::conditions::conditions;
use super::scan::stored_scan;

/// A table of the store.
#[derive(Clone)]
pub(crate) struct StoredTable {
    store: Store,
    description: Arc<TableDescription>,
    schema: SchemaRef,
    numbering: Numbering,
    constraints: Constraints,
}

/// Whether rows have their numbers, which are needed to change them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Numbering {
    Without,
    /// As the last column.
    With,
}

impl fmt::Debug for StoredTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoredTable({})", self.description.name)
    }
}

impl StoredTable {
    pub(crate) fn new(store: Store, description: TableDescription) -> StoredTable {
        let fields: Vec<Field> = description.columns.iter().map(ColumnDescription::field).collect();
        let position = |name: &String| description.columns.iter().position(|column| column.name == *name);
        let key: Option<Vec<usize>> = description.primary_key.iter().map(position).collect();
        let keys = key.filter(|key| !key.is_empty()).map(Constraint::PrimaryKey);
        StoredTable {
            store,
            schema: Schema::new(fields).into(),
            numbering: Numbering::Without,
            constraints: Constraints::new_unverified(keys.into_iter().collect()),
            description: Arc::new(description),
        }
    }

    /// The same table with the row numbers as the last column.
    #[must_use]
    pub(crate) fn with_row_numbers(&self) -> StoredTable {
        let number = Field::new(ROW_NUMBER, DataType::Int64, false);
        let fields = self.schema.fields().iter().map(|field| field.as_ref().clone()).chain([number]);
        let schema = Schema::new(fields.collect::<Vec<_>>()).into();
        StoredTable { schema, numbering: Numbering::With, ..self.clone() }
    }

    pub(crate) fn description(&self) -> &TableDescription {
        &self.description
    }
}

#[async_trait]
impl TableProvider for StoredTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn constraints(&self) -> Option<&Constraints> {
        Some(&self.constraints)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        // Conditions let the store use an index. Filters are applied again, because conditions may be weaker.
        let support = |filter: &&Expr| match conditions(filter, &self.description).is_empty() {
            false => TableProviderFilterPushDown::Inexact,
            true => TableProviderFilterPushDown::Unsupported,
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
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        let projection = projection.unwrap_or(&all);
        let schema = Arc::new(self.schema.project(projection)?);
        let conditions = filters.iter().flat_map(|filter| conditions(filter, &self.description));
        let is_number = |position: &usize| self.numbering == Numbering::With && *position == all.len() - 1;
        let number = projection.iter().position(is_number);
        let columns = projection.iter().filter(|position| !is_number(position));
        let request = ScanRequest {
            columns: Some(columns.map(|position| self.schema.field(*position).name().clone()).collect()),
            with_rowid: number.is_some(),
            numbers: None,
            conditions: Condition::that_fit(conditions),
            limit: limit.filter(|_| filters.is_empty()).map(|limit| limit as u64),
            batch_size: session.config().batch_size(),
        };
        Ok(stored_scan(self.store.clone(), self.description.name.clone(), request, schema, number))
    }
}
