//! Gives random jobs as files to the command. Every release must pass `verify`, from its files alone and against the spec,
//! and every class must have as many rows as asked. `cargo xtask jobs` runs more of them.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use kohort_testkit::jobs::{System, files};

/// The number of jobs of each system in the ordinary tests.
const N_JOBS: u64 = 8;

/// Jobs that failed once: their releases could not be written, or were rejected.
const FAILED_ONCE: [(System, u64); 8] = [
    // Nothing of a table was released.
    (System::Tables, 45),
    // Labels that may be nodes of a hierarchy.
    (System::Audiences, 41),
    (System::Audiences, 126),
    (System::Audiences, 151),
    (System::Audiences, 429),
    // The claimed k was compared with the number of classes in all columns, on which no audience has a requirement.
    (System::Audiences, 55),
    // A requirement of an audience with a fraction whose last bit changes when JSON is read.
    (System::Audiences, 306),
    // A coalition that asks for a hierarchical distance.
    (System::Audiences, 283),
];

/// How jobs ended.
#[derive(Debug, Default)]
struct Ended {
    released: u64,
    refused: u64,
    cannot_tell: u64,
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kohort")).args(arguments).current_dir(folder).output().unwrap()
}

/// The output of a run, and the job.
fn told(output: &Output, files: &BTreeMap<String, String>) -> String {
    let printed = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let files = files.iter().map(|(name, text)| format!("--- {name}\n{text}\n"));
    format!("exit {:?}\n{}\n{}", output.status.code(), printed.concat(), files.collect::<String>())
}

/// The cells of a line of CSV. Those with a comma are in quotes.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            _ => cells.last_mut().expect("there is one from the beginning").push(letter),
        }
    }
    cells
}

/// The size of the smallest group of rows that are equal in the columns `q0`, `q1`, ...
fn smallest_class(path: &Path) -> usize {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let names = cells(lines.next().unwrap());
    let quasi: Vec<usize> = (0..names.len()).filter(|&column| names[column].starts_with('q')).collect();
    let mut classes: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for line in lines {
        let row = cells(line);
        *classes.entry(quasi.iter().map(|&column| row[column].clone()).collect()).or_default() += 1;
    }
    classes.into_values().min().unwrap()
}

/// Whether a survey has a row.
fn has_rows(files: &BTreeMap<String, String>, name: &str) -> bool {
    files.get(name).is_none_or(|text| text.lines().count() > 1)
}

/// The spec, with these earlier releases in place of those it names.
fn beside(spec: &str, released: &[String]) -> String {
    let line = |line: &str| match (line.starts_with("previous = [\"out-"), released) {
        (true, []) => String::new(),
        (true, _) => format!("previous = [{}]\n", released.join(", ")),
        (false, _) => format!("{line}\n"),
    };
    spec.lines().map(line).collect()
}

/// Whether a release was refused because labels of an earlier one have no meaning now: its survey had a value that nobody
/// has in any register.
fn is_unread(ran: &Output) -> bool {
    String::from_utf8_lossy(&ran.stderr).contains("neither in its hierarchy nor a range")
}

/// Makes the earlier releases of a town. Some may be refused; the last spec then names only those that were made.
fn release_earlier(folder: &Path, files: &BTreeMap<String, String>) -> Result<(), String> {
    let mut released: Vec<String> = Vec::new();
    let years = (0..).map_while(|year| Some((year, files.get(&format!("release-{year}.toml"))?)));
    for (year, spec) in years.filter(|(year, _)| has_rows(files, &format!("survey-{year}.csv"))) {
        let (name, out) = (format!("release-{year}.toml"), format!("out-{year}"));
        std::fs::write(folder.join(&name), beside(spec, &released)).unwrap();
        let ran = run(folder, &["anonymize", &name, "-o", &out, "--accept-risks", "--threads", "1"]);
        match ran.status.code() {
            Some(0) => released.push(format!("\"{out}\"")),
            Some(1) if !folder.join(&out).exists() => {}
            Some(2) if is_unread(&ran) => {}
            _ => return Err(told(&ran, files)),
        }
    }
    std::fs::write(folder.join("release.toml"), beside(&files["release.toml"], &released)).unwrap();
    Ok(())
}

/// Gives one job to the command, and the release to `verify`.
fn judge(system: System, files: &BTreeMap<String, String>, ended: &mut Ended) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    if system == System::Town {
        release_earlier(folder.path(), files)?;
    }
    // Random tables are full of blatant risks.
    let released = run(folder.path(), &["anonymize", "release.toml", "-o", "out", "--accept-risks", "--threads", "1"]);
    match released.status.code() {
        Some(0) => ended.released += 1,
        Some(code @ (1 | 2)) if !folder.path().join("out").exists() && (code == 1 || is_unread(&released)) => {
            ended.refused += 1;
            return Ok(());
        }
        _ => return Err(told(&released, files)),
    }
    let alone = run(folder.path(), &["verify", "out", "--threads", "1"]);
    if alone.status.code() != Some(0) {
        return Err(told(&alone, files));
    }
    let against = run(folder.path(), &["verify", "out", "--against", "release.toml", "--threads", "1"]);
    match against.status.code() {
        Some(0) => {}
        Some(4) => ended.cannot_tell += 1,
        _ => return Err(told(&against, files)),
    }
    let asked = &files["release.toml"];
    let k = asked.lines().find_map(|line| line.strip_prefix("k = ")?.parse::<usize>().ok()).unwrap();
    // A class has at least as many rows as persons.
    let file = match system {
        System::Table => "out/random.csv",
        System::Register | System::Town if asked.contains("release = \"all\"") => "out/t.csv",
        System::Register | System::Tables | System::Audiences | System::Views | System::Town => return Ok(()),
    };
    let smallest = smallest_class(&folder.path().join(file));
    if smallest >= k { Ok(()) } else { Err(format!("a class of {smallest} rows\n{}", told(&released, files))) }
}

#[test]
fn the_command_verifies_every_release_that_it_makes() {
    let first = number("KOHORT_JOBS_FROM").unwrap_or(0);
    let n_jobs = number("KOHORT_JOBS_BY_COMMAND").unwrap_or(N_JOBS);
    let mut failed = Vec::new();
    for system in System::ALL {
        let is_asked = std::env::var("KOHORT_JOBS_OF").map_or(true, |word| word == system.word());
        let mut ended = Ended::default();
        for number in (first..first + n_jobs).filter(|_| is_asked) {
            let Some(files) = files(system, number) else { continue };
            // Without a quasi column there is nothing to protect, so there is no job.
            let last_survey =
                (0..).map(|year| format!("survey-{year}.csv")).take_while(|name| files.contains_key(name));
            let is_empty = last_survey.last().is_some_and(|name| !has_rows(&files, &name));
            if !files["release.toml"].contains("role = \"quasi\"") || is_empty {
                continue;
            }
            if let Err(fault) = judge(system, &files, &mut ended) {
                eprintln!("{system} job {number} failed by the command: {fault}");
                failed.push((system, number));
            }
        }
        println!("{system} by the command: {ended:?}");
    }
    assert_eq!(failed, []);
}

#[test]
fn jobs_that_failed_once_are_released_and_verified() {
    let mut ended = Ended::default();
    for (system, number) in FAILED_ONCE {
        let mut files = files(system, number).expect("such jobs have files");
        // These jobs failed before child tables had limits, which refuse some of them.
        if let Some(spec) = files.get_mut("release.toml") {
            *spec = spec.replace("max_rows_left_out = 0.3\n", "");
        }
        judge(system, &files, &mut ended).unwrap_or_else(|fault| panic!("{system} job {number}: {fault}"));
    }
    assert_eq!(ended.released, FAILED_ONCE.len() as u64);
}
