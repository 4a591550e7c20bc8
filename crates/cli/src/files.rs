//! Reads files as text: hierarchies, and specs that may come from stdin. The library reads tables.

use std::io::Read;
use std::path::Path;

use crate::failure::Failure;

/// The text of a file. `-` is stdin.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    let text = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    text.map_err(|error| kohort::Error::file(path, "read", &error).into())
}
