//! Checks that relative links in the Markdown files lead to a file or folder that exists, and to a heading in it.
//!
//! Links to the web are not followed, so that the check needs no network.

use std::path::Path;

use crate::source_files::{read, shown, with_extension};

/// Links that lead nowhere, by file and line.
///
/// # Errors
/// If a file can't be read.
pub(crate) fn complaints(root: &Path) -> Result<Vec<String>, String> {
    let mut complaints = Vec::new();
    for path in with_extension(root, "md")? {
        for link in links(&read(&path)?) {
            let place = format!("{}:{}", shown(root, &path), link.line);
            let (file, heading) = link.target.split_once('#').unwrap_or((link.target.as_str(), ""));
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap_or(root).join(file) };
            if !target.exists() {
                complaints.push(format!("{place}: '{}' does not exist", link.target));
            } else if !heading.is_empty() && !anchors(&read(&target)?).iter().any(|anchor| anchor == heading) {
                complaints.push(format!("{place}: '{}' has no heading '#{heading}'", shown(root, &target)));
            }
        }
    }
    Ok(complaints)
}

struct Link {
    line: usize,
    target: String,
}

/// Relative links of a Markdown text: `[words](target)` and `[words]: target`, outside of code.
fn links(markdown: &str) -> Vec<Link> {
    let mut links = Vec::new();
    for (line, prose) in prose_lines(markdown) {
        let mut targets: Vec<&str> = Vec::new();
        for (at, _) in prose.match_indices("](") {
            let rest = &prose[at + 2..];
            targets.extend(rest.split_once(')').map(|(target, _)| target));
        }
        if prose.starts_with('[') {
            targets.extend(prose.split_once("]: ").map(|(_, target)| target.trim()));
        }
        let relative = targets.into_iter().filter(|target| !target.contains("://") && !target.starts_with("mailto:"));
        links.extend(relative.map(|target| Link { line, target: target.to_owned() }));
    }
    links
}

/// Lines outside of fenced blocks, numbered from 1, their inline code blanked.
fn prose_lines(markdown: &str) -> Vec<(usize, String)> {
    let mut in_fence = false;
    let mut lines = Vec::new();
    for (index, line) in markdown.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        } else if !in_fence {
            let outside_code = line.split('`').enumerate().map(|(part, text)| if part % 2 == 0 { text } else { "" });
            lines.push((index + 1, outside_code.collect()));
        }
    }
    lines
}

/// The anchors that hosts of Git repositories give to headings.
fn anchors(markdown: &str) -> Vec<String> {
    let mut in_fence = false;
    let mut anchors = Vec::new();
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        } else if !in_fence && line.starts_with('#') {
            let heading = line.trim_start_matches('#').trim().to_lowercase();
            let kept = heading.chars().filter(|&letter| letter.is_alphanumeric() || " -_".contains(letter));
            anchors.push(kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect());
        }
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(markdown: &str) -> Vec<String> {
        links(markdown).into_iter().map(|link| link.target).collect()
    }

    #[test]
    fn both_kinds_of_links_are_found() {
        assert_eq!(targets("see [a](a.md) and [b](b.md#c)\n[d]: docs/d.md"), ["a.md", "b.md#c", "docs/d.md"]);
    }

    #[test]
    fn links_to_the_web_are_left_alone() {
        assert_eq!(targets("[a](https://example.org/a.md) [b](mailto:b@example.org)"), Vec::<String>::new());
    }

    #[test]
    fn code_holds_no_links() {
        assert_eq!(targets("`[a](b)` and [c](d)\n```\n[e](f)\n```\n[g](h)"), ["d", "h"]);
    }

    #[test]
    fn a_link_knows_its_line() {
        assert_eq!(links("\n\n[a](b)")[0].line, 3);
    }

    #[test]
    fn headings_become_anchors() {
        assert_eq!(anchors("# What it's for\n## `k`, per person\n```\n# no\n```"), ["what-its-for", "k-per-person"]);
    }
}
