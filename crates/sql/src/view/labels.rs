//! [`ShownLabels`]: the labels that a view shows a reader in one quasi column, as a table of its own.
//!
//! A join asks for them before it asks for rows, so that no class is built whose label meets nothing.
//!
//! # Guarantee
//! exactly the labels that the reader finds in the column when all of the view is read, each once; nulls are none. So
//! neither they nor their number tell more than the view.
//! # Cost
//! one pass over the classes of the directory; no row is looked at

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use kohort_model::{Disclosure, Role};

use super::consent::refused_columns;
use super::{AView, Reader, Version};

const LABEL: &str = "label";

/// The labels of one column of a view.
#[derive(Debug)]
pub struct ShownLabels {
    view: Arc<dyn TableProvider>,
    column: usize,
    schema: SchemaRef,
}

impl ShownLabels {
    /// Those of a column, where the table is an A-view and the column a quasi one.
    pub fn of(table: Arc<dyn TableProvider>, column: usize) -> Option<ShownLabels> {
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
        let reading = view.reading(session).await?;
        let labels = reading.version.shown_labels(reading.reader, self.column);
        let labels = StringArray::from_iter_values(labels);
        let batch = RecordBatch::try_new(self.schema(), vec![Arc::new(labels)])?;
        MemTable::try_new(self.schema(), vec![vec![batch]])?.scan(session, projection, filters, limit).await
    }
}

impl Version {
    /// The labels of a quasi column that a reader sees.
    fn shown_labels(&self, reader: Reader, column: usize) -> BTreeSet<&str> {
        let directory = self.directory(reader.pair);
        let quasi = directory.quasi().iter().position(|&quasi| quasi == column).expect("it is a quasi column");
        let refusals = self.refusals(reader);
        let mut labels = BTreeSet::new();
        for (class, refused) in (0..).zip(refusals.iter()) {
            let is_refused = refused >> column & 1 == 1;
            let by_class = self.definition.disclosure == Disclosure::Class;
            if is_refused && by_class {
                labels.insert(self.everything(column));
            }
            // Somebody's refusal hides the label of the others too, or only of that person's rows.
            let hides_all = by_class && !directory.class(class).is_alone;
            let is_hidden = is_refused && (hides_all || self.all_refuse(reader, class, column));
            labels.extend(directory.label(quasi, class).filter(|_| !is_hidden));
        }
        labels
    }

    /// Whether everybody in a class refuses to show a reader a column.
    fn all_refuse(&self, reader: Reader, class: u32, column: usize) -> bool {
        let (Some(policies), Some(pair)) = (self.policies.as_deref(), reader.pair) else { return false };
        let refuses = |&policy: &u32| match policies.choice(pair, policy) {
            Some(choice) => refused_columns(&choice, &self.definition, reader) >> column & 1 == 1,
            None => true,
        };
        self.directory(reader.pair).policies(class).iter().all(refuses)
    }
}
