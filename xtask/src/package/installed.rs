//! Tries the Debian package: dpkg installs it into an empty folder, and the installed programs do what the documents
//! promise.
//!
//! `--root` keeps dpkg's database and every file in the folder. The package's scripts run outside of a chroot, because
//! the folder has no shell; they find the folder in DPKG_ROOT. Only giving folders to the user kohort needs root; if
//! another user runs this check, fakeroot pretends to do it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{PROGRAMS, output, printed, remove, run_to_end, write};

/// The highest exposure that the service may have, on the scale of `systemd-analyze security` from 0 (safe) to 10,
/// times 10.
const EXPOSURE: &str = "20";

/// Installs the package into a folder, which is emptied first, and uses it.
pub(super) fn check(package: &Path, folder: &Path) -> Result<(), String> {
    remove(folder)?;
    install(package, folder)?;
    let programs = folder.join("usr/bin");
    for (program, _) in PROGRAMS {
        let printed = output(Command::new(programs.join(program)).arg("--version"))?;
        expect(program, &String::from_utf8_lossy(&printed), &[&format!("{program} {}", env!("CARGO_PKG_VERSION"))])?;
    }
    release_the_clinic(folder)?;
    configure_the_server(folder)?;
    check_the_unit(folder)?;
    println!("{} was installed into {} and used", package.display(), folder.display());
    Ok(())
}

/// Checks that the archive has exactly the files that dpkg installed.
pub(super) fn check_archive(archive: &Path, folder: &Path) -> Result<(), String> {
    let listed = output(Command::new("tar").arg("--list").arg("--file").arg(archive))?;
    let listed = String::from_utf8_lossy(&listed);
    let below_the_first = |line: &str| Some(line.split_once('/')?.1.trim_end_matches('/').to_owned());
    let archived: BTreeSet<String> =
        listed.lines().filter_map(below_the_first).filter(|path| !path.is_empty()).collect();
    let installed = read(&folder.join("var/lib/dpkg/info/kohort.list"))?;
    let installed: BTreeSet<String> =
        installed.lines().filter(|line| *line != "/.").map(|line| line.trim_start_matches('/').to_owned()).collect();
    match archived.symmetric_difference(&installed).next() {
        None => Ok(()),
        Some(path) => Err(format!("{path} is only in one of {} and the Debian package", archive.display())),
    }
}

fn install(package: &Path, folder: &Path) -> Result<(), String> {
    for part in ["etc", "tmp", "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "var/log"] {
        let path = folder.join(part);
        fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    write(&folder.join("var/lib/dpkg/status"), b"")?;
    let is_root = output(Command::new("id").arg("--user"))? == b"0\n";
    let mut dpkg = Command::new(if is_root { "dpkg" } else { "fakeroot" });
    if !is_root {
        dpkg.arg("dpkg");
    }
    dpkg.arg(format!("--root={}", folder.display())).arg(format!("--log={}/var/log/dpkg.log", folder.display()));
    // The folder lacks libc and everything else the package depends on; the programs use what this machine has.
    dpkg.args(["--force-not-root", "--force-script-chrootless", "--force-depends", "--force-bad-path"]);
    output(dpkg.arg("--install").arg(package))?;

    let users = read(&folder.join("etc/passwd"))?;
    let user = users.lines().find(|line| line.starts_with("kohort:")).unwrap_or_default();
    expect("the user kohort", user, &["/var/lib/kohort:", "nologin"])?;
    for path in ["etc/kohort", "var/lib/kohort", "var/log/kohort"] {
        let mut entries = fs::read_dir(folder.join(path)).map_err(|error| format!("/{path}: {error}"))?;
        if entries.next().is_some() {
            return Err(format!(
                "/{path} is not empty, although the package must install no configuration, data or log"
            ));
        }
    }
    Ok(())
}

/// Runs the two commands of the README with the installed program, and checks that a changed release is rejected.
fn release_the_clinic(folder: &Path) -> Result<(), String> {
    let kohort = folder.join("usr/bin/kohort");
    let release = folder.join("tmp/clinic-release");
    let release_name = release.display().to_string();
    let spec = folder.join("usr/share/doc/kohort/examples/clinic/release.toml");
    let anonymized = run_to_end(Command::new(&kohort).arg("anonymize").arg(&spec).args(["-o", &release_name]))?;
    let verified = run_to_end(Command::new(&kohort).args(["verify", &release_name]))?;
    for (what, output, line) in [
        ("kohort anonymize", anonymized, "persons          5000 in, 5000 released"),
        ("kohort verify", verified, "verified         in part: what was counted, from the released files alone"),
    ] {
        expect(what, &printed(&output), &[line])?;
    }
    let table = release.join("patients.csv");
    let (header, rows) = read(&table)?.split_once('\n').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap_or_default();
    let (_, others) = rows.split_once('\n').unwrap_or_default();
    write(&table, format!("{header}\n{others}").as_bytes())?;
    match output(Command::new(&kohort).args(["verify", &release_name])) {
        Ok(_) => Err("kohort verify accepts a release that lacks a row".to_owned()),
        Err(message) => expect("kohort verify of a release that lacks a row", &message, &["exit status: 1"]),
    }
}

/// Checks that the example configuration is valid, and that the server does not start with it before there is an owner.
fn configure_the_server(folder: &Path) -> Result<(), String> {
    let example = read(&folder.join("usr/share/doc/kohort/examples/kohort-serve.toml"))?;
    let mut here = example.clone();
    for path in ["/var/lib/kohort", "/var/log/kohort"] {
        here = here.replace(&format!("\"{path}"), &format!("\"{}{path}", folder.display()));
    }
    if here == example {
        return Err("the example configuration names neither /var/lib/kohort nor /var/log/kohort".to_owned());
    }
    let configuration = folder.join("etc/kohort/kohort-serve.toml");
    write(&configuration, here.as_bytes())?;
    let serve = || {
        let mut serve = Command::new(folder.join("usr/bin/kohort"));
        serve.args(["serve", "--config"]).arg(&configuration);
        serve
    };
    output(serve().arg("--check-config"))?;
    match output(serve().stdin(Stdio::null())) {
        Ok(_) => Err("kohort-serve starts without an owner".to_owned()),
        Err(message) => expect("kohort-serve without an owner", &message, &["there is no owner", "--create-owner"]),
    }
}

/// Checks that systemd understands the unit and finds its program, and that the sandbox is strict enough.
fn check_the_unit(folder: &Path) -> Result<(), String> {
    let unit = "usr/lib/systemd/system/kohort-serve.service";
    let text = read(&folder.join(unit))?;
    // systemd looks the program up on this machine, where it is not installed.
    let here = text.replace("=/usr/bin/", &format!("={}/usr/bin/", folder.display()));
    let copy = folder.join("tmp/kohort-serve.service");
    write(&copy, here.as_bytes())?;
    // The man page is not installed on this machine either.
    output(Command::new("systemd-analyze").args(["verify", "--man=no", "--recursive-errors=no"]).arg(&copy))?;
    let threshold = format!("--threshold={EXPOSURE}");
    output(Command::new("systemd-analyze").args(["security", "--offline=true", &threshold]).arg(&copy))?;
    for line in ["ConditionPathExists=/etc/kohort/kohort-serve.toml", "User=kohort", "NoNewPrivileges=yes"] {
        expect("the unit", &text, &[line])?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn expect(what: &str, printed: &str, wanted: &[&str]) -> Result<(), String> {
    match wanted.iter().find(|text| !printed.contains(*text)) {
        None => Ok(()),
        Some(missing) => Err(format!("{what}: '{missing}' is missing from\n{printed}")),
    }
}
