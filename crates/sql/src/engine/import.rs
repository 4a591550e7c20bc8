//! `IMPORT POLICY`: a policy file as a table of choices.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::TableReference;
use datafusion::datasource::MemTable;
use kohort_store::TableKind;

use super::Session;
use super::session::{Outcome, counted};
use super::stored::columns_of;
use super::transactions::blocking;
use crate::SqlError;
use crate::policy::{ImportDefaults, import_policy};
use crate::store::StoredTable;

impl Session {
    /// Reads a policy file into a table. It may be imported again, but takes no other table's place.
    pub(super) async fn import_policy(
        &mut self,
        file: &str,
        table: TableReference,
        defaults: &ImportDefaults,
    ) -> Result<Outcome, SqlError> {
        let today = (self.shared.clock)().date_naive();
        let batch = import_policy(file.as_ref(), defaults, today)?;
        let n_rows = batch.num_rows();
        let name = table.table().to_owned();
        let is_there = self.context.table_exist(table.clone())?;
        if is_there && !self.shared.imported().contains(&name) {
            return Err(SqlError::Taken { name });
        }
        if self.shared.data.is_some() {
            self.keep_policies(&name, batch).await?;
        } else {
            let policies = MemTable::try_new(batch.schema(), vec![vec![batch]])?;
            self.context.deregister_table(table.clone())?;
            self.context.register_table(table, Arc::new(policies))?;
            self.shared.generations.bump(&name);
        }
        self.shared.imported().insert(name.clone());
        Ok(Outcome::Done(format!("imported {} into {name}", counted(n_rows, "rule"))))
    }

    /// Keeps policies as a stored table, in place of what was imported before.
    async fn keep_policies(&mut self, name: &str, batch: RecordBatch) -> Result<(), SqlError> {
        self.outside_of_transactions()?;
        if let Some(view) = self.shared.views_of_table(name).into_iter().next() {
            return Err(SqlError::InUse { name: name.to_owned(), view });
        }
        let Some(data) = &self.shared.data else { return Err(SqlError::NoDataFolder) };
        let description = kohort_store::TableDescription {
            name: name.to_owned(),
            columns: columns_of(&batch.schema(), &[]),
            primary_key: Vec::new(),
            indexes: Vec::new(),
            kind: TableKind::Base,
        };
        let table = Arc::new(StoredTable::new(data.store.clone(), description.clone()));
        self.in_transaction(async |transaction| {
            let (change, name) = (Arc::clone(&transaction.change), name.to_owned());
            transaction.changed.insert(name.clone());
            Session::keep_imported(transaction, &name)?;
            blocking(move || {
                if change.table(&name)?.is_some() {
                    change.drop_table(&name)?;
                }
                change.create_table(&description)?;
                change.insert(&name, &batch).map(drop)
            })
            .await
        })
        .await?;
        self.shared.owner.deregister_table(TableReference::bare(name))?;
        self.shared.owner.register_table(TableReference::bare(name), table)?;
        Ok(())
    }
}
