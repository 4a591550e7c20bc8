//! Specs and hierarchies as text. Tables are read by `kohort-io` alone.

use std::io::Read;
use std::path::Path;

use kohort_model::Spec;

use crate::failure::Failure;

/// The text of a file, `-` being stdin.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    let text = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    text.map_err(|error| Failure::file(path, "read", &error))
}

/// The spec in a file, or all its problems.
pub(crate) fn read_spec(path: &Path) -> Result<Spec, Failure> {
    Spec::parse(&read_text(path)?).map_err(|problems| Failure::spec(path, &problems))
}

/// The folder a spec's paths start from.
pub(crate) fn folder_of(spec: &Path) -> &Path {
    spec.parent().unwrap_or(Path::new(""))
}
