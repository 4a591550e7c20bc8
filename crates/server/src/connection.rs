//! [`Connection`]: one client from its login to its end. Reads messages, runs their statements, and answers.
//!
//! # Guarantee
//! A connection runs one statement at a time and limits its time. A statement can be cancelled at any moment except
//! during a commit, also while its rows are sent, and is cancelled if the client disconnects. A panic in a statement
//! ends the connection, because its state is unknown, but not the others. The end of the login ends the connection too.
//! Timeouts apply to an owner who is idle in an open transaction, and to a cursor without a FETCH.

mod extended;
mod run;
mod set;
mod transaction;

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use datafusion::config::ConfigOptions;
use futures::FutureExt;
use kohort_sql::{Role, Session};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::response::{EmptyQueryResponse, ReadyForQuery, TransactionStatus};
use pgwire::messages::startup::{BackendKeyData, ParameterStatus, SecretKey};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::catalog::PgCatalog;
use crate::error::AnswerError;
use crate::frontend::FrontendMessage;
use crate::login::{Login, log_in};
use crate::metrics::Metrics;
use crate::newcomers::Newcomer;
use crate::request::Request;
use crate::server::{Cancellable, Server};
use crate::settings::{Longest, SettingScope, Settings};
use crate::wire::{ByteStream, Incoming, Outgoing, Wire};
use extended::{Portal, Prepared, TextExtent};
use transaction::OptionsBefore;

/// A client that has logged in.
pub(crate) struct Connection {
    server: Arc<Server>,
    user: String,
    wire: Outgoing,
    session: Session,
    settings: Settings,
    /// The options of views at the time of the login.
    initial_options: ConfigOptions,
    /// The options before the current transaction.
    options_before: Option<OptionsBefore>,
    cancellable: Cancellable,
    status: TransactionStatus,
    /// Whether a commit is under way, which can't be cancelled.
    committing: watch::Sender<bool>,
    statements: HashMap<String, Arc<Prepared>>,
    /// Statements of PREPARE, which the session stores.
    prepared: BTreeMap<String, PreparedBySql>,
    /// Portals and cursors, which share one namespace.
    portals: HashMap<String, Portal>,
    messages: Messages,
}

/// A statement of PREPARE.
#[derive(Clone, Copy)]
struct PreparedBySql {
    extent: TextExtent,
    /// Whether the statement may change data.
    changes: bool,
}

/// How messages are treated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Messages {
    /// Messages are answered.
    Answered,
    /// A message failed, so messages are skipped until the next Sync.
    PassedOver,
}

/// Serves a client until it disconnects.
pub(crate) async fn serve(server: &Arc<Server>, stream: Box<dyn ByteStream>, peer: IpAddr, newcomer: Newcomer) {
    let Some(login) = log_in(server, stream, peer, &newcomer).await else { return };
    drop(newcomer);
    let Login { wire: Wire { mut incoming, outgoing }, user, session, parameters, place } = login;
    incoming.set_limit(server.configuration.max_message);
    let Some(cancellable) = server.cancellable() else { return };
    let longest = Longest {
        statement: server.configuration.statement_timeout(),
        // Nobody waits for an analyst's transaction, because it has no locks.
        idle_in_transaction: match session.role() {
            Role::Owner => server.configuration.idle_in_transaction_timeout(),
            Role::Analyst => None,
        },
    };
    let mut connection = Connection {
        server: Arc::clone(server),
        wire: outgoing,
        settings: Settings::new(&user, session.role(), longest),
        user,
        session,
        initial_options: ConfigOptions::default(),
        options_before: None,
        cancellable,
        status: TransactionStatus::Idle,
        committing: watch::Sender::new(false),
        statements: HashMap::new(),
        prepared: BTreeMap::new(),
        portals: HashMap::new(),
        messages: Messages::Answered,
    };
    let ended = match connection.greet(&parameters).await {
        Ok(()) => connection.converse(&mut incoming).await,
        Err(failure) => failure,
    };
    if let AnswerError::Fatal(refusal) | AnswerError::Statement(refusal) = ended
        && connection.wire.put(&refusal.message("FATAL")).is_ok()
    {
        let _ = connection.wire.flush().await;
    }
    // Free all resources before the client learns that the connection has ended.
    let Connection { wire, session, portals, .. } = connection;
    drop((portals, session, place));
    wire.close().await;
}

impl Connection {
    /// Sends the settings to the client, after applying those of its startup message.
    async fn greet(&mut self, parameters: &[(String, String)]) -> Result<(), AnswerError> {
        let catalog = self.server.catalog.install(self.session.context(), &self.user, self.session.role());
        catalog.map_err(|_| AnswerError::fatal("XX000", "the catalog can't be created"))?;
        for (name, value) in parameters {
            match name.as_str() {
                "application_name" | "client_encoding" => self.set(name, Some(value), SettingScope::Session)?,
                "options" => self.set_options(value).await?,
                // Other settings, such as the client's time zone, keep the server's values.
                _ => {}
            }
        }
        self.settings.keep_as_initial();
        self.initial_options = self.options();
        self.report(None)?;
        let Cancellable { process, secret, .. } = &self.cancellable;
        let key = BackendKeyData::new(*process, SecretKey::I32(*secret));
        self.wire.put(&PgWireBackendMessage::BackendKeyData(key))?;
        self.ready().await
    }

    /// Applies `-c name=value`, as in PGOPTIONS. A blank in a value is written `\ `.
    async fn set_options(&mut self, options: &str) -> Result<(), AnswerError> {
        let mut words = vec![String::new()];
        let mut characters = options.chars();
        while let Some(character) = characters.next() {
            let word = words.last_mut().expect("there is a last one");
            match character {
                '\\' => word.extend(characters.next()),
                blank if blank.is_whitespace() => words.push(String::new()),
                other => word.push(other),
            }
        }
        let mut words = words.into_iter().filter(|word| !word.is_empty());
        while let Some(word) = words.next() {
            let setting = match word.as_str() {
                "-c" => words.next(),
                word => word.strip_prefix("--").or(word.strip_prefix("-c")).map(str::to_owned),
            };
            let unknown = || AnswerError::fatal("22023", "options must have the form -c name=value");
            let setting = setting.ok_or_else(unknown)?;
            let (name, value) = setting.split_once('=').ok_or_else(unknown)?;
            if self.settings.knows(name) {
                self.set(name, Some(value), SettingScope::Session)?;
                continue;
            }
            self.set_view_option(name, value, SettingScope::Session).await?;
        }
        Ok(())
    }

    /// Answers messages until the client disconnects or must be disconnected.
    async fn converse(&mut self, incoming: &mut Incoming) -> AnswerError {
        let mut stopping = self.server.stopping();
        let login_gone = self.session.until_gone();
        tokio::pin!(login_gone);
        let mut since = Instant::now();
        loop {
            let (silence, too_long) = self.longest_silence();
            let silent = until(silence.map(|silence| since + silence));
            let cursor_idle = until(self.next_idle_cursor());
            let message = tokio::select! {
                // Answer messages that have already arrived before stopping.
                biased;
                message = incoming.read() => message,
                _ = stopping.wait_for(|stopping| *stopping) => {
                    return AnswerError::fatal("57P01", "the server is shutting down");
                }
                () = &mut login_gone => return login_is_gone(),
                () = silent => return too_long,
                () = cursor_idle => {
                    self.close_idle_cursors();
                    continue;
                }
            };
            let message = match message {
                Ok(FrontendMessage::Terminate) => return AnswerError::Gone,
                Ok(message) => message,
                Err(problem) => return problem.into(),
            };
            if let Err(failure) = self.answer(message, incoming).await {
                return failure;
            }
            since = Instant::now();
        }
    }

    /// How long the client may be idle now, and the error after that.
    fn longest_silence(&self) -> (Option<Duration>, AnswerError) {
        let idle = self.server.configuration.idle_timeout();
        let in_transaction = match self.status {
            TransactionStatus::Idle => None,
            _ => self.settings.idle_in_transaction_timeout(),
        };
        match in_transaction {
            Some(time) if idle.is_none_or(|idle| time < idle) => {
                (Some(time), AnswerError::fatal("25P03", "the connection was idle in a transaction for too long"))
            }
            _ => (idle, AnswerError::fatal("57P05", "the connection was idle for too long")),
        }
    }

    /// The time at which the first idle cursor must be closed.
    fn next_idle_cursor(&self) -> Option<Instant> {
        let timeout = self.server.configuration.cursor_timeout()?;
        self.portals.values().filter_map(Portal::idle_since).min().map(|since| since + timeout)
    }

    fn close_idle_cursors(&mut self) {
        let Some(timeout) = self.server.configuration.cursor_timeout() else { return };
        let now = Instant::now();
        for portal in self.portals.values_mut() {
            if portal.idle_since().is_some_and(|since| since + timeout <= now) {
                portal.time_out();
            }
        }
    }

    /// Answers a message. An error ends the connection.
    async fn answer(&mut self, message: FrontendMessage, incoming: &mut Incoming) -> Result<(), AnswerError> {
        let is_simple = matches!(message, FrontendMessage::Query(_));
        let is_sync = matches!(message, FrontendMessage::Sync);
        if self.messages == Messages::PassedOver && !is_sync && !is_simple {
            return Ok(());
        }
        self.messages = Messages::Answered;
        let outcome = self.within_time(message, incoming).await;
        if let Err(failure) = outcome {
            let AnswerError::Statement(refusal) = failure else { return Err(failure) };
            let is_cancelled = refusal.state == "57014";
            if is_cancelled { &self.server.metrics.cancelled } else { &self.server.metrics.failed }.add(1);
            self.wire.put(&refusal.message("ERROR"))?;
            if self.status == TransactionStatus::Transaction {
                self.status = TransactionStatus::Error;
                self.session.give_up_unless_marked();
            }
            if !is_simple {
                self.messages = Messages::PassedOver;
                return Ok(self.wire.flush().await?);
            }
        }
        match is_simple {
            true => self.ready().await,
            false => Ok(self.wire.flush_if_full().await?),
        }
    }

    /// Runs the statement of a message, until it ends, takes too long, is cancelled or panics.
    async fn within_time(&mut self, message: FrontendMessage, incoming: &mut Incoming) -> Result<(), AnswerError> {
        let computes = matches!(
            message,
            FrontendMessage::Query(_)
                | FrontendMessage::Parse { .. }
                | FrontendMessage::Describe(_)
                | FrontendMessage::Execute { .. }
        );
        let server = Arc::clone(&self.server);
        // A timer uses the runtime in which it is created. This runtime's timers work even if all threads of statements
        // compute.
        let late = self.settings.statement_timeout().map(sleep);
        if !computes {
            return self.unless_stopped(message, incoming, late).await;
        }
        server.run_apart(self.unless_stopped(message, incoming, late))
    }

    async fn unless_stopped(
        &mut self,
        message: FrontendMessage,
        incoming: &mut Incoming,
        late: Option<tokio::time::Sleep>,
    ) -> Result<(), AnswerError> {
        let (server, cancelled) = (Arc::clone(&self.server), Arc::clone(&self.cancellable.cancelled));
        // Created now, so that no notification is missed before it is awaited.
        let cancelled = cancelled.notified();
        let _running = Running::new(&server.metrics);
        let (mut committing, login_gone) = (self.committing.subscribe(), self.session.until_gone());
        let late = async {
            match late {
                Some(late) => late.await,
                None => std::future::pending().await,
            }
        };
        let stopped = async {
            tokio::select! {
                biased;
                () = cancelled => AnswerError::statement("57014", "canceling statement due to user request"),
                () = server.ending() => AnswerError::fatal("57P01", "the server is shutting down"),
                () = login_gone => login_is_gone(),
                () = incoming.until_gone() => AnswerError::Gone,
                () = late => AnswerError::statement("57014", "canceling statement due to statement timeout"),
            }
        };
        let obeyed = AssertUnwindSafe(self.obey(message)).catch_unwind();
        tokio::pin!(obeyed);
        let finished = |done: std::thread::Result<Result<(), AnswerError>>| {
            done.unwrap_or_else(|_| Err(AnswerError::fatal("XX000", "a bug in kohort stopped the statement")))
        };
        let failure = tokio::select! {
            biased;
            // Poll this before the statement: a statement that never waits would use up the task's budget, and then no
            // timer would be polled.
            failure = stopped => failure,
            done = &mut obeyed => return finished(done),
        };
        tokio::select! {
            biased;
            // A commit takes effect even if nobody waits for it, so wait for its end.
            _ = committing.wait_for(|is_committing| !is_committing) => Err(failure),
            done = &mut obeyed => finished(done),
        }
    }

    async fn obey(&mut self, message: FrontendMessage) -> Result<(), AnswerError> {
        match message {
            FrontendMessage::Query(text) => self.simple_query(&text).await,
            FrontendMessage::Parse { name, query, types } => self.prepare(name, &query, &types).await,
            FrontendMessage::Bind(bind) => self.bind(bind),
            FrontendMessage::Describe(target) => self.describe(target).await,
            FrontendMessage::Execute { portal, max_rows } => self.execute(&portal, max_rows).await,
            FrontendMessage::Close(target) => self.close(&target),
            FrontendMessage::Sync => {
                if self.status == TransactionStatus::Idle {
                    self.portals.retain(|_, portal| portal.is_declared());
                }
                self.ready().await
            }
            FrontendMessage::Flush => Ok(self.wire.flush().await?),
            // After a refused COPY, clients may still send its data.
            FrontendMessage::Copy => Ok(()),
            FrontendMessage::Password(_) => Err(AnswerError::fatal("08P01", "unexpected password message")),
            FrontendMessage::Terminate => Err(AnswerError::Gone),
        }
    }

    /// Runs the statements of a text one after the other, until one fails.
    async fn simple_query(&mut self, text: &str) -> Result<(), AnswerError> {
        // As in PostgreSQL, a simple query ends the unnamed statement and portal.
        self.statements.remove("");
        self.portals.remove("");
        let requests = Request::read(text, &self.session, &self.server.catalog, &self.settings)?;
        if requests.is_empty() {
            self.wire.put(&PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new()))?;
        }
        for mut request in requests {
            self.answer_keys(&mut request).await;
            self.run_simply(request).await?;
        }
        Ok(())
    }

    /// Replaces a query for keys that can't be planned by an empty answer.
    async fn answer_keys(&mut self, request: &mut Request) {
        if let Request::Rows(parsed) | Request::Declare { query: parsed, .. } = request
            && let Some(nothing) = PgCatalog::nothing_for(parsed)
            && self.session.describe(parsed).await.is_err()
        {
            **parsed = nothing;
        }
    }

    /// Sends the values of all settings, or of one, to the client.
    fn report(&mut self, only: Option<&str>) -> Result<(), AnswerError> {
        for (name, value) in self.settings.reported(only) {
            let status = ParameterStatus::new(name.to_owned(), value.to_owned());
            self.wire.put(&PgWireBackendMessage::ParameterStatus(status))?;
        }
        Ok(())
    }

    /// Tells the client that the server is ready for the next message.
    async fn ready(&mut self) -> Result<(), AnswerError> {
        self.wire.put(&PgWireBackendMessage::ReadyForQuery(ReadyForQuery::new(self.status)))?;
        Ok(self.wire.flush().await?)
    }
}

/// Counts a running statement, until it is dropped.
struct Running(Arc<Metrics>);

impl Running {
    fn new(metrics: &Arc<Metrics>) -> Running {
        metrics.running.add(1);
        Running(Arc::clone(metrics))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.less();
    }
}

/// Waits until this time, or forever.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

fn login_is_gone() -> AnswerError {
    AnswerError::fatal("28000", "this login is no longer valid")
}
