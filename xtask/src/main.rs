//! The project's chores, run as `cargo xtask`.
//!
//! A chore needs Rust and nothing else; where a tool is missing it fails, it never skips.

mod citations;
mod clinic;
mod command;
mod edges;
mod fuzz;
mod jobs;
mod licences;
mod links;
mod requirements;
mod source_files;
mod test;
mod tools;

use std::process::ExitCode;

const HELP: &str = "\
The project's chores.

  cargo xtask test              everything CI runs
  cargo xtask attack [--write]  runs the catalogue of attacks and prints its tables; --write updates docs/attacks.md
  cargo xtask bench [NAME...]   benchmarks, all of them or those named
  cargo xtask jobs [OPTION...]  random jobs of every system, recounted by independent code
                                [--count N] [--by-command N] [--from N] [--of SYSTEM]
  cargo xtask fuzz --minutes N [TARGET...]
                                fuzz targets, all of them or those named, N minutes each
  cargo xtask clinic            rewrites the generated files of examples/clinic
  cargo xtask help              this text
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        ["test"] => test::run(),
        ["attack", flags @ ..] => attack(flags),
        ["bench", names @ ..] => bench(names),
        ["jobs", options @ ..] => jobs::run(options),
        ["fuzz", "--minutes", minutes, names @ ..] => fuzz::run(minutes, names),
        ["clinic"] => clinic::rewrite(),
        _ => Err(format!("no such chore: {}\n\n{HELP}", words.join(" "))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn attack(flags: &[&str]) -> Result<(), String> {
    let mut arguments = vec!["run", "--quiet", "--package", "kohort-testkit", "--bin", "attack", "--"];
    arguments.extend(flags);
    command::cargo(&arguments, &[])
}

fn bench(names: &[&str]) -> Result<(), String> {
    let mut arguments = vec!["run", "--release", "--package", "kohort-bench", "--"];
    arguments.extend(names);
    command::cargo(&arguments, &[])
}
