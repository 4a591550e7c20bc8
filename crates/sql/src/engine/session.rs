//! [`Session`]: runs statements as the owner or as an analyst.
//!
//! Every statement is recorded before its answer leaves: where that fails, there is no answer. One that is stopped before
//! it has an answer is recorded too ([`Asked`]), and an answer that fails while its rows leave is recorded once more.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::config::ExtensionOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::context::SessionContext;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::{DdlStatement, LogicalPlan, Statement as PlanStatement};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::parser::{ResetStatement, Statement as DFStatement};
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;

use futures::TryStreamExt;
use kohort_model::{Progress, Silent};

use super::granted::GrantedViews;
use super::growth::check_growth;
use super::readers::{Waited, begun};
use super::recorded::Asked;
use super::transactions::{Transaction, TransactionStep};
use super::{Role, Shared, allowed, unplanned};
use crate::SqlError;
use crate::access::Accounts;
use crate::options::ViewOptions;
use crate::parser::{Access, Answers, Parsed, Statement, StatementText};
use crate::policy::{ImportDefaults, LogEntry, LogOutcome, UsedView};
use crate::store::Reading;
use crate::view::{AView, Force, State, ViewProblem};

/// What a statement gave.
pub enum Outcome {
    /// Rows.
    Rows(SendableRecordBatchStream),
    /// A sentence that says what was done.
    Done(String),
}

/// What a query would give.
#[derive(Clone, Debug)]
pub struct Described {
    /// Types of its parameters by name, such as `$1`; `None` where nothing says what they are.
    pub parameters: HashMap<String, Option<DataType>>,
    /// Its columns.
    pub schema: SchemaRef,
}

/// A session of one owner or analyst.
pub struct Session {
    pub(super) shared: Arc<Shared>,
    pub(super) role: Role,
    /// Who logged in, where somebody did.
    pub(super) login: Option<String>,
    pub(super) context: SessionContext,
    pub(super) progress: Arc<dyn Progress + Send + Sync>,
    /// The change under way.
    pub(super) transaction: Option<Transaction>,
    /// Whether a transaction was given up in the middle of a statement, and nobody has been told.
    pub(super) is_transaction_lost: bool,
    /// Whether statements run that a data folder has kept.
    pub(super) is_restoring: bool,
}

impl Session {
    pub(super) fn new(shared: Arc<Shared>, role: Role) -> Session {
        let of_role = match role {
            Role::Owner => &shared.owner,
            Role::Analyst => &shared.analyst,
        };
        // The catalog is shared, options and prepared statements are not.
        let state = SessionStateBuilder::new_from_existing(of_role.state());
        Session::of_state(state, shared, role, None)
    }

    /// The session of somebody who has logged in; an analyst's has a catalog of its own.
    pub(super) fn of_login(shared: Arc<Shared>, role: Role, login: &str) -> Session {
        let state = match role {
            Role::Owner => SessionStateBuilder::new_from_existing(shared.owner.state()),
            Role::Analyst => SessionStateBuilder::new_from_existing(shared.analyst.state())
                .with_catalog_list(GrantedViews::catalogs(Arc::clone(&shared), login)),
        };
        Session::of_state(state, shared, role, Some(login.to_owned()))
    }

    fn of_state(state: SessionStateBuilder, shared: Arc<Shared>, role: Role, login: Option<String>) -> Session {
        let mut state = state.with_session_id(session_id()).build();
        state.config_mut().options_mut().extensions.insert(ViewOptions { role, ..ViewOptions::default() });
        Session {
            context: SessionContext::new_with_state(state),
            shared,
            role,
            login,
            progress: Arc::new(Silent),
            transaction: None,
            is_transaction_lost: false,
            is_restoring: false,
        }
    }

    /// What it may run.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The session of DataFusion it plans in, to add what clients expect to find there. It holds what its login may
    /// read, and nothing else.
    pub fn context(&self) -> &SessionContext {
        &self.context
    }

    /// Counts what was taken away from anybody: where it has changed, open cursors are to be asked for again.
    pub fn revocations(&self) -> u64 {
        self.shared.accounts.get().map_or(0, Accounts::revocations)
    }

    /// Tells somebody how far long statements are.
    pub fn report_to(&mut self, progress: Arc<dyn Progress + Send + Sync>) {
        self.progress = progress;
    }

    /// Runs one statement.
    ///
    /// # Errors
    /// Where it is not allowed, means nothing, or fails.
    pub async fn run(&mut self, parsed: Parsed) -> Result<Outcome, SqlError> {
        let Parsed { statement, access, text } = parsed;
        let mut views = Vec::new();
        let granted = self.granted(&access).unwrap_or_else(|_| access.clone());
        let asked = Asked::new(self, &text, &self.stated(&granted));
        self.note_day().await;
        let answer = match self.check(&statement) {
            Ok(()) => self.answer(statement, &access, &text, &mut views).await,
            Err(refusal) => Err(refusal),
        };
        let outcome = match &answer {
            Ok(_) => LogOutcome::Answered,
            Err(error) if error.is_refusal() => LogOutcome::Refused,
            Err(_) => LogOutcome::Failed,
        };
        let entry = asked.end(outcome, views.clone())?;
        Ok(match answer? {
            Outcome::Rows(stream) => Outcome::Rows(self.watched(self.while_granted(stream, &views, granted), entry)),
            done => done,
        })
    }

    /// Rows that are recorded as broken off where they fail on their way.
    fn watched(&self, stream: SendableRecordBatchStream, entry: LogEntry) -> SendableRecordBatchStream {
        let (shared, schema) = (Arc::clone(&self.shared), stream.schema());
        let record = move |error: DataFusionError| {
            let entry = LogEntry { time: (shared.clock)(), outcome: LogOutcome::BrokenOff, ..entry.clone() };
            match shared.log().record(entry) {
                Ok(()) => error,
                Err(unwritten) => DataFusionError::External(Box::new(SqlError::Log(unwritten))),
            }
        };
        Box::pin(RecordBatchStreamAdapter::new(schema, stream.map_err(record)))
    }

    /// Runs a statement that a data folder has kept, as if it had never been away.
    pub(super) async fn restore(&mut self, parsed: Parsed) -> Result<(), SqlError> {
        self.is_restoring = true;
        let Parsed { statement, access, text } = parsed;
        let done = self.answer(statement, &access, &text, &mut Vec::new()).await;
        self.is_restoring = false;
        match done {
            // A view that can't be built is there, and says why.
            Ok(_) | Err(SqlError::View(ViewProblem::Unusable { .. })) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// What a query would give and what parameters it takes, without running it; `None` of anything else.
    ///
    /// # Errors
    /// Where it is not allowed, or can't be planned.
    pub async fn describe(&self, parsed: &Parsed) -> Result<Option<Described>, SqlError> {
        self.check(&parsed.statement)?;
        let Statement::Sql(statement) = &parsed.statement else { return Ok(None) };
        let is_query = matches!(statement.as_ref(),
            DFStatement::Statement(statement) if matches!(statement.as_ref(), SqlStatement::Query(_)));
        if !is_query {
            return Ok(None);
        }
        let plan = self.planned(&self.scoped(&Access::default())?, statement).await?;
        if self.role == Role::Analyst {
            check_growth(&plan)?;
        }
        let parameters = plan.get_parameter_types()?;
        Ok(Some(Described { parameters, schema: Arc::new(plan.schema().as_arrow().clone()) }))
    }

    /// Names of tables and columns that statements of this session can use, for completion.
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for catalog in self.context.catalog_names() {
            let Some(catalog) = self.context.catalog(&catalog) else { continue };
            for schema in catalog.schema_names().iter().filter_map(|name| catalog.schema(name)) {
                names.extend(schema.table_names());
            }
        }
        let views = self.seen_views();
        names.extend(views.values().flat_map(|view| view.definition.columns.iter().map(|column| column.name.clone())));
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The views it may know of, by name.
    pub(super) fn seen_views(&self) -> BTreeMap<String, Arc<AView>> {
        let views = self.shared.views.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        match (self.role, &self.login, self.shared.accounts.get()) {
            (Role::Analyst, Some(login), Some(accounts)) => {
                let is_granted = |(name, _): &(&String, &Arc<AView>)| accounts.may_read(login, name);
                views.iter().filter(is_granted).map(|(name, view)| (name.clone(), Arc::clone(view))).collect()
            }
            _ => views.clone(),
        }
    }

    fn check(&self, statement: &Statement) -> Result<(), SqlError> {
        self.check_login()?;
        match self.role {
            Role::Owner => Ok(()),
            Role::Analyst => allowed::check(statement),
        }
    }

    async fn answer(
        &mut self,
        statement: Statement,
        access: &Access,
        text: &StatementText,
        views: &mut Vec<UsedView>,
    ) -> Result<Outcome, SqlError> {
        if makes_or_drops(&statement) {
            self.outside_of_transactions()?;
        }
        match statement {
            Statement::Sql(statement) => self.sql(*statement, access, text, views).await,
            Statement::CreateHierarchy { name, or_replace, source } => {
                self.shared.hierarchies_mut().create(&name, or_replace, source.as_ref())?;
                self.keep_hierarchy(&name).await?;
                Ok(Outcome::Done(format!("created DGH {name}")))
            }
            Statement::InsertHierarchy { name, pairs } => {
                self.shared.hierarchies_mut().insert(&name, &pairs)?;
                self.keep_hierarchy(&name).await?;
                Ok(Outcome::Done(format!("added {} to DGH {name}", counted(pairs.len(), "pair"))))
            }
            Statement::DropHierarchy { name, if_exists } => {
                let was_there = self.shared.hierarchies_mut().remove(&name, if_exists)?;
                self.keep_hierarchy(&name).await?;
                Ok(Outcome::Done(format!("{} DGH {name}", if was_there { "dropped" } else { "there is no" })))
            }
            Statement::CreateView(statement) => {
                let name = statement.name.clone();
                let created = self.create_view(*statement).await;
                if matches!(created, Ok(_) | Err(SqlError::View(ViewProblem::Unusable { .. }))) {
                    self.keep_statement(&name, &text.written).await?;
                }
                created
            }
            Statement::DropView { name, if_exists } => {
                let known = self.shared.view(&name);
                if known.is_none() && self.context.table_exist(name.as_str())? {
                    return Err(SqlError::UnknownView { name });
                }
                let materialized = known.clone().filter(|view| matches!(view.state(), State::Materialized { .. }));
                // First: were it to end in between, another view of this name must not be theirs who read this one.
                self.revoke_from_all(&name).await?;
                let (was_kept, _turn) = self.forget_view(&name, materialized).await?;
                match known {
                    // It lost its tables, and was not there since.
                    None if was_kept => Ok(Outcome::Done(format!("dropped anonymization view {name}"))),
                    _ => self.drop_view(&name, if_exists),
                }
            }
            Statement::RefreshView { name, force } => {
                self.refresh_view(&name, if force { Force::Yes } else { Force::No }).await
            }
            Statement::Backup { file } => self.backup(&file).await,
            Statement::CopyFrom { .. } if self.is_transaction_lost => Err(SqlError::TransactionLost),
            Statement::CopyFrom { table, file } => self.copy_from(&table, &file).await,
            Statement::ShowViews => self.show_views(),
            Statement::ShowHierarchies => self.show_hierarchies(),
            Statement::ShowLog => rows(self.shared.log().to_batch()),
            Statement::ShowCollection { view } => self.show_collection(&view),
            Statement::ExplainUtility(query) => self.explain_utility(*query, access).await,
            Statement::Access(statement) => self.run_access(statement).await,
            Statement::ImportPolicy { file, table, person, k } => {
                self.import_policy(&file, table, &ImportDefaults { person, k }).await
            }
        }
    }

    /// Runs what is DataFusion's.
    async fn sql(
        &mut self,
        statement: DFStatement,
        access: &Access,
        text: &StatementText,
        views: &mut Vec<UsedView>,
    ) -> Result<Outcome, SqlError> {
        if let Some(step) = TransactionStep::of(&statement) {
            return self.transaction_step(step).await;
        }
        if self.role == Role::Analyst {
            allowed::check_options(&statement)?;
        }
        if self.is_transaction_lost {
            return Err(SqlError::TransactionLost);
        }
        if let Some(outcome) = self.insert_literals(&statement).await? {
            return Ok(outcome);
        }
        if let DFStatement::Reset(ResetStatement::Variable(name)) = &statement
            && let Some(option) = name.to_string().to_lowercase().strip_prefix("kohort.")
        {
            return self.reset(option);
        }
        let granted = self.granted(access);
        if let Ok(granted) = &granted
            && let Some(outcome) = self.point(&statement, granted, views).await
        {
            return Ok(outcome);
        }
        let mut context = self.scoped(granted.as_ref().unwrap_or(access))?;
        let plan = self.planned(&context, &statement).await?;
        if self.role == Role::Analyst {
            check_growth(&plan)?;
        }
        *views = views_of(&plan)?;
        if !views.is_empty() {
            self.granted(access)?;
            self.check_readable(views).await?;
        }
        let mut changed = changed_table(&plan);
        let is_prepared = matches!(plan, LogicalPlan::Statement(PlanStatement::Execute(_)));
        let mut turn = None;
        // What changes rows waits for its turn to change them.
        if (is_prepared || !views.is_empty()) && changed.is_none() {
            // Whoever waits keeps no state of the store.
            drop(context);
            turn = self.readers_turn().await;
            context = self.scoped(granted.as_ref().unwrap_or(access))?;
            context = turn.as_ref().map_or(context.clone(), |turn| turn.scope(&context));
        }
        if let Some(name) = changed.as_deref().filter(|name| self.shared.view(name).is_some()) {
            let is_new =
                matches!(plan, LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(_) | DdlStatement::CreateView(_)));
            let name = name.to_owned();
            return Err(if is_new { SqlError::Exists { name } } else { SqlError::IsView { name } });
        }
        if matches!(plan, LogicalPlan::Ddl(_)) {
            self.outside_of_transactions()?;
        }
        let is_silent = !is_prepared && matches!(plan, LogicalPlan::Ddl(_) | LogicalPlan::Statement(_));
        if is_silent && matches!(plan, LogicalPlan::Statement(_)) && *access != Access::default() {
            return Err(SqlError::NothingAsked);
        }
        if let Some(outcome) = self.stored_plan(&context, &plan).await? {
            return Ok(outcome);
        }
        // What a statement sets stays with the session.
        let context =
            if is_silent && matches!(plan, LogicalPlan::Statement(_)) { self.context.clone() } else { context };
        let done = done_to_table(&plan);
        let kept = kept_statement(&plan);
        let frame = match &plan {
            // The query of a new table runs here.
            LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(create)) => {
                let name = create.name.table().to_owned();
                if !create.or_replace && !create.if_not_exists && context.table_exist(create.name.clone())? {
                    return Err(SqlError::Exists { name });
                }
                context.execute_logical_plan(plan).await.map_err(SqlError::while_running)?
            }
            _ => context.execute_logical_plan(plan).await?,
        };
        if is_prepared {
            if self.role == Role::Analyst {
                // With its values in their places.
                check_growth(frame.logical_plan())?;
            }
            *views = views_of(frame.logical_plan())?;
            if views.is_empty() {
                turn = None;
            } else {
                granted?;
                self.check_readable(views).await?;
            }
            changed = changed_table(frame.logical_plan());
        }
        if is_silent {
            frame.collect().await?;
            let Some(name) = changed else { return Ok(Outcome::Done("done".to_owned())) };
            match kept {
                Kept::Made => self.keep_statement(&name, &text.written).await?,
                Kept::Dropped => self.forget_statement(&name).await?,
                Kept::Neither => {}
            }
            self.shared.generations.bump(&name);
            return Ok(Outcome::Done(format!("{done} {name}")));
        }
        // A view may get another version between two looks at it: an answer is of one.
        let stream = loop {
            let stream = frame.clone().execute_stream().await;
            let seen = views_of(frame.logical_plan())?;
            if seen == *views {
                break said_by_kind(stream?);
            }
            *views = seen;
            self.check_readable(views).await?;
        };
        match (changed, turn) {
            // Statements that change rows do so while their stream is read.
            (Some(name), _) => self.changed_rows(stream, &name).await,
            (None, None) => Ok(Outcome::Rows(stream)),
            (None, Some(_turn)) => Ok(Outcome::Rows(begun(stream).await?)),
        }
    }

    /// Waits until few others read views. Whoever is in a transaction does not wait, since others wait for it.
    async fn readers_turn(&self) -> Option<Waited> {
        match self.transaction {
            None => self.shared.readers.turn(self.login.as_deref()).await,
            Some(_) => None,
        }
    }

    async fn planned(&self, context: &SessionContext, statement: &DFStatement) -> Result<LogicalPlan, SqlError> {
        let state = context.state();
        match state.statement_to_plan(statement.clone()).await {
            Ok(plan) => Ok(plan),
            Err(error) => {
                let is_aggregate = |name: &str| state.aggregate_functions().contains_key(name);
                // A view that may not be read is not known of either.
                let views = self.seen_views();
                let refusal = unplanned::refusal(statement, |name| views.get(name).cloned(), is_aggregate);
                Err(refusal.map_or_else(|| error.into(), SqlError::Refused))
            }
        }
    }

    async fn changed_rows(&self, stream: SendableRecordBatchStream, name: &str) -> Result<Outcome, SqlError> {
        let schema = stream.schema();
        let batches: Vec<RecordBatch> = stream.try_collect().await?;
        self.shared.generations.bump(name);
        let batches = futures::stream::iter(batches.into_iter().map(Ok));
        Ok(Outcome::Rows(Box::pin(RecordBatchStreamAdapter::new(schema, batches))))
    }

    /// Sets an option of views to what it was at first.
    fn reset(&self, option: &str) -> Result<Outcome, SqlError> {
        let state = self.context.state_ref();
        let mut state = state.write();
        if let Some(options) = state.config_mut().options_mut().extensions.get_mut::<ViewOptions>() {
            options.set(option, "")?;
        }
        Ok(Outcome::Done("done".to_owned()))
    }

    /// The session with the purpose and recipient of one statement, and the one state of the store that it reads.
    pub(super) fn scoped(&self, access: &Access) -> Result<SessionContext, SqlError> {
        let reading = self.reading()?;
        if *access == Access::default() && reading.is_none() {
            return Ok(self.context.clone());
        }
        let mut state = self.context.state();
        let Access { purpose, recipient } = self.stated(access);
        let options = ViewOptions { purpose, recipient, ..self.options() };
        state.config_mut().options_mut().extensions.insert(options);
        if let Some(reading) = reading {
            state.config_mut().set_extension(Arc::new(reading));
        }
        Ok(SessionContext::new_with_state(state))
    }

    /// The one state of the store that a statement reads.
    pub(super) fn reading(&self) -> Result<Option<Reading>, SqlError> {
        Ok(match (&self.transaction, &self.shared.data) {
            (Some(transaction), _) => Some(Reading::Change(Arc::clone(&transaction.change))),
            (None, Some(data)) => Some(Reading::Snapshot(data.store.read()?)),
            (None, None) => None,
        })
    }

    pub(super) fn options(&self) -> ViewOptions {
        let state = self.context.state_ref();
        let state = state.read();
        state.config().options().extensions.get::<ViewOptions>().cloned().unwrap_or_default()
    }

    /// Purpose and recipient of a statement: its own, else the session's.
    pub(super) fn stated(&self, access: &Access) -> Access {
        let options = self.options();
        Access {
            purpose: access.purpose.clone().or(options.purpose),
            recipient: access.recipient.clone().or(options.recipient),
        }
    }
}

/// `1 pair`, `2 pairs`.
pub(super) fn counted(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// Rows whose errors quote no cell.
fn said_by_kind(stream: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let by_kind = |error| DataFusionError::External(Box::new(SqlError::while_running(error)));
    let schema = stream.schema();
    Box::pin(RecordBatchStreamAdapter::new(schema, stream.map_err(by_kind)))
}

/// A figure as it is shown.
pub(super) fn rounded(figure: f64) -> f64 {
    (figure * 1e6).round() / 1e6
}

/// Whether a statement makes, changes or drops something that is kept beside rows.
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

/// One batch as an answer.
pub(super) fn rows(batch: RecordBatch) -> Result<Outcome, SqlError> {
    let schema = batch.schema();
    let stream = RecordBatchStreamAdapter::new(schema, futures::stream::iter([Ok(batch)]));
    Ok(Outcome::Rows(Box::pin(stream)))
}

/// The views a plan reads.
///
/// # Errors
/// Where a view whose answers depend on its members' values is joined with anything.
fn views_of(plan: &LogicalPlan) -> Result<Vec<UsedView>, SqlError> {
    let mut views: Vec<UsedView> = Vec::new();
    let (mut n_scans, mut is_joined, mut matching) = (0, false, None);
    plan.apply_with_subqueries(|node| {
        is_joined |= matches!(node, LogicalPlan::Join(_));
        let LogicalPlan::TableScan(scan) = node else { return Ok(TreeNodeRecursion::Continue) };
        n_scans += 1;
        if let Some(view) = source_as_provider(&scan.source)?.downcast_ref::<AView>() {
            let name = view.definition.name.clone();
            if view.definition.answers == Answers::Matching {
                matching = Some(name.clone());
            }
            let used = UsedView { name, version: view.version().map_or(0, |version| version.number) };
            if !views.contains(&used) {
                views.push(used);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    match matching {
        Some(name) if is_joined || n_scans > 1 => Err(SqlError::MatchingJoined { name }),
        _ => Ok(views),
    }
}

/// The table a plan changes.
fn changed_table(plan: &LogicalPlan) -> Option<String> {
    let name = match plan {
        LogicalPlan::Analyze(analyzed) => return changed_table(&analyzed.input),
        LogicalPlan::Dml(change) => &change.table_name,
        LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(create)) => &create.name,
        LogicalPlan::Ddl(DdlStatement::CreateExternalTable(create)) => &create.name,
        LogicalPlan::Ddl(DdlStatement::CreateView(create)) => &create.name,
        LogicalPlan::Ddl(DdlStatement::DropTable(drop)) => &drop.name,
        LogicalPlan::Ddl(DdlStatement::DropView(drop)) => &drop.name,
        _ => return None,
    };
    Some(name.table().to_owned())
}

/// What a plan does to the table it changes, in words.
fn done_to_table(plan: &LogicalPlan) -> &'static str {
    match plan {
        LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(_) | DdlStatement::CreateExternalTable(_)) => "created table",
        LogicalPlan::Ddl(DdlStatement::CreateView(_)) => "created view",
        LogicalPlan::Ddl(DdlStatement::DropTable(_) | DdlStatement::DropView(_)) => "dropped",
        _ => "changed",
    }
}

/// What a data folder keeps of a statement.
enum Kept {
    Made,
    Dropped,
    Neither,
}

fn kept_statement(plan: &LogicalPlan) -> Kept {
    match plan {
        LogicalPlan::Ddl(DdlStatement::CreateExternalTable(create)) if !create.temporary => Kept::Made,
        LogicalPlan::Ddl(DdlStatement::CreateView(create)) if !create.temporary => Kept::Made,
        LogicalPlan::Ddl(DdlStatement::DropTable(_) | DdlStatement::DropView(_)) => Kept::Dropped,
        _ => Kept::Neither,
    }
}

fn session_id() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("session {}", NEXT.fetch_add(1, Ordering::Relaxed))
}
