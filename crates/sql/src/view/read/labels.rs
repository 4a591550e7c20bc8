//! [`ShownLabels`]: the labels that a view shows a reader in one quasi column, as a table.
//!
//! A join reads these labels before it reads rows, so no class is built whose label meets nothing.
//!
//! # Guarantee
//! Exactly the labels that the reader finds in the column by reading the whole view, each once, without nulls. So neither
//! the labels nor their number tell more than the view.
//! # Cost
//! One pass over the classes. No row is read, except in materialized views the rows of classes in which somebody may refuse
//! something, or that may show nobody any more. A materialized view is not looked at before its labels are wanted.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use kohort_model::{Disclosure, Role};

use super::exec::external;
use crate::role;
use crate::view::consent::refused_columns;
use crate::view::materialized::Unread;
use crate::view::provider::{Opened, OpenedRows};
use crate::view::{AView, Reader, Version, ViewError};

const LABEL: &str = "label";

/// The labels of one column of a view.
#[derive(Debug)]
pub(crate) struct ShownLabels {
    view: Arc<dyn TableProvider>,
    column: usize,
    schema: SchemaRef,
}

impl ShownLabels {
    /// The labels of a column; `None` unless the table is an A-view and the column a quasi column.
    pub(crate) fn of(table: Arc<dyn TableProvider>, column: usize) -> Option<ShownLabels> {
        let role = table.downcast_ref::<AView>()?.definition.columns.get(column)?.role;
        let schema = Arc::new(Schema::new(vec![Field::new(LABEL, DataType::Utf8, false)]));
        (role == Role::Quasi).then_some(ShownLabels { view: table, column, schema })
    }
}

#[async_trait]
impl TableProvider for ShownLabels {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let view = self.view.downcast_ref::<AView>().expect("made of an A-view alone");
        let Opened { rows, reader, options, .. } = view.open(session, &[]).await?;
        match rows {
            OpenedRows::Of(version) => {
                let labels = StringArray::from_iter_values(version.shown_labels(reader, self.column));
                let batch = RecordBatch::try_new(self.schema(), vec![Arc::new(labels)])?;
                MemTable::try_new(self.schema(), vec![vec![batch]])?.scan(session, projection, filters, limit).await
            }
            OpenedRows::Unread(unread) => {
                let (column, schema, role) = (self.column, self.schema(), options.role);
                let labels = StoredLabels { unread, reader, column, role, schema };
                let table = StreamingTable::try_new(self.schema(), vec![Arc::new(labels)])?;
                table.scan(session, projection, filters, limit).await
            }
        }
    }
}

/// The labels of a materialized view, found when they are wanted.
struct StoredLabels {
    unread: Unread,
    reader: Reader,
    column: usize,
    role: role::Role,
    schema: SchemaRef,
}

impl std::fmt::Debug for StoredLabels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StoredLabels({})", self.unread.version.definition.name)
    }
}

impl PartitionStream for StoredLabels {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (unread, reader, column, role) = (self.unread.clone(), self.reader, self.column, self.role);
        let (schema, name) = (Arc::clone(&self.schema), self.unread.version.definition.name.clone());
        let batch = async move {
            let labels = tokio::task::spawn_blocking(move || unread.shown_labels(reader, column)).await;
            let labels = labels.unwrap_or_else(|_| Err(ViewError::fault(&name)));
            let labels = labels.map_err(|problem| external(problem.for_reader(role, &name)))?;
            Ok(RecordBatch::try_new(schema, vec![Arc::new(StringArray::from_iter_values(labels))])?)
        };
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), futures::stream::once(batch)))
    }
}

impl Version {
    /// The labels of a quasi column that a reader sees.
    pub(in crate::view) fn shown_labels(&self, reader: Reader, column: usize) -> BTreeSet<&str> {
        let directory = self.directory(reader.pair);
        let quasi = directory.labels().quasi().iter().position(|&quasi| quasi == column);
        let quasi = quasi.expect("it is a quasi column");
        let refusals = self.refusals(reader);
        let mut labels = BTreeSet::new();
        for (class, refused) in (0..).zip(refusals.iter()) {
            let is_refused = refused >> column & 1 == 1;
            let by_class = self.definition.clauses.disclosure == Disclosure::Class;
            if is_refused && by_class {
                labels.insert(self.everything(column));
            }
            // With DISCLOSURE CLASS a refusal hides the label of the whole class, otherwise only of the person's own rows.
            let hides_all = by_class && !directory.class(class).is_alone;
            let is_hidden = is_refused && (hides_all || self.all_refuse(reader, class, column));
            labels.extend(directory.labels().label(quasi, class).filter(|_| !is_hidden));
        }
        labels
    }

    /// Whether everybody in a class refuses to show a reader a column.
    fn all_refuse(&self, reader: Reader, class: u32, column: usize) -> bool {
        let (Some(policies), Some(pair)) = (self.policies.as_deref(), reader.pair) else { return false };
        let refused = |policy: u32| refused_columns(&self.definition, policies, policy, pair, reader.today);
        let refuses = |&policy: &u32| refused(policy) >> column & 1 == 1;
        self.directory(reader.pair).policies(class).iter().all(refuses)
    }
}
