//! [`Cursor`]: reads the tokens of one of our own statements one by one. Its errors say what was expected.

use datafusion::common::TableReference;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::error::{ParseError, ParseErrorKind};
use super::folded;
use super::source::Place;

/// Words that are never a name unless quoted, so that an error about a missing name has the right place.
const NOT_A_NAME: [&str; 8] = ["AS", "FROM", "IF", "INTO", "ON", "REFERENCES", "VALUES", "WITH"];

/// The tokens of a statement, and a position in them.
pub(super) struct Cursor<'t> {
    tokens: &'t [TokenWithSpan],
    next: usize,
    end: Place,
    example: Option<&'static str>,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(tokens: &'t [TokenWithSpan], end: Place) -> Self {
        Cursor { tokens, next: 0, end, example: None }
    }

    /// Errors from here on show this example.
    pub(super) fn example(&mut self, example: &'static str) -> &mut Self {
        self.example = Some(example);
        self
    }

    /// Skips these words if they come next. Errors from then on show this example.
    pub(super) fn begins(&mut self, words: &[&str], example: &'static str) -> bool {
        let is_there = self.starts_with(words);
        if is_there {
            self.example(example).skip(words.len());
        }
        is_there
    }

    pub(super) fn skip(&mut self, n_tokens: usize) {
        self.next += n_tokens;
    }

    /// The tokens not read yet.
    pub(super) fn rest(&self) -> &'t [TokenWithSpan] {
        &self.tokens[self.next.min(self.tokens.len())..]
    }

    /// The place of the next token, or the end.
    pub(super) fn place(&self) -> Place {
        self.rest().first().map_or(self.end, |token| token.span.start.into())
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest().is_empty()
    }

    /// Whether these words come next.
    pub(super) fn starts_with(&self, words: &[&str]) -> bool {
        let rest = self.rest();
        rest.len() >= words.len() && words.iter().zip(rest).all(|(word, token)| is_word(token, word))
    }

    pub(super) fn is_next(&self, token: &Token) -> bool {
        self.rest().first().is_some_and(|next| next.token == *token)
    }

    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let is_there = self.starts_with(&[word]);
        self.next += usize::from(is_there);
        is_there
    }

    pub(super) fn take(&mut self, token: &Token) -> bool {
        let is_there = self.is_next(token);
        self.next += usize::from(is_there);
        is_there
    }

    pub(super) fn expect_word(&mut self, word: &str) -> Result<(), ParseError> {
        if self.take_word(word) { Ok(()) } else { Err(self.expected(word)) }
    }

    pub(super) fn expect(&mut self, token: &Token) -> Result<(), ParseError> {
        if self.take(token) { Ok(()) } else { Err(self.expected(&format!("'{token}'"))) }
    }

    /// One of these words.
    pub(super) fn one_of<T: Copy>(&mut self, words: &[(&str, T)]) -> Result<T, ParseError> {
        match words.iter().find(|(word, _)| self.starts_with(&[word])) {
            Some(&(_, meaning)) => {
                self.next += 1;
                Ok(meaning)
            }
            None => Err(self.expected(&either(words.iter().map(|(word, _)| *word)))),
        }
    }

    /// A name, in lower case unless quoted.
    pub(super) fn name(&mut self, what: &str) -> Result<String, ParseError> {
        let Some(Token::Word(word)) = self.rest().first().map(|token| &token.token) else {
            return Err(self.expected(what));
        };
        let is_reserved = NOT_A_NAME.iter().any(|reserved| word.value.eq_ignore_ascii_case(reserved));
        if is_reserved && word.quote_style.is_none() {
            return Err(self.expected(what));
        }
        self.next += 1;
        Ok(folded(&word.value, word.quote_style))
    }

    /// A table, which may be qualified.
    pub(super) fn table(&mut self, what: &str) -> Result<TableReference, ParseError> {
        let mut parts = vec![self.name(what)?];
        while parts.len() < 3 && self.take(&Token::Period) {
            parts.push(self.name(what)?);
        }
        let table = parts.pop().unwrap_or_default();
        Ok(match (parts.pop(), parts.pop()) {
            (Some(schema), Some(catalog)) => TableReference::full(catalog, schema, table),
            (Some(schema), None) => TableReference::partial(schema, table),
            (None, _) => TableReference::bare(table),
        })
    }

    /// A text in single quotes.
    pub(super) fn text(&mut self, what: &str) -> Result<String, ParseError> {
        match self.rest().first().map(|token| &token.token) {
            Some(Token::SingleQuotedString(text)) => {
                self.next += 1;
                Ok(text.clone())
            }
            _ => Err(self.expected(what)),
        }
    }

    /// A word as it is written, or a text in single quotes.
    pub(super) fn word_or_text(&mut self, what: &str) -> Result<String, ParseError> {
        match self.rest().first().map(|token| &token.token) {
            Some(Token::Word(word)) => {
                self.next += 1;
                Ok(word.value.clone())
            }
            _ => self.text(what),
        }
    }

    /// A number that satisfies the condition.
    pub(super) fn number<N>(&mut self, what: &str, is_fine: impl Fn(&N) -> bool) -> Result<N, ParseError>
    where
        N: std::str::FromStr,
    {
        let number = match self.rest().first().map(|token| &token.token) {
            Some(Token::Number(digits, _)) => digits.parse().ok().filter(is_fine),
            _ => None,
        };
        self.next += usize::from(number.is_some());
        number.ok_or_else(|| self.expected(what))
    }

    /// `one, another, a third`: `item` reads each part between commas.
    pub(super) fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        let mut items = vec![item(self)?];
        while self.take(&Token::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    pub(super) fn finish(&self) -> Result<(), ParseError> {
        if self.is_at_end() { Ok(()) } else { Err(self.expected("the end of the statement")) }
    }

    /// The error that something else was expected here.
    pub(super) fn expected(&self, expected: &str) -> ParseError {
        let mut problem = match self.rest().first() {
            Some(token) => unexpected(token, expected),
            None => {
                let found = "the end of the statement".to_owned();
                ParseError::new(self.end, ParseErrorKind::Expected { expected: expected.to_owned(), found })
            }
        };
        problem.example = self.example;
        problem
    }

    /// An error at this place, with the example.
    pub(super) fn fault(&self, place: Place, fault: ParseErrorKind) -> ParseError {
        ParseError { example: self.example, ..ParseError::new(place, fault) }
    }
}

/// Whether the token is this word, unquoted, in any case.
pub(super) fn is_word(token: &TokenWithSpan, word: &str) -> bool {
    matches!(&token.token, Token::Word(found) if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

/// The error that this token was found where something else was expected.
pub(super) fn unexpected(token: &TokenWithSpan, expected: &str) -> ParseError {
    const SHOWN: usize = 40;
    let text = token.token.to_string();
    let found = match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    };
    let fault = ParseErrorKind::Expected { expected: expected.to_owned(), found };
    ParseError::new(token.span.start.into(), fault)
}

/// `A, B or C`.
pub(super) fn either<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let words: Vec<&str> = words.into_iter().collect();
    match words.as_slice() {
        [first @ .., before, last] => {
            let first: String = first.iter().map(|word| format!("{word}, ")).collect();
            format!("{first}{before} or {last}")
        }
        _ => words.concat(),
    }
}
