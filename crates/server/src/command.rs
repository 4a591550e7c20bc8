//! The command `kohort-serve`: reads a configuration, makes tables and views, and serves them until it is told to stop.
//!
//! Words go to stderr. A panic shows where it happened, never what it says, since that might hold a cell.
//!
//! | exit code | meaning |
//! | --- | --- |
//! | 0 | it was told to stop |
//! | 1 | a requirement of a view can't be reached |
//! | 2 | wrong use or input |
//! | 3 | I/O, or a fault of ours |

use std::fs::OpenOptions;
use std::io::{BufRead, ErrorKind, IsTerminal};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use chrono::Utc;
use clap::Parser;
use futures::TryStreamExt;
use kohort_sql::access::{AccessError, Accounts, UNASKED};
use kohort_sql::parser::{Parsed, STACK, parse};
use kohort_sql::policy::ComplianceLog;
use kohort_sql::store::StoreRecords;
use kohort_sql::worker::{self, WORKER, Workers};
use kohort_sql::{Clock, Engine, Outcome, Role, SqlError, check_format};
use tokio::net::TcpListener;

use crate::catalog::FUNCTIONS;
use crate::configuration::{Configuration, ConfigurationError};
use crate::server::Server;

const EXAMPLES: &str = "\
Examples:
  kohort-serve --data clinic/ --create-owner olga < password.txt      the first time
  kohort-serve --data clinic/ --config kohort-serve.toml
  kohort-serve --init setup.sql --create-owner olga                   nothing outlives it
  kohort-serve --config kohort-serve.toml --check-config

Exit codes: 0 stopped, 1 a requirement can't be reached, 2 wrong use or input, 3 I/O or a fault.";

/// The file of a data folder.
const DATA_FILE: &str = "kohort.db";

/// Serves anonymization views to PostgreSQL clients.
#[derive(Parser)]
#[command(name = "kohort-serve", version, max_term_width = 100, after_help = EXAMPLES)]
struct Arguments {
    /// Read this configuration; what is given besides goes before it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Say whether the configuration is right, and end
    #[arg(long)]
    check_config: bool,
    /// Serve the tables, views, users and grants of this data folder; it is made where there is none
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// Run the statements of this file at the start, as the owner; may be repeated
    #[arg(long, value_name = "FILE")]
    init: Vec<PathBuf>,
    /// Make an owner of this name, whose password is read from stdin
    #[arg(long, value_name = "NAME")]
    create_owner: Option<String>,
    /// Listen here [default: 127.0.0.1:5433]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// The certificate that clients see, PEM
    #[arg(long, value_name = "FILE")]
    tls_certificate: Option<PathBuf>,
    /// Its key, PEM
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Refuse whoever speaks no TLS
    #[arg(long)]
    require_tls: bool,
    /// Answer /metrics here, on a loopback address
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
    /// Append to this file who asked what under which purpose, one JSON object per statement, without values
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

/// Why the command ends.
#[derive(Debug)]
struct Ending {
    exit_code: u8,
    message: String,
    hint: Option<String>,
}

impl Ending {
    const INPUT: u8 = 2;
    const FAULT: u8 = 3;

    fn new(exit_code: u8, message: impl Into<String>) -> Ending {
        Ending { exit_code, message: message.into(), hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Ending {
        self.hint = Some(hint.into());
        self
    }

    fn file(path: &Path, error: &std::io::Error) -> Ending {
        Ending::new(Ending::INPUT, format!("{}: {error}", path.display()))
    }
}

impl From<ConfigurationError> for Ending {
    fn from(problem: ConfigurationError) -> Ending {
        Ending { exit_code: Ending::INPUT, message: problem.to_string(), hint: problem.hint().map(str::to_owned) }
    }
}

impl From<SqlError> for Ending {
    fn from(error: SqlError) -> Ending {
        Ending { exit_code: error.exit_code(), message: error.to_string(), hint: error.hint() }
    }
}

impl From<AccessError> for Ending {
    fn from(problem: AccessError) -> Ending {
        SqlError::from(problem).into()
    }
}

/// Runs the command with the process's arguments.
pub fn run() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(|location| format!(" at {}:{}", location.file(), location.line()));
        eprintln!("error: kohort-serve failed{}", place.unwrap_or_default());
        eprintln!("hint: this is a fault of kohort: please report the place it names");
    }));
    if std::env::args_os().skip(1).eq([WORKER]) {
        return worker::run(FUNCTIONS);
    }
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(STACK).build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return end(&Ending::new(Ending::FAULT, error.to_string())),
    };
    let done = runtime.block_on(serve(&arguments));
    // A statement that does not stop is not waited for.
    runtime.shutdown_background();
    done.map_or_else(|ending| end(&ending), |()| ExitCode::SUCCESS)
}

fn end(ending: &Ending) -> ExitCode {
    eprintln!("error: {}", ending.message);
    if let Some(hint) = &ending.hint {
        eprintln!("hint: {hint}");
    }
    ExitCode::from(ending.exit_code)
}

async fn serve(arguments: &Arguments) -> Result<(), Ending> {
    let configuration = configuration(arguments)?;
    let tls = configuration.check()?;
    if arguments.check_config {
        check_files(arguments, &configuration)?;
        eprintln!("the configuration is right");
        return Ok(());
    }
    let log = match &configuration.log {
        Some(path) => ComplianceLog::with_file(path).map_err(|error| Ending::file(path, &error))?,
        None => ComplianceLog::new(),
    };
    let clock: Clock = Arc::new(Utc::now);
    let (engine, accounts) = match &configuration.data {
        None => (Engine::with_log(clock, log), Accounts::in_memory()?),
        Some(folder) => {
            eprintln!("opening {}", folder.display());
            let engine = Engine::open(folder, clock, log).await?;
            for lost in engine.take_lost() {
                eprintln!("warning: {} is not there: {}", lost.name, lost.problem);
            }
            let records = engine.store().cloned().map(StoreRecords::new).expect("it was opened with a folder");
            (engine, Accounts::open(Box::new(records))?)
        }
    };
    if let Some(name) = &arguments.create_owner {
        accounts.create_user(name, Role::Owner, &password(name)?, UNASKED).map_err(|problem| match problem {
            AccessError::UserExists { .. } => {
                Ending::from(problem).hint("leave out --create-owner, which is for the first time")
            }
            _ => problem.into(),
        })?;
    }
    engine.keep_accounts(accounts);
    for path in &arguments.init {
        initialize(&engine, path).await?;
    }
    if !engine.accounts().is_some_and(Accounts::has_owner) {
        let hint = "make one with --create-owner olga, whose password is read from stdin";
        return Err(Ending::new(Ending::INPUT, "there is no owner, so nobody could change anything").hint(hint));
    }
    let bind = |address: SocketAddr| async move {
        let bound = TcpListener::bind(address).await;
        bound.map_err(|error| Ending::new(Ending::FAULT, format!("can't listen on {address}: {error}")))
    };
    let listener = bind(configuration.listen).await?;
    let address = listener.local_addr().unwrap_or(configuration.listen);
    let metrics_address = configuration.metrics;
    let workers = std::env::current_exe().and_then(|program| Workers::start(program, n_waiting()));
    let workers =
        workers.map_err(|error| Ending::new(Ending::FAULT, format!("no process for statements starts: {error}")))?;
    let server = Server::new(engine, configuration, tls, workers);
    let server = server.map_err(|error| Ending::new(Ending::FAULT, format!("no threads: {error}")))?;
    if let Some(address) = metrics_address {
        let listener = bind(address).await?;
        eprintln!("metrics on {}", listener.local_addr().unwrap_or(address));
        tokio::spawn(Arc::clone(server.metrics()).serve(listener));
    }
    eprintln!("listening on {address}");
    server.serve(listener, told_to_stop()).await;
    eprintln!("stopped");
    Ok(())
}

/// How many processes wait for a statement: as many as can start to compute at once.
fn n_waiting() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).max(2)
}

fn configuration(arguments: &Arguments) -> Result<Configuration, ConfigurationError> {
    let mut configuration = match &arguments.config {
        Some(path) => Configuration::read(path)?,
        None => Configuration::default(),
    };
    configuration.listen = arguments.listen.unwrap_or(configuration.listen);
    configuration.require_tls |= arguments.require_tls;
    configuration.metrics = arguments.metrics.or(configuration.metrics);
    for (given, own) in [
        (&arguments.tls_certificate, &mut configuration.tls_certificate),
        (&arguments.tls_key, &mut configuration.tls_key),
        (&arguments.log, &mut configuration.log),
        (&arguments.data, &mut configuration.data),
    ] {
        if given.is_some() {
            own.clone_from(given);
        }
    }
    Ok(configuration)
}

/// The first line of stdin, which a terminal does not show.
fn password(name: &str) -> Result<String, Ending> {
    let unread = |error: std::io::Error| Ending::new(Ending::INPUT, format!("the password can't be read: {error}"));
    if std::io::stdin().is_terminal() {
        return rpassword::prompt_password(format!("Password of {name}: ")).map_err(unread);
    }
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(unread)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Whether the files that are named can be used, without changing them.
fn check_files(arguments: &Arguments, configuration: &Configuration) -> Result<(), Ending> {
    arguments.init.iter().try_for_each(|path| statements(path).map(drop))?;
    if let Some(log) = &configuration.log {
        check_log(log)?;
    }
    configuration.data.as_deref().map_or(Ok(()), check_data)
}

/// Whether a log can be appended to, or made where there is none.
fn check_log(path: &Path) -> Result<(), Ending> {
    match OpenOptions::new().append(true).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => check_room_for(path),
        Err(error) => Err(Ending::file(path, &error)),
    }
}

/// Whether something could be made under a path, in the folder that it would be in.
fn check_room_for(path: &Path) -> Result<(), Ending> {
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let tried = folder.join(format!(".kohort-serve-{}", std::process::id()));
    let made = OpenOptions::new().write(true).create_new(true).open(&tried);
    let removed = made.and_then(|_| std::fs::remove_file(&tried));
    removed.map_err(|error| Ending::file(folder, &error))
}

/// Whether a data folder is one of a format that is known, or can be made. Nothing is written to its file.
fn check_data(folder: &Path) -> Result<(), Ending> {
    match folder.read_dir() {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // Folders above it are made with it.
            let is_there = |path: &&Path| path.parent().is_none_or(|above| above == Path::new("") || above.exists());
            return folder.ancestors().find(is_there).map_or(Ok(()), check_room_for);
        }
        Err(error) => return Err(Ending::file(folder, &error)),
    }
    let path = folder.join(DATA_FILE);
    match OpenOptions::new().read(true).write(true).open(&path) {
        Ok(_) => Ok(check_format(folder)?),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Ending::file(&path, &error)),
    }
}

/// The statements of a file.
fn statements(path: &Path) -> Result<Vec<Parsed>, Ending> {
    let text = std::fs::read_to_string(path).map_err(|error| Ending::file(path, &error))?;
    parse(&text).map_err(|problem| in_file(path, problem.into()))
}

fn in_file(path: &Path, error: SqlError) -> Ending {
    let ending = Ending::from(error);
    Ending { message: format!("{}: {}", path.display(), ending.message), ..ending }
}

/// Runs the statements of a file as the owner.
async fn initialize(engine: &Engine, path: &Path) -> Result<(), Ending> {
    let mut owner = engine.session(Role::Owner);
    for parsed in statements(path)? {
        match owner.run(parsed).await.map_err(|error| in_file(path, error))? {
            Outcome::Done(message) => eprintln!("{message}"),
            Outcome::Rows(stream) => {
                let read = stream.try_for_each(|_| async { Ok(()) }).await;
                read.map_err(|error| in_file(path, SqlError::while_running(error)))?;
            }
        }
    }
    Ok(())
}

/// Ends at Ctrl-C and SIGTERM.
async fn told_to_stop() {
    let interrupted = tokio::signal::ctrl_c();
    #[cfg(unix)]
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminated = std::future::pending::<()>();
    tokio::select! {
        // Without a handler it goes on until it is terminated otherwise.
        Ok(()) = interrupted => {}
        () = terminated => {}
    }
}
