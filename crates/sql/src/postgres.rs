//! Tables of a PostgreSQL server: `CREATE EXTERNAL TABLE t STORED AS POSTGRES LOCATION 'postgres://user@host/database'`.
//!
//! | option | says | without it |
//! | --- | --- | --- |
//! | `table` | the table's name there | the name it gets here |
//! | `schema` | where it stands there | `public` |
//! | `passfile` | a file of passwords as `~/.pgpass` is one | `PGPASSWORD`, `PGPASSFILE`, `~/.pgpass` |
//! | `root_certificate` | a PEM file of authorities that the server's certificate is held against | those of the system |
//!
//! Columns, comparisons with values and limits are asked of the server; everything pushed down is applied again here, so
//! that it may find more than is meant and never less.
//!
//! # Guarantee
//! Each scan is one read-only transaction, repeatable read, and so one state of the table. Nothing is ever written there.
//! A password is in no statement, plan, message or data folder: a location that holds one is refused. A server that is
//! not this machine is spoken to by TLS with a verified certificate, unless the location says `sslmode=disable`. No
//! message of the server is passed on, for it may quote a cell.
//!
//! # Deviations
//! The server tells nobody that a table changed. A view keeps no rows of it: it reads them for each query and shows a
//! class only as it was verified, and it reads its choices again.

mod address;
mod cells;
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
pub use error::PostgresError;
use table::PostgresTable;

/// The word after `STORED AS`.
pub const POSTGRES: &str = "POSTGRES";

/// Makes tables of `STORED AS POSTGRES`.
#[derive(Debug)]
pub struct PostgresTables;

#[async_trait]
impl TableProviderFactory for PostgresTables {
    async fn create(&self, _: &dyn Session, statement: &CreateExternalTable) -> Result<Arc<dyn TableProvider>> {
        let made = async {
            if !statement.schema.fields().is_empty() {
                return Err(PostgresError::ColumnsGiven);
            }
            let [location] = statement.locations.as_slice() else {
                return Err(PostgresError::Location { fault: "is not one" });
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
