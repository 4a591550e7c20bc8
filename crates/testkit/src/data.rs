//! Where data for tests lies: the goldens beside this crate, the real data wherever the machine has it.
//!
//! Real data is not part of the project. It is found by the variable `KOHORT_DATA`, or in `../shared/data` beside the
//! workspace. A test that needs it says that it is absent and passes; no other test may do so.

use std::path::{Path, PathBuf};

use kohort_model::{Hierarchy, Silent, Table};

/// The folder of one worked example.
pub fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(name)
}

/// A file of the real data, such as `adult/adult.csv`. Where it is absent that is printed.
pub fn real(file: &str) -> Option<PathBuf> {
    let folder = match std::env::var_os("KOHORT_DATA") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    };
    let path = folder.join(file);
    if path.exists() {
        return Some(path);
    }
    println!("absent: {file} of the real data (set KOHORT_DATA to its folder); what needs it was not tested");
    None
}

/// A whole file as text columns without roles of note.
///
/// # Panics
/// Where the file can't be read.
pub fn read(path: &Path) -> Table {
    match kohort_io::read_for_check(path, &kohort_io::CheckOptions::default(), &Silent) {
        Ok(table) => table,
        Err(problems) => panic!("{}: {problems}", path.display()),
    }
}

/// A hierarchy file of paths.
///
/// # Panics
/// Where the file can't be read.
pub fn hierarchy(path: &Path) -> Hierarchy {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Hierarchy::from_paths(&text).unwrap_or_else(|problems| panic!("{}: {problems}", path.display()))
}
