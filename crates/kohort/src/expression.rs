//! The language of `kohort estimate`: conditions on columns, all of which must hold.
//!
//! ```text
//! age between 20 and 40 and zip = '88512' and sex in ('f', 'x') and birth < 1990-01-01
//! ```
//!
//! Words of the language may be in any case. A name with spaces is in double quotes, a text in single quotes, in which `''`
//! stands for one quote. Numbers, dates and single words need no quotes.

use std::fmt;

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) column: String,
    pub(crate) test: Test,
}

/// The test that the value of a column must pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    /// One of these.
    In(Vec<String>),
    /// From the first to the second, both included.
    Between(String, String),
    /// Below or above.
    Compare(Comparison, String),
}

/// The direction of a comparison, and whether the value itself is included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// Why an expression can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConditionError {
    expected: &'static str,
    /// The text at that place, `None` at the end.
    found: Option<String>,
}

impl fmt::Display for ConditionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.found {
            Some(found) => write!(f, "expected {}, found {found}", self.expected),
            None => write!(f, "expected {} at the end", self.expected),
        }
    }
}

/// Reads an expression.
pub(crate) fn parse(text: &str) -> Result<Vec<Condition>, ConditionError> {
    let mut tokens = Tokens { tokens: cut(text)?, next: 0 };
    let mut conditions = vec![tokens.condition()?];
    while tokens.peek().is_some() {
        tokens.word("and", "'and'")?;
        conditions.push(tokens.condition()?);
    }
    Ok(conditions)
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// Bare: a name, a word of the language, a number or a date.
    Bare(String),
    /// In double quotes.
    Name(String),
    /// In single quotes.
    Text(String),
    Symbol(&'static str),
}

impl Token {
    fn shown(&self) -> String {
        match self {
            Token::Bare(text) => text.clone(),
            Token::Name(text) => format!("\"{text}\""),
            Token::Text(text) => format!("'{text}'"),
            Token::Symbol(symbol) => (*symbol).to_owned(),
        }
    }
}

const SYMBOLS: [&str; 8] = ["<=", ">=", "=", "<", ">", "(", ")", ","];

fn cut(text: &str) -> Result<Vec<Token>, ConditionError> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        if let Some(symbol) = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol)) {
            tokens.push(Token::Symbol(symbol));
            rest = &rest[symbol.len()..];
        } else if first == '\'' || first == '"' {
            let (quoted, after) =
                unquote(&rest[1..], first).ok_or(ConditionError { expected: "a closing quote", found: None })?;
            tokens.push(if first == '"' { Token::Name(quoted) } else { Token::Text(quoted) });
            rest = after;
        } else {
            let ends = |letter: char| letter.is_whitespace() || "<>=(),'\"".contains(letter);
            let (bare, after) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
            tokens.push(Token::Bare(bare.to_owned()));
            rest = after;
        }
        rest = rest.trim_start();
    }
    Ok(tokens)
}

/// A quoted text up to its closing quote, and the rest after it. A doubled quote stands for one quote.
fn unquote(text: &str, quote: char) -> Option<(String, &str)> {
    let mut quoted = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        if letter != quote {
            quoted.push(letter);
        } else if text[at + 1..].starts_with(quote) {
            quoted.push(quote);
            letters.next();
        } else {
            return Some((quoted, &text[at + 1..]));
        }
    }
    None
}

struct Tokens {
    tokens: Vec<Token>,
    next: usize,
}

impl Tokens {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next)
    }

    fn misread(&self, expected: &'static str) -> ConditionError {
        ConditionError { expected, found: self.peek().map(Token::shown) }
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Bare(bare)) if bare.eq_ignore_ascii_case(word))
    }

    fn word(&mut self, word: &str, expected: &'static str) -> Result<(), ConditionError> {
        if !self.is_word(word) {
            return Err(self.misread(expected));
        }
        self.next += 1;
        Ok(())
    }

    fn symbol(&mut self, symbol: &str, expected: &'static str) -> Result<(), ConditionError> {
        if !matches!(self.peek(), Some(Token::Symbol(found)) if *found == symbol) {
            return Err(self.misread(expected));
        }
        self.next += 1;
        Ok(())
    }

    fn value(&mut self) -> Result<String, ConditionError> {
        match self.peek() {
            Some(Token::Bare(text) | Token::Text(text)) if !self.is_word("and") => {
                let text = text.clone();
                self.next += 1;
                Ok(text)
            }
            _ => Err(self.misread("a value")),
        }
    }

    fn condition(&mut self) -> Result<Condition, ConditionError> {
        let column = match self.peek() {
            Some(Token::Bare(name) | Token::Name(name)) => name.clone(),
            _ => return Err(self.misread("a column")),
        };
        self.next += 1;
        let test = if self.is_word("between") {
            self.next += 1;
            let low = self.value()?;
            self.word("and", "'and' and the upper end")?;
            Test::Between(low, self.value()?)
        } else if self.is_word("in") {
            self.next += 1;
            self.symbol("(", "'('")?;
            let mut values = vec![self.value()?];
            while self.symbol(",", "','").is_ok() {
                values.push(self.value()?);
            }
            self.symbol(")", "',' or ')'")?;
            Test::In(values)
        } else {
            let comparison = match self.peek() {
                Some(Token::Symbol("=")) => None,
                Some(Token::Symbol("<")) => Some(Comparison::Less),
                Some(Token::Symbol("<=")) => Some(Comparison::AtMost),
                Some(Token::Symbol(">")) => Some(Comparison::Greater),
                Some(Token::Symbol(">=")) => Some(Comparison::AtLeast),
                _ => return Err(self.misread("=, <, <=, >, >=, between or in")),
            };
            self.next += 1;
            let value = self.value()?;
            match comparison {
                None => Test::In(vec![value]),
                Some(comparison) => Test::Compare(comparison, value),
            }
        };
        Ok(Condition { column, test })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(column: &str, test: Test) -> Condition {
        Condition { column: column.to_owned(), test }
    }

    #[test]
    fn conditions_are_joined_by_and() {
        let read =
            parse("age BETWEEN 20 and 40 and zip='88512' AND \"place of birth\" in ('Val d''Or', x) and d<1990-01-01");
        let text = |text: &str| text.to_owned();
        assert_eq!(
            read.unwrap(),
            [
                condition("age", Test::Between(text("20"), text("40"))),
                condition("zip", Test::In(vec![text("88512")])),
                condition("place of birth", Test::In(vec![text("Val d'Or"), text("x")])),
                condition("d", Test::Compare(Comparison::Less, text("1990-01-01"))),
            ]
        );
    }

    #[test]
    fn faults_of_conditions_are_reported() {
        let wrong = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(wrong(""), "expected a column at the end");
        assert_eq!(wrong("age"), "expected =, <, <=, >, >=, between or in at the end");
        assert_eq!(wrong("age ! 3"), "expected =, <, <=, >, >=, between or in, found !");
        assert_eq!(wrong("age between 3 or 4"), "expected 'and' and the upper end, found or");
        assert_eq!(wrong("age = and"), "expected a value, found and");
        assert_eq!(wrong("zip = 'a"), "expected a closing quote at the end");
        assert_eq!(wrong("zip in (1, 2"), "expected ',' or ')' at the end");
        assert_eq!(wrong("a = 1 or b = 2"), "expected 'and', found or");
    }
}
