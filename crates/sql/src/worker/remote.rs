//! [`RemoteExec`]: a leaf of a plan whose rows are in the server's process.
//!
//! The server puts one in place of each leaf that reads something, and keeps the leaf. The worker asks for rows batch by
//! batch, so nothing piles up on either side. Conditions that joins above the leaf have found by then, such as "one of
//! these keys", go with the first question: the view's operator leaves out classes that satisfy none.

use std::fmt;
use std::fs::File;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{exec_err, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use datafusion_proto::physical_plan::to_proto::serialize_physical_expr;
use prost::Message;

use super::codec::Codec;
use super::frames::{Frame, Kind, Next, joined, malformed, to_json};
use crate::leaf::{methods_of_leaf, properties_of_leaf};

/// Conditions that are longer are not sent: rows that they would leave out are dropped in the worker.
const MOST_OF_CONDITION: usize = 1 << 20;

/// Rows of a leaf in the server's process.
pub(super) struct RemoteExec {
    pub(super) leaf: Leaf,
    /// What joins above let through.
    pub(super) conditions: Vec<Arc<dyn PhysicalExpr>>,
    properties: Arc<PlanProperties>,
    /// `None` in the server, where it does not run.
    server: Option<Arc<Link>>,
    metrics: ExecutionPlanMetricsSet,
}

/// Which leaf it is.
#[derive(Clone)]
pub(super) struct Leaf {
    pub(super) number: usize,
    pub(super) n_partitions: usize,
    pub(super) schema: SchemaRef,
    /// As EXPLAIN ANALYZE shows it.
    pub(super) shown: String,
}

impl RemoteExec {
    pub(super) fn new(leaf: Leaf, conditions: Vec<Arc<dyn PhysicalExpr>>, server: Option<Arc<Link>>) -> RemoteExec {
        // A plan is not optimized again after its leaves were replaced, so nothing needs to be claimed of order or keys.
        let properties = properties_of_leaf(&leaf.schema, leaf.n_partitions);
        let metrics = ExecutionPlanMetricsSet::new();
        RemoteExec { leaf, conditions, properties, server, metrics }
    }
}

impl fmt::Debug for RemoteExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RemoteExec")
    }
}

impl DisplayAs for RemoteExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.leaf.shown)
    }
}

impl ExecutionPlan for RemoteExec {
    fn name(&self) -> &'static str {
        "RemoteExec"
    }

    methods_of_leaf!();

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for condition in &self.conditions {
            if visit(condition)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let Some(server) = self.server.clone() else { return internal_err!("rows are remote for workers alone") };
        let (number, mut conditions) = (self.leaf.number, self.conditions.clone());
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let batches = std::iter::from_fn(move || {
            // Filters of joins are as complete as they get once the first row is wanted.
            let batch = server.next(number, partition, std::mem::take(&mut conditions)).transpose()?;
            if let Ok(batch) = &batch {
                metrics.record_output(batch.num_rows());
            }
            Some(batch)
        });
        let schema = Arc::clone(&self.leaf.schema);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter(batches))))
    }
}

/// The worker's end of the messages. One thread executes the plan, so an answer follows its question.
pub(super) struct Link {
    ends: Mutex<(File, Receiver<Frame>)>,
}

impl Link {
    pub(super) fn new(to: File, from: Receiver<Frame>) -> Link {
        Link { ends: Mutex::new((to, from)) }
    }

    pub(super) fn send(&self, frame: &Frame) -> Result<()> {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(frame.write(&mut ends.0)?)
    }

    /// The next rows of a leaf, `None` after the last.
    fn next(
        &self,
        leaf: usize,
        partition: usize,
        conditions: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Option<RecordBatch>> {
        let mut sent = vec![to_json(&Next { leaf, partition })?];
        sent.extend(conditions.into_iter().filter_map(written));
        let frame = Frame::new(Kind::Next, joined(&sent));
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        frame.write(&mut ends.0)?;
        let Ok(answer) = ends.1.recv() else { return exec_err!("the server is gone") };
        match answer.kind {
            Kind::Rows => answer.batch().map(Some),
            Kind::End => Ok(None),
            _ => Err(malformed()),
        }
    }
}

/// A condition as it is now, as bytes; `None` where it can't be sent or says nothing of the leaf's columns.
fn written(condition: Arc<dyn PhysicalExpr>) -> Option<Vec<u8>> {
    let now = datafusion::physical_expr_common::physical_expr::snapshot_physical_expr(condition).ok()?;
    if collect_columns(&now).is_empty() {
        return None;
    }
    let bytes = serialize_physical_expr(&now, &Codec::plain()).ok()?.encode_to_vec();
    (bytes.len() <= MOST_OF_CONDITION).then_some(bytes)
}
