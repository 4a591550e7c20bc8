//! Running one statement: in a task of its own, so that Ctrl-C ends it and not the shell, with a sign of life where it
//! takes long.

use std::io::IsTerminal;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use futures::{FutureExt, StreamExt};
use indicatif::{ProgressBar, ProgressStyle};
use kohort_model::Progress;
use tokio::sync::{Mutex, mpsc};

use super::output::{Format, Writer};
use super::{Failure, terminal};
use crate::SqlError;
use crate::engine::{Outcome, Session};
use crate::parser::{Parsed, Statement};

/// So long a statement may take on the thread that shows its answer.
const SOON: Duration = Duration::from_millis(2);

/// How long a statement runs before there is a sign of life.
const PATIENCE: Duration = Duration::from_millis(500);

/// Batches that may wait to be shown.
const WAITING_BATCHES: usize = 2;

enum Message {
    Columns(SchemaRef),
    Rows(RecordBatch),
    Done(String),
    Failed(SqlError),
}

/// Runs a statement and shows its answer.
pub(super) async fn run(session: Arc<Mutex<Session>>, parsed: Parsed, format: Format) -> Result<(), Failure> {
    let (sender, mut messages) = mpsc::channel(WAITING_BATCHES);
    let stage = Arc::new(Stage::default());
    session.lock().await.report_to(Arc::clone(&stage) as _);
    let is_sql = matches!(parsed.statement, Statement::Sql(_));
    let mut work = Box::pin(work(session, parsed, sender));
    // What is answered soon needs no other thread.
    if is_sql {
        match tokio::time::timeout(SOON, AssertUnwindSafe(&mut work).catch_unwind()).await {
            Err(_) => {}
            Ok(Ok(())) => return show(&mut messages, format, &stage).await,
            Ok(Err(_)) => return Err(fault()),
        }
    }
    let task = tokio::spawn(work);
    let shown = show(&mut messages, format, &stage).await;
    messages.close();
    // Whatever still runs is for nobody; it ends where it waits next.
    task.abort();
    match task.await {
        Err(error) if error.is_panic() => Err(fault()),
        _ => shown,
    }
}

fn fault() -> Failure {
    Failure::fault("the statement ended in a fault")
}

async fn work(session: Arc<Mutex<Session>>, parsed: Parsed, sender: mpsc::Sender<Message>) {
    let outcome = session.lock().await.run(parsed).await;
    let mut stream = match outcome {
        Ok(Outcome::Rows(stream)) => stream,
        Ok(Outcome::Done(words)) => return send(&sender, Message::Done(words)).await,
        Err(error) => return send(&sender, Message::Failed(error)).await,
    };
    send(&sender, Message::Columns(stream.schema())).await;
    while let Some(batch) = stream.next().await {
        match batch {
            Ok(batch) => send(&sender, Message::Rows(batch)).await,
            Err(error) => return send(&sender, Message::Failed(error.into())).await,
        }
    }
}

async fn send(sender: &mpsc::Sender<Message>, message: Message) {
    // Nobody listens after Ctrl-C; the task is about to be ended.
    let _ = sender.send(message).await;
}

async fn show(messages: &mut mpsc::Receiver<Message>, format: Format, stage: &Stage) -> Result<(), Failure> {
    let cannot_write = |error: std::io::Error| Failure::fault(format!("stdout: can't be written: {error}"));
    let cancelled = tokio::signal::ctrl_c();
    let patience = tokio::time::sleep(PATIENCE);
    tokio::pin!(cancelled, patience);
    let mut spinner = Spinner::new();
    let mut writer = None;
    loop {
        let message = tokio::select! {
            message = messages.recv() => message,
            _ = &mut cancelled => {
                return Err(Failure { exit_code: Failure::CANCELLED, message: "cancelled".to_owned(), hint: None });
            }
            () = &mut patience, if spinner.is_hidden() => {
                spinner.show(stage);
                continue;
            }
        };
        // A table is shown at its end, so until then the spinner may turn.
        if format != Format::Table || !matches!(message, Some(Message::Rows(_) | Message::Columns(_))) {
            spinner.clear();
        }
        match message {
            Some(Message::Columns(schema)) => {
                writer = Some(Writer::start(std::io::stdout(), format, schema));
            }
            Some(Message::Rows(batch)) => {
                let writer = writer.as_mut().expect("columns come before rows");
                if !writer.add(batch).map_err(cannot_write)? {
                    return Ok(());
                }
            }
            Some(Message::Done(words)) => {
                terminal::say(&format!("{words}\n"));
                return Ok(());
            }
            Some(Message::Failed(error)) => return Err(error.into()),
            None => return writer.map_or(Ok(()), |writer| writer.finish().map_err(cannot_write)),
        }
    }
}

/// How far a statement is, in words beside the sign of life.
#[derive(Default)]
struct Stage {
    bar: OnceLock<ProgressBar>,
    name: std::sync::Mutex<String>,
    total: AtomicU64,
    done: AtomicU64,
}

impl Stage {
    fn show_on(&self, bar: &ProgressBar) {
        let bar = self.bar.get_or_init(|| bar.clone());
        bar.set_message(self.words(None));
    }

    fn words(&self, percent: Option<u64>) -> String {
        let name = self.name.lock().unwrap_or_else(PoisonError::into_inner);
        match percent {
            _ if name.is_empty() => "Ctrl-C cancels".to_owned(),
            Some(percent) => format!("{name} {percent} %, Ctrl-C cancels"),
            None => format!("{name}, Ctrl-C cancels"),
        }
    }
}

impl Progress for Stage {
    fn begin(&self, stage: &str, total: u64) {
        stage.clone_into(&mut self.name.lock().unwrap_or_else(PoisonError::into_inner));
        self.total.store(total, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
        if let Some(bar) = self.bar.get() {
            bar.set_message(self.words(None));
        }
    }

    fn advance(&self, amount: u64) {
        let total = self.total.load(Ordering::Relaxed);
        let before = self.done.fetch_add(amount, Ordering::Relaxed);
        let Some(bar) = self.bar.get().filter(|_| total > 0) else { return };
        let percent = |done: u64| (100 * done / total).min(100);
        if percent(before) != percent(before + amount) {
            bar.set_message(self.words(Some(percent(before + amount))));
        }
    }
}

/// A sign of life on a terminal.
struct Spinner {
    state: SpinnerState,
}

enum SpinnerState {
    Waiting,
    Shown(ProgressBar),
    Over,
}

impl Spinner {
    fn new() -> Self {
        let state = if std::io::stderr().is_terminal() { SpinnerState::Waiting } else { SpinnerState::Over };
        Spinner { state }
    }

    fn is_hidden(&self) -> bool {
        matches!(self.state, SpinnerState::Waiting)
    }

    fn show(&mut self, stage: &Stage) {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
            bar.set_style(style);
        }
        stage.show_on(&bar);
        bar.enable_steady_tick(Duration::from_millis(100));
        self.state = SpinnerState::Shown(bar);
    }

    fn clear(&mut self) {
        if let SpinnerState::Shown(bar) = std::mem::replace(&mut self.state, SpinnerState::Over) {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.clear();
    }
}
