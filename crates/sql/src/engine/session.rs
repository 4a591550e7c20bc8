//! [`Session`]: runs statements as the owner or as an analyst.
//!
//! Every statement is recorded before its answer leaves; if that fails, there is no answer. A statement that changes something
//! is recorded before the change is committed ([`recorded`]). A statement that is stopped before it has an answer is recorded
//! too ([`AskedStatement`]), and an answer that fails while its rows leave is recorded once more.

pub(super) mod access;
pub(super) mod allowed;
pub(super) mod granted;
pub(super) mod recorded;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::context::SessionContext;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;

use kohort_model::{Progress, Silent};

use crate::SqlError;
use crate::access::{Accounts, Login};
use crate::engine::Shared;
use crate::engine::change::catalog;
use crate::engine::change::import;
use crate::engine::change::stored;
use crate::engine::change::transactions::{self, SessionTransaction};
use crate::engine::context::table_names;
use crate::engine::folder;
use crate::engine::folder::calendar;
use crate::engine::query;
use crate::engine::query::show;
use crate::engine::query::show_create;
use crate::engine::query::utility;
use crate::engine::views::create;
use crate::options::ViewOptions;
use crate::parser::{Parsed, Statement, StatementText};
use crate::policy::{ImportDefaults, LogEntry, LogOutcome, Pair, UsedView};
use crate::role::Role;
use crate::store::Reading;
use crate::view::{AView, ViewError};
use granted::GrantedViews;
use recorded::{Answered, AskedStatement, Recorder};

/// The answer to a statement.
pub enum Outcome {
    /// Rows.
    Rows(SendableRecordBatchStream),
    /// A sentence that says what was done.
    Done(String),
}

/// The parameters and columns of a query that was not run.
#[derive(Clone, Debug)]
pub struct Described {
    /// The types of its parameters by name, such as `$1`; `None` if nothing in the query tells a type.
    pub parameters: HashMap<String, Option<DataType>>,
    /// Its columns.
    pub schema: SchemaRef,
}

/// A session of one owner or analyst.
pub struct Session {
    pub(in crate::engine) shared: Arc<Shared>,
    pub(in crate::engine) role: Role,
    /// Who logged in, if this session has a login.
    pub(in crate::engine) login: Option<Login>,
    pub(in crate::engine) context: SessionContext,
    pub(in crate::engine) progress: Arc<dyn Progress + Send + Sync>,
    pub(in crate::engine) transaction: SessionTransaction,
    /// Whether this session runs the statements that a data folder has kept.
    pub(in crate::engine) is_restoring: bool,
    /// The record of the current statement.
    pub(in crate::engine) recorder: Option<Arc<Recorder>>,
}

impl Session {
    pub(in crate::engine) fn new(shared: Arc<Shared>, role: Role) -> Session {
        let of_role = match role {
            Role::Owner => &shared.owner,
            Role::Analyst => &shared.analyst,
        };
        // Sessions share the catalog, but no options and no prepared statements.
        let state = SessionStateBuilder::new_from_existing(of_role.state());
        Session::of_state(state, shared, role, None)
    }

    /// The session of somebody who has logged in. An analyst's session has a catalog of its own.
    pub(in crate::engine) fn of_login(shared: Arc<Shared>, role: Role, login: Login) -> Session {
        let state = match role {
            Role::Owner => SessionStateBuilder::new_from_existing(shared.owner.state()),
            Role::Analyst => {
                let existing = shared.analyst.state();
                let memory = shared.memory.of_login(&login);
                let runtime = RuntimeEnvBuilder::from_runtime_env(existing.runtime_env()).with_memory_pool(memory);
                SessionStateBuilder::new_from_existing(existing)
                    .with_catalog_list(GrantedViews::catalogs(Arc::clone(&shared), &login))
                    .with_runtime_env(runtime.build_arc().expect("a runtime without files opens none"))
            }
        };
        Session::of_state(state, shared, role, Some(login))
    }

    fn of_state(state: SessionStateBuilder, shared: Arc<Shared>, role: Role, login: Option<Login>) -> Session {
        let mut state = state.with_session_id(session_id()).build();
        state.config_mut().options_mut().extensions.insert(ViewOptions { role, ..ViewOptions::default() });
        Session {
            context: SessionContext::new_with_state(state),
            shared,
            role,
            login,
            progress: Arc::new(Silent),
            transaction: SessionTransaction::Outside,
            is_restoring: false,
            recorder: None,
        }
    }

    /// Whether this is a session of an owner or of an analyst.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The session of DataFusion that plans statements, to add tables and functions that clients expect. It holds only
    /// tables and views that the login may read.
    pub fn context(&self) -> &SessionContext {
        &self.context
    }

    /// How often a right was taken away from anybody. If this has changed, open cursors must be checked again.
    pub fn revocations(&self) -> u64 {
        self.shared.accounts.get().map_or(0, Accounts::revocations)
    }

    /// Reports the progress of long statements.
    pub fn report_to(&mut self, progress: Arc<dyn Progress + Send + Sync>) {
        self.progress = progress;
    }

    /// Runs one statement.
    ///
    /// # Errors
    /// The statement is not allowed, is wrong, or fails.
    pub async fn run(&mut self, parsed: Parsed) -> Result<Outcome, SqlError> {
        let Parsed { statement, pair, text } = parsed;
        let mut views = Vec::new();
        let granted = access::granted(self, &pair).unwrap_or_else(|_| pair.clone());
        let asked = AskedStatement::new(self, &text, &self.stated(&granted));
        // The statement did not ask for the change of day, so it does not record it.
        self.recorder = None;
        calendar::note_day(self).await;
        self.recorder = Some(asked.recorder());
        let answer = match self.check(&statement) {
            Ok(()) => self.answer(statement, &pair, &text, &mut views).await,
            Err(refusal) => Err(refusal),
        };
        self.recorder = None;
        let entry = asked.end(answer.as_ref().map_or_else(LogOutcome::of, |_| LogOutcome::Answered), views.clone())?;
        Ok(match answer.map_err(|error| access::told(self, error))? {
            Outcome::Rows(stream) => {
                Outcome::Rows(Answered::watch(self, access::while_granted(self, stream, &views, granted), entry))
            }
            done => done,
        })
    }

    /// Runs a statement that a data folder has kept.
    pub(in crate::engine) async fn restore(&mut self, parsed: Parsed) -> Result<(), SqlError> {
        self.is_restoring = true;
        let Parsed { statement, pair, text } = parsed;
        let done = self.answer(statement, &pair, &text, &mut Vec::new()).await;
        self.is_restoring = false;
        match done {
            // The view is there, and says why it can't be read.
            Ok(_) | Err(SqlError::View(ViewError::Unusable { .. })) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The columns and parameters of a query, without running it; `None` for other statements. Nothing is recorded: see
    /// [`Session::prepare`].
    ///
    /// # Errors
    /// The statement is not allowed, or can't be planned.
    pub async fn describe(&self, parsed: &Parsed) -> Result<Option<Described>, SqlError> {
        self.check(&parsed.statement)?;
        let Statement::Sql(statement) = &parsed.statement else { return Ok(None) };
        if !matches!(parsed.sql(), Some(SqlStatement::Query(_))) {
            return Ok(None);
        }
        let plan = query::planned(self, &self.scoped(&Pair::default())?, statement).await?;
        let parameters = plan.get_parameter_types()?;
        Ok(Some(Described { parameters, schema: Arc::new(plan.schema().as_arrow().clone()) }))
    }

    /// Tries what every statement needs: to read the store and write to its folder, if there is one, and to write to the
    /// log, without which no statement is answered.
    ///
    /// # Errors
    /// One of these fails.
    pub async fn health(&self) -> Result<(), SqlError> {
        access::check_login(self)?;
        if let Some(store) = self.shared.store.clone() {
            transactions::blocking(move || {
                store.read()?.tables()?;
                store.try_writing()
            })
            .await?;
        }
        let (time, login) = ((self.shared.clock)(), self.login.as_deref());
        let entry = LogEntry::new(time, self.role, login, &Pair::default(), LogOutcome::Answered);
        self.shared.log.lock().record(entry.saying("SHOW kohort.health")).map_err(SqlError::Log)
    }

    /// Names of tables and columns that statements of this session can use, for completion.
    pub fn names(&self) -> Vec<String> {
        let mut names = table_names(&self.context);
        let views = self.seen_views();
        names.extend(views.values().flat_map(|view| view.definition.columns.iter().map(|column| column.name.clone())));
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The views that this session may know of, by name.
    pub(in crate::engine) fn seen_views(&self) -> BTreeMap<String, Arc<AView>> {
        let mut views = self.shared.views.read().clone();
        if let Some((login, accounts)) = self.restricted() {
            views.retain(|name, _| accounts.may_read(login, name));
        }
        views
    }

    fn check(&self, statement: &Statement) -> Result<(), SqlError> {
        access::check_login(self)?;
        match self.role {
            Role::Owner => Ok(()),
            Role::Analyst => allowed::check(statement),
        }
    }

    async fn answer(
        &mut self,
        statement: Statement,
        pair: &Pair,
        text: &StatementText,
        views: &mut Vec<UsedView>,
    ) -> Result<Outcome, SqlError> {
        if makes_or_drops(&statement) {
            transactions::outside_of_transactions(self)?;
        }
        match statement {
            Statement::Sql(statement) => query::sql(self, *statement, pair, text, views).await,
            Statement::CreateHierarchy { name, or_replace, source } => {
                let dgh = name.clone();
                catalog::change_hierarchy(self, &name, move |dghs| dghs.create(&dgh, or_replace, source.as_ref()))
                    .await?;
                Ok(Outcome::Done(format!("created DGH {name}")))
            }
            Statement::InsertHierarchy { name, pairs } => {
                let (dgh, n_pairs) = (name.clone(), pairs.len());
                catalog::change_hierarchy(self, &name, move |dghs| dghs.insert(&dgh, &pairs)).await?;
                Ok(Outcome::Done(format!("added {} to DGH {name}", counted(n_pairs, "pair"))))
            }
            Statement::DropHierarchy { name, if_exists } => {
                let dgh = name.clone();
                let was_there =
                    catalog::change_hierarchy(self, &name, move |dghs| dghs.remove(&dgh, if_exists)).await?;
                Ok(Outcome::Done(format!("{} DGH {name}", if was_there { "dropped" } else { "there is no" })))
            }
            Statement::CreateView(statement) => create::create_view(self, *statement, &text.written).await,
            Statement::DropView { name, if_exists } => create::drop_view(self, &name, if_exists).await,
            Statement::RefreshView { name, how } => create::refresh_view(self, &name, how).await,
            Statement::Backup { file } => folder::backup(self, &file).await,
            Statement::CopyFrom { table, file } => stored::copy_from(self, &table, &file).await,
            Statement::ShowViews => show::show_views(self),
            Statement::ShowDrift { view } => show::show_drift(self, &view).await,
            Statement::ShowCreateView { view } => show_create::show_create_view(self, &view),
            Statement::ShowCreateHierarchy { name } => show_create::show_create_hierarchy(self, &name),
            Statement::ShowHierarchies => show::show_hierarchies(self),
            Statement::ShowLog => Ok(rows(self.shared.log.lock().to_batch())),
            Statement::ShowCollection { view } => show::show_collection(self, &view),
            Statement::ExplainUtility(query) => utility::explain_utility(self, *query, pair).await,
            Statement::Move { .. } => Err(SqlError::NoCursors { what: "MOVE" }),
            Statement::Access(statement) => access::run_access(self, statement).await,
            Statement::ImportPolicy { file, table, person, k } => {
                import::import_policy(self, &file, table, &ImportDefaults { person, k }).await
            }
        }
    }

    /// A session for one statement: with its purpose and recipient, and the one state of the store that it reads.
    pub(in crate::engine) fn scoped(&self, pair: &Pair) -> Result<SessionContext, SqlError> {
        Ok(self.scoped_to(pair, self.reading()?))
    }

    /// A session for one statement, which reads this state of the store.
    pub(in crate::engine) fn scoped_to(&self, pair: &Pair, reading: Option<Reading>) -> SessionContext {
        if *pair == Pair::default() && reading.is_none() {
            return self.context.clone();
        }
        let mut state = self.context.state();
        let options = ViewOptions { pair: self.stated(pair), ..self.options() };
        state.config_mut().options_mut().extensions.insert(options);
        if let Some(reading) = reading {
            state.config_mut().set_extension(Arc::new(reading));
        }
        SessionContext::new_with_state(state)
    }

    /// The one state of the store that a statement reads.
    pub(in crate::engine) fn reading(&self) -> Result<Option<Reading>, SqlError> {
        Ok(match (self.transaction.changing(), &self.shared.store) {
            (Some(transaction), _) => Some(Reading::Change(Arc::clone(&transaction.change))),
            (None, Some(store)) => Some(Reading::Snapshot(store.read()?)),
            (None, None) => None,
        })
    }

    pub(in crate::engine) fn options(&self) -> ViewOptions {
        let state = self.context.state_ref();
        let state = state.read();
        state.config().options().extensions.get::<ViewOptions>().cloned().unwrap_or_default()
    }

    /// The purpose and recipient that a statement states, or else those of the session.
    pub(in crate::engine) fn stated(&self, pair: &Pair) -> Pair {
        let own = self.options().pair;
        Pair { purpose: pair.purpose.clone().or(own.purpose), recipient: pair.recipient.clone().or(own.recipient) }
    }
}

/// `1 pair`, `2 pairs`.
pub(crate) fn counted(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// A figure with six digits after the point.
pub(crate) fn rounded(figure: f64) -> f64 {
    (figure * 1e6).round() / 1e6
}

/// Whether a statement makes, changes or drops a DGH, a view or a table of choices.
fn makes_or_drops(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::CreateHierarchy { .. }
            | Statement::InsertHierarchy { .. }
            | Statement::DropHierarchy { .. }
            | Statement::CreateView(_)
            | Statement::DropView { .. }
            | Statement::RefreshView { .. }
            | Statement::ImportPolicy { .. }
    )
}

/// Batches as a stream.
pub(crate) fn stream_of(schema: SchemaRef, batches: Vec<RecordBatch>) -> SendableRecordBatchStream {
    Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter(batches.into_iter().map(Ok))))
}

/// One batch as an answer.
pub(crate) fn rows(batch: RecordBatch) -> Outcome {
    Outcome::Rows(stream_of(batch.schema(), vec![batch]))
}

/// A list as an answer: columns with their names.
pub(crate) fn list<'a>(columns: impl IntoIterator<Item = (&'a str, ArrayRef)>) -> Result<Outcome, SqlError> {
    let columns = columns.into_iter().map(|(name, cells)| (name, cells, true));
    Ok(rows(RecordBatch::try_from_iter_with_nullable(columns).map_err(DataFusionError::from)?))
}

/// Texts as a column of a list.
pub(crate) fn texts(texts: impl IntoIterator<Item = impl AsRef<str>>) -> ArrayRef {
    Arc::new(texts.into_iter().map(Some).collect::<StringArray>())
}

fn session_id() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("session {}", NEXT.fetch_add(1, Ordering::Relaxed))
}
