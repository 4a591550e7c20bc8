//! [`Completed`]: the tables of `datafusion-pg-catalog`, with the missing columns of `pg_class` added.
//!
//! SQLAlchemy and psql read `reloptions`, and other clients read all columns. Our tables have no options
//! (`reloptions`), and `SHOW GRANTS` shows privileges instead of `relacl`, so both columns are NULL. `pg_class` stays a
//! streaming table instead of a view, so that its queries are planned and checked like those of the other catalog
//! tables.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::new_null_array;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion_pg_catalog::pg_catalog::context::EmptyContextProvider;
use datafusion_pg_catalog::pg_catalog::{PgCatalogSchemaProvider, PgCatalogTable};
use futures::StreamExt;

use super::listed::Listed;

const PG_CLASS: &str = "pg_class";

/// The missing columns, which are the last ones in PostgreSQL's `pg_class`.
const LACKING: [&str; 2] = ["relacl", "reloptions"];

/// PostgreSQL's catalog for one session.
#[derive(Debug)]
pub(super) struct Completed(pub(super) PgCatalogSchemaProvider<Listed, EmptyContextProvider>);

#[async_trait]
impl SchemaProvider for Completed {
    fn table_names(&self) -> Vec<String> {
        self.0.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if name.eq_ignore_ascii_case(PG_CLASS)
            && let Some(PgCatalogTable::Dynamic(given)) = self.0.build_table_by_name(name)?
        {
            let relations = Relations::new(given);
            let table = StreamingTable::try_new(Arc::clone(&relations.schema), vec![Arc::new(relations)])?;
            return Ok(Some(Arc::new(table)));
        }
        self.0.table(name).await
    }

    fn table_exist(&self, name: &str) -> bool {
        self.0.table_exist(name)
    }
}

/// The rows of `pg_class`, with all its columns.
#[derive(Debug)]
struct Relations {
    given: Arc<dyn PartitionStream>,
    schema: SchemaRef,
}

impl Relations {
    fn new(given: Arc<dyn PartitionStream>) -> Relations {
        let text = Arc::new(Field::new_list_field(DataType::Utf8, true));
        let lacking = LACKING.iter().filter(|name| given.schema().column_with_name(name).is_none());
        let lacking = lacking.map(|name| Arc::new(Field::new(*name, DataType::List(Arc::clone(&text)), true)));
        let fields: Vec<Arc<Field>> = given.schema().fields().iter().cloned().chain(lacking).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, given.schema().metadata().clone()));
        Relations { given, schema }
    }
}

impl PartitionStream for Relations {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.schema);
        let completed = move |batch: Result<RecordBatch>| {
            let batch = batch?;
            let lacking = schema.fields().iter().skip(batch.num_columns());
            let lacking = lacking.map(|field| new_null_array(field.data_type(), batch.num_rows()));
            let columns = batch.columns().iter().cloned().chain(lacking).collect();
            Ok(RecordBatch::try_new(Arc::clone(&schema), columns)?)
        };
        let batches = self.given.execute(context).map(completed);
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches))
    }
}
