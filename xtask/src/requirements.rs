//! `Requirement` is matched without a catch-all, so a new one does not compile until every place that treats
//! requirements differently says what it does with it.
//!
//! The compiler asks that of `match` alone, and only where no arm is `_` or a name. So `matches!`, `if let` and
//! `let ... else` on a requirement are refused too, because they treat all requirements that they do not name the same.
//! Code that needs to know something about a requirement calls a method of `Requirement`; these methods are matches
//! without a catch-all. Tests are not checked, because a test may expect one particular requirement.

use std::ops::Range;
use std::path::Path;

use crate::source_files::{read, shown, with_extension};

const ENUM: &str = "Requirement::";

/// Places that would misjudge a new requirement, by file and line.
///
/// # Errors
/// If a file can't be read.
pub(crate) fn complaints(root: &Path) -> Result<Vec<String>, String> {
    let mut complaints = Vec::new();
    for path in with_extension(root, "rs")? {
        let is_test = |part: &str| part == "tests" || part == "tests.rs";
        let place = shown(root, &path);
        if place.split('/').any(is_test) {
            continue;
        }
        for (line, what) in partial_matches(&read(&path)?) {
            complaints.push(format!(
                "{place}:{line}: {what} treats every other Requirement the same: name all of them, or call a method of Requirement"
            ));
        }
    }
    Ok(complaints)
}

/// The lines where a source treats some requirements by name and all others the same way.
fn partial_matches(source: &str) -> Vec<(usize, &'static str)> {
    let code = without_texts(source);
    let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut found: Vec<(usize, &'static str)> = Vec::new();
    for at in words(code, "matches!") {
        let inside = enclosed(code, at + "matches!".len());
        if names(&code[inside]) {
            found.push((at, "`matches!`"));
        }
    }
    for at in words(code, "let") {
        let end = end_of_pattern(code, at);
        if names(&code[at..end]) {
            found.push((at, "`let`"));
        }
    }
    for at in words(code, "match") {
        let patterns = patterns(&code[body(code, at)]);
        let is_of_requirements = patterns.iter().any(|pattern| names(pattern));
        if is_of_requirements && patterns.iter().any(|pattern| !names(pattern) && catches_all(pattern)) {
            found.push((at, "a catch-all of a `match`"));
        }
    }
    let line = |at: usize| code[..at].matches('\n').count() + 1;
    let mut found: Vec<(usize, &'static str)> = found.into_iter().map(|(at, what)| (line(at), what)).collect();
    found.sort_unstable();
    found
}

/// Whether a variant of the enum is named.
fn names(code: &str) -> bool {
    let is_variant = |at: usize| code[at + ENUM.len()..].starts_with(|first: char| first.is_ascii_uppercase());
    code.match_indices(ENUM).any(|(at, _)| starts_word(code, at) && is_variant(at))
}

/// The source with comments and the insides of texts blanked out, byte by byte.
fn without_texts(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut blank = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &source.as_bytes()[at..];
        let end = at
            + match rest {
                [b'/', b'/', ..] => rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len()),
                [b'r', b'#' | b'"', ..] if starts_word(source, at) => raw_text(rest),
                [b'"', ..] => quoted(rest, b'"'),
                // A character, not a lifetime.
                [b'\'', b'\\', ..] => quoted(rest, b'\''),
                [b'\'', _, b'\'', ..] => 3,
                _ => {
                    at += 1;
                    continue;
                }
            };
        for byte in &mut blank[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    String::from_utf8_lossy(&blank).into_owned()
}

/// The length of the quoted text at the start of `rest`, both quotes included.
fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

/// How long a raw text is that starts here; 1 for an identifier such as `r#type`.
fn raw_text(rest: &[u8]) -> usize {
    let n_marks = rest[1..].iter().take_while(|&&byte| byte == b'#').count();
    if rest.get(1 + n_marks) != Some(&b'"') {
        return 1;
    }
    let mut end = vec![b'"'];
    end.resize(1 + n_marks, b'#');
    let inside = &rest[2 + n_marks..];
    let length = inside.windows(end.len()).position(|window| window == end);
    length.map_or(rest.len(), |length| 2 + n_marks + length + end.len())
}

/// The positions at which a word occurs.
fn words<'c>(code: &'c str, word: &'c str) -> impl Iterator<Item = usize> + 'c {
    let ends =
        |at: usize| !code[at + word.len()..].starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_');
    code.match_indices(word).map(|(at, _)| at).filter(move |&at| starts_word(code, at) && ends(at))
}

fn starts_word(code: &str, at: usize) -> bool {
    !code[..at].ends_with(|last: char| last.is_ascii_alphanumeric() || last == '_')
}

/// The code between the next opening bracket and the bracket that closes it.
fn enclosed(code: &str, from: usize) -> Range<usize> {
    let Some(open) = code[from..].find(['(', '[', '{']).map(|open| from + open) else { return from..from };
    let mut depth = 0;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return open + 1..at;
        }
    }
    open + 1..code.len()
}

/// The position at which the pattern of a `let` ends: its `=`, or a `;`.
fn end_of_pattern(code: &str, from: usize) -> usize {
    let bytes = code.as_bytes();
    let mut depth = 0;
    for at in from..bytes.len() {
        match bytes[at] {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b'=' if depth == 0 && bytes[at - 1] != b'.' => return at,
            b';' if depth == 0 => return at,
            _ => {}
        }
        if depth < 0 {
            return at;
        }
    }
    bytes.len()
}

/// The arms of a `match`: the code in the first braces that belong to no argument.
fn body(code: &str, from: usize) -> Range<usize> {
    let mut at = from;
    while let Some(open) = code[at..].find(['(', '[', '{']).map(|open| at + open) {
        let inside = enclosed(code, open);
        if code.as_bytes()[open] == b'{' {
            return inside;
        }
        at = inside.end + 1;
    }
    code.len()..code.len()
}

/// The patterns of a match's arms, without their guards.
fn patterns(arms: &str) -> Vec<&str> {
    let bytes = arms.as_bytes();
    let mut patterns = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'[' | b'{' => at = enclosed(arms, at).end,
            b'=' if bytes.get(at + 1) == Some(&b'>') => {
                let pattern = &arms[start..at];
                patterns.push(pattern.split(" if ").next().unwrap_or_default().trim());
                at = end_of_arm(arms, at + 2);
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    patterns
}

/// The end of the arm whose expression starts at `from`.
fn end_of_arm(arms: &str, from: usize) -> usize {
    let bytes = arms.as_bytes();
    let is_block = arms[from..].trim_start().starts_with('{');
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'[' => at = enclosed(arms, at).end,
            b'{' => {
                at = enclosed(arms, at).end;
                let ends_here = !arms[at + 1..].trim_start().starts_with(['.', '?', ',']);
                if is_block && ends_here {
                    return at;
                }
            }
            b',' => return at,
            _ => {}
        }
        at += 1;
    }
    at
}

/// Whether a pattern matches every value, or every value in one of its places.
fn catches_all(pattern: &str) -> bool {
    let pattern = pattern.trim().trim_start_matches('&');
    let is_name = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    if is_name(pattern) {
        return true;
    }
    let inside = enclosed(pattern, 0);
    let inside = &pattern[inside];
    !inside.contains(['{', '(', '[']) && inside.split([',', '|']).any(|part| is_name(part.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOWHERE: [usize; 0] = [];

    fn lines(source: &str) -> Vec<usize> {
        partial_matches(source).into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn a_match_that_names_every_requirement_passes() {
        assert_eq!(lines("match asked { Requirement::K(k) => Some(k), Requirement::PersonK { .. } => None }"), NOWHERE);
        assert_eq!(
            lines("match (a, b) { (Requirement::K(_), Setting::Whole(_)) => {} (Requirement::L, _) => {} }"),
            NOWHERE
        );
        assert_eq!(lines("let k = Requirement::K(5); let of: Vec<Requirement> = Vec::new();"), NOWHERE);
    }

    #[test]
    fn a_catch_all_is_found_however_it_is_written() {
        assert_eq!(lines("\nmatch asked {\n    Requirement::K(k) => f(k, |x| { x }),\n    _ => 0,\n}"), [2]);
        assert_eq!(lines("match asked { Requirement::K(k) if k > 2 => { 1 } other => 0 }"), [1]);
        assert_eq!(lines("match asked.map(|x| { x }) { Some(Requirement::K(_)) => 1, Some(_) => 2, None => 3 }"), [1]);
        assert_eq!(lines("match (a, b) { (Requirement::K(_), _) => 1, (_, true) => 2 }"), [1]);
        assert_eq!(lines("if matches!(asked, Requirement::K(_)) {}"), [1]);
        assert_eq!(lines("if let Requirement::K(k) = asked {}"), [1]);
        assert_eq!(lines("let Requirement::K(k) = asked else { return };"), [1]);
        assert_eq!(lines("if a && let Some(Requirement::PersonK { column }) = asked {}"), [1]);
    }

    #[test]
    fn code_without_a_pattern_of_a_requirement_passes() {
        assert_eq!(lines("match key { \"l\" => Requirement::K(5), _ => return None }"), NOWHERE);
        assert_eq!(lines("match found { MyRequirement::K(_) => 1, _ => 2 }"), NOWHERE);
        assert_eq!(
            lines("// matches!(asked, Requirement::K(_))\nlet text = \"if let Requirement::K(k) = x\";"),
            NOWHERE
        );
        assert_eq!(
            lines("let a = '\"'; let b = r#\"if let Requirement::K(k) = \"#; let c: &'a str = f('\\'');"),
            NOWHERE
        );
        assert_eq!(lines("#[cfg(test)]\nmod tests {\n    matches!(asked, Requirement::K(_))\n}"), NOWHERE);
        assert_eq!(lines("let all = |asked| asked.len(); let k = [Requirement::K(3)];"), NOWHERE);
    }
}
