//! `cargo xtask fuzz`: runs the targets of `fuzz/` one after another, and prints what each found.
//!
//! Minutes are those of a processor, because a busy machine would otherwise make a run look longer than it was.
//! No crate under test has `unsafe` code, so there is no sanitizer, and the targets build with a stable compiler.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use crate::command::root;

/// Every target, and the feature it needs. Those of the query engine take long to build, so they come last.
const TARGETS: [(&str, &str); 9] = [
    ("csv", ""),
    ("hierarchy", ""),
    ("manifest", ""),
    ("spec", ""),
    ("stored", ""),
    ("p3p", QUERY_ENGINE),
    ("records", QUERY_ENGINE),
    ("sql", QUERY_ENGINE),
    ("wire", QUERY_ENGINE),
];
const QUERY_ENGINE: &str = "query-engine";

/// What a run of a target found.
struct Outcome {
    target: &'static str,
    line: String,
    is_sound: bool,
}

/// Runs the targets named, or all, for this many minutes each. Fails if one found something.
pub(crate) fn run(minutes: &str, names: &[&str]) -> Result<(), String> {
    let minutes: u64 = minutes.parse().map_err(|_| format!("'{minutes}' is not a whole number of minutes"))?;
    if let Some(unknown) = names.iter().find(|name| TARGETS.iter().all(|(target, _)| target != *name)) {
        let known: Vec<&str> = TARGETS.iter().map(|(target, _)| *target).collect();
        return Err(format!("no such target: {unknown}\nhint: the targets are {}", known.join(", ")));
    }
    let is_there =
        Command::new("cargo").args(["fuzz", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !is_there.is_ok_and(|status| status.success()) {
        return Err("cargo-fuzz is missing\nhint: cargo install cargo-fuzz --locked".to_owned());
    }
    let mut outcomes = Vec::new();
    for (target, feature) in TARGETS.into_iter().filter(|(target, _)| names.is_empty() || names.contains(target)) {
        println!("==> {target}");
        outcomes.push(run_target(target, feature, minutes)?);
    }
    println!();
    for outcome in &outcomes {
        println!("{:<10} {}", outcome.target, outcome.line);
    }
    match outcomes.iter().filter(|outcome| !outcome.is_sound).count() {
        0 => Ok(()),
        n => Err(format!(
            "{n} targets found something\nhint: the output above names the inputs; add them to fuzz/corpus"
        )),
    }
}

/// Builds a target and runs it until it has used the minutes. Inputs it learns from are kept in the build folder, from which the
/// next run goes on; those in `fuzz/corpus` are read only.
fn run_target(target: &'static str, feature: &str, minutes: u64) -> Result<Outcome, String> {
    let build = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from).join("fuzz");
    let learned = build.join("corpus").join(target);
    std::fs::create_dir_all(&learned).map_err(|error| format!("{}: {error}", learned.display()))?;
    let built = cargo_fuzz("build", target, feature, &build, &[])?;
    if !built.status.success() {
        eprint!("{}", String::from_utf8_lossy(&built.stderr));
        return Ok(Outcome { target, line: "it was not built".to_owned(), is_sound: false });
    }
    let known = root().join("fuzz/corpus").join(target);
    let asked = Duration::from_secs(minutes * 60);
    let mut run = Run::default();
    // libFuzzer ends by the clock, so it runs again for as long as minutes are left.
    while run.is_sound() && run.used < asked {
        let left = (asked - run.used).as_secs().max(1);
        let time = format!("-max_total_time={left}");
        let rest =
            [&learned.display().to_string(), &known.display().to_string(), "--", "-timeout=60", STATISTICS, &time];
        let before = used_by_children()?;
        let output = cargo_fuzz("run", target, feature, &build, &rest)?;
        run.add(&String::from_utf8_lossy(&output.stderr), output.status.success(), used_by_children()? - before);
    }
    Ok(Outcome { target, line: run.summary(), is_sound: run.is_sound() })
}

/// Makes libFuzzer print how many inputs it ran.
const STATISTICS: &str = "-print_final_stats=1";

fn cargo_fuzz(verb: &str, target: &str, feature: &str, build: &Path, rest: &[&str]) -> Result<Output, String> {
    Command::new("cargo")
        .current_dir(root())
        .args(["fuzz", verb, "--sanitizer", "none", "--codegen-units", "16", "--features", feature, "--target-dir"])
        .arg(build)
        .arg(target)
        .args(rest)
        // Inputs are so small that several threads would only wait for each other.
        .env("RAYON_NUM_THREADS", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::inherit())
        .stderr(Stdio::piped())
        .output()
        .map_err(|error| format!("`cargo fuzz` could not be started: {error}"))
}

/// The processor time of all processes that this one has started and that have ended.
fn used_by_children() -> Result<Duration, String> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| format!("getrusage: {error}"))?;
    let microseconds = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Duration::from_micros(microseconds.unsigned_abs()))
}

/// What the runs of one target printed, one after another.
#[derive(Default)]
struct Run {
    used: Duration,
    n_inputs: u64,
    /// Edges covered by the last run, whose inputs include those that the runs before it learned.
    edges: String,
    /// What ended the last run.
    found: Option<String>,
}

impl Run {
    fn is_sound(&self) -> bool {
        self.found.is_none()
    }

    /// Adds libFuzzer's output.
    fn add(&mut self, said: &str, is_sound: bool, used: Duration) {
        let after =
            |word: &str| said.rsplit_once(word).and_then(|(_, rest)| rest.split_whitespace().next()).unwrap_or("?");
        self.used += used;
        self.n_inputs += after("stat::number_of_executed_units: ").parse().unwrap_or(0);
        self.edges = after(" cov: ").to_owned();
        if !is_sound {
            eprint!("{said}");
            let input = said.rsplit_once("Test unit written to ").and_then(|(_, rest)| rest.lines().next());
            self.found = Some(input.unwrap_or("it did not run").to_owned());
        }
    }

    fn summary(&self) -> String {
        let Run { used, n_inputs, edges, found } = self;
        let found = found.as_deref().unwrap_or("nothing");
        format!("{:>6} CPU s, {n_inputs:>11} inputs, {edges:>6} edges covered, found: {found}", used.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "#2\tINITED cov: 12 ft: 13\n#99\tDONE   cov: 345 ft: 999 corp: 9/1Kb\n";

    #[test]
    fn inputs_coverage_and_findings_are_read_from_what_the_fuzzer_prints() {
        let sound = format!("{SAID}stat::number_of_executed_units: 99\n");
        let mut run = Run::default();
        run.add(&sound, true, Duration::from_secs(40));
        run.add(&sound, true, Duration::from_millis(20_500));
        assert_eq!(run.summary(), "    60 CPU s,         198 inputs,    345 edges covered, found: nothing");
        let crash = format!("{SAID}Test unit written to fuzz/artifacts/csv/crash-1\nBase64: AA==\n");
        run.add(&crash, false, Duration::ZERO);
        assert!(run.summary().ends_with("198 inputs,    345 edges covered, found: fuzz/artifacts/csv/crash-1"));
        let mut broken = Run::default();
        broken.add("error: could not compile", false, Duration::ZERO);
        assert!(!broken.is_sound() && broken.summary().ends_with("it did not run"));
    }

    #[test]
    fn every_target_has_a_file_and_a_corpus() {
        let folder = root().join("fuzz");
        let mut files: Vec<String> = std::fs::read_dir(folder.join("targets"))
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        files.sort();
        let mut targets: Vec<&str> = TARGETS.iter().map(|(target, _)| *target).collect();
        targets.sort_unstable();
        assert_eq!(files, targets);
        for target in targets {
            assert!(folder.join("corpus").join(target).read_dir().unwrap().next().is_some(), "{target}");
        }
    }

    #[test]
    fn a_target_that_is_not_there_is_named() {
        assert!(run("1", &["csv", "xml"]).unwrap_err().starts_with("no such target: xml"));
        assert!(run("soon", &[]).is_err());
    }
}
