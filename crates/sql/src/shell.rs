//! The command `kohort-sql`: statements from files, the command line, a pipe or a person at a terminal.
//!
//! Data go to stdout, words to stderr. A panic ends the command with exit code 3 and shows where it happened, never
//! what it says, since that might hold a cell.
//!
//! | exit code | meaning |
//! | --- | --- |
//! | 0 | every statement was done |
//! | 1 | a requirement is not met or can't be reached; what is checked is not sound |
//! | 2 | wrong use or input |
//! | 3 | I/O, or a fault of ours |
//! | 130 | cancelled |

mod arguments;
mod editor;
mod output;
mod progress;
mod statement;
mod terminal;

use std::io::{IsTerminal, Read};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::Parser;
use kohort_store::StoreError;
use tokio::runtime::Runtime;
use tokio::sync::Mutex;

use crate::parser::{self, ParseError, STACK};
use crate::policy::ComplianceLog;
use crate::{Clock, Engine, Role, Session, SqlError, check_format};
use arguments::{Action, Arguments};
use editor::{Editor, Input};
use output::Format;

/// Why the command ends, or a statement is not done.
#[derive(Debug)]
struct ShellError {
    exit_code: u8,
    message: String,
    hint: Option<String>,
}

impl ShellError {
    const UNSOUND: u8 = 1;
    const INPUT: u8 = 2;
    const FAULT: u8 = 3;
    const CANCELLED: u8 = 130;

    fn fault(message: impl Into<String>) -> Self {
        ShellError { exit_code: ShellError::FAULT, message: message.into(), hint: None }
    }

    fn file(path: &Path, error: &std::io::Error) -> Self {
        let message = format!("{}: can't be read: {error}", path.display());
        ShellError { exit_code: ShellError::INPUT, message, hint: Some("check the path".to_owned()) }
    }

    fn log(path: &Path, error: &std::io::Error) -> Self {
        let message = format!("{}: can't be written: {error}", path.display());
        let hint = "without its log the command answers nothing: check the path given to --log".to_owned();
        ShellError { exit_code: ShellError::FAULT, message, hint: Some(hint) }
    }

    fn report(&self) {
        terminal::error(&self.message);
        if let Some(hint) = &self.hint {
            terminal::hint(hint);
        }
    }
}

impl From<SqlError> for ShellError {
    fn from(error: SqlError) -> Self {
        ShellError { exit_code: error.exit_code(), message: error.to_string(), hint: error.hint() }
    }
}

impl From<ParseError> for ShellError {
    fn from(problem: ParseError) -> Self {
        ShellError { exit_code: ShellError::INPUT, message: problem.to_string(), hint: problem.hint() }
    }
}

/// Runs the command with the process's arguments.
pub fn run() -> ExitCode {
    panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(|location| format!(" at {}:{}", location.file(), location.line()));
        terminal::error(&format!("kohort-sql failed{}", place.unwrap_or_default()));
        terminal::hint("this is a fault of kohort: please report the place it names");
    }));
    let arguments = Arguments::parse();
    let done = panic::catch_unwind(AssertUnwindSafe(|| match &arguments.action {
        Some(Action::Backup { folder, file }) => backup(folder, file),
        Some(Action::Check { folder }) => check(folder),
        None => Shell::start(&arguments)?.run(&arguments),
    }));
    match done {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => {
            failure.report();
            ExitCode::from(failure.exit_code)
        }
        Err(_) => ExitCode::from(ShellError::FAULT),
    }
}

/// Copies a data folder to a new file.
fn backup(folder: &Path, file: &Path) -> Result<(), ShellError> {
    kohort_store::backup_folder(folder, file).map_err(SqlError::Store)?;
    terminal::say(&format!("copied {} to {}\n", folder.display(), file.display()));
    Ok(())
}

/// Says whether a data folder, or a backup, is sound.
fn check(folder: &Path) -> Result<(), ShellError> {
    kohort_store::check_folder(folder).map_err(|error| {
        let is_unsound = matches!(error, StoreError::Corrupt { .. } | StoreError::Foreign { .. });
        let failure = ShellError::from(SqlError::Store(error));
        ShellError { exit_code: if is_unsound { ShellError::UNSOUND } else { failure.exit_code }, ..failure }
    })?;
    check_format(folder)?;
    terminal::say(&format!("{} is sound\n", folder.display()));
    Ok(())
}

struct Shell {
    runtime: Runtime,
    engine: Engine,
    format: Format,
    timing: Timing,
}

/// Whether it is said how long statements take.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Timing {
    Said,
    Unsaid,
}

impl Shell {
    fn start(arguments: &Arguments) -> Result<Self, ShellError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(STACK).build();
        let runtime = runtime.map_err(|error| ShellError::fault(format!("no threads: {error}")))?;
        let log = match &arguments.log {
            None => ComplianceLog::new(),
            Some(path) => ComplianceLog::with_file(path).map_err(|error| ShellError::log(path, &error))?,
        };
        let clock: Clock = Arc::new(chrono::Utc::now);
        let engine = match &arguments.data {
            Some(folder) => {
                runtime.block_on(progress::wait_for("opening the folder", Engine::open(folder, clock, log)))?
            }
            None => Engine::with_log(clock, log),
        };
        for lost in engine.take_lost() {
            terminal::warn(&format!("'{}' can't be used: {}", lost.name, lost.problem));
        }
        let timing = if arguments.timing { Timing::Said } else { Timing::Unsaid };
        Ok(Shell { runtime, engine, format: arguments.format(), timing })
    }

    fn run(&self, arguments: &Arguments) -> Result<(), ShellError> {
        let owner = self.session(Role::Owner);
        let done = self.run_all(&owner, arguments);
        if self.runtime.block_on(owner.lock()).is_in_transaction() {
            terminal::warn("a transaction was still under way: nothing of it is kept");
        }
        done
    }

    /// Runs files, what is given, and what comes by a pipe, or talks.
    fn run_all(&self, owner: &Arc<Mutex<Session>>, arguments: &Arguments) -> Result<(), ShellError> {
        for path in &arguments.file {
            let text = std::fs::read_to_string(path).map_err(|error| ShellError::file(path, &error))?;
            self.run_text(owner, &text).map_err(|failure| ShellError {
                message: format!("{}: {}", path.display(), failure.message),
                ..failure
            })?;
        }
        let asking = match arguments.role {
            arguments::RoleWord::Owner => Arc::clone(owner),
            arguments::RoleWord::Analyst => self.session(Role::Analyst),
        };
        for text in &arguments.command {
            self.run_text(&asking, text)?;
        }
        let is_done = !(arguments.file.is_empty() && arguments.command.is_empty());
        if is_done && !arguments.interactive {
            return Ok(());
        }
        if std::io::stdin().is_terminal() {
            return self.converse(&asking, arguments);
        }
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(|error| ShellError::file(Path::new("stdin"), &error))?;
        self.run_text(&asking, &text)
    }

    fn session(&self, role: Role) -> Arc<Mutex<Session>> {
        Arc::new(Mutex::new(self.engine.session(role)))
    }

    /// Runs all statements of a text, up to the first that fails. Nothing runs where one can't be parsed: reading the text
    /// is part of the first one's time.
    fn run_text(&self, session: &Arc<Mutex<Session>>, text: &str) -> Result<(), ShellError> {
        let mut start = Instant::now();
        let unread = |problem| self.runtime.block_on(session.lock()).unread(text, problem);
        for parsed in parser::parse(text).map_err(unread)? {
            let done = self.runtime.block_on(statement::run(session.clone(), parsed, self.format));
            if self.timing == Timing::Said {
                terminal::say(&format!("time: {:.6} s\n", start.elapsed().as_secs_f64()));
            }
            done?;
            start = Instant::now();
        }
        Ok(())
    }

    /// Talks to a person until they leave. What fails is said, and the talk goes on.
    fn converse(&self, session: &Arc<Mutex<Session>>, arguments: &Arguments) -> Result<(), ShellError> {
        let history = if arguments.no_history { None } else { editor::history_file() };
        let mut editor = Editor::start(history)?;
        terminal::say("kohort-sql. Statements end with ;  \\? helps, \\q leaves.\n");
        loop {
            let names = self.runtime.block_on(session.lock()).names();
            let done = match editor.read(names)? {
                Input::Nothing => Ok(()),
                Input::Leave => return Ok(()),
                Input::Help => {
                    terminal::say(editor::HELP);
                    Ok(())
                }
                Input::Describe => self.run_text(session, "SHOW TABLES; SHOW ANONYMIZATION_VIEWS; SHOW DGHS"),
                Input::Unknown(command) => Err(ShellError {
                    exit_code: ShellError::INPUT,
                    message: format!("there is no command {command}"),
                    hint: Some("\\? lists all".to_owned()),
                }),
                Input::Statements(text) => self.run_text(session, &text),
            };
            if let Err(failure) = done {
                failure.report();
            }
        }
    }
}
