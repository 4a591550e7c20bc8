//! [`Server`]: accepts and limits connections, and ends them when it stops.
//!
//! # Guarantee
//! At most `max_connections` are logged in. One analyst has at most half of them, and some are reserved for owners. A
//! little more than twice as many may be logging in, at most `max_connections` of them from one address. If more
//! arrive, the oldest are closed with a message (see `newcomers`). A failure in one connection does not affect others.
//! When the server stops, it accepts no new connections, ends idle ones at once, and waits `shutdown_timeout` for
//! running statements. Statements run on threads and a runtime of their own, so that a statement that computes without
//! a pause, which can't be stopped, blocks neither other connections nor timers.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use kohort_sql::Engine;
use kohort_sql::access::random_bytes;
use kohort_sql::parser::STACK;
use kohort_sql::worker::Workers;
use subtle::ConstantTimeEq;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::attempts::{Attempts, network};
use crate::catalog::PgCatalog;
use crate::configuration::Configuration;
use crate::connection;
use crate::metrics::Metrics;
use crate::newcomers::{Newcomer, Newcomers};
use crate::places::Places;
use crate::tls::Tls;
use crate::wire::ByteStream;

/// How long cancelled statements may take to end.
const LAST_MOMENTS: Duration = Duration::from_secs(1);
/// The number of threads for parts of statements: this many per processor, and at least [`LEAST_THREADS`]. A statement
/// has fewer parts than that, so there is always a thread for its timers.
const THREADS_PER_PROCESSOR: usize = 4;
const LEAST_THREADS: usize = 8;
/// The number of connections reserved for owners, if there are enough.
const FOR_OWNERS: usize = 3;
/// The limits on open cursors: of all logins together, of one analyst, and reserved for owners. They exist because each
/// cursor may hold two files open.
const MOST_CURSORS: usize = 128;
const MOST_CURSORS_OF_ONE: usize = 32;
const CURSORS_FOR_OWNERS: usize = 16;

/// Serves the views of an engine.
pub struct Server {
    pub(crate) engine: Engine,
    pub(crate) configuration: Configuration,
    pub(crate) tls: Option<Tls>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) attempts: Attempts,
    pub(crate) catalog: PgCatalog,
    /// The places of connections that are logged in.
    pub(crate) places: Arc<Places<String>>,
    /// The places of open cursors.
    pub(crate) cursors: Arc<Places<String>>,
    newcomers: Arc<Newcomers>,
    running: OpenConnections,
    work: Work,
    /// Whether the server is stopping.
    stopping: watch::Sender<bool>,
    /// Whether running statements must end.
    ending: watch::Sender<bool>,
}

/// The runtime for statements.
struct Work(Option<Runtime>);

impl Work {
    fn start() -> io::Result<Work> {
        let n_processors = available_parallelism().map_or(1, usize::from);
        let n_threads = (n_processors * THREADS_PER_PROCESSOR).max(LEAST_THREADS);
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        Ok(Work(Some(runtime.worker_threads(n_threads).enable_all().thread_stack_size(STACK).build()?)))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // Do not wait for statements that can't be stopped.
        self.0.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

impl Server {
    /// Creates a server for the views of an engine. `tls` is what [`Configuration::check`] returned for this
    /// configuration. The workers execute statements of analysts.
    ///
    /// # Errors
    /// If threads can't be started.
    pub fn new(
        engine: Engine,
        configuration: Configuration,
        tls: Option<Tls>,
        workers: Arc<Workers>,
    ) -> io::Result<Arc<Server>> {
        let most = configuration.max_connections;
        engine.run_analysts_in(workers);
        engine.limit_query_memory(configuration.query_memory.saturating_mul(1024 * 1024));
        Ok(Arc::new(Server {
            engine,
            configuration,
            tls,
            metrics: Arc::default(),
            attempts: Attempts::default(),
            catalog: PgCatalog::new(),
            places: Places::new(most, (most / 2).max(1), FOR_OWNERS.min(most / 4)),
            cursors: Places::new(MOST_CURSORS, MOST_CURSORS_OF_ONE, CURSORS_FOR_OWNERS),
            newcomers: Newcomers::new(2 * most + 16, most.max(8)),
            running: OpenConnections::default(),
            work: Work::start()?,
            stopping: watch::Sender::new(false),
            ending: watch::Sender::new(false),
        }))
    }

    /// The metrics.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Serves clients until `stop` completes, and then until running statements have ended or their time is up.
    ///
    /// # Panics
    /// If called in a runtime with one thread.
    pub async fn serve(self: &Arc<Self>, listener: TcpListener, stop: impl Future<Output = ()>) {
        let mut connections = JoinSet::new();
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                accepted = listener.accept() => self.accept(accepted, &mut connections).await,
                // Forget connections that have ended.
                Some(_) = connections.join_next() => {}
            }
        }
        drop(listener);
        self.stopping.send_replace(true);
        let ended = async { while connections.join_next().await.is_some() {} };
        let time = Duration::from_secs(self.configuration.shutdown_timeout);
        if tokio::time::timeout(time, ended).await.is_err() {
            self.ending.send_replace(true);
            let _ = tokio::time::timeout(LAST_MOMENTS, connections.shutdown()).await;
        }
    }

    /// Runs a statement on this thread and its parts on the threads of [`Work`]. Other connections do not use this
    /// thread meanwhile.
    ///
    /// # Panics
    /// If connections are served by a runtime with one thread.
    pub(crate) fn run_apart<T>(&self, statement: impl Future<Output = T>) -> T {
        let work = self.work.0.as_ref().expect("it is there until the server is gone").handle();
        tokio::task::block_in_place(|| work.block_on(statement))
    }

    /// Waits until running statements must end.
    pub(crate) async fn ending(&self) {
        // This can't fail as long as the sender exists, and `self` owns it.
        let _ = self.ending.subscribe().wait_for(|is_ending| *is_ending).await;
    }

    async fn accept(self: &Arc<Self>, accepted: io::Result<(TcpStream, SocketAddr)>, connections: &mut JoinSet<()>) {
        match accepted {
            Ok((stream, peer)) => {
                let newcomer = self.newcomers.take(network(peer.ip()));
                let server = Arc::clone(self);
                // Answers are buffered here, so the system need not wait for more bytes.
                let _ = stream.set_nodelay(true);
                connections.spawn(async move { server.serve_stream(Box::new(stream), peer.ip(), newcomer).await });
            }
            // Probably too many files are open. Wait for connections to end.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }

    /// Serves one client until it disconnects.
    async fn serve_stream(self: Arc<Self>, stream: Box<dyn ByteStream>, peer: IpAddr, newcomer: Newcomer) {
        self.metrics.connections.add(1);
        self.metrics.open.add(1);
        let _open = Open(Arc::clone(&self.metrics));
        connection::serve(&self, stream, peer, newcomer).await;
    }

    /// A receiver that is told when the server begins to stop.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    /// A process number and a secret by which a client can cancel the connection's statement.
    pub(crate) fn cancellable(self: &Arc<Self>) -> Option<Cancellable> {
        let secret = i32::from_be_bytes(random_bytes().ok()?);
        let process = self.running.next.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let cancelled = Arc::new(Notify::new());
        self.running.connections().insert(process, (secret, Arc::clone(&cancelled)));
        Some(Cancellable { server: Arc::clone(self), process, secret, cancelled })
    }

    /// Cancels the statement of a connection if the secret is right. The client does not learn whether it was.
    pub(crate) fn cancel(&self, process: i32, secret: i32) {
        let connections = self.running.connections();
        if let Some((known, cancelled)) = connections.get(&process)
            && bool::from(known.ct_eq(&secret))
        {
            cancelled.notify_waiters();
        }
    }
}

/// Counts an open connection, until it is dropped.
struct Open(Arc<Metrics>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.less();
    }
}

/// The connections by process number, with their secrets.
#[derive(Default)]
struct OpenConnections {
    next: AtomicI32,
    connections: Mutex<HashMap<i32, (i32, Arc<Notify>)>>,
}

impl OpenConnections {
    fn connections(&self) -> MutexGuard<'_, HashMap<i32, (i32, Arc<Notify>)>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection whose statements can be cancelled, until this is dropped.
pub(crate) struct Cancellable {
    server: Arc<Server>,
    pub(crate) process: i32,
    pub(crate) secret: i32,
    pub(crate) cancelled: Arc<Notify>,
}

impl Drop for Cancellable {
    fn drop(&mut self) {
        self.server.running.connections().remove(&self.process);
    }
}
