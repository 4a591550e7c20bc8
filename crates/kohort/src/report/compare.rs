//! [`check_documents`]: whether the documents of a release folder are those of its release.

use std::fs;
use std::path::Path;

use kohort_io::DOCUMENTS;
use kohort_model::Table;
use serde_json::Value;

use super::{Documents, ReleasedRows};
use crate::error::{Error, Report};
use crate::verification::Verification;

/// What is wrong with the documents of a release, and what could not be compared.
#[derive(Default)]
pub(crate) struct DocumentFindings {
    pub(crate) wrong: Vec<Report>,
    pub(crate) not_compared: Vec<String>,
}

/// The documents that are in the folder. Those of other versions may say the same in other words, so they are not compared.
pub(crate) fn check_documents(
    release: &Path,
    verification: &Verification,
    tables: &[Table],
    rows: ReleasedRows<'_>,
) -> Result<DocumentFindings, Error> {
    let mut found = DocumentFindings::default();
    let written = written_documents(release)?;
    if written.is_empty() {
        return Ok(found);
    }
    let names: Vec<String> = written.iter().map(|(name, _)| (*name).to_owned()).collect();
    if let Some((_, report)) = written.iter().find(|(name, _)| *name == "report.json")
        && let Some(version) = version_of(report)
        && version != env!("CARGO_PKG_VERSION")
    {
        found.not_compared.push(format!(
            "{} can't be compared, because kohort {version} made them; make them anew with `kohort report`",
            super::words::listed(&names)
        ));
        return Ok(found);
    }
    let expected = Documents::of_rows(verification, tables, rows)?;
    for (name, text) in written {
        let Some((_, expected)) = expected.files.iter().find(|(known, _)| *known == name) else { continue };
        if let Some(place) = difference(&text, expected.as_bytes()) {
            let message = format!("{name} does not say what the release shows{place}");
            found.wrong.push(Report::new(message).hint("don't trust it; `kohort report` makes it anew"));
        }
    }
    Ok(found)
}

/// The documents that are in the folder.
pub(crate) fn written_documents(release: &Path) -> Result<Vec<(&'static str, Vec<u8>)>, Error> {
    let mut written = Vec::new();
    for name in DOCUMENTS {
        let path = release.join(name);
        match fs::read(&path) {
            Ok(bytes) => written.push((name, bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::file(&path, "read", &error)),
        }
    }
    Ok(written)
}

/// Says that the documents of a release can't be compared, because its columns don't fit into memory; `None` without documents.
pub(crate) fn not_compared_in_parts(release: &Path) -> Result<Option<String>, Error> {
    let names: Vec<String> = written_documents(release)?.into_iter().map(|(name, _)| name.to_owned()).collect();
    let text = || format!("{} can't be compared in parts; verify without a limit on memory", names.join(", "));
    Ok((!names.is_empty()).then(text))
}

/// The version of kohort that made a report; `None` if these bytes are no report.
fn version_of(report: &[u8]) -> Option<String> {
    let report: Value = serde_json::from_slice(report).ok()?;
    report.get("kohort")?.as_str().map(str::to_owned)
}

/// Where two documents differ, in words that follow on a sentence. Fractions of JSON may differ in their last digits, because
/// computers do not agree on these.
fn difference(written: &[u8], expected: &[u8]) -> Option<String> {
    if written == expected {
        return None;
    }
    match (serde_json::from_slice::<Value>(written), serde_json::from_slice::<Value>(expected)) {
        (Ok(written), Ok(expected)) => {
            let key = differing_key(&written, &expected, "")?;
            Some(format!(": the key '{key}' differs"))
        }
        _ => Some(String::new()),
    }
}

/// The first key by which two JSON values differ.
fn differing_key(written: &Value, expected: &Value, path: &str) -> Option<String> {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match (written, expected) {
        (Value::Object(written), Value::Object(expected)) => {
            let missing = expected.keys().find(|key| !written.contains_key(*key)).map(|key| below(key));
            let different = || {
                written.iter().find_map(|(key, value)| match expected.get(key) {
                    Some(expected) => differing_key(value, expected, &below(key)),
                    None => Some(below(key)),
                })
            };
            missing.or_else(different)
        }
        (Value::Array(written), Value::Array(expected)) if written.len() == expected.len() => {
            let mut pairs = written.iter().zip(expected).enumerate();
            pairs.find_map(|(position, (written, expected))| {
                differing_key(written, expected, &below(&position.to_string()))
            })
        }
        (Value::Number(written), Value::Number(expected)) => {
            let is_same = match (written.as_f64(), expected.as_f64()) {
                _ if written == expected => true,
                (Some(a), Some(b)) if written.is_f64() && expected.is_f64() => (a - b).abs() <= 1e-9 * b.abs(),
                _ => false,
            };
            (!is_same).then(|| path.to_owned())
        }
        (written, expected) => (written != expected).then(|| path.to_owned()),
    }
}

/// Whether a version is newer than another. A version that can't be read is newer.
pub(super) fn is_newer(version: &str, own: &str) -> bool {
    let numbers = |version: &str| -> Option<Vec<u64>> {
        let numbers = version.split(['-', '+']).next().unwrap_or_default();
        numbers.split('.').map(|number| number.parse().ok()).collect()
    };
    match (numbers(version), numbers(own)) {
        (Some(version), Some(own)) => version > own,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for (version, newer) in [("0.1.0", false), ("0.0.9", false), ("0.10.0", true), ("1.0.0", true), ("x", true)] {
            assert_eq!(is_newer(version, "0.9.0"), newer, "{version}");
        }
    }

    #[test]
    fn a_difference_is_named_by_its_key_and_never_by_a_value() {
        let differ = |a: &str, b: &str| difference(a.as_bytes(), b.as_bytes());
        assert_eq!(differ("{\"a\": 1}", "{\"a\":1}"), None, "the same JSON in another layout");
        assert_eq!(differ("{\"a\": 0.30000000000000004}", "{\"a\": 0.3}"), None);
        assert_eq!(differ("{\"a\": 2}", "{\"a\": 3}").unwrap(), ": the key 'a' differs");
        assert_eq!(
            differ("{\"a\": [{\"b\": \"x\"}]}", "{\"a\": [{\"b\": \"y\"}]}").unwrap(),
            ": the key 'a.0.b' differs"
        );
        assert_eq!(differ("{}", "{\"a\": 3}").unwrap(), ": the key 'a' differs");
        assert_eq!(differ("{\"b\": 1}", "{}").unwrap(), ": the key 'b' differs");
        assert_eq!(differ("text", "other").unwrap(), "");
    }
}
