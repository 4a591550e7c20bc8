//! `cargo xtask test`: everything CI runs, quick steps first. Stops at the first step that fails, and names it.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::command::{built_from, cargo, metadata, root};
use crate::{citations, edges, licences, links, requirements, tools};

/// A step's name and what it does.
type Step = (&'static str, fn() -> Result<(), String>);

const STEPS: [Step; 10] = [
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
    ("clippy", || cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], &[])),
    ("tests", || cargo(&["test", "--workspace"], &[])),
    ("documentation", || cargo(&["doc", "--workspace", "--no-deps"], &[("RUSTDOCFLAGS", "-D warnings")])),
];

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
    Ok(complaints)
}

fn licence_complaints(metadata: &Value) -> Result<Vec<String>, String> {
    let path = root().join("deny.toml");
    let policy = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    licences::complaints(metadata, &policy)
}

fn complain(complaints: &[String]) -> Result<(), String> {
    if complaints.is_empty() { Ok(()) } else { Err(format!("\n  {}", complaints.join("\n  "))) }
}
