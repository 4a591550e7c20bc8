//! [`Base`]: where the private rows that a plan needs come from.

use std::sync::Arc;

use datafusion::common::{Column, ScalarValue};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, col, in_list, lit};
use datafusion::physical_plan::ExecutionPlan;

use super::assemble::Chosen;
use super::exec::external;
use super::plan::Plan;
use crate::view::materialized::{StoredRead, Unread};
use crate::view::{Definition, Directory, Owner, Reader, Version};

/// Up to this many persons, the query asks for their rows by name. For more persons it reads all rows.
const MOST_NAMED: usize = 2_000;

/// The view's query, and the session in which it runs.
pub(in crate::view) struct Base {
    pub(in crate::view) definition: Arc<Definition>,
    pub(in crate::view) owner: Arc<Owner>,
    pub(in crate::view) query: Arc<LogicalPlan>,
}

/// Where private rows come from.
#[derive(Clone)]
pub(in crate::view) enum Source {
    /// The memory of the version.
    Kept,
    /// The store, and no row was read yet.
    Unread(Box<Unread>),
    /// The store, and the rows were read.
    Stored(Arc<StoredRead>),
    /// The view's query.
    Query(PlannedRead),
}

/// A planned query of the owner.
#[derive(Clone)]
pub(in crate::view) struct PlannedRead {
    pub(in crate::view) plan: Arc<dyn ExecutionPlan>,
    /// Where it runs.
    pub(in crate::view) owner: Arc<TaskContext>,
}

impl Base {
    /// Where the rows that a plan needs come from.
    pub(in crate::view) async fn source(&self, version: &Version, reader: Reader, plan: &Plan) -> Result<Source> {
        let query = self.query.as_ref();
        let chosen = match plan {
            Plan::AnonymizeFirst => return self.planned(query.clone()).await.map(Source::Query),
            Plan::SelectFirst { chosen } => chosen,
        };
        if version.kept.is_some() {
            return Ok(Source::Kept);
        }
        let directory = version.directory(reader.pair);
        let persons = match chosen {
            Chosen::Classes(classes) => Some(directory.members(classes)).filter(|persons| persons.len() <= MOST_NAMED),
            Chosen::All => None,
        };
        let query = match persons {
            Some(persons) => self.query_of(directory, &persons)?,
            None => query.clone(),
        };
        self.planned(query).await.map(Source::Query)
    }

    /// A query, ready to run in the owner's session.
    async fn planned(&self, query: LogicalPlan) -> Result<PlannedRead> {
        let plan = self.owner.session.create_physical_plan(&query).await;
        let plan = plan.map_err(|error| external(self.definition.failed(error)))?;
        Ok(PlannedRead { plan, owner: self.owner.session.task_ctx() })
    }

    fn identifier(&self) -> Column {
        Column::from(self.query.schema().qualified_field(self.definition.identifier))
    }

    /// The view's query, restricted to some persons.
    fn query_of(&self, directory: &Directory, persons: &[u32]) -> Result<LogicalPlan> {
        let query = self.query.as_ref().clone();
        let identifier = &self.definition.columns[self.definition.identifier];
        let names: Result<Vec<Expr>> = persons
            .iter()
            .map(|&person| ScalarValue::try_from_string(directory.identifier(person).to_owned(), &identifier.data_type))
            .map(|name| name.map(lit))
            .collect();
        // If identifiers can't be read from their texts, all rows are read.
        let Ok(names) = names else { return Ok(query) };
        LogicalPlanBuilder::from(query).filter(in_list(col(self.identifier()), names, false))?.build()
    }
}
