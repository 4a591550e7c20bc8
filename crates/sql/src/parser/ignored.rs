//! Refuses clauses that the query engine would accept and then ignore or misunderstand.
//!
//! # Guarantee
//! A statement with such a clause is an error. DataFusion's planner drops some clauses without a word, so the answer
//! would be wrong: `TABLESAMPLE` would return all rows, and `FOR UPDATE` would lock none. Other clauses mean something
//! else in PostgreSQL: DataFusion reads `SIMILAR TO` as a regular expression, `INTERSECT ALL` counts rows too often,
//! `'abc'::varchar(2)` stays `abc`, and seconds lose their fraction.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as DFStatement;
use datafusion::sql::sqlparser::ast::{
    CharacterLength, DataType, DateTimeField, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Query,
    Select, SetExpr, SetOperator, SetQuantifier, TableFactor, Value, Visitor,
};

use super::depth::{bodies, visit};

/// The first such clause of a statement, in words for a message.
pub(super) fn find_ignored(statement: &DFStatement) -> Option<&'static str> {
    visit(statement, &mut Ignored).break_value()
}

struct Ignored;

impl Visitor for Ignored {
    type Break = &'static str;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<&'static str> {
        let Query { body, locks, for_clause, settings, format_clause, .. } = query;
        first(&[
            ("INTERSECT ALL or EXCEPT ALL (leave ALL out)", counts_rows(body)),
            ("TABLE here (write SELECT * FROM the table)", names_table(body)),
            ("FOR UPDATE or FOR SHARE", !locks.is_empty()),
            ("FOR XML, JSON or BROWSE", for_clause.is_some()),
            ("SETTINGS", settings.is_some()),
            ("FORMAT", format_clause.is_some()),
        ])
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<&'static str> {
        let Select { prewhere, connect_by, distribute_by, value_table_mode, select_modifiers, .. } = select;
        first(&[
            ("PREWHERE", prewhere.is_some()),
            ("CONNECT BY", !connect_by.is_empty()),
            ("DISTRIBUTE BY", !distribute_by.is_empty()),
            ("AS VALUE or AS STRUCT", value_table_mode.is_some()),
            ("a modifier of SELECT", select_modifiers.is_some()),
        ])
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<&'static str> {
        match table {
            TableFactor::Table { with_hints, version, with_ordinality, partitions, sample, index_hints, .. } => {
                first(&[
                    ("TABLESAMPLE", sample.is_some()),
                    ("a hint for a table", !with_hints.is_empty() || !index_hints.is_empty()),
                    ("a version of a table", version.is_some()),
                    ("WITH ORDINALITY", *with_ordinality),
                    ("PARTITION", !partitions.is_empty()),
                ])
            }
            TableFactor::Pivot { .. } => ControlFlow::Break("PIVOT (write sum(x) FILTER (WHERE ...) for each column)"),
            TableFactor::Unpivot { .. } => ControlFlow::Break("UNPIVOT (write a UNION ALL of the columns)"),
            TableFactor::MatchRecognize { .. } => ControlFlow::Break("MATCH_RECOGNIZE"),
            TableFactor::JsonTable { .. } => ControlFlow::Break("JSON_TABLE"),
            TableFactor::OpenJsonTable { .. } => ControlFlow::Break("OPENJSON"),
            TableFactor::XmlTable { .. } => ControlFlow::Break("XMLTABLE"),
            TableFactor::SemanticView { .. } => ControlFlow::Break("SEMANTIC_VIEW"),
            TableFactor::Derived { sample, .. } => first(&[("TABLESAMPLE", sample.is_some())]),
            TableFactor::Function { with_ordinality, .. } => first(&[("WITH ORDINALITY", *with_ordinality)]),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<&'static str> {
        match expression {
            // PostgreSQL's formats have no `%`, and DataFusion would print them unchanged.
            Expr::Function(function)
                if is_named(function, "to_char")
                    && !argument(function, 1).is_some_and(|format| format.contains('%')) =>
            {
                ControlFlow::Break("a format of to_char without % (write '%Y-%m-%d' for 'YYYY-MM-DD')")
            }
            Expr::SimilarTo { .. } => ControlFlow::Break("SIMILAR TO (write LIKE, or ~ with a regular expression)"),
            Expr::Cast { expr, data_type, .. } if shortens(expr, data_type) => {
                ControlFlow::Break("a cast to a text of some length (write left(x, 3) for x::varchar(3))")
            }
            Expr::Cast { expr, data_type: DataType::Bytea, .. } if text(expr).is_some_and(|t| t.starts_with("\\x")) => {
                ControlFlow::Break("bytea in hexadecimal digits (write decode('6162', 'hex'))")
            }
            Expr::Extract { field: DateTimeField::Second | DateTimeField::Seconds, .. } => ControlFlow::Break(SECONDS),
            Expr::Function(function) if is_named(function, "date_part") && is_second(argument(function, 0)) => {
                ControlFlow::Break(SECONDS)
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

const SECONDS: &str = "a part of a time in whole seconds (write extract(microsecond FROM t) / 1000000.0)";

/// Whether the query has INTERSECT ALL or EXCEPT ALL, which the query engine computes wrongly.
fn counts_rows(body: &SetExpr) -> bool {
    bodies(body).into_iter().any(|body| {
        let SetExpr::SetOperation { op, set_quantifier, .. } = body else { return false };
        matches!(op, SetOperator::Intersect | SetOperator::Except | SetOperator::Minus)
            && matches!(set_quantifier, SetQuantifier::All | SetQuantifier::AllByName)
    })
}

/// Whether a part of the query is `TABLE name`, which the query engine does not know.
fn names_table(body: &SetExpr) -> bool {
    bodies(body).into_iter().any(|body| matches!(body, SetExpr::Table(_)))
}

/// The text of a literal.
fn text(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a cast could shorten a text. A literal that is short enough stays as it is.
fn shortens(expression: &Expr, data_type: &DataType) -> bool {
    let (DataType::Character(length)
    | DataType::Char(length)
    | DataType::CharacterVarying(length)
    | DataType::CharVarying(length)
    | DataType::Varchar(length)
    | DataType::Nvarchar(length)) = data_type
    else {
        return false;
    };
    let Some(CharacterLength::IntegerLength { length, .. }) = length else { return false };
    text(expression).is_none_or(|text| text.chars().count() as u64 > *length)
}

/// The text of an argument of a function, if it is a literal.
fn argument(function: &Function, position: usize) -> Option<&str> {
    let FunctionArguments::List(list) = &function.args else { return None };
    match list.args.get(position)? {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => text(argument),
        _ => None,
    }
}

fn first(clauses: &[(&'static str, bool)]) -> ControlFlow<&'static str> {
    match clauses.iter().find(|(_, is_there)| *is_there) {
        Some((clause, _)) => ControlFlow::Break(clause),
        None => ControlFlow::Continue(()),
    }
}

fn is_second(part: Option<&str>) -> bool {
    part.is_some_and(|part| part.eq_ignore_ascii_case("second") || part.eq_ignore_ascii_case("seconds"))
}

fn is_named(function: &Function, name: &str) -> bool {
    let last = function.name.0.last().and_then(|part| part.as_ident());
    last.is_some_and(|last| last.value.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::super::{ParseErrorKind, parse};

    fn refused(sql: &str) -> String {
        let problem = parse(sql).unwrap_err();
        assert!(matches!(problem.fault, ParseErrorKind::Ignored { .. }), "{sql}: {problem}");
        problem.fault.to_string()
    }

    #[test]
    fn clauses_that_would_be_ignored_are_refused() {
        for sql in [
            "SELECT * FROM v TABLESAMPLE BERNOULLI (10)",
            "SELECT * FROM (SELECT * FROM v TABLESAMPLE SYSTEM (1)) a",
            "SELECT * FROM v WHERE a IN (SELECT a FROM w TABLESAMPLE SYSTEM (1))",
            "EXPLAIN SELECT * FROM v TABLESAMPLE SYSTEM (1)",
            "SELECT * FROM v TABLESAMPLE SYSTEM (1) PURPOSE treatment",
        ] {
            assert!(refused(sql).contains("TABLESAMPLE"), "{sql}");
        }
        for sql in [
            "SELECT * FROM v FOR UPDATE",
            "SELECT * FROM v FOR SHARE NOWAIT",
            "WITH a AS (SELECT x FROM v FOR UPDATE) SELECT * FROM a",
        ] {
            assert!(refused(sql).contains("FOR UPDATE"), "{sql}");
        }
        for sql in
            ["SELECT to_char(now(), 'YYYY')", "SELECT TO_CHAR(day, 'Mon') FROM v", "SELECT to_char(day, f) FROM v"]
        {
            assert!(refused(sql).contains("to_char"), "{sql}");
        }
        for (sql, clause) in [
            ("SELECT a FROM v WHERE a NOT SIMILAR TO 'a%'", "SIMILAR TO"),
            ("SELECT 1 INTERSECT ALL SELECT 2", "INTERSECT ALL"),
            ("SELECT 1 UNION ALL (SELECT 1 EXCEPT ALL SELECT 2)", "INTERSECT ALL"),
            ("SELECT a::varchar(3) FROM v", "left(x, 3)"),
            ("SELECT CAST('abcd' AS CHAR(3))", "left(x, 3)"),
            ("SELECT extract(second FROM t) FROM v", "whole seconds"),
            ("SELECT * FROM v PIVOT (sum(n) FOR ward IN ('north', 'south'))", "PIVOT"),
            ("SELECT * FROM v UNPIVOT (n FOR ward IN (north, south))", "UNPIVOT"),
            ("CREATE VIEW w AS TABLE v", "SELECT * FROM"),
            ("SELECT date_part('Second', t) FROM v", "whole seconds"),
            (r"SELECT '\x6162'::bytea", "hexadecimal"),
        ] {
            assert!(refused(sql).contains(clause), "{sql}");
        }
    }

    #[test]
    fn clauses_that_are_heeded_are_not_refused() {
        for sql in [
            "SELECT to_char(day, '%Y-%m') AS m, count(*) FROM v GROUP BY m ORDER BY m LIMIT 3 OFFSET 1",
            "SELECT DISTINCT ON (a) a, b FROM v ORDER BY a",
            "SELECT 'abc'::varchar(3), a::varchar, CAST('test' AS VARCHAR(60)), 'ab'::bytea FROM v",
            "SELECT a FROM v UNION ALL SELECT a FROM w EXCEPT SELECT a FROM u INTERSECT SELECT 1",
            "SELECT extract(microsecond FROM t), date_part('minute', t), extract(epoch FROM t) FROM v",
            "WITH a AS (SELECT 1 AS x) SELECT sum(x) OVER (PARTITION BY x) FROM a CROSS JOIN generate_series(1, 3)",
        ] {
            parse(sql).unwrap_or_else(|problem| panic!("{sql}: {problem}"));
        }
    }
}
