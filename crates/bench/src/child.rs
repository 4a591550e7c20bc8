//! Programs as their users run them: each in its own process, with its own time and peak memory.
//!
//! The system adds up the costs of all children of a process. So this program starts itself once more, and that process
//! has a single child: the program to measure.

use std::error::Error;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::measure::{Cost, of_children};

/// The hidden argument that makes this program measure one other.
pub(crate) const MEASURE: &str = "measure-child";

/// What a program printed, and its cost from start to end.
pub(crate) struct Run {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) cost: Cost,
    pub(crate) peak_memory: u64,
}

#[derive(Serialize, Deserialize)]
struct Account {
    wall: Duration,
    cpu: Duration,
    peak_memory: u64,
    is_success: bool,
    stdout: String,
    stderr: String,
}

/// Runs a program to its end.
pub(crate) fn run<S: AsRef<OsStr>>(program: &Path, arguments: &[S]) -> Result<Run, Box<dyn Error>> {
    let shown = program.display();
    let output = Command::new(std::env::current_exe()?)
        .arg(MEASURE)
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("{shown} could not be measured").into());
    }
    let account: Account = serde_json::from_slice(&output.stdout)?;
    if !account.is_success {
        return Err(format!("{shown} failed: {}", account.stderr).into());
    }
    let cost = Cost { wall: account.wall, cpu: account.cpu };
    Ok(Run { stdout: account.stdout, stderr: account.stderr, cost, peak_memory: account.peak_memory })
}

/// The process in between: it runs the program and prints its cost. The program's output goes to files, so that it
/// never waits for a reader.
pub(crate) fn measure(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [program, arguments @ ..] = arguments else { return Err("there is no program to measure".into()) };
    let (mut stdout, mut stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
    let start = Instant::now();
    let status = command.status()?;
    let wall = start.elapsed();
    let (cpu, peak_memory) = of_children();
    let (stdout, stderr) = (said(&mut stdout)?, said(&mut stderr)?);
    let account = Account { wall, cpu, peak_memory, is_success: status.success(), stdout, stderr };
    println!("{}", serde_json::to_string(&account)?);
    Ok(())
}

fn said(file: &mut File) -> Result<String, Box<dyn Error>> {
    let mut text = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut text)?;
    Ok(String::from_utf8(text)?)
}

/// A path as an argument.
pub(crate) fn path(path: &Path) -> Result<&str, String> {
    path.to_str().ok_or_else(|| format!("{} is not UTF-8", path.display()))
}

/// The folder cargo builds into.
pub(crate) fn target_folder() -> Result<PathBuf, Box<dyn Error>> {
    let this = std::env::current_exe()?;
    Ok(this.ancestors().nth(2).ok_or("this program was not built by cargo")?.to_owned())
}

/// The `kohort` command.
pub(crate) fn kohort() -> Result<PathBuf, Box<dyn Error>> {
    Ok(target_folder()?.join("release/kohort"))
}

/// The `kohort-sql` command, built if it is out of date. Building takes long, so only benchmarks that need it call
/// this.
pub(crate) fn kohort_sql() -> Result<PathBuf, Box<dyn Error>> {
    build_engine()?;
    Ok(target_folder()?.join("release/kohort-sql"))
}

/// Builds all programs that contain the query engine together. Built one by one, each would build the engine again with
/// other features.
fn build_engine() -> Result<(), Box<dyn Error>> {
    build("kohort-sql", &["--package", "kohort-server", "--bins", "--examples"])
}

/// Builds the `kohort` command, so that it is never out of date. This happens once, before all benchmarks: the command
/// and the library are then built from the same sources, even if somebody changes the sources while benchmarks run.
pub(crate) fn build_kohort() -> Result<(), Box<dyn Error>> {
    build("kohort-cli", &[])
}

/// The `kohort-serve` command, and the program that sends it queries.
pub(crate) fn kohort_serve() -> Result<(PathBuf, PathBuf), Box<dyn Error>> {
    build_engine()?;
    let release = target_folder()?.join("release");
    Ok((release.join("kohort-serve"), release.join("examples/load")))
}

fn build(package: &str, what: &[&str]) -> Result<(), Box<dyn Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--release", "--package", package])
        .args(what)
        .arg("--target-dir")
        .arg(target_folder()?)
        .current_dir(crate::root())
        .status()?;
    if status.success() { Ok(()) } else { Err(format!("`cargo build --release --package {package}` failed").into()) }
}
