//! `cargo xtask fuzz`: runs the targets of `fuzz/` one after another, and prints what each found.
//!
//! No crate under test has `unsafe` code, so there is no sanitizer, and the targets build with a stable compiler.

use std::path::PathBuf;
use std::process::{Command, Stdio};

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

/// Builds a target and runs it. Inputs it learns from are kept in the build folder; those in `fuzz/corpus` are read
/// only.
fn run_target(target: &'static str, feature: &str, minutes: u64) -> Result<Outcome, String> {
    let build = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from).join("fuzz");
    let learned = build.join("corpus").join(target);
    std::fs::create_dir_all(&learned).map_err(|error| format!("{}: {error}", learned.display()))?;
    let output = Command::new("cargo")
        .current_dir(root())
        .args(["fuzz", "run", "--sanitizer", "none", "--codegen-units", "16", "--features", feature, "--target-dir"])
        .args([&build, &PathBuf::from(target), &learned, &root().join("fuzz/corpus").join(target)])
        .args(["--", "-timeout=60", "-print_final_stats=1", &format!("-max_total_time={}", minutes * 60)])
        // Inputs are so small that several threads would only wait for each other.
        .env("RAYON_NUM_THREADS", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::inherit())
        .stderr(Stdio::piped())
        .output()
        .map_err(|error| format!("`cargo fuzz` could not be started: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let is_sound = output.status.success();
    if !is_sound {
        eprint!("{said}");
    }
    Ok(Outcome { target, line: summary(&said, is_sound), is_sound })
}

/// The runs, coverage and findings in libFuzzer's output.
fn summary(said: &str, is_sound: bool) -> String {
    let after = |word: &str| said.rsplit_once(word).and_then(|(_, rest)| rest.split_whitespace().next()).unwrap_or("?");
    let found = match said.rsplit_once("Test unit written to ") {
        Some((_, rest)) => rest.lines().next().unwrap_or_default(),
        None if is_sound => "nothing",
        None => "it did not run",
    };
    format!(
        "{:>11} runs, {:>6} edges covered, found: {found}",
        after("stat::number_of_executed_units: "),
        after(" cov: ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "#2\tINITED cov: 12 ft: 13\n#99\tDONE   cov: 345 ft: 999 corp: 9/1Kb\n";

    #[test]
    fn runs_coverage_and_findings_are_read_from_what_the_fuzzer_prints() {
        let sound = format!("{SAID}stat::number_of_executed_units: 99\n");
        assert_eq!(summary(&sound, true), "         99 runs,    345 edges covered, found: nothing");
        let crash = format!("{SAID}Test unit written to fuzz/artifacts/csv/crash-1\nBase64: AA==\n");
        assert_eq!(summary(&crash, false), "          ? runs,    345 edges covered, found: fuzz/artifacts/csv/crash-1");
        assert!(summary("error: could not compile", false).ends_with("it did not run"));
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
