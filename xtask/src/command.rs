//! Running cargo, the same one that runs this program, from the project's root.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// The folder of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this crate sits in a folder of the workspace")
}

/// Runs cargo with additional environment variables, its output shown as it comes.
pub(crate) fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    let shown = format!("cargo {}", arguments.join(" "));
    let status = cargo_command()
        .args(arguments)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("`{shown}` could not be started: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{shown}` failed ({status})")) }
}

/// What `cargo metadata` says about the workspace and everything it depends on.
pub(crate) fn metadata() -> Result<Value, String> {
    let output = cargo_command()
        .args(["metadata", "--format-version", "1"])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("`cargo metadata` could not be started: {error}"))?;
    if !output.status.success() {
        return Err(format!("`cargo metadata` failed ({})", output.status));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("`cargo metadata` printed no JSON: {error}"))
}

/// The names of all crates that these packages and their tests are built from. Only features that these packages need
/// count, while `cargo metadata` counts those of the whole workspace.
pub(crate) fn built_from<'a>(packages: impl Iterator<Item = &'a str>) -> Result<Vec<String>, String> {
    let selected: Vec<&str> = packages.flat_map(|package| ["--package", package]).collect();
    let lines = tree(&selected, "{p}")?;
    Ok(lines.iter().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect())
}

/// The outside crates that a selection of packages is built from, each with its version and features.
pub(crate) fn features(selection: &[&str]) -> Result<BTreeSet<String>, String> {
    // A crate of the workspace is shown with its folder.
    let is_outside = |line: &String| !line.contains(" (/");
    let lines = tree(selection, "{p} {f}")?;
    Ok(lines.into_iter().map(|line| line.trim_end_matches(" (*)").to_owned()).filter(is_outside).collect())
}

/// The lines of `cargo tree` for a selection of packages.
fn tree(selection: &[&str], format: &str) -> Result<Vec<String>, String> {
    let output = cargo_command()
        .args(["tree", "--prefix", "none", "--format", format])
        .args(selection)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("`cargo tree` could not be started: {error}"))?;
    if !output.status.success() {
        return Err(format!("`cargo tree` failed ({})", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

fn cargo_command() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    command.current_dir(root());
    command
}
