//! Programs that tests use. Those that are missing are installed as packages of Debian.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A program on the path or a file, and the package that has it.
const TOOLS: [(&str, &str); 9] = [
    ("psql", "postgresql-client"),
    ("pg_ctlcluster", "postgresql"),
    ("openssl", "openssl"),
    ("python3", "python3-venv"),
    ("java", "default-jdk-headless"),
    ("/usr/share/java/postgresql.jar", "libpostgresql-jdbc-java"),
    ("dpkg-shlibdeps", "dpkg-dev"),
    ("systemd-analyze", "systemd"),
    ("fakeroot", "fakeroot"),
];

/// Installs what is missing.
pub(crate) fn install() -> Result<(), String> {
    let missing = || TOOLS.iter().filter(|(tool, _)| !is_there(tool)).collect::<Vec<_>>();
    let packages: Vec<&str> = missing().iter().map(|(_, package)| *package).collect();
    if packages.is_empty() {
        return Ok(());
    }
    println!("installing {}", packages.join(", "));
    let install = [["install", "--yes", "--quiet", "--no-install-recommends"].as_slice(), &packages].concat();
    // This works if the lists of packages exist and are not too old. Otherwise update them first.
    if apt(&install).is_err() {
        apt(&["update", "--quiet"])?;
        apt(&install)?;
    }
    match missing().first() {
        None => Ok(()),
        Some((tool, package)) => Err(format!("{tool} is missing, although {package} is installed")),
    }
}

fn is_there(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    Path::new(tool).is_file()
        || std::env::split_paths(&path).map(|folder| folder.join(tool)).any(|file: PathBuf| file.is_file())
}

/// Runs apt-get, and again with sudo if this user may not.
fn apt(arguments: &[&str]) -> Result<(), String> {
    let run = |program: &str, before: &[&str]| {
        let mut command = Command::new(program);
        let status = command.args(before).args(arguments).env("DEBIAN_FRONTEND", "noninteractive").status();
        status.is_ok_and(|status| status.success())
    };
    if run("apt-get", &[]) || run("sudo", &["--non-interactive", "apt-get"]) {
        return Ok(());
    }
    Err(format!("`apt-get {}` failed, and the tests need these packages", arguments.join(" ")))
}
