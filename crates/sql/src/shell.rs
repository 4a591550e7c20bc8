//! The command `kohort-sql`: runs statements from files, the command line, a pipe or a terminal.
//!
//! Data go to stdout, messages to stderr. A panic ends the command with exit code 3. Only its place in the code is
//! printed, because its message might contain a cell.
//!
//! | exit code | meaning |
//! | --- | --- |
//! | 0 | all statements succeeded |
//! | 1 | a requirement can't be met, or the checked folder is damaged |
//! | 2 | wrong arguments, statements or input |
//! | 3 | I/O error, or a bug in kohort |
//! | 130 | cancelled |

mod arguments;
mod editor;
mod failure;
mod output;
mod progress;
mod statement;
mod terminal;

use std::io::{ErrorKind, IsTerminal, Read, Write};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::Parser;
use kohort_store::StoreError;
use tokio::runtime::Runtime;
use tokio::sync::Mutex;

use crate::parser::{self, STACK};
use crate::policy::ComplianceLog;
use crate::{Clock, Engine, Role, Session, SqlError, check_format};
use arguments::{Action, Arguments};
use editor::{Editor, Input};
pub use failure::{CommandError, report_panics};
use output::Format;

/// Runs the command with the process's arguments.
pub fn run() -> ExitCode {
    report_panics("kohort-sql");
    let arguments = Arguments::parse();
    let done = panic::catch_unwind(AssertUnwindSafe(|| match &arguments.action {
        Some(Action::Backup { folder, file }) => backup(folder, file),
        Some(Action::Check { folder }) => check(folder),
        Some(Action::Completions { shell }) => print(&arguments::completions(*shell)),
        Some(Action::Man) => print(&arguments::man()),
        None => Shell::start(&arguments)?.run(&arguments),
    }));
    match done {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => {
            failure.report();
            ExitCode::from(failure.exit_code)
        }
        Err(_) => ExitCode::from(CommandError::FAULT),
    }
}

/// Writes to stdout. A closed pipe, as after `| head`, is not an error.
fn print(text: &[u8]) -> Result<(), CommandError> {
    match std::io::stdout().lock().write_all(text) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(CommandError::fault(format!("stdout can't be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// Copies a data folder to a new file.
fn backup(folder: &Path, file: &Path) -> Result<(), CommandError> {
    kohort_store::backup_folder(folder, file).map_err(SqlError::Store)?;
    terminal::say(&format!("copied {} to {}\n", folder.display(), file.display()));
    Ok(())
}

/// Checks a data folder or a backup for damage.
fn check(folder: &Path) -> Result<(), CommandError> {
    kohort_store::check_folder(folder).map_err(|error| {
        let is_unsound = matches!(error, StoreError::Corrupt { .. } | StoreError::Foreign { .. });
        let failure = CommandError::from(SqlError::Store(error));
        CommandError { exit_code: if is_unsound { CommandError::UNSOUND } else { failure.exit_code }, ..failure }
    })?;
    check_format(folder)?;
    terminal::say(&format!("{} is sound\n", folder.display()));
    Ok(())
}

fn unreadable(path: &Path, error: &std::io::Error) -> CommandError {
    let message = format!("{}: can't be read: {error}", path.display());
    CommandError::new(CommandError::INPUT, message).hint("check the path")
}

fn unwritable_log(path: &Path, error: &std::io::Error) -> CommandError {
    CommandError::fault(format!("{}: can't be written: {error}", path.display()))
        .hint("no statement is answered without a log entry: check the path given to --log")
}

struct Shell {
    runtime: Runtime,
    engine: Engine,
    format: Format,
    /// Whether to print how long statements take.
    is_timed: bool,
}

impl Shell {
    fn start(arguments: &Arguments) -> Result<Self, CommandError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(STACK).build();
        let runtime = runtime.map_err(|error| CommandError::fault(format!("can't start threads: {error}")))?;
        let log = match &arguments.log {
            None => ComplianceLog::new(),
            Some(path) => ComplianceLog::with_file(path).map_err(|error| unwritable_log(path, &error))?,
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
        Ok(Shell { runtime, engine, format: arguments.format(), is_timed: arguments.timing })
    }

    fn run(&self, arguments: &Arguments) -> Result<(), CommandError> {
        let owner = self.session(Role::Owner);
        let done = self.run_all(&owner, arguments);
        if self.runtime.block_on(owner.lock()).is_in_transaction() {
            terminal::warn("the open transaction was not committed, so its changes are lost");
        }
        done
    }

    /// Runs the files, then the statements of the command line, or those of a pipe or a terminal.
    fn run_all(&self, owner: &Arc<Mutex<Session>>, arguments: &Arguments) -> Result<(), CommandError> {
        for path in &arguments.file {
            let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
            self.run_text(owner, &text).map_err(|failure| CommandError {
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
        std::io::stdin().read_to_string(&mut text).map_err(|error| unreadable(Path::new("stdin"), &error))?;
        self.run_text(&asking, &text)
    }

    fn session(&self, role: Role) -> Arc<Mutex<Session>> {
        Arc::new(Mutex::new(self.engine.session(role)))
    }

    /// Runs all statements of a text, until one fails. If one can't be parsed, none runs. A failure names the line of
    /// its statement, unless there is only one. The time of the first statement includes parsing the text.
    fn run_text(&self, session: &Arc<Mutex<Session>>, text: &str) -> Result<(), CommandError> {
        let mut start = Instant::now();
        let unread = |problem| self.runtime.block_on(session.lock()).unread(text, problem);
        let statements = parser::parse(text).map_err(unread)?;
        let is_one = statements.len() == 1;
        for parsed in statements {
            let line = parsed.text.line;
            let done = self.runtime.block_on(statement::run(session.clone(), parsed, self.format));
            if self.is_timed {
                terminal::say(&format!("time: {:.6} s\n", start.elapsed().as_secs_f64()));
            }
            done.map_err(|failure| match is_one {
                true => failure,
                false => CommandError { message: format!("line {line}: {}", failure.message), ..failure },
            })?;
            start = Instant::now();
        }
        Ok(())
    }

    /// Reads statements from a terminal until the user leaves. After a failure, it reports the failure and continues.
    fn converse(&self, session: &Arc<Mutex<Session>>, arguments: &Arguments) -> Result<(), CommandError> {
        let history = if arguments.no_history { None } else { editor::history_file(|name| std::env::var_os(name)) };
        let mut editor = Editor::start(history)?;
        terminal::say("kohort-sql. End statements with ;  Type \\? for help, \\q to leave.\n");
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
                Input::Unknown(command) => {
                    let message = format!("there is no command {command}");
                    Err(CommandError::new(CommandError::INPUT, message).hint("\\? lists all commands"))
                }
                Input::Statements(text) => self.run_text(session, &text),
            };
            if let Err(failure) = done {
                failure.report();
            }
        }
    }
}
