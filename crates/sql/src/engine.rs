//! [`Engine`]: tables, DGHs and views, and the sessions that use them.
//!
//! An owner's session sees base tables and views. An analyst's session has a catalog of its own that holds views and
//! nothing else, so that no statement can name what is below them. Each session has its own options; what a statement
//! says of purpose and recipient counts for that statement alone.

mod change;
mod folder;
mod limits;
mod query;
mod session;
mod views;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use chrono::{DateTime, Utc};
use datafusion::catalog::CatalogProviderList;
use datafusion::catalog::default_table_source::{provider_as_source, source_as_provider};
use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider, MemoryCatalogProviderList, MemorySchemaProvider};
use datafusion::common::TableReference;
use datafusion::execution::context::SessionContext;
use datafusion::execution::disk_manager::{DiskManager, DiskManagerMode};
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::{TableScan, TableSource};
use datafusion::optimizer::Analyzer;
use datafusion::prelude::SessionConfig;

use folder::Data;
pub use folder::Lost;
use folder::calendar::Calendar;
pub use folder::format::check_format;
use limits::memory::QueryMemory;
use limits::windows::MeterWindows;
pub use session::{Described, Outcome, Session};

use kohort_labels::meaning::avlike;
use kohort_labels::rewrite::{
    FindPairs, JoinThroughPairs, KeepUnknown, Meanings, ProtectedColumns, RefuseRawComparisons, RewriteComparisons,
};

use crate::SqlError;
use crate::access::{AccessError, Accounts, Login};
use crate::exact::{CheckIntegers, exact_sum};
use crate::hierarchies::Hierarchies;
use crate::options::ViewOptions;
use crate::policy::ComplianceLog;
use crate::postgres::{POSTGRES, PostgresTables};
use crate::readers::Readers;
use crate::role::Role;
use crate::view::{AView, Generations, ShownLabels, Traced};
use crate::worker::Workers;

const CATALOG: &str = "kohort";
const SCHEMA: &str = "public";

/// Says what time it is.
pub type Clock = Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>;

/// Tables, DGHs and views. Clones share them.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Clock,
    calendar: Arc<Calendar>,
    owner: SessionContext,
    analyst: SessionContext,
    memory: Arc<QueryMemory>,
    /// Where analysts' plans are executed; in this process where nobody said.
    workers: OnceLock<Arc<Workers>>,
    /// Turns of queries that read views by a plan.
    readers: Readers,
    hierarchies: RwLock<Hierarchies>,
    views: RwLock<BTreeMap<String, Arc<AView>>>,
    generations: Generations,
    next_version: AtomicU64,
    /// Tables that were imported as policies.
    imported: Mutex<BTreeSet<String>>,
    log: Mutex<ComplianceLog>,
    /// Who may log in, where somebody may.
    accounts: OnceLock<Accounts>,
    /// Held while something is granted.
    granting: tokio::sync::Mutex<()>,
    /// By the versions of several views, among how few persons somebody hides from whoever reads all of them.
    audits: Mutex<HashMap<Vec<u64>, Option<u64>>>,
    /// Where tables are kept; `None` where nothing outlives the engine.
    data: Option<Data>,
    /// Whoever changes the data folder has it, until everybody knows of the change.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Told whenever a change was committed and readers find its views in memory.
    published: tokio::sync::Notify,
    /// What the data folder keeps and could not be made again.
    lost: Mutex<Vec<Lost>>,
    /// Materialized views that could not be opened, and the tables they are made from. Nobody may change those: the view
    /// would not follow.
    unfollowed: Mutex<BTreeMap<String, BTreeSet<String>>>,
}

impl Engine {
    /// An engine without tables that keeps its log in memory.
    pub fn new(clock: Clock) -> Engine {
        Engine::with_log(clock, ComplianceLog::new())
    }

    /// An engine without tables that keeps this log.
    pub fn with_log(clock: Clock, log: ComplianceLog) -> Engine {
        Engine::with(clock, log, None)
    }

    fn with(clock: Clock, log: ComplianceLog, data: Option<Data>) -> Engine {
        let memory = Arc::new(QueryMemory::unlimited());
        let shared = Shared {
            calendar: Arc::new(Calendar::new(Arc::clone(&clock))),
            clock,
            owner: context(&memory, SessionConfig::new(), Role::Owner),
            // What an analyst computes stays on the thread of their statement: others have the rest.
            analyst: context(&memory, SessionConfig::new().with_target_partitions(1), Role::Analyst),
            memory,
            workers: OnceLock::new(),
            readers: Readers::new(),
            hierarchies: RwLock::default(),
            views: RwLock::default(),
            generations: Generations::default(),
            next_version: AtomicU64::new(1),
            imported: Mutex::default(),
            log: Mutex::new(log),
            accounts: OnceLock::new(),
            granting: tokio::sync::Mutex::default(),
            audits: Mutex::default(),
            data,
            turn: Arc::default(),
            published: tokio::sync::Notify::new(),
            lost: Mutex::default(),
            unfollowed: Mutex::default(),
        };
        Engine { shared: Arc::new(shared) }
    }

    /// A session of its own.
    pub fn session(&self, role: Role) -> Session {
        Session::new(Arc::clone(&self.shared), role)
    }

    /// Bounds what sorts, joins and groupings of all queries may take together, in bytes. What needs more fails.
    pub fn limit_query_memory(&self, most: usize) {
        self.shared.memory.limit(most);
    }

    /// Executes analysts' plans in processes of their own from here on, and refuses them where none can be started. Only
    /// the first call counts.
    pub fn run_analysts_in(&self, workers: Arc<Workers>) {
        // There are no statements yet.
        let _ = self.shared.workers.set(workers);
    }

    /// Lets these users log in. Only the first call counts.
    pub fn keep_accounts(&self, accounts: Accounts) {
        // Sessions hold on to the accounts they were made by.
        let _ = self.shared.accounts.set(accounts);
    }

    /// Who may log in, where somebody may.
    pub fn accounts(&self) -> Option<&Accounts> {
        self.shared.accounts.get()
    }

    /// A session of somebody who has logged in. An analyst's holds the views that are granted to them, at any moment.
    ///
    /// # Errors
    /// Where they are no more, or have another password since.
    pub fn session_of(&self, login: Login) -> Result<Session, SqlError> {
        let accounts = self.accounts().ok_or(SqlError::NoAccounts)?;
        let role = accounts.role(&login).ok_or(AccessError::LoginGone)?;
        Ok(Session::of_login(Arc::clone(&self.shared), role, login))
    }

    /// The owner's session of DataFusion, to register tables that are no files.
    pub fn owner_context(&self) -> &SessionContext {
        &self.shared.owner
    }
}

impl Shared {
    fn log(&self) -> MutexGuard<'_, ComplianceLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn audits(&self) -> MutexGuard<'_, HashMap<Vec<u64>, Option<u64>>> {
        self.audits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hierarchies(&self) -> RwLockReadGuard<'_, Hierarchies> {
        self.hierarchies.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn hierarchies_mut(&self) -> RwLockWriteGuard<'_, Hierarchies> {
        self.hierarchies.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn imported(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.imported.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lost(&self) -> MutexGuard<'_, Vec<Lost>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unfollowed(&self) -> MutexGuard<'_, BTreeMap<String, BTreeSet<String>>> {
        self.unfollowed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn view(&self, name: &str) -> Option<Arc<AView>> {
        self.views.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

impl Drop for Shared {
    /// A view reads tables through the catalog that it stands in: without this, both would hold each other for good,
    /// and the data folder with them.
    fn drop(&mut self) {
        let views = std::mem::take(self.views.get_mut().unwrap_or_else(PoisonError::into_inner));
        for name in views.keys() {
            for context in [&self.owner, &self.analyst] {
                // What is not there need not go.
                let _ = context.deregister_table(TableReference::bare(name.as_str()));
            }
        }
    }
}

/// A session whose analyzer knows A-views, with an empty catalog of its own.
fn context(memory: &Arc<QueryMemory>, config: SessionConfig, role: Role) -> SessionContext {
    let mut config = config
        .with_information_schema(true)
        .with_default_catalog_and_schema(CATALOG, SCHEMA)
        .with_create_default_catalog_and_schema(false);
    // Rows fetched by identifier are found while a file is decoded.
    config.options_mut().execution.parquet.pushdown_filters = true;
    config.options_mut().extensions.insert(ViewOptions::default());
    let protected = ProtectedColumns::new(meanings_of);
    let mut analyzer = Analyzer::new().rules;
    analyzer.insert(0, Arc::new(RewriteComparisons::new(protected.clone())));
    analyzer.push(Arc::new(KeepUnknown));
    analyzer.push(Arc::new(RefuseRawComparisons::new(protected)));
    analyzer.push(Arc::new(CheckIntegers));
    let no_files = DiskManager::builder().with_mode(DiskManagerMode::Disabled);
    let pool: Arc<dyn MemoryPool> = memory.clone();
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).with_disk_manager_builder(no_files).build_arc();
    let mut state = SessionStateBuilder::new()
        .with_default_features()
        .with_runtime_env(runtime.expect("it asks nothing of the system"))
        .with_config(config)
        .with_catalog_list(empty_catalogs())
        .with_table_factory(POSTGRES.to_owned(), Arc::new(PostgresTables))
        .with_analyzer_rules(analyzer)
        .with_optimizer_rule(Arc::new(JoinThroughPairs::new(labels)))
        .with_physical_optimizer_rule(Arc::new(FindPairs));
    // Only owners need metered windows: an analyst's run in a worker process whose memory is limited.
    if role == Role::Owner {
        state = state.with_physical_optimizer_rule(Arc::new(MeterWindows));
    }
    let context = SessionContext::new_with_state(state.build());
    context.register_udf(avlike());
    context.register_udaf(exact_sum());
    context
}

/// The one catalog and schema, without tables.
fn empty_catalogs() -> Arc<dyn CatalogProviderList> {
    let catalog = MemoryCatalogProvider::new();
    let registered = catalog.register_schema(SCHEMA, Arc::new(MemorySchemaProvider::new()));
    registered.expect("catalogs in memory take any schema");
    let catalogs = MemoryCatalogProviderList::new();
    catalogs.register_catalog(CATALOG.to_owned(), Arc::new(catalog));
    Arc::new(catalogs)
}

/// What the labels of a scanned view can stand for.
fn meanings_of(scan: &TableScan) -> Option<Meanings> {
    let provider = source_as_provider(&scan.source).ok()?;
    let of_view = provider.downcast_ref::<AView>().map(AView::meanings);
    of_view.or_else(|| provider.downcast_ref::<Traced>().map(Traced::meanings))
}

/// The labels that a scanned view can show in a column.
fn labels(scan: &TableScan, column: usize) -> Option<Arc<dyn TableSource>> {
    let labels = ShownLabels::of(source_as_provider(&scan.source).ok()?, column)?;
    Some(provider_as_source(Arc::new(labels)))
}
