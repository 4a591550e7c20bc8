//! [`states`]: how much work a regular expression is per letter of a text.
//!
//! Texts are matched without going back, so each letter costs at most as many steps as the expression has states. `a{9}` is
//! nine of `a`, and `(a{9}){9}` eighty-one.

use datafusion::logical_expr::Expr;

/// States of `.`, `[a-z]` and `\\w`: letters have up to four bytes.
const OF_SET: u64 = 4;

/// States of a pattern that is written out; `None` of another, which could be anything.
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
    // What stands before, and the last part of it, in each group that is open.
    let mut groups = vec![(0u64, 1u64)];
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        let is_inside = groups.len() > 1;
        let last = groups.last_mut().expect("the outermost is never left");
        let part = match letter {
            '(' => {
                groups.push((0, 0));
                continue;
            }
            ')' if is_inside => {
                let (before, last) = groups.pop().unwrap_or_default();
                let group = before.saturating_add(last).max(1);
                let outer = groups.last_mut().expect("one is left");
                outer.0 = outer.0.saturating_add(outer.1);
                outer.1 = group;
                continue;
            }
            '{' => {
                let inside: String = letters.by_ref().take_while(|letter| *letter != '}').collect();
                let numbers = inside.split(',').map(|number| number.trim().parse::<u64>());
                // Not a number: letters, or more than there are.
                let most = numbers.map(|number| number.unwrap_or(inside.len() as u64)).max().unwrap_or(1);
                last.1 = last.1.saturating_mul(most.max(1));
                continue;
            }
            '[' => {
                letters.by_ref().take_while(|letter| *letter != ']').for_each(drop);
                OF_SET
            }
            '\\' => {
                letters.next();
                OF_SET
            }
            '.' => OF_SET,
            _ => 1,
        };
        last.0 = last.0.saturating_add(last.1);
        last.1 = part;
    }
    groups.into_iter().fold(0, |all, (before, last)| all.saturating_add(before).saturating_add(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_multiply_and_neighbours_add() {
        for (pattern, least, most) in [
            ("abc", 3, 4),
            ("a{9}", 9, 10),
            ("(a{9}){9}", 81, 100),
            ("((ab){10,30}c){20}", 1_220, 1_300),
            ("a{9}b{9}", 18, 20),
            ("(a?){1000}a{1000}", 3_000, 4_100),
            ("^[0-9]{5}(-[0-9]{4})?$", 36, 45),
            ("a{99999999999999999999}", 20, 30),
            ("\\{\\(", 8, 9),
        ] {
            let states = of_text(pattern);
            assert!((least..=most).contains(&states), "{pattern}: {states}");
        }
    }
}
