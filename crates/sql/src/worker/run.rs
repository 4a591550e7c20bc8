//! [`Workers::execute`]: a statement in its worker, as the server sees it.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
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
use futures::StreamExt;
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

/// The part of what a login may still take that its next statement gets, as a divisor.
const SHARE: usize = 4;
/// The least part of what a login may take in all that a statement gets, as a divisor.
const LEAST_SHARE: usize = 32;
/// Bytes of a statement where nobody has said how many there are.
const OF_UNLIMITED: usize = 1 << 30;

impl Workers {
    /// Rows of a plan. It runs in a worker, but for the leaves that read something, and for plans that only pass rows on.
    /// The worker starts with the first look at the rows, and ends where nobody looks any more.
    ///
    /// # Errors
    /// Where the plan can't be sent to a worker.
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
        let rows = futures::stream::try_unfold(WorkerStatement::Unstarted(Box::new(unstarted)), WorkerStatement::next);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

/// Options that a session has set.
fn changed_options(options: &ConfigOptions) -> Vec<(String, String)> {
    let initial = ConfigOptions::default().entries();
    let is_initial =
        |key: &str, value: &Option<String>| initial.iter().any(|entry| entry.key == key && entry.value == *value);
    let entries = options.entries().into_iter();
    let changed = entries.filter(|entry| entry.key.starts_with("datafusion.") && !is_initial(&entry.key, &entry.value));
    changed.filter_map(|entry| Some((entry.key, entry.value?))).collect()
}

/// A statement that no worker has yet.
struct Unstarted {
    workers: Arc<Workers>,
    begin: Begin,
    plan: Vec<u8>,
    leaves: Vec<Arc<dyn ExecutionPlan>>,
    context: Arc<TaskContext>,
}

/// A statement on its way.
enum WorkerStatement {
    Unstarted(Box<Unstarted>),
    RunningPlan(Box<RunningPlan>),
}

impl WorkerStatement {
    /// The next rows, `None` after the last.
    async fn next(self) -> Result<Option<(RecordBatch, WorkerStatement)>> {
        let mut running = match self {
            WorkerStatement::Unstarted(plan) => Box::new(plan.start().await?),
            WorkerStatement::RunningPlan(running) => running,
        };
        let batch = running.next().await?;
        Ok(batch.map(|batch| (batch, WorkerStatement::RunningPlan(running))))
    }
}

impl Unstarted {
    async fn start(self) -> Result<RunningPlan> {
        let Unstarted { workers, mut begin, plan, leaves, context } = self;
        let memory = share(context.memory_pool())?;
        begin.memory = memory.size();
        let frame = Frame::new(Kind::Begin, joined([to_json(&begin)?, plan]));
        let process = begun(&workers, &frame).await?;
        // Views are being read until the last of them was.
        let turn = context.session_config().get_extension::<ReadingTurn>();
        let reads = turn.as_ref().filter(|_| !leaves.is_empty()).map(ReadingTurn::reading);
        let leaves = leaves.into_iter().map(LeafRows::new).collect();
        Ok(RunningPlan { process, leaves, context, own: begin.memory, memory, reads })
    }
}

/// A worker that has received its statement. A worker that waited may have been killed meanwhile; nothing was executed then,
/// so another one starts, and its loss is the failure of the statement.
async fn begun(workers: &Arc<Workers>, frame: &Frame) -> Result<Process> {
    let no_worker = |error: io::Error| external(SqlError::NoWorker { kind: error.kind() });
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

/// Takes what a statement may use of its login's memory: less, the more statements the login has running.
fn share(pool: &Arc<dyn MemoryPool>) -> Result<MemoryReservation> {
    let memory = MemoryConsumer::new("a worker").register(pool);
    let MemoryLimit::Finite(most) = pool.memory_limit() else {
        memory.try_grow(OF_UNLIMITED)?;
        return Ok(memory);
    };
    let (left, least) = (most.saturating_sub(pool.reserved()), most / LEAST_SHARE);
    // Where others have the rest, the least may still be there.
    if memory.try_grow((left / SHARE).max(least)).is_err() {
        memory.try_grow(least)?;
    }
    Ok(memory)
}

/// Rows of a leaf, by partition.
struct LeafRows {
    leaf: Arc<dyn ExecutionPlan>,
    partitions: Vec<LeafPartition>,
}

/// Rows of a partition.
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

    /// The next rows of a partition. Conditions count where they are said before the first.
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

/// A statement in its worker.
struct RunningPlan {
    process: Process,
    leaves: Vec<LeafRows>,
    context: Arc<TaskContext>,
    /// What the worker may take, and what the message at hand takes besides.
    own: usize,
    memory: MemoryReservation,
    reads: Option<ReadsView>,
}

impl RunningPlan {
    /// The next rows of the answer, `None` after the last.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            // What becomes of the rows of the last message is for those to count who have them.
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
                Kind::Failed => return Err(external(from_json::<Failed>(&frame.body)?.into_error())),
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

    /// Rows of a leaf, or its end.
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
    /// Sends a worker its statement and waits until the worker has received it.
    async fn begin(&mut self, frame: &Frame) -> io::Result<()> {
        frame.send(&mut self.socket).await?;
        // The confirmation says nothing more.
        match Frame::receive(&mut self.socket, |length| length == 0).await?.kind {
            Kind::Begun => Ok(()),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// Why a worker is gone. A worker that the system gives no memory is ended by a signal.
async fn lost(process: &mut Process, error: &io::Error) -> DataFusionError {
    if error.kind() == io::ErrorKind::OutOfMemory {
        return external(SqlError::OutOfMemory);
    }
    let was_killed = process.ended().await.is_some_and(was_signalled);
    external(if was_killed { SqlError::OutOfMemory } else { SqlError::WorkerLost })
}

/// A batch whose columns hold nothing but themselves. Columns of a message all hold the message, and whoever keeps the batch
/// would count it once for each.
fn apart(batch: RecordBatch) -> Result<RecordBatch> {
    if batch.num_columns() == 0 {
        return Ok(batch);
    }
    let all = UInt32Array::from_iter_values(0..batch.num_rows() as u32);
    Ok(take_record_batch(&batch, &all)?)
}

fn was_signalled(status: ExitStatus) -> bool {
    status.signal().is_some()
}

fn external(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
