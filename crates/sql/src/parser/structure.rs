//! [`StatementText`]: a statement as it was written, and without its values.

use std::fmt::Write;

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Word};

use super::DIALECT;

/// Bytes of a text that nobody could read, of which the log keeps words.
const MOST_UNREAD: usize = 64 << 10;

/// The highest number that a parameter can have. One with a larger number may be a value.
const MOST_PARAMETERS: u16 = 1000;

/// Words of our own statements.
const OWN_WORDS: [&str; 32] = [
    "anonymization_id",
    "anonymization_other",
    "anonymization_quasi_id",
    "anonymization_sensitive_attr",
    "anonymization_view",
    "anonymization_views",
    "answers",
    "backup",
    "block",
    "changes",
    "collection",
    "compliance",
    "dates",
    "departures",
    "dgh",
    "dgh_name",
    "dghs",
    "disclosure",
    "drift",
    "flat",
    "k",
    "kohort",
    "l_diversity",
    "leftovers",
    "mask",
    "paper",
    "partial",
    "purpose",
    "recipient",
    "steps",
    "t_closeness",
    "utility",
];

/// The text of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementText {
    /// As it was written, without the `;`.
    pub written: String,
    /// With every literal replaced by `?`, and without comments: a query's text can hold private values.
    pub structure: String,
    /// How many words, signs and values it has: what is kept of a parsed statement grows with them.
    pub n_tokens: usize,
}

impl StatementText {
    /// Reads a text. Of one that can't be read the structure is `?`.
    pub fn of(written: &str) -> StatementText {
        let tokens = Tokenizer::new(&DIALECT, written).tokenize_with_location();
        match tokens {
            Ok(tokens) => StatementText::read(written, &tokens, 0),
            Err(_) => StatementText { written: written.to_owned(), structure: "?".to_owned(), n_tokens: 0 },
        }
    }

    /// A text that was read before, with so many tokens at its end that say for what and whom it is: which purpose and
    /// which recipient is told apart, as far as they are known.
    pub(super) fn read(written: &str, tokens: &[TokenWithSpan], n_of_access: usize) -> StatementText {
        let (statement, access) = tokens.split_at(tokens.len() - n_of_access);
        let mut structure = shown(statement, is_literal);
        for clause in access.chunks(2) {
            write!(structure, " {} ?", clause[0].token).expect("a text takes everything");
        }
        StatementText { written: written.to_owned(), structure, n_tokens: tokens.len() }
    }

    /// A text that is no statement, as far as it may be kept: a value that was not quoted as it should be looks like a name,
    /// so only words of SQL stay.
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
        StatementText { written: String::new(), structure, n_tokens: 0 }
    }

    /// The structure of a statement that was not answered, with names that are known. Others may be values: in other
    /// dialects quoted names are, and a value without quotes looks like a name.
    pub(crate) fn with_known_names(structure: &str, is_known: impl Fn(&str) -> bool) -> String {
        let tokens = Tokenizer::new(&DIALECT, structure).tokenize_with_location();
        let hides = |token: &Token| match token {
            Token::Word(word) if word.quote_style.is_some() => true,
            Token::Word(word) => {
                let name = word.value.to_lowercase();
                word.keyword == Keyword::NoKeyword && !OWN_WORDS.contains(&name.as_str()) && !is_known(&name)
            }
            token => is_literal(token),
        };
        tokens.map_or_else(|_| "?".to_owned(), |tokens| shown(&tokens, hides))
    }
}

/// The tokens without blanks and comments, and `?` in the place of those that are hidden.
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

/// Whatever is neither a name, nor a sign, nor a parameter such as `$1`. What else begins with `$` may be a value.
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
    fn what_is_no_statement_keeps_words_of_sql_alone() {
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
    fn a_text_that_is_none_is_hidden_as_a_whole() {
        assert_eq!(StatementText::of("SELECT 'Smith").structure, "?");
    }
}
