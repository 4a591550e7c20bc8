//! Making and dropping tables of files, tables in memory, plain views and DGHs.
//!
//! # Guarantee
//! The catalog in memory and the data folder change together, in one turn. Something new is made outside of the catalog,
//! written to the data folder, and only then put into the catalog. If writing fails, the catalog never had it. If the client
//! stops waiting, both have it or neither has.

use std::sync::Arc;

use datafusion::catalog::{MemorySchemaProvider, TableProvider};
use datafusion::common::TableReference;
use datafusion::execution::context::SessionContext;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::{DdlStatement, LogicalPlan, TableType};

use super::stored;
use super::transactions::{self, ChangeTurn, Transaction, blocking};
use crate::SqlError;
use crate::engine::context::catalogs_of;
use crate::engine::folder::{self, IMPORTED, Makes};
use crate::engine::session::Outcome;
use crate::engine::{Session, Shared};
use crate::hierarchies::{DghError, Hierarchies};
use crate::store::StoredTable;

/// A change of the catalog under way. Nobody else changes the catalog or the data folder meanwhile.
pub(crate) enum CatalogChange {
    /// A change that the data folder keeps.
    Kept(Transaction),
    /// A change in memory only, because there is no data folder or it is just being opened.
    InMemory(ChangeTurn),
}

impl CatalogChange {
    /// The transaction that keeps the change.
    pub(crate) fn transaction(&mut self) -> Option<&mut Transaction> {
        match self {
            CatalogChange::Kept(transaction) => Some(transaction),
            CatalogChange::InMemory(_) => None,
        }
    }
}

/// A table or a plain view to be made.
struct New {
    name: TableReference,
    noun: &'static str,
    or_replace: bool,
    if_not_exists: bool,
    /// Whether a data folder keeps the statement that makes it.
    is_kept: bool,
}

impl New {
    fn of(ddl: &DdlStatement) -> Option<New> {
        let (name, noun, or_replace, if_not_exists, is_kept) = match ddl {
            DdlStatement::CreateExternalTable(create) => {
                (&create.name, "table", create.or_replace, create.if_not_exists, true)
            }
            DdlStatement::CreateMemoryTable(create) => {
                (&create.name, "table", create.or_replace, create.if_not_exists, false)
            }
            DdlStatement::CreateView(create) => (&create.name, "view", create.or_replace, false, true),
            _ => return None,
        };
        Some(New { name: name.clone(), noun, or_replace, if_not_exists, is_kept })
    }
}

/// Waits until nobody else changes the catalog or the data folder.
pub(crate) async fn change_catalog(session: &Session) -> Result<CatalogChange, SqlError> {
    transactions::outside_of_transactions(session)?;
    Ok(match session.shared.store.is_some() && !session.is_restoring {
        true => CatalogChange::Kept(transactions::begin(session).await?),
        false => CatalogChange::InMemory(transactions::turn(session).await?),
    })
}

/// Commits a change of the catalog and then publishes it, even if the client stops waiting meanwhile.
pub(crate) async fn publish(
    session: &Session,
    change: CatalogChange,
    publish: impl FnOnce(&Shared) + Send + 'static,
) -> Result<(), SqlError> {
    match change {
        CatalogChange::Kept(transaction) => {
            let shared = Arc::clone(&session.shared);
            folder::commit_then(session, transaction, move || publish(&shared)).await.map(drop)
        }
        CatalogChange::InMemory(_turn) => {
            session.ahead().record().map_err(SqlError::Log)?;
            publish(&session.shared);
            Ok(())
        }
    }
}

/// Runs CREATE and DROP of tables, indexes and plain views.
pub(crate) async fn define(
    session: &mut Session,
    context: &SessionContext,
    ddl: DdlStatement,
    text: &str,
) -> Result<Outcome, SqlError> {
    transactions::outside_of_transactions(session)?;
    let is_folder = session.shared.store.is_some();
    match &ddl {
        DdlStatement::CreateMemoryTable(create) if is_folder && !create.temporary => {
            stored::create_table(session, context, create).await
        }
        DdlStatement::CreateIndex(create) if is_folder => stored::create_index(session, context, create).await,
        DdlStatement::DropTable(drop) => drop_relation(session, &drop.name, TableType::Base, drop.if_exists).await,
        DdlStatement::DropView(drop) => drop_relation(session, &drop.name, TableType::View, drop.if_exists).await,
        DdlStatement::CreateCatalogSchema(_) | DdlStatement::CreateCatalog(_) | DdlStatement::DropCatalogSchema(_) => {
            Err(SqlError::OneSchema)
        }
        _ => match New::of(&ddl) {
            Some(new) => create_relation(session, context, new, ddl, text).await,
            None => {
                context.execute_logical_plan(LogicalPlan::Ddl(ddl)).await?.collect().await?;
                Ok(Outcome::Done("done".to_owned()))
            }
        },
    }
}

async fn create_relation(
    session: &Session,
    context: &SessionContext,
    new: New,
    ddl: DdlStatement,
    text: &str,
) -> Result<Outcome, SqlError> {
    let name = new.name.table().to_owned();
    let is_there = || Ok(Outcome::Done(format!("there is a table {name} already")));
    // Check the name before any file is opened.
    if !session.shared.has_room(&new).await? {
        return is_there();
    }
    let made = made_beside(context, &new.name, ddl).await?;
    let mut change = change_catalog(session).await?;
    // Check again, because somebody may have taken the name meanwhile.
    if !session.shared.has_room(&new).await? {
        return is_there();
    }
    if let Some(transaction) = change.transaction().filter(|_| new.is_kept) {
        transaction.make_room(&name)?;
        transaction.keep_statement(&name, text, None)?;
    }
    let done = format!("created {} {name}", new.noun);
    publish(session, change, move |shared| {
        shared.register(&new.name, made);
        shared.imported.lock().remove(&name);
        shared.generations.bump(&name);
    })
    .await?;
    Ok(Outcome::Done(done))
}

/// Drops a table or a plain view, even if the data folder keeps it and could not make it again.
async fn drop_relation(
    session: &Session,
    name: &TableReference,
    table_type: TableType,
    if_exists: bool,
) -> Result<Outcome, SqlError> {
    let (name, noun) = (name.clone(), if table_type == TableType::View { "view" } else { "table" });
    let bare = name.table().to_owned();
    let mut change = change_catalog(session).await?;
    if session.shared.view(&bare).is_some() {
        return Err(SqlError::IsView { name: bare });
    }
    let there = session.shared.relation(&name).await;
    let is_stored = there.as_ref().is_some_and(|table| table.is::<StoredTable>());
    let mut is_dropped = there.as_ref().is_some_and(|table| table.table_type() == table_type);
    if let Some(transaction) = change.transaction() {
        if is_dropped && is_stored {
            // A view may have been made while this statement waited for its turn.
            if let Some(view) = session.shared.views_of_table(&bare).into_iter().next() {
                return Err(SqlError::InUse { name: bare, view });
            }
            transaction.changed.insert(bare.clone());
            transaction.change.remove_record(IMPORTED, &bare)?;
            let (change, table) = (Arc::clone(&transaction.change), bare.clone());
            blocking(move || change.drop_table(&table)).await?;
        } else if is_dropped {
            transaction.forget_statement(&bare)?;
        } else if there.is_none() {
            let is_of_type = match transaction.kept(&bare)? {
                Some(Makes::Table) => table_type == TableType::Base,
                Some(Makes::View) => table_type == TableType::View,
                Some(Makes::AnonymizationView(_)) | None => false,
            };
            is_dropped = is_of_type && transaction.forget_statement(&bare)?;
        }
    }
    if !is_dropped {
        return match if_exists {
            true => Ok(Outcome::Done(format!("there is no {noun} {bare}"))),
            false => Err(SqlError::UnknownTable { noun, name: bare }),
        };
    }
    let done = format!("dropped {bare}");
    publish(session, change, move |shared| {
        // A table that could not be made again is in no catalog.
        let _ = shared.owner.deregister_table(name);
        shared.imported.lock().remove(&bare);
        if !is_stored {
            shared.generations.bump(&bare);
        }
    })
    .await?;
    Ok(Outcome::Done(done))
}

/// Makes, changes or drops a DGH.
pub(crate) async fn change_hierarchy<T: Send + 'static>(
    session: &Session,
    name: &str,
    change: impl FnOnce(&mut Hierarchies) -> Result<T, DghError> + Send + 'static,
) -> Result<T, SqlError> {
    let (name, shared) = (name.to_owned(), Arc::clone(&session.shared));
    let mut of_catalog = change_catalog(session).await?;
    let (done, tried) = blocking(move || shared.hierarchies.write().tried(&name, change)).await?;
    if let Some(transaction) = of_catalog.transaction() {
        transaction.keep_hierarchy(&tried)?;
    }
    publish(session, of_catalog, move |shared| shared.hierarchies.write().make(tried)).await?;
    Ok(done)
}

impl Shared {
    /// The table or view of this name in the owner's catalog.
    pub(crate) async fn relation(&self, name: &TableReference) -> Option<Arc<dyn TableProvider>> {
        self.owner.table_provider(name.clone()).await.ok()
    }

    /// Puts a table or view into the owner's catalog. It replaces one of the same name.
    pub(crate) fn register(&self, name: &TableReference, table: Arc<dyn TableProvider>) {
        // Registering fails only if the name is taken, and nobody else changes the catalog in this turn.
        let _ = self.owner.deregister_table(name.clone());
        let _ = self.owner.register_table(name.clone(), table);
    }

    /// Refuses a name for a table that an anonymization view has, or that such a view depends on.
    pub(crate) fn check_name(&self, name: &str) -> Result<(), SqlError> {
        if self.view(name).is_some() || self.unfollowed.lock().contains_key(name) {
            return Err(SqlError::Taken { name: name.to_owned() });
        }
        self.check_followed(name)
    }

    /// Whether a new table or view may get its name; `false` if one is there already and IF NOT EXISTS says to leave it.
    async fn has_room(&self, new: &New) -> Result<bool, SqlError> {
        let name = new.name.table().to_owned();
        self.check_name(&name)?;
        let Some(there) = self.relation(&new.name).await else { return Ok(true) };
        // A stored table is not replaced: its rows would stay in the data folder, and materialized views would show them.
        let is_stored = there.is::<StoredTable>();
        match (new.if_not_exists, new.or_replace) {
            (true, false) => Ok(false),
            (false, true) if !is_stored => Ok(true),
            (false, false) if !is_stored => Err(SqlError::Exists { name }),
            _ => Err(SqlError::Taken { name }),
        }
    }
}

impl Transaction {
    /// Forgets a table or plain view of this name that the data folder could not make again.
    pub(crate) fn make_room(&self, name: &str) -> Result<(), SqlError> {
        match self.kept(name)? {
            Some(Makes::AnonymizationView(_)) => Err(SqlError::Taken { name: name.to_owned() }),
            Some(Makes::Table | Makes::View) => self.forget_statement(name).map(drop),
            None => Ok(()),
        }
    }
}

/// Makes the table or view of a statement in a catalog of its own, which nobody else sees.
async fn made_beside(
    context: &SessionContext,
    name: &TableReference,
    ddl: DdlStatement,
) -> Result<Arc<dyn TableProvider>, SqlError> {
    let runs_query = matches!(ddl, DdlStatement::CreateMemoryTable(_));
    let catalogs = catalogs_of(Arc::new(MemorySchemaProvider::new()));
    let state = SessionStateBuilder::new_from_existing(context.state()).with_catalog_list(catalogs).build();
    let beside = SessionContext::new_with_state(state);
    let made = beside.execute_logical_plan(LogicalPlan::Ddl(ddl)).await;
    made.map_err(|error| if runs_query { SqlError::while_running(error) } else { error.into() })?;
    Ok(beside.table_provider(name.clone()).await?)
}
