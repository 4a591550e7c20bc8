//! The Python package: a virtual environment with pinned libraries, a wheel, and its tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::command::{metadata, root};
use crate::compile::{cargo_with_lints, lints};

/// A wheel must have fewer bytes than this.
const MOST_BYTES: u64 = 30_000_000;

/// The file that lists the libraries of the tests, with versions.
const REQUIREMENTS: &str = "python/requirements-test.txt";

/// A table that a wheel must be able to release in an environment without any other library.
const SMOKE: &str = "\
import kohort, sys
release = kohort.Spec.from_toml(sys.argv[1]).anonymize()
print(f'kohort {kohort.__version__}: {release!r}')
";

/// Builds an unoptimized wheel, installs it, and runs pytest.
pub(crate) fn test() -> Result<(), String> {
    let target = target_folder()?;
    let python = environment(&target.join("python-venv"))?;
    // Build both at once: then they have the same dependencies with the same features, and maturin need not build them
    // again. Lint and document the module here, because `cargo test` compiles no library without tests in Rust.
    cargo_with_lints(&["build", "--package", "kohort-cli", "--package", "kohort-python"], &[])?;
    let lints = lints()?;
    let lints: Vec<(&str, &str)> = lints.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let wheel = build(&python, &target.join("python-test-wheel"), &[], &lints)?;
    run(&python, &["-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", &text(&wheel)], &[])?;
    let program = target.join("debug/kohort").with_extension(std::env::consts::EXE_EXTENSION);
    let pytest = ["-m", "pytest", "-p", "no:cacheprovider", "-c", "python/pyproject.toml", "python/tests"];
    run(&python, &pytest, &[("KOHORT_COMMAND", &text(&program)), ("PYTHONDONTWRITEBYTECODE", "1")])
}

/// Builds an optimized wheel, and tries it in an environment without any other library.
pub(crate) fn wheel() -> Result<(), String> {
    let target = target_folder()?;
    let python = environment(&target.join("python-venv"))?;
    let wheel = build(&python, &target.join("wheels"), &["--release", "--locked"], &[])?;
    let bytes = std::fs::metadata(&wheel).map_err(|error| format!("{}: {error}", wheel.display()))?.len();
    if bytes >= MOST_BYTES {
        return Err(format!("{} has {bytes} bytes, but must have fewer than {MOST_BYTES}", wheel.display()));
    }
    let fresh = target.join("python-fresh");
    run(Path::new("python3"), &["-m", "venv", "--clear", &text(&fresh)], &[])?;
    let alone = fresh.join("bin/python");
    run(&alone, &["-m", "pip", "install", "--quiet", "--no-index", &text(&wheel)], &[])?;
    run(&alone, &["-c", SMOKE, "examples/clinic/release.toml"], &[])?;
    println!("{} ({:.1} MB)", wheel.display(), bytes as f64 / 1e6);
    Ok(())
}

fn target_folder() -> Result<PathBuf, String> {
    metadata()?["target_directory"].as_str().map(PathBuf::from).ok_or_else(|| "cargo names no target folder".to_owned())
}

/// The interpreter of a virtual environment that has what the tests need. The environment is made anew if the list of
/// libraries has changed since.
fn environment(folder: &Path) -> Result<PathBuf, String> {
    let python = folder.join("bin/python");
    let made_for = folder.join("made-for.txt");
    let path = root().join(REQUIREMENTS);
    let wanted = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    if python.exists() && std::fs::read_to_string(&made_for).is_ok_and(|known| known == wanted) {
        return Ok(python);
    }
    run(Path::new("python3"), &["-m", "venv", "--clear", &text(folder)], &[])?;
    run(&python, &["-m", "pip", "install", "--quiet", "--requirement", REQUIREMENTS], &[])?;
    std::fs::write(&made_for, wanted).map_err(|error| format!("{}: {error}", made_for.display()))?;
    Ok(python)
}

/// Builds a wheel into a folder, and removes all other wheels from the folder.
fn build(python: &Path, folder: &Path, flags: &[&str], environment: &[(&str, &str)]) -> Result<PathBuf, String> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let out = text(folder);
    let interpreter = text(python);
    let mut arguments = vec!["-m", "maturin", "build", "--manifest-path", "python/Cargo.toml", "--out", &out];
    arguments.extend(["--interpreter", &interpreter]);
    arguments.extend(flags);
    run(python, &arguments, environment)?;
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let wheels = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut wheels = wheels.filter(|path| path.extension().is_some_and(|extension| extension == "whl"));
    wheels.next().ok_or_else(|| format!("maturin left no wheel in {}", folder.display()))
}

fn run(program: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    let shown = format!("{} {}", program.display(), arguments.join(" "));
    let mut command = Command::new(program);
    command.args(arguments).envs(environment.iter().copied()).current_dir(root()).stdin(Stdio::null());
    // The tests must find the installed package, whatever the caller has on its path.
    let status = command.env_remove("PYTHONPATH").status();
    let status = status.map_err(|error| format!("`{shown}` could not be started: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{shown}` failed ({status})")) }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
