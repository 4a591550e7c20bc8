//! Files that are made for the package: the programs' own man pages and completions, and the notices.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{notices, output, write};

/// A program, the arguments with which it prints a file, and that file's name.
type Printed = (&'static str, &'static [&'static str], &'static str);

/// Every man page and every completion. A name that ends with `/` is a folder that the program fills; the folder is
/// then its last argument. The assets in `crates/cli/Cargo.toml` say where the files are installed.
const PRINTED: [Printed; 12] = [
    ("kohort", &["man", "-o"], "man1/"),
    ("kohort-sql", &["man"], "man1/kohort-sql.1"),
    ("kohort-serve", &["--man"], "man1/kohort-serve.1"),
    ("kohort", &["completions", "bash"], "bash/kohort"),
    ("kohort", &["completions", "zsh"], "zsh/_kohort"),
    ("kohort", &["completions", "fish"], "fish/kohort.fish"),
    ("kohort-sql", &["completions", "bash"], "bash/kohort-sql"),
    ("kohort-sql", &["completions", "zsh"], "zsh/_kohort-sql"),
    ("kohort-sql", &["completions", "fish"], "fish/kohort-sql.fish"),
    ("kohort-serve", &["--completions", "bash"], "bash/kohort-serve"),
    ("kohort-serve", &["--completions", "zsh"], "zsh/_kohort-serve"),
    ("kohort-serve", &["--completions", "fish"], "fish/kohort-serve.fish"),
];

/// Man pages, which Debian wants compressed.
const MAN_PAGES: &str = "man1";

/// Writes all of them into a folder.
pub(super) fn generate(programs: &Path, folder: &Path, metadata: &Value) -> Result<(), String> {
    for (program, arguments, name) in PRINTED {
        print(Command::new(programs.join(program)).args(arguments), folder, name)?;
    }
    compress(&folder.join(MAN_PAGES))?;
    for (name, text) in [
        ("doc/THIRD-PARTY-NOTICES.txt", notices::notices(metadata)?.into_bytes()),
        ("doc/rust-standard-library.html", notices::of_the_standard_library()?),
    ] {
        write(&folder.join(name), &text)?;
    }
    compress(&folder.join("doc"))
}

/// Lets a program print a file of a folder, or fill a folder below it.
fn print(command: &mut Command, folder: &Path, name: &str) -> Result<(), String> {
    let path = folder.join(name);
    if name.ends_with('/') {
        fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        return output(command.arg(path)).map(drop);
    }
    match output(command)? {
        printed if printed.is_empty() => Err(format!("{command:?} printed nothing")),
        printed => write(&path, &printed),
    }
}

/// Compresses the files of a folder in place, without their names and times, so that the same text gives the same
/// bytes.
fn compress(folder: &Path) -> Result<(), String> {
    output(Command::new("gzip").args(["-9n", "--force", "--recursive"]).arg(folder)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_prints_a_file_or_fills_a_folder() {
        let folder = std::env::temp_dir().join(format!("kohort-package-{}", std::process::id()));
        print(Command::new("echo").arg("text"), &folder, "man1/a.1").unwrap();
        print(Command::new("cp").arg(folder.join("man1/a.1")), &folder, "more/").unwrap();
        assert_eq!(fs::read(folder.join("more/a.1")).unwrap(), b"text\n");
        compress(&folder.join("more")).unwrap();
        assert!(folder.join("more/a.1.gz").is_file() && !folder.join("more/a.1").exists());
        let nothing = print(&mut Command::new("true"), &folder, "man1/b.1");
        fs::remove_dir_all(&folder).unwrap();
        assert!(nothing.unwrap_err().ends_with("printed nothing"));
    }
}
