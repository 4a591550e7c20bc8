//! `cargo xtask jobs`: random jobs of every system, recounted by independent code.

use crate::command::cargo;

/// The name of computed A-views among the systems.
const COMPUTED: &str = "computed";

const USAGE: &str = "cargo xtask jobs [--count N] [--by-command N] [--from N]\n     [--of table|tables|audiences|register|views|town|computed]";

/// Runs a number of jobs of each system, or of one system: in memory, and as files that are given to the command.
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
            ["--by-command", count, rest @ ..] => {
                environment.push(("KOHORT_JOBS_BY_COMMAND", *count));
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
    let packages = ["--package", "kohort-testkit", "--package", "kohort-cli"];
    let system = environment.iter().find(|(name, _)| *name == "KOHORT_JOBS_OF").map(|(_, system)| *system);
    if system != Some(COMPUTED) {
        cargo(&[&["test"], packages.as_slice(), &["--test", "jobs", "--", "--nocapture"]].concat(), &environment)?;
    }
    // Computed views need the query engine, which is known to one crate only and takes long to build.
    if system.is_none_or(|system| system == COMPUTED) {
        let views =
            ["test", "--package", "kohort-sql", "--test", "views", "--", "--nocapture", "random_computed_views"];
        cargo(&views, &environment)?;
    }
    Ok(())
}
