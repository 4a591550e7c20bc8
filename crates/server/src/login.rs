//! From the first byte to the login: TLS, cancel requests, SCRAM. A client that has not logged in gets an error and is
//! disconnected if a newer client needs its place.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::attempts::{Attempt, Attempted};
use crate::error::{AnswerError, ErrorMessage};
use crate::frontend::{FrontendMessage, StartupMessage, read_sasl_initial};
use crate::newcomers::Newcomer;
use crate::places::{NoPlace, Place};
use crate::scram::{LoginError, Scram, mechanisms};
use crate::server::Server;
use crate::wire::{ByteStream, Wire, WireError};
use kohort_sql::Session;
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::startup::{Authentication, NegotiateProtocolVersion};

/// A client that has logged in.
pub(crate) struct Login {
    pub(crate) wire: Wire,
    pub(crate) user: String,
    pub(crate) session: Session,
    pub(crate) parameters: Vec<(String, String)>,
    /// The login's place among the connections.
    pub(crate) place: Place<String>,
}

/// A connection before the login.
struct Opening<'s> {
    server: &'s Arc<Server>,
    newcomer: &'s Newcomer,
    peer: IpAddr,
    wire: Wire,
    /// The data for channel binding over TLS.
    binding: Option<Arc<[u8]>>,
    channel: Channel,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Channel {
    Plain,
    Tls,
}

/// Lets a client log in within its time. `None` if the client wanted something else or has disconnected.
pub(crate) async fn log_in(
    server: &Arc<Server>,
    stream: Box<dyn ByteStream>,
    peer: IpAddr,
    newcomer: &Newcomer,
) -> Option<Login> {
    let time = Duration::from_secs(server.configuration.startup_timeout);
    let mut stopping = server.stopping();
    let opened = async {
        let wire = Wire::new(stream);
        let opening = Opening { server, newcomer, peer, wire, binding: None, channel: Channel::Plain };
        let (mut opening, parameters) = opening.start().await?;
        match opening.authenticate(&parameters).await {
            Ok((user, session, place)) => Some(Login { wire: opening.wire, user, session, parameters, place }),
            Err(failure) => {
                opening.end(failure).await;
                None
            }
        }
    };
    tokio::select! {
        opened = tokio::time::timeout(time, opened) => opened.ok().flatten(),
        _ = stopping.wait_for(|stopping| *stopping) => None,
    }
}

impl Opening<'_> {
    /// Reads messages up to the startup message with the user's name.
    async fn start(mut self) -> Option<(Self, Vec<(String, String)>)> {
        // A client may ask once for TLS and once for GSSAPI before the startup message.
        for _ in 0..3 {
            match heard(self.server, self.newcomer, self.wire.incoming.read_startup()).await {
                Ok(StartupMessage::Startup { minor, parameters }) => {
                    if minor > 0 || parameters.iter().any(|(name, _)| name.starts_with("_pq_.")) {
                        self.negotiate(&parameters).ok()?;
                    }
                    return Some((self, parameters));
                }
                Ok(StartupMessage::Cancel { process, secret }) => {
                    self.server.cancel(process, secret);
                    return None;
                }
                Ok(StartupMessage::Gss) => {
                    self.wire.outgoing.put_byte(b'N');
                    self.wire.outgoing.flush().await.ok()?;
                }
                Ok(StartupMessage::Tls) => match (&self.server.tls, self.channel) {
                    (Some(tls), Channel::Plain) => {
                        let tls = tls.current();
                        self.wire.outgoing.put_byte(b'S');
                        self.wire.outgoing.flush().await.ok()?;
                        let accepted = tls.acceptor.accept(self.wire.into_stream().ok()?);
                        let stream = tokio::select! {
                            accepted = accepted => accepted.ok()?,
                            // No error can be sent during a handshake.
                            () = self.newcomer.must_leave() => {
                                self.server.metrics.refused.add(1);
                                return None;
                            }
                        };
                        self.wire = Wire::new(Box::new(stream));
                        self.binding = tls.binding.clone();
                        self.channel = Channel::Tls;
                    }
                    _ => {
                        self.wire.outgoing.put_byte(b'N');
                        self.wire.outgoing.flush().await.ok()?;
                    }
                },
                Err(failure) => {
                    self.end(failure).await;
                    return None;
                }
            }
        }
        self.end(AnswerError::fatal("08P01", "expected a startup message")).await;
        None
    }

    /// Offers our version of the protocol.
    fn negotiate(&mut self, parameters: &[(String, String)]) -> Result<(), AnswerError> {
        let unknown = parameters.iter().map(|(name, _)| name).filter(|name| name.starts_with("_pq_."));
        let offer = NegotiateProtocolVersion::new(0, unknown.cloned().collect());
        Ok(self.wire.outgoing.put(&PgWireBackendMessage::NegotiateProtocolVersion(offer))?)
    }

    async fn authenticate(
        &mut self,
        parameters: &[(String, String)],
    ) -> Result<(String, Session, Place<String>), AnswerError> {
        let parameter = |wanted: &str| parameters.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
        let server = self.server;
        if server.configuration.require_tls && self.channel == Channel::Plain {
            let refusal =
                ErrorMessage::new("28000", "TLS is required").hint("connect with sslmode=require or stricter");
            return Err(AnswerError::Fatal(Box::new(refusal)));
        }
        if parameter("replication").is_some_and(|value| !["false", "off", "no", "0"].contains(&value.as_str())) {
            return Err(AnswerError::fatal("0A000", "replication is not supported"));
        }
        let user = parameter("user").ok_or_else(|| AnswerError::fatal("28000", "the startup message has no user"))?;
        if server.attempts.have_failed(self.peer, user, Instant::now()) {
            server.metrics.failed_logins.add(1);
            return Err(too_many_failed());
        }
        let session = match self.scram(user).await {
            Ok(session) => session,
            // psql disconnects when it is asked for a password, and connects again with one. This is not a failed
            // login.
            Err(AnswerError::Gone) => return Err(AnswerError::Gone),
            Err(failure) => {
                server.metrics.failed_logins.add(1);
                return Err(failure);
            }
        };
        let place = server.places.take(user.clone(), session.role()).map_err(|problem| {
            server.metrics.refused.add(1);
            AnswerError::fatal(
                "53300",
                match problem {
                    NoPlace::Full => "too many connections",
                    NoPlace::Share => "too many connections of this login",
                },
            )
        })?;
        let outgoing = &mut self.wire.outgoing;
        outgoing.put(&PgWireBackendMessage::Authentication(Authentication::Ok))?;
        server.metrics.logins.add(1);
        Ok((user.clone(), session, place))
    }

    async fn scram(&mut self, user: &str) -> Result<Session, AnswerError> {
        let engine = &self.server.engine;
        let accounts = engine.accounts().ok_or_else(|| AnswerError::fatal("28000", "this server has no users"))?;
        let offered = Authentication::SASL(mechanisms(self.binding.as_deref()));
        self.say(offered).await?;
        let (mechanism, first) = read_sasl_initial(self.read_password().await?).map_err(|_| wrong_login(user, None))?;
        let (verifier, login) = accounts.verifier(user);
        let refused = |problem| wrong_login(user, Some(problem));
        let (scram, answer) = Scram::start(&mechanism, &first, verifier, self.binding.as_deref()).map_err(refused)?;
        self.say(Authentication::SASLContinue(answer.into())).await?;
        let last = self.read_password().await?;
        let attempt = attempt(self.server, self.peer, user).await?;
        let checked = scram.finish(&last).and_then(|proof| {
            // No password fits the verifier of an unknown user, but check again that there is a login.
            let login = login.ok_or(LoginError::Wrong)?;
            let session = engine.session_of(login).map_err(|_| LoginError::Wrong)?;
            Ok((proof, session))
        });
        let (proof, session) = match checked {
            Ok(checked) => checked,
            Err(problem) => {
                attempt.fail(Instant::now());
                return Err(refused(problem));
            }
        };
        drop(attempt);
        self.wire.outgoing.put(&PgWireBackendMessage::Authentication(Authentication::SASLFinal(proof.into())))?;
        Ok(session)
    }

    async fn say(&mut self, message: Authentication) -> Result<(), AnswerError> {
        self.wire.outgoing.put(&PgWireBackendMessage::Authentication(message))?;
        Ok(self.wire.outgoing.flush().await?)
    }

    async fn read_password(&mut self) -> Result<bytes::Bytes, AnswerError> {
        match heard(self.server, self.newcomer, self.wire.incoming.read()).await? {
            FrontendMessage::Password(body) => Ok(body),
            FrontendMessage::Terminate => Err(AnswerError::Gone),
            _ => Err(AnswerError::fatal("08P01", "expected a password message")),
        }
    }

    /// Sends the reason why the login failed.
    async fn end(mut self, failure: AnswerError) {
        if let AnswerError::Fatal(refusal) | AnswerError::Statement(refusal) = failure
            && self.wire.outgoing.put(&refusal.message("FATAL")).is_ok()
        {
            let _ = self.wire.outgoing.flush().await;
        }
        self.wire.outgoing.close().await;
    }
}

/// Waits for the permission to check a password. The check itself never waits for a client, so others wait only
/// briefly.
async fn attempt<'s>(server: &'s Server, peer: IpAddr, user: &str) -> Result<Attempt<'s>, AnswerError> {
    loop {
        // Created before the state is read, so that no notification is missed.
        let ended = server.attempts.ended();
        match server.attempts.begin(peer, user, Instant::now()) {
            Attempted::Begun(attempt) => return Ok(attempt),
            Attempted::Later => ended.await,
            Attempted::Never => return Err(too_many_failed()),
        }
    }
}

/// Reads a message of a client, unless others need its place.
async fn heard<T>(
    server: &Server,
    newcomer: &Newcomer,
    message: impl Future<Output = Result<T, WireError>>,
) -> Result<T, AnswerError> {
    tokio::select! {
        biased;
        message = message => Ok(message?),
        () = newcomer.must_leave() => {
            server.metrics.refused.add(1);
            let refusal = ErrorMessage::new("53300", "too many connections that have not logged in");
            Err(AnswerError::Fatal(Box::new(refusal.hint("connect again, and log in at once"))))
        }
    }
}

fn too_many_failed() -> AnswerError {
    let refusal = ErrorMessage::new("28000", "too many failed logins").hint("try again in a minute");
    AnswerError::Fatal(Box::new(refusal))
}

/// The error for a wrong password, which is the same for an unknown user.
fn wrong_login(user: &str, problem: Option<LoginError>) -> AnswerError {
    match problem {
        Some(LoginError::Wrong) => {
            AnswerError::fatal("28P01", format!("password authentication failed for user \"{user}\""))
        }
        Some(problem) => AnswerError::fatal("28000", problem.to_string()),
        None => AnswerError::fatal("08P01", LoginError::Malformed.to_string()),
    }
}
