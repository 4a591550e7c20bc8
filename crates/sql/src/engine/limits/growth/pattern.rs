//! [`states`]: how much work a regular expression is per letter of a text.
//!
//! The regex library matches texts without going back, so a letter costs at most as many steps as the expression has states.
//! `a{9}` has nine times the states of `a`, and `(a{9}){9}` eighty-one times.

use datafusion::logical_expr::Expr;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind, Repetition};

/// States of `.`, `[a-z]` and `\w`, because a letter has up to four bytes.
const OF_SET: u64 = 4;

/// Bytes of the longest pattern that is parsed. Parsing makes a table of ranges for each `\w`, so its memory is bounded, too.
const MOST_PARSED: usize = 4 << 10;

/// The states of a pattern that is written out; `None` for a pattern that is computed, because it could be any.
pub(super) fn states(pattern: &Expr) -> Option<u64> {
    match pattern {
        Expr::Literal(value, _) if value.is_null() => Some(1),
        Expr::Literal(value, _) => Some(value.try_as_str()?.map_or(1, of_text)),
        Expr::Cast(cast) => states(&cast.expr),
        Expr::Alias(alias) => states(&alias.expr),
        _ => None,
    }
}

fn of_text(pattern: &str) -> u64 {
    if pattern.len() > MOST_PARSED {
        return u64::MAX;
    }
    // The flag `x`, which functions take as another argument, makes blanks and comments mean nothing.
    let of_parsed = |ignores_blanks: bool| {
        let parsed = ParserBuilder::new().ignore_whitespace(ignores_blanks).build().parse(pattern);
        // An invalid pattern fails before any text is matched.
        parsed.as_ref().map_or(1, of_part)
    };
    of_parsed(false).max(of_parsed(true))
}

fn of_part(part: &Hir) -> u64 {
    match part.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(letters) => letters.0.len() as u64,
        HirKind::Class(_) => OF_SET,
        HirKind::Capture(group) => of_part(&group.sub),
        HirKind::Repetition(Repetition { min, max, sub, .. }) => {
            let n_copies = u64::from(max.unwrap_or(*min).max(1));
            of_part(sub).saturating_mul(n_copies).saturating_add(1)
        }
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().map(of_part).fold(0, u64::saturating_add),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_multiply_and_neighbours_add() {
        for (pattern, n_states) in [
            ("abc", 3),
            ("a{9}", 10),
            ("(a{9}){9}", 91),
            ("((ab){10,30}c){20}", 1_241),
            ("a{9}b{9}", 20),
            ("a*b{3,}", 6),
            ("ab|cde", 5),
            ("(a?){1000}a{1000}", 3_002),
            ("^[0-9]{5}(-[0-9]{4})?$", 42),
            ("\\{\\(", 2),
            ("\\w.", 8),
            // Neither bracket ends the set or the group.
            ("([\\])]a{200}){200}", 41_001),
            // With the flag `x` the comment ends with its line, and the group after it.
            ("(a{500}#)(?:\n){500}", 250_501),
        ] {
            assert_eq!(of_text(pattern), n_states, "{pattern}");
        }
    }

    #[test]
    fn a_pattern_is_not_parsed_where_it_is_invalid_or_too_long() {
        for pattern in ["(", "a{99999999999999999999}", "a{2000}{2000}{2000}{2000}{2000}{2000}{2000}{2000}\\"] {
            assert_eq!(of_text(pattern), 1, "{pattern}");
        }
        assert_eq!(of_text(&"\\w".repeat(MOST_PARSED)), u64::MAX);
    }
}
