//! The project's chores, run as `cargo xtask`.
//!
//! Most chores need only Rust. A chore that needs a tool which is missing fails; it never skips a step.

mod citations;
mod clinic;
mod command;
mod compile;
mod edges;
mod fuzz;
mod jobs;
mod licences;
mod links;
mod package;
mod python;
mod requirements;
mod soak;
mod source_files;
mod test;
mod tools;

use std::process::ExitCode;

const HELP: &str = "\
The project's chores.

  cargo xtask test              everything CI runs
  cargo xtask test CRATE [ARGUMENT...]
                                one crate, built, linted, documented and tested; arguments are those of `cargo test`
  cargo xtask soak --minutes N CRATE [ARGUMENT...]
                                the tests of one crate again and again, each time with other random cases
  cargo xtask attack [--write]  runs the catalogue of attacks and prints its tables; --write updates docs/attacks.md
  cargo xtask bench [NAME...]   benchmarks, all of them or those named
  cargo xtask jobs [OPTION...]  random jobs of every system, recounted by independent code
                                [--count N] [--by-command N] [--from N] [--of SYSTEM]
  cargo xtask fuzz --minutes N [TARGET...]
                                fuzz targets, all of them or those named, N minutes of
                                processor time each
  cargo xtask package [--profile dev|release]
                                a Debian package and a .tar.gz of all programs
  cargo xtask package notices   licences of everything the programs contain
  cargo xtask package check     packages the programs that tests have built, installs the package and uses it
  cargo xtask wheel             a wheel of the Python package, optimized
  cargo xtask python            builds a wheel for tests and runs the tests of the Python package
  cargo xtask clinic            rewrites the generated files of examples/clinic
  cargo xtask help              this text
";

fn main() -> ExitCode {
    if let Some(code) = compile::compile() {
        return code;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        ["test"] => test::run(),
        ["test", name, rest @ ..] => test::run_crate(name, rest),
        ["soak", "--minutes", minutes, name, rest @ ..] => soak::run(minutes, name, rest),
        ["attack", flags @ ..] => attack(flags),
        ["bench", names @ ..] => bench(names),
        ["jobs", options @ ..] => jobs::run(options),
        ["fuzz", "--minutes", minutes, names @ ..] => fuzz::run(minutes, names),
        ["package", options @ ..] => package::run(options),
        ["wheel"] => python::wheel(),
        ["python"] => python::test(),
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
