//! [`Workers::execute`]: the server's side of a statement in a worker.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, UInt32Array};
use datafusion::arrow::compute::take_record_batch;
use datafusion::common::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion_proto::bytes::physical_plan_to_bytes_with_proto_converter;
use datafusion_proto::physical_plan::DeduplicatingProtoConverter;
use datafusion_proto::physical_plan::from_proto::parse_physical_expr;
use datafusion_proto::protobuf::PhysicalExprNode;
use futures::{Stream, StreamExt, TryStreamExt};
use kohort_model::Hierarchy;
use prost::Message;

use super::Asker;
use super::codec::Codec;
use super::frames::{Begin, Failed, Frame, Kind, Next, from_json, joined, malformed, parts, to_json};
use super::leaves::{Split, is_bounded, split};
use super::pool::{Process, Workers};
use crate::SqlError;
use crate::readers::{ReadingTurn, ReadsView};
use crate::view::AnonymizeExec;

/// A statement gets the login's remaining memory divided by this.
const SHARE: usize = 4;
/// A statement gets at least the login's whole memory divided by this.
const LEAST_SHARE: usize = 32;
/// The memory of a statement in bytes if there is no limit.
const OF_UNLIMITED: usize = 1 << 30;

impl Workers {
    /// Executes a plan in a worker, except for the leaves that read data, and for plans that only pass on rows. The
    /// worker starts when the first rows are wanted, and ends when the stream is dropped.
    pub(crate) fn execute(
        self: &Arc<Self>,
        plan: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
        asker: Asker,
    ) -> Result<SendableRecordBatchStream> {
        if is_bounded(&plan) {
            return execute_stream(plan, context);
        }
        let schema = plan.schema();
        let Split { plan, leaves } = split(plan)?;
        let codec = Codec::plain();
        let plan = physical_plan_to_bytes_with_proto_converter(plan, &codec, &DeduplicatingProtoConverter {})?;
        let nodes = |tree: &Arc<Hierarchy>| tree.nodes().map(|(label, parent)| (label.to_owned(), parent)).collect();
        let hierarchies = codec.hierarchies().iter().map(nodes).collect();
        let begin =
            Begin { memory: 0, asker, options: changed_options(context.session_config().options()), hierarchies };
        let unstarted = Unstarted { workers: Arc::clone(self), begin, plan: plan.into(), leaves, context };
        let rows = futures::stream::once(unstarted.start()).map_ok(RunningPlan::rows).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

/// The options that a session has set.
fn changed_options(options: &ConfigOptions) -> Vec<(String, String)> {
    let initial = ConfigOptions::default().entries();
    let is_initial =
        |key: &str, value: &Option<String>| initial.iter().any(|entry| entry.key == key && entry.value == *value);
    let entries = options.entries().into_iter();
    let changed = entries.filter(|entry| entry.key.starts_with("datafusion.") && !is_initial(&entry.key, &entry.value));
    changed.filter_map(|entry| Some((entry.key, entry.value?))).collect()
}

/// A statement that has no worker yet.
struct Unstarted {
    workers: Arc<Workers>,
    begin: Begin,
    plan: Vec<u8>,
    leaves: Vec<Arc<dyn ExecutionPlan>>,
    context: Arc<TaskContext>,
}

impl Unstarted {
    async fn start(self) -> Result<RunningPlan> {
        let Unstarted { workers, mut begin, plan, leaves, context } = self;
        let memory = share(context.memory_pool())?;
        begin.memory = memory.size();
        let frame = Frame::new(Kind::Begin, joined([to_json(&begin)?, plan]));
        let process = begun(&workers, &frame).await?;
        // Keep the turn until the last row of the views was read.
        let turn = context.session_config().get_extension::<ReadingTurn>();
        let reads = turn.as_ref().filter(|_| !leaves.is_empty()).map(ReadingTurn::reading);
        let leaves = leaves.into_iter().map(LeafRows::new).collect();
        Ok(RunningPlan { process, leaves, context, own: begin.memory, memory, reads })
    }
}

/// A worker that has received the statement. An idle worker may have been killed. It has executed nothing then, so
/// another one is started. If that one is lost too, the statement fails.
async fn begun(workers: &Arc<Workers>, frame: &Frame) -> Result<Process> {
    let no_worker = |error: io::Error| SqlError::NoWorker { kind: error.kind() };
    let mut process = workers.take().map_err(no_worker)?;
    if process.begin(frame).await.is_ok() {
        return Ok(process);
    }
    drop(process);
    let mut process = workers.take_new().map_err(no_worker)?;
    match process.begin(frame).await {
        Ok(()) => Ok(process),
        Err(error) => Err(lost(&mut process, &error).await),
    }
}

/// Reserves a statement's share of its login's memory. The more statements the login runs, the smaller the share.
fn share(pool: &Arc<dyn MemoryPool>) -> Result<MemoryReservation> {
    let memory = MemoryConsumer::new("a worker").register(pool);
    let MemoryLimit::Finite(most) = pool.memory_limit() else {
        memory.try_grow(OF_UNLIMITED)?;
        return Ok(memory);
    };
    let (left, least) = (most.saturating_sub(pool.reserved()), most / LEAST_SHARE);
    // If other statements have taken the rest meanwhile, the smallest share may still be available.
    if memory.try_grow((left / SHARE).max(least)).is_err() {
        memory.try_grow(least)?;
    }
    Ok(memory)
}

/// The rows of a leaf, by partition.
struct LeafRows {
    leaf: Arc<dyn ExecutionPlan>,
    partitions: Vec<LeafPartition>,
}

/// The rows of a partition.
enum LeafPartition {
    Unread,
    Read(SendableRecordBatchStream),
    Ended,
}

impl LeafRows {
    fn new(leaf: Arc<dyn ExecutionPlan>) -> LeafRows {
        let n_partitions = leaf.properties().output_partitioning().partition_count();
        LeafRows { leaf, partitions: (0..n_partitions).map(|_| LeafPartition::Unread).collect() }
    }

    fn has_ended(&self) -> bool {
        self.partitions.iter().all(|partition| matches!(partition, LeafPartition::Ended))
    }

    /// The next rows of a partition. Conditions are used only before the first rows.
    async fn next(
        &mut self,
        partition: usize,
        conditions: Vec<Arc<dyn PhysicalExpr>>,
        context: &Arc<TaskContext>,
    ) -> Result<Option<RecordBatch>> {
        let place = self.partitions.get_mut(partition).ok_or_else(malformed)?;
        if let LeafPartition::Unread = place {
            let leaf: Arc<dyn ExecutionPlan> = match self.leaf.downcast_ref::<AnonymizeExec>() {
                Some(view) if !conditions.is_empty() => Arc::new(view.with_pushed_down(conditions)),
                _ => Arc::clone(&self.leaf),
            };
            *place = LeafPartition::Read(leaf.execute(partition, Arc::clone(context))?);
        }
        let LeafPartition::Read(rows) = place else { return Ok(None) };
        let batch = rows.next().await.transpose()?;
        if batch.is_none() {
            *place = LeafPartition::Ended;
        }
        Ok(batch)
    }
}

/// A statement that is running in its worker.
struct RunningPlan {
    process: Process,
    leaves: Vec<LeafRows>,
    context: Arc<TaskContext>,
    /// The worker's share of memory in bytes.
    own: usize,
    /// The reserved memory: the share, and in addition the current message.
    memory: MemoryReservation,
    reads: Option<ReadsView>,
}

impl RunningPlan {
    fn rows(self) -> impl Stream<Item = Result<RecordBatch>> {
        futures::stream::try_unfold(Box::new(self), |mut running| async move {
            let batch = running.next().await?;
            Ok(batch.map(|batch| (batch, running)))
        })
    }

    /// The next rows of the answer; `None` after the last.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            // The receiver of the last message's rows accounts for them, so release their memory here.
            let (own, memory) = (self.own, &self.memory);
            let counted = |length: usize| memory.try_resize(own.saturating_add(length)).is_ok();
            let frame = match Frame::receive(&mut self.process.socket, counted).await {
                Ok(frame) => frame,
                Err(error) => return Err(lost(&mut self.process, &error).await),
            };
            match frame.kind {
                Kind::Rows => {
                    self.memory.try_resize(self.own)?;
                    return apart(frame.batch()?).map(Some);
                }
                Kind::End => return Ok(None),
                Kind::Failed => return Err(from_json::<Failed>(&frame.body)?.into_error().into()),
                Kind::Next => {
                    let answer = self.answer(&frame.body).await?;
                    if let Err(error) = answer.send(&mut self.process.socket).await {
                        return Err(lost(&mut self.process, &error).await);
                    }
                }
                Kind::Begin | Kind::Begun => return Err(malformed()),
            }
        }
    }

    /// Answers a request with rows of a leaf, or with its end.
    async fn answer(&mut self, question: &[u8]) -> Result<Frame> {
        let parts = parts(question)?;
        let (next, conditions) = parts.split_first().ok_or_else(malformed)?;
        let Next { leaf, partition } = from_json(next)?;
        let leaf = self.leaves.get_mut(leaf).ok_or_else(malformed)?;
        let (schema, codec) = (leaf.leaf.schema(), Codec::plain());
        let read = |bytes: &&[u8]| {
            let condition = PhysicalExprNode::decode(*bytes).map_err(|_| malformed())?;
            parse_physical_expr(&condition, &self.context, &schema, &codec)
        };
        let conditions = conditions.iter().map(read).collect::<Result<Vec<_>>>()?;
        match leaf.next(partition, conditions, &self.context).await? {
            Some(batch) => Frame::rows(&batch),
            None => {
                if self.leaves.iter().all(LeafRows::has_ended) {
                    self.reads = None;
                }
                Ok(Frame::new(Kind::End, Vec::new()))
            }
        }
    }
}

impl Process {
    /// Sends the statement to the worker, and waits until the worker has received it.
    async fn begin(&mut self, frame: &Frame) -> io::Result<()> {
        frame.send(&mut self.socket).await?;
        // The confirmation has an empty body.
        match Frame::receive(&mut self.socket, |length| length == 0).await?.kind {
            Kind::Begun => Ok(()),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// The reason why a worker is gone. A worker that gets no more memory is ended by a signal.
async fn lost(process: &mut Process, error: &io::Error) -> DataFusionError {
    if error.kind() == io::ErrorKind::OutOfMemory {
        return SqlError::OutOfMemory.into();
    }
    let was_killed = process.ended().await.is_some_and(|status| status.signal().is_some());
    if was_killed { SqlError::OutOfMemory.into() } else { SqlError::WorkerLost.into() }
}

/// Copies the columns of a batch. Columns that were decoded from a message all refer to the whole message, so an
/// operator that keeps the batch would count the message once for each column.
fn apart(batch: RecordBatch) -> Result<RecordBatch> {
    if batch.num_columns() == 0 {
        return Ok(batch);
    }
    let all = UInt32Array::from_iter_values(0..batch.num_rows() as u32);
    Ok(take_record_batch(&batch, &all)?)
}
