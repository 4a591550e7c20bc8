//! Where test data is: the worked examples beside this crate, and the real data wherever the machine has it.
//!
//! Real data is not part of the project. The variable `KOHORT_DATA` names its folder; without it, `../shared/data`
//! beside the workspace is used. A test that needs real data passes without it, and prints that the data are absent. No
//! other test may pass without doing its work.

use std::path::{Path, PathBuf};

use kohort_model::{Hierarchy, Silent, Table};

/// The folder of one worked example.
pub fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(name)
}

/// A file of the real data, such as `adult/adult.csv`; `None` if it is absent, which is also printed.
pub fn real(file: &str) -> Option<PathBuf> {
    let folder = match std::env::var_os("KOHORT_DATA") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    };
    let path = folder.join(file);
    if path.exists() {
        return Some(path);
    }
    println!("absent: {file} of the real data (set KOHORT_DATA to its folder); tests that need it did nothing");
    None
}

/// Reads a whole file. All columns are text, and their roles don't matter.
///
/// # Panics
/// If the file can't be read.
pub fn read(path: &Path) -> Table {
    match kohort_io::read_for_check(path, &kohort_io::CheckOptions::default(), &Silent) {
        Ok(table) => table,
        Err(problems) => panic!("{}: {problems}", path.display()),
    }
}

/// A hierarchy file of paths.
///
/// # Panics
/// If the file can't be read.
pub fn hierarchy(path: &Path) -> Hierarchy {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Hierarchy::from_paths(&text).unwrap_or_else(|problems| panic!("{}: {problems}", path.display()))
}
