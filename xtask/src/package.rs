//! `cargo xtask package`: a Debian package and a .tar.gz of the three programs, with everything a release needs.
//!
//! What is packaged, and where it is installed, is the table `package.metadata.deb` of `crates/cli/Cargo.toml`. Its
//! format is cargo-deb's, but the package is built with dpkg-deb: cargo-deb takes minutes to install, which every CI
//! run would pay.
//!
//! The files are built in `package/` beside the programs. The same commit, compiler and target folder give the same
//! bytes, because times come from the commit and owners are root.

mod debian;
mod generated;
mod installed;
mod notices;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::command::{cargo, metadata, root};
use debian::{Compression, Description};

/// The programs that are shipped, and the package each is built from.
const PROGRAMS: [(&str, &str); 3] =
    [("kohort", "kohort-cli"), ("kohort-sql", "kohort-sql"), ("kohort-serve", "kohort-server")];

const USAGE: &str = "cargo xtask package [--profile dev|release]\n  cargo xtask package notices|check";

/// Builds the programs and both packages of them. `notices` writes only the licences of everything they contain, and
/// `check` is the step of `cargo xtask test`.
///
/// # Errors
/// If a tool is missing, a program does not build, or a crate comes without the text of its licence.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let profile = match arguments {
        [] => "release",
        ["--profile", profile @ ("dev" | "release")] => profile,
        ["notices"] => return write_notices(),
        ["check"] => return check(),
        _ => return Err(format!("no such option: {}\n\n  {USAGE}", arguments.join(" "))),
    };
    let mut build = vec!["build", "--locked", "--bins", "--profile", profile];
    build.extend(PROGRAMS.iter().flat_map(|(_, package)| ["--package", package]));
    cargo(&build, &[])?;
    let package = Package::new(&metadata()?, profile)?;
    package.stage()?;
    for built in [package.debian()?, package.archive()?] {
        let size = fs::metadata(&built).map_err(|error| format!("{}: {error}", built.display()))?.len();
        println!("{} ({:.1} MB)", built.display(), size as f64 / 1e6);
    }
    Ok(())
}

/// The step of `cargo xtask test`: packages the programs that the tests have built, installs the Debian package into an
/// empty folder, uses it there, and compares the archive with it.
///
/// # Errors
/// If something is missing from the package, or does not work once it is installed.
pub(crate) fn check() -> Result<(), String> {
    let package = Package::new(&metadata()?, "dev")?;
    package.stage()?;
    let folder = package.folder.join("installed");
    installed::check(&package.debian()?, &folder)?;
    installed::check_archive(&package.archive()?, &folder)
}

/// Writes the notices where the configuration of cargo-dist expects them.
fn write_notices() -> Result<(), String> {
    let folder = target(&metadata()?)?.join("package");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let file = folder.join("THIRD-PARTY-NOTICES.txt");
    write(&file, notices::notices(&metadata()?)?.as_bytes())?;
    println!("{}", file.display());
    Ok(())
}

/// A package that is being made.
struct Package {
    description: Description,
    /// The folder of the programs that the profile built.
    programs: PathBuf,
    /// The folder in which the package is made.
    folder: PathBuf,
    /// How well to compress. Packages of the dev profile are tried once and never downloaded, so speed counts for them.
    compression: Compression,
    /// Seconds since 1970, the time of every packaged file.
    time: String,
    metadata: Value,
}

impl Package {
    fn new(metadata: &Value, profile: &str) -> Result<Package, String> {
        let (name, compression) =
            if profile == "dev" { ("debug", Compression::Quick) } else { (profile, Compression::Small) };
        let programs = target(metadata)?.join(name);
        for (program, _) in PROGRAMS {
            if !programs.join(program).is_file() {
                let hint = "hint: `cargo test --workspace` and `cargo xtask package` build it";
                return Err(format!("{} is not built\n{hint}", programs.join(program).display()));
            }
        }
        Ok(Package {
            description: Description::read(metadata)?,
            folder: programs.join("package"),
            programs,
            compression,
            time: time()?,
            metadata: metadata.clone(),
        })
    }

    /// Puts everything that is packaged where it will be installed, below `root/`.
    fn stage(&self) -> Result<(), String> {
        remove(&self.folder)?;
        generated::generate(&self.programs, &self.folder.join("share"), &self.metadata)?;
        for asset in &self.description.assets {
            for source in self.sources(&asset.source)? {
                let mut to = self.root().join(&asset.destination);
                if asset.destination.ends_with('/') {
                    to.push(source.file_name().unwrap_or_default());
                }
                copy(&source, &to, asset.mode)?;
            }
        }
        Ok(())
    }

    /// The files that an asset names, in order. `*` in the last part of a path stands for any files of that folder.
    fn sources(&self, source: &str) -> Result<Vec<PathBuf>, String> {
        let path = match source.strip_prefix("target/release/") {
            Some(built) => self.programs.join(built),
            None => root().join("crates/cli").join(source),
        };
        let files = match path.file_name().is_some_and(|name| name == "*") {
            true => {
                let folder = path.parent().unwrap_or(&path);
                let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
                entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_file()).collect()
            }
            false => vec![path],
        };
        let mut files: Vec<PathBuf> = files;
        files.sort();
        if files.is_empty() { Err(format!("'{source}' names no file to package")) } else { Ok(files) }
    }

    fn root(&self) -> PathBuf {
        self.folder.join("root")
    }

    /// The .deb of the staged files.
    fn debian(&self) -> Result<PathBuf, String> {
        let programs = PROGRAMS.map(|(program, _)| self.root().join("usr/bin").join(program));
        debian::build(&self.description, &self.root(), &programs, self.compression, &self.time)
    }

    /// A .tar.gz of the staged files, in a folder that is named after the version and the system they are for.
    fn archive(&self) -> Result<PathBuf, String> {
        let name = format!("kohort-{}-{}", self.description.version, host()?);
        let file = self.folder.join(format!("{name}.tar.gz"));
        let level = if self.compression == Compression::Quick { "gzip -1n" } else { "gzip -9n" };
        let mut tar = Command::new("tar");
        tar.args(["--create", "--sort=name", "--owner=root:0", "--group=root:0", "--exclude=./DEBIAN"]);
        tar.arg(format!("--mtime=@{}", self.time)).arg(format!("--use-compress-program={level}"));
        tar.arg(format!("--transform=s,^\\.,{name},")).arg("--file").arg(&file);
        output(tar.arg("--directory").arg(self.root()).arg("."))?;
        Ok(file)
    }
}

/// The time of everything that is packaged: that of the commit, unless SOURCE_DATE_EPOCH says otherwise.
fn time() -> Result<String, String> {
    if let Some(time) = std::env::var("SOURCE_DATE_EPOCH").ok().filter(|time| !time.is_empty()) {
        return Ok(time);
    }
    let time = output(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root()))
        .map_err(|error| format!("{error}\nhint: outside of a clone, set SOURCE_DATE_EPOCH"))?;
    Ok(String::from_utf8_lossy(&time).trim().to_owned())
}

/// The system that this compiler builds for, such as `x86_64-unknown-linux-gnu`.
fn host() -> Result<String, String> {
    let says = output(Command::new("rustc").arg("-vV"))?;
    let says = String::from_utf8_lossy(&says);
    let host = says.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "`rustc -vV` names no host".to_owned())
}

fn target(metadata: &Value) -> Result<PathBuf, String> {
    let folder = metadata["target_directory"].as_str().ok_or("`cargo metadata` names no target folder")?;
    Ok(PathBuf::from(folder))
}

/// Runs a program and gives what it prints to stdout.
fn output(command: &mut Command) -> Result<Vec<u8>, String> {
    run_to_end(command).map(|output| output.stdout)
}

/// Runs a program that must succeed. Everything that it printed is in the error, if it fails.
fn run_to_end(command: &mut Command) -> Result<Output, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| {
        let hint = "hint: on Debian, `apt install dpkg-dev fakeroot systemd` brings every program that packaging needs";
        format!("'{program}' could not be started: {error}\n{hint}")
    })?;
    if output.status.success() {
        return Ok(output);
    }
    let arguments: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
    Err(format!("`{program} {}` failed ({})\n{}", arguments.join(" "), output.status, printed(&output)))
}

/// Everything that a program printed: data first, then messages.
fn printed(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text)).concat()
}

fn write(path: &Path, content: &[u8]) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    fs::write(path, content).map_err(|error| format!("{}: {error}", path.display()))
}

fn copy(from: &Path, to: &Path, mode: u32) -> Result<(), String> {
    let folder = to.parent().unwrap_or(to);
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    fs::copy(from, to).map_err(|error| format!("{}: {error}", from.display()))?;
    set_mode(to, mode)
}

fn set_mode(path: &Path, mode: u32) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;

    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(|error| format!("{}: {error}", path.display()))
}

fn remove(folder: &Path) -> Result<(), String> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(format!("{}: {error}", folder.display())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// cargo-dist wants file names without patterns, so its configuration repeats the version.
    #[test]
    fn a_release_uploads_the_packages_of_this_version() {
        let path = root().join("dist-workspace.toml");
        let configuration: toml::Table = fs::read_to_string(path).unwrap().parse().unwrap();
        let uploaded = configuration["dist"]["extra-artifacts"][0]["artifacts"].clone();
        let version = env!("CARGO_PKG_VERSION");
        let packages =
            [format!("kohort_{version}-1_amd64.deb"), format!("kohort-{version}-x86_64-unknown-linux-gnu.tar.gz")];
        let packages = packages.map(|name| toml::Value::from(format!("target/release/package/{name}")));
        assert_eq!(uploaded.as_array().unwrap().as_slice(), packages);
    }
}
