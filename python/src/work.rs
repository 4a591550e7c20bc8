//! Runs long work in a thread of its own, while the calling thread waits for signals and shows progress.
//!
//! Python runs signal handlers only in its main thread, and only while that thread runs Python code. So the work never
//! runs in the calling thread. The calling thread wakes up often, asks Python for signals, and cancels the work if a
//! handler raises an exception. Work that needs Python itself sends [`Errands`], which the calling thread runs: a thread of
//! ours that waits for the interpreter could be killed when the interpreter ends.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kohort::{Error, Progress, Report};
use pyo3::prelude::*;

use crate::errors::{exception, input};

/// How often signals are asked for.
const POLL: Duration = Duration::from_millis(50);

/// How long work that was cancelled is waited for. Work that has not noticed by then ends in the background, and nobody
/// receives its result.
const PATIENCE: Duration = Duration::from_millis(700);

/// The place of the last panic in this module. The message of a panic is never kept, because it might hold a cell.
static LAST_PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Notes where a panic happened instead of printing it.
pub(crate) fn note_panics() {
    std::panic::set_hook(Box::new(|panic| {
        *lock(&LAST_PANIC) = panic.location().map(|place| format!("{}:{}", place.file(), place.line()));
    }));
}

/// How far the work is.
#[derive(Default)]
struct State {
    /// Stages that the caller has not heard of, each with its steps in all. The last one is under way, so it stays in the list.
    stages: Mutex<Vec<(String, u64)>>,
    /// Steps done of the stage that is under way.
    done: AtomicU64,
    is_cancelled: AtomicBool,
}

impl Progress for State {
    fn begin(&self, stage: &str, total: u64) {
        lock(&self.stages).push((stage.to_owned(), total));
        self.done.store(0, Ordering::Relaxed);
    }

    fn advance(&self, steps: u64) {
        self.done.fetch_add(steps, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }
}

/// The caller of long work: how many threads the work may use, and a function that hears of its progress.
pub(crate) struct Caller<'py> {
    pub(crate) threads: Option<i64>,
    /// Called with a stage, the steps done and the steps in all, 0 if that is not known.
    pub(crate) hook: Option<Bound<'py, PyAny>>,
}

/// Something that the calling thread does for the work. An exception interrupts the work.
type Errand = Box<dyn FnOnce(Python<'_>) -> PyResult<()> + Send>;

/// Sends errands to the calling thread.
#[derive(Clone)]
pub(crate) struct Errands(Arc<dyn Fn(Errand) + Send + Sync>);

impl Errands {
    /// Has the calling thread do something, and waits for the result. `None` if the work was interrupted meanwhile.
    pub(crate) fn ask<R: Send + 'static>(
        &self,
        errand: impl FnOnce(Python<'_>) -> PyResult<R> + Send + 'static,
    ) -> Option<R> {
        let (reply, result) = channel();
        self.send(move |py| {
            // Nobody waits for the result any more if the work has ended.
            let _ = reply.send(errand(py)?);
            Ok(())
        });
        result.recv().ok()
    }

    /// Has the calling thread do something, and does not wait for it.
    pub(crate) fn send(&self, errand: impl FnOnce(Python<'_>) -> PyResult<()> + Send + 'static) {
        (self.0)(Box::new(errand));
    }
}

/// What the work tells the calling thread.
enum Message<T> {
    Errand(Errand),
    Done(Outcome<T>),
}

impl Caller<'_> {
    /// Does work without holding the interpreter.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&dyn Progress) -> Result<T, Error> + Send + 'static,
    ) -> PyResult<T> {
        self.run_with_errands(py, move |progress, _| work(progress))
    }

    /// The same for work that needs Python now and then.
    pub(crate) fn run_with_errands<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&dyn Progress, &Errands) -> Result<T, Error> + Send + 'static,
    ) -> PyResult<T> {
        let pool = self.pool().map_err(|error| exception(py, &error))?;
        let state = Arc::new(State::default());
        let (sender, receiver) = channel();
        let of_worker = Arc::clone(&state);
        let worker = move || {
            let of_errands = sender.clone();
            // If nobody receives an errand any more, the errand is dropped, and so `ask` returns `None`.
            let errands = Errands(Arc::new(move |errand| drop(of_errands.send(Message::Errand(errand)))));
            let outcome = catch_unwind(AssertUnwindSafe(|| pool.install(|| work(&*of_worker, &errands))));
            // Nobody listens any more if the work was cancelled and did not notice in time.
            let _ = sender.send(Message::Done(outcome));
        };
        std::thread::Builder::new()
            .name("kohort".to_owned())
            .spawn(worker)
            .map_err(|error| exception(py, &threads_refused(&error)))?;
        let receiver = Mutex::new(receiver);
        loop {
            let done = match wait(py, &receiver, POLL) {
                Some(Message::Done(outcome)) => {
                    let outcome = result_of(outcome).map_err(|error| exception(py, &error))?;
                    return self.tell(&state).map(|()| outcome);
                }
                Some(Message::Errand(errand)) => errand(py),
                None => Ok(()),
            };
            if let Err(interrupt) = done.and_then(|()| py.check_signals()).and_then(|()| self.tell(&state)) {
                state.is_cancelled.store(true, Ordering::Relaxed);
                wait_for_end(py, &receiver);
                return Err(interrupt);
            }
        }
    }

    /// Threads for this call alone: threads that outlive a call would be missing after a fork.
    fn pool(&self) -> Result<rayon::ThreadPool, Error> {
        let n_threads = self.threads.map_or(Ok(0), |n| usize::try_from(n).ok().filter(|&n| n > 0).ok_or(n));
        let refused =
            |n| input(format!("threads={n}: nothing runs without a thread"), "leave threads out for all cores");
        let builder = rayon::ThreadPoolBuilder::new().num_threads(n_threads.map_err(refused)?);
        builder.build().map_err(|error| threads_refused(&error))
    }

    /// Tells the function of every stage since the last call, however short, and how far the stage under way is.
    fn tell(&self, state: &State) -> PyResult<()> {
        let Some(hook) = &self.hook else { return Ok(()) };
        let (ended, under_way) = {
            let mut stages = lock(&state.stages);
            let n_ended = stages.len().saturating_sub(1);
            (stages.drain(..n_ended).collect::<Vec<_>>(), stages.last().cloned())
        };
        for (stage, total) in ended {
            hook.call1((stage, total, total))?;
        }
        match under_way {
            Some((stage, total)) => hook.call1((stage, state.done.load(Ordering::Relaxed), total)).map(drop),
            None => Ok(()),
        }
    }
}

type Outcome<T> = Result<Result<T, Error>, Box<dyn Any + Send>>;

/// Waits for the next message of the work; `None` if the time was too short.
fn wait<T: Send>(py: Python<'_>, receiver: &Mutex<Receiver<Message<T>>>, time: Duration) -> Option<Message<T>> {
    match py.detach(|| lock(receiver).recv_timeout(time)) {
        Ok(message) => Some(message),
        Err(RecvTimeoutError::Disconnected) => Some(Message::Done(Ok(Err(fault())))),
        Err(RecvTimeoutError::Timeout) => None,
    }
}

/// Waits for the end of work that was cancelled, but not for long. Its errands are dropped.
fn wait_for_end<T: Send>(py: Python<'_>, receiver: &Mutex<Receiver<Message<T>>>) {
    let end = Instant::now() + PATIENCE;
    while let Some(Message::Errand(_)) = wait(py, receiver, end.saturating_duration_since(Instant::now())) {}
}

fn result_of<T>(outcome: Outcome<T>) -> Result<T, Error> {
    outcome.unwrap_or_else(|_| Err(fault()))
}

fn fault() -> Error {
    let place = lock(&LAST_PANIC).take().map_or_else(String::new, |place| format!(" at {place}"));
    let hint = "this is a fault of kohort, and nothing was released: please report the place it names";
    Error::Fault(vec![Report::new(format!("kohort failed{place}")).hint(hint)])
}

fn threads_refused(error: &dyn std::error::Error) -> Error {
    Error::Fault(vec![Report::new(format!("threads can't be started: {error}"))])
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
