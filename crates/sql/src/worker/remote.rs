//! [`RemoteExec`]: a leaf of a plan whose rows are in the server's process.
//!
//! The server replaces each leaf that reads data by a `RemoteExec`, and keeps the leaf. The worker asks for rows batch
//! by batch, so nothing piles up on either side. The first request also has the conditions that joins above the leaf
//! have found, such as "one of these keys", so that the view's operator can skip classes without a match.

use std::fmt;
use std::fs::File;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

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
use parking_lot::Mutex;
use prost::Message;

use super::codec::Codec;
use super::frames::{Frame, Kind, Next, joined, malformed, to_json};
use crate::leaf::{methods_of_leaf, properties_of_leaf};

/// Conditions with more bytes are not sent. The worker then filters the rows itself.
const MOST_OF_CONDITION: usize = 1 << 20;

/// Rows of a leaf in the server's process.
pub(super) struct RemoteExec {
    pub(super) leaf: Leaf,
    /// Conditions of the joins above.
    pub(super) conditions: Vec<Arc<dyn PhysicalExpr>>,
    properties: Arc<PlanProperties>,
    /// The connection to the server; `None` in the server itself, where this operator never runs.
    server: Option<Arc<Link>>,
    metrics: ExecutionPlanMetricsSet,
}

/// The leaf that it replaces.
#[derive(Clone)]
pub(super) struct Leaf {
    pub(super) number: usize,
    pub(super) n_partitions: usize,
    pub(super) schema: SchemaRef,
    /// The leaf's line in EXPLAIN ANALYZE.
    pub(super) shown: String,
}

impl RemoteExec {
    pub(super) fn new(leaf: Leaf, conditions: Vec<Arc<dyn PhysicalExpr>>, server: Option<Arc<Link>>) -> RemoteExec {
        // The plan is not optimized again after this, so the order and keys of the leaf are not needed.
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

    methods_of_leaf!(conditions);

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let Some(server) = self.server.clone() else { return internal_err!("RemoteExec runs only in workers") };
        let (number, mut conditions) = (self.leaf.number, self.conditions.clone());
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let batches = std::iter::from_fn(move || {
            // Filters of joins are complete when the first row is wanted.
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

/// The worker's end of the connection. One thread executes the plan, so each request is followed by its own answer.
pub(super) struct Link {
    ends: Mutex<(File, Receiver<Frame>)>,
}

impl Link {
    pub(super) fn new(to: File, from: Receiver<Frame>) -> Link {
        Link { ends: Mutex::new((to, from)) }
    }

    pub(super) fn send(&self, frame: &Frame) -> Result<()> {
        let mut ends = self.ends.lock();
        Ok(frame.write(&mut ends.0)?)
    }

    /// The next rows of a leaf; `None` after the last.
    fn next(
        &self,
        leaf: usize,
        partition: usize,
        conditions: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Option<RecordBatch>> {
        let mut sent = vec![to_json(&Next { leaf, partition })?];
        sent.extend(conditions.into_iter().filter_map(written));
        let frame = Frame::new(Kind::Next, joined(&sent));
        let mut ends = self.ends.lock();
        frame.write(&mut ends.0)?;
        let Ok(answer) = ends.1.recv() else { return exec_err!("the server is gone") };
        match answer.kind {
            Kind::Rows => answer.batch().map(Some),
            Kind::End => Ok(None),
            _ => Err(malformed()),
        }
    }
}

/// The current state of a condition as bytes; `None` if it can't be sent or does not restrict the leaf's columns.
fn written(condition: Arc<dyn PhysicalExpr>) -> Option<Vec<u8>> {
    let now = datafusion::physical_expr_common::physical_expr::snapshot_physical_expr(condition).ok()?;
    if collect_columns(&now).is_empty() {
        return None;
    }
    let bytes = serialize_physical_expr(&now, &Codec::plain()).ok()?.encode_to_vec();
    (bytes.len() <= MOST_OF_CONDITION).then_some(bytes)
}
