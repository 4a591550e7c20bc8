//! [`Pattern`]: LIKE and ILIKE over single texts.

use serde::{Deserialize, Serialize};

/// Whether upper and lower case differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LetterCase {
    /// LIKE.
    Matters,
    /// ILIKE.
    Ignored,
}

/// A pattern of LIKE: `%` is any text, `_` any character.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "(String, char, LetterCase)", into = "(String, char, LetterCase)")]
pub struct Pattern {
    text: String,
    escape: char,
    letter_case: LetterCase,
    parts: Vec<PatternPart>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum PatternPart {
    AnyText,
    AnyCharacter,
    Character(char),
}

impl Pattern {
    /// Reads a pattern. The escape character is a backslash where none is named.
    pub fn new(text: &str, escape: Option<char>, letter_case: LetterCase) -> Pattern {
        let escape = escape.unwrap_or('\\');
        let mut parts = Vec::new();
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            let literal = match character {
                // A trailing escape character stands for itself.
                _ if character == escape && characters.peek().is_some() => characters.next().expect("peeked just now"),
                '%' => {
                    if parts.last() != Some(&PatternPart::AnyText) {
                        parts.push(PatternPart::AnyText);
                    }
                    continue;
                }
                '_' => {
                    parts.push(PatternPart::AnyCharacter);
                    continue;
                }
                _ => character,
            };
            fold(literal, letter_case, |folded| parts.push(PatternPart::Character(folded)));
        }
        Pattern { text: text.to_owned(), escape, letter_case, parts }
    }

    /// The pattern as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether upper and lower case differ.
    pub fn letter_case(&self) -> LetterCase {
        self.letter_case
    }

    /// Whether a text matches.
    pub fn matches(&self, text: &str) -> bool {
        self.could_match(text.chars().map(Some))
    }

    /// Whether a text could match in which each `None` may be any character.
    pub fn could_match(&self, text: impl Iterator<Item = Option<char>>) -> bool {
        let mut characters = Vec::new();
        for character in text {
            match character {
                Some(character) => fold(character, self.letter_case, |folded| characters.push(Some(folded))),
                None => characters.push(None),
            }
        }
        // Greedy with one way back: if the rest does not fit, the last `%` takes one more character.
        let (mut part, mut at) = (0, 0);
        let mut back: Option<(usize, usize)> = None;
        while at < characters.len() {
            match self.parts.get(part) {
                Some(PatternPart::AnyText) => {
                    back = Some((part + 1, at));
                    part += 1;
                    continue;
                }
                Some(PatternPart::AnyCharacter) => {
                    (part, at) = (part + 1, at + 1);
                    continue;
                }
                Some(PatternPart::Character(character)) if characters[at].is_none_or(|own| own == *character) => {
                    (part, at) = (part + 1, at + 1);
                    continue;
                }
                _ => {}
            }
            let Some((after, from)) = back else { return false };
            back = Some((after, from + 1));
            (part, at) = (after, from + 1);
        }
        self.parts[part..].iter().all(|part| *part == PatternPart::AnyText)
    }

    /// Whether every text matches.
    pub fn matches_everything(&self) -> bool {
        self.parts == [PatternPart::AnyText]
    }
}

impl From<(String, char, LetterCase)> for Pattern {
    fn from((text, escape, letter_case): (String, char, LetterCase)) -> Pattern {
        Pattern::new(&text, Some(escape), letter_case)
    }
}

impl From<Pattern> for (String, char, LetterCase) {
    fn from(pattern: Pattern) -> (String, char, LetterCase) {
        (pattern.text, pattern.escape, pattern.letter_case)
    }
}

fn fold(character: char, letter_case: LetterCase, mut push: impl FnMut(char)) {
    match letter_case {
        LetterCase::Matters => push(character),
        LetterCase::Ignored => character.to_lowercase().for_each(push),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_sql() {
        let matches = |pattern: &str, text: &str| Pattern::new(pattern, None, LetterCase::Matters).matches(text);
        for (pattern, text) in
            [("", ""), ("%", ""), ("a%", "a"), ("a%c%e", "abcde"), ("_b_", "abc"), ("%ab", "aab"), ("é_", "éx")]
        {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("", "a"), ("_", ""), ("a%c", "abcd"), ("a\\%", "ab"), ("A", "a"), ("%a%b", "ba")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
        assert!(matches("a\\%", "a%"));
        assert!(Pattern::new("x!_", Some('!'), LetterCase::Matters).matches("x_"));
        assert!(Pattern::new("STRASSE%", None, LetterCase::Ignored).matches("strasse 5"));
        assert!(Pattern::new("%%", None, LetterCase::Matters).matches_everything());
        assert!(!Pattern::new("%_", None, LetterCase::Matters).matches_everything());
    }
}
