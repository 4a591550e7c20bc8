//! Attacks on A-views that need SQL. They are `.slt` files of `kohort-sql` and run with its tests.
//!
//! The catalogue has no query engine, so it reads what each file says about itself, and counts the statements that
//! analysts send. Tests of `kohort-sql` compare these counts with what was run, and tests of `kohort-server` run the
//! same files over the wire.

use std::path::{Path, PathBuf};

/// One attack, in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statements {
    /// The file's name without its ending, which names the attack.
    pub name: String,
    /// What the attacker wants.
    pub wanted: String,
    /// Why the attack fails, or when it does not.
    pub fails: String,
    /// How many statements analysts send.
    pub n_sent: usize,
}

/// The folder of the files.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../sql/tests/attacks")
}

/// All attacks that need SQL, sorted by name.
///
/// # Panics
/// If a file can't be read, or does not start with what is wanted and why that fails.
pub fn statements() -> Vec<Statements> {
    let files = std::fs::read_dir(folder()).expect("the tests of kohort-sql are in the workspace");
    let mut paths: Vec<PathBuf> = files.map(|entry| entry.expect("the folder can be listed").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "slt"));
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Statements {
    let text = std::fs::read_to_string(path).expect("the file can be read");
    let name = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
    let included = |file: &str| {
        let path = path.parent().expect("it is in a folder").join(file);
        std::fs::read_to_string(path).expect("an included file can be read")
    };
    Statements::parse(&name, &text, &included)
        .unwrap_or_else(|| panic!("{name}.slt does not say what is wanted and why it fails"))
}

impl Statements {
    fn parse(name: &str, text: &str, included: &dyn Fn(&str) -> String) -> Option<Statements> {
        let header = text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim).collect::<Vec<_>>().join(" ");
        let (wanted, fails) = header.strip_prefix("Wanted: ")?.split_once(" Fails: ")?;
        let n_sent = n_sent(text, included);
        Some(Statements { name: name.to_owned(), wanted: wanted.to_owned(), fails: fails.to_owned(), n_sent })
    }
}

/// How many records of a file, and of the files that it includes, are sent by analysts. A `connection` line makes the
/// next record an analyst's; records without one are the owner's.
fn n_sent(text: &str, included: &dyn Fn(&str) -> String) -> usize {
    let in_line = |line: &str| match line.split_once(' ') {
        Some(("connection", _)) => 1,
        Some(("include", file)) => n_sent(&included(file), included),
        _ => 0,
    };
    text.lines().map(in_line).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_what_is_wanted_and_its_analysts_statements_count() {
        let text = "# Wanted: an illness,\n#   by subtracting.\n# Fails: classes answer as wholes.\n\ninclude tables.slt\n\n\
                    statement ok\nCREATE TABLE t\n\nconnection analyst\nquery\nSELECT 1\n----\n1\n\n\
                    connection other\nstatement error\nx\n";
        let included = |file: &str| {
            assert_eq!(file, "tables.slt");
            "connection analyst\nstatement ok\nSET PURPOSE 'care'\n".to_owned()
        };
        let read = Statements::parse("subtraction", text, &included).unwrap();
        assert_eq!(read.wanted, "an illness, by subtracting.");
        assert_eq!((read.fails.as_str(), read.n_sent), ("classes answer as wholes.", 3));
        assert_eq!(Statements::parse("silent", "# Something else\n", &included), None);
    }

    #[test]
    fn every_file_of_the_folder_is_read_and_sends_something() {
        let all = statements();
        assert!(!all.is_empty());
        assert!(all.iter().all(|file| file.n_sent > 0), "{all:?}");
    }
}
