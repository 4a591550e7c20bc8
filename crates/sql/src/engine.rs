//! [`Engine`]: tables, DGHs and views, and the sessions that use them.
//!
//! An owner's session sees base tables and views. An analyst's session has a catalog of its own that holds views and
//! nothing else, so no statement of an analyst can name a private table. Each session has its own options. The purpose and
//! the recipient that a statement states count for that statement alone.
//!
//! | module | its job |
//! | --- | --- |
//! | `session` | takes a statement, checks who asks, records it, and hands it to one of the next three |
//! | `query` | statements that give rows: queries, points, lists |
//! | `change` | statements that change rows or the catalog, and transactions |
//! | `views` | statements that make, refresh and drop A-views |
//! | `folder` | the data folder: what an engine keeps, and how it is opened again |
//! | `limits` | how much memory a query may take |
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
use std::sync::{Arc, OnceLock};

use chrono::{DateTime, Utc};
use datafusion::common::TableReference;
use datafusion::execution::context::SessionContext;
use datafusion::prelude::SessionConfig;
use kohort_store::Store;
use parking_lot::{Mutex, RwLock};

use context::context;
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

/// Tells the time. Tests have clocks of their own.
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
    memory: QueryMemory,
    /// Processes that execute analysts' plans. Without them this process does.
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
    /// Who may log in, if logins are kept.
    accounts: OnceLock<Accounts>,
    /// Held while something is granted, so that two grants see each other.
    granting: tokio::sync::Mutex<()>,
    /// By the numbers of several versions: `Some(n)` if whoever reads all of them finds somebody among only n persons.
    audits: Mutex<HashMap<Vec<u64>, Option<u64>>>,
    /// The store of the data folder, if the engine has one.
    store: Option<Store>,
    /// Held by whoever changes the data folder, until the change is published.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Notified after each commit, once the views in memory show the change.
    published: tokio::sync::Notify,
    /// Tables and views that the data folder keeps and that could not be made again.
    lost: Mutex<Vec<Lost>>,
    /// Materialized views that could not be opened, and the tables they are made from. Nobody may change these tables,
    /// because the view would not follow.
    unfollowed: Mutex<BTreeMap<String, BTreeSet<String>>>,
}

impl Engine {
    /// An engine without tables that keeps its log in memory.
    pub fn new(clock: Clock) -> Engine {
        Engine::with_log(clock, ComplianceLog::new())
    }

    /// An engine without tables that writes to this log.
    pub fn with_log(clock: Clock, log: ComplianceLog) -> Engine {
        Engine::with(clock, log, None)
    }

    fn with(clock: Clock, log: ComplianceLog, store: Option<Store>) -> Engine {
        let memory = QueryMemory::unlimited();
        let shared = Shared {
            calendar: Arc::new(Calendar::new(Arc::clone(&clock))),
            clock,
            owner: context(memory.of_all(), SessionConfig::new(), Role::Owner),
            // One thread per statement, so that one analyst does not take all processors.
            analyst: context(memory.of_all(), SessionConfig::new().with_target_partitions(1), Role::Analyst),
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
            store,
            turn: Arc::default(),
            published: tokio::sync::Notify::new(),
            lost: Mutex::default(),
            unfollowed: Mutex::default(),
        };
        Engine { shared: Arc::new(shared) }
    }

    /// A new session for somebody who has not logged in.
    pub fn session(&self, role: Role) -> Session {
        Session::new(Arc::clone(&self.shared), role)
    }

    /// Limits the bytes that sorts, joins and groupings of all queries may take together. A query that needs more fails.
    pub fn limit_query_memory(&self, most: usize) {
        self.shared.memory.limit(most);
    }

    /// Executes analysts' plans in worker processes from now on. If no process can be started, a plan is refused. Only the
    /// first call counts.
    pub fn run_analysts_in(&self, workers: Arc<Workers>) {
        let _ = self.shared.workers.set(workers);
    }

    /// Lets these users log in. Only the first call counts, because sessions stay with the accounts they were made by.
    pub fn keep_accounts(&self, accounts: Accounts) {
        let _ = self.shared.accounts.set(accounts);
    }

    /// Who may log in, if logins are kept.
    pub fn accounts(&self) -> Option<&Accounts> {
        self.shared.accounts.get()
    }

    /// A session of somebody who has logged in. An analyst's session holds the views that are granted at that moment.
    ///
    /// # Errors
    /// The user was dropped, or has got another password since the login.
    pub fn session_of(&self, login: Login) -> Result<Session, SqlError> {
        let accounts = self.accounts().ok_or(SqlError::NoAccounts)?;
        let role = accounts.role(&login).ok_or(AccessError::LoginGone)?;
        Ok(Session::of_login(Arc::clone(&self.shared), role, login))
    }

    /// The owner's session of DataFusion, for tables that a program registers itself.
    pub fn owner_context(&self) -> &SessionContext {
        &self.shared.owner
    }
}

impl Shared {
    fn view(&self, name: &str) -> Option<Arc<AView>> {
        self.views.read().get(name).cloned()
    }

    fn known_view(&self, name: &str) -> Result<Arc<AView>, SqlError> {
        self.view(name).ok_or_else(|| SqlError::UnknownView { name: name.to_owned() })
    }

    /// Takes a table or view out of both catalogs, if it is there.
    fn forget_table(&self, name: &str) {
        for context in [&self.owner, &self.analyst] {
            let _ = context.deregister_table(TableReference::bare(name));
        }
    }
}

impl Drop for Shared {
    /// Takes the views out of the catalogs. A view reads tables through the catalog that it is in, so both would hold each
    /// other, and the data folder, for ever.
    fn drop(&mut self) {
        let views = std::mem::take(&mut *self.views.write());
        views.keys().for_each(|name| self.forget_table(name));
    }
}
