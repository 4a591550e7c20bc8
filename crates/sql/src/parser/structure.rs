//! [`structure`]: a statement without its values.

use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use super::DIALECT;

/// The statement with every literal replaced by `?`, and without comments: a query's text can hold private values.
/// A text that can't be read is `?` as a whole.
pub fn structure(text: &str) -> String {
    let Ok(tokens) = Tokenizer::new(&DIALECT, text).tokenize() else { return "?".to_owned() };
    let mut shown = String::new();
    let mut is_apart = false;
    for token in &tokens {
        match token {
            Token::Whitespace(_) => is_apart = true,
            Token::EOF => {}
            _ => {
                if is_apart && !shown.is_empty() {
                    shown.push(' ');
                }
                is_apart = false;
                if is_literal(token) {
                    shown.push('?');
                } else {
                    shown += &token.to_string();
                }
            }
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
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_literal_and_no_comment_stays() {
        let text =
            "SELECT * -- Smith\nFROM v /* 42 */ WHERE name = 'Smith'  AND age>41 AND x = $$Smith$$ AND y = E'Smith'";
        assert_eq!(structure(text), "SELECT * FROM v WHERE name = ? AND age>? AND x = ? AND y = ?");
    }

    #[test]
    fn a_text_that_is_none_is_hidden_as_a_whole() {
        assert_eq!(structure("SELECT 'Smith"), "?");
    }
}
