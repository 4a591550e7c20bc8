//! Runs one statement in a task of its own, so that Ctrl-C ends the statement and not the shell, and shows a spinner if
//! it takes long.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use futures::{FutureExt, StreamExt};
use tokio::sync::{Mutex, mpsc};

use super::output::{Format, Writer};
use super::progress::{PATIENCE, ProgressStage, Spinner};
use super::{CommandError, terminal};
use crate::SqlError;
use crate::engine::{Outcome, Session};
use crate::parser::{Parsed, Statement};

/// A statement that ends within this time runs on the thread that shows its answer.
const SOON: Duration = Duration::from_millis(2);

/// How many batches may wait to be shown.
const WAITING_BATCHES: usize = 2;

enum Message {
    Columns(SchemaRef),
    Rows(RecordBatch),
    Done(String),
    Failed(SqlError),
}

/// Runs a statement and shows its answer.
pub(super) async fn run(session: Arc<Mutex<Session>>, parsed: Parsed, format: Format) -> Result<(), CommandError> {
    let (sender, mut messages) = mpsc::channel(WAITING_BATCHES);
    let stage = Arc::new(ProgressStage::default());
    session.lock().await.report_to(Arc::clone(&stage) as _);
    let is_sql = matches!(parsed.statement, Statement::Sql(_));
    let mut work = Box::pin(work(session, parsed, sender));
    // A quick statement needs no other thread.
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
    // Nobody wants the result any more. The task ends when it waits the next time.
    task.abort();
    match task.await {
        Err(error) if error.is_panic() => Err(fault()),
        _ => shown,
    }
}

fn fault() -> CommandError {
    CommandError::fault("the statement failed because of a bug in kohort")
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
    // The receiver is gone after Ctrl-C, and this task is about to be ended.
    let _ = sender.send(message).await;
}

async fn show(
    messages: &mut mpsc::Receiver<Message>,
    format: Format,
    stage: &ProgressStage,
) -> Result<(), CommandError> {
    let cannot_write = |error: std::io::Error| CommandError::fault(format!("stdout: can't be written: {error}"));
    let cancelled = tokio::signal::ctrl_c();
    let patience = tokio::time::sleep(PATIENCE);
    tokio::pin!(cancelled, patience);
    let mut spinner = Spinner::new();
    let mut writer = None;
    loop {
        let message = tokio::select! {
            message = messages.recv() => message,
            _ = &mut cancelled => {
                return Err(CommandError { exit_code: CommandError::CANCELLED, message: "cancelled".to_owned(), hint: None });
            }
            () = &mut patience, if spinner.is_hidden() => {
                spinner.show(stage);
                continue;
            }
        };
        // A table is printed at its end, so the spinner can stay until then.
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
