//! [`Workers`]: processes that wait for a statement, so that a statement need not wait for its process to start.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::UnixStream;
use tokio::runtime::Handle;

use super::WORKER;

/// Starts workers, and keeps some that have started.
pub struct Workers {
    program: PathBuf,
    n_waiting: usize,
    waiting: Mutex<Vec<Process>>,
    /// Statements that have a process.
    n_running: Arc<AtomicUsize>,
    /// Hears of what processes say. Other runtimes may be busy.
    runtime: Handle,
}

impl Workers {
    /// Workers that this program becomes with the argument [`WORKER`], of which some always wait.
    ///
    /// # Errors
    /// Where it can't be started.
    /// # Panics
    /// Outside of a runtime.
    pub fn start(program: PathBuf, n_waiting: usize) -> io::Result<Arc<Workers>> {
        let (waiting, n_running, runtime) = (Mutex::default(), Arc::default(), Handle::current());
        let workers = Workers { program, n_waiting, waiting, n_running, runtime };
        workers.fill()?;
        Ok(Arc::new(workers))
    }

    /// How many statements have a process: one that was killed counts until the system has taken back what it held.
    pub fn n_running(&self) -> usize {
        self.n_running.load(Ordering::Acquire)
    }

    /// A worker for one statement: one that waits, where there is one. It may have been killed while it waited, and the
    /// system does not say so at once, so only its [`Kind::Begun`](super::frames::Kind::Begun) shows that it is there.
    pub(super) fn take(self: &Arc<Self>) -> io::Result<Process> {
        let waiting = self.waiting().pop();
        let workers = Arc::downgrade(self);
        self.runtime.spawn_blocking(move || {
            // Where no other can be started, the next statement tries and says so.
            workers.upgrade().map(|workers| workers.fill())
        });
        match waiting {
            Some(process) => Ok(self.counted(process)),
            None => self.take_new(),
        }
    }

    /// A worker for one statement that starts now.
    pub(super) fn take_new(&self) -> io::Result<Process> {
        Ok(self.counted(self.spawn()?))
    }

    fn counted(&self, mut process: Process) -> Process {
        self.n_running.fetch_add(1, Ordering::AcqRel);
        process.runs = Some(Runs(Arc::clone(&self.n_running)));
        process
    }

    fn fill(&self) -> io::Result<()> {
        while self.waiting().len() < self.n_waiting {
            let process = self.spawn()?;
            self.waiting().push(process);
        }
        Ok(())
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Process>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(&self) -> io::Result<Process> {
        let (own, its) = StdUnixStream::pair()?;
        own.set_nonblocking(true)?;
        let runtime = self.runtime.enter();
        let socket = UnixStream::from_std(own)?;
        drop(runtime);
        let mut command = Command::new(&self.program);
        command.arg(WORKER).env_clear();
        // Memory that mimalloc reserves counts as taken unless it is committed in pieces.
        command.env("MIMALLOC_ARENA_EAGER_COMMIT", "0");
        command.stdin(OwnedFd::from(its)).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn()?;
        Ok(Process { child: Some(child), socket, runs: None, runtime: self.runtime.clone() })
    }
}

/// A worker. It is killed where this is dropped.
pub(super) struct Process {
    /// `None` once somebody waits for its end.
    child: Option<Child>,
    pub(super) socket: UnixStream,
    /// `None` of one that waits.
    runs: Option<Runs>,
    runtime: Handle,
}

/// Counts a statement that has a process.
struct Runs(Arc<AtomicUsize>);

impl Drop for Runs {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Process {
    /// How a worker that says nothing any more has ended.
    pub(super) async fn ended(&mut self) -> Option<ExitStatus> {
        let mut child = self.child.take()?;
        self.runtime.spawn_blocking(move || child.wait().ok()).await.ok()?
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        // It may have ended by itself. Until somebody has asked how, the system keeps its number.
        let _ = child.kill();
        let runs = self.runs.take();
        self.runtime.spawn_blocking(move || {
            let _runs = runs;
            child.wait()
        });
    }
}
