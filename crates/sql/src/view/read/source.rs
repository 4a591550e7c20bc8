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
use crate::parser::{BlockSize, Purposes};
use crate::view::materialized::{StoredRead, Unread};
use crate::view::{Definition, Directory, Owner, Reader, Version, ViewError};

/// Up to so many persons rows are asked for by name; beyond, all are read and looked up.
const MOST_NAMED: usize = 2_000;

/// What a view is made of.
pub(in crate::view) struct Base {
    pub(in crate::view) definition: Arc<Definition>,
    pub(in crate::view) owner: Arc<Owner>,
    pub(in crate::view) query: Arc<LogicalPlan>,
}

/// Where private rows come from.
pub(in crate::view) enum Source {
    /// The version keeps them.
    Kept,
    /// The store keeps them, and none was read yet.
    Unread(Box<Unread>),
    /// The store keeps them, and they were read.
    Stored(Box<StoredRead>),
    /// The view's query.
    Query(PlannedRead),
    /// The view's query in the order of identifiers, so that classes leave as their rows come in: blocks of few rows
    /// follow each other.
    InOrder(PlannedRead),
}

/// A query of the owner's.
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
        let is_in_blocks =
            self.definition.clauses.block != BlockSize::All && self.definition.clauses.purposes == Purposes::Together;
        let reads_all = matches!(chosen, Chosen::All | Chosen::Complete);
        if version.kept.is_some() && !(reads_all && is_in_blocks) {
            return Ok(Source::Kept);
        }
        let directory = version.directory(reader.pair);
        let persons = match chosen {
            Chosen::Classes(classes) => Some(directory.members(classes)).filter(|persons| persons.len() <= MOST_NAMED),
            Chosen::All | Chosen::Complete => None,
        };
        match persons {
            Some(persons) => self.planned(self.query_of(directory, &persons)?).await.map(Source::Query),
            None if is_in_blocks => {
                let identifier = col(self.identifier()).sort(true, true);
                let in_order = LogicalPlanBuilder::from(query.clone()).sort([identifier])?.build()?;
                self.planned(in_order).await.map(Source::InOrder)
            }
            None => self.planned(query.clone()).await.map(Source::Query),
        }
    }

    /// A query, ready to run in the owner's session.
    async fn planned(&self, query: LogicalPlan) -> Result<PlannedRead> {
        let failed = |error| external(ViewError::of_query(&self.definition.name, &error));
        let plan = self.owner.session.create_physical_plan(&query).await.map_err(failed)?;
        Ok(PlannedRead { plan, owner: self.owner.session.task_ctx() })
    }

    fn identifier(&self) -> Column {
        Column::from(self.query.schema().qualified_field(self.definition.identifier))
    }

    /// The view's query, of some persons.
    fn query_of(&self, directory: &Directory, persons: &[u32]) -> Result<LogicalPlan> {
        let query = self.query.as_ref().clone();
        let identifier = &self.definition.columns[self.definition.identifier];
        let names: Result<Vec<Expr>> = persons
            .iter()
            .map(|&person| ScalarValue::try_from_string(directory.identifier(person).to_owned(), &identifier.data_type))
            .map(|name| name.map(lit))
            .collect();
        // Identifiers of a type that has no text form are looked up among all rows.
        let Ok(names) = names else { return Ok(query) };
        LogicalPlanBuilder::from(query).filter(in_list(col(self.identifier()), names, false))?.build()
    }
}
