//! One file per command, each from its arguments to what it prints.

pub(crate) mod anonymize;
pub(crate) mod audit;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod estimate;
pub(crate) mod explain;
pub(crate) mod external;
pub(crate) mod hierarchy;
pub(crate) mod init;
pub(crate) mod schema;
pub(crate) mod verify;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Command};
use crate::failure::{Failure, Report, Status};

/// Runs what the command line asks for.
pub(crate) fn run() -> ExitCode {
    let arguments = Arguments::parse();
    let (outcome, output) = match &arguments.command {
        Command::Anonymize(command) => (command.run().map(|()| Verdict::Done), command.output()),
        Command::Check(command) => (command.run(), command.output()),
        Command::Audit(command) => (command.run(), command.output()),
        Command::Verify(command) => (command.run(), command.output()),
        Command::Estimate(command) => (command.run().map(|()| Verdict::Done), command.output()),
        Command::Hierarchy(command) => (command.run().map(|()| Verdict::Done), Output::Words),
        Command::Init(command) => (command.run().map(|()| Verdict::Done), Output::Words),
        Command::Schema(command) => (command.run().map(|()| Verdict::Done), Output::Words),
        Command::Explain(command) => (command.run().map(|()| Verdict::Done), Output::Words),
        Command::Completions(command) => (command.run().map(|()| Verdict::Done), Output::Words),
        Command::Sql(command) => return command.run("kohort-sql"),
        Command::Serve(command) => return command.run("kohort-serve"),
    };
    match outcome {
        Ok(Verdict::Done) => ExitCode::SUCCESS,
        // Results are on stdout already; why they are not good enough is said to people.
        Ok(Verdict::NotMet(reports)) => Failure::new(Status::NotMet, reports).report(Output::Words),
        Err(failure) => failure.report(output),
    }
}

/// How a command that has printed its results ends.
pub(crate) enum Verdict {
    /// As asked.
    Done,
    /// What was counted does not meet what was asked.
    NotMet(Vec<Report>),
}

/// For whom a command writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// People.
    Words,
    /// Programs: one JSON object on stdout, whatever happens.
    Json,
}

impl Output {
    fn from_flag(json: bool) -> Self {
        if json { Output::Json } else { Output::Words }
    }
}

/// Limits the threads of everything that follows.
fn use_threads(threads: Option<usize>) -> Result<(), Failure> {
    let Some(n_threads) = threads else { return Ok(()) };
    if n_threads == 0 {
        return Err(Failure::input("--threads 0: nothing runs without a thread", "leave it out for all cores"));
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(n_threads)
        .build_global()
        .map_err(|error| Failure::new(Status::Fault, vec![Report::new(format!("threads can't be started: {error}"))]))
}
