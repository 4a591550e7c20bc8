//! [`Source`]: a text as tokens, cut into statements.

use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use super::error::{ParseError, ParseErrorKind};
use super::{Cursor, DIALECT};

/// A line and a column in characters, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) line: u64,
    pub(super) column: u64,
}

impl Place {
    pub(super) const START: Place = Place { line: 1, column: 1 };
}

impl From<Location> for Place {
    fn from(location: Location) -> Self {
        Place { line: location.line, column: location.column }
    }
}

/// A text and its tokens, without blanks and comments.
pub(super) struct Source<'t> {
    text: &'t str,
    tokens: Vec<TokenWithSpan>,
    /// Where each token begins, in bytes.
    starts: Vec<usize>,
    /// Where the text ends.
    end: Place,
}

impl<'t> Source<'t> {
    pub(super) fn read(text: &'t str) -> Result<Self, ParseError> {
        let mut tokens = Tokenizer::new(&DIALECT, text)
            .tokenize_with_location()
            .map_err(|error| ParseError::new(error.location.into(), ParseErrorKind::Sql(error.message)))?;
        tokens.retain(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF));
        let mut places = Places::of(text);
        let starts = tokens.iter().map(|token| places.offset(token.span.start.into())).collect();
        let end = places.end();
        Ok(Source { text, tokens, starts, end })
    }

    /// The statements, without empty ones.
    pub(super) fn statements(&self) -> impl Iterator<Item = &[TokenWithSpan]> {
        self.tokens.split(|token| token.token == Token::SemiColon).filter(|tokens| !tokens.is_empty())
    }

    /// The place of the token after these, or the end of the text.
    pub(super) fn end_of(&self, tokens: &[TokenWithSpan]) -> Place {
        let Some(last) = tokens.last() else { return self.end };
        let start = last.span.start;
        let after = self.tokens.partition_point(|token| token.span.start <= start);
        self.tokens.get(after).map_or(self.end, |token| token.span.start.into())
    }

    /// The text from this token to this place, without blanks around it.
    pub(super) fn between(&self, first: Option<&TokenWithSpan>, end: Place) -> &'t str {
        let start = first.map_or(end, |token| token.span.start.into());
        self.text[self.offset(start)..self.offset(end)].trim()
    }

    /// The byte offset of the token at this place.
    fn offset(&self, place: Place) -> usize {
        let position = self.tokens.partition_point(|token| Place::from(token.span.start) < place);
        self.starts.get(position).copied().unwrap_or(self.text.len())
    }
}

/// Converts places of a text to byte offsets in ascending order. One pass serves all places, because a line can be as
/// long as the text.
pub(super) struct Places<'t> {
    rest: std::str::CharIndices<'t>,
    next: Place,
}

impl<'t> Places<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        Places { rest: text.char_indices(), next: Place::START }
    }

    /// The byte offset of a place, which must not be before the last one asked for.
    pub(super) fn offset(&mut self, place: Place) -> usize {
        while self.next < place
            && let Some((_, character)) = self.rest.next()
        {
            self.next = match character {
                '\n' => Place { line: self.next.line + 1, column: 1 },
                _ => Place { column: self.next.column + 1, ..self.next },
            };
        }
        self.rest.offset()
    }

    /// Where the text ends.
    fn end(mut self) -> Place {
        self.offset(Place { line: u64::MAX, column: u64::MAX });
        self.next
    }
}

/// Whether a shell can run the text without waiting for more lines: the text ends with `;`, or it has no valid tokens
/// (an open quote, for example) and ends with a blank line.
pub fn is_complete(text: &str) -> bool {
    match Source::read(text) {
        Ok(source) => match source.tokens.last() {
            None => true,
            Some(last) => last.token == Token::SemiColon,
        },
        Err(_) => text.ends_with("\n\n"),
    }
}

/// The position of the first token that is this word, is outside all parentheses, and is directly followed by one of these
/// words.
pub(super) fn find_outermost(cursor: &Cursor<'_>, word: &str, followed_by: &[&str]) -> Option<usize> {
    let mut depth = 0usize;
    for (position, token) in cursor.rest().iter().enumerate() {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        let next = cursor.rest().get(position + 1);
        let is_followed = || next.is_some_and(|next| followed_by.iter().any(|word| super::cursor::is_word(next, word)));
        if depth == 0 && super::cursor::is_word(token, word) && is_followed() {
            return Some(position);
        }
    }
    None
}
