//! The Debian package: its description, and dpkg-deb, which builds it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{copy, output, set_mode, write};
use crate::command::root;

/// Debian's own revision of a version of kohort. cargo-deb has the same default.
const REVISION: &str = "1";
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// What `package.metadata.deb` of `crates/cli/Cargo.toml` says.
pub(super) struct Description {
    name: String,
    pub(super) version: String,
    fields: Vec<(&'static str, String)>,
    summary: String,
    details: String,
    scripts: PathBuf,
    pub(super) assets: Vec<Asset>,
}

/// A file to be installed.
pub(super) struct Asset {
    /// A path as cargo-deb takes it: `target/release/` is the folder of the built programs, whatever their profile.
    pub(super) source: String,
    /// A path below the root of the system; it ends with `/` if it is a folder.
    pub(super) destination: String,
    pub(super) mode: u32,
}

/// How a package is compressed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    /// Takes seconds, even for the large programs of the dev profile.
    Quick,
    /// Debian's own level, which takes longer and gives smaller packages.
    Small,
}

impl Description {
    /// Reads it from `cargo metadata`.
    pub(super) fn read(metadata: &Value) -> Result<Description, String> {
        let mut packages = metadata["packages"].as_array().into_iter().flatten();
        let package =
            packages.find(|package| package["name"] == "kohort-cli").ok_or("there is no package kohort-cli")?;
        let table = &package["metadata"]["deb"];
        let text = |value: &Value, key: &str| match value[key].as_str() {
            Some(text) => Ok(text.trim().to_owned()),
            None => Err(format!("crates/cli/Cargo.toml: [package.metadata.deb] has no text '{key}'")),
        };
        let assets = table["assets"].as_array().ok_or("crates/cli/Cargo.toml: [package.metadata.deb] has no assets")?;
        Ok(Description {
            name: text(table, "name")?,
            version: text(package, "version")?,
            fields: vec![
                ("Maintainer", text(table, "maintainer")?),
                ("Section", text(table, "section")?),
                ("Priority", text(table, "priority")?),
                ("Suggests", text(table, "suggests")?),
            ],
            summary: text(package, "description")?,
            details: text(table, "extended-description")?,
            scripts: root().join("crates/cli").join(text(table, "maintainer-scripts")?),
            assets: assets.iter().map(Asset::read).collect::<Result<_, _>>()?,
        })
    }

    /// The file `control` of the package.
    fn control(&self, architecture: &str, depends: &str, kilobytes: u64) -> String {
        let mut control = format!("Package: {}\nVersion: {}-{REVISION}\n", self.name, self.version);
        for (field, value) in &self.fields {
            writeln!(control, "{field}: {value}").expect("a string can be written to");
        }
        write!(control, "Architecture: {architecture}\nDepends: {depends}\nInstalled-Size: {kilobytes}\n")
            .expect("a string can be written to");
        writeln!(control, "Description: {}", self.summary.replace('`', "")).expect("a string can be written to");
        for line in self.details.lines() {
            writeln!(control, " {}", if line.is_empty() { "." } else { line }).expect("a string can be written to");
        }
        control
    }
}

impl Asset {
    fn read(asset: &Value) -> Result<Asset, String> {
        let [source, destination, mode] = [0, 1, 2].map(|at| asset[at].as_str());
        let mode = mode.and_then(|mode| u32::from_str_radix(mode, 8).ok());
        match (source, destination, mode) {
            (Some(source), Some(destination), Some(mode)) => {
                Ok(Asset { source: source.to_owned(), destination: destination.to_owned(), mode })
            }
            _ => Err(format!(
                "crates/cli/Cargo.toml: an asset must be [from, to, mode], all three texts, and not {asset}"
            )),
        }
    }
}

/// Builds the package of what is staged below `root`, beside that folder.
pub(super) fn build(
    description: &Description,
    staged: &Path,
    programs: &[PathBuf],
    compression: Compression,
    time: &str,
) -> Result<PathBuf, String> {
    let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
    let architecture = String::from_utf8_lossy(&architecture).trim().to_owned();
    let depends = depends(staged, programs)?;
    // cargo-deb writes this file by itself, so it is not among the assets.
    let copyright = staged.join("usr/share/doc").join(&description.name).join("copyright");
    copy(&description.scripts.join("copyright"), &copyright, 0o644)?;
    let kilobytes = kilobytes(staged)?;
    let about = staged.join("DEBIAN");
    write(&about.join("control"), description.control(&architecture, &depends, kilobytes).as_bytes())?;
    for script in SCRIPTS {
        copy(&description.scripts.join(script), &about.join(script), 0o755)?;
    }
    open_folders(staged)?;
    let name = format!("{}_{}-{REVISION}_{architecture}.deb", description.name, description.version);
    let file = staged.with_file_name(name);
    let compression = match compression {
        Compression::Quick => ["-Zzstd", "-z1"].as_slice(),
        Compression::Small => &["-Zxz"],
    };
    let mut build = Command::new("dpkg-deb");
    build.env("SOURCE_DATE_EPOCH", time).args(["--build", "--root-owner-group"]).args(compression);
    output(build.arg(staged).arg(&file))?;
    Ok(file)
}

/// The packages whose libraries the programs load, as Debian's own tool finds them.
fn depends(staged: &Path, programs: &[PathBuf]) -> Result<String, String> {
    // The tool must run inside a source package.
    let source = staged.with_file_name("source");
    write(&source.join("debian/control"), b"Source: kohort\n\nPackage: kohort\nArchitecture: any\n")?;
    let printed = output(Command::new("dpkg-shlibdeps").arg("-O").args(programs).current_dir(&source))?;
    let printed = String::from_utf8_lossy(&printed);
    let depends = printed.lines().find_map(|line| line.strip_prefix("shlibs:Depends="));
    depends.map(str::to_owned).ok_or_else(|| format!("dpkg-shlibdeps names no packages: {printed}"))
}

/// Lets everybody read all folders, whatever the umask was when they were made.
fn open_folders(folder: &Path) -> Result<(), String> {
    set_mode(folder, 0o755)?;
    for entry in fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
        if path.is_dir() {
            open_folders(&path)?;
        }
    }
    Ok(())
}

/// How much room the staged files take.
fn kilobytes(folder: &Path) -> Result<u64, String> {
    let mut total = 0;
    for entry in fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let entry = entry.map_err(|error| format!("{}: {error}", folder.display()))?;
        let about = entry.metadata().map_err(|error| format!("{}: {error}", entry.path().display()))?;
        total += if about.is_dir() { kilobytes(&entry.path())? } else { about.len().div_ceil(1024) };
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metadata(asset: &Value) -> Value {
        json!({ "packages": [{ "name": "kohort-cli", "version": "1.2.3", "description": "Does `this`", "metadata": { "deb": {
            "name": "kohort", "maintainer": "Somebody", "section": "database", "priority": "optional",
            "suggests": "postgresql-client", "extended-description": "One.\n\nTwo.\n",
            "maintainer-scripts": "../../packaging/debian", "assets": [asset],
        }}}]})
    }

    #[test]
    fn the_control_file_has_every_field_and_no_empty_line() {
        let description = Description::read(&metadata(&json!(["a", "usr/bin/", "755"]))).unwrap();
        assert_eq!(
            description.control("amd64", "libc6", 42),
            "Package: kohort\nVersion: 1.2.3-1\nMaintainer: Somebody\nSection: database\nPriority: optional\n\
             Suggests: postgresql-client\nArchitecture: amd64\nDepends: libc6\nInstalled-Size: 42\n\
             Description: Does this\n One.\n .\n Two.\n"
        );
        assert_eq!(description.assets[0].mode, 0o755);
    }

    #[test]
    fn an_asset_without_a_mode_is_an_error() {
        for broken in [json!(["a", "usr/bin/"]), json!(["a", "usr/bin/", "rwx"]), json!("a")] {
            assert!(Description::read(&metadata(&broken)).is_err(), "{broken}");
        }
    }
}
