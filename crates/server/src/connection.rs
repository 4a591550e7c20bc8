//! [`Connection`]: one client from its login to its end: reads messages, runs what they ask, and answers.
//!
//! # Guarantee
//! One statement at a time, within its time, cancellable at any moment, also while rows are sent. A fault in a statement
//! ends the connection, since nobody knows what it left behind; others go on.

mod extended;
mod run;
mod transaction;

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use kohort_sql::Session;
use kohort_sql::parser::parse;
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::response::{EmptyQueryResponse, ReadyForQuery, TransactionStatus};
use pgwire::messages::startup::{BackendKeyData, ParameterStatus, SecretKey};

use crate::catalog::PgCatalog;
use crate::failure::Failure;
use crate::frontend::FrontendMessage;
use crate::login::{Login, log_in};
use crate::request::Request;
use crate::server::{Cancellable, Server};
use crate::settings::Settings;
use crate::wire::{ByteStream, Wire};
use extended::{Portal, Prepared};

/// A client that has logged in.
pub(crate) struct Connection {
    server: Arc<Server>,
    wire: Wire,
    session: Session,
    settings: Settings,
    cancellable: Cancellable,
    status: TransactionStatus,
    statements: HashMap<String, Arc<Prepared>>,
    /// Statements of PREPARE, which the session keeps, with the bytes of their texts.
    prepared: BTreeMap<String, usize>,
    /// Portals and cursors: they share their names.
    portals: HashMap<String, Portal>,
    messages: Messages,
}

/// What becomes of messages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Messages {
    /// They are answered.
    Answered,
    /// One of a series failed: those up to its end are passed over.
    PassedOver,
}

/// Serves a client until it is gone.
pub(crate) async fn serve(server: &Arc<Server>, stream: Box<dyn ByteStream>, peer: IpAddr) {
    let Some(login) = log_in(server, stream, peer).await else { return };
    let Login { mut wire, user, session, parameters, _place: place } = login;
    wire.set_limit(server.configuration.max_message);
    let Some(cancellable) = server.cancellable() else { return };
    let mut connection = Connection {
        server: Arc::clone(server),
        wire,
        session,
        settings: Settings::new(&user, server.configuration.statement_timeout()),
        cancellable,
        status: TransactionStatus::Idle,
        statements: HashMap::new(),
        prepared: BTreeMap::new(),
        portals: HashMap::new(),
        messages: Messages::Answered,
    };
    let ended = match connection.greet(&user, &parameters).await {
        Ok(()) => connection.converse().await,
        Err(failure) => failure,
    };
    if let Failure::Fatal(refusal) | Failure::Statement(refusal) = ended
        && connection.wire.put(&refusal.message("FATAL")).is_ok()
    {
        let _ = connection.wire.flush().await;
    }
    drop(place);
    connection.wire.close().await;
}

impl Connection {
    /// Tells the client what it needs to know, and sets what it wishes.
    async fn greet(&mut self, user: &str, parameters: &[(String, String)]) -> Result<(), Failure> {
        let catalog = self.server.catalog.install(self.session.context(), user);
        catalog.map_err(|_| Failure::fatal("XX000", "the catalog can't be made"))?;
        for (name, value) in parameters {
            match name.as_str() {
                "application_name" | "client_encoding" => self.settings.set(name, Some(value))?,
                "options" => self.set_options(value).await?,
                // Others, such as the time zone of the client's machine, are told as they are here.
                _ => {}
            }
        }
        self.report(None)?;
        let Cancellable { process, secret, .. } = &self.cancellable;
        let key = BackendKeyData::new(*process, SecretKey::I32(*secret));
        self.wire.put(&PgWireBackendMessage::BackendKeyData(key))?;
        self.ready().await
    }

    /// `-c name=value`, as in PGOPTIONS. A blank in a value is written `\ `.
    async fn set_options(&mut self, options: &str) -> Result<(), Failure> {
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
            let unknown = || Failure::fatal("22023", "options are written -c name=value");
            let setting = setting.ok_or_else(unknown)?;
            let (name, value) = setting.split_once('=').ok_or_else(unknown)?;
            if self.settings.knows(name) {
                self.settings.set(name, Some(value))?;
                continue;
            }
            let name = name.to_lowercase();
            let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
            if !is_name || !name.starts_with("kohort.") {
                return Err(Failure::fatal("42704", "there is no such setting"));
            }
            let set = format!("SET {name} = '{}'", value.replace('\'', "''"));
            for parsed in parse(&set).map_err(kohort_sql::SqlError::from)? {
                self.session.run(parsed).await?;
            }
        }
        Ok(())
    }

    /// Until the client is gone, or must go.
    async fn converse(&mut self) -> Failure {
        let mut stopping = self.server.stopping();
        let idle = self.server.configuration.idle_timeout();
        loop {
            let idle = async {
                match idle {
                    Some(idle) => tokio::time::sleep(idle).await,
                    None => std::future::pending().await,
                }
            };
            let message = tokio::select! {
                // What came before is answered before the server stops.
                biased;
                message = self.wire.read() => message,
                _ = stopping.wait_for(|stopping| *stopping) => {
                    return Failure::fatal("57P01", "the server is shutting down");
                }
                () = idle => return Failure::fatal("57P05", "the connection was idle for too long"),
            };
            let message = match message {
                Ok(FrontendMessage::Terminate) => return Failure::Gone,
                Ok(message) => message,
                Err(problem) => return problem.into(),
            };
            if let Err(failure) = self.answer(message).await {
                return failure;
            }
        }
    }

    /// Answers a message. An error ends the connection.
    async fn answer(&mut self, message: FrontendMessage) -> Result<(), Failure> {
        let is_simple = matches!(message, FrontendMessage::Query(_));
        let is_sync = matches!(message, FrontendMessage::Sync);
        if self.messages == Messages::PassedOver && !is_sync && !is_simple {
            return Ok(());
        }
        self.messages = Messages::Answered;
        let outcome = self.within_time(message).await;
        if let Err(failure) = outcome {
            let Failure::Statement(refusal) = failure else { return Err(failure) };
            let is_cancelled = refusal.state == "57014";
            if is_cancelled { &self.server.metrics.cancelled } else { &self.server.metrics.failed }.add(1);
            self.wire.put(&refusal.message("ERROR"))?;
            if self.status == TransactionStatus::Transaction {
                self.status = TransactionStatus::Error;
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

    /// Runs what a message asks, unless it takes too long, is cancelled, or a fault of ours stops it.
    async fn within_time(&mut self, message: FrontendMessage) -> Result<(), Failure> {
        let computes = matches!(
            message,
            FrontendMessage::Query(_)
                | FrontendMessage::Parse { .. }
                | FrontendMessage::Describe(_)
                | FrontendMessage::Execute { .. }
        );
        let server = Arc::clone(&self.server);
        let ended = self.unless_late(message);
        if computes { server.run_apart(ended) } else { ended.await }
    }

    async fn unless_late(&mut self, message: FrontendMessage) -> Result<(), Failure> {
        let (server, cancelled) = (Arc::clone(&self.server), Arc::clone(&self.cancellable.cancelled));
        let timeout = self.settings.statement_timeout();
        let late = async {
            match timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = cancelled.notified() => Err(Failure::statement("57014", "canceling statement due to user request")),
            () = server.ending() => Err(Failure::fatal("57P01", "the server is shutting down")),
            // Before the statement: one that never waits uses up what the runtime lets a task do at once, and no timer is
            // looked at any more.
            () = late => Err(Failure::statement("57014", "canceling statement due to statement timeout")),
            done = AssertUnwindSafe(self.obey(message)).catch_unwind() => {
                done.unwrap_or_else(|_| Err(Failure::fatal("XX000", "a fault of kohort stopped the statement")))
            }
        }
    }

    async fn obey(&mut self, message: FrontendMessage) -> Result<(), Failure> {
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
            // Clients may send the rest of a COPY that was refused.
            FrontendMessage::Copy => Ok(()),
            FrontendMessage::Password(_) => Err(Failure::fatal("08P01", "nobody asked for a password")),
            FrontendMessage::Terminate => Err(Failure::Gone),
        }
    }

    /// Runs the statements of a text one after the other, up to the first that fails.
    async fn simple_query(&mut self, text: &str) -> Result<(), Failure> {
        // As in PostgreSQL, the unnamed ones end with a simple query.
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

    /// Puts the empty answer in the place of a query of keys that can't be planned.
    async fn answer_keys(&mut self, request: &mut Request) {
        if let Request::Rows(parsed) = request
            && let Some(nothing) = PgCatalog::nothing_for(parsed)
            && self.session.describe(parsed).await.is_err()
        {
            **parsed = nothing;
        }
    }

    /// Tells the client what settings are, all of them or one.
    fn report(&mut self, only: Option<&str>) -> Result<(), Failure> {
        for (name, value) in self.settings.reported(only) {
            let status = ParameterStatus::new(name.to_owned(), value.to_owned());
            self.wire.put(&PgWireBackendMessage::ParameterStatus(status))?;
        }
        Ok(())
    }

    /// Says that it is the client's turn.
    async fn ready(&mut self) -> Result<(), Failure> {
        self.wire.put(&PgWireBackendMessage::ReadyForQuery(ReadyForQuery::new(self.status)))?;
        Ok(self.wire.flush().await?)
    }
}
