//! [`check_extent`] refuses texts with too many tokens.
//!
//! A token takes a hundred bytes of memory, and the tree parsed from it several hundred: two bytes of `1,1,1` become a
//! kilobyte. So tokens are counted first, piece by piece, and each piece is freed before the next is read.

use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use super::DIALECT;
use super::error::{ParseError, ParseErrorKind};
use super::source::{Place, Places};
use crate::role::Role;

/// The size of a piece in bytes. A longer token makes its piece longer.
const PIECE: usize = 64 << 10;

/// All tokens including blanks may be this many times the limit. The tokenizer makes a token of each blank.
const BLANKS: usize = 4;

/// The limits on one text.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    most_tokens: usize,
    pub(super) most_statements: usize,
}

impl Extent {
    /// The limits on a text that a user of this role sends.
    pub(super) fn of(role: Role) -> Extent {
        match role {
            Role::Analyst => Extent { most_tokens: 200_000, most_statements: 10_000 },
            Role::Owner => Extent { most_tokens: 2_000_000, most_statements: 10_000 },
        }
    }

    /// No limits, for the owner's own files.
    pub(super) const ALL: Extent = Extent { most_tokens: usize::MAX, most_statements: usize::MAX };
}

/// Refuses texts with too many tokens.
///
/// # Errors
/// If the text has too many.
pub(super) fn check_extent(text: &str, extent: Extent) -> Result<(), ParseError> {
    let most = extent.most_tokens;
    // A token has at least a byte.
    if text.len() <= most {
        return Ok(());
    }
    let (mut n_tokens, mut n_all) = (0, 0);
    let (mut start, mut length) = (0, PIECE);
    let mut tokens = Vec::new();
    while start < text.len() {
        let end = text.floor_char_boundary(start.saturating_add(length).min(text.len()));
        let (piece, is_last) = (&text[start..end], end == text.len());
        tokens.clear();
        let read = Tokenizer::new(&DIALECT, piece).tokenize_with_location_into_buf(&mut tokens);
        // The last token may continue in the next piece, so it is read again there.
        if read.is_ok() && !is_last {
            tokens.pop();
        }
        n_all += tokens.len();
        n_tokens += tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).count();
        if n_tokens > most || n_all > most.saturating_mul(BLANKS) {
            return Err(ParseError::new(Place::START, ParseErrorKind::TooManyTokens { most }));
        }
        match tokens.last() {
            // Other faults of the text are reported when it is parsed.
            _ if is_last => break,
            Some(last) => {
                start += Places::of(piece).offset(last.span.end.into());
                length = PIECE;
            }
            None => length = length.saturating_mul(2),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(text: &str) -> bool {
        let extent = Extent { most_tokens: 50_000, most_statements: 1 };
        check_extent(text, extent).is_err()
    }

    #[test]
    fn tokens_are_counted_across_pieces() {
        for part in ["1,", "a.b ", "'x''y' ", "<=> ", "/* a */ x ", "$1 ", "E'\\'' ", "x::é\n", "$$a'b$$ "] {
            assert!(is_refused(&part.repeat(60_000)), "{part}");
            assert!(!is_refused(&part.repeat(10_000)), "{part}");
        }
    }

    #[test]
    fn a_long_token_counts_as_one() {
        for long in [
            format!("SELECT '{}'", ", 1 é".repeat(200_000)),
            format!("SELECT \"{}\"", ", 1".repeat(200_000)),
            format!("SELECT $a${}$a$", ", ' 1".repeat(200_000)),
            format!("SELECT 1 /* {} */", ", 1".repeat(200_000)),
        ] {
            assert!(!is_refused(&long), "{}", &long[..20]);
        }
        assert!(is_refused(&format!("SELECT E'\\'', {}", "1,".repeat(100_000))));
        assert!(is_refused(&format!("SELECT '{}', {}", "x".repeat(300_000), "1,".repeat(100_000))));
    }

    #[test]
    fn blanks_are_counted_too() {
        assert!(is_refused(&" ".repeat(300_000)));
        assert!(is_refused(&"--\n".repeat(300_000)));
    }
}
