//! [`StatementText`]: a statement as it was written, and without its values.

use std::fmt::Write;

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use super::DIALECT;

/// The text of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementText {
    /// As it was written, without the `;`.
    pub written: String,
    /// With every literal replaced by `?`, and without comments: a query's text can hold private values.
    pub structure: String,
}

impl StatementText {
    /// Reads a text. Of one that can't be read the structure is `?`.
    pub fn of(written: &str) -> StatementText {
        let tokens = Tokenizer::new(&DIALECT, written).tokenize_with_location();
        let structure = tokens.map_or("?".to_owned(), |tokens| structure(&tokens));
        StatementText { written: written.to_owned(), structure }
    }

    /// A text that was read before.
    pub(super) fn read(written: &str, tokens: &[TokenWithSpan]) -> StatementText {
        StatementText { written: written.to_owned(), structure: structure(tokens) }
    }
}

fn structure(tokens: &[TokenWithSpan]) -> String {
    let mut shown = String::new();
    let mut end = None;
    for TokenWithSpan { token, span } in tokens {
        if matches!(token, Token::Whitespace(_) | Token::EOF) {
            continue;
        }
        // Blanks and comments lie between tokens.
        if end.is_some_and(|end| end != span.start) {
            shown.push(' ');
        }
        end = Some(span.end);
        if is_literal(token) {
            shown.push('?');
        } else {
            write!(shown, "{token}").expect("a text takes everything");
        }
    }
    shown
}

/// Whatever is neither a name nor a sign.
fn is_literal(token: &Token) -> bool {
    matches!(
        token,
        Token::Number(..)
            | Token::Char(_)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::TripleSingleQuotedString(_)
            | Token::TripleDoubleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::DoubleQuotedByteStringLiteral(_)
            | Token::TripleSingleQuotedByteStringLiteral(_)
            | Token::TripleDoubleQuotedByteStringLiteral(_)
            | Token::SingleQuotedRawStringLiteral(_)
            | Token::DoubleQuotedRawStringLiteral(_)
            | Token::TripleSingleQuotedRawStringLiteral(_)
            | Token::TripleDoubleQuotedRawStringLiteral(_)
            | Token::NationalStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::QuoteDelimitedStringLiteral(_)
            | Token::NationalQuoteDelimitedStringLiteral(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_literal_and_no_comment_stays() {
        let text =
            "SELECT * -- Smith\nFROM v /* 42 */ WHERE name = 'Smith'  AND age>41 AND x = $$Smith$$ AND y = E'Smith'";
        assert_eq!(StatementText::of(text).structure, "SELECT * FROM v WHERE name = ? AND age>? AND x = ? AND y = ?");
    }

    #[test]
    fn a_text_that_is_none_is_hidden_as_a_whole() {
        assert_eq!(StatementText::of("SELECT 'Smith").structure, "?");
    }
}
