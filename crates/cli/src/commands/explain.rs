//! `kohort explain`: explains a word of the glossary, or lists all of them.

use clap::Args;

use crate::failure::Failure;
use crate::{glossary, terminal};

const EXAMPLES: &str = "\
Examples:
  kohort explain
  kohort explain l-diversity";

/// Explain a word: k, quasi, l-diversity, t-closeness, ...
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Explain {
    /// The word; without it all words are listed
    term: Vec<String>,
}

const WIDTH: usize = 100;
const INDENT: usize = 15;

impl Explain {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let term = self.term.join(" ");
        if term.is_empty() {
            return terminal::print(&list());
        }
        match glossary::find(&term) {
            Some(entry) => terminal::print(&format!("{}\n", entry.text)),
            None => {
                let words: Vec<&str> = glossary::ENTRIES.iter().map(|entry| entry.names[0]).collect();
                Err(Failure::input(format!("no explanation of '{term}'"), format!("known: {}", words.join(", "))))
            }
        }
    }
}

/// Each word with the first sentence of its text.
fn list() -> String {
    let mut shown = String::new();
    for entry in glossary::ENTRIES {
        let text = entry.text.replace('\n', " ");
        let end = text.find(". ").map_or(text.len(), |end| end + 1);
        let mut lines = wrap(&text[..end]).into_iter();
        shown += &format!("{:<INDENT$}{}\n", entry.names[0], lines.next().unwrap_or_default());
        for line in lines {
            shown += &format!("{:<INDENT$}{line}\n", "");
        }
    }
    shown
}

/// Lines of whole words that fit beside the terms.
fn wrap(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + word.len() < WIDTH - INDENT => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_listed_line_is_too_wide() {
        assert!(list().lines().all(|line| line.len() <= WIDTH));
    }
}
