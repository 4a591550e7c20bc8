//! [`Workers`]: idle worker processes, so that a statement need not wait for a process to start.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::net::UnixStream;
use tokio::runtime::Handle;

use super::WORKER;

/// Starts workers, and keeps some idle ones.
pub struct Workers {
    program: PathBuf,
    n_waiting: usize,
    waiting: Mutex<Vec<Process>>,
    /// The number of statements that have a process.
    n_running: Arc<AtomicUsize>,
    /// The runtime that receives messages of processes. Other runtimes may be busy.
    runtime: Handle,
}

impl Workers {
    /// Starts `n_waiting` idle workers, which are this program with the argument [`WORKER`].
    ///
    /// # Errors
    /// If a worker can't be started.
    /// # Panics
    /// If called outside of a runtime.
    pub fn start(program: PathBuf, n_waiting: usize) -> io::Result<Arc<Workers>> {
        let (waiting, n_running, runtime) = (Mutex::default(), Arc::default(), Handle::current());
        let workers = Workers { program, n_waiting, waiting, n_running, runtime };
        workers.fill()?;
        Ok(Arc::new(workers))
    }

    /// The number of statements that have a process. A killed process counts until the system has freed its memory.
    pub fn n_running(&self) -> usize {
        self.n_running.load(Ordering::Acquire)
    }

    /// A worker for one statement, an idle one if possible. An idle worker may have been killed without our knowledge,
    /// so only its [`Kind::Begun`](super::frames::Kind::Begun) shows that it is alive.
    pub(super) fn take(self: &Arc<Self>) -> io::Result<Process> {
        let waiting = self.waiting.lock().pop();
        let workers = Arc::downgrade(self);
        self.runtime.spawn_blocking(move || {
            // If no other worker can be started now, the next statement tries again and reports the failure.
            workers.upgrade().map(|workers| workers.fill())
        });
        match waiting {
            Some(process) => Ok(self.counted(process)),
            None => self.take_new(),
        }
    }

    /// Starts a new worker for one statement.
    pub(super) fn take_new(&self) -> io::Result<Process> {
        Ok(self.counted(self.spawn()?))
    }

    fn counted(&self, mut process: Process) -> Process {
        self.n_running.fetch_add(1, Ordering::AcqRel);
        process.runs = Some(Runs(Arc::clone(&self.n_running)));
        process
    }

    fn fill(&self) -> io::Result<()> {
        while self.waiting.lock().len() < self.n_waiting {
            let process = self.spawn()?;
            self.waiting.lock().push(process);
        }
        Ok(())
    }

    fn spawn(&self) -> io::Result<Process> {
        let (own, its) = StdUnixStream::pair()?;
        own.set_nonblocking(true)?;
        let runtime = self.runtime.enter();
        let socket = UnixStream::from_std(own)?;
        drop(runtime);
        let mut command = Command::new(&self.program);
        command.arg(WORKER).env_clear();
        // Otherwise all memory that mimalloc reserves would count towards the limit.
        command.env("MIMALLOC_ARENA_EAGER_COMMIT", "0");
        command.stdin(OwnedFd::from(its)).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn()?;
        Ok(Process { child: Some(child), socket, runs: None, runtime: self.runtime.clone() })
    }
}

/// A worker process, which is killed when this is dropped.
pub(super) struct Process {
    /// The process; `None` once its end is awaited.
    child: Option<Child>,
    pub(super) socket: UnixStream,
    /// Counts the statement; `None` while the worker is idle.
    runs: Option<Runs>,
    runtime: Handle,
}

/// Counts one statement that has a process, until it is dropped.
struct Runs(Arc<AtomicUsize>);

impl Drop for Runs {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Process {
    /// The exit status of a worker whose socket was closed.
    pub(super) async fn ended(&mut self) -> Option<ExitStatus> {
        let mut child = self.child.take()?;
        self.runtime.spawn_blocking(move || child.wait().ok()).await.ok()?
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        // The process may have ended already, so ignore the error. `wait` below lets the system free it.
        let _ = child.kill();
        let runs = self.runs.take();
        self.runtime.spawn_blocking(move || {
            let _runs = runs;
            child.wait()
        });
    }
}
