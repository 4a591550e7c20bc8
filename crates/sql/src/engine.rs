//! [`Engine`]: tables, DGHs and views, and the sessions that use them.
//!
//! An owner's session sees base tables and views. An analyst's session has a catalog of its own that holds views and
//! nothing else, so that no statement can name what is below them. Each session has its own options; what a statement
//! says of purpose and recipient counts for that statement alone.
//!
//! | module | its job |
//! | --- | --- |
//! | `session` | takes a statement, checks who asks, records it, and hands it to one of the next three |
//! | `query` | what gives rows: plans, points, lists |
//! | `change` | what changes rows and the catalog, in transactions |
//! | `views` | what makes, refreshes and drops A-views |
//! | `folder` | what outlives an engine, and how it comes back |
//! | `limits` | what a query may take of the process |
//! | `context` | sessions of DataFusion with the rules that A-views need |

mod change;
mod context;
mod folder;
mod limits;
mod query;
mod session;
mod views;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use chrono::{DateTime, Utc};
use datafusion::common::TableReference;
use datafusion::execution::context::SessionContext;
use datafusion::prelude::SessionConfig;

use context::context;
use folder::Data;
pub use folder::Lost;
use folder::calendar::Calendar;
pub use folder::format::check_format;
use limits::memory::QueryMemory;
pub use session::{Described, Outcome, Session};

use crate::SqlError;
use crate::access::{AccessError, Accounts, Login};
use crate::hierarchies::Hierarchies;
use crate::policy::ComplianceLog;
use crate::readers::Readers;
use crate::role::Role;
use crate::view::{AView, Generations};
use crate::worker::Workers;

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
