//! `cargo xtask test`: everything CI runs, quick steps first. Stops at the first step that fails, and names it.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::command::{built_from, cargo, features, metadata, root};
use crate::compile::{SEED, cargo_with_lints};
use crate::{citations, edges, licences, links, package, python, requirements, tools};

/// A step's name and what it does.
type Step = (&'static str, fn() -> Result<(), String>);

const STEPS: [Step; 12] = [
    ("format", || {
        cargo(&["fmt", "--all", "--check"], &[])?;
        cargo(&["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"], &[])
    }),
    ("crate edges", || complain(&edge_complaints()?)),
    ("licences and sources", || complain(&licence_complaints(&metadata()?)?)),
    ("links", || complain(&links::complaints(root())?)),
    ("citations", || complain(&citations::complaints(root())?)),
    ("requirements", || complain(&requirements::complaints(root())?)),
    ("tools", tools::install),
    ("build, lint, document", || cargo_with_lints(&["test", "--workspace", "--no-run"], &[])),
    ("tests", || cargo_with_lints(&["test", "--workspace"], &[])),
    ("examples", run_examples),
    ("package", package::check),
    ("python", python::test),
];

/// Runs the library's examples, which `cargo test` has built. `cargo run` would build their dependencies anew, with the
/// features of one package instead of those of the workspace.
fn run_examples() -> Result<(), String> {
    let built = metadata()?["target_directory"].as_str().map(PathBuf::from).unwrap_or_default().join("debug/examples");
    let folder = root().join("crates/kohort/examples");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path().file_stem()?.to_os_string())).collect();
    names.sort();
    for name in names {
        println!("{}", name.to_string_lossy());
        let program = built.join(name).with_extension(std::env::consts::EXE_EXTENSION);
        let status = Command::new(&program).status().map_err(|error| format!("{}: {error}", program.display()))?;
        if !status.success() {
            return Err(format!("{} failed", program.display()));
        }
    }
    Ok(())
}

/// The package of a crate that is named with or without `kohort-`.
pub(crate) fn package(name: &str) -> Result<&'static str, String> {
    let is_meant = |package: &&str| *package == name || package.strip_prefix("kohort-") == Some(name);
    edges::packages().find(is_meant).ok_or_else(|| {
        let known: Vec<&str> = edges::packages().collect();
        format!("there is no crate '{name}'\nhint: the crates are {}; `kohort-` may be left out", known.join(", "))
    })
}

/// Builds, lints, documents and tests one crate. The other arguments are passed to `cargo test`.
pub(crate) fn run_crate(name: &str, rest: &[&str]) -> Result<(), String> {
    match package(name)? {
        // Its tests are in Python.
        "kohort-python" => python::test(),
        package => cargo_with_cases(&[&["test", "--package", package], rest].concat()),
    }
}

/// How many cases a random test draws while somebody works on a crate, if the test says nothing else. The whole test run draws 256.
const FEW_CASES: &str = "64";

/// Runs cargo with lints, and tests with fewer random cases than the whole test run unless the environment says how many.
fn cargo_with_cases(arguments: &[&str]) -> Result<(), String> {
    const CASES: &str = "PROPTEST_CASES";
    if std::env::var_os(CASES).is_some() {
        return cargo_with_lints(arguments, &[]);
    }
    println!("random tests draw a quarter of the cases that `cargo xtask test` draws; {CASES}=256 draws all");
    cargo_with_lints(arguments, &[(CASES, FEW_CASES)])
}

/// Like [`run_crate`] for a package, with a seed for random tests.
pub(crate) fn run_with_seed(package: &str, rest: &[&str], seed: &str) -> Result<(), String> {
    cargo_with_lints(&[&["test", "--package", package], rest].concat(), &[(SEED, seed)])
}

/// Runs every step and prints how long each took.
pub(crate) fn run() -> Result<(), String> {
    let mut times: Vec<(&str, Duration)> = Vec::new();
    for (name, step) in STEPS {
        println!("==> {name}");
        let start = Instant::now();
        let outcome = step();
        times.push((name, start.elapsed()));
        if let Err(message) = outcome {
            print_times(&times);
            return Err(format!("step '{name}' failed: {message}"));
        }
    }
    print_times(&times);
    println!("All {} steps passed.", STEPS.len());
    Ok(())
}

fn print_times(times: &[(&str, Duration)]) {
    println!();
    for (name, time) in times {
        println!("{name:<22} {:>7.1} s", time.as_secs_f64());
    }
}

fn edge_complaints() -> Result<Vec<String>, String> {
    let mut complaints = edges::complaints(&metadata()?);
    complaints.extend(edges::engine_complaints(&built_from(edges::without_engine())?));
    complaints.extend(feature_complaints()?);
    Ok(complaints)
}

/// Crates whose features differ between a build of `kohort-sql` alone and a build of the whole workspace. With such a
/// difference the SQL shell would lack functions that the server has, and testing that one crate would build the query
/// engine anew.
fn feature_complaints() -> Result<Vec<String>, String> {
    let of_workspace = features(&["--workspace"])?;
    let of_shell = features(&["--package", "kohort-sql"])?;
    Ok(of_shell
        .difference(&of_workspace)
        .map(|built| {
            format!("'{built}' has other features in the workspace than for kohort-sql alone: add them to Cargo.toml")
        })
        .collect())
}

fn licence_complaints(metadata: &Value) -> Result<Vec<String>, String> {
    let path = root().join("deny.toml");
    let policy = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    licences::complaints(metadata, &policy)
}

fn complain(complaints: &[String]) -> Result<(), String> {
    if complaints.is_empty() { Ok(()) } else { Err(format!("\n  {}", complaints.join("\n  "))) }
}
