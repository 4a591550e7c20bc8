//! `IMPORT POLICY`: a policy file as a table of choices.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::datasource::MemTable;
use kohort_store::{TableDescription, TableKind};

use super::catalog;
use super::stored::columns_of;
use super::transactions::{Transaction, blocking};
use crate::SqlError;
use crate::engine::Session;
use crate::engine::folder::IMPORTED;
use crate::engine::session::{Outcome, counted};
use crate::policy::{self, ImportDefaults};
use crate::store::StoredTable;

/// Reads a policy file into a table. The table may be imported again, but no other table is replaced.
pub(crate) async fn import_policy(
    session: &mut Session,
    file: &str,
    table: TableReference,
    defaults: &ImportDefaults,
) -> Result<Outcome, SqlError> {
    let batch = policy::import_policy(file.as_ref(), defaults, session.shared.calendar.today())?;
    let name = table.table().to_owned();
    let done = format!("imported {} into {name}", counted(batch.num_rows(), "rule"));
    let mut change = catalog::change_catalog(session).await?;
    session.shared.check_name(&name)?;
    if session.context.table_exist(table.clone())? && !session.shared.imported.lock().contains(&name) {
        return Err(SqlError::Taken { name });
    }
    let policies: Arc<dyn TableProvider> = match change.transaction() {
        Some(transaction) => keep_policies(session, transaction, &name, batch).await?,
        None => Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]])?),
    };
    let is_kept = change.transaction().is_some();
    catalog::publish(session, change, move |shared| {
        shared.register(&table, policies);
        shared.imported.lock().insert(name.clone());
        if !is_kept {
            shared.generations.bump(&name);
        }
    })
    .await?;
    Ok(Outcome::Done(done))
}

/// Stores policies as a table of the data folder, in place of an earlier import.
async fn keep_policies(
    session: &Session,
    transaction: &mut Transaction,
    name: &str,
    batch: RecordBatch,
) -> Result<Arc<dyn TableProvider>, SqlError> {
    let Some(store) = &session.shared.store else { return Err(SqlError::NoDataFolder) };
    if let Some(view) = session.shared.views_of_table(name).into_iter().next() {
        return Err(SqlError::InUse { name: name.to_owned(), view });
    }
    let description = TableDescription {
        name: name.to_owned(),
        columns: columns_of(&batch.schema(), &[]),
        primary_key: Vec::new(),
        indexes: Vec::new(),
        kind: TableKind::Base,
    };
    let table = StoredTable::new(store.clone(), description.clone());
    transaction.make_room(name)?;
    transaction.changed.insert(name.to_owned());
    transaction.change.put_record(IMPORTED, name, "")?;
    let (change, name) = (Arc::clone(&transaction.change), name.to_owned());
    blocking(move || {
        if change.table(&name)?.is_some() {
            change.drop_table(&name)?;
        }
        change.create_table(&description)?;
        change.insert(&name, &batch).map(drop)
    })
    .await?;
    Ok(Arc::new(table))
}
