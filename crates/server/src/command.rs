//! The command `kohort-serve`: reads a configuration, opens or creates tables and views, and serves them until it is
//! stopped.
//!
//! Messages go to stderr. For a panic only the place in the code is printed, because its message might contain a cell.
//!
//! | exit code | meaning |
//! | --- | --- |
//! | 0 | it was stopped |
//! | 1 | a requirement of a view can't be met |
//! | 2 | wrong arguments or input |
//! | 3 | I/O error, or a bug in kohort |

use std::fs::OpenOptions;
use std::io::{BufRead, ErrorKind, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use chrono::Utc;
use clap::{CommandFactory, Parser};
use clap_complete::Shell;
use clap_mangen::Man;
use futures::TryStreamExt;
use kohort_sql::access::{AccessError, Accounts, UNASKED};
use kohort_sql::parser::{Parsed, STACK, parse};
use kohort_sql::policy::ComplianceLog;
use kohort_sql::shell::{CommandError, report_panics};
use kohort_sql::store::StoreRecords;
use kohort_sql::worker::{self, WORKER, Workers};
use kohort_sql::{Clock, Engine, Outcome, Role, SqlError, check_format};
use tokio::net::TcpListener;

use crate::catalog::FUNCTIONS;
use crate::configuration::{Configuration, ConfigurationError};
use crate::mcp::{self, McpArguments};
use crate::server::Server;

const EXAMPLES: &str = "\
Examples:
  kohort-serve --data clinic/ --create-owner olga < password.txt      the first time
  kohort-serve --data clinic/ --config kohort-serve.toml
  kohort-serve --init setup.sql --create-owner olga                   without a data folder
  kohort-serve --config kohort-serve.toml --check-config
  kohort-serve --mcp postgres://agent@db.example:5433/kohort          views for an AI agent, over stdin and stdout
  kohort-serve --completions bash > ~/.local/share/bash-completion/completions/kohort-serve
  kohort-serve --man > ~/.local/share/man/man1/kohort-serve.1

Exit codes: 0 stopped, 1 a requirement can't be met, 2 wrong arguments or input, 3 I/O error or bug.";

/// The arguments of a server, which make no sense for a client.
const SERVING: [&str; 11] = [
    "config",
    "check_config",
    "data",
    "init",
    "create_owner",
    "listen",
    "tls_certificate",
    "tls_key",
    "require_tls",
    "metrics",
    "log",
];

/// The file of the store in a data folder.
const DATA_FILE: &str = "kohort.db";

/// Serves anonymization views to PostgreSQL clients.
#[derive(Parser)]
#[command(name = "kohort-serve", version, max_term_width = 100, after_help = EXAMPLES)]
struct Arguments {
    /// Read this configuration file; other arguments override it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Check the configuration and exit
    #[arg(long)]
    check_config: bool,
    /// Serve the tables, views, users and grants of this data folder; created if it does not exist
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// Run the statements of this file at the start, as the owner; can be repeated
    #[arg(long, value_name = "FILE")]
    init: Vec<PathBuf>,
    /// Create an owner of this name; the password is read from stdin
    #[arg(long, value_name = "NAME")]
    create_owner: Option<String>,
    /// Listen on this address [default: 127.0.0.1:5433]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// The server's TLS certificate, in PEM format
    #[arg(long, value_name = "FILE")]
    tls_certificate: Option<PathBuf>,
    /// The key of the certificate, in PEM format
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Refuse connections without TLS
    #[arg(long)]
    require_tls: bool,
    /// Serve /metrics for Prometheus on this loopback address
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
    /// Append the compliance log to this file: user, statement without values, and purpose, as one JSON object per
    /// statement
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Log in to a running server and let an AI agent read its views by the Model Context Protocol, over stdin and stdout
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = SERVING)]
    mcp: Option<String>,
    /// With --mcp: the purpose of all questions
    #[arg(long, value_name = "NAME", requires = "mcp")]
    purpose: Option<String>,
    /// With --mcp: the recipient of all answers
    #[arg(long, value_name = "NAME", requires = "mcp")]
    recipient: Option<String>,
    /// With --mcp: the authorities that may sign the server's certificate, in PEM format [default: the system's]
    #[arg(long, value_name = "FILE", requires = "mcp")]
    root_certificate: Option<PathBuf>,
    /// Print completions for this shell and exit
    #[arg(long, value_name = "SHELL", exclusive = true)]
    completions: Option<Shell>,
    /// Print the manual page and exit
    #[arg(long, exclusive = true)]
    man: bool,
}

/// The failure to use a file.
fn unusable(path: &Path, error: &std::io::Error) -> CommandError {
    CommandError::new(CommandError::INPUT, format!("{}: {error}", path.display()))
}

impl From<ConfigurationError> for CommandError {
    fn from(problem: ConfigurationError) -> CommandError {
        let hint = problem.hint().map(str::to_owned);
        CommandError { hint, ..CommandError::new(CommandError::INPUT, problem.to_string()) }
    }
}

/// Runs the command with the process's arguments.
pub fn run() -> ExitCode {
    report_panics("kohort-serve");
    if std::env::args_os().skip(1).eq([WORKER]) {
        return worker::run(FUNCTIONS);
    }
    let arguments = Arguments::parse();
    if let Some(text) = printed(&arguments) {
        return match std::io::stdout().lock().write_all(&text) {
            // The reader has closed the pipe, as after `| head`.
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                end(&CommandError::fault(format!("stdout can't be written: {error}")))
            }
            _ => ExitCode::SUCCESS,
        };
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(STACK).build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return end(&CommandError::fault(error.to_string())),
    };
    let done = match &arguments.mcp {
        None => runtime.block_on(serve(&arguments)),
        Some(location) => runtime.block_on(mcp::serve(McpArguments {
            location,
            root_certificate: arguments.root_certificate.clone(),
            purpose: arguments.purpose.as_deref(),
            recipient: arguments.recipient.as_deref(),
        })),
    };
    // Do not wait for statements that can't be stopped.
    runtime.shutdown_background();
    done.map_or_else(|failure| end(&failure), |()| ExitCode::SUCCESS)
}

/// The completions or the manual page, if the arguments ask for them.
fn printed(arguments: &Arguments) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    match arguments.completions {
        Some(shell) => clap_complete::generate(shell, &mut Arguments::command(), "kohort-serve", &mut text),
        None if arguments.man => {
            Man::new(Arguments::command()).render(&mut text).expect("writing to memory can't fail");
        }
        None => return None,
    }
    Some(text)
}

fn end(failure: &CommandError) -> ExitCode {
    failure.report();
    ExitCode::from(failure.exit_code)
}

async fn serve(arguments: &Arguments) -> Result<(), CommandError> {
    let configuration = configuration(arguments)?;
    let tls = configuration.check()?;
    if arguments.check_config {
        check_files(arguments, &configuration)?;
        eprintln!("the configuration is valid");
        return Ok(());
    }
    let log = match &configuration.log {
        Some(path) => ComplianceLog::with_file(path).map_err(|error| unusable(path, &error))?,
        None => ComplianceLog::new(),
    };
    let clock: Clock = Arc::new(Utc::now);
    let (engine, accounts) = match &configuration.data {
        None => (Engine::with_log(clock, log), Accounts::in_memory()?),
        Some(folder) => {
            eprintln!("opening {}", folder.display());
            let engine = Engine::open(folder, clock, log).await?;
            for lost in engine.take_lost() {
                eprintln!("warning: '{}' can't be used: {}", lost.name, lost.problem);
            }
            let records = engine.store().cloned().map(StoreRecords::new).expect("it was opened with a folder");
            (engine, Accounts::open(Box::new(records))?)
        }
    };
    if let Some(name) = &arguments.create_owner {
        accounts.create_user(name, Role::Owner, &password(name)?, UNASKED).map_err(|problem| match problem {
            AccessError::UserExists { .. } => {
                CommandError::from(problem).hint("leave out --create-owner, which is only for the first start")
            }
            _ => problem.into(),
        })?;
    }
    engine.keep_accounts(accounts);
    for path in &arguments.init {
        initialize(&engine, path).await?;
    }
    if !engine.accounts().is_some_and(Accounts::has_owner) {
        let hint = "create one with --create-owner NAME, and give the password on stdin";
        return Err(
            CommandError::new(CommandError::INPUT, "there is no owner, so nobody could change anything").hint(hint)
        );
    }
    let bind = |address: SocketAddr| async move {
        let bound = TcpListener::bind(address).await;
        bound.map_err(|error| CommandError::fault(format!("can't listen on {address}: {error}")))
    };
    let listener = bind(configuration.listen).await?;
    let address = listener.local_addr().unwrap_or(configuration.listen);
    let metrics_address = configuration.metrics;
    let workers = std::env::current_exe().and_then(|program| Workers::start(program, n_waiting()));
    let workers =
        workers.map_err(|error| CommandError::fault(format!("can't start a process for statements: {error}")))?;
    let server = Server::new(engine, configuration, tls, workers);
    let server = server.map_err(|error| CommandError::fault(format!("can't start threads: {error}")))?;
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

/// The number of idle worker processes: as many as can compute at the same time.
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

/// Reads the password from the first line of stdin. A terminal does not show it.
fn password(name: &str) -> Result<String, CommandError> {
    let unread =
        |error: std::io::Error| CommandError::new(CommandError::INPUT, format!("the password can't be read: {error}"));
    if std::io::stdin().is_terminal() {
        return rpassword::prompt_password(format!("Password of {name}: ")).map_err(unread);
    }
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(unread)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Checks that the named files can be used, without changing them.
fn check_files(arguments: &Arguments, configuration: &Configuration) -> Result<(), CommandError> {
    arguments.init.iter().try_for_each(|path| statements(path).map(drop))?;
    if let Some(log) = &configuration.log {
        check_log(log)?;
    }
    configuration.data.as_deref().map_or(Ok(()), check_data)
}

/// Checks that a log can be appended to or created.
fn check_log(path: &Path) -> Result<(), CommandError> {
    match OpenOptions::new().append(true).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => check_room_for(path),
        Err(error) => Err(unusable(path, &error)),
    }
}

/// Checks that a file could be created at this path.
fn check_room_for(path: &Path) -> Result<(), CommandError> {
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let tried = folder.join(format!(".kohort-serve-{}", std::process::id()));
    let made = OpenOptions::new().write(true).create_new(true).open(&tried);
    let removed = made.and_then(|_| std::fs::remove_file(&tried));
    removed.map_err(|error| unusable(folder, &error))
}

/// Checks that a data folder has a known format or can be created, without writing to its file.
fn check_data(folder: &Path) -> Result<(), CommandError> {
    match folder.read_dir() {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // Missing folders above it are created too, so check the first existing one.
            let is_there = |path: &&Path| path.parent().is_none_or(|above| above == Path::new("") || above.exists());
            return folder.ancestors().find(is_there).map_or(Ok(()), check_room_for);
        }
        Err(error) => return Err(unusable(folder, &error)),
    }
    let path = folder.join(DATA_FILE);
    match OpenOptions::new().read(true).write(true).open(&path) {
        Ok(_) => Ok(check_format(folder)?),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(unusable(&path, &error)),
    }
}

/// The statements of a file.
fn statements(path: &Path) -> Result<Vec<Parsed>, CommandError> {
    let text = std::fs::read_to_string(path).map_err(|error| unusable(path, &error))?;
    parse(&text).map_err(|problem| in_file(path, problem.into()))
}

fn in_file(path: &Path, error: SqlError) -> CommandError {
    let failure = CommandError::from(error);
    CommandError { message: format!("{}: {}", path.display(), failure.message), ..failure }
}

/// Runs the statements of a file as the owner.
async fn initialize(engine: &Engine, path: &Path) -> Result<(), CommandError> {
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

/// Waits for Ctrl-C or SIGTERM.
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
        // If no handler can be installed, wait for the other signal.
        Ok(()) = interrupted => {}
        () = terminated => {}
    }
}
