//! Licences and notices of every crate that is linked into the shipped programs.
//!
//! # Guarantee   a crate whose licence has no text here is an error, so no binary is packaged without it
//! # Order       texts by the first crate that has them, crates by name: the same lock file gives the same bytes

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{PROGRAMS, output};
use crate::command::root;

/// Crates published without the text of their licence, and where the same text is: another crate of the same
/// repository, or our own copy of the Apache License.
const TEXT_ELSEWHERE: [(&str, Elsewhere); 4] = [
    ("alloc-stdlib", Elsewhere::Crate("alloc-no-stdlib")),
    ("arrow-pg", Elsewhere::Apache),
    ("datafusion-pg-catalog", Elsewhere::Apache),
    ("flatbuffers", Elsewhere::Apache),
];

#[derive(Clone, Copy)]
enum Elsewhere {
    Crate(&'static str),
    Apache,
}

const INTRODUCTION: &str = "\
The programs kohort, kohort-sql and kohort-serve contain the crates listed below. Each text applies to the crates that are named
above it. The Rust standard library, which every program contains too, has a file of its own.

SQLite, which is built into kohort-sql and kohort-serve, is in the public domain.
";

/// A crate that is linked into a program.
struct Crate {
    name: String,
    version: String,
    licence: String,
    /// The licences and notices of the crate.
    texts: Vec<String>,
}

/// The notices of all programs as one text.
///
/// # Errors
/// If a crate has no text of its licence.
pub(super) fn notices(metadata: &Value) -> Result<String, String> {
    let linked = linked_crates()?;
    let mut crates = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let [name, version, licence, manifest] =
            ["name", "version", "license", "manifest_path"].map(|key| package[key].as_str().unwrap_or_default());
        // Crates without a source are our own, and LICENSE is theirs.
        if package["source"].is_null() || !linked.contains(&format!("{name} v{version}")) {
            continue;
        }
        let folder = Path::new(manifest).parent().unwrap_or(Path::new(""));
        let mut texts = texts_of(folder)?;
        if texts.is_empty() {
            texts = texts_elsewhere(name, metadata)?;
        }
        if texts.is_empty() {
            let hint = "hint: find where its text is published, and add the crate to TEXT_ELSEWHERE";
            return Err(format!("{name} {version} comes without the text of its licence, {licence}\n{hint}"));
        }
        crates.push(Crate { name: name.into(), version: version.into(), licence: licence.into(), texts });
    }
    if crates.is_empty() {
        return Err("found no crate that is linked into the programs, so the output of cargo was misread".to_owned());
    }
    Ok(render(&crates))
}

/// Names and versions of the crates in the programs, for the system that this compiler builds for. Macros and build
/// scripts run when the programs are built, and are not part of them.
fn linked_crates() -> Result<BTreeSet<String>, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut tree = Command::new(cargo);
    tree.args(["tree", "--locked", "--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"]);
    tree.args(PROGRAMS.iter().flat_map(|(_, package)| ["--package", package])).current_dir(root());
    let printed = output(&mut tree)?;
    let first_two = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    Ok(String::from_utf8_lossy(&printed).lines().map(first_two).collect())
}

/// The notices of the Rust standard library, which come with the compiler.
pub(super) fn of_the_standard_library() -> Result<Vec<u8>, String> {
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]).current_dir(root()))?;
    let path = PathBuf::from(String::from_utf8_lossy(&sysroot).trim()).join("share/doc/rust/COPYRIGHT-library.html");
    fs::read(&path).map_err(|error| format!("{}: {error}\nhint: a compiler installed by rustup has it", path.display()))
}

/// Licences and notices in a crate's folder, and in folders of C code below it.
fn texts_of(folder: &Path) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))? {
            let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if is_notice(&name) {
                found.push(path);
            }
        }
    }
    found.sort();
    let read = |path: &PathBuf| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    found.iter().map(|path| Ok(String::from_utf8_lossy(&read(path)?).into_owned())).collect()
}

fn texts_elsewhere(name: &str, metadata: &Value) -> Result<Vec<String>, String> {
    match TEXT_ELSEWHERE.into_iter().find(|(other, _)| *other == name) {
        None => Ok(Vec::new()),
        Some((_, Elsewhere::Apache)) => {
            let path = root().join("LICENSE");
            Ok(vec![fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?])
        }
        Some((_, Elsewhere::Crate(same))) => {
            let packages = metadata["packages"].as_array().into_iter().flatten();
            let manifest =
                packages.filter(|package| package["name"] == *same).find_map(|p| p["manifest_path"].as_str());
            manifest.and_then(|path| Path::new(path).parent()).map_or_else(|| Ok(Vec::new()), texts_of)
        }
    }
}

/// Whether a file holds a licence or a notice, by its name. Texts of the GPL lie beside libraries that have scripts
/// under it; the scripts are not part of any program.
fn is_notice(name: &str) -> bool {
    let name = name.to_lowercase();
    let is_code =
        [".c", ".h", ".json", ".py", ".rs", ".sh", ".toml", ".yml"].iter().any(|ending| name.ends_with(ending));
    !is_code
        && !name.contains("gpl")
        && ["license", "licence", "unlicense", "copying", "notice", "copyright"]
            .iter()
            .any(|word| name.starts_with(word))
}

/// Each text once, below the crates that have it. Texts that differ in their line breaks only are one text.
fn render(crates: &[Crate]) -> String {
    let mut texts: BTreeMap<String, (BTreeSet<String>, &str)> = BTreeMap::new();
    for linked in crates {
        let line = format!("{} {} ({})", linked.name, linked.version, linked.licence);
        for text in &linked.texts {
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            texts.entry(words).or_insert_with(|| (BTreeSet::new(), text)).0.insert(line.clone());
        }
    }
    let mut texts: Vec<(BTreeSet<String>, &str)> = texts.into_values().collect();
    texts.sort();
    let rule = "=".repeat(100);
    let mut notices = INTRODUCTION.to_owned();
    for (crates, text) in texts {
        let crates: Vec<String> = crates.into_iter().collect();
        notices += &format!("\n{rule}\n{}\n{rule}\n\n", crates.join("\n"));
        notices += &text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
        notices += "\n";
    }
    notices
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linked(name: &str, texts: &[&str]) -> Crate {
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        Crate { name: name.to_owned(), version: "1.0.0".to_owned(), licence: "MIT".to_owned(), texts }
    }

    #[test]
    fn a_text_that_several_crates_share_stands_once_below_all_of_them() {
        let notices = render(&[linked("b", &["MIT\ntext"]), linked("a", &["MIT  text", "Notice of a"])]);
        assert_eq!(notices.matches("text\n").count(), 1);
        let [a, b] = ["a 1.0.0 (MIT)\n", "b 1.0.0 (MIT)\n"].map(|line| notices.rfind(line).unwrap());
        assert!(a < b && notices.contains("Notice of a\n"), "{notices}");
    }

    #[test]
    fn the_order_of_crates_and_texts_does_not_change_the_notices() {
        let [one, two] = [("a", ["x", "y"]), ("b", ["y", "z"])];
        let there = render(&[linked(one.0, &one.1), linked(two.0, &two.1)]);
        let back = render(&[linked(two.0, &["z", "y"]), linked(one.0, &["y", "x"])]);
        assert_eq!(there, back);
    }

    #[test]
    fn licences_are_found_by_their_usual_names() {
        for name in [
            "LICENSE",
            "LICENSE-MIT",
            "license.md",
            "LICENCE.txt",
            "COPYING",
            "NOTICE.txt",
            "UNLICENSE",
            "LICENSE.BSD-3-Clause",
        ] {
            assert!(is_notice(name), "{name}");
        }
        for name in ["license-check.sh", "COPYING.GPLv2", "licences.rs", "README.md"] {
            assert!(!is_notice(name), "{name}");
        }
    }
}
