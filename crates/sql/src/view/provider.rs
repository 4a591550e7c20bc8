//! [`AView`]: an A-view as a table of a query.
//!
//! # Guarantee
//! A query gets what it would get on the one relation that the version, the reader's purpose and recipient, and the day
//! fix. Filters are taken only to leave out classes that can't match; they are applied again to what leaves.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use chrono::NaiveDate;
use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray, new_null_array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, TableProviderFilterPushDown, TableType, col, in_list, lit,
};
use datafusion::physical_plan::ExecutionPlan;
use kohort_model::{NULL, Role};

use super::assemble::Chosen;
use super::exec::{AnonymizeExec, Comparison, Job, external};
use super::plan::Plan;
use super::{Definition, Directory, Fingerprint, Generations, Reader, Version, ViewProblem};
use crate::options::ViewOptions;
use crate::rewrite::Meanings;

/// An A-view.
pub struct AView {
    /// What it says.
    pub definition: Arc<Definition>,
    schema: SchemaRef,
    state: RwLock<State>,
    owner: Owner,
}

/// Whose tables a view reads.
#[derive(Clone)]
pub struct Owner {
    /// The session in which the view's query runs.
    pub session: SessionState,
    /// What changed since.
    pub generations: Generations,
    /// The day on which retention is measured.
    pub today: Arc<dyn Fn() -> NaiveDate + Send + Sync>,
}

/// Whether a view can be read.
#[derive(Clone, Debug)]
pub enum State {
    /// It was verified.
    Usable {
        /// What it is pinned to.
        version: Arc<Version>,
        /// Its query.
        query: Arc<LogicalPlan>,
        /// The query of its policies.
        policies: Option<Arc<LogicalPlan>>,
    },
    /// It could not be built.
    Unusable(String),
}

impl fmt::Debug for AView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AView({})", self.definition.name)
    }
}

impl AView {
    /// A view in this state.
    pub fn new(definition: Arc<Definition>, state: State, owner: Owner) -> AView {
        AView { schema: definition.schema(), definition, state: RwLock::new(state), owner }
    }

    /// Whether it can be read.
    pub fn state(&self) -> State {
        self.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The version it is pinned to, whether or not that is stale.
    pub fn version(&self) -> Option<Arc<Version>> {
        match self.state() {
            State::Usable { version, .. } => Some(version),
            State::Unusable(_) => None,
        }
    }

    /// Pins it to another version, or makes it unusable.
    pub fn set_state(&self, state: State) {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// Whether what it was made from has changed.
    ///
    /// # Errors
    /// Where its tables can't be looked at.
    pub fn is_stale(&self) -> Result<bool> {
        match self.state() {
            State::Unusable(_) => Ok(false),
            State::Usable { version, query, policies } => self.is_stale_version(&version, &query, policies.as_deref()),
        }
    }

    fn is_stale_version(&self, version: &Version, query: &LogicalPlan, policies: Option<&LogicalPlan>) -> Result<bool> {
        let plans: Vec<&LogicalPlan> = std::iter::once(query).chain(policies).collect();
        Ok(Fingerprint::of(&plans, &self.owner.generations)? != version.fingerprint)
    }

    /// What the labels of its columns can stand for.
    pub fn meanings(&self) -> Meanings {
        match self.state() {
            State::Usable { version, .. } => version.meanings(),
            State::Unusable(_) => self.definition.columns.iter().map(|_| None).collect(),
        }
    }

    /// What a session reads of it through these filters.
    pub(super) async fn job(&self, session: &dyn Session, filters: &[Expr]) -> Result<Job> {
        let options = session.config_options().extensions.get::<ViewOptions>().cloned().unwrap_or_default();
        let (version, query, policies) = match self.state() {
            State::Usable { version, query, policies } => (version, query, policies),
            State::Unusable(reason) => {
                let problem = ViewProblem::Unusable { view: self.definition.name.clone(), reason };
                return Err(external(problem.for_reader(options.role, &self.definition.name)));
            }
        };
        if self.is_stale_version(&version, &query, policies.as_deref())? {
            return Err(external(ViewProblem::Stale));
        }
        let pair = version.pair(options.purpose.as_deref(), options.recipient.as_deref());
        let pair = pair.map_err(|problem| external(problem.into()))?;
        let reader = Reader { pair, today: (self.owner.today)() };

        let of_quasi: Vec<&Expr> = filters.iter().filter(|filter| self.speaks_of_quasi(filter)).collect();
        let chosen = self.choose(session, &version, reader, &of_quasi)?;
        let filter = conjunction(of_quasi.into_iter().cloned());
        let directory = version.directory(pair);
        let plan = Plan::choose(options.plan, directory, chosen);
        let matching = match &filter {
            Some(filter) if version.answers_matching() => {
                let (condition, columns) = (self.over_quasi(session, filter)?, self.bits(filter));
                Some(Comparison { condition, columns })
            }
            _ => None,
        };
        let query = self.query_of(&query, directory, &plan)?;
        let failed = |error| external(ViewProblem::of_query(&self.definition.name, &error));
        let query = self.owner.session.create_physical_plan(&query).await.map_err(failed)?;
        let (owner, quasi_schema) = (self.owner.session.task_ctx(), self.quasi_schema());
        Ok(Job { version, reader, plan, query, owner, matching, quasi_schema, role: options.role })
    }

    /// The quasi columns as text, as filters see them.
    fn quasi_schema(&self) -> SchemaRef {
        let quasi = self.definition.with_role(Role::Quasi);
        let field = |&position: &usize| Field::new(&self.definition.columns[position].name, DataType::Utf8, true);
        Schema::new(quasi.iter().map(field).collect::<Vec<_>>()).into()
    }

    /// Whether a filter speaks of labels of quasi columns alone, and always says the same.
    fn speaks_of_quasi(&self, filter: &Expr) -> bool {
        let quasi: HashSet<&str> = self
            .definition
            .columns
            .iter()
            .filter(|column| column.role == Role::Quasi)
            .map(|c| c.name.as_str())
            .collect();
        let columns = filter.column_refs();
        let mut is_plain = !columns.is_empty() && !filter.is_volatile();
        is_plain &= columns.iter().all(|column| quasi.contains(column.name.as_str()));
        let looked_at = filter.apply(|part| {
            is_plain &= !matches!(
                part,
                Expr::Exists(_)
                    | Expr::InSubquery(_)
                    | Expr::ScalarSubquery(_)
                    | Expr::OuterReferenceColumn(..)
                    | Expr::Placeholder(_)
            );
            Ok(TreeNodeRecursion::Continue)
        });
        is_plain && looked_at.is_ok()
    }

    /// The classes whose labels satisfy the filters, or that somebody's refusal may make satisfy them.
    fn choose(&self, session: &dyn Session, version: &Version, reader: Reader, filters: &[&Expr]) -> Result<Chosen> {
        if filters.is_empty() {
            return Ok(Chosen::All);
        }
        let directory = version.directory(reader.pair);
        let refusals = version.refusals(reader);
        let mut answers = vec![true; directory.n_classes()];
        for filter in filters {
            let asked = self.bits(filter);
            // A filter that fails on some label fails again, with its own message, on what leaves.
            let Some(found) = self.satisfying(session, directory, filter)? else { continue };
            for ((answer, found), refused) in answers.iter_mut().zip(found).zip(refusals.iter()) {
                *answer &= found || refused & asked != 0;
            }
        }
        let classes = (0..).zip(answers).filter(|&(_, answers)| answers).map(|(class, _)| class).collect();
        Ok(Chosen::Classes(classes))
    }

    /// Per class whether its labels satisfy a filter; `None` where that can't be computed. There are far fewer labels
    /// of one column than classes.
    fn satisfying(&self, session: &dyn Session, directory: &Directory, filter: &Expr) -> Result<Option<Vec<bool>>> {
        let comparison = self.over_quasi(session, filter)?;
        let evaluate = |labels: &RecordBatch| -> Result<Option<Vec<bool>>> {
            let Ok(found) = comparison.evaluate(labels).and_then(|found| found.into_array(labels.num_rows())) else {
                return Ok(None);
            };
            Ok(Some(as_boolean_array(&found)?.iter().map(|found| found == Some(true)).collect()))
        };
        let asked = self.bits(filter);
        let columns = directory.quasi().iter().enumerate().filter(|&(_, &position)| asked >> position & 1 == 1);
        match columns.map(|(quasi, _)| quasi).collect::<Vec<usize>>()[..] {
            [quasi] => {
                let found = evaluate(&one_column(directory, quasi, self.quasi_schema())?)?;
                let n_labels = directory.labels(quasi).len();
                let of_class = |&id: &u32| if id == NULL { n_labels } else { id as usize };
                Ok(found.map(|found| directory.label_ids(quasi).iter().map(|id| found[of_class(id)]).collect()))
            }
            _ => evaluate(&label_batch(directory, self.quasi_schema())?),
        }
    }

    /// The columns a filter speaks of, bit by bit.
    fn bits(&self, filter: &Expr) -> u64 {
        let names: HashSet<&str> = filter.column_refs().iter().map(|column| column.name.as_str()).collect();
        let is_named = |&position: &usize| names.contains(self.definition.columns[position].name.as_str());
        (0..self.definition.columns.len()).filter(is_named).fold(0, |bits, position| bits | 1 << position)
    }

    fn over_quasi(
        &self,
        session: &dyn Session,
        filter: &Expr,
    ) -> Result<Arc<dyn datafusion::physical_plan::PhysicalExpr>> {
        let unqualified = filter.clone().transform(|part| {
            Ok(match part {
                Expr::Column(column) => Transformed::yes(Expr::Column(Column::new_unqualified(column.name))),
                other => Transformed::no(other),
            })
        })?;
        let schema = DFSchema::try_from(self.quasi_schema().as_ref().clone())?;
        session.create_physical_expr(unqualified.data, &schema)
    }

    /// The view's query, of some persons where they are few.
    fn query_of(&self, query: &LogicalPlan, directory: &Directory, plan: &Plan) -> Result<LogicalPlan> {
        let field = Column::from(query.schema().qualified_field(self.definition.identifier));
        if Job::is_pipelined(&self.definition, plan) {
            return LogicalPlanBuilder::from(query.clone()).sort([col(field).sort(true, true)])?.build();
        }
        let Plan::SelectFirst { persons: Some(persons), .. } = plan else { return Ok(query.clone()) };
        let identifier = &self.definition.columns[self.definition.identifier];
        let names: Result<Vec<Expr>> = persons
            .iter()
            .map(|&person| ScalarValue::try_from_string(directory.identifier(person).to_owned(), &identifier.data_type))
            .map(|name| name.map(lit))
            .collect();
        // Identifiers of a type that has no text form are looked up among all rows.
        let Ok(names) = names else { return Ok(query.clone()) };
        LogicalPlanBuilder::from(query.clone()).filter(in_list(col(field), names, false))?.build()
    }
}

#[async_trait]
impl TableProvider for AView {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match self.speaks_of_quasi(filter) {
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let job = self.job(session, filters).await?;
        let projection = projection.cloned().unwrap_or_else(|| (0..self.definition.columns.len()).collect());
        Ok(Arc::new(AnonymizeExec::new(job, projection)?))
    }
}

/// The distinct labels of one quasi column and, last, a null; nothing in the others.
fn one_column(directory: &Directory, quasi: usize, schema: SchemaRef) -> Result<RecordBatch> {
    let labels = directory.labels(quasi);
    let column = |other: usize| -> ArrayRef {
        if other == quasi {
            Arc::new(labels.iter().map(Some).chain([None]).collect::<StringArray>())
        } else {
            new_null_array(&DataType::Utf8, labels.len() + 1)
        }
    };
    Ok(RecordBatch::try_new(schema, (0..directory.quasi().len()).map(column).collect())?)
}

/// The labels of all classes, one row each.
fn label_batch(directory: &Directory, schema: SchemaRef) -> Result<RecordBatch> {
    let column = |quasi: usize| {
        let labels = (0..directory.n_classes() as u32).map(|class| directory.label(quasi, class));
        Arc::new(labels.collect::<StringArray>()) as _
    };
    Ok(RecordBatch::try_new(schema, (0..directory.quasi().len()).map(column).collect())?)
}
