//! `kohort-serve --mcp`: anonymization views for AI agents, by the Model Context Protocol over stdin and stdout.
//!
//! ```text
//! agent's host --JSON lines--> conversation --tools--> database --PostgreSQL's protocol--> a running kohort-serve
//! ```
//!
//! The process is a client of a server like psql: it has the address, the login and the password of an analyst, and no data. So an
//! agent gets what that login gets over PostgreSQL's protocol, under the purposes granted to it, with the same limits, and the log
//! has the same entries. The program that starts this process runs on the agent's side, where no private table may be.
//!
//! # Deviations
//! The protocol is small, so it is spoken without a library for it: three methods, `ping` and two notifications.

mod conversation;
mod database;
mod message;
mod tools;

use std::io::{BufRead, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use kohort_sql::postgres::{PostgresError, ServerAddress};
use kohort_sql::shell::CommandError;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use conversation::Conversation;
use database::{Database, DatabaseError};

/// The longest message of a client in bytes.
const LONGEST_LINE: u64 = 1 << 20;

/// How the server is reached, as arguments say it.
pub(crate) struct McpArguments<'a> {
    pub(crate) location: &'a str,
    pub(crate) root_certificate: Option<PathBuf>,
    pub(crate) purpose: Option<&'a str>,
    pub(crate) recipient: Option<&'a str>,
}

/// Speaks with the agent's host until it closes stdin.
pub(crate) async fn serve(arguments: McpArguments<'_>) -> Result<(), CommandError> {
    let McpArguments { location, root_certificate, purpose, recipient } = arguments;
    let address = ServerAddress::parse(location, root_certificate).map_err(|problem| not_reached(&problem))?;
    let stated = [("kohort.purpose", purpose), ("kohort.recipient", recipient)];
    let stated = stated.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let database = Database::connect(address.with_settings("kohort-mcp", stated)).await.map_err(refused)?;
    eprintln!("answering on stdin and stdout as {}", database.user());
    let (heard, (says, written)) = (listen(), speak());
    Conversation::new(Arc::new(database), says).run(heard).await;
    // The last answers must be written before the process ends.
    let written = tokio::task::spawn_blocking(move || written.join()).await;
    written.map_or_else(|_| Err(CommandError::fault("a thread of kohort failed")), |_| Ok(()))
}

/// The failure to reach the server, in the words of this command.
fn not_reached(problem: &PostgresError) -> CommandError {
    let password = "put the password into PGPASSWORD or ~/.pgpass";
    let (message, hint) = match problem {
        PostgresError::Location { fault } => {
            (format!("the address {fault}"), Some("write postgres://agent@host:5433/kohort"))
        }
        PostgresError::PasswordInLocation => {
            ("the address must not contain a password, because other programs see it".to_owned(), Some(password))
        }
        PostgresError::NoPassword { .. } => (problem.to_string(), Some(password)),
        PostgresError::Untrusted { .. } => {
            (problem.to_string(), Some("name the authority that signed it: --root-certificate FILE"))
        }
        _ => (problem.to_string(), problem.hint()),
    };
    CommandError { hint: hint.map(str::to_owned), ..CommandError::new(CommandError::INPUT, message) }
}

fn refused(problem: DatabaseError) -> CommandError {
    match problem {
        DatabaseError::Server(problem) => not_reached(&problem),
        other => CommandError { hint: other.hint(), ..CommandError::new(CommandError::INPUT, other.to_string()) },
    }
}

/// A line of the client, or why it can't be taken.
enum Heard {
    Line(String),
    TooLong,
}

/// Reads lines on a thread of its own, because reading stdin blocks.
fn listen() -> UnboundedReceiver<Heard> {
    let (hears, heard) = unbounded_channel();
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let Ok(n_bytes) = (&mut stdin).take(LONGEST_LINE + 1).read_until(b'\n', &mut line) else { return };
            if n_bytes == 0 {
                return;
            }
            let is_too_long = n_bytes as u64 > LONGEST_LINE;
            let line =
                if is_too_long { Heard::TooLong } else { Heard::Line(String::from_utf8_lossy(&line).into_owned()) };
            if hears.send(line).is_err() || is_too_long {
                return;
            }
        }
    });
    heard
}

/// Writes lines on a thread of its own, which ends when there are no more.
fn speak() -> (UnboundedSender<String>, JoinHandle<()>) {
    let (says, mut said) = unbounded_channel::<String>();
    let written = std::thread::spawn(move || {
        let mut stdout = std::io::stdout().lock();
        while let Some(line) = said.blocking_recv() {
            if writeln!(stdout, "{line}").and_then(|()| stdout.flush()).is_err() {
                return;
            }
        }
    });
    (says, written)
}
