//! [`run`]: the main function of a worker.
//!
//! One thread executes the plan, and another reads messages of the server. When the server is gone, the process ends at
//! once.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::disk_manager::{DiskManager, DiskManagerMode};
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_proto::bytes::physical_plan_from_bytes_with_proto_converter;
use datafusion_proto::physical_plan::DeduplicatingProtoConverter;
use futures::StreamExt;
use kohort_model::Hierarchy;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::codec::Codec;
use super::frames::{Begin, Failed, Frame, Kind, from_json, malformed, parts, to_json};
use super::remote::Link;
use crate::exact::{self, exact_sum};
use crate::parser::STACK;

/// Bytes that a worker may use beyond its statement's share, for its plan and the current batches.
const BESIDES: u64 = 32 << 20;

/// The user who runs a statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asker {
    /// The user's name.
    pub user: String,
    /// The views that the user may read.
    pub views: Vec<String>,
}

/// Functions that statements may call in addition to DataFusion's.
#[derive(Clone, Copy)]
pub struct Functions {
    /// Functions for this user that replace DataFusion's functions of the same names.
    pub own: fn(asker: &Asker) -> Vec<ScalarUDF>,
    /// Other functions by name. They are created when a plan calls the first of them.
    pub others: fn(name: &str) -> Option<Arc<ScalarUDF>>,
}

/// Reads one plan from stdin, which is a socket, executes it, and writes its rows to the same socket.
pub fn run(functions: Functions) -> ExitCode {
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(move || serve(functions));
    match thread.map(std::thread::JoinHandle::join) {
        Ok(Ok(Ok(()))) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn serve(functions: Functions) -> io::Result<()> {
    // Stdin is a socket, so it can be written too.
    let from = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let to = from.try_clone()?;
    let (heard, said) = sync_channel(1);
    std::thread::Builder::new().spawn(move || {
        let mut from = from;
        while let Ok(frame) = Frame::read(&mut from) {
            if heard.send(frame).is_err() {
                break;
            }
        }
        // The server is gone, so nobody waits for the statement.
        std::process::exit(0);
    })?;
    // Do the slow work that is the same for all statements before a statement arrives.
    let state = SessionStateBuilder::new().with_default_features().build();
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let fault = note_faults();
    let Ok(frame) = said.recv() else { return Ok(()) };
    let link = Arc::new(Link::new(to, said));
    // If this process ends after this message, the statement fails. If it ends earlier, the server starts another
    // process.
    link.send(&Frame::new(Kind::Begun, Vec::new())).map_err(io::Error::other)?;
    let (begin, plan) = begin(&frame).map_err(io::Error::other)?;
    limit_memory(begin.memory as u64)?;
    let worker = Worker { link: Arc::clone(&link), functions, state };
    let executed = std::panic::catch_unwind(AssertUnwindSafe(|| runtime.block_on(worker.execute(begin, plan))));
    let last = match executed {
        Ok(Ok(())) => Frame::new(Kind::End, Vec::new()),
        Ok(Err(error)) => failed(&Failed::of(error)),
        Err(_) => failed(&Failed::Fault(fault.lock().clone())),
    };
    link.send(&last).map_err(io::Error::other)
}

fn failed(why: &Failed) -> Frame {
    Frame::new(Kind::Failed, to_json(why).unwrap_or_default())
}

/// Notes the place of a panic, but not its message, which may contain a cell.
fn note_faults() -> Arc<Mutex<String>> {
    let place = Arc::new(Mutex::new(String::new()));
    let noted = Arc::clone(&place);
    std::panic::set_hook(Box::new(move |panic| {
        let location = panic.location().map(|location| format!("{}:{}", location.file(), location.line()));
        *noted.lock() = location.unwrap_or_default();
    }));
    place
}

fn begin(frame: &Frame) -> Result<(Begin, &[u8])> {
    match (frame.kind, &parts(&frame.body)?[..]) {
        (Kind::Begin, [begin, plan]) => Ok((from_json(begin)?, plan)),
        _ => Err(malformed()),
    }
}

/// Limits the memory that this process may use from now on. The limit can't be raised again.
#[cfg(target_os = "linux")]
fn limit_memory(share: u64) -> io::Result<()> {
    use nix::sys::resource::{Resource, setrlimit};
    let most = taken()?.saturating_add(BESIDES).saturating_add(share);
    setrlimit(Resource::RLIMIT_DATA, most, most)?;
    // No core dumps, because they would contain rows.
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    Ok(())
}

/// Other systems have no limit on the memory that a process writes to.
#[cfg(not(target_os = "linux"))]
fn limit_memory(_: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Bytes that already count towards the limit.
#[cfg(target_os = "linux")]
fn taken() -> io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.map(|kilobytes| kilobytes * 1024).ok_or_else(|| io::ErrorKind::Unsupported.into())
}

struct Worker {
    link: Arc<Link>,
    functions: Functions,
    /// The session state with DataFusion's functions.
    state: SessionState,
}

impl Worker {
    async fn execute(self, begin: Begin, plan: &[u8]) -> Result<()> {
        let tree = |nodes: &Vec<(String, u32)>| {
            let nodes = nodes.iter().map(|(label, parent)| (label.as_str(), *parent));
            Hierarchy::from_nodes(nodes).map(Arc::new)
        };
        let hierarchies = begin.hierarchies.iter().map(tree).collect::<Option<Vec<_>>>().ok_or_else(malformed)?;
        let context = self.context(&begin)?;
        let codec = Codec::of_worker(hierarchies, Arc::clone(&self.link), self.functions);
        let converter = DeduplicatingProtoConverter {};
        let plan = physical_plan_from_bytes_with_proto_converter(plan, &context, &codec, &converter)?;
        let mut rows = execute_stream(plan, context)?;
        while let Some(batch) = rows.next().await.transpose()? {
            self.link.send(&Frame::rows(&batch)?)?;
        }
        Ok(())
    }

    fn context(&self, begin: &Begin) -> Result<Arc<TaskContext>> {
        let mut config = SessionConfig::new();
        for (key, value) in &begin.options {
            config.options_mut().set(key, value)?;
        }
        let no_files = DiskManager::builder().with_mode(DiskManagerMode::Disabled);
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(GreedyMemoryPool::new(begin.memory)))
            .with_disk_manager_builder(no_files)
            .build_arc()?;
        let state = SessionStateBuilder::new_from_existing(self.state.clone()).with_config(config);
        let context = SessionContext::new_with_state(state.with_runtime_env(runtime).build());
        for function in exact::functions().chain((self.functions.own)(&begin.asker)) {
            context.register_udf(function);
        }
        context.register_udaf(exact_sum());
        Ok(context.task_ctx())
    }
}
