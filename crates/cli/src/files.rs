//! Reads files as text: hierarchies, and specs that may come from stdin; writes files that nobody but their owner may read. The library
//! reads tables and writes releases.

use std::fs::OpenOptions;
use std::io::{Read, Write};
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

/// Writes a file that only its owner can read, in place of one of that name.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let write = || -> std::io::Result<()> {
        let mut file = options.open(path)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // A file that was there before may be open to others.
            file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        }
        file.write_all(text.as_bytes())
    };
    write().map_err(|error| kohort::Error::file(path, "written", &error).into())
}
