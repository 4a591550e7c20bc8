//! [`check_depth`]: no statement is so deep, or becomes so large, that whoever works on it runs out of stack or memory.
//!
//! `a OR b OR c ...` is read without recursion, and becomes a tree as deep as it has operators. Everything that walks
//! such a tree, ours or not, down to whoever frees it, does so by recursion, and a stack that overflows ends the process.
//! So statements are bounded before they are read, and threads that run them have room for what is allowed.
//!
//! Depth is counted as the parser will see it, by how tightly operators bind. Where that is mistaken, since most keywords
//! may also be names, the number of all operators that stand in one expression is bounded too, less tightly.
//!
//! A query of WITH is put in the place of each table that names it. Where each of thirty queries reads the one before twice,
//! a billion tables are read in the end. So tables are counted as if all were in their places.

use std::collections::HashMap;

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::error::{ParseError, ParseErrorKind};
use super::folded;

/// So deep a statement may be.
const MOST_DEEP: usize = 1_000;

/// So many operators may stand in one expression, and around it.
const MOST_OPERATORS: usize = 10_000;

/// So many tables a statement may read, with queries of WITH in the places where they are named.
const MOST_TABLES: u64 = 4_000;

/// The parser reads what stands in the parentheses of a function or a query up to twice, so that each of those inside each
/// other doubles its work. So does each CASE: where one has no END, CASE is read again as a name, and what follows it as a
/// part of the CASE around it. So many words and signs the parser may read in all, and so many times as many as there are.
const MOST_READ: u64 = 1_000_000;
const MOST_TIMES_READ: u64 = 16;

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
#[derive(Clone, Default)]
struct Level {
    /// How many operators of each kind follow each other, with tighter ones between them.
    run: [usize; N_BINDINGS],
    longest: [usize; N_BINDINGS],
    /// Operators of any kind since the last comma.
    n_operators: usize,
    /// Whether a comma adds a table: in FROM, and in WITH, whose queries can read each other.
    adds_tables: bool,
    /// Whether an operator stands before, so that a word is a name or a value, whatever it means elsewhere.
    expects_operand: bool,
    /// Whether a table stands next.
    expects_table: bool,
    /// The last name before it.
    name_before: Option<String>,
    /// The query of WITH that it is.
    defines: Option<String>,
    /// Tables that are read in it.
    n_tables: u64,
    /// Whether the parser may read it twice.
    is_read_twice: bool,
    /// Each CASE without its END yet, and whether the parser may read it twice.
    cases: Vec<bool>,
}

impl Level {
    fn start() -> Level {
        Level { expects_operand: true, ..Level::default() }
    }

    fn note(&mut self, binding: Binding) {
        let binding = binding as usize;
        self.run[binding] += 1;
        self.longest[binding] = self.longest[binding].max(self.run[binding]);
        self.run[binding + 1..].fill(0);
        self.n_operators += 1;
        self.expects_operand = true;
    }

    /// A new expression begins.
    fn end_expression(&mut self) {
        self.run[Binding::Or as usize..].fill(0);
        self.expects_operand = true;
    }

    fn depth(&self) -> usize {
        self.longest.iter().sum::<usize>() + 1
    }
}

/// What is around the innermost level.
#[derive(Clone, Copy, Default)]
struct Around {
    depth: usize,
    n_operators: usize,
}

/// Refuses statements whose trees would be too deep, or too large.
///
/// # Errors
/// Where one is, with the place from which on it is.
pub(super) fn check_depth(tokens: &[TokenWithSpan]) -> Result<(), ParseError> {
    let mut levels = vec![Level::start()];
    let mut around = Around::default();
    let mut last_name: Option<String> = None;
    // The name before an AS.
    let mut named: Option<String> = None;
    // Queries of WITH, and how many tables each reads.
    let mut queries: HashMap<String, u64> = HashMap::new();
    let (mut n_read_twice, mut n_read) = (0u32, 0u64);
    let most_read = MOST_READ + MOST_TIMES_READ * tokens.len() as u64;
    for (place, token) in tokens.iter().enumerate() {
        let level = levels.last_mut().expect("the outermost is never left");
        let next = tokens.get(place + 1).map(|next| &next.token);
        let is_part = place > 0 && matches!(tokens[place - 1].token, Token::Period);
        let name_of_query = named.take();
        let is_table = std::mem::take(&mut level.expects_table);
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                if matches!(token.token, Token::LBracket) {
                    level.note(Binding::Suffix);
                }
                around.depth += level.depth();
                around.n_operators += level.n_operators;
                let (name_before, defines) = (last_name.take(), name_of_query);
                let follows_word = place > 0 && matches!(tokens[place - 1].token, Token::Word(_));
                let is_read_twice = follows_word || next.is_some_and(begins_query);
                n_read_twice += u32::from(is_read_twice);
                levels.push(Level {
                    is_read_twice,
                    adds_tables: is_table,
                    expects_table: is_table,
                    name_before,
                    defines,
                    ..Level::start()
                });
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                if levels.len() > 1
                    && let Some(inner) = levels.pop()
                {
                    let outer = levels.last_mut().expect("one is left");
                    around.depth -= outer.depth();
                    around.n_operators -= outer.n_operators;
                    let n_cases = inner.cases.iter().filter(|is_read_twice| **is_read_twice).count();
                    n_read_twice -= u32::from(inner.is_read_twice) + n_cases as u32;
                    outer.expects_operand = false;
                    match inner.defines {
                        Some(query) => {
                            let known = queries.entry(query).or_default();
                            *known = inner.n_tables.max(*known);
                        }
                        None => outer.n_tables = outer.n_tables.saturating_add(inner.n_tables),
                    }
                    last_name = inner.name_before;
                }
            }
            Token::Comma if level.adds_tables => {
                level.note(Binding::Join);
                level.expects_table = true;
            }
            Token::Comma | Token::SemiColon => {
                level.end_expression();
                level.n_operators = 0;
            }
            Token::Word(word) => {
                let is_name = word.quote_style.is_some() || is_part || level.expects_operand && !is_prefix(word);
                let name = folded(&word.value, word.quote_style);
                if is_table && is_name && !matches!(next, Some(Token::Period | Token::LParen)) {
                    let n_tables = queries.get(&name).copied().unwrap_or(1).max(1);
                    level.n_tables = level.n_tables.saturating_add(n_tables);
                }
                match word.keyword {
                    Keyword::CASE if !is_part && word.quote_style.is_none() => {
                        // Behind ELSE nothing but END may follow, so a name ends the CASE around it.
                        let is_read_twice = !last_is_else(&tokens[..place]);
                        level.cases.push(is_read_twice);
                        n_read_twice += u32::from(is_read_twice);
                    }
                    Keyword::END if !is_name => {
                        n_read_twice -= u32::from(level.cases.pop() == Some(true));
                    }
                    _ => {}
                }
                match word.keyword {
                    Keyword::AS if !is_name => {
                        named = last_name.take();
                        level.expects_operand = false;
                    }
                    // AS MATERIALIZED (...), AS NOT MATERIALIZED (...)
                    Keyword::NOT | Keyword::MATERIALIZED if name_of_query.is_some() => named = name_of_query,
                    _ if is_name => {
                        level.expects_operand = false;
                        last_name = Some(name);
                    }
                    keyword => {
                        note_word(level, keyword);
                        last_name = Some(name);
                    }
                }
            }
            Token::Number(..)
            | Token::Placeholder(_)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::NationalStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::DollarQuotedString(_) => level.expects_operand = false,
            Token::Period => {}
            Token::Plus | Token::Minus | Token::StringConcat => level.note(Binding::Sum),
            Token::Mul | Token::Div | Token::Mod | Token::Caret => level.note(Binding::Product),
            Token::DoubleColon => level.note(Binding::Suffix),
            // Every other sign compares, or binds about as tightly.
            _ => level.note(Binding::Comparison),
        }
        n_read = n_read.saturating_add(1u64.checked_shl(n_read_twice).unwrap_or(u64::MAX));
        if n_read > most_read {
            return Err(ParseError::new(token.span.start.into(), ParseErrorKind::TooNested));
        }
        let level = levels.last().expect("the outermost is never left");
        let is_deep =
            around.depth + level.depth() > MOST_DEEP || around.n_operators + level.n_operators > MOST_OPERATORS;
        if is_deep {
            return Err(ParseError::new(token.span.start.into(), ParseErrorKind::TooDeep { most: MOST_DEEP }));
        }
        if level.n_tables > MOST_TABLES {
            return Err(ParseError::new(token.span.start.into(), ParseErrorKind::TooManyTables { most: MOST_TABLES }));
        }
    }
    Ok(())
}

fn begins_query(token: &Token) -> bool {
    matches!(token, Token::Word(Word { keyword: Keyword::SELECT | Keyword::WITH | Keyword::VALUES, .. }))
}

fn last_is_else(tokens: &[TokenWithSpan]) -> bool {
    matches!(tokens.last().map(|last| &last.token), Some(Token::Word(Word { keyword: Keyword::ELSE, .. })))
}

/// Whether a word means what it says although an operand could stand there.
fn is_prefix(word: &Word) -> bool {
    matches!(
        word.keyword,
        Keyword::NOT
            | Keyword::SELECT
            | Keyword::FROM
            | Keyword::WITH
            | Keyword::WHEN
            | Keyword::CASE
            | Keyword::VALUES
            | Keyword::INTERVAL
    )
}

/// Notes a word that is no name.
fn note_word(level: &mut Level, keyword: Keyword) {
    match keyword {
        Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::MINUS => {
            level.adds_tables = false;
            level.note(Binding::SetOperator);
        }
        Keyword::FROM | Keyword::WITH => {
            level.adds_tables = true;
            level.expects_table = true;
            level.end_expression();
        }
        Keyword::JOIN | Keyword::APPLY => {
            level.note(Binding::Join);
            level.expects_table = true;
        }
        Keyword::WHERE | Keyword::GROUP | Keyword::ORDER | Keyword::HAVING | Keyword::LIMIT | Keyword::WINDOW => {
            level.adds_tables = false;
            level.end_expression();
        }
        Keyword::SELECT | Keyword::VALUES => {
            level.adds_tables = false;
            level.end_expression();
        }
        Keyword::ON | Keyword::WHEN | Keyword::THEN | Keyword::ELSE => level.end_expression(),
        Keyword::CASE => level.expects_operand = true,
        Keyword::OR => level.note(Binding::Or),
        Keyword::AND => level.note(Binding::And),
        Keyword::NOT => level.note(Binding::Not),
        Keyword::COLLATE | Keyword::AT | Keyword::OVER | Keyword::NOTNULL => level.note(Binding::Suffix),
        Keyword::IS
        | Keyword::IN
        | Keyword::LIKE
        | Keyword::ILIKE
        | Keyword::SIMILAR
        | Keyword::BETWEEN
        | Keyword::XOR
        | Keyword::INTERVAL => level.note(Binding::Comparison),
        // An operator of its own, or what something is called: OVERLAPS, RLIKE, EXPLAIN, AS, DESC.
        _ => {
            level.note(Binding::Comparison);
            level.expects_operand = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ParseError, parse};
    use super::*;

    fn problem(sql: &str) -> Option<ParseError> {
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
            assert_eq!(found, Some(ParseErrorKind::TooDeep { most: 1_000 }), "{}", &sql[..60]);
        }
    }

    #[test]
    fn functions_and_queries_inside_each_other_are_counted_by_how_often_they_are_read() {
        let nested = |open: &str, n: usize| format!("{}1{}", open.repeat(n), ")".repeat(n));
        let found = |sql: &str| problem(sql).map(|problem| problem.fault);
        for open in ["abs(", "coalesce(", "(SELECT "] {
            assert_eq!(found(&format!("SELECT {}", nested(open, 12))), None, "{open}");
            assert_eq!(found(&format!("SELECT {}", nested(open, 40))), Some(ParseErrorKind::TooNested), "{open}");
        }
        let many = |n: usize, depth: usize| format!("SELECT {}", vec![nested("abs(", depth); n].join(","));
        assert_eq!(found(&many(300, 3)), None);
        assert_eq!(found(&many(300, 14)), Some(ParseErrorKind::TooNested), "also side by side");
        assert_eq!(found(&format!("SELECT {}", nested("(", 40))), None, "what only groups is read once");
        let rows = vec!["(1, 'a')"; 20_000].join(", ");
        assert_eq!(found(&format!("INSERT INTO t VALUES {rows}")), None);
    }

    #[test]
    fn a_case_inside_another_is_counted_by_how_often_it_is_read() {
        let found = |sql: &str| problem(sql).map(|problem| problem.fault);
        let nested = |open: &str, n: usize, close: &str| format!("SELECT {}b{}", open.repeat(n), close.repeat(n));
        // Without END, or with something else before it, every CASE is read as a name too.
        for (open, close) in [
            ("CASE WHEN a THEN ", " END"),
            ("CASE WHEN a THEN ", " x END"),
            ("CASE WHEN a THEN ", ""),
            ("CASE WHEN end THEN ", " x END"),
            ("CASE ", " WHEN a THEN b END"),
            ("(CASE WHEN a THEN ", " x END)"),
        ] {
            assert_eq!(found(&nested(open, 300, close)), Some(ParseErrorKind::TooNested), "{open}{close}");
        }
        assert_eq!(found(&nested("CASE WHEN a THEN ", 12, " END")), None);
        assert_eq!(found(&nested("CASE WHEN a THEN b ELSE ", 30, " END")), None, "a list of cases is read once");
        let side_by_side = vec!["CASE WHEN a THEN b END"; 3_000].join(", ");
        assert_eq!(found(&format!("SELECT {side_by_side}")), None);
    }

    #[test]
    fn keywords_that_are_names_make_nothing_less_deep() {
        let n = 12_000;
        let deep = [
            format!("SELECT {}", repeated(1_100, "on", "+")),
            format!("SELECT {} FROM (SELECT 1 AS \"values\") a", repeated(1_100, "a.values", "+")),
            format!("SELECT 1 FROM t WHERE {}", repeated(1_100, "limit", " AND ")),
            format!("SELECT {}", repeated(1_100, "else", " || ")),
            format!("SELECT {}", repeated(1_100, "1", " OVERLAPS ")),
            format!("SELECT {}", repeated(1_100, "'a'", " RLIKE ")),
            format!("SELECT {}", repeated(1_100, "('a')", " MEMBER OF ")),
            format!("{}SELECT 1", "EXPLAIN ".repeat(1_100)),
            format!("SELECT 1 FROM {}", repeated(1_100, "limit", ", ")),
            format!("SELECT {}", repeated(n, "from", "+")),
            format!("SELECT {}", repeated(n, "CASE WHEN a THEN b END", " + ")),
            format!("SELECT {}", repeated(n, "a", " IS DISTINCT FROM ")),
            format!("SELECT {}", repeated(n, "1 BETWEEN 1 AND 1", " = ")),
        ];
        for sql in deep {
            let found = problem(&sql).map(|problem| problem.fault);
            let is_refused =
                matches!(found, Some(ParseErrorKind::TooDeep { .. } | ParseErrorKind::TooManyTables { .. }));
            assert!(is_refused, "{}: {found:?}", &sql[..60]);
        }
    }

    #[test]
    fn queries_that_read_each_other_are_counted_in_their_places() {
        let chain = |n: usize, body: &str| {
            let query = |number: usize| {
                let (name, before) = (format!("t{number}"), format!("t{}", number - 1));
                format!("{name} AS ({})", body.replace("BEFORE", &before))
            };
            let queries: Vec<String> = (1..n).map(query).collect();
            format!("WITH t0 AS (SELECT 1 AS x), {} SELECT count(*) FROM t{}", queries.join(", "), n - 1)
        };
        for large in [
            chain(17, "SELECT a.x FROM BEFORE a CROSS JOIN BEFORE b"),
            chain(17, "SELECT x FROM BEFORE UNION ALL SELECT x FROM BEFORE"),
            chain(17, "SELECT x FROM BEFORE WHERE x IN (SELECT x FROM BEFORE)"),
            chain(17, "SELECT a.x FROM (BEFORE a CROSS JOIN BEFORE b)"),
            chain(17, "SELECT a.x FROM BEFORE a, BEFORE b").replace("AS (", "AS NOT MATERIALIZED ("),
            chain(17, "SELECT a.x FROM BEFORE a, BEFORE b").replace("AS (", "(x) AS ("),
        ] {
            let found = problem(&large).map(|problem| problem.fault);
            assert_eq!(found, Some(ParseErrorKind::TooManyTables { most: 4_000 }), "{large}");
        }
        for small in [
            chain(100, "SELECT BEFORE.x, BEFORE.x + BEFORE.x AS y FROM BEFORE WHERE BEFORE.x > 0 ORDER BY BEFORE.x"),
            chain(8, "SELECT a.x FROM BEFORE a JOIN BEFORE b ON a.x = b.x"),
        ] {
            assert_eq!(problem(&small), None, "{small}");
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
            format!("SELECT * FROM t JOIN u ON t.a IN ({})", repeated(20_000, "1", ", ")),
            format!("SELECT * FROM (VALUES {}) AS v (a)", repeated(20_000, "(1)", ", ")),
            format!("SELECT * FROM t WHERE {}", repeated(900, "a = $1 AND b IS NOT NULL", " OR ")),
            format!("SELECT * FROM t WHERE {}", repeated(900, "a NOT IN ($1, 2) AND NOT b LIKE 'x'", " OR ")),
            format!("SELECT * FROM t x {}", "LEFT JOIN t AS y ON x.a = y.a AND x.b = y.b ".repeat(900)),
            repeated(3_000, "SELECT 1 + 1 FROM t WHERE a = 1 OR b = 2", ";"),
        ];
        for sql in long {
            assert_eq!(problem(&sql), None, "{}", &sql[..60]);
        }
    }
}
