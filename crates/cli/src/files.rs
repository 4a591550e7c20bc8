//! Hierarchies as text. Specs and tables are read by the library.

use std::io::Read;
use std::path::Path;

use crate::failure::Failure;

/// The text of a file, `-` being stdin.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    let text = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    text.map_err(|error| kohort::Error::file(path, "read", &error).into())
}
