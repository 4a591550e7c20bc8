//! The compiler of the test run: it compiles, lints and documents a crate of the workspace in one go.
//!
//! Cargo calls this program in the compiler's place for the workspace's own crates (`RUSTC_WORKSPACE_WRAPPER`).
//! `cargo clippy` and `cargo doc` would each check every dependency once more, the query engine included, which takes
//! longer than all the rest. Here, clippy's driver compiles the crate, and rustdoc reads it with the same dependencies.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::command::{cargo, metadata};

/// Set if this program is called as a compiler.
const AS_COMPILER: &str = "XTASK_COMPILES";

/// The variable that names the folder for rustdoc's pages. Nobody reads these pages; rustdoc runs for its warnings.
const PAGES: &str = "XTASK_PAGES";

/// The variable from which proptest takes the seed of random cases.
pub(crate) const SEED: &str = "PROPTEST_RNG_SEED";

/// The seed of a test run. It is always the same one, so that a run depends on the commit alone.
const USUAL_SEED: &str = "7";

/// Runs cargo with this program as the compiler of the workspace's own crates. Warnings are errors. Random tests draw the
/// usual cases, or those of the seed in the environment. Variables that are given here count more than these.
pub(crate) fn cargo_with_lints(arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    let seed = std::env::var(SEED).unwrap_or_else(|_| USUAL_SEED.to_owned());
    let lints = lints()?;
    let lints = lints.iter().map(|(name, value)| (*name, value.as_str()));
    let environment: Vec<(&str, &str)> =
        lints.chain([(SEED, seed.as_str())]).chain(environment.iter().copied()).collect();
    cargo(arguments, &environment)
}

/// The environment in which any cargo, also one that another tool calls, compiles with this program.
pub(crate) fn lints() -> Result<[(&'static str, String); 4], String> {
    let metadata = metadata()?;
    let target = Path::new(metadata["target_directory"].as_str().unwrap_or("target"));
    // A copy, because cargo replaces the program `xtask` in the same build.
    let compiler = target.join("xtask-compiler");
    let failed = |error: std::io::Error| format!("{}: {error}", compiler.display());
    std::fs::create_dir_all(target).map_err(failed)?;
    let program = std::env::current_exe().map_err(failed)?;
    std::fs::copy(program, &compiler).map_err(failed)?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    Ok([
        ("RUSTC_WORKSPACE_WRAPPER", text(&compiler)),
        (AS_COMPILER, "1".to_owned()),
        (PAGES, text(&target.join("checked-doc"))),
        ("CLIPPY_ARGS", "-Dwarnings".to_owned()),
    ])
}

/// Compiles one crate if cargo called this program as a compiler; `None` if it did not.
pub(crate) fn compile() -> Option<ExitCode> {
    std::env::var_os(AS_COMPILER)?;
    // The first argument is the compiler that cargo would have called.
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let is_compiled = run(Command::new("clippy-driver").args(&arguments));
    let is_sound = is_compiled
        && match (documented(&arguments), std::env::var_os(PAGES)) {
            (Some(Documented { arguments, folder }), Some(pages)) => {
                let pages = Path::new(&pages).join(folder);
                run(Command::new("rustdoc").args(arguments).args(["-D", "warnings", "--out-dir"]).arg(pages))
            }
            _ => true,
        };
    Some(if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run(command: &mut Command) -> bool {
    match command.status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("xtask: {} could not be started: {error}", command.get_program().display());
            false
        }
    }
}

/// A crate that rustdoc reads.
#[derive(Debug, PartialEq)]
struct Documented<'a> {
    arguments: Vec<&'a OsStr>,
    /// The folder for its pages. Programs have one of their own, because a program and a library may have the same name.
    folder: &'static str,
}

/// The compiler's arguments that rustdoc takes too; `None` if the crate is a test or only a question to the compiler.
fn documented(arguments: &[OsString]) -> Option<Documented<'_>> {
    let mut kept = Vec::new();
    let mut folder = None;
    let mut rest = arguments.iter().skip(1).map(OsString::as_os_str);
    while let Some(argument) = rest.next() {
        let text = argument.to_str()?;
        match text {
            "--test" => return None,
            _ if text.starts_with("--print") => return None,
            "--crate-type" => {
                let kind = rest.next()?;
                folder = Some(if kind == "bin" { "programs" } else { "libraries" });
                kept.extend([argument, kind]);
            }
            // Rustdoc must not get these arguments: they say how to compile, and where to put the result.
            "-C" | "--out-dir" | "--emit" | "--error-format" | "--json" | "--diagnostic-width" => {
                rest.next()?;
            }
            "--crate-name" | "--extern" | "-L" | "--cfg" | "--check-cfg" | "--edition" | "--cap-lints" => {
                kept.extend([argument, rest.next()?]);
            }
            _ if ["-C", "--out-dir=", "--emit=", "--error-format=", "--json=", "--diagnostic-width="]
                .iter()
                .any(|left_out| text.starts_with(left_out)) => {}
            _ => kept.push(argument),
        }
    }
    Some(Documented { arguments: kept, folder: folder? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn rustdoc_gets_the_crate_and_its_dependencies_without_the_code_generation() {
        let rustc = words(
            "rustc --crate-name kohort_core --edition=2024 src/lib.rs --error-format=json --json=artifacts --crate-type lib \
             --emit=dep-info,metadata,link -C opt-level=3 --check-cfg cfg(docsrs) -C metadata=1 --out-dir deps -L \
             dependency=deps --extern rayon=deps/librayon.rmeta --warn=missing_docs",
        );
        let rustdoc = words(
            "--crate-name kohort_core --edition=2024 src/lib.rs --crate-type lib --check-cfg cfg(docsrs) -L dependency=deps \
             --extern rayon=deps/librayon.rmeta --warn=missing_docs",
        );
        let arguments = rustdoc.iter().map(OsString::as_os_str).collect();
        assert_eq!(documented(&rustc), Some(Documented { arguments, folder: "libraries" }));
    }

    #[test]
    fn programs_and_modules_of_other_languages_are_documented_and_tests_and_questions_are_not() {
        let folder = |text: &str| documented(&words(text)).map(|documented| documented.folder);
        assert_eq!(folder("rustc --crate-name a src/main.rs --crate-type bin"), Some("programs"));
        assert_eq!(folder("rustc --crate-name a src/lib.rs --crate-type cdylib"), Some("libraries"));
        assert_eq!(folder("rustc --crate-name a src/lib.rs --crate-type lib --test"), None);
        assert_eq!(folder("rustc -vV"), None);
    }
}
