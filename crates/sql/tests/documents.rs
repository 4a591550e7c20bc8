//! The pages of `docs` show what `kohort-sql` really prints.
//!
//! Every block of SQL in these documents is run in the project's root. The example's `setup.sql` runs before it, unless the
//! block opens its tables itself. A block that makes a materialized view has a data folder of its own. If a block of text follows,
//! it must show exactly the lines that are printed.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

const SETUP: &str = "examples/aviews/setup.sql";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn document(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap()
}

/// What the command prints to stderr and stdout, and its exit code.
fn run(arguments: &[&str]) -> (String, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_kohort-sql")).current_dir(root()).args(arguments).output().unwrap();
    (String::from_utf8([output.stdout, output.stderr].concat()).unwrap(), output.status.code())
}

fn lines(text: &str) -> BTreeSet<&str> {
    text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect()
}

/// The blocks of a document: language and text.
fn blocks(document: &str) -> Vec<(&str, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(&str, String)> = None;
    for line in document.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(language), None) => open = Some((language, String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some((_, text))) => text.extend([line, "\n"]),
            (None, None) => {}
        }
    }
    blocks
}

fn assert_shows_what_is_printed(name: &str) {
    let document = document(name);
    let blocks = blocks(&document);
    let (of_setup, code) = run(&["-f", SETUP]);
    assert_eq!(code, Some(0), "{of_setup}");
    let nothing = ("", String::new());
    let following = blocks.iter().skip(1).chain([&nothing]);
    let mut n_run = 0;
    for ((_, sql), (language, shown)) in blocks.iter().zip(following).filter(|((language, _), _)| *language == "sql") {
        let is_stored = sql.contains("MATERIALIZED");
        let starts_from_nothing = is_stored || sql.contains("CREATE EXTERNAL TABLE");
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().to_str().unwrap();
        let arguments: &[&str] = match (is_stored, starts_from_nothing) {
            (true, _) => &["--data", data, "-c", sql],
            (false, true) => &["-c", sql],
            (false, false) => &["-f", SETUP, "-c", sql],
        };
        let (printed, code) = run(arguments);
        let before = if starts_from_nothing { "" } else { of_setup.as_str() };
        let is_error = shown.lines().any(|line| line.starts_with("error: "));
        assert_eq!(code == Some(0), !is_error, "{name}: {sql}{printed}");
        if *language == "text" {
            let printed: BTreeSet<&str> = lines(&printed).difference(&lines(before)).copied().collect();
            let shown: BTreeSet<&str> = lines(shown).difference(&lines(before)).copied().collect();
            assert_eq!(shown, printed, "{name}: {sql}");
        }
        n_run += 1;
    }
    assert!(n_run > 0, "{name} shows no SQL");
}

#[test]
fn the_page_on_views_shows_what_is_printed() {
    assert_shows_what_is_printed("docs/anonymization-views.md");
}

#[test]
fn the_page_on_policies_shows_what_is_printed_and_the_example_s_files() {
    assert_shows_what_is_printed("docs/policies.md");
    let page = document("docs/policies.md");
    for (language, file) in [("toml", "policy.toml"), ("xml", "policy.xml"), ("toml", "p3p.toml")] {
        let text = document(&format!("examples/aviews/{file}"));
        assert!(blocks(&page).contains(&(language, text)), "docs/policies.md does not show {file}");
    }
}

#[test]
fn the_page_on_data_folders_shows_what_is_printed() {
    assert_shows_what_is_printed("docs/data-folder.md");
}

#[test]
fn the_reference_shows_what_is_printed() {
    assert_shows_what_is_printed("docs/sql-reference.md");
}

#[test]
fn the_example_answers_its_questions() {
    let (printed, code) = run(&["-f", SETUP, "-f", "examples/aviews/questions.sql"]);
    assert_eq!(code, Some(0), "{printed}");
}
