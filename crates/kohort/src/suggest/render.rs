//! Suggestions as a spec file.

use std::fmt::Write as _;
use std::path::Path;

use super::{Setting, Suggestion, Suggestions};

const HEADER: &str = "\
# A spec to begin with, suggested from the content and the names of columns. Go through it line by line: only you can tell
# what others could know about the people in this table. Then run it:
#
#     kohort anonymize release.toml -o release
#
# Roles: identifier (names a person outright; never released), quasi (others could know it; generalized until k persons look
# the same), sensitive (nobody should learn it; released as it is, under requirements), plain (helps nobody to find a
# person; released as it is), key (tells persons or rows apart), drop (not released). In doubt: quasi, or drop.
#
# Bits say how well a column tells people apart: with b bits about one in 2^b has the same value.

# How many persons must look the same. There is no default and no suggestion: the larger k, the safer and the coarser
# the release. 5 is common, health agencies ask for 11 or 12. This spec does not run before k is set.
# k =
";

impl Suggestions {
    /// A spec to begin with, with the reasons as comments. It does not run before its reader has set k. The path of the file
    /// must be UTF-8.
    pub fn to_toml(&self, file: impl AsRef<Path>) -> String {
        let mut text = HEADER.to_owned();
        let name = key(&self.table);
        let file = quoted(&file.as_ref().to_string_lossy());
        write!(text, "\n[tables.{name}]\nfile = {file}\n").expect("writing to a string can't fail");
        for Setting { key, value, reason } in &self.settings {
            writeln!(text, "{key} = {value}  # {reason}").expect("writing to a string can't fail");
        }
        match &self.person {
            Some((person, why)) => {
                writeln!(text, "person = {}  # {why}", quoted(person)).expect("writing to a string can't fail");
            }
            None => text += "# person = \"\"  # no column seems to name the person, so each row counts as one\n",
        }
        write!(text, "\n[tables.{name}.columns]\n").expect("writing to a string can't fail");
        for suggestion in &self.columns {
            writeln!(text, "# {}\n{} = {}", suggestion.reason, key(&suggestion.name), value(suggestion))
                .expect("writing to a string can't fail");
        }
        text
    }
}

fn value(suggestion: &Suggestion) -> String {
    let role = format!("\"{}\"", suggestion.role);
    if suggestion.settings.is_empty() {
        return role;
    }
    let settings: Vec<String> = suggestion.settings.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    format!("{{ role = {role}, {} }}", settings.join(", "))
}

/// A TOML key, in quotes if it needs them.
fn key(name: &str) -> String {
    let is_bare = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if is_bare { name.to_owned() } else { quoted(name) }
}

/// A TOML text on one line.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            c if c.is_control() => quoted += &format!("\\u{:04X}", c as u32),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_is_a_toml_key() {
        for name in ["age", "date of birth", "a\"b", "a\\b", "", "é", "a\nb"] {
            let parsed: toml::Table = format!("{} = {}", key(name), quoted(name)).parse().unwrap();
            assert_eq!(parsed[name].as_str(), Some(name));
        }
    }
}
