//! Programs as their users run them: each in its own process, with its own time and peak memory.
//!
//! The system keeps one account for all children of a process. So this program starts itself once more, and that
//! process has one child only: the program to measure.

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

/// What a program printed and what it cost, from its start to its end.
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

/// What the process in between does: runs the program, prints the account. What the program says goes to files, so that it
/// never waits for whoever reads it.
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

/// The `kohort-sql` command, built if it is an old one: it takes long, so only where it is asked for.
pub(crate) fn kohort_sql() -> Result<PathBuf, Box<dyn Error>> {
    build_engine()?;
    Ok(target_folder()?.join("release/kohort-sql"))
}

/// Builds everything that has the query engine at once: alone, each would build an engine of its own features.
fn build_engine() -> Result<(), Box<dyn Error>> {
    build("kohort-sql", &["--package", "kohort-server", "--bins", "--examples"])
}

/// Builds the `kohort` command, so that it is never an old one. Once before all benchmarks: what a table says of the
/// command and of the library is then about the same sources, even if those change while the benchmarks run.
pub(crate) fn build_kohort() -> Result<(), Box<dyn Error>> {
    build("kohort-cli", &[])
}

/// The `kohort-serve` command and what asks it.
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
