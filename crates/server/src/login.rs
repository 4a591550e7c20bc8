//! From the first byte to a login: TLS, cancel requests, SCRAM. A client that others need the place of is told so and must go.

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

/// Somebody who has logged in.
pub(crate) struct Login {
    pub(crate) wire: Wire,
    pub(crate) user: String,
    pub(crate) session: Session,
    pub(crate) parameters: Vec<(String, String)>,
    /// Their place among those who may be connected.
    pub(crate) place: Place<String>,
}

/// A connection before anybody has logged in.
struct Opening<'s> {
    server: &'s Arc<Server>,
    newcomer: &'s Newcomer,
    peer: IpAddr,
    wire: Wire,
    /// What a login over TLS is bound to.
    binding: Option<Arc<[u8]>>,
    channel: Channel,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Channel {
    Plain,
    Tls,
}

/// Leads a client to a login within the time it has for it. `None` where it wanted something else, or is gone.
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
    /// Up to the message that says who it is.
    async fn start(mut self) -> Option<(Self, Vec<(String, String)>)> {
        // TLS and GSSAPI are each asked for once.
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
                        self.wire.outgoing.put_byte(b'S');
                        self.wire.outgoing.flush().await.ok()?;
                        let accepted = tls.acceptor.accept(self.wire.into_stream().ok()?);
                        let stream = tokio::select! {
                            accepted = accepted => accepted.ok()?,
                            // Nothing can be said in the middle of a handshake.
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
        self.end(AnswerError::fatal("08P01", "there was no startup message")).await;
        None
    }

    /// Offers the version of the protocol that is spoken here.
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
            return Err(AnswerError::fatal("0A000", "there is no replication here"));
        }
        let user = parameter("user").ok_or_else(|| AnswerError::fatal("28000", "no user is named"))?;
        if server.attempts.have_failed(self.peer, user, Instant::now()) {
            server.metrics.failed_logins.add(1);
            return Err(too_many_failed());
        }
        let session = match self.scram(user).await {
            Ok(session) => session,
            // psql asks what is wanted, hangs up, and comes back with a password: no guess was made.
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
                    NoPlace::Full => "there are too many connections",
                    NoPlace::Share => "there are too many connections of this login",
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
        let accounts = engine.accounts().ok_or_else(|| AnswerError::fatal("28000", "nobody can log in"))?;
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
            // Nothing fits the verifier of nobody; that they are nobody is checked all the same.
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

    /// Says why there is no login.
    async fn end(mut self, failure: AnswerError) {
        if let AnswerError::Fatal(refusal) | AnswerError::Statement(refusal) = failure
            && self.wire.outgoing.put(&refusal.message("FATAL")).is_ok()
        {
            let _ = self.wire.outgoing.flush().await;
        }
        self.wire.outgoing.close().await;
    }
}

/// Leave to check a proof. Nothing is waited for from here to the end of the check, so others wait for that alone.
async fn attempt<'s>(server: &'s Server, peer: IpAddr, user: &str) -> Result<Attempt<'s>, AnswerError> {
    loop {
        // Asked for before it is looked, so that no end is missed.
        let ended = server.attempts.ended();
        match server.attempts.begin(peer, user, Instant::now()) {
            Attempted::Begun(attempt) => return Ok(attempt),
            Attempted::Later => ended.await,
            Attempted::Never => return Err(too_many_failed()),
        }
    }
}

/// A message of a client, unless others need its place.
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
            let refusal = ErrorMessage::new("53300", "there are too many connections that have not logged in");
            Err(AnswerError::Fatal(Box::new(refusal.hint("connect again, and log in at once"))))
        }
    }
}

fn too_many_failed() -> AnswerError {
    let refusal = ErrorMessage::new("28000", "too many failed logins").hint("try again in a minute");
    AnswerError::Fatal(Box::new(refusal))
}

/// The same whether the password is wrong or nobody has this name.
fn wrong_login(user: &str, problem: Option<LoginError>) -> AnswerError {
    match problem {
        Some(LoginError::Wrong) => {
            AnswerError::fatal("28P01", format!("password authentication failed for user \"{user}\""))
        }
        Some(problem) => AnswerError::fatal("28000", problem.to_string()),
        None => AnswerError::fatal("08P01", LoginError::Malformed.to_string()),
    }
}
