//! [`Conversation`]: one client of the Model Context Protocol, from `initialize` to the end of stdin.
//!
//! # Guarantee
//! Every request is answered once, except one that the client cancels. Requests are answered while others run, but the
//! database is asked one question at a time. At most [`MOST_WAITING`] calls wait; more are refused.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::task::JoinSet;

use super::Heard;
use super::database::Database;
use super::message::{self, Failure, INVALID_PARAMETERS, INVALID_REQUEST, Id, Message, UNKNOWN_METHOD};
use super::tools::{self, INSTRUCTIONS, ToolCall};

/// The versions of the protocol that are spoken, the newest first.
const VERSIONS: [&str; 3] = ["2025-06-18", "2025-03-26", "2024-11-05"];

const MOST_WAITING: usize = 32;

/// A conversation with one client.
pub(super) struct Conversation {
    database: Arc<Database>,
    says: UnboundedSender<String>,
    stage: Stage,
    /// The calls that run or wait, each with a signal that cancels it.
    calls: Arc<Mutex<HashMap<Id, Arc<Notify>>>>,
    running: JoinSet<()>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    New,
    Initialized,
}

impl Conversation {
    pub(super) fn new(database: Arc<Database>, says: UnboundedSender<String>) -> Conversation {
        let (calls, running) = (Arc::default(), JoinSet::new());
        Conversation { database, says, stage: Stage::New, calls, running }
    }

    /// Answers messages until there are no more, and then waits for the calls that still run.
    pub(super) async fn run(mut self, mut heard: UnboundedReceiver<Heard>) {
        while let Some(line) = heard.recv().await {
            match line {
                Heard::Line(line) if line.trim().is_empty() => {}
                Heard::Line(line) => self.hear(&line),
                Heard::TooLong => {
                    let failure = Failure::new(INVALID_REQUEST, "a message must not be longer than a megabyte");
                    self.say(message::refusal(None, &failure));
                }
            }
            while self.running.try_join_next().is_some() {}
        }
        while self.running.join_next().await.is_some() {}
    }

    fn say(&self, line: String) {
        // If the writer has ended, the client is gone.
        let _ = self.says.send(line);
    }

    fn hear(&mut self, line: &str) {
        match message::read(line) {
            Ok(Message::Request { id, method, parameters }) => self.answer(&id, &method, &parameters),
            Ok(Message::Notification { method, parameters }) => {
                if method == "notifications/cancelled"
                    && let Some(id) = parameters.get("requestId").and_then(Id::read)
                    && let Some(cancelled) = lock(&self.calls).remove(&id)
                {
                    cancelled.notify_one();
                }
            }
            Ok(Message::Answer) => {}
            Err((id, failure)) => self.say(message::refusal(id.as_ref(), &failure)),
        }
    }

    fn answer(&mut self, id: &Id, method: &str, parameters: &Value) {
        let outcome = match (method, self.stage) {
            ("ping", _) => Ok(json!({})),
            ("initialize", Stage::New) => {
                self.stage = Stage::Initialized;
                Ok(greeting(parameters))
            }
            ("initialize", Stage::Initialized) => Err(Failure::new(INVALID_REQUEST, "this is initialized already")),
            (_, Stage::New) => Err(Failure::new(INVALID_REQUEST, "send initialize first")),
            ("tools/list", Stage::Initialized) => Ok(tools::list()),
            ("tools/call", Stage::Initialized) => match ToolCall::read(parameters) {
                Ok(call) => match self.call(id, call) {
                    Ok(()) => return,
                    Err(failure) => Err(failure),
                },
                Err(what) => Err(Failure::new(INVALID_PARAMETERS, what)),
            },
            (method, _) => Err(Failure::new(UNKNOWN_METHOD, format!("there is no method {method}"))),
        };
        self.say(message::answer(id, outcome));
    }

    /// Begins a call, which answers when it is done.
    fn call(&mut self, id: &Id, call: ToolCall) -> Result<(), Failure> {
        let cancelled = Arc::new(Notify::new());
        {
            let mut calls = lock(&self.calls);
            if calls.contains_key(id) {
                return Err(Failure::new(INVALID_REQUEST, "a request with this id is still running"));
            }
            if calls.len() >= MOST_WAITING {
                return Err(Failure::new(INVALID_REQUEST, "too many calls are waiting for their answers"));
            }
            calls.insert(id.clone(), Arc::clone(&cancelled));
        }
        let (database, says, calls) = (Arc::clone(&self.database), self.says.clone(), Arc::clone(&self.calls));
        let id = id.clone();
        self.running.spawn(async move {
            let result = call.run(&database, &cancelled).await;
            // Whoever removes the id decides: a cancelled call is not answered.
            if lock(&calls).remove(&id).is_some() {
                let _ = says.send(message::answer(&id, Ok(result)));
            }
        });
        Ok(())
    }
}

fn greeting(parameters: &Value) -> Value {
    let wanted = parameters.get("protocolVersion").and_then(Value::as_str);
    let version = VERSIONS.into_iter().find(|known| wanted == Some(known)).unwrap_or(VERSIONS[0]);
    json!({
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "kohort", "title": "Anonymization views", "version": env!("CARGO_PKG_VERSION")},
        "instructions": INSTRUCTIONS,
    })
}

fn lock(calls: &Mutex<HashMap<Id, Arc<Notify>>>) -> MutexGuard<'_, HashMap<Id, Arc<Notify>>> {
    calls.lock().unwrap_or_else(PoisonError::into_inner)
}
