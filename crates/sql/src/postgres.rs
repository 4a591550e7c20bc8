//! Tables of a PostgreSQL server: `CREATE EXTERNAL TABLE t STORED AS POSTGRES LOCATION
//! 'postgres://user@host/database'`.
//!
//! | option | meaning | default |
//! | --- | --- | --- |
//! | `table` | the table's name on the server | its name here |
//! | `schema` | the table's schema on the server | `public` |
//! | `passfile` | a file of passwords in the format of `~/.pgpass` | `PGPASSWORD`, `PGPASSFILE`, `~/.pgpass` |
//! | `root_certificate` | a PEM file of authorities that may sign the server's certificate | those of the system |
//!
//! The choice of columns, comparisons with values and limits are sent to the server. All conditions are applied again
//! here, so the server may return too many rows, but never too few.
//!
//! # Guarantee
//! Each scan is one read-only transaction with repeatable reads, so it sees one state of the table. Nothing is ever
//! written to the server. No statement, plan, message or data folder contains a password: a location with one is
//! refused. A server on another machine must use TLS with a verified certificate, unless the location says
//! `sslmode=disable`. Messages of the server are not shown, because they may contain a cell.
//!
//! # Deviations
//! The server does not report changes of a table. So a view keeps no rows of it: each query reads the rows and the
//! choices again, and a class is shown only as it was verified.

mod address;
mod cells;
mod client;
mod columns;
mod conditions;
mod connection;
mod error;
mod passwords;
mod scan;
mod table;

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::CreateExternalTable;

use address::Address;
pub use client::{ServerAddress, ServerClient};
pub use error::PostgresError;
use table::PostgresTable;

/// The word after `STORED AS`.
pub(crate) const POSTGRES: &str = "POSTGRES";

/// Creates tables for `STORED AS POSTGRES`.
#[derive(Debug)]
pub(crate) struct PostgresTables;

#[async_trait]
impl TableProviderFactory for PostgresTables {
    async fn create(&self, _: &dyn Session, statement: &CreateExternalTable) -> Result<Arc<dyn TableProvider>> {
        let made = async {
            if !statement.schema.fields().is_empty() {
                return Err(PostgresError::ColumnsGiven);
            }
            let [location] = statement.locations.as_slice() else {
                return Err(PostgresError::Location { fault: "is not valid" });
            };
            let address = Address::parse(location, &statement.options, statement.name.table())?;
            let layout = columns::of_table(&address).await?;
            Ok(Arc::new(PostgresTable::new(Arc::new(address), layout)) as Arc<dyn TableProvider>)
        };
        made.await.map_err(external)
    }
}

fn external(problem: PostgresError) -> DataFusionError {
    DataFusionError::External(Box::new(problem))
}
