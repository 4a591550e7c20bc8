//! [`check_depth`]: no statement is so deep that whoever works on it runs out of stack.
//!
//! `a OR b OR c ...` is read without recursion, and becomes a tree as deep as it has operators. Everything that walks
//! such a tree, ours or not, down to whoever frees it, does so by recursion, and a stack that overflows ends the process.
//! So statements are bounded before they are read, and threads that run them have room for what is allowed.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::problem::{ParseFault, ParseProblem};

/// So deep a statement may be.
const MOST_DEEP: usize = 1_000;

/// The stack of threads that run statements, in bytes: several times what the deepest takes, in a build without
/// optimization. Pages that are not used cost nothing.
pub const STACK: usize = 128 << 20;

/// How tightly operators bind, loosest first.
#[derive(Clone, Copy)]
enum Binding {
    SetOperator,
    Join,
    Or,
    And,
    Not,
    Comparison,
    Sum,
    Product,
    Suffix,
}

const N_BINDINGS: usize = Binding::Suffix as usize + 1;

/// What stands between two parentheses.
#[derive(Clone, Copy, Default)]
struct Level {
    /// How many operators of each kind follow each other, with tighter ones between them.
    run: [usize; N_BINDINGS],
    longest: [usize; N_BINDINGS],
    /// Whether a comma adds a table: in FROM, and in WITH, whose queries can read each other.
    adds_tables: bool,
}

impl Level {
    fn note(&mut self, binding: Binding) {
        let binding = binding as usize;
        self.run[binding] += 1;
        self.longest[binding] = self.longest[binding].max(self.run[binding]);
        self.run[binding + 1..].fill(0);
    }

    /// A new expression begins.
    fn end_expression(&mut self) {
        self.run[Binding::Or as usize..].fill(0);
    }

    fn depth(&self) -> usize {
        self.longest.iter().sum::<usize>() + 1
    }
}

/// Refuses statements whose trees would be too deep.
///
/// # Errors
/// Where one is, with the place from which on it is.
pub(super) fn check_depth(tokens: &[TokenWithSpan]) -> Result<(), ParseProblem> {
    let mut levels = vec![Level::default()];
    // What is around the innermost level.
    let mut n_around = 0;
    for token in tokens {
        let level = levels.last_mut().expect("the outermost is never left");
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                if matches!(token.token, Token::LBracket) {
                    level.note(Binding::Suffix);
                }
                n_around += level.depth();
                levels.push(Level::default());
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                if levels.len() > 1 {
                    levels.pop();
                    n_around -= levels.last().expect("one is left").depth();
                }
            }
            Token::Comma if level.adds_tables => level.note(Binding::Join),
            Token::Comma | Token::SemiColon => level.end_expression(),
            Token::Word(word) if word.quote_style.is_none() => note_word(level, word.keyword),
            Token::Word(_) | Token::Number(..) | Token::SingleQuotedString(_) | Token::Period => {}
            Token::Plus | Token::Minus | Token::StringConcat => level.note(Binding::Sum),
            Token::Mul | Token::Div | Token::Mod | Token::Caret => level.note(Binding::Product),
            Token::DoubleColon => level.note(Binding::Suffix),
            // Every other sign compares, or binds about as tightly.
            _ => level.note(Binding::Comparison),
        }
        let level = levels.last().expect("the outermost is never left");
        if n_around + level.depth() > MOST_DEEP {
            return Err(ParseProblem::new(token.span.start.into(), ParseFault::TooDeep { most: MOST_DEEP }));
        }
    }
    Ok(())
}

fn note_word(level: &mut Level, keyword: Keyword) {
    match keyword {
        Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::MINUS => {
            level.adds_tables = false;
            level.note(Binding::SetOperator);
        }
        Keyword::FROM | Keyword::WITH => {
            level.adds_tables = true;
            level.end_expression();
        }
        Keyword::JOIN | Keyword::APPLY => level.note(Binding::Join),
        Keyword::WHERE | Keyword::GROUP | Keyword::ORDER | Keyword::HAVING | Keyword::LIMIT | Keyword::WINDOW => {
            level.adds_tables = false;
            level.end_expression();
        }
        Keyword::SELECT => {
            level.adds_tables = false;
            level.end_expression();
        }
        Keyword::ON | Keyword::WHEN | Keyword::THEN | Keyword::ELSE | Keyword::VALUES => {
            level.end_expression();
        }
        Keyword::OR | Keyword::XOR => level.note(Binding::Or),
        Keyword::AND => level.note(Binding::And),
        Keyword::NOT => level.note(Binding::Not),
        Keyword::IS
        | Keyword::IN
        | Keyword::LIKE
        | Keyword::ILIKE
        | Keyword::SIMILAR
        | Keyword::BETWEEN
        | Keyword::CASE
        | Keyword::INTERVAL => level.note(Binding::Comparison),
        Keyword::COLLATE | Keyword::AT | Keyword::OVER | Keyword::NOTNULL => {
            level.note(Binding::Suffix);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ParseProblem, parse};
    use super::*;

    fn problem(sql: &str) -> Option<ParseProblem> {
        parse(sql).err()
    }

    fn repeated(n: usize, part: &str, between: &str) -> String {
        vec![part; n].join(between)
    }

    #[test]
    fn what_grows_with_every_operator_is_refused() {
        let deep = [
            format!("SELECT {}", repeated(1_100, "a", " + ")),
            format!("SELECT {}", repeated(1_100, "a", " OR ")),
            format!("SELECT {}", repeated(1_100, "a = 1", " AND ")),
            format!("SELECT {}", repeated(1_100, "1", " = ")),
            format!("SELECT a{}", "::text".repeat(1_100)),
            format!("SELECT a{}", " IS NULL".repeat(1_100)),
            format!("SELECT a{}", " COLLATE c".repeat(1_100)),
            format!("SELECT a{}", "[1]".repeat(1_100)),
            format!("SELECT a{}", " -> 'b'".repeat(1_100)),
            format!("SELECT {}a", "NOT ".repeat(1_100)),
            format!("SELECT {}1", "- ".repeat(1_100)),
            format!("SELECT 1 FROM {}", repeated(1_100, "t", ", ")),
            format!("SELECT 1 FROM t {}", "JOIN t ON a = b ".repeat(1_100)),
            repeated(1_100, "SELECT 1", " UNION ALL "),
            format!("WITH {} SELECT 1", repeated(1_100, "t AS (SELECT 1 FROM t)", ", ")),
            repeated(1_100, "SELECT a FROM t, u WHERE b = 1", " EXCEPT "),
            format!(
                "SELECT {}",
                repeated(300, "(a + a + a + a + a)", " OR ").replace("(a", &format!("({}", "a AND ".repeat(800)))
            ),
            format!(
                "CREATE ANONYMIZATION_VIEW v ON SELECT {} FROM t WITH ANONYMIZATION_ID a",
                repeated(1_100, "a", " + ")
            ),
        ];
        for sql in deep {
            let found = problem(&sql).map(|problem| problem.fault);
            assert_eq!(found, Some(ParseFault::TooDeep { most: 1_000 }), "{}", &sql[..60]);
        }
    }

    #[test]
    fn what_is_only_long_is_not() {
        let rows = repeated(20_000, "(1, -2, 'a' || 'b', NULL)", ", ");
        let long = [
            format!("INSERT INTO t VALUES {rows}"),
            format!("SELECT * FROM t WHERE a IN ({})", repeated(20_000, "-1", ", ")),
            format!("SELECT {} FROM t", repeated(5_000, "a + 1 AS b", ", ")),
            format!("SELECT CASE {} END FROM t", repeated(2_000, "WHEN a = 1 AND b = 2 THEN 3", " ")),
            format!("SELECT * FROM t WHERE {}", repeated(900, "(a = 1 AND b = 2 OR c <> 'x')", " OR ")),
            format!("INSERT INTO DGH zip VALUES {}", repeated(20_000, "('a', 'b')", ", ")),
            repeated(3_000, "SELECT 1 + 1 FROM t WHERE a = 1 OR b = 2", ";"),
        ];
        for sql in long {
            assert_eq!(problem(&sql), None, "{}", &sql[..60]);
        }
    }
}
