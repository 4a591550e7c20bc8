//! Making materialized views, and letting them follow the changes of transactions.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, ScalarValue};
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableScan, col, in_list, lit};
use kohort_store::{Change, Condition, ScanRequest, StoreError, Uniqueness, Value};
use tokio::runtime::Handle;

use super::create::{self, Built, Planned};
use crate::SqlError;
use crate::engine::change::catalog::{self, CatalogChange};
use crate::engine::change::stored::reading;
use crate::engine::change::transactions::{self, Touched, Transaction, blocking};
use crate::engine::{Session, Shared};
use crate::parser::Refresh;
use crate::store::{StoredTable, value_of};
use crate::view::{
    Changed, Definition, EVERYBODY, Making, Materialized, MaterializedError, Origin, PolicyRows, Remade, State, Told,
    ViewError, ViewPlans, check,
};

/// How many persons are looked up with one scan.
const MOST_NAMES: usize = 10_000;

/// Makes a materialized view, or opens it if the data folder keeps it. The change is not committed yet: nobody may change the
/// table of the view before the catalog has it.
pub(crate) async fn materialize(session: &Session, planned: &Planned) -> Result<(CatalogChange, State), SqlError> {
    let Some(store) = &session.shared.store else { return Err(MaterializedError::NoDataFolder.into()) };
    check(&planned.definition)?;
    let origin = origin(planned)?;
    let name = planned.definition.name.clone();
    if session.is_restoring {
        let snapshot = store.read()?;
        if Materialized::is_kept(&name, &snapshot)? {
            let (definition, most_kept_bytes) = (Arc::clone(&planned.definition), session.options().most_kept_bytes());
            let view = blocking(move || Materialized::open(definition, origin, &snapshot, most_kept_bytes)).await?;
            let state = State::Materialized { view: Arc::new(view), plans: planned.plans.clone() };
            return Ok((catalog::change_catalog(session).await?, state));
        }
    }
    let (change, state, _) = make(session, planned, origin, None).await?;
    Ok((change, state))
}

/// Makes a materialized view anew. The change is not committed yet.
pub(crate) async fn rematerialize(
    session: &Session,
    planned: &Planned,
    old: Arc<Materialized>,
    how: Refresh,
) -> Result<(CatalogChange, State, Told), SqlError> {
    make(session, planned, origin(planned)?, Some((old, how))).await
}

async fn make(
    session: &Session,
    planned: &Planned,
    origin: Origin,
    old: Option<(Arc<Materialized>, Refresh)>,
) -> Result<(CatalogChange, State, Told), SqlError> {
    transactions::outside_of_transactions(session)?;
    // Nobody else changes the rows while the transaction holds the turn.
    let transaction = transactions::begin(session).await?;
    let context = reading(&session.shared.owner, &transaction);
    let Built { version, rows, .. } = create::version(session, &session.shared.owner, planned).await?;
    let policies = match &planned.plans.policies {
        Some(plan) => Some(policy_rows(&context, plan.as_ref().clone(), &planned.definition).await?),
        None => None,
    };
    let (shared, change) = (Arc::clone(&session.shared), Arc::clone(&transaction.change));
    let (now, most_kept_bytes) = ((shared.clock)().timestamp_micros(), session.options().most_kept_bytes());
    let made = blocking(move || {
        index_persons(&origin, &change)?;
        let catalog = shared.hierarchies.read();
        let making = Making { version: &version, rows, policies, catalog: &catalog, origin, now, most_kept_bytes };
        let made = match old {
            None => Materialized::make(&change, &making).map(|view| Remade { view, told: Told::Whole }),
            Some((old, how)) => old.remake(&change, &making, how),
        };
        made.map_err(SqlError::from)
    });
    let Remade { view, told } = made.await?;
    let state = State::Materialized { view: Arc::new(view), plans: planned.plans.clone() };
    Ok((CatalogChange::Kept(transaction), state, told))
}

/// Removes the stored rows of a materialized view, within a transaction.
pub(crate) async fn unmaterialize(name: &str, transaction: &Transaction) -> Result<(), SqlError> {
    let (name, change) = (name.to_owned(), Arc::clone(&transaction.change));
    blocking(move || Materialized::drop_kept(&name, &change)).await
}

impl Shared {
    /// Lets materialized views follow the changes of a transaction, within the transaction. Waits for the disk and for plans.
    pub(crate) fn let_views_follow(&self, transaction: &Transaction) -> Result<Vec<Arc<Materialized>>, SqlError> {
        let mut followed = Vec::new();
        if transaction.touched.is_empty() {
            return Ok(followed);
        }
        let context = || reading(&self.owner, transaction);
        let now = (self.clock)().timestamp_micros();
        for (view, ViewPlans { query, policies }) in self.materialized() {
            let Some(names) = touched_persons(&view.origin, &transaction.touched) else { continue };
            followed.push(Arc::clone(&view));
            let definition = view.definition();
            let rows = match looked_up(&transaction.change, &query, definition, &names)? {
                Some(rows) => rows,
                None => Handle::current().block_on(rows_of(&context(), &query, definition, &names))?,
            };
            let names = match names {
                TouchedPersons::Some(names) => names.into_iter().collect(),
                TouchedPersons::Everybody(names) => all_names(&rows, definition, names)?,
            };
            let policies = match (policies, &view.origin.policy) {
                (Some(plan), Some((_, key))) => {
                    let plan = of_persons(plan.as_ref().clone(), key, &names)?;
                    Some(Handle::current().block_on(policy_rows(&context(), plan, definition))?)
                }
                _ => None,
            };
            let Origin { table, identifier, .. } = &view.origin;
            let renamed = transaction.renamed.get(table).and_then(|columns| columns.get(identifier));
            let renamed = renamed.cloned().unwrap_or_default();
            view.follow(&transaction.change, &Changed { names, renamed, rows, policies, now })?;
        }
        Ok(followed)
    }

    /// The materialized views, each with its plans.
    pub(crate) fn materialized(&self) -> Vec<(Arc<Materialized>, ViewPlans)> {
        let views = self.views.read();
        let materialized = |state: State| match state {
            State::Materialized { view, plans } => Some((view, plans)),
            State::Usable { .. } | State::Unusable { .. } | State::Stale(_) => None,
        };
        views.values().filter_map(|view| materialized(view.state())).collect()
    }

    /// The columns of a table that tell which persons of a materialized view a change concerns. Refuses a table whose views
    /// could not follow.
    pub(crate) fn watched(&self, table: &str) -> Result<Vec<String>, SqlError> {
        self.check_followed(table)?;
        let mut columns = BTreeSet::new();
        for (view, _) in self.materialized() {
            let Origin { table: base, identifier, policy } = &view.origin;
            columns.extend((base == table).then(|| identifier.clone()));
            columns.extend(policy.iter().filter(|(policies, _)| policies == table).map(|(_, key)| key.clone()));
        }
        Ok(columns.into_iter().collect())
    }

    /// Refuses to change a table if a view that is made from it could not be opened.
    pub(crate) fn check_followed(&self, table: &str) -> Result<(), SqlError> {
        match self.unfollowed.lock().iter().find(|(_, tables)| tables.contains(table)) {
            Some((view, _)) => Err(SqlError::InUse { name: table.to_owned(), view: view.clone() }),
            None => Ok(()),
        }
    }

    /// The materialized views that are made from a table.
    pub(crate) fn views_of_table(&self, table: &str) -> Vec<String> {
        let is_of = |origin: &Origin| {
            origin.table == table || origin.policy.as_ref().is_some_and(|(policies, _)| policies == table)
        };
        let views = self.materialized().into_iter().filter(|(view, _)| is_of(&view.origin));
        let mut names: Vec<String> = views.map(|(view, _)| view.definition().name.clone()).collect();
        let unfollowed = self.unfollowed.lock();
        names.extend(unfollowed.iter().filter(|(_, tables)| tables.contains(table)).map(|(view, _)| view.clone()));
        names
    }
}

enum TouchedPersons {
    Some(BTreeSet<String>),
    /// Everybody in the table, and these persons, who may have left it.
    Everybody(BTreeSet<String>),
}

/// The persons that a change concerns; `None` if it concerns nobody.
fn touched_persons(origin: &Origin, touched: &Touched) -> Option<TouchedPersons> {
    let of = |table: &str, column: &str| touched.get(table).and_then(|columns| columns.get(column));
    let mut names = of(&origin.table, &origin.identifier).cloned().unwrap_or_default();
    if let Some((table, key)) = &origin.policy {
        let choosing = of(table, key);
        names.extend(choosing.into_iter().flatten().cloned());
        if names.contains(EVERYBODY) {
            return Some(TouchedPersons::Everybody(names));
        }
    }
    (!names.is_empty()).then_some(TouchedPersons::Some(names))
}

/// The rows that a view's query has of some persons, found without a plan; `None` if a plan is needed.
fn looked_up(
    change: &Change,
    query: &LogicalPlan,
    definition: &Definition,
    names: &TouchedPersons,
) -> Result<Option<RecordBatch>, SqlError> {
    let TouchedPersons::Some(names) = names else { return Ok(None) };
    let Some(lookup) = Lookup::of(query, definition)? else { return Ok(None) };
    let names: Vec<String> = names.iter().cloned().collect();
    Ok(Some(lookup.rows(change, &names)?))
}

/// The rows that a view's query has of some persons.
async fn rows_of(
    context: &SessionContext,
    query: &LogicalPlan,
    definition: &Definition,
    names: &TouchedPersons,
) -> Result<RecordBatch, SqlError> {
    let plan = match names {
        TouchedPersons::Everybody(_) => query.clone(),
        TouchedPersons::Some(names) => {
            let identifier = Column::from(query.schema().qualified_field(definition.identifier));
            let data_type = &definition.columns[definition.identifier].data_type;
            let names: Vec<Expr> = names.iter().filter_map(|name| literal(name, data_type)).collect();
            LogicalPlanBuilder::from(query.clone()).filter(in_list(col(identifier), names, false))?.build()?
        }
    };
    let rows = create::all_rows(context, plan).await;
    Ok(rows.map_err(|error| ViewError::of_query(&definition.name, &error))?)
}

/// The query of a view that only lists columns of a stored table. Its rows are found by identifier, without a plan.
struct Lookup {
    table: String,
    columns: Vec<String>,
    identifier: String,
    data_type: DataType,
    schema: SchemaRef,
}

impl Lookup {
    /// `None` if the query does more than list columns.
    fn of(query: &LogicalPlan, definition: &Definition) -> Result<Option<Lookup>, SqlError> {
        let LogicalPlan::Projection(projection) = query else { return Ok(None) };
        let mut below = projection.input.as_ref();
        while let LogicalPlan::SubqueryAlias(alias) = below {
            below = alias.input.as_ref();
        }
        let LogicalPlan::TableScan(scan) = below else { return Ok(None) };
        let Some(table) = stored_name(scan)? else { return Ok(None) };
        let columns: Option<Vec<String>> = projection.expr.iter().map(|shown| Some(column_of(shown)?.name)).collect();
        let Some(columns) = columns.filter(|_| scan.filters.is_empty() && scan.fetch.is_none()) else {
            return Ok(None);
        };
        Ok(Some(Lookup {
            table,
            identifier: columns[definition.identifier].clone(),
            data_type: definition.columns[definition.identifier].data_type.clone(),
            columns,
            schema: Arc::new(query.schema().as_arrow().clone()),
        }))
    }

    fn rows(&self, change: &Change, names: &[String]) -> Result<RecordBatch, StoreError> {
        let mut batches = Vec::new();
        let columns = Some(self.columns.clone());
        for names in names.chunks(MOST_NAMES) {
            let values = names.iter().filter_map(|name| stored_value(name, &self.data_type)).collect();
            let conditions = vec![Condition::In { column: self.identifier.clone(), values }];
            let request = ScanRequest { columns: columns.clone(), conditions, ..ScanRequest::default() };
            batches.extend(change.scan(&self.table, &request)?.collect::<Result<Vec<_>, _>>()?);
        }
        let batches = batches.iter().map(|batch| {
            let columns = batch.columns().to_vec();
            RecordBatch::try_new(Arc::clone(&self.schema), columns).expect("columns are the table's")
        });
        Ok(concat_batches(&self.schema, &batches.collect::<Vec<_>>()).expect("batches are of one schema"))
    }
}

fn column_of(shown: &Expr) -> Option<Column> {
    match shown {
        Expr::Alias(alias) => column_of(&alias.expr),
        Expr::Column(column) => Some(column.clone()),
        _ => None,
    }
}

fn stored_value(name: &str, data_type: &DataType) -> Option<Value> {
    value_of(&ScalarValue::try_from_string(name.to_owned(), data_type).ok()?)
}

fn literal(name: &str, data_type: &DataType) -> Option<Expr> {
    ScalarValue::try_from_string(name.to_owned(), data_type).ok().map(lit)
}

/// The names of the persons in some rows, together with the names in `others`.
fn all_names(
    rows: &RecordBatch,
    definition: &Definition,
    mut others: BTreeSet<String>,
) -> Result<Vec<String>, SqlError> {
    let names = cast(rows.column(definition.identifier), &DataType::Utf8);
    let names = names.map_err(|error| ViewError::of_query(&definition.name, &error.into()))?;
    others.extend(names.as_string::<i32>().iter().flatten().map(str::to_owned));
    Ok(others.into_iter().collect())
}

/// The rows of a table of choices that are about some persons, or about everybody.
fn of_persons(plan: LogicalPlan, key: &str, names: &[String]) -> Result<LogicalPlan, SqlError> {
    let (qualifier, field) = plan.schema().qualified_field_with_unqualified_name(key)?;
    let (column, data_type) = (Column::from((qualifier, field)), field.data_type().clone());
    let names = names.iter().map(String::as_str).chain([EVERYBODY]);
    let names: Vec<Expr> = names.filter_map(|name| literal(name, &data_type)).collect();
    Ok(LogicalPlanBuilder::from(plan).filter(in_list(col(column), names, false))?.build()?)
}

async fn policy_rows(
    context: &SessionContext,
    plan: LogicalPlan,
    definition: &Definition,
) -> Result<PolicyRows, SqlError> {
    let rows = create::all_rows(context, plan).await.map_err(SqlError::while_running)?;
    Ok(PolicyRows::read(&rows.schema(), &[rows], definition)?)
}

/// The stored tables that a view's query and its policies read.
fn origin(planned: &Planned) -> Result<Origin, SqlError> {
    let (definition, query) = (&planned.definition, planned.plans.query.as_ref());
    let what = |what: &'static str| SqlError::from(MaterializedError::Query { what });
    let LogicalPlan::Projection(projection) = query else { return Err(what("this one is no list of columns")) };
    let identifier = column_of(&projection.expr[definition.identifier]);
    let identifier = identifier.ok_or_else(|| what("its identifier is computed"))?.name;
    let mut below = projection.input.as_ref();
    let table = loop {
        below = match below {
            LogicalPlan::Filter(filter) => {
                if filter.predicate.exists(|part| Ok(is_subquery(part)))? {
                    return Err(what("its WHERE reads another table"));
                }
                filter.input.as_ref()
            }
            LogicalPlan::SubqueryAlias(alias) => alias.input.as_ref(),
            LogicalPlan::TableScan(scan) => match stored_name(scan)? {
                Some(name) => break name,
                None => return Err(what("this one reads a table that is not stored")),
            },
            _ => return Err(what("this one joins, groups or sorts")),
        };
    };
    let policy = match (&definition.clauses.policy, planned.plans.policies.as_deref()) {
        (Some(policy), Some(LogicalPlan::TableScan(scan))) => {
            let name =
                stored_name(scan)?.ok_or_else(|| what("the choices of this one are in a table that is not stored"))?;
            let fields = scan.source.schema();
            // The case of column names does not matter in tables of choices.
            let is_person = |name: &&String| name.eq_ignore_ascii_case(&policy.person_column);
            let person = fields.fields().iter().map(|field| field.name()).find(is_person);
            Some((name, person.unwrap_or(&policy.person_column).clone()))
        }
        (Some(_), _) => return Err(what("the choices of this one are not read from a stored table")),
        (None, _) => None,
    };
    Ok(Origin { table, identifier, policy })
}

/// Makes indexes on the columns that name persons, because each change looks up the rows and choices of some persons.
fn index_persons(origin: &Origin, change: &Change) -> Result<(), StoreError> {
    let choices = origin.policy.iter().map(|(table, key)| (table, key));
    for (table, column) in [(&origin.table, &origin.identifier)].into_iter().chain(choices) {
        let Some(description) = change.table(table)? else { continue };
        let mut indexes = description.indexes.iter().map(|index| &index.columns).chain([&description.primary_key]);
        if !indexes.any(|columns| columns.first() == Some(column)) {
            change.create_index(table, std::slice::from_ref(column), Uniqueness::Plain)?;
        }
    }
    Ok(())
}

/// The name of the scanned table, if it is stored.
fn stored_name(scan: &TableScan) -> Result<Option<String>, SqlError> {
    let provider = source_as_provider(&scan.source)?;
    Ok(provider.downcast_ref::<StoredTable>().map(|table| table.description().name.clone()))
}

fn is_subquery(expression: &Expr) -> bool {
    matches!(expression, Expr::Exists(_) | Expr::InSubquery(_) | Expr::ScalarSubquery(_))
}
