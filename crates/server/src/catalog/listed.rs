//! [`Listed`]: the content of a session's catalog, for the tables of PostgreSQL's catalog.
//!
//! These tables are part of the session's catalog themselves. So they have only a weak reference to it, because a
//! strong one would be a cycle that is never freed.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::CatalogProviderList;
use datafusion::error::Result;
use datafusion::logical_expr::TableType;
use datafusion_pg_catalog::pg_catalog::catalog_info::CatalogInfo;

/// The catalogs of a session, as long as the session exists.
#[derive(Clone, Debug)]
pub(super) struct Listed(Weak<dyn CatalogProviderList>);

impl Listed {
    pub(super) fn new(catalogs: &Arc<dyn CatalogProviderList>) -> Listed {
        Listed(Arc::downgrade(catalogs))
    }
}

#[async_trait]
impl CatalogInfo for Listed {
    async fn catalog_names(&self) -> Result<Vec<String>> {
        match self.0.upgrade() {
            Some(catalogs) => CatalogInfo::catalog_names(&catalogs).await,
            None => Ok(Vec::new()),
        }
    }

    async fn schema_names(&self, catalog: &str) -> Result<Option<Vec<String>>> {
        match self.0.upgrade() {
            Some(catalogs) => catalogs.schema_names(catalog).await,
            None => Ok(None),
        }
    }

    async fn table_names(&self, catalog: &str, schema: &str) -> Result<Option<Vec<String>>> {
        match self.0.upgrade() {
            Some(catalogs) => catalogs.table_names(catalog, schema).await,
            None => Ok(None),
        }
    }

    async fn table_schema(&self, catalog: &str, schema: &str, table: &str) -> Result<Option<SchemaRef>> {
        match self.0.upgrade() {
            Some(catalogs) => catalogs.table_schema(catalog, schema, table).await,
            None => Ok(None),
        }
    }

    async fn table_type(&self, catalog: &str, schema: &str, table: &str) -> Result<Option<TableType>> {
        match self.0.upgrade() {
            Some(catalogs) => catalogs.table_type(catalog, schema, table).await,
            None => Ok(None),
        }
    }
}
