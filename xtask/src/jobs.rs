//! `cargo xtask jobs`: random jobs of every system, recounted by independent code.

use crate::command::cargo;

const USAGE: &str = "cargo xtask jobs [--count N] [--from N] [--of table|tables|audiences|register|views]";

/// Runs so many jobs of each system, or of one, from a number on.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let mut environment = Vec::new();
    let mut rest = arguments;
    loop {
        rest = match rest {
            [] => break,
            ["--count", count, rest @ ..] => {
                environment.push(("KOHORT_JOBS", *count));
                rest
            }
            ["--from", first, rest @ ..] => {
                environment.push(("KOHORT_JOBS_FROM", *first));
                rest
            }
            ["--of", system, rest @ ..] => {
                environment.push(("KOHORT_JOBS_OF", *system));
                rest
            }
            [word, ..] => return Err(format!("{word}: no such option, or its value is missing\n\n  {USAGE}")),
        };
    }
    cargo(&["test", "--package", "kohort-testkit", "--test", "jobs", "--", "--nocapture"], &environment)
}
