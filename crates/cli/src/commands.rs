//! The commands, one file each. A command turns its arguments into calls of the library, and prints the result.

pub(crate) mod anonymize;
pub(crate) mod apply;
pub(crate) mod audit;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod estimate;
pub(crate) mod explain;
pub(crate) mod explore;
pub(crate) mod external;
pub(crate) mod hierarchy;
pub(crate) mod init;
pub(crate) mod man;
pub(crate) mod report;
pub(crate) mod schema;
pub(crate) mod verify;

use std::process::ExitCode;

use clap::{Args, Parser};

use crate::arguments::{Arguments, Command};
use crate::failure::{Failure, Report, Status};

/// Runs the command of the command line.
pub(crate) fn run() -> ExitCode {
    let arguments = Arguments::parse();
    let (outcome, output) = match &arguments.command {
        Command::Anonymize(command) => (command.run().map(|()| Verdict::Done), command.output()),
        Command::Apply(command) => (command.run().map(|()| Verdict::Done), command.output()),
        Command::Check(command) => (command.run(), command.counting.output()),
        Command::Audit(command) => (command.run(), command.counting.output()),
        Command::Verify(command) => (command.run(), command.counting.output()),
        Command::Report(command) => (command.run().map(|()| Verdict::Done), command.output()),
        Command::Explore(command) => (command.run(), command.counting.output()),
        Command::Estimate(command) => (command.run().map(|()| Verdict::Done), command.output()),
        Command::Hierarchy(command) => (command.run().map(|()| Verdict::Done), Output::Words),
        Command::Init(command) => (command.run().map(|()| Verdict::Done), Output::Words),
        Command::Schema(command) => (command.run().map(|()| Verdict::Done), Output::Words),
        Command::Explain(command) => (command.run().map(|()| Verdict::Done), Output::Words),
        Command::Completions(command) => (command.run().map(|()| Verdict::Done), Output::Words),
        Command::Man(command) => (command.run().map(|()| Verdict::Done), Output::Words),
        Command::Sql(command) => return command.run("kohort-sql"),
        Command::Serve(command) => return command.run("kohort-serve"),
    };
    match outcome {
        Ok(Verdict::Done) => ExitCode::SUCCESS,
        // The results are on stdout already. The reasons why they are not good enough go to people on stderr.
        Ok(Verdict::NotMet(reports)) => Failure::new(Status::NotMet, reports).report(Output::Words),
        Err(failure) => failure.report(output),
    }
}

/// How a command that has printed its results ends.
pub(crate) enum Verdict {
    /// Everything is as it was asked for.
    Done,
    /// The counts do not meet the requirement.
    NotMet(Vec<Report>),
}

impl Verdict {
    /// The verdict, given the requirements that are not met.
    fn of(unmet: Vec<Report>) -> Self {
        if unmet.is_empty() { Verdict::Done } else { Verdict::NotMet(unmet) }
    }
}

/// Flags of commands that count and print what they counted.
#[derive(Args)]
pub(crate) struct Counting {
    /// How many threads to use; all cores without it
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Counting {
    /// Sets the number of threads, which must happen before any work.
    fn begin(&self) -> Result<(), Failure> {
        use_threads(self.threads)
    }

    fn output(&self) -> Output {
        Output::from_flag(self.json)
    }
}

/// Whether a command writes for people or for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// For people.
    Words,
    /// For programs, which get one JSON object on stdout, also after an error.
    Json,
}

impl Output {
    fn from_flag(json: bool) -> Self {
        if json { Output::Json } else { Output::Words }
    }
}

/// A number of bytes such as 500MB or 2GB. Without a unit it is in bytes.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim().trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit: u64 = match text.trim()[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        "T" | "TB" | "TIB" => 1 << 40,
        _ => return Err("no such unit: write MB or GB".to_owned()),
    };
    let number: f64 =
        digits.trim().parse().map_err(|_| "no size: write a number and a unit, such as 2GB".to_owned())?;
    let n_bytes = number * unit as f64;
    if (1.0..=u64::MAX as f64).contains(&n_bytes) { Ok(n_bytes as u64) } else { Err("no size of memory".to_owned()) }
}

/// The variable that says how much memory the machine has.
const MACHINE_MEMORY: &str = "KOHORT_MEMORY";

/// How much memory the machine has, if anything tells.
fn machine_memory() -> Result<Option<u64>, Failure> {
    let Some(said) = std::env::var_os(MACHINE_MEMORY) else { return Ok(kohort::machine_memory()) };
    let read = said.to_str().ok_or_else(|| "no size of memory".to_owned()).and_then(size);
    read.map(Some).map_err(|why| Failure::input(format!("{MACHINE_MEMORY}: {why}"), "write a size such as 8GB"))
}

/// Limits the number of threads of all work from here on.
fn use_threads(threads: Option<usize>) -> Result<(), Failure> {
    let Some(n_threads) = threads else { return Ok(()) };
    if n_threads == 0 {
        return Err(Failure::input(
            "--threads 0: at least one thread is needed",
            "leave --threads out to use all cores",
        ));
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(n_threads)
        .build_global()
        .map_err(|error| Failure::new(Status::Fault, vec![Report::new(format!("threads can't be started: {error}"))]))
}
