//! Refuses statements that would overflow the stack or take too much memory or time.
//!
//! The parser's own recursion limit is not enough. The parser reads `a OR b OR c ...` in a loop, and the result is a
//! tree that is as deep as the number of operators. Code that walks the tree is recursive, even the code that frees it,
//! and a stack overflow ends the process. So [`check_tree`] measures a parsed statement before it is planned, and the
//! threads that run statements have a stack ([`STACK`]) that holds the deepest allowed tree.
//!
//! [`check_tokens`] runs before the parser. It bounds the tree that the parser can make, and the time it can take.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::ptr;

use datafusion::sql::parser::{CopyToSource, Statement as DFStatement};
use datafusion::sql::sqlparser::ast::{Expr, ObjectName, Query, Select, SetExpr, TableFactor, Visit, Visitor};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::error::{ParseError, ParseErrorKind};
use super::spelled;

/// The largest depth of a statement. Parentheses may be nested as deeply before the statement is parsed.
const MOST_DEEP: usize = 1_000;

/// The largest number of names and signs between two commas, including those around the parentheses that are open. The
/// parser can't make a deeper tree of them, because values make no tree deeper without a sign or a name between them.
const MOST_IN_A_ROW: usize = 20_000;

/// The largest number of tables that a statement may read, with queries of WITH inserted where they are named.
const MOST_TABLES: u64 = 4_000;

/// The largest number of tokens that the parser may read in all: this many, plus a multiple of the statement's tokens.
///
/// The parser reads the parentheses of a function or a query up to twice, so each level of nesting doubles its work.
/// Each CASE doubles it too: if END is missing, the parser goes back and reads CASE as a name. It looks for END up to the
/// next comma or closing parenthesis at most.
const MOST_READ: u64 = 1_000_000;
const MOST_TIMES_READ: u64 = 16;

/// The stack of threads that run statements, in bytes. This is several times what the deepest allowed statement needs
/// in a build without optimization. Unused pages cost nothing.
pub const STACK: usize = 128 << 20;

/// The part of a statement between two matching parentheses, without deeper ones.
#[derive(Default)]
struct Level {
    /// Names and signs since the last comma.
    n_in_a_row: usize,
    /// Whether the parser may read this level twice.
    is_read_twice: bool,
    /// Whether the parentheses enclose the name of an operator, as in `a OPERATOR(+) b`.
    is_operator: bool,
    /// Each CASE whose END has not come yet, and whether the parser may read it twice.
    cases: Vec<bool>,
}

impl Level {
    /// Forgets each CASE without an END, and returns how many of them the parser may have read twice.
    fn leave_cases(&mut self) -> u32 {
        self.cases.drain(..).map(u32::from).sum()
    }
}

/// Refuses tokens that the parser would take too long to read, or from which it could make too deep a tree.
///
/// # Errors
/// If a limit is exceeded, with the place of the first token beyond it.
pub(super) fn check_tokens(tokens: &[TokenWithSpan]) -> Result<(), ParseError> {
    let mut levels = vec![Level::default()];
    let (mut n_around, mut n_read_twice, mut n_read) = (0, 0u32, 0u64);
    let most_read = MOST_READ + MOST_TIMES_READ * tokens.len() as u64;
    let mut before: Option<&Token> = None;
    let mut is_operand_before = false;
    for (place, TokenWithSpan { token, span }) in tokens.iter().enumerate() {
        let level = levels.last_mut().expect("the outermost is never left");
        level.n_in_a_row += weight(token);
        let mut is_operand = ends_operand(token);
        match (token, keyword(token)) {
            (Token::LParen | Token::LBracket | Token::LBrace, _) => {
                n_around += level.n_in_a_row;
                let begins_query = |token: &TokenWithSpan| {
                    matches!(keyword(&token.token), Keyword::SELECT | Keyword::WITH | Keyword::VALUES)
                };
                let is_read_twice =
                    matches!(before, Some(Token::Word(_))) || tokens.get(place + 1).is_some_and(begins_query);
                n_read_twice += u32::from(is_read_twice);
                let is_operator = before.is_some_and(|before| keyword(before) == Keyword::OPERATOR);
                levels.push(Level { is_read_twice, is_operator, ..Level::default() });
            }
            (Token::RParen | Token::RBracket | Token::RBrace, _) => {
                if levels.len() > 1
                    && let Some(mut inner) = levels.pop()
                {
                    n_around -= levels.last().expect("one is left").n_in_a_row;
                    n_read_twice -= u32::from(inner.is_read_twice) + inner.leave_cases();
                    is_operand = !inner.is_operator;
                }
            }
            (Token::Comma, _) => {
                level.n_in_a_row = 0;
                n_read_twice -= level.leave_cases();
            }
            (_, Keyword::CASE) if !matches!(before, Some(Token::Period)) => {
                // After ELSE only END can follow the expression, so the parser does not try CASE as a name here.
                let is_read_twice = before.is_none_or(|before| keyword(before) != Keyword::ELSE);
                level.cases.push(is_read_twice);
                n_read_twice += u32::from(is_read_twice);
            }
            (_, Keyword::END) if is_operand_before => {
                n_read_twice -= u32::from(level.cases.pop() == Some(true));
            }
            _ => {}
        }
        before = Some(token);
        is_operand_before = is_operand;
        n_read = n_read.saturating_add(1u64.checked_shl(n_read_twice).unwrap_or(u64::MAX));
        if n_read > most_read {
            return Err(ParseError::new(span.start.into(), ParseErrorKind::TooNested));
        }
        let n_in_a_row = n_around + levels.last().map_or(0, |level| level.n_in_a_row);
        if n_in_a_row > MOST_IN_A_ROW || levels.len() > MOST_DEEP {
            return Err(ParseError::new(span.start.into(), ParseErrorKind::TooDeep { most: MOST_DEEP }));
        }
    }
    Ok(())
}

fn keyword(token: &Token) -> Keyword {
    match token {
        Token::Word(Word { keyword, quote_style: None, .. }) => *keyword,
        _ => Keyword::NoKeyword,
    }
}

/// How much a token counts: 1 for a name or a sign, 0 for a value.
fn weight(token: &Token) -> usize {
    match (token, keyword(token)) {
        (Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_), _) => 0,
        // The parser nests types of arrays and EXPLAINs without a recursion limit.
        (Token::LBracket, _) | (_, Keyword::ARRAY) => 20,
        (_, Keyword::EXPLAIN) => 400,
        _ => 1,
    }
}

/// Whether a token is certainly the last one of an operand, so that END after it is no name. A keyword may be an operator
/// that needs another operand. If a column has a keyword's name, its CASE is counted as read twice without need.
fn ends_operand(token: &Token) -> bool {
    match (token, keyword(token)) {
        (Token::Word(_), Keyword::NoKeyword | Keyword::NULL | Keyword::TRUE | Keyword::FALSE | Keyword::END) => true,
        (Token::RParen | Token::RBracket | Token::RBrace, _) => true,
        _ => weight(token) == 0,
    }
}

/// Refuses a statement whose tree is too deep, or whose plan would read too many tables.
pub(super) fn check_tree(statement: &DFStatement) -> Result<(), ParseErrorKind> {
    let mut tree = Tree { levels: vec![TreeLevel::default()], ..Tree::default() };
    let _: ControlFlow<()> = visit(statement, &mut tree);
    // The planner also plans queries of WITH that nothing reads.
    let mut planned = tree.levels.iter().chain(tree.queries.values());
    if planned.clone().any(|level| level.depth() > MOST_DEEP) {
        Err(ParseErrorKind::TooDeep { most: MOST_DEEP })
    } else if planned.any(|level| level.n_tables > MOST_TABLES) {
        Err(ParseErrorKind::TooManyTables { most: MOST_TABLES })
    } else {
        Ok(())
    }
}

/// Visits all parts of a statement.
pub(super) fn visit<V: Visitor>(statement: &DFStatement, visitor: &mut V) -> ControlFlow<V::Break> {
    match statement {
        DFStatement::Statement(statement) => statement.visit(visitor),
        DFStatement::Explain(explain) => visit(&explain.statement, visitor),
        DFStatement::CopyTo(copy) => match &copy.source {
            CopyToSource::Query(query) => query.visit(visitor),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        DFStatement::CreateExternalTable(create) => {
            create.columns.visit(visitor)?;
            create.constraints.visit(visitor)?;
            create.order_exprs.visit(visitor)
        }
        DFStatement::Reset(_) => ControlFlow::Continue(()),
    }
}

/// The body of a query and, if it is a UNION, an INTERSECT or an EXCEPT, all bodies inside it.
pub(crate) fn bodies(body: &SetExpr) -> Vec<&SetExpr> {
    let mut bodies = vec![body];
    let mut next = 0;
    while let Some(&body) = bodies.get(next) {
        if let SetExpr::SetOperation { left, right, .. } = body {
            bodies.extend([left.as_ref(), right.as_ref()]);
        }
        next += 1;
    }
    bodies
}

/// Measures the tree of a statement.
///
/// The planner inserts a query of WITH wherever its name is used. If each of thirty queries reads the one before it
/// twice, the plan reads a billion tables. So tables and depth are counted with all queries of WITH inserted.
#[derive(Default)]
struct Tree {
    /// The statement, and the queries and SELECTs around the current part of it.
    levels: Vec<TreeLevel>,
    /// The names of the queries of WITH that are being visited, by their addresses.
    names: HashMap<*const Query, String>,
    /// The queries of WITH by name.
    queries: HashMap<String, TreeLevel>,
}

/// A query, a SELECT, or the whole statement.
#[derive(Clone, Copy, Default)]
struct TreeLevel {
    /// The number of tables and set operations, which the planner chains.
    n_chained: usize,
    /// The depth of the current part below these.
    n_open: usize,
    /// The depth of the deepest part below these.
    deepest: usize,
    /// The number of tables that are read.
    n_tables: u64,
}

impl TreeLevel {
    fn depth(&self) -> usize {
        self.n_chained.saturating_add(self.deepest)
    }

    /// Notes something inside the current part.
    fn note(&mut self, inner: TreeLevel) {
        self.deepest = self.deepest.max(self.n_open.saturating_add(inner.depth()));
        self.n_tables = self.n_tables.saturating_add(inner.n_tables);
    }
}

impl Tree {
    fn level(&mut self) -> &mut TreeLevel {
        self.levels.last_mut().expect("the statement is never left")
    }

    fn leave(&mut self) -> TreeLevel {
        self.levels.pop().expect("it was entered")
    }
}

impl Visitor for Tree {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for named in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.names.insert(ptr::from_ref(named.query.as_ref()), spelled(&named.alias.name));
        }
        // Of n bodies, n / 2 are set operations.
        self.levels.push(TreeLevel { n_chained: bodies(&query.body).len() / 2, ..TreeLevel::default() });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let left = self.leave();
        match self.names.remove(&ptr::from_ref(query)) {
            Some(name) => {
                // Several queries may have the same name, so note the largest depth and the most tables.
                let known = self.queries.entry(name).or_default();
                let n_tables = known.n_tables.max(left.n_tables);
                *known = TreeLevel { deepest: known.deepest.max(left.depth()), n_tables, ..TreeLevel::default() };
            }
            None => self.level().note(left),
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, _: &Select) -> ControlFlow<()> {
        self.levels.push(TreeLevel::default());
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &Select) -> ControlFlow<()> {
        let left = self.leave();
        self.level().note(left);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, _: &TableFactor) -> ControlFlow<()> {
        self.level().n_chained += 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        let query = match name.0.as_slice() {
            [part] => part.as_ident().and_then(|name| self.queries.get(&spelled(name))).copied(),
            _ => None,
        };
        let table = query.unwrap_or_default();
        self.level().note(TreeLevel { n_tables: table.n_tables.max(1), ..table });
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        let level = self.level();
        level.n_open += n_links(expression);
        level.deepest = level.deepest.max(level.n_open);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        self.level().n_open -= n_links(expression);
        ControlFlow::Continue(())
    }
}

/// How much deeper an expression makes its plan.
fn n_links(expression: &Expr) -> usize {
    match expression {
        Expr::CompoundFieldAccess { access_chain, .. } => access_chain.len() + 1,
        Expr::CompoundIdentifier(names) => names.len(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ParseError, parse};
    use super::*;

    /// The same stack as in the programs.
    fn problem(sql: &str) -> Option<ParseError> {
        std::thread::scope(|scope| {
            let parsing = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || parse(sql).err());
            parsing.unwrap().join().unwrap()
        })
    }

    fn repeated(n: usize, part: &str, between: &str) -> String {
        vec![part; n].join(between)
    }

    #[test]
    fn trees_that_grow_with_every_operator_are_refused() {
        let deep = [
            format!("SELECT {}", repeated(1_100, "a", " + ")),
            format!("SELECT {}", repeated(1_100, "a", " OR ")),
            format!("SELECT {}", repeated(1_100, "a = 1", " AND ")),
            format!("SELECT {}", repeated(1_100, "1", " = ")),
            format!("SELECT a{}", "::text".repeat(1_100)),
            format!("SELECT a{}", " IS NULL".repeat(1_100)),
            format!("SELECT a{}", "[1]".repeat(1_100)),
            format!("SELECT a{}", " -> 'b'".repeat(1_100)),
            format!("SELECT 1 FROM {}", repeated(1_100, "t", ", ")),
            format!("SELECT 1 FROM t {}", "JOIN t ON a = b ".repeat(1_100)),
            repeated(1_100, "SELECT 1", " UNION ALL "),
            repeated(1_100, "VALUES (1)", " UNION ALL "),
            format!("COPY (SELECT {}) TO 'a.csv'", repeated(1_100, "a", " + ")),
            format!("CREATE TABLE t (a INT DEFAULT {})", repeated(1_100, "1", " + ")),
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
        let found = |sql: &String| problem(sql).map(|problem| problem.fault);
        let is_accepted = |sql: &&String| found(sql) != Some(ParseErrorKind::TooDeep { most: 1_000 });
        let accepted: Vec<_> = deep.iter().filter(is_accepted).map(|sql| (&sql[..60], found(sql))).collect();
        assert_eq!(accepted, []);
    }

    #[test]
    fn functions_and_queries_inside_each_other_are_counted_by_how_often_they_are_read() {
        let nested = |open: &str, n: usize| format!("{}1{}", open.repeat(n), ")".repeat(n));
        let found = |sql: &str| problem(sql).map(|problem| problem.fault);
        for deep in ["- ".repeat(1_100) + "1", "a".to_owned() + &".b".repeat(1_100)] {
            assert_eq!(found(&format!("SELECT {deep}")), Some(ParseErrorKind::TooNested), "{}", &deep[..20]);
        }
        for unreadable in ["NOT ".repeat(1_100) + "a", "a".to_owned() + &" COLLATE c".repeat(1_100)] {
            assert!(found(&format!("SELECT {unreadable}")).is_some(), "{}", &unreadable[..20]);
        }
        for open in ["abs(", "coalesce(", "(SELECT "] {
            assert_eq!(found(&format!("SELECT {}", nested(open, 12))), None, "{open}");
            assert_eq!(found(&format!("SELECT {}", nested(open, 40))), Some(ParseErrorKind::TooNested), "{open}");
        }
        let many = |n: usize, depth: usize| format!("SELECT {}", vec![nested("abs(", depth); n].join(","));
        assert_eq!(found(&many(300, 3)), None);
        assert_eq!(found(&many(300, 14)), Some(ParseErrorKind::TooNested), "also side by side");
        assert_eq!(found(&format!("SELECT {}", nested("(", 40))), None, "parentheses that only group are read once");
        let rows = vec!["(1, 'a')"; 20_000].join(", ");
        assert_eq!(found(&format!("INSERT INTO t VALUES {rows}")), None);
    }

    #[test]
    fn a_case_inside_another_is_counted_by_how_often_it_is_read() {
        let found = |sql: &str| problem(sql).map(|problem| problem.fault);
        let nested = |open: &str, n: usize, close: &str| format!("SELECT {}b{}", open.repeat(n), close.repeat(n));
        // Without END, or with another word before END, the parser reads every CASE as a name too.
        for (open, close) in [
            ("CASE WHEN a THEN ", " END"),
            ("CASE WHEN a THEN ", " x END"),
            ("CASE WHEN a THEN ", ""),
            ("CASE WHEN end THEN ", " x END"),
            ("CASE ", " WHEN a THEN b END"),
            ("(CASE WHEN a THEN ", " x END)"),
            // END is a name where an operand must follow.
            ("CASE WHEN a OPERATOR(+) end THEN ", ""),
            ("CASE WHEN a LIKE ANY end THEN ", ""),
            ("CASE WHEN sum(a) OVER end THEN ", ""),
            ("CASE WHEN a RLIKE end THEN ", ""),
        ] {
            assert_eq!(found(&nested(open, 300, close)), Some(ParseErrorKind::TooNested), "{open}{close}");
        }
        assert_eq!(found(&nested("CASE WHEN a THEN ", 12, " END")), None);
        assert_eq!(found(&nested("CASE WHEN a THEN b ELSE ", 30, " END")), None, "a list of cases is read once");
        for case in ["CASE WHEN a THEN b END", "CASE WHEN a THEN year END"] {
            assert_eq!(found(&format!("SELECT {}", vec![case; 3_000].join(", "))), None, "{case}");
        }
        assert_eq!(found(&format!("SELECT {}", vec!["CASE WHEN a THEN b END"; 200].join(" + "))), None);
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
            let problem = problem(&sql).unwrap_or_else(|| panic!("{}", &sql[..60]));
            assert!(problem.is_too_deep(), "{}: {problem}", &sql[..60]);
        }
    }

    #[test]
    fn no_nesting_overflows_the_stack_before_the_tree_is_measured() {
        for (open, middle, close) in [
            ("EXPLAIN ", "SELECT 1", ""),
            ("SELECT CAST(a AS ARRAY<", "INT", ""),
            ("ARRAY<", "INT", ">"),
            ("STRUCT<a ", "INT", ">"),
            ("(", "1", ")"),
            ("[", "1", "]"),
            ("{", "1", "}"),
            ("CASE ", "1", " END"),
            ("NOT ", "1", ""),
            ("(SELECT 1 FROM ", "t", ")"),
            ("a IN (", "1", ")"),
            ("INTERVAL ", "'1'", ""),
            ("EXISTS (", "SELECT 1", ")"),
            ("a + ", "1", ""),
            ("a::int[] || ", "1", ""),
            ("PREPARE p AS ", "SELECT 1", ""),
            ("t JOIN ", "t", " ON true"),
            ("SELECT 1 UNION ", "SELECT 1", ""),
        ] {
            for before in ["", "SELECT ", "SELECT CAST(1 AS ", "SELECT 1 FROM ", "CREATE TABLE t (a "] {
                for n in [900, 3_000, 9_000, 19_000] {
                    let _ = problem(&format!("{before}{}{middle}{}", open.repeat(n), close.repeat(n)));
                }
            }
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
        let long = format!("SELECT x FROM BEFORE UNION ALL {}", repeated(60, "SELECT 1", " UNION ALL "));
        let deep = problem(&chain(100, &long)).map(|problem| problem.fault);
        assert_eq!(
            deep,
            Some(ParseErrorKind::TooDeep { most: 1_000 }),
            "queries of WITH are as deep as those they read"
        );
        for small in [
            chain(100, "SELECT BEFORE.x, BEFORE.x + BEFORE.x AS y FROM BEFORE WHERE BEFORE.x > 0 ORDER BY BEFORE.x"),
            chain(8, "SELECT a.x FROM BEFORE a JOIN BEFORE b ON a.x = b.x"),
        ] {
            assert_eq!(problem(&small), None, "{small}");
        }
    }

    #[test]
    fn statements_that_are_long_but_flat_are_accepted() {
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
