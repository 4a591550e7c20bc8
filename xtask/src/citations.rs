//! Checks that citation keys in the comments of the code, such as `[LDR06]`, are listed in `docs/papers.md`.

use std::collections::BTreeSet;
use std::path::Path;

use crate::source_files::{read, shown, with_extension};

/// Keys that `docs/papers.md` does not explain, by file and line.
///
/// # Errors
/// If a file can't be read.
pub(crate) fn complaints(root: &Path) -> Result<Vec<String>, String> {
    let papers = read(&root.join("docs/papers.md"))?;
    let known: BTreeSet<&str> = papers.lines().flat_map(bracketed).filter(|text| is_key(text)).collect();
    let mut complaints = Vec::new();
    for path in with_extension(root, "rs")? {
        for (line, key) in citations(&read(&path)?) {
            if !known.contains(key) {
                complaints.push(format!("{}:{line}: [{key}] is not in docs/papers.md", shown(root, &path)));
            }
        }
    }
    Ok(complaints)
}

/// The keys that the comments of a source file cite, with line numbers. In a header's section `Paper`, every text in
/// brackets must be a key.
fn citations(source: &str) -> Vec<(usize, &str)> {
    let mut citations = Vec::new();
    let mut names_paper = false;
    for (index, line) in source.lines().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            names_paper = false;
            continue;
        };
        if let Some(heading) = comment.strip_prefix("! #") {
            names_paper = heading.trim_start().starts_with("Paper");
        }
        let cited = bracketed(comment).into_iter().filter(|text| names_paper || is_key(text));
        citations.extend(cited.map(|key| (index + 1, key)));
    }
    citations
}

/// The texts in brackets. Rustdoc wants some brackets escaped, so a backslash at the end is removed.
fn bracketed(text: &str) -> Vec<&str> {
    let openings = text.split('[').skip(1);
    openings.filter_map(|rest| rest.split_once(']')).map(|(inside, _)| inside.trim_end_matches('\\')).collect()
}

/// Whether this has the form of a key: letters or `+`, beginning with a capital letter, then two digits and perhaps a
/// lower-case letter.
fn is_key(text: &str) -> bool {
    let text = text.strip_suffix(|last: char| last.is_ascii_lowercase()).unwrap_or(text);
    let letters = text.trim_end_matches(|letter: char| letter.is_ascii_digit());
    text.len() == letters.len() + 2
        && letters.len() >= 2
        && letters.starts_with(|first: char| first.is_ascii_uppercase())
        && letters.chars().all(|letter| letter.is_ascii_alphabetic() || letter == '+')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_from_other_brackets() {
        let comment = "/// see [LDR06], [XWP+06] and [Swe02b]; [`Mondrian`], [Table], [20,29], [u32; 6]";
        assert_eq!(citations(comment), [(1, "LDR06"), (1, "XWP+06"), (1, "Swe02b")]);
    }

    #[test]
    fn escaped_brackets_cite_too() {
        assert_eq!(citations("//! | DM \\[BA05\\] |"), [(1, "BA05")]);
    }

    #[test]
    fn a_header_names_its_paper_by_keys_alone() {
        let header = "//! # Paper\n//! [LDR06]; in [Other]\n//! # Cost\n//! of [Sorting]";
        assert_eq!(citations(header), [(2, "LDR06"), (2, "Other")]);
    }

    #[test]
    fn only_comments_cite() {
        assert_eq!(citations("let cited = text[AB01];"), []);
    }
}
