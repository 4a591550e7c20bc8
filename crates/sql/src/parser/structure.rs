//! [`StatementText`]: the text of a statement, as written and with its values hidden.

use std::fmt::Write;

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Word};

use super::DIALECT;

/// The log keeps the keywords of a text that can't be parsed up to this many bytes; of a longer text it keeps nothing.
const MOST_UNREAD: usize = 64 << 10;

/// The highest number of a parameter such as `$1`. With a higher number it may be a value, so it is hidden.
const MOST_PARAMETERS: u16 = 1000;

/// Words of our own statements, which are shown although SQL does not know them.
const OWN_WORDS: &str = "\
    anonymization_id anonymization_other anonymization_quasi_id anonymization_sensitive_attr \
    anonymization_view anonymization_views answers backup block changes collection compliance dates \
    departures dgh dgh_name dghs disclosure drift flat k kohort l_diversity leftovers mask paper partial \
    purpose recipient steps t_closeness utility";

/// The text of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementText {
    /// The text as written, without the `;`.
    pub written: String,
    /// The text with every literal replaced by `?`, and without comments, because both can hold private values.
    pub structure: String,
    /// The number of tokens. The memory of a parsed statement grows with it.
    pub n_tokens: usize,
    /// The line of its text on which the statement begins, from 1.
    pub line: u64,
}

impl StatementText {
    /// Reads a text. If it can't be split into tokens, its structure is `?`.
    pub fn of(written: &str) -> StatementText {
        let tokens = Tokenizer::new(&DIALECT, written).tokenize_with_location();
        match tokens {
            Ok(tokens) => StatementText::read(written, &tokens, 0),
            Err(_) => StatementText { written: written.to_owned(), structure: "?".to_owned(), n_tokens: 0, line: 1 },
        }
    }

    /// Reads a text from its tokens. The last `n_of_pair` of them name the purpose and the recipient, whose values
    /// are hidden here: the log has columns of their own for them.
    pub(super) fn read(written: &str, tokens: &[TokenWithSpan], n_of_pair: usize) -> StatementText {
        let (statement, pair) = tokens.split_at(tokens.len() - n_of_pair);
        let mut structure = shown(statement, is_literal);
        let is_clause =
            |token: &&TokenWithSpan| ["PURPOSE", "RECIPIENT"].iter().any(|word| super::cursor::is_word(token, word));
        // A value can be one of the two words, too, so clauses are found by their places.
        let mut rest = pair;
        while let Some((clause, after)) = rest.split_first().filter(|(clause, _)| is_clause(clause)) {
            write!(structure, " {} ?", clause.token).expect("a text takes everything");
            let n_equals = usize::from(after.first().is_some_and(|token| token.token == Token::Eq));
            rest = after.get(n_equals + 1..).unwrap_or_default();
        }
        let line = tokens.first().map_or(1, |token| token.span.start.line);
        StatementText { written: written.to_owned(), structure, n_tokens: tokens.len(), line }
    }

    /// A text that is not a statement, with only its keywords shown. A value without its quotes looks like a name, so
    /// names are hidden.
    pub fn of_unread(written: &str) -> StatementText {
        let hides = |token: &Token| match token {
            Token::Word(word) => word.quote_style.is_some() || word.keyword == Keyword::NoKeyword,
            token => is_literal(token),
        };
        let tokens = match written.len() {
            ..=MOST_UNREAD => Tokenizer::new(&DIALECT, written).tokenize_with_location().ok(),
            _ => None,
        };
        let structure = tokens.map_or_else(|| "?".to_owned(), |tokens| shown(&tokens, hides));
        StatementText { written: String::new(), structure, n_tokens: 0, line: 1 }
    }

    /// The structure of a statement that failed, with only known names shown. Unknown names may be values: other
    /// dialects write values in double quotes, and a value without quotes looks like a name.
    pub(crate) fn with_known_names(structure: &str, is_known: impl Fn(&str) -> bool) -> String {
        let tokens = Tokenizer::new(&DIALECT, structure).tokenize_with_location();
        let hides = |token: &Token| match token {
            Token::Word(word) if word.quote_style.is_some() => true,
            Token::Word(word) => {
                let name = word.value.to_lowercase();
                word.keyword == Keyword::NoKeyword && !OWN_WORDS.split(' ').any(|own| own == name) && !is_known(&name)
            }
            token => is_literal(token),
        };
        tokens.map_or_else(|_| "?".to_owned(), |tokens| shown(&tokens, hides))
    }
}

/// The tokens without blanks and comments, with `?` for each hidden one.
fn shown(tokens: &[TokenWithSpan], is_hidden: impl Fn(&Token) -> bool) -> String {
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
        match token {
            token if is_hidden(token) => shown.push('?'),
            Token::Word(Word { value, quote_style: Some('"'), .. }) => {
                shown.extend(["\"", &value.replace('"', "\"\""), "\""]);
            }
            token => write!(shown, "{token}").expect("a text takes everything"),
        }
    }
    shown
}

/// Whether the token is a value: neither a name, nor a sign, nor a parameter such as `$1`. Other words that begin with
/// `$` may be values.
fn is_literal(token: &Token) -> bool {
    if let Token::Placeholder(name) = token {
        let number = name.strip_prefix('$').and_then(|digits| digits.parse::<u16>().ok());
        return number.is_none_or(|number| number > MOST_PARAMETERS);
    }
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
    fn only_keywords_of_a_text_that_is_not_a_statement_are_kept() {
        let unread = |text| StatementText::of_unread(text).structure;
        assert_eq!(
            unread("SELECT FROM v WHERE name = Smith OR \"Smith\" = 'Smith'"),
            "SELECT FROM ? WHERE name = ? OR ? = ?"
        );
        assert_eq!(unread("SELECT 'Smith"), "?");
        assert_eq!(unread("SELECT $1, $Smith, $5551234"), "SELECT $1, ?, ?");
        assert_eq!(unread(&"Smith ".repeat(20_000)), "?");
    }

    #[test]
    fn quoted_names_can_be_hidden() {
        let text = StatementText::of("SELECT \"a b\".c FROM \"Smith\" WHERE d = 'x' AND e = \"Jo\"\"e\"");
        assert_eq!(
            StatementText::with_known_names(&text.structure, |name| ["c", "d", "e"].contains(&name)),
            "SELECT ?.c FROM ? WHERE d = ? AND e = ?"
        );
    }

    #[test]
    fn a_text_without_tokens_is_hidden_as_a_whole() {
        assert_eq!(StatementText::of("SELECT 'Smith").structure, "?");
    }
}
