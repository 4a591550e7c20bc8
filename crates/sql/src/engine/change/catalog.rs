//! Making and dropping what the catalog holds: tables of files and in memory, plain views and DGHs.
//!
//! # Guarantee
//! What is known and what a data folder keeps change in one step and one turn. Something new is made beside the catalog,
//! kept, and only then put there; where keeping fails it was never there, and where nobody waits any more it is in both
//! or in neither.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::execution::context::SessionContext;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::{DdlStatement, LogicalPlan, TableType};

use super::stored;
use super::transactions::{self, ChangeTurn, Transaction, blocking};
use crate::SqlError;
use crate::engine::context::empty_catalogs;
use crate::engine::folder::{self, Makes};
use crate::engine::session::Outcome;
use crate::engine::{Session, Shared};
use crate::hierarchies::{DghError, Hierarchies};
use crate::store::StoredTable;

/// A change of the catalog under way: nobody else changes it, nor the data folder.
pub(in crate::engine) enum CatalogChange {
    /// One that is kept.
    Kept(Transaction),
    /// One of memory alone, for there is no data folder, or what it keeps is being restored.
    InMemory(ChangeTurn),
}

impl CatalogChange {
    /// What is kept with it.
    pub(in crate::engine) fn transaction(&mut self) -> Option<&mut Transaction> {
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
pub(in crate::engine) async fn change_catalog(session: &Session) -> Result<CatalogChange, SqlError> {
    transactions::outside_of_transactions(session)?;
    Ok(match session.shared.data.is_some() && !session.is_restoring {
        true => CatalogChange::Kept(transactions::begin(session).await?),
        false => CatalogChange::InMemory(transactions::turn(session).await?),
    })
}

/// Keeps a change of the catalog, and then lets everybody know of it, whether or not somebody still waits.
pub(in crate::engine) async fn publish(
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

/// Makes or drops what DataFusion's statements about tables and views name.
pub(in crate::engine) async fn define(
    session: &mut Session,
    context: &SessionContext,
    ddl: DdlStatement,
    text: &str,
) -> Result<Outcome, SqlError> {
    transactions::outside_of_transactions(session)?;
    let is_folder = session.shared.data.is_some();
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
    // Before files are opened for a name that something else has.
    if !session.shared.has_room(&new).await? {
        return is_there();
    }
    let made = made_beside(context, &new.name, ddl).await?;
    let mut change = change_catalog(session).await?;
    // Somebody may have taken it meanwhile.
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
        shared.imported().remove(&name);
        shared.generations.bump(&name);
    })
    .await?;
    Ok(Outcome::Done(done))
}

/// Drops a table or a plain view; also one that a data folder keeps and could not make again.
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
    let is_stored = there.as_ref().is_some_and(|table| table.downcast_ref::<StoredTable>().is_some());
    let mut is_dropped = there.as_ref().is_some_and(|table| table.table_type() == table_type);
    if let Some(transaction) = change.transaction() {
        if is_dropped && is_stored {
            // A view may have been made while this waited for its turn.
            if let Some(view) = session.shared.views_of_table(&bare).into_iter().next() {
                return Err(SqlError::InUse { name: bare, view });
            }
            transaction.changed.insert(bare.clone());
            folder::forget_imported(transaction, &bare)?;
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
        // What is not there need not go.
        let _ = shared.owner.deregister_table(name);
        shared.imported().remove(&bare);
        if !is_stored {
            shared.generations.bump(&bare);
        }
    })
    .await?;
    Ok(Outcome::Done(done))
}

/// Makes, changes or drops a DGH.
pub(in crate::engine) async fn change_hierarchy<T: Send + 'static>(
    session: &Session,
    name: &str,
    change: impl FnOnce(&mut Hierarchies) -> Result<T, DghError> + Send + 'static,
) -> Result<T, SqlError> {
    let (name, shared) = (name.to_owned(), Arc::clone(&session.shared));
    let mut of_catalog = change_catalog(session).await?;
    let (done, tried) = blocking(move || shared.hierarchies_mut().tried(&name, change)).await?;
    if let Some(transaction) = of_catalog.transaction() {
        transaction.keep_hierarchy(&tried)?;
    }
    publish(session, of_catalog, move |shared| shared.hierarchies_mut().make(tried)).await?;
    Ok(done)
}

impl Shared {
    /// What the owner's catalog holds under a name.
    pub(in crate::engine) async fn relation(&self, name: &TableReference) -> Option<Arc<dyn TableProvider>> {
        self.owner.table_provider(name.clone()).await.ok()
    }

    /// Puts something into the owner's catalog, in place of what was there.
    pub(in crate::engine) fn register(&self, name: &TableReference, table: Arc<dyn TableProvider>) {
        // Catalogs in memory take whatever has a name that is free, and whoever changes them has the turn.
        let _ = self.owner.deregister_table(name.clone());
        let _ = self.owner.register_table(name.clone(), table);
    }

    /// Whether a table may get a name, as far as anonymization views are concerned.
    pub(in crate::engine) fn check_name(&self, name: &str) -> Result<(), SqlError> {
        if self.view(name).is_some() || self.unfollowed().contains_key(name) {
            return Err(SqlError::Taken { name: name.to_owned() });
        }
        self.check_followed(name)
    }

    /// Whether something new may get its name; `false` where what is there may stay.
    async fn has_room(&self, new: &New) -> Result<bool, SqlError> {
        let name = new.name.table().to_owned();
        self.check_name(&name)?;
        let Some(there) = self.relation(&new.name).await else { return Ok(true) };
        // Rows that nothing could reach would still be there, and be shown by materialized views.
        let is_stored = there.downcast_ref::<StoredTable>().is_some();
        match (new.if_not_exists, new.or_replace) {
            (true, false) => Ok(false),
            (false, true) if !is_stored => Ok(true),
            (false, false) if !is_stored => Err(SqlError::Exists { name }),
            _ => Err(SqlError::Taken { name }),
        }
    }
}

impl Transaction {
    /// Forgets a table or a plain view of this name that could not be made again.
    pub(in crate::engine) fn make_room(&self, name: &str) -> Result<(), SqlError> {
        match self.kept(name)? {
            Some(Makes::AnonymizationView(_)) => Err(SqlError::Taken { name: name.to_owned() }),
            Some(Makes::Table | Makes::View) => self.forget_statement(name).map(drop),
            None => Ok(()),
        }
    }
}

/// What a statement makes, in no catalog that anybody sees.
async fn made_beside(
    context: &SessionContext,
    name: &TableReference,
    ddl: DdlStatement,
) -> Result<Arc<dyn TableProvider>, SqlError> {
    let runs_query = matches!(ddl, DdlStatement::CreateMemoryTable(_));
    let state = SessionStateBuilder::new_from_existing(context.state()).with_catalog_list(empty_catalogs()).build();
    let beside = SessionContext::new_with_state(state);
    let made = beside.execute_logical_plan(LogicalPlan::Ddl(ddl)).await;
    made.map_err(|error| if runs_query { SqlError::while_running(error) } else { error.into() })?;
    Ok(beside.table_provider(name.clone()).await?)
}
